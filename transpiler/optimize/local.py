"""How far what a loop's body does with arrays reaches along one axis, as for the steps of a stencil.

    for t in 0 .. steps carry (u: f64[n]):            u[j] after all steps depends on u[j - steps] to u[j + steps]:
      for j in 1 .. n - 1: v[j] = f(u[j - 1], u[j + 1])   it spreads by 1 a step

If that is known, the body can be run for a part of the elements, on parts of the arrays that are longer at both ends.
There, elements near an end may come out wrong: those at most `edge` away at first, since the body treats ends of its
own (`v[0] = 0`), then as many more as each loop spreads them.

Every position along the axis is a constant (counted from the low end), the size plus a constant (from the high end),
or the index of a loop from one end to the other plus a constant.  Nothing else may depend on the size, on such an
index, or on single elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import dims
from ..ir.dependence import axis_items, position_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, If, Let, Value, Var
from ..ir.types import I64
from ..ir.walk import all_statements, blocks, bound_inside, operands


class NotLocalError(Exception):
    """The body does more than work on neighbours."""


@dataclass(frozen=True)
class Reach:
    """edge: how far from an end code goes that is for this end alone.  spread: a dimension, how much further wrong
    elements may spread while the body runs."""

    edge: int
    spread: Any


@dataclass(frozen=True)
class Axis:
    """The axis of arrays whose size is the named one, also plus a constant.  named: other sizes that are made of it."""

    size: str
    named: Mapping[str, Any] = field(default_factory=dict)

    def of(self, value: Value) -> int | None:
        """Which axis of an array it is; None for arrays that do not have it."""
        found = [k for k, dim in enumerate(value.type.shape)
                 if self.size in dims.symbols_of(dims.substitute(dim, self.named))]
        if not found:
            return None
        if len(found) > 1 or self.excess(value.type.shape[found[0]]) is None:
            raise NotLocalError
        return found[0]

    def excess(self, dim: Any) -> int | None:
        """By how much the dimension exceeds the size, where it is not 0: parts are longer than what is taken off."""
        rest = _nonzero(dims.substitute(dim, self.named)) - dims.symbol(self.size, 0)
        return rest if isinstance(rest, int) else None


LOW, HIGH, INSIDE = "low", "high", "inside"


@dataclass(frozen=True)
class Place:
    """A position along the axis: a distance from the low or high end, or from the index of a loop."""

    end: str
    distance: int


Read = tuple[Value, int]


@dataclass
class _Nest:
    """A loop from end to end.

    root: of each version of an array that it writes to, the carry.  reads: (version or array, distance from the
    index); writes: (root, distance, what the value is made of).  source: of scalars, what is read for them.
    is_straight: without branches and inner loops, where all that is read counts for all that is written.
    """

    loop: For
    root: dict[Value, Value] = field(default_factory=dict)
    reads: set[Read] = field(default_factory=set)
    writes: list[tuple[Value, int, frozenset[Read]]] = field(default_factory=list)
    source: dict[Value, frozenset[Read]] = field(default_factory=dict)
    is_straight: bool = True

    def made_of(self, values: Iterable[Value]) -> frozenset[Read]:
        return frozenset().union(*(self.source[v] for v in values if v in self.source))


class Local:
    """The analysis of a body.

    arrays: those of outside that have the axis and are used, and whether only by loads.  sizes: ints of outside that
    depend on the size, as dimensions.  made: arrays with the axis that the body makes.
    """

    def __init__(self, loop: For, size: str, ints: Ints) -> None:
        self.loop, self.ints = loop, ints
        sizes = {v: ints.dim(v) for v in ints.definition if v.type == I64}
        self.axis = Axis(size, {v.name: dim for v, dim in sizes.items() if size in dims.symbols_of(dim)})
        self.bound = self.distance = 0              # how far code goes from an end, and from an index
        self.indices: set[str] = set()              # of the loops from end to end that are being looked at
        self.level: dict[Value, str] = {}           # of scalars, and arrays without the axis, that depend on elements
        self.wrong: dict[Value, Any] = {}           # of arrays: how far beyond the edge elements may be wrong
        self.inside: set[Value] = {loop.index, *loop.carries}
        self.inside.update(v for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s)))
        self.arrays: dict[Var, bool] = {}
        around = {v for s in all_statements(loop.body) for v in operands(s)} - self.inside
        self.sizes = {v: ints.dim(v) for v in around if isinstance(v, Var) and self._depends(v)}
        self.made: dict[Var, None] = {}

    def reach(self) -> Reach:
        """Raises NotLocalError."""
        if any(self.axis.of(c) is None for c in self.loop.carries) or any(
                self.axis.excess(c.type.shape[self.axis.of(c) or 0]) != 0 for c in self.loop.carries):
            raise NotLocalError
        for value in (self.loop.lo, self.loop.hi):
            self._plain(value)
        self.wrong.update(dict.fromkeys(self.loop.carries, 0))
        self._block(self.loop.body)
        spread = 0
        for result in self.loop.body.results:
            spread = dims.maximum(spread, self._wrong(result))
        return Reach(self.bound + self.distance + 1, spread)

    # --- values ------------------------------------------------------------------------------------------------

    def _depends(self, value: Value) -> bool:
        """Whether an int depends on the size or on a position along the axis."""
        return isinstance(value, Var) and value.type == I64 and bool(
            dims.symbols_of(self.ints.dim(value)).keys() & {self.axis.size, *self.indices})

    def _plain(self, value: Value) -> None:
        """Require a scalar that is the same for all parts."""
        if self.level.get(value) is not None or self._depends(value):
            raise NotLocalError

    def _wrong(self, array: Value) -> Any:
        if isinstance(array, Var) and array not in self.inside:
            self._outside(array, loads=False)
        return self.wrong.get(array, 0)

    def _outside(self, array: Var, *, loads: bool) -> None:
        if self.axis.of(array) is not None:
            self.arrays[array] = self.arrays.get(array, True) and loads

    def _place(self, let: Let, loop: For | None) -> Place:
        """Where along the axis a load, store or add_at is."""
        axis = self.axis.of(let.args[0])
        assert axis is not None
        for k, (item, scalar) in enumerate(axis_items(let)):
            if not isinstance(item, At) or scalar is None:
                raise NotLocalError
            if k != axis:
                if self._depends(scalar):
                    raise NotLocalError
                continue
            dim = self.ints.dim(scalar)
            if isinstance(dim, int):
                found = Place(LOW, dim)
            elif (beyond := self.axis.excess(dim)) is not None:
                found = Place(HIGH, beyond)
            else:
                distance = None if loop is None else dim - self.ints.dim(loop.index)
                if not isinstance(distance, int):
                    raise NotLocalError
                found = Place(INSIDE, distance)
        if found.end == INSIDE:
            self.distance = max(self.distance, abs(found.distance))
        else:
            self.bound = max(self.bound, abs(found.distance))
        return found

    def _join(self, values: Iterable[Value]) -> str | None:
        levels = {self.level[v] for v in values if v in self.level}
        if len(levels) > 1:
            raise NotLocalError
        return levels.pop() if levels else None

    def _note(self, targets: Sequence[Var], level: str | None) -> None:
        if level is not None:
            self.level.update(dict.fromkeys(targets, level))

    # --- outside of loops from end to end ----------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for stmt in block.stmts:
            match stmt:
                case Let():
                    self._let(stmt)
                case For():
                    self._for(stmt)
                case _:
                    raise NotLocalError

    def _let(self, let: Let) -> None:
        if let.op.access is not None:
            self._access(let)
        elif any(a.type.shape for a in let.args):
            raise NotLocalError
        elif not let.args and (let.targets[0].type.shape or self._depends(let.targets[0])):
            self._makes(let)
        elif any(map(self._depends, let.args)):
            if not self._depends(let.targets[0]):
                raise NotLocalError             # a number made of a size
        else:
            self._scalar(let)

    def _scalar(self, let: Let) -> None:
        if not let.op.is_pure or let.op.raises is not None:
            raise NotLocalError
        self._note(let.targets, self._join(let.args))

    def _makes(self, let: Let) -> None:
        """`empty`, or a size."""
        (target,) = let.targets
        if not target.type.shape:
            return
        axis = self.axis.of(target)
        if not let.op.is_unset:
            raise NotLocalError
        if axis is not None:
            self.bound = max(self.bound, abs(self.axis.excess(target.type.shape[axis]) or 0))
            self.wrong[target] = 0
            self.made[target] = None

    def _access(self, let: Let) -> None:
        array = let.args[0]
        if self.axis.of(array) is None:
            for value in position_of(let):
                self._plain(value)
            if any(map(self._depends, let.args[1:])):
                raise NotLocalError
            self._note(let.targets, self._join(let.args))
            return
        if isinstance(array, Var) and array not in self.inside:
            self._outside(array, loads=let.op.access == "load")
        place = self._place(let, None)
        if let.op.access == "load":
            self._note(let.targets, place.end)
            return
        if self.level.get(let.args[1]) not in (None, place.end) or self._depends(let.args[1]):
            raise NotLocalError
        self.wrong[let.targets[0]] = self.wrong.get(array, 0)

    def _for(self, loop: For) -> None:
        if self._is_from_end_to_end(loop):
            self._nest(loop)
            return
        for value in (loop.lo, loop.hi, loop.step):
            self._plain(value)
        before: Any = 0
        carried, others = self._carries(loop)
        for k in carried:
            before = dims.maximum(before, self._wrong(loop.inits[k]))
        before = dims.maximum(before, self._read_around(loop))
        held = dict(self.wrong)
        self.wrong = dict.fromkeys([*held, *(loop.carries[k] for k in carried)], 0)
        for k in others:
            if self._depends(loop.inits[k]):
                raise NotLocalError
            self._note([loop.carries[k]], self.level.get(loop.inits[k]))
        while True:
            self._block(loop.body)
            found = {k: self.level.get(loop.body.results[k]) for k in others}
            changed = [k for k, level in found.items() if level != self.level.get(loop.carries[k])]
            if any(found[k] is None or loop.carries[k] in self.level for k in changed):
                raise NotLocalError
            for k in changed:
                self._note([loop.carries[k]], found[k])
            if not changed:
                break
        a_trip: Any = 0
        for k in carried:
            a_trip = dims.maximum(a_trip, self._wrong(loop.body.results[k]))
        self.wrong.update(held)
        after = before if a_trip == 0 else before + a_trip * self._trips(loop)
        self.wrong.update({loop.targets[k]: after for k in carried})
        for k in others:
            if self._depends(loop.body.results[k]):
                raise NotLocalError
            self._note([loop.targets[k]], self.level.get(loop.carries[k]))

    def _carries(self, loop: For) -> tuple[list[int], list[int]]:
        """The carries that have the axis, and others."""
        carried = [k for k, c in enumerate(loop.carries) if self.axis.of(c) is not None]
        return carried, [k for k in range(len(loop.carries)) if k not in carried]

    def _read_around(self, loop: For) -> Any:
        """How far from an end elements may be wrong in the arrays that the loop reads besides those it carries."""
        most: Any = 0
        for stmt in all_statements(loop.body):
            for value in operands(stmt):
                most = dims.maximum(most, self.wrong.get(value, 0))
        return most

    def _trips(self, loop: For) -> Any:
        """How many at most, made of what is known outside of all parts."""
        if not isinstance(loop.step, Const) or abs(loop.step.value) != 1:
            raise NotLocalError
        lo, hi = self.ints.dim(loop.lo), self.ints.dim(loop.hi)
        low, high = (lo, hi) if loop.step.value > 0 else (hi, lo)
        names = {v.name for v in self.inside if isinstance(v, Var)}
        for above in bounds_above(high - low):
            if not dims.symbols_of(above).keys() & names:
                return dims.maximum(above, 0)
        raise NotLocalError

    # --- loops from end to end ---------------------------------------------------------------------------------

    def _is_from_end_to_end(self, loop: For) -> bool:
        if not isinstance(loop.step, Const) or abs(loop.step.value) != 1:
            return False
        lo, hi = self.ints.dim(loop.lo), self.ints.dim(loop.hi)
        low, high = (lo, hi) if loop.step.value > 0 else (hi, lo)
        beyond = None if isinstance(high, int) else self.axis.excess(high)
        if not isinstance(low, int) or beyond is None:
            return False
        self.bound = max(self.bound, abs(low), abs(beyond))
        return True

    def _nest(self, loop: For) -> None:
        nest = _Nest(loop)
        self.indices.add(loop.index.name)
        for carry, init in zip(loop.carries, loop.inits):
            if self.axis.of(carry) is None:
                raise NotLocalError
            self.wrong[carry] = self._wrong(init)
            nest.root[carry] = carry
        self._inside(loop.body, nest)
        for carry, result in zip(loop.carries, loop.body.results):
            if nest.root.get(result) is not carry:
                raise NotLocalError
        self.indices.remove(loop.index.name)
        self._require_order(nest)
        for carry, target in zip(loop.carries, loop.targets):
            wrong = self.wrong[carry]
            for root, s, source in nest.writes:
                for array, k in () if root is not carry else source if nest.is_straight else nest.reads:
                    wrong = dims.maximum(wrong, self.wrong.get(nest.root.get(array, array), 0) + abs(k - s))
            self.wrong[target] = wrong

    def _require_order(self, nest: _Nest) -> None:
        """What is read of an array that the nest writes to has not been written yet, or is the trip's own element."""
        for version, k in nest.reads:
            root = nest.root.get(version)
            if root is None:
                continue
            places = {s for other, s, _ in nest.writes if other is root}
            if len(places) > 1 or any((k - s) * nest.loop.step.value < 0 for s in places):   # type: ignore[union-attr]
                raise NotLocalError

    def _inside(self, block: Block, nest: _Nest) -> None:
        for stmt in block.stmts:
            match stmt:
                case Let() if stmt.op.access is not None:
                    self._access_inside(stmt, nest)
                case Let():
                    self._let_inside(stmt)
                    nest.source.update(dict.fromkeys(stmt.targets, nest.made_of(stmt.args)))
                case For() | If():
                    self._around(stmt, nest)
                case _:
                    raise NotLocalError

    def _let_inside(self, let: Let) -> None:
        if any(v.type.shape for v in (*let.args, *let.targets)):
            raise NotLocalError
        if any(map(self._depends, let.args)) or self._depends(let.targets[0]):
            if not self._depends(let.targets[0]):
                raise NotLocalError
            return
        if not let.op.is_pure or let.op.raises is not None or self._join(let.args) not in (None, INSIDE):
            raise NotLocalError
        self._note(let.targets, self._join(let.args))

    def _access_inside(self, let: Let, nest: _Nest) -> None:
        array, others = let.args[0], let.args[1:]
        if any(self.level.get(v) in (LOW, HIGH) for v in others):
            raise NotLocalError
        if self.axis.of(array) is None:
            if let.op.access != "load" or any(map(self._depends, others)) or array in self.level:
                raise NotLocalError
            self._note(let.targets, INSIDE)
            nest.source[let.targets[0]] = nest.made_of(others)
            return
        if isinstance(array, Var) and array not in self.inside:
            self._outside(array, loads=let.op.access == "load")
        place = self._place(let, nest.loop)
        if place.end != INSIDE:
            raise NotLocalError
        if let.op.access == "load":
            nest.reads.add((array, place.distance))
            nest.source[let.targets[0]] = nest.made_of(others) | {(array, place.distance)}
            self._note(let.targets, INSIDE)
            return
        root = nest.root.get(array)
        if root is None or self._depends(let.args[1]):
            raise NotLocalError
        nest.root[let.targets[0]] = root
        nest.writes.append((root, place.distance, nest.made_of(others)))

    def _around(self, stmt: For | If, nest: _Nest) -> None:
        """A branch, or a loop over another axis, of one trip."""
        if any(self._depends(v) or self.level.get(v) in (LOW, HIGH) for v in operands(stmt) if not v.type.shape):
            raise NotLocalError
        if isinstance(stmt, For):
            for bound in (stmt.lo, stmt.hi, stmt.step):     # elements that are wrong are no good for it
                self._plain(bound)
            for carry, init in zip(stmt.carries, stmt.inits):
                self._hand(carry, init, nest)
        nest.is_straight = False
        for block in blocks(stmt):
            self._inside(block, nest)
        for k, target in enumerate(stmt.targets):
            for block in blocks(stmt):
                if self._depends(block.results[k]) or self.level.get(block.results[k]) in (LOW, HIGH):
                    raise NotLocalError
                self._hand(target, block.results[k], nest)

    def _hand(self, new: Var, old: Value, nest: _Nest) -> None:
        if not new.type.shape:
            self.level[new] = INSIDE
        elif old in nest.root:
            if nest.root.setdefault(new, nest.root[old]) is not nest.root[old]:
                raise NotLocalError
        else:
            raise NotLocalError


def _nonzero(dim: Any) -> Any:
    """d, of max(d, 0)."""
    match dim:
        case dims.DimExpr(terms=(((dims.DimCall(kind="max", args=args),), 1),)) if 0 in args:
            return next(arg for arg in args if arg != 0)
    return dim


def bounds_above(dim: Any) -> list[Any]:
    """Dimensions that this is at most: itself, and with either side of a minimum in its place."""
    found = [dim]
    if isinstance(dim, int):
        return found
    for monomial, factor in dim.terms:
        (atom, *others) = monomial or (None,)
        if not others and factor > 0 and isinstance(atom, dims.DimCall) and atom.kind == "min":
            rest = dim - dims.DimExpr((((atom,), factor),))
            found += [above for arg in atom.args for above in bounds_above(rest + arg * factor)]
    return found

