"""Operations on arrays that have room for more elements than they have, as `hlo_bounds` makes them.

    y: f64[n] = load(x, 0) {span(?; n)}           y: f64[6] = load(padded x, 0) {span(?; 6)}
    s: f64 = sum(y) {axes=(0,)}                   filled = select(iota < n, y, 0.0)
                                                  s: f64 = sum(filled) {axes=(0,)}

What lies beyond the length of an array is anything, and decides nothing: every operation says with which arguments
it is right all the same (`Op.in_room`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from .. import ops
from ..errors import RuleError, TranspileError
from ..ir.build import current, int_const, located
from ..ir.dims import DimCall, DimExpr, Symbol, substitute, symbols_of
from ..ir.index import Span
from ..ir.nodes import Const, Let, Stmt, Value, Var
from ..ir.types import Type
from ..ir.walk import Copier, sizes_used


class Room(Copier):
    """Copies statements, with `most[name]` for each size `name`, which is what the variable `ints[name]` is.

    RuleError: an operation on an array with room that is not right for what is in it.
    """

    def __init__(self, most: Mapping[str, int], ints: Mapping[str, Var]) -> None:
        super().__init__(sizes=most)
        self.most, self.ints = dict(most), ints

    def statement(self, stmt: Stmt) -> None:
        if not isinstance(stmt, Let) or sizes_used(stmt).isdisjoint(self.most):
            super().statement(stmt)
            return
        shapes = [d for v in (*stmt.args, *stmt.targets) for d in v.type.shape]
        spans = [item.size for item in stmt.params.get("index", ()) if isinstance(item, Span)]
        if not all(map(self._grows, [*shapes, *spans])):
            raise whole(stmt, self.most)
        args = [self.value(a) for a in stmt.args]
        with located(stmt.loc):
            found = stmt.op.in_room(self, args, [a.type for a in stmt.args], **stmt.params)
        if found is None:
            raise whole(stmt, self.most)
        if isinstance(found, (Var, Const)):
            self.values[stmt.targets[0]] = found
            return
        current().stmts.append(Let(self.bind_all(stmt.targets), stmt.op, tuple(found), self.params(stmt.params),
                                   stmt.loc))

    def _grows(self, dim: Any) -> bool:
        """Whether the dimension is at most what it is for the largest sizes."""
        if not self.is_roomy(dim):
            return True
        return all(factor > 0 and all(self._atom_grows(a) for a in monomial) for monomial, factor in dim.terms
                   if any(self.is_roomy(DimExpr((((a,), 1),))) for a in monomial))

    def _atom_grows(self, atom: Symbol | DimCall) -> bool:
        return isinstance(atom, Symbol) or (atom.kind in ("max", "min") and all(map(self._grows, atom.args)))

    # --- for the rules of operations -----------------------------------------------------------------------------

    def is_roomy(self, dim: Any) -> bool:
        """Whether there is room for more than the running function has along such an axis."""
        return not symbols_of(dim).keys().isdisjoint(self.most)

    def most_of(self, dim: Any) -> Any:
        """The room for it."""
        return substitute(dim, self.most)

    def length(self, dim: Any) -> Value:
        """The dimension of the running function."""
        if not isinstance(dim, DimExpr):
            return int_const(dim)
        terms: list[Value] = []
        for monomial, factor in dim.terms:
            factors = [*map(self._atom, monomial), *([int_const(factor)] if factor != 1 or not monomial else [])]
            terms.append(reduce(ops.multiply, factors))
        return reduce(ops.add, terms)

    def _atom(self, atom: Symbol | DimCall) -> Value:
        if isinstance(atom, DimCall):
            kinds = {"max": ops.maximum, "min": ops.minimum, "floordiv": ops.floor_divide, "mod": ops.remainder}
            return kinds[atom.kind](*map(self.length, atom.args))               # type: ignore[no-any-return]
        return self.value(self.ints[atom.name])

    def filled(self, value: Value, of: Type, axes: Sequence[int], number: Value) -> Value:
        """`value`, which stands for a value of the type `of`, with `number` beyond its length along the axes."""
        for axis in axes:
            if self.is_roomy(of.shape[axis]):
                shape = value.shape
                places = ops.iota(shape=shape, axis=axis, dtype="int64")
                value = ops.select(ops.less(places, self.length(of.shape[axis])), value, number)
        return value

    def fitted(self, value: Value, shape: Sequence[int]) -> Value:
        """With room as in `shape`, which holds the elements that there are."""
        high = tuple(a - b for a, b in zip(shape, value.shape, strict=True))
        made: Value = ops.pad(value, low=(0,) * len(high), high=high, interior=(0,) * len(high))
        return made


def whole(stmt: Let, sizes: Mapping[str, int]) -> RuleError | TranspileError:
    """What is said of an operation that has no form for arrays with room."""
    value = next((v for v in (*stmt.args, *stmt.targets) if any(
        not symbols_of(d).keys().isdisjoint(sizes) for d in v.type.shape)), None)
    what = ("a size that follows from a run-time value is computed with" if value is None else
            f"{_named(value)}, whose size follows from a run-time value, is used as a whole by {stmt.op.name}")
    problem = _refusal(what, "give the array room for all that there can be, and count what is in it")
    return problem if stmt.loc is None else problem.at(stmt.loc)


def no_result(value: Value) -> RuleError:
    """What is said of a result with room."""
    return _refusal(f"the result {_named(value)} has one that follows from a run-time value",
                    "return an array with room for all that there can be, and how many there are")


def _named(value: Value) -> str:
    return f"{value.name if isinstance(value, Var) else 'an array'}: {value.type}"


def _refusal(what: str, help: str) -> RuleError:
    return RuleError(f"StableHLO needs every size as a number, and {what}", code="E207", kind=NotImplementedError,
                     help=help)
