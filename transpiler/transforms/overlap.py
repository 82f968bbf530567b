"""Whether a write may change what is read later from the memory of an older version.

A read of an old version can be made again from a newer one if nothing that ran in between wrote to its place.  Places
are polyhedra: loop bounds and positions that are linear in loop indices and sizes become inequalities, together with
the order of the two in time, one system for each loop that both stand in.  Whatever is not linear is unknown and may
be anything.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.dims import DimCall, DimExpr, Symbol, slice_length, substitute, symbols_of
from ..ir.index import At, New, Span
from ..ir.ints import Ints
from ..ir.nodes import Const, For, If, Let, Stmt
from ..ir.walk import blocks
from .inequalities import may_hold
from .scopes import Scope, Scopes

Row = dict[str, int]


class Clash(enum.Enum):
    """When a write changes what is read: never, in the same run of the reader's block (after the reader), or
    only after that."""

    NEVER = enum.auto()
    INSIDE = enum.auto()
    AFTER = enum.auto()


@dataclass(frozen=True)
class Axis:
    """first + k * step for 0 <= k < size."""

    first: Any
    size: Any = 1
    step: int = 1


@dataclass(frozen=True)
class Access:
    """scope: the block that it stands in; number: its place in the text; axes: None for anywhere in the array."""

    scope: Scope
    number: int
    axes: tuple[Axis, ...] | None = None


class Places:
    """Positions of a func's accesses, and their order."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.number: dict[Stmt, int] = {}
        self.last: dict[Stmt, int] = {}             # the highest number of what is inside
        self.dim = Ints(scopes.root.block).dim          # ints as dimensions over loop indices, sizes and unknowns
        self._sizes: dict[str, int] = {}
        self._names = {v.name: v for v in scopes.of}
        self._count(scopes.root.block.stmts)

    def _count(self, stmts: Sequence[Stmt]) -> None:
        for stmt in stmts:
            self.number[stmt] = len(self.number)
            for block in blocks(stmt):
                self._count(block.stmts)
            self.last[stmt] = len(self.number) - 1

    def of(self, let: Let) -> Access:
        """Where a load, store or add_at reads or writes; anywhere for other operations."""
        scope = self.scopes.of[let.targets[0]]
        if let.op.access is None:
            return Access(scope, self.number[let])
        scalars = iter(let.args[1 if let.op.access == "load" else 2:])
        axes: list[Axis] = []
        for item in let.params["index"]:
            if isinstance(item, New):
                continue
            if isinstance(item, At):
                axes.append(Axis(self.dim(next(scalars))))
            else:
                assert isinstance(item, Span)
                first = self.dim(next(scalars)) if item.start is None else item.start
                axes.append(Axis(first, item.size, item.step))
        return Access(scope, self.number[let], tuple(axes))

    def most_trips(self, loop: For) -> Any | None:
        """The most iterations of an inner loop, as a dimension over what the whole func shares; None if unknown."""
        if not isinstance(loop.step, Const):
            return None
        most = slice_length(self.dim(loop.lo), self.dim(loop.hi), loop.step.value)
        for outer in reversed(self.scopes.inside[(loop, 0)].loops()[:-1]):
            name = outer.index.name
            if name not in symbols_of(most):
                continue
            sign = _direction(most, name)
            if sign == 0 or not isinstance(outer.step, Const) or abs(outer.step.value) != 1:
                return None
            low, high = (outer.lo, outer.hi) if outer.step.value > 0 else (outer.hi, outer.lo)
            first, last = self.dim(low), self.dim(high)
            first, last = (first, last - 1) if outer.step.value > 0 else (first + 1, last)
            most = substitute(most, {name: last if sign > 0 else first})
        return most if self.is_shared(most) else None

    def is_shared(self, dim: Any) -> bool:
        """Whether the dimension has the same value everywhere in the func."""
        return isinstance(dim, int) or all(self._is_shared(atom) for monomial, _ in dim.terms for atom in monomial)

    def clash(self, read: Access, block: Scope, after: int, write: Access) -> Clash:
        """Whether a write may change what was read, where the read is made again when the reverse sweep begins with
        `block` (the reader's, or one around it).  after: the number of the statement of `block` that reads."""
        inside = block in write.scope.around()
        if inside and write.number > after and self._may_meet(read, write, block.loops(), None):
            return Clash.INSIDE
        common = [a for a, b in zip(block.loops(), write.scope.loops(), strict=False) if a is b]
        if not inside and write.number > read.number and not _excluded(read.scope, write.scope) and (
                self._may_meet(read, write, common, None)):
            return Clash.AFTER
        for depth, loop in enumerate(common):
            if self._may_meet(read, write, common[:depth], loop):
                return Clash.AFTER
        return Clash.NEVER

    def _may_meet(self, read: Access, write: Access, same: Sequence[For], later: For | None) -> bool:
        """Whether both may touch one place: in the same iteration of some loops, the write in a later one of `later`.
        """
        at_least_zero: list[Row] = []
        zero: list[Row] = []
        for side, access in (("read ", read), ("write ", write)):
            for loop in access.scope.loops():
                self._bounds(loop, side, at_least_zero)
        for loop in same:
            zero.append(_difference({f"write {loop.index.name}": 1}, {f"read {loop.index.name}": 1}))
        if later is not None:
            name = later.index.name
            if not isinstance(later.step, Const):
                return True
            at_least_zero.append(_after(name, later.step.value))
            inner = self._segment_of(later, read, write)
            if inner is not None and isinstance(inner.step, Const):
                at_least_zero.append(_after(inner.index.name, inner.step.value))
        if read.axes is not None and write.axes is not None:
            for k, (a, b) in enumerate(zip(read.axes, write.axes, strict=True)):
                places = []
                for side, axis in (("read ", a), ("write ", b)):
                    place = self._linear(axis.first, side)
                    if axis.size != 1 or axis.step != 1:
                        along = f"{side}axis {k}"
                        place = _plus(place, {along: axis.step})
                        at_least_zero.append({along: 1})
                        at_least_zero.append(_plus(self._linear(axis.size, side), {along: -1, "": -1}))
                    places.append(place)
                zero.append(_difference(*places))
        for row in (*at_least_zero, *zero):
            for name in row:
                if name.startswith("size "):
                    size = self._sizes[name]
                    at_least_zero.append({name: 1, "": -size})
        return may_hold(at_least_zero, zero)

    @staticmethod
    def _segment_of(loop: For, read: Access, write: Access) -> For | None:
        """The segment inside of the loop that both stand in: its index goes on from one iteration to the next."""
        both = [a for a, b in zip(read.scope.loops(), write.scope.loops(), strict=False) if a is b]
        inner = both[both.index(loop) + 1:] if loop in both else []
        return inner[0] if inner and inner[0].segment else None

    def _bounds(self, loop: For, side: str, rows: list[Row]) -> None:
        """The index is between the loop's bounds, as far as these are linear."""
        if not isinstance(loop.step, Const):
            return
        up = loop.step.value > 0
        index = {f"{side}{loop.index.name}": 1}
        first, last = self.dim(loop.lo), self.dim(loop.hi)
        low, high = (first, last - 1) if up else (last + 1, first)
        for part in _parts(low, "max"):
            rows.append(_difference(index, self._linear(part, side)))
        for part in _parts(high, "min"):
            rows.append(_difference(self._linear(part, side), index))

    def _linear(self, dim: Any, side: str) -> Row:
        """A dimension as coefficients.  What the whole func shares has one name, the rest one for each side."""
        if isinstance(dim, int):
            return {"": dim}
        row: Row = {}
        for monomial, coefficient in dim.terms:
            name = ""
            if monomial:
                name = "*".join(map(str, monomial))
                only = monomial[0] if len(monomial) == 1 else None
                if not all(self._is_shared(atom) for atom in monomial):
                    name = side + name
                elif isinstance(only, Symbol) and only.low >= 0 and only.name not in self._names:
                    name = f"size {name}"
                    self._sizes[name] = only.low
            row[name] = row.get(name, 0) + coefficient
        return row

    def _is_shared(self, atom: Any) -> bool:
        if isinstance(atom, Symbol):
            var = self._names.get(atom.name)
            return var is None or self.scopes.of[var] is self.scopes.root
        assert isinstance(atom, DimCall)
        return all(map(self.is_shared, atom.args))


def _direction(dim: Any, name: str) -> int:
    """1 if a dimension never falls with a named int, -1 if it never grows, 0 if that is not so simple."""
    signs = set()
    for monomial, coefficient in dim.terms:
        inside = [atom for atom in monomial if name in symbols_of(DimExpr((((atom,), 1),)))]
        if not inside:
            continue
        if len(monomial) > 1:
            return 0
        (atom,) = inside
        sign = 1
        if isinstance(atom, DimCall):
            if atom.kind not in ("max", "min"):
                return 0
            parts = {_direction(arg, name) for arg in atom.args if name in symbols_of(arg)}
            if len(parts) != 1:
                return 0
            sign = parts.pop()
        signs.add(sign if coefficient > 0 else -sign)
    return signs.pop() if len(signs) == 1 else 0


def _after(name: str, step: int) -> Row:
    """The write's index comes after the read's."""
    sign = 1 if step > 0 else -1
    return {f"write {name}": sign, f"read {name}": -sign, "": -1}


def _parts(dim: Any, kind: str) -> list[Any]:
    """`max(a, b) + c` as [a + c, b + c]: a bound that several must hold for; a lone minimum there says nothing."""
    if isinstance(dim, int):
        return [dim]
    for monomial, coefficient in dim.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, DimCall) and atom.kind in ("max", "min"):
            if coefficient != 1 or atom.kind != kind:
                return []
            rest = dim - DimExpr(((monomial, 1),))
            return [part for arg in atom.args for part in _parts(rest + arg, kind)]
    return [dim]


def _excluded(a: Scope, b: Scope) -> bool:
    """Whether the blocks are in different arms of one branch."""
    arms = {s.owner: s.arm for s in a.around() if isinstance(s.owner, If)}
    return any(isinstance(s.owner, If) and arms.get(s.owner, s.arm) != s.arm for s in b.around())


def _plus(a: Row, b: Row) -> Row:
    found = dict(a)
    for name, c in b.items():
        found[name] = found.get(name, 0) + c
    return found


def _difference(a: Row, b: Row) -> Row:
    return _plus(a, {name: -c for name, c in b.items()})
