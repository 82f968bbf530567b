"""Make that loop the innermost whose trips do not depend on each other and which runs along rows.

    before                                        after
    for j in i .. n:                              for k in 0 .. i:
      for k in 0 .. i:                              for j in i .. n:
        a[i, j] -= a[i, k] * a[k, j]                  a[i, j] -= a[i, k] * a[k, j]

The sum on the left is one chain of additions over a column; on the right LLVM vectorises additions to the elements of a
row.  Each element gets the same terms in the same order, so results do not change by a bit; only adds, which are made
for adjoints, may change their order.  An outer loop with several loops inside is first made several loops
(`nest_parts`).  Where the inner loop ends at the outer index, and what the outer loop does besides only finishes its
element, an element is finished and then taken out of all that come after it:

    for j in 0 .. i:                              for k in 0 .. i:
      for k in 0 .. j:                              a[i, k] /= a[k, k]
        a[i, j] -= a[i, k] * a[k, j]                for j in k + 1 .. i:
      a[i, j] /= a[j, j]                              a[i, j] -= a[i, k] * a[k, j]

A recurrence with dear trips (divisions, exponentials) is turned also where its neighbours then lie far apart, for a
strip of trips at a time, whose lines stay in the nearest cache.

Dependences: R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures" (2001), chapters 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from .. import ops
from ..ir.build import building, int_const
from ..ir.dependence import Order, position_of
from ..ir.dims import symbols_of
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var
from ..ir.walk import exchanged, same_value
from .dependence import Access, Dependences, any_meet, step_of
from .expand import with_scalars_in_arrays
from .nest_emitter import NestEmitter
from .nest_parts import Nest, Part, parts_of

STRIP = 32          # trips at a time: whose rows fit in the nearest cache
DEAR = 8            # what a trip must cost, in additions, to be turned for the sake of independent trips alone,
JUMP = 1            # and more for each place in memory where neighbours are not side by side


def interchange(func: Func) -> Func:
    ints = Ints(func.body)

    def change(stmt: Stmt, old: Stmt) -> list[Stmt]:
        new = _interchanged(stmt, ints) if isinstance(stmt, For) and stmt is old else None
        return [stmt] if new is None else new

    return exchanged(func, change)


def _interchanged(loop: For, ints: Ints) -> list[Stmt] | None:
    if not any(isinstance(s, For) for s in loop.body.stmts):
        return None
    before, expanded = with_scalars_in_arrays(loop)
    known = ints if expanded is loop else Ints(Block((*before, expanded), ()), ints)
    nest = parts_of(expanded, known)
    if nest is None:
        return None
    judge = _Judge(nest, known)
    ways = [judge.way(part) for part in nest.parts]
    with building() as b:
        if any(way is not Way.AS_IT_IS for way in ways) and judge.may_part():
            _Emitter(nest).in_turn(ways)
        elif expanded is loop and judge.is_elimination():
            _Emitter(nest).eliminate()
        else:
            return None
    return [*before, *b.stmts]


class Way(Enum):
    """How a part is emitted: its loops as they are, turned, or turned for some trips of the outer loop at a time."""

    AS_IT_IS = auto()
    TURNED = auto()
    IN_STRIPS = auto()


class _Judge:
    """What is legal, and what pays."""

    def __init__(self, nest: Nest, ints: Ints) -> None:
        self.nest, self.ints = nest, ints
        self.outer = nest.loop
        self.dependences = Dependences(ints)

    def may_part(self) -> bool:
        """Whether all trips of one part may come before all of the next."""
        return not any(any_meet(self.dependences, part.accesses, later.accesses, [(self.outer, self.outer, "after")])
                       for k, part in enumerate(self.nest.parts) for later in self.nest.parts[k + 1:])

    def way(self, part: Part) -> Way:
        """Whether the part's own loop may become the outer one, and how that pays."""
        inner = part.loop
        if (inner is None or self.nest.depends(inner.lo) or self.nest.depends(inner.hi)
                or not self._keeps_order(part, inner) or not self._is_free(part, self.outer, inner)):
            return Way.AS_IT_IS
        if self._pays(part, inner):
            return Way.TURNED
        cost = sum(let.op.cost for let in (*part.lets, *inner.body.stmts) if isinstance(let, Let))
        dear = cost >= DEAR + JUMP * self._jumps(part, self.outer)
        return Way.IN_STRIPS if dear and not self._is_free(part, inner, self.outer) else Way.AS_IT_IS

    def _keeps_order(self, part: Part, inner: For) -> bool:
        """Whether no two accesses to one element change their order."""
        return not any_meet(self.dependences, part.accesses, part.accesses,
                            [(self.outer, self.outer, "before"), (inner, inner, "after")])

    def is_elimination(self) -> bool:
        """The second form of this module's head, or its mirror image, which adjoints have."""
        outer, parts = self.outer, self.nest.parts
        loops = [part for part in parts if part.loop is not None]
        if len(parts) != 2 or len(loops) != 1:
            return False
        (part,), (finish,) = loops, [part for part in parts if part.loop is None]
        inner = part.loop
        assert inner is not None
        if step_of(inner) != step_of(outer) or (step_of(outer) > 0) != (parts[0] is part):
            return False
        index = self.ints.dim(outer.index)
        if step_of(outer) > 0:
            fits = same_value(inner.lo, outer.lo) and self.ints.dim(inner.hi) == index
        else:
            fits = same_value(inner.hi, outer.hi) and self.ints.dim(inner.lo) == index - 1
        return (fits and self._keeps_order(part, inner) and self._is_free(part, outer, inner)
                and self._pays(part, inner) and not any_meet(self.dependences, part.accesses, finish.accesses,
                                                                 [(inner, outer, "before"), (outer, outer, "after")]))

    def _pays(self, part: Part, inner: For) -> bool:
        """Whether the trips of the outer loop are better neighbours: with fewer jumps in memory, or independent."""
        jumps_out, jumps_in = self._jumps(part, self.outer), self._jumps(part, inner)
        return jumps_out < jumps_in or (
            jumps_out == jumps_in == 0 and not self._is_free(part, inner, self.outer))

    def _is_free(self, part: Part, along: For, other: For) -> bool:
        """Whether trips of one loop do not touch each other's elements, in one trip of the other.  A sum is one for all
        trips; adds to neighbours are not free, since LLVM does not vectorise them."""
        order: list[Order] = [(along, along, "before"), (other, other, "same")]
        return not any(
            (a.concerns(b) or (a.root == b.root and a.adds and b.adds and not self._is_sum(a, b, along)))
            and self.dependences.may_meet(a, b, order) for a in part.accesses for b in part.accesses)

    @staticmethod
    def _is_sum(a: Access, b: Access, along: For) -> bool:
        return a.place == b.place and not any(along.index.name in symbols_of(p) for p in a.place)

    def _jumps(self, part: Part, loop: For) -> int:
        """How many elements that the part's loop reads or writes are not neighbours in successive trips."""
        found = set()
        inner = part.loop
        assert inner is not None
        for let in (*part.lets, *inner.body.stmts):
            if not isinstance(let, Let) or let.op.access is None:
                continue
            place = [self.ints.dim(p) for p in position_of(let)]
            moving = [k for k, p in enumerate(place) if loop.index.name in symbols_of(p)]
            if moving and moving != [len(place) - 1]:
                array = let.args[0]
                found.add((self.nest.versions.get(array, array) if isinstance(array, Var) else array, tuple(place)))
        return len(found)


class _Emitter(NestEmitter):
    def in_turn(self, ways: Sequence[Way]) -> None:
        """Part after part, the loops of some turned inside out."""
        outer = self.nest.loop
        for part, way in zip(self.nest.parts, ways):
            if part.loop is None or way is Way.AS_IT_IS:
                self.loop(outer, part.roots, partial(self.trip, part))
            elif way is Way.TURNED:
                self.loop(part.loop, part.roots, partial(self._turned, part, outer))
            else:
                self._in_strips(part)
        self.finish()

    def _turned(self, part: Part, trips: For, index: Value) -> None:
        """Some trips of the outer loop, at one index of the inner one."""
        outer, inner = self.nest.loop, part.loop
        assert inner is not None
        self.loop(trips, part.roots, lambda j: self._body(part, {outer.index: j, inner.index: index}), free=True)

    def _in_strips(self, part: Part) -> None:
        outer, inner = self.nest.loop, part.loop
        assert inner is not None
        up = step_of(outer) > 0
        lo, hi = (outer.lo, outer.hi) if up else (outer.hi + int_const(1), outer.lo + int_const(1))

        def strip(first: Value) -> None:
            trips = replace(outer, lo=first, hi=ops.minimum(first + int_const(STRIP), hi), step=int_const(1))
            self.loop(inner, part.roots, partial(self._turned, part, trips))

        self.loop(replace(outer, lo=lo, hi=hi, step=int_const(STRIP)), part.roots, strip)

    def eliminate(self) -> None:
        """Finish each element and take it out of those that come after it."""
        outer = self.nest.loop
        (part,) = [part for part in self.nest.parts if part.loop is not None]
        (finish,) = [part for part in self.nest.parts if part.loop is None]
        inner = part.loop
        assert inner is not None

        def take_out(t: Value) -> None:
            beyond = replace(outer, lo=t + int_const(1)) if step_of(outer) > 0 else replace(outer, hi=t)
            self.loop(beyond, part.roots, lambda j: self._body(part, {outer.index: j, inner.index: t}), free=True)

        def trip(t: Value) -> None:
            if step_of(outer) < 0:
                take_out(t)
            self.copy(finish.lets, {outer.index: t})
            if step_of(outer) > 0:
                take_out(t)

        self.loop(outer, sorted({*part.roots, *finish.roots}), trip)
        self.finish()

    def _body(self, part: Part, indices: Mapping[Var, Value]) -> None:
        assert part.loop is not None
        self.inner(part.loop, self.copy(part.lets, indices))
