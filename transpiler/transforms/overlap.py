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

from ..ir import dependence
from ..ir.dependence import Order, Place, place_of
from ..ir.dims import DimCall, DimExpr, bounds, slice_length, substitute, symbols_of
from ..ir.ints import Ints
from ..ir.nodes import Const, For, If, Let, Stmt
from ..ir.walk import blocks
from .scopes import Scope, Scopes


class Clash(enum.Enum):
    """When a write changes what is read: never, in the same run of the reader's block (after the reader), or
    only after that."""

    NEVER = enum.auto()
    INSIDE = enum.auto()
    AFTER = enum.auto()


@dataclass(frozen=True)
class Access:
    """scope: the block that it stands in; number: its place in the text; place: None for anywhere in the array."""

    scope: Scope
    number: int
    place: Place | None = None


class Places:
    """Positions of a func's accesses, and their order."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.number: dict[Stmt, int] = {}
        self.last: dict[Stmt, int] = {}             # the highest number of what is inside
        self._ints = Ints(scopes.root.block)
        self.dim = self._ints.dim                   # ints as dimensions over loop indices, sizes and unknowns
        self._names = {v.name: v for v in scopes.of}
        self._answers: dict[tuple[Any, ...], bool] = {}
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
        return Access(scope, self.number[let], place_of(let, self._ints))

    def most_trips(self, loop: For) -> Any | None:
        """The most iterations of an inner loop, as a dimension over what the whole func shares; None if unknown."""
        if not isinstance(loop.step, Const):
            return None
        up = loop.step.value > 0
        # Of a bound that is the nearer of two, one may tell for all runs of the loop: in i .. min(i + 8, n) the first.
        for lo in _either(self.dim(loop.lo), "max" if up else "min"):
            for hi in _either(self.dim(loop.hi), "min" if up else "max"):
                most = self._most_between(loop, lo, hi)
                if most is not None:
                    return most
        return None

    def _most_between(self, loop: For, lo: Any, hi: Any) -> Any | None:
        assert isinstance(loop.step, Const)
        return self.most(slice_length(lo, hi, loop.step.value), self.scopes.inside[(loop, 0)].loops()[:-1])

    def most(self, dim: Any, loops: Sequence[For]) -> Any | None:
        """The greatest value of a dimension in the iterations of loops, the outermost first, as one over what the whole
        func shares; None if unknown."""
        most = dim
        for outer in reversed(loops):
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
        return not any(map(self._differs, symbols_of(dim)))

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
        key = read.place, read.scope, write.place, write.scope, tuple(same), later     # asked again for each reader
        if key not in self._answers:
            self._answers[key] = self._prove(read, write, same, later)
        return self._answers[key]

    def _prove(self, read: Access, write: Access, same: Sequence[For], later: For | None) -> bool:
        order: list[Order] = [(loop, loop, "same") for loop in same]
        if later is not None:
            order.append((later, later, "before"))
            inner = self._segment_of(later, read, write)
            if inner is not None:
                order.append((inner, inner, "before"))
        one, other = (dependence.Access(a.place, tuple(a.scope.loops())) for a in (read, write))
        return dependence.may_meet(one, other, order, self._ints, self._differs)

    @staticmethod
    def _segment_of(loop: For, read: Access, write: Access) -> For | None:
        """The segment inside of the loop that both stand in: its index goes on from one iteration to the next."""
        both = [a for a, b in zip(read.scope.loops(), write.scope.loops(), strict=False) if a is b]
        inner = both[both.index(loop) + 1:] if loop in both else []
        return inner[0] if inner and inner[0].segment else None

    def _differs(self, name: str) -> bool:
        """Whether an int may have several values in a run of the func."""
        var = self._names.get(name)
        return var is not None and self.scopes.of[var] is not self.scopes.root


def _direction(dim: Any, name: str) -> int:
    """1 if a dimension never falls with a named int, -1 if it never grows, 0 if that is not so simple."""
    signs = set()
    for monomial, coefficient in dim.terms:
        inside = [atom for atom in monomial if name in symbols_of(DimExpr((((atom,), 1),)))]
        if not inside:
            continue
        factor = tuple(atom for atom in monomial if atom not in inside)
        least, _ = bounds(DimExpr(((factor, 1),)))
        if len(inside) > 1 or least is None or least < 0:
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


def _either(dim: Any, kind: str) -> list[Any]:
    """The dimension, and `min(a, b)` as a and b."""
    only = dim.terms[0] if not isinstance(dim, int) and len(dim.terms) == 1 else None
    if only is not None and only[1] == 1 and len(only[0]) == 1 and isinstance(only[0][0], DimCall) and (
            only[0][0].kind == kind):
        return [dim, *only[0][0].args]
    return [dim]


def _excluded(a: Scope, b: Scope) -> bool:
    """Whether the blocks are in different arms of one branch."""
    arms = {s.owner: s.arm for s in a.around() if isinstance(s.owner, If)}
    return any(isinstance(s.owner, If) and arms.get(s.owner, s.arm) != s.arm for s in b.around())
