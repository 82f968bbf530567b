"""Make some trips of a loop at once where its inner loop works on the same elements in each of them.

    before                                        after
    for j in 0 .. i:                              for j in 0 .. i - 3 step 4:
      for k in i .. n:                              for k in i .. n:
        a[i, k] -= a[i, j] * a[j, k]                  t = a[i, k]
                                                      t -= a[i, j] * a[j, k]
                                                      t -= a[i, j + 1] * a[j + 1, k]
                                                      t -= a[i, j + 2] * a[j + 2, k]
                                                      t -= a[i, j + 3] * a[j + 3, k]
                                                      a[i, k] = t
                                                  for j in max(i & -4, 0) .. i:   what is left
                                                    for k in i .. n: ...

Such an element is then loaded and stored once for all these trips, and sums that each trip adds up in order are added
up side by side, as are rows that are apart and of which each element waits for the one before.  (To load fewer
elements alone does not pay.)  Each element gets the same terms in the same order, so results do not change by a bit;
only adds, which are made for adjoints, may change their order.

Where the inner loop begins or ends at an index of the outer one, what all trips have in common is made at once, and the
rest (a triangle of a few trips) trip by trip, before or after it, together with what the outer loop does besides:

    for j in 0 .. i:                              for j in 0 .. i - 3 step 4:
      for k in 0 .. j:                              for k in 0 .. j: (a[i, j], ..., a[i, j + 3] at once)
        a[i, j] -= a[i, k] * a[j, k]                for l in j .. j + 4:
      a[i, j] /= a[j, j]                              for k in j .. l: a[i, l] -= a[i, k] * a[l, k]
                                                      a[i, l] /= a[l, l]

A nest that is in no other loop passes over its arrays once, and waits for memory rather than for what is loaded and
stored besides: it is left alone, but for sums in order and rows that wait.  So is one that reads columns, or computes
for longer than it loads.

Unroll and jam: S. Carr and K. Kennedy, "Improving the ratio of memory operations to floating-point operations in loops"
(1994).  Which trips may change places, `dependence` proves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .. import ops
from ..ir.build import building, int_const, plus
from ..ir.dependence import Order, position_of
from ..ir.dims import symbols_of
from ..ir.index import At
from ..ir.ints import Ints, factor_of
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var
from ..ir.walk import Copier, all_statements, exchanged
from .dependence import Access, Dependences, any_meet, step_of
from .nest_emitter import NestEmitter
from .nest_parts import Nest, Part, parts_of
from .recurrences import recurs

TRIPS = 4           # at once
FEWEST = 8          # trips of a loop, where they are known, for which that pays
DEAR = 8.0          # an operation of a number that takes longer than its loads and stores do
LONGEST = 32        # statements of an inner loop: what more of them compute does not fit in registers

Place = tuple[int, tuple[Any, ...]]         # the number of an array, and a position


def jam(func: Func) -> Func:
    ints = Ints(func.body)
    nested = {inner for loop in all_statements(func.body) if isinstance(loop, For)
              for inner in all_statements(loop.body) if isinstance(inner, For)}

    def change(stmt: Stmt, old: Stmt) -> list[Stmt]:
        new = _jammed(stmt, ints, stmt in nested) if isinstance(stmt, For) and stmt is old else None
        return [stmt] if new is None else new

    return exchanged(func, change)


def _jammed(loop: For, ints: Ints, is_nested: bool) -> list[Stmt] | None:
    if sum(isinstance(s, For) for s in loop.body.stmts) != 1 or _are_few(loop, ints):
        return None
    nest = parts_of(loop, ints)
    if nest is None:
        return None
    shape = _shape_of(nest, ints)
    if shape is None:
        return None
    waits = recurs(shape.inner, nest.versions, ints)
    if not (waits or _adds_in_order(shape.inner) or (is_nested and _waits_for_memory(shape.inner, ints))):
        return None
    judge = _Judge(shape, ints)
    if not judge.is_legal() or not (judge.shares() or (waits and judge.are_apart())):
        return None
    with building() as b:
        _Emitter(shape, judge).emit()
    return b.stmts


def _adds_in_order(inner: For) -> bool:
    """Whether each trip of the inner loop waits for the one before: it stores to one place."""
    bound = {inner.index, *(t for s in inner.body.stmts for t in s.targets)}
    return any(isinstance(s, Let) and s.op.access == "store" and bound.isdisjoint(position_of(s))
               for s in inner.body.stmts)


def _waits_for_memory(inner: For, ints: Ints) -> bool:
    """Whether loads and stores are most of what a trip takes, and go along rows: others are not made fewer."""
    for stmt in inner.body.stmts:
        if isinstance(stmt, Let) and stmt.op.access is not None:
            *outer, _ = map(ints.dim, position_of(stmt))
            if any(inner.index.name in symbols_of(place) for place in outer):
                return False
        elif isinstance(stmt, Let) and stmt.op.cost > DEAR:
            return False
    return True


def _are_few(loop: For, ints: Ints) -> bool:
    trips = ints.dim(loop.hi) - ints.dim(loop.lo)
    return isinstance(trips, int) and abs(trips) < FEWEST


# ---------------------------------------------------------------------------------------------------------------
# what the nest is like


@dataclass(frozen=True)
class _Shape:
    """A nest with one inner loop.

    before, part, after: what writes in front of the inner loop, the part with the inner loop, and what writes behind.
    moving: which bound of the inner loop moves with the outer index, if one does.
    grows: whether later trips of the outer loop have a greater bound.
    """

    nest: Nest
    before: tuple[Part, ...]
    part: Part
    after: tuple[Part, ...]
    moving: Literal["lo", "hi"] | None
    grows: bool

    @property
    def outer(self) -> For:
        return self.nest.loop

    @property
    def inner(self) -> For:
        assert self.part.loop is not None
        return self.part.loop

    @property
    def common_at(self) -> int:
        """In which of the trips that are made at once the moving bound is that of the trips in common."""
        last_is_tightest = self.grows == (self.moving == "lo")
        return TRIPS - 1 if last_is_tightest else 0


def _shape_of(nest: Nest, ints: Ints) -> _Shape | None:
    (at,) = [k for k, part in enumerate(nest.parts) if part.loop is not None]
    part, inner = nest.parts[at], nest.parts[at].loop
    assert inner is not None
    if not inner.body.stmts or len(inner.body.stmts) > LONGEST:
        return None
    index, inside = nest.loop.index.name, {v.name for v in nest.inside}
    bounds = [ints.dim(inner.lo), ints.dim(inner.hi)]
    moving = [k for k, bound in enumerate(bounds) if index in symbols_of(bound)]
    if len(moving) > 1 or not all(inside.intersection(symbols_of(b)) <= {index} for b in bounds):
        return None
    grows = False
    if moving:
        factor = factor_of(bounds[moving[0]], index)
        if factor not in (1, -1) or step_of(inner) != 1:
            return None
        grows = factor == step_of(nest.loop)
    return _Shape(nest, nest.parts[:at], part, nest.parts[at + 1:], ("lo", "hi")[moving[0]] if moving else None,
                  grows)


# ---------------------------------------------------------------------------------------------------------------
# what is legal, and what pays


class _Judge:
    """block: the loop over groups of trips.  trips: that over the trips of a group.  common: the inner loop's trips
    that all of them have, rest: its other trips.  fits: whether the inner loop's bounds leave them no fewer."""

    def __init__(self, shape: _Shape, ints: Ints) -> None:
        self.shape = shape
        outer, inner = shape.outer, shape.inner
        step = step_of(outer)
        with building() as b:
            first = b.var(outer.index.type, outer.index.name)
            values = Copier({outer.index: plus(first, shape.common_at * step)})
            for let in shape.part.lets:
                if let.op.access is None:
                    values.statement(let)
            lo, hi = values.value(inner.lo), values.value(inner.hi)
            self.common = replace(inner, lo=lo, hi=hi)
            self.rest = replace(inner, hi=lo) if shape.moving == "lo" else replace(inner, lo=hi)
            self.trips = replace(outer, lo=first, hi=plus(first, TRIPS * step))
            last = plus(outer.hi, -(TRIPS - 1) * step)
        self.block = replace(outer, index=first, hi=last, step=int_const(TRIPS * step),
                             body=Block((*b.stmts, self.trips), ()))
        self.ints = Ints(Block((*b.stmts, self.block), ()), ints)
        self.dependences = Dependences(self.ints)
        self.fits = self.ints.is_negative(self.ints.dim(lo) - self.ints.dim(hi) - 1)
        self.rest_first = False
        self.shared: frozenset[Place] = frozenset()

    def _accesses(self, part: Part, inner: For | None = None) -> tuple[Access, ...]:
        """inner: what the part's inner loop is."""
        return tuple(replace(a, loops=(self.block, self.trips, *([inner] if inner and len(a.loops) > 1 else [])))
                     for a in part.accesses)

    def _all(self, parts: Sequence[Part]) -> tuple[Access, ...]:
        return tuple(a for part in parts for a in self._accesses(part))

    def is_legal(self) -> bool:
        """Finds whether the rest can go before what is made at once, or else after it."""
        shape = self.shape
        before, after = self._all(shape.before), self._all(shape.after)
        common = self._accesses(shape.part, self.common)
        if not self._may_jam(common):
            return False
        rest = self._accesses(shape.part, self.rest) if shape.moving is not None else ()
        ways = (True, False) if shape.moving is not None else (True,)
        for self.rest_first in ways:
            groups = [(*before, *rest), common, after] if self.rest_first else [before, common, (*rest, *after)]
            apart = [(x, y) for k, x in enumerate(groups) for y in groups[:k]]
            if any(self._meet(x, y, "before") for x, y in apart) or (rest and not self._may_part(common, rest)):
                continue
            return True
        return False

    def _meet(self, first: Sequence[Access], second: Sequence[Access], relation: Literal["before", "same"]) -> bool:
        """Whether the second touch what the first do, in a later trip of the same group or in the same trip."""
        return any_meet(self.dependences, first, second, [(self.block, self.block, "same"),
                                                          (self.trips, self.trips, relation)])

    def are_apart(self) -> bool:
        """Whether the trips of a group work on elements of their own: none waits for another then."""
        common = self._accesses(self.shape.part, self.common)
        return not self._meet(common, common, "before")

    def _may_jam(self, common: Sequence[Access]) -> bool:
        """Whether later trips of the outer loop may go before later trips of the inner one, and what they read before
        it before all of it."""
        inner, reads = _inside(common)
        order: list[Order] = [(self.block, self.block, "same"), (self.trips, self.trips, "before"),
                              (self.common, self.common, "after")]
        return not any_meet(self.dependences, inner, inner, order) and not self._meet(inner, reads, "before")

    def _may_part(self, common: Sequence[Access], rest: Sequence[Access]) -> bool:
        """Whether one trip may make its share of both in the order that they are in."""
        (now, _), (later, reads) = (_inside(rest), _inside(common)) if self.rest_first else (
            _inside(common), _inside(rest))
        if any_meet(self.dependences, now, reads, self._one_trip()):
            return False
        in_order = self.rest_first == (self.shape.moving == "lo")
        return in_order or not any_meet(self.dependences, now, later, self._one_trip())

    def _one_trip(self) -> list[Order]:
        return [(self.block, self.block, "same"), (self.trips, self.trips, "same")]

    def shares(self) -> bool:
        """Finds the elements that one trip of the inner loop works on in each trip of the outer one.

        Whether they are worth it: those that are stored are, and others where sums are added up beside.  A load is not.
        """
        inner = self.shape.inner
        own = {v.name for v in self.shape.nest.inside} | {
            t.name for s in inner.body.stmts for t in s.targets if s.targets}
        accesses, _ = _inside(self._accesses(self.shape.part, self.common))
        same: list[Order] = [(self.block, self.block, "same"), (self.common, self.common, "same")]

        def is_one(place: Sequence[Any]) -> bool:
            symbols = {s for p in place for s in symbols_of(p)}
            return inner.index.name in symbols and symbols.isdisjoint(own)

        written = {(a.root, a.place) for a in accesses if a.writes}

        def matters(a: Access, b: Access) -> bool:
            places = (a.root, a.place), (b.root, b.place)
            return a.root == b.root and a.place != b.place and not written.isdisjoint(places)

        self.shared = frozenset((a.root, a.place) for a in accesses if is_one(a.place) and not any(
            matters(a, b) and self.dependences.may_meet(a, b, same) for b in accesses))
        others = [s for s in inner.body.stmts if isinstance(s, Let) and s.op.access == "load"
                  and s.args[0] not in self.shape.nest.versions
                  and is_one([self.ints.dim(p) for p in s.args[1:]])]
        sums = any(a.writes and not any(inner.index.name in symbols_of(p) for p in a.place) for a in accesses)
        rows = {place for place in written if any(inner.index.name in symbols_of(p) for p in place[1])} - self.shared
        if len(rows) > 1:           # so many rows to write to, which may overlap, are not vectorised
            return False
        return not written.isdisjoint(self.shared) or (sums and bool(self.shared or others))


def _inside(accesses: Sequence[Access]) -> tuple[list[Access], list[Access]]:
    """Those in the inner loop, and those before it."""
    return [a for a in accesses if len(a.loops) == 3], [a for a in accesses if len(a.loops) < 3]


# ---------------------------------------------------------------------------------------------------------------
# the new loops


class _Emitter(NestEmitter):
    def __init__(self, shape: _Shape, judge: _Judge) -> None:
        super().__init__(shape.nest)
        self.shape, self.shared, self.ints = shape, judge.shared, judge.ints
        self.rest_first, self.fits = judge.rest_first, judge.fits
        self.step = step_of(shape.outer)

    def emit(self) -> None:
        outer = self.shape.outer
        everything = range(len(outer.carries))
        last = plus(outer.hi, -(TRIPS - 1) * self.step)
        self.loop(replace(outer, hi=last, step=int_const(TRIPS * self.step)), everything, self._group)
        trips = outer.hi - outer.lo if self.step > 0 else outer.lo - outer.hi
        done = ops.maximum(trips & int_const(-TRIPS), int_const(0))
        left = outer.lo + done if self.step > 0 else outer.lo - done
        self.loop(replace(outer, lo=left), everything, self._whole)
        self.finish()

    def _whole(self, index: Value) -> None:
        """A trip of the outer loop as it was."""
        outer = self.shape.outer
        copier = Copier({outer.index: index, **{c: self.arrays[k] for k, c in enumerate(outer.carries)}})
        for stmt in outer.body.stmts:
            copier.statement(stmt)
        self.arrays.update(enumerate(map(copier.value, outer.body.results)))

    def _group(self, first: Value) -> None:
        shape = self.shape
        rest = () if shape.moving is None else (shape.part,)
        self._in_turn(first, (*shape.before, *(rest if self.rest_first else ())))
        self._at_once(first)
        self._in_turn(first, (*(() if self.rest_first else rest), *shape.after))

    def _trip(self, first: Value, number: int) -> dict[Var, Value]:
        """What is computed before the inner loop in one trip of a group."""
        return self.copy(self.shape.part.lets, {self.shape.outer.index: plus(first, number * self.step)})

    def _in_turn(self, first: Value, parts: Sequence[Part]) -> None:
        """Trip by trip; of the part with the inner loop, what is not made at once."""
        if not parts:
            return
        outer, shape = self.shape.outer, self.shape
        tightest = Copier(self._trip(first, shape.common_at)) if shape.part in parts else None

        def trip(index: Value) -> None:
            for part in parts:
                values = self.copy(part.lets, {outer.index: index})
                if tightest is not None and part is shape.part:
                    self._rest(values, tightest)

        roots = sorted({r for part in parts for r in part.roots})
        self.loop(replace(outer, lo=first, hi=plus(first, TRIPS * self.step)), roots, trip)

    def _rest(self, values: Mapping[Var, Value], tightest: Copier) -> None:
        """The trips of the inner loop that a trip of the outer one has for itself."""
        inner, own = self.shape.inner, Copier(values)
        lo, hi = own.value(inner.lo), own.value(inner.hi)
        if self.shape.moving == "lo":
            end = tightest.value(inner.lo)
            hi = end if self.fits else ops.minimum(end, hi)
        else:
            start = tightest.value(inner.hi)
            lo = start if self.fits else ops.maximum(start, lo)
        self.loop(replace(inner, lo=lo, hi=hi), self.shape.part.roots,
                  lambda k: self.inner(inner, {**values, inner.index: k}))

    def _at_once(self, first: Value) -> None:
        inner, part = self.shape.inner, self.shape.part
        trips = [self._trip(first, number) for number in range(TRIPS)]
        tightest = Copier(trips[self.shape.common_at])
        like = replace(inner, lo=tightest.value(inner.lo), hi=tightest.value(inner.hi))
        self.loop(like, part.roots, lambda k: self._body([{**trip, inner.index: k} for trip in trips]))

    def _body(self, trips: Sequence[dict[Var, Value]]) -> None:
        """One trip of the inner loop, of each trip of the outer one."""
        elements: dict[Place, Value] = {}
        changed: dict[Place, tuple[Value, ...]] = {}
        for trip in trips:
            copier = Copier(trip)
            for let in self.shape.inner.body.stmts:
                assert isinstance(let, Let)
                place = self._shared_place(let)
                if place is None:
                    self.copy_let(let, copier)
                    continue
                kind, where = let.op.access, tuple(map(copier.value, position_of(let)))
                if kind != "store" and place not in elements:
                    elements[place] = ops.load(self.arrays[place[0]], *where, index=let.params["index"])
                if kind == "load":
                    copier.values[let.target] = elements[place]
                    continue
                value = copier.value(let.args[1])
                elements[place] = value if kind == "store" else elements[place] + value
                changed[place] = where
        for place, where in changed.items():
            array = self.arrays[place[0]]
            self.arrays[place[0]] = ops.store(array, elements[place], *where, index=(At(),) * len(where))

    def _shared_place(self, let: Let) -> Place | None:
        root = self.nest.versions.get(let.args[0]) if let.op.access is not None else None  # type: ignore[arg-type]
        if root is None:
            return None
        place = root, tuple(map(self.ints.dim, position_of(let)))
        return place if place in self.shared else None
