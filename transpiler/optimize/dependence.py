"""Which accesses of a loop nest may touch one element of an array, in which trips.

    for j: for k: a[i, j] -= a[i, k] * a[k, j]        with k < i <= j, the write a[i, j] meets neither other access
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..ir import dims
from ..ir.dims import DimExpr, Symbol
from ..ir.ints import Ints
from ..ir.nodes import Const, For
from ..ir.walk import all_statements, bound_inside
from ..transforms.inequalities import Row, may_hold


@dataclass(frozen=True)
class Access:
    """An element that is read, written or added to.  place: its position, as dimensions.  loops: the loops of the nest
    around it, the outermost first."""

    root: int
    place: tuple[Any, ...]
    writes: bool
    adds: bool
    loops: tuple[For, ...]

    def concerns(self, other: Access) -> bool:
        """Whether the order of the two matters if they touch one element.  Adds may be in any order."""
        return self.root == other.root and (self.writes or other.writes) and not (self.adds and other.adds)


# The trip of the first loop around the first access is before, after or the same as that of the second loop around the
# second access; the indices of the two loops count the same ints in the same direction.
Order = tuple[For, For, Literal["before", "after", "same"]]


class Dependences:
    def __init__(self, ints: Ints) -> None:
        self.ints = ints

    def may_meet(self, a: Access, b: Access, order: Iterable[Order]) -> bool:
        """Whether both may touch one element where their trips are in that order.  True also where it is not known."""
        at_least_zero: list[Row] = []
        zero: list[Row] = []
        known = _Rows(self.ints, at_least_zero)
        sides = [{name: f"{side} {name}" for name in _inside(access.loops[0])} for side, access in (("a", a), ("b", b))]
        for names, access in zip(sides, (a, b)):
            for loop in access.loops:
                known.bounds(loop, names)
        for first, second, relation in order:
            one, other = f"a {first.index.name}", f"b {second.index.name}"
            if relation == "same":
                zero.append({one: 1, other: -1})
            else:
                sign = 1 if (step_of(first) > 0) == (relation == "before") else -1
                at_least_zero.append({other: sign, one: -sign, "": -1})
        for p, q in zip(a.place, b.place, strict=True):
            zero.append(_plus(known.linear(p, sides[0]), known.linear(q, sides[1]), -1))
        known.close()
        return may_hold(at_least_zero, zero)


def _inside(loop: For) -> set[str]:
    """Names of what differs from trip to trip: of indices, and of ints that are computed or read in the loop."""
    return {loop.index.name, *(v.name for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s)))}


def step_of(loop: For) -> int:
    """Of a loop whose step is known."""
    assert isinstance(loop.step, Const)
    return int(loop.step.value)


class _Rows:
    """Dimensions as rows of coefficients, with what is known of the names in them."""

    def __init__(self, ints: Ints, rows: list[Row]) -> None:
        self.ints, self.rows = ints, rows
        self.seen: dict[str, int] = {}           # names of what both sides share, with the least value
        self.closed: set[str] = set()

    def linear(self, dim: Any, names: Mapping[str, str]) -> Row:
        if isinstance(dim, int):
            return {"": dim}
        row: dict[str, int] = {}
        for monomial, coefficient in dim.terms:
            name = ""
            if monomial:
                only = monomial[0] if len(monomial) == 1 else None
                name = "*".join(map(str, monomial))
                inside = dims.symbols_of(DimExpr(((monomial, 1),))).keys() & names.keys()
                if isinstance(only, Symbol):
                    name = names.get(only.name, only.name)
                    if only.name not in names:
                        self.seen[only.name] = only.low
                elif inside:
                    name = f"{names[min(inside)]} in {name}"
            row[name] = row.get(name, 0) + coefficient
        return row

    def bounds(self, loop: For, names: Mapping[str, str]) -> None:
        up = step_of(loop) > 0
        index = self.linear(dims.symbol(loop.index.name, 0), names)
        first, last = self.ints.dim(loop.lo), self.ints.dim(loop.hi)
        low, high = (first, last - 1) if up else (last + 1, first)
        self.rows.append(_plus(index, self.linear(low, names), -1))
        self.rows.append(_plus(self.linear(high, names), index, -1))

    def close(self) -> None:
        """Add what is known of everything that the rows are made of."""
        while todo := [name for name in self.seen if name not in self.closed]:
            for name in todo:
                self.closed.add(name)
                loop = self.ints.loop.get(name)
                if loop is not None and isinstance(loop.step, Const) and loop.step.value:
                    self.bounds(loop, {})
                elif self.seen[name] >= 0:
                    self.rows.append({name: 1, "": -self.seen[name]})


def _plus(a: Row, b: Row, factor: int) -> Row:
    found = dict(a)
    for name, c in b.items():
        found[name] = found.get(name, 0) + factor * c
    return found


def any_meet(dependences: Dependences, first: Sequence[Access], second: Sequence[Access],
             order: Sequence[Order]) -> bool:
    """Whether an access of the first may touch what one of the second touches, where that matters."""
    return any(a.concerns(b) and dependences.may_meet(a, b, order) for a in first for b in second)
