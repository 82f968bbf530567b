"""What is known of the ints of a func while its loops are raised: ranges, sizes, and whether two places may be one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import int_const
from ..ir.dims import DimCall, DimExpr, Symbol, symbols_of
from ..ir.index import At, Span
from ..ir.ints import Ints, factor_of
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var
from ..ir.types import I64
from ..ir.walk import all_statements, bound_inside
from ..transforms.inequalities import may_hold

Row = dict[str, int]


@dataclass(frozen=True)
class Axis:
    """Positions first + k * step for 0 <= k < size, as dimensions."""

    first: Any
    size: Any = 1
    step: int = 1

    @property
    def ends(self) -> tuple[Any, Any]:
        """The lowest and the highest position, where there is one."""
        last = self.first + (self.size - 1) * self.step
        return (self.first, last) if self.step > 0 else (last, self.first)


Place = tuple[Axis, ...]


class Facts:
    """sizes: the names that the shapes of the params bind; what is made of these alone is known before any loop runs.
    """

    def __init__(self, func: Func) -> None:
        self.ints = Ints(func.body)
        self.values: dict[str, Var] = {p.name: p for p in func.params if p.type == I64}
        for stmt in all_statements(func.body):
            self._note(stmt)
        self.sizes = {s for p in func.params for d in p.type.shape for s in symbols_of(d)} - self.values.keys()

    def learn(self, stmts: Iterable[Stmt]) -> None:
        """Statements that were made since."""
        for stmt in all_statements(Block(tuple(stmts), ())):
            self._note(stmt)
            if isinstance(stmt, Let) and len(stmt.targets) == 1:
                self.ints.definition[stmt.target] = stmt
            elif isinstance(stmt, For):
                self.ints.loop[stmt.index.name] = stmt

    def _note(self, stmt: Stmt) -> None:
        self.values.update((v.name, v) for v in (*stmt.targets, *bound_inside(stmt)) if v.type == I64)

    def dim(self, value: Value) -> Any:
        return self.ints.dim(value)

    def is_known(self, dim: Any) -> bool:
        """Whether a dimension is made of sizes alone."""
        return symbols_of(dim).keys() <= self.sizes

    def is_below(self, a: Any, b: Any) -> bool:
        """Whether a < b in every trip of all loops."""
        return self.ints.is_negative(a - b)

    def is_inside(self, axis: Axis, dim: Any) -> bool:
        """Whether all positions are surely inside an axis of `dim` elements."""
        lowest, highest = axis.ends
        return self.is_below(-1, lowest) and self.is_below(highest, dim)

    def extremes(self, dim: Any) -> tuple[Any, Any] | None:
        """The lowest and highest that the dimension is in any trip, made of sizes; None where that is not known."""
        low, high = self._extreme(dim, True), self._extreme(dim, False)
        return None if low is None or high is None else (low, high)

    def _extreme(self, dim: Any, lowest: bool) -> Any | None:
        for name in reversed(self.ints.loop):
            if name not in symbols_of(dim):
                continue
            loop, factor = self.ints.loop[name], factor_of(dim, name)
            if factor is None or not isinstance(loop.step, Const):
                return None
            up = loop.step.value > 0
            last = self.dim(loop.hi) + (-1 if up else 1)
            dim = dims.substitute(dim, {name: self.dim(loop.lo) if (up == (factor > 0)) == lowest else last})
        return dim if self.is_known(dim) else None

    def decided(self, comparison: Let, path: Sequence[tuple[Value, bool]], sites: Mapping[Var, Any]) -> bool | None:
        """What a comparison of ints surely is where the conditions hold, in every trip of the loops; None: not known.
        """
        known: list[Row] = []
        names: set[str] = set()
        for pred, wanted in path:
            for let, holds in _parts(pred, wanted, sites):
                known += self._rows(let, holds, names)
        for answer in (True, False):
            against = self._rows(comparison, not answer, names)
            if not against:
                continue
            bounds = self._ranges(names)
            if not may_hold([*known, *bounds, *against]):
                return answer
        return None

    def holds(self, pred: Value, path: Sequence[tuple[Value, bool]], sites: Mapping[Var, Any]) -> bool:
        """Whether a condition, made of comparisons of ints, surely holds where those on the path do."""
        if isinstance(pred, Const):
            return bool(pred.value)
        site = sites.get(pred)
        if site is None or not isinstance(site.stmt, Let):
            return False
        let = site.stmt
        if let.op is ops.logical_and:
            return all(self.holds(a, path, sites) for a in let.args)
        if let.op.relates is None or let.args[0].type != I64 or let.args[1].type != I64:
            return False
        return self.decided(let, path, sites) is True

    def _rows(self, let: Let, holds: bool, names: set[str]) -> list[Row]:
        """The comparison as rows that are not negative, or that it fails; none for what is not linear."""
        relation = let.op.relates if holds else _OPPOSITE[let.op.relates]
        a, b = map(self.dim, let.args)
        apart = {"<": [b - a - 1], "<=": [b - a], ">": [a - b - 1], ">=": [a - b], "==": [a - b, b - a],
                 "!=": []}[relation]
        names.update(symbols_of(a), symbols_of(b))
        return [_row(dim) for dim in apart]

    def _ranges(self, names: set[str]) -> list[Row]:
        """The bounds of the loops whose indices are among the names, and of sizes."""
        rows: list[Row] = []
        todo, done = sorted(names), set()
        while todo:
            name = todo.pop()
            if name in done:
                continue
            done.add(name)
            loop = self.ints.loop.get(name)
            if name in self.sizes:
                rows.append({name: 1})
            if loop is None or not isinstance(loop.step, Const):
                continue
            first, last = self.dim(loop.lo), self.dim(loop.hi)
            low, high = (first, last - 1) if loop.step.value > 0 else (last + 1, first)
            index = dims.symbol(name, 0)
            rows += [_row(index - low), _row(high - index)]
            todo += [*symbols_of(low), *symbols_of(high)]
        return rows

    def emitted(self, dim: Any) -> Value:
        """The dimension as a value, from the ints that it is named after."""
        if isinstance(dim, (int, np.integer)):
            return int_const(int(dim))
        total: Value | None = None
        for monomial, coefficient in dim.terms:
            term: Value | None = None if coefficient == 1 and monomial else int_const(coefficient)
            for atom in monomial:
                factor = self._atom(atom)
                term = factor if term is None else ops.multiply(term, factor)
            assert term is not None
            total = term if total is None else ops.add(total, term)
        assert total is not None
        return total

    def _atom(self, atom: Symbol | DimCall) -> Value:
        if isinstance(atom, Symbol):
            value = self.values.get(atom.name)
            return value if value is not None else ops.size(dim=dims.symbol(atom.name, atom.low))
        a, b = map(self.emitted, atom.args)
        name = {"floordiv": "floor_divide", "mod": "remainder", "max": "maximum", "min": "minimum"}[atom.kind]
        found: Value = getattr(ops, name)(a, b)
        return found

    def place(self, let: Let) -> Place:
        """Where a load, store or add_at reads or writes."""
        axes: list[Axis] = []
        for item, scalar in axis_items(let):
            if isinstance(item, At):
                assert scalar is not None
                axes.append(Axis(self.dim(scalar)))
            else:
                axes.append(Axis(item.start if scalar is None else self.dim(scalar), item.size, item.step))
        return tuple(axes)


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _parts(pred: Value, wanted: bool, sites: Mapping[Var, Any]) -> Iterator[tuple[Let, bool]]:
    """The comparisons of ints that hold, or do not, where a condition is as wanted."""
    site = sites.get(pred) if isinstance(pred, Var) else None
    if site is None:
        return
    stmt = site.stmt
    if isinstance(stmt, If):
        k = stmt.targets.index(pred)
        for chosen, arm, other in ((True, stmt.then, stmt.orelse), (False, stmt.orelse, stmt.then)):
            impossible = other.results[k]
            if isinstance(impossible, Const) and bool(impossible.value) is not wanted:
                yield from _parts(stmt.pred, chosen, sites)
                yield from _parts(arm.results[k], wanted, sites)
    elif isinstance(stmt, Let):
        if stmt.op.relates is not None and stmt.args[0].type == I64 == stmt.args[1].type:
            yield stmt, wanted
        elif stmt.op is (ops.logical_and if wanted else ops.logical_or):
            for arg in stmt.args:
                yield from _parts(arg, wanted, sites)
        elif stmt.op is ops.logical_not:
            yield from _parts(stmt.args[0], not wanted, sites)


def _row(dim: Any) -> Row:
    """A dimension as coefficients of monomials."""
    if isinstance(dim, (int, np.integer)):
        return {"": int(dim)}
    return {"*".join(map(str, monomial)): c for monomial, c in dim.terms}


def axis_items(let: Let) -> list[tuple[At | Span, Value | None]]:
    """For each axis of the array that the statement reads or writes, its item and the run-time int that it takes."""
    scalars = iter(let.args[1 if let.op.access == "load" else 2:])
    found: list[tuple[At | Span, Value | None]] = []
    for item in let.params["index"]:
        if isinstance(item, At) or (isinstance(item, Span) and item.start is None):
            found.append((item, next(scalars)))
        elif isinstance(item, Span):
            found.append((item, None))
    return found


@dataclass(frozen=True)
class Access:
    """One read or write in the body of a loop; inner: the loops between, outermost first."""

    place: Place
    inner: tuple[For, ...] = ()


class Meeting:
    """Whether accesses in trips of one loop may touch the same element.

    around: the loops outside, whose trip the two share.  local: names of ints that the body computes.
    """

    def __init__(self, facts: Facts, loop: For, around: Sequence[For], local: set[str]) -> None:
        self.facts, self.loop, self.around, self.local = facts, loop, around, local

    def earlier(self, a: Access, b: Access) -> bool:
        """Whether a of some trip may touch what b does in a later one."""
        return self._may(a, b, 1)

    def same(self, a: Access, b: Access) -> bool:
        """Whether both may touch one place in the same trip."""
        return self._may(a, b, 0)

    def ever(self, a: Access, b: Access) -> bool:
        return self.earlier(a, b) or self.same(a, b) or self.earlier(b, a)

    def _may(self, a: Access, b: Access, later: int) -> bool:
        rows: list[Row] = []
        zero: list[Row] = []
        sizes: dict[str, int] = {}
        if not isinstance(self.loop.step, Const):
            return True
        for side, access in (("a ", a), ("b ", b)):
            for loop in (*self.around, self.loop, *access.inner):
                self._bounds(loop, side, rows, zero, sizes)
        name = self.loop.index.name
        sign = 1 if self.loop.step.value > 0 else -1
        if later:
            rows.append({f"b {name}": sign, f"a {name}": -sign, "": -1})
        else:
            zero.append({f"b {name}": 1, f"a {name}": -1})
        for k, (one, other) in enumerate(zip(a.place, b.place, strict=True)):
            places = []
            for side, axis in (("a ", one), ("b ", other)):
                place = self._linear(axis.first, side, sizes)
                if axis.size != 1 or axis.step != 1:
                    along = f"{side}axis {k}"
                    place = _plus(place, {along: axis.step})
                    rows.append({along: 1})
                    rows.append(_plus(self._linear(axis.size, side, sizes), {along: -1, "": -1}))
                places.append(place)
            zero.append(_plus(places[0], {n: -c for n, c in places[1].items()}))
        rows += [{name: 1, "": -low} for name, low in sizes.items()]
        return may_hold(rows, zero)

    def _bounds(self, loop: For, side: str, rows: list[Row], zero: list[Row], sizes: dict[str, int]) -> None:
        if not isinstance(loop.step, Const):
            return
        first, last = self.facts.dim(loop.lo), self.facts.dim(loop.hi)
        low, high = (first, last - 1) if loop.step.value > 0 else (last + 1, first)
        index = self._linear(dims.symbol(loop.index.name, 0), side, sizes)
        if abs(loop.step.value) != 1:           # index = lo + step * trip
            start = self._linear(first, side, sizes)
            trip = {f"{side}trip {loop.index.name}": int(loop.step.value)}
            zero.append(_plus(index, {n: -c for n, c in _plus(start, trip).items()}))
        rows.append(_plus(index, {n: -c for n, c in self._linear(low, side, sizes).items()}))
        rows.append(_plus(self._linear(high, side, sizes), {n: -c for n, c in index.items()}))

    def _linear(self, dim: Any, side: str, sizes: dict[str, int]) -> Row:
        """A dimension as coefficients; what the body computes has one name for each side."""
        if isinstance(dim, int):
            return {"": dim}
        row: Row = {}
        for monomial, coefficient in dim.terms:
            name = ""
            if monomial:
                name = "*".join(map(str, monomial))
                inside = symbols_of(DimExpr(((monomial, 1),))).keys()
                if not inside.isdisjoint(self.local):
                    name = side + name
                elif len(monomial) == 1 and isinstance(monomial[0], Symbol) and name in self.facts.sizes:
                    name = f"size {name}"
                    sizes[name] = monomial[0].low
            row[name] = row.get(name, 0) + coefficient
        return row


def _plus(a: Row, b: Row) -> Row:
    found = dict(a)
    for name, c in b.items():
        found[name] = found.get(name, 0) + c
    return found
