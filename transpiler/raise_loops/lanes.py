"""The trips of one loop side by side: values with a leading axis, one element a trip.

Operations go over to that axis by their batching rules, made when someone asks for their value.  An index that moves
by the same distance in each trip makes a slice of a load, any other a gather.  Branches are computed on both sides,
with places that exist, and one is selected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from .. import ops
from ..errors import RuleError
from ..ir import dims
from ..ir.build import Builder, building, const, current, int_const, located, size_value
from ..ir.dims import symbols_of
from ..ir.index import At, New, Span, index_shape
from ..ir.ints import LOWEST, factor_of
from ..ir.nodes import Block, Check, Const, For, If, Let, Value, Var
from ..ir.types import BOOL, I64, Type
from ..ir.walk import operands, reads
from .facts import Axis, Facts, axis_items
from .findings import Refused, shown_name
from .flat import Flat, Path, Site
from .hull import with_known_bounds
from .moving import Moving, load_moving, positions, written

Items = list[tuple[At | Span, Value | None]]


@dataclass(frozen=True)
class Lane:
    """batched: whether the value has the axis of trips."""

    value: Value
    batched: bool


WIDEST = 128            # border of zeros that an array is given so that all places exist


class Lanes:
    """The trips stand in the order of their indices, lowest first; `backwards`: they run in the other one.

    trips: how many, a dimension (None: not known, so that no value can be asked for).  carried: what a carry is at the
    beginning of each trip; Refused where that needs the trips' order.  rows: for versions of arrays of which each trip
    has its own part, what is left of an index into the whole (see `views`).
    """

    def __init__(self, loop: For, flat: Flat, facts: Facts, trips: Any, keeps: bool) -> None:
        self.loop, self.flat, self.facts, self.trips, self.keeps = loop, flat, facts, trips, keeps
        step = int(loop.step.value) if isinstance(loop.step, Const) else 0
        self.step, self.backwards = abs(step), step < 0
        self.start = facts.dim(loop.lo)         # the lowest index
        if self.backwards and trips is not None:
            self.start = self.start + (trips - 1) * step
        self.some = trips is not None and is_positive(trips)        # whether there surely is a trip
        self.carried: Callable[[int], Lane] = self.refuse_carry
        self.read_version: Callable[[Let], Lane | None] = lambda let: None
        self.rows: dict[Var, Callable[[Items], Items]] = {}
        self._found: dict[Value, Lane] = {}
        self._first: dict[Value, Value] = {}
        self._running: set[Any] = set()          # values and checks being made
        self._checked = 0
        self._number = {carry: k for k, carry in enumerate(loop.carries)}
        self.sites = dict(flat.sites)
        self._indices: dict[str, Any] = {}      # of the inner loops around: the dimensions that are their indices now

    def refuse_carry(self, number: int) -> NoReturn:
        raise Refused(_needs_order(self.loop.carries[number].name), number)

    # --- values ------------------------------------------------------------------------------------------------

    def get(self, value: Value) -> Lane:
        """The value in all trips."""
        if isinstance(value, Const):
            return Lane(value, False)
        if value in self._found:
            return self._found[value]
        if value in self._running:
            raise Refused(_needs_order(value.name))
        self._running.add(value)
        try:
            found = self._made(value)
        finally:
            self._running.discard(value)
        self._found.setdefault(value, found)
        return self._found[value]

    def _made(self, value: Var) -> Lane:
        if value is self.loop.index:
            return Lane(self.materialised(value), True)
        if value in self._number:
            return self.carried(self._number[value])
        site = self.sites.get(value)
        if site is None:
            return Lane(value, False)
        if value.type == I64 and (moving := self.moving(value)) is not None:
            return Lane(self.materialised(value), True) if moving[0] else Lane(self.at_first(value), False)
        self.check_before(site.number)
        with located(site.stmt.loc):
            match site.stmt:
                case Let():
                    made = self.let(site.stmt, site.path)
                    self._found.update(made)
                case If():
                    k = site.stmt.targets.index(value)
                    return self.selected(site.stmt.pred, site.stmt.then.results[k], site.stmt.orelse.results[k])
                case For():
                    made = self._inner_loop(site.stmt, site)
                    self._found.update(made)
                case _:
                    raise AssertionError(site.stmt)
        return self._found[value]

    def along(self, value: Value) -> Value:
        """The value with the axis of trips, repeated where it has none."""
        lane = self.get(value)
        return lane.value if lane.batched else self.repeated(lane.value)

    def repeated(self, value: Value) -> Value:
        shape = (self.trips, *value.shape)
        if isinstance(value, Const):
            return Const(value.value, Type(value.dtype, shape))
        return ops.broadcast(value, shape=shape, axes=tuple(range(1, value.rank + 1)))

    def selected(self, pred: Value, yes: Value, no: Value) -> Lane:
        """One of two values in each trip."""
        if yes is no:
            return self.get(yes)
        which = self.get(pred)
        if isinstance(which.value, Const):
            return self.get(yes if which.value.value else no)
        a, b = self.get(yes), self.get(no)
        if not (which.batched or a.batched or b.batched):
            return Lane(chosen(which.value, a.value, b.value), False)
        left, right = (x.value if x.batched else self.repeated(x.value) for x in (a, b))
        return Lane(chosen(which.value, left, right, which.batched), True)

    def first_of(self, search: Any, values: Value) -> Value:
        """Where among the trips, of equal ones in the first that runs, an extremum is."""
        if not self.backwards:
            found: Value = search(values, axes=(0,))
            return found
        return ops.subtract(size_value(self.trips - 1), search(ops.reverse(values, axes=(0,)), axes=(0,)))

    def last(self, values: Value) -> Value:
        """The value of the trip that runs last."""
        return lane_of(Lane(values, True), int_const(0) if self.backwards else size_value(self.trips - 1))

    def before_each(self, first: Value, values: Value) -> Value:
        """`first`, then the values of all trips but the last, in the order in which they run."""
        first = ops.reshape(first, shape=(1, *first.shape))
        if self.trips == 1:
            return first
        rest = ops.load(values, index=(Span(1 if self.backwards else 0, self.trips - 1),
                                       *(Span(0, d) for d in values.shape[1:])))
        found: Value = ops.concatenate(*((rest, first) if self.backwards else (first, rest)), axis=0)
        return found

    def holds(self, path: Path) -> Lane | None:
        """Whether the conditions hold; None where there are none."""
        found: Lane | None = None
        for pred, wanted in path:
            lane = self.get(pred)
            if isinstance(lane.value, Const) and bool(lane.value.value) is wanted:
                continue
            if not wanted:
                lane = Lane(ops.logical_not(lane.value), lane.batched)
            found = lane if found is None else self.together(ops.logical_and, found, lane)
        return found

    def together(self, op: Any, a: Lane, b: Lane) -> Lane:
        """A binary operation on two values."""
        if not (a.batched or b.batched):
            return Lane(op(a.value, b.value), False)
        left, right = (x.value if x.batched else self.repeated(x.value) for x in (a, b))
        return Lane(op(left, right), True)

    # --- ints --------------------------------------------------------------------------------------------------

    def moving(self, value: Value) -> tuple[int, Any] | None:
        """(a, b) of an int that is a * index + b, with a dimension b that is the same in all trips; else None."""
        dim = self.facts.dim(value)
        factor = factor_of(dim, self.loop.index.name)
        if factor is None:
            return None
        rest = dim - factor * dims.symbol(self.loop.index.name, 0)
        own = self.flat.names - self._indices.keys()
        return (factor, rest) if symbols_of(rest).keys().isdisjoint(own) else None

    def at_first(self, value: Value) -> Value:
        """A moving int where the index is lowest."""
        if value is self.loop.index:
            return self._emitted_once(value, self.start)
        site = self.sites.get(value) if isinstance(value, Var) else None
        if site is None:
            return self.get(value).value
        with located(site.stmt.loc):
            return self._emitted_once(value, dims.substitute(self.facts.dim(value), {
                self.loop.index.name: self.start, **self._indices}))

    def _emitted_once(self, value: Value, dim: Any) -> Value:
        if value not in self._first:
            self._first[value] = self.facts.emitted(dim)
        return self._first[value]

    def materialised(self, value: Value) -> Value:
        """A moving int as an array of all trips."""
        moving = self.moving(value)
        assert moving is not None
        return positions(self.at_first(value), moving[0] * self.step, self.trips)

    def _resolved(self, scalar: Value | None) -> Value | None:
        """The int itself, where it is one of two and it is known which."""
        while isinstance(scalar, Var) and (site := self.sites.get(scalar)) is not None:
            stmt = site.stmt
            if not isinstance(stmt, Let) or stmt.op is not ops.select:
                break
            test = self.sites.get(stmt.args[0]) if isinstance(stmt.args[0], Var) else None
            if test is None or not isinstance(test.stmt, Let) or test.stmt.op.relates is None or any(
                    a.type != I64 for a in test.stmt.args):
                break
            known = self.facts.decided(test.stmt, site.path, self.sites)
            if known is None:
                break
            scalar = stmt.args[1 if known else 2]
        return scalar

    # --- statements --------------------------------------------------------------------------------------------

    def let(self, stmt: Let, path: Path) -> dict[Value, Lane]:
        """The targets in all trips."""
        read = self.read_version(stmt)
        if read is not None:
            return {stmt.target: read}
        if stmt.op.raises is not None and (path or not self.some):
            raise Refused(f"{stmt.op.name} may raise in some trips")
        if stmt.op.access is not None:
            return {stmt.target: self._access(stmt, path)}
        if stmt.op.relates is not None and stmt.args[0].type == I64:
            known = self.facts.decided(stmt, path, self.sites)
            if known is not None:
                return {stmt.target: Lane(const(known, BOOL), False)}
        lanes = [self.get(a) for a in stmt.args]
        if path and stmt.op.takes_places:
            raise Refused(f"{stmt.op.name} in a branch could read where there is nothing")
        return self._applied(stmt, lanes)

    def _applied(self, stmt: Let, lanes: Sequence[Lane]) -> dict[Value, Lane]:
        args = [x.value for x in lanes]
        flags = [x.batched for x in lanes]
        if not any(flags):
            types = tuple(t.type for t in stmt.targets)
            made = current().let(stmt.op, args, stmt.params, types, stmt.targets[0].name)
            return {t: Lane(v, False) for t, v in zip(stmt.targets, made)}
        try:
            found = stmt.op.batch(args, flags, **stmt.params)
        except RuleError as problem:
            raise Refused(problem.message) from None
        results = found if stmt.op.result_count > 1 else (found,)
        return {t: Lane(v, True) for t, v in zip(stmt.targets, results, strict=True)}

    def _access(self, stmt: Let, path: Path) -> Lane:
        array = stmt.args[0]
        items = axis_items(stmt)
        has_new = any(isinstance(i, New) for i in stmt.params["index"])
        whole = self.get(array)
        shape = whole.value.shape[1:] if whole.batched else whole.value.shape
        if isinstance(array, Var) and array in self.rows:
            items = self.rows[array](items)
        items = [(item, self._resolved(scalar)) for item, scalar in items]
        if stmt.op.access == "load":
            found = self.load(whole, shape, items, path, stmt)
        else:
            found = self._write(stmt, whole, shape, items, path)
        if has_new and stmt.op.access == "load":
            wanted = index_shape(stmt.params["index"])
            shaped = (self.trips, *wanted) if found.batched else wanted
            found = Lane(ops.reshape(found.value, shape=shaped), found.batched)
        return found

    def load(self, whole: Lane, shape: Sequence[Any], items: Items, path: Path,
              stmt: Let) -> Lane:
        if not items:
            return whole
        array, places = self._made_safe(whole, shape, items, path, stmt)
        moving = [p for p in places if p.stride]
        arrays = [p for p in places if p.lane is not None and p.lane.batched]
        scalars = [p for p in places if p.lane is not None]
        index = tuple(p.item for p in places)
        if not (moving or arrays):
            values = [p.lane.value for p in scalars if p.lane is not None]
            if not array.batched:
                return Lane(ops.load(array.value, *values, index=index), False)
            return Lane(ops.load(array.value, *values, index=(Span(0, self.trips), *index)), True)
        if not arrays and not array.batched and len(moving) == 1:
            found = load_moving(array.value, places, self.trips)
            if found is not None:
                return Lane(found, True)
        values, flags = self.run_time_places(places)
        value = ops.load.batch((array.value, *values), (array.batched, *flags), index=tuple(
            p.item for p in places))
        return Lane(value, True)

    def run_time_places(self, places: Sequence[Moving]) -> tuple[list[Value], list[bool]]:
        """The places as run-time ints of each trip."""
        values, flags = [], []
        for p in places:
            if p.stride:
                assert p.first is not None
                values.append(positions(p.first, p.stride, self.trips))
                flags.append(True)
            elif p.lane is not None:
                values.append(p.lane.value)
                flags.append(p.lane.batched)
        return values, flags

    def _made_safe(self, whole: Lane, shape: Sequence[Any], items: Items,
                   path: Path, stmt: Let) -> tuple[Lane, list[Moving]]:
        """The array and the places, all inside of it: what is not surely so reads a border of zeros, or another
        element, which nobody uses."""
        trusted = not path and self.some
        low, high = [0] * len(items), [0] * len(items)
        places = []
        for k, ((item, scalar), dim) in enumerate(zip(items, shape, strict=True)):
            place = self.place(item, scalar)
            places.append(place)
            if trusted or self.facts.is_inside(self.axis(item, scalar), dim):
                continue
            border = self.border(item, scalar, dim)
            if border is not None:
                low[k], high[k] = border
            elif isinstance(item, At) and scalar is not None and is_positive(dim):
                places[k] = self.clipped(scalar, dim)
            else:
                raise Refused(f"{_name(stmt.args[0])} could be read outside of its elements where a branch is not taken"
                              if path else f"{_name(stmt.args[0])} could be read where there is no trip")
        if any(low) or any(high):
            places = [p.shifted(a) for p, a in zip(places, low)]
            around = (0,) if whole.batched else ()
            value = ops.pad(whole.value, low=(*around, *low), high=(*around, *high),
                            interior=(0,) * whole.value.rank)
            whole = Lane(value, whole.batched)
        return whole, places

    def axis(self, item: At | Span, scalar: Value | None) -> Axis:
        if isinstance(item, At):
            assert scalar is not None
            return Axis(self.facts.dim(scalar))
        return Axis(item.start if scalar is None else self.facts.dim(scalar), item.size, item.step)

    def border(self, item: At | Span, scalar: Value | None, dim: Any) -> tuple[int, int] | None:
        """How many elements must stand before and behind the axis for all places to exist, if these are few."""
        lowest, highest = (self.facts.extremes(end) for end in self.axis(item, scalar).ends)
        if lowest is None or highest is None:
            return None
        low, high = max(_most(-lowest[0]), 0), max(_most(highest[1] - dim + 1), 0)
        return None if low > WIDEST or high > WIDEST else (low, high)

    def place(self, item: At | Span, scalar: Value | None) -> Moving:
        if scalar is None:
            return Moving(item)
        moving = self.moving(scalar) if scalar.type == I64 else None
        if moving is not None:
            first = self.at_first(scalar)
            if moving[0]:
                return Moving(item, first=first, stride=moving[0] * self.step)
            return Moving(item, lane=Lane(first, False))
        return Moving(item, lane=self.get(scalar))

    def clipped(self, scalar: Value, dim: Any) -> Moving:
        lane = self.get(scalar)
        value = ops.minimum(ops.maximum(lane.value, 0), _full(size_value(dim - 1), lane.value))
        return Moving(At(), lane=Lane(value, lane.batched))

    def _write(self, stmt: Let, whole: Lane, shape: Sequence[Any],
               items: Items, path: Path) -> Lane:
        """A write to each trip's own array."""
        values = self.get(stmt.args[1])
        array = stmt.args[0]
        if not whole.batched:
            whole = Lane(self.repeated(whole.value), True)
        wanted = (self.trips, *index_shape(tuple(i for i, _ in items)))
        v = values.value if values.batched else self.repeated(values.value)
        v = ops.reshape(v, shape=wanted)
        if not items:
            return Lane(ops.add(whole.value, v) if stmt.op.adds else v, True)
        places = []
        for (item, scalar), dim in zip(items, shape, strict=True):
            place = self.place(item, scalar)
            inside = (not path and self.some) or self.facts.is_inside(
                self.axis(item, scalar), dim)
            if not inside:
                if not isinstance(item, At) or scalar is None or not is_positive(dim):
                    raise Refused(f"{_name(array)} could be written outside of its elements where a branch is not "
                                  "taken")
                place = self.clipped(scalar, dim)
            places.append(place)
        if all(p.stride == 0 and not (p.lane is not None and p.lane.batched) for p in places):
            scalars = [p.lane.value for p in places if p.lane is not None]
            index = (Span(0, self.trips), *(p.item for p in places))
            return Lane(written(stmt.op, whole.value, v, scalars, index), True)
        scalars, flags = self.run_time_places(places)
        found = stmt.op.batch((whole.value, v, *scalars), (True, True, *flags),
                              index=tuple(p.item for p in places))
        return Lane(found, True)

    # --- checks ------------------------------------------------------------------------------------------------

    def check_before(self, number: int) -> None:
        """Emit the checks that stand before a statement: what follows relies on them."""
        while self._checked < len(self.flat.checks) and self.flat.checks[self._checked].number < number:
            self._emit_checks()

    def check_all(self) -> None:
        while self._checked < len(self.flat.checks):
            self._emit_checks()

    def _emit_checks(self) -> None:
        """The next checks, as many as need nothing that the first of them guards."""
        checks = self.flat.checks[self._checked:]
        first = checks[0]
        count = 1 + next((k for k, site in enumerate(checks[1:]) if self._is_guarded(site, first.number)),
                         len(checks) - 1)
        together = checks[:count]
        if any(site.stmt in self._running for site in together):
            raise Refused("a check in it needs what the trips before have computed")
        if self.keeps and count < len(self.flat.checks):
            raise Refused("which of several exceptions is raised depends on the order of its trips")
        if not self._is_guarded(first, first.number):
            self._checked += count              # nothing that they need waits for them
            self._hoist(together)
            return
        self._running.update(site.stmt for site in together)
        try:
            self._hoist(together)
        finally:
            self._running.difference_update(site.stmt for site in together)
        self._checked += count

    def _is_guarded(self, site: Site, number: int) -> bool:
        """Whether a check needs something read behind that place of the text, or what a trip before has made."""
        seen: set[Value] = set()
        todo = [*operands(site.stmt), *(pred for pred, _ in site.path)]
        while todo:
            value = todo.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self._number:
                return True
            inner = self.sites.get(value) if isinstance(value, Var) else None
            if inner is None:
                continue
            stmt = inner.stmt
            if not isinstance(stmt, (Let, If)) or (isinstance(stmt, Let) and inner.number > number and (
                    stmt.op.access is not None or stmt.op.takes_places or stmt.op.raises is not None)):
                return True
            if isinstance(stmt, If):
                k = stmt.targets.index(value)  # type: ignore[arg-type]
                todo += [stmt.then.results[k], stmt.orelse.results[k]]
            todo += operands(stmt)
        return False

    def _hoist(self, sites: Sequence[Site]) -> None:
        """Checks for all trips: those of the first trip in which one fails."""
        fine: list[Lane] = []
        for site in sites:
            stmt = site.stmt
            assert isinstance(stmt, Check)
            if self.keeps and any(self._is_inner(v) for _, v in stmt.kept):
                raise Refused("an exception in a trip leaves what the trips before have written")
            with located(stmt.loc):
                sure = self.facts.holds(stmt.pred, site.path, self.sites)
                holds = Lane(const(True, BOOL), False) if sure else self.get(stmt.pred)
                when = None if _is_true(holds.value) else self.holds(site.path)
                if when is not None:
                    holds = self.together(ops.logical_or, Lane(ops.logical_not(when.value), when.batched), holds)
                fine.append(holds)
        if not all(x.batched or _is_true(x.value) for x in fine) and not self.some:
            raise Refused("a check in it holds only if there is a trip")
        told = [tuple(map(self.get, site.stmt.values)) for site in sites]  # type: ignore[union-attr]
        trip: Value | None = None
        if any(x.batched for x in fine) and (len(sites) > 1 or any(x.batched for values in told for x in values)):
            if not self.some:
                raise Refused("a check in it tells of a trip, and there may be none")
            every = fine[0]
            for x in fine[1:]:
                every = self.together(ops.logical_and, every, x)
            trip = self.first_of(ops.argmin, ops.convert(every.value, dtype="int64"))
        for site, holds, values in zip(sites, fine, told, strict=True):
            stmt = site.stmt
            assert isinstance(stmt, Check)
            if _is_true(holds.value):
                continue
            with located(stmt.loc):
                if not holds.batched:
                    pred = holds.value
                else:
                    pred = ops.all(holds.value, axes=(0,)) if trip is None else lane_of(holds, trip)
                shown = tuple(x.value if trip is None else lane_of(x, trip) for x in values)
                current().stmts.append(Check(pred, stmt.kind, stmt.message, stmt.loc,
                                             stmt.kept if self.keeps else (), shown))

    def _is_inner(self, value: Value) -> bool:
        return isinstance(value, Var) and (value in self.flat.sites or value in self._number
                                           or value is self.loop.index)

    # --- loops inside ------------------------------------------------------------------------------------------

    def _inner_loop(self, stmt: For, site: Site) -> dict[Value, Lane]:
        """A loop whose trips stay one after the other, each of them in all trips of this loop at once."""
        if any(self.get(v).batched for v in (stmt.lo, stmt.hi, stmt.step)):
            carries = stmt.carries
            stmt = with_known_bounds(stmt, self.facts)
            self.facts.learn((stmt,))
            for carry, result in zip(carries, stmt.body.results):
                if carry in self.rows and isinstance(result, Var):
                    self.rows[result] = self.rows[carry]
        lo, hi, step = (self.get(v).value for v in (stmt.lo, stmt.hi, stmt.step))
        for value in sorted((v for v in reads(stmt.body) if isinstance(v, Var)), key=lambda v: v.name):
            if value in self.sites or value in self._number or value is self.loop.index:
                self.get(value)
                if value.type == I64 and self.moving(value) is not None:
                    self.at_first(value)
        inits = [self.get(v) for v in stmt.inits]
        batched = [x.batched for x in inits]
        while True:
            outer = current()
            index = outer.var(I64, stmt.index.name)
            carries = tuple(outer.var(x.value.type if x.batched or not b else self._widened(x.value.type), c.name)
                            for c, x, b in zip(stmt.carries, inits, batched))
            with building() as inner:
                results = self._inner_body(stmt, site, index, carries, batched)
            if all(b or not r.batched for b, r in zip(batched, results)):
                break
            batched = [b or r.batched for b, r in zip(batched, results)]
        values = tuple(r.value if r.batched or not b else self._repeated_in(inner, r.value)
                       for b, r in zip(batched, results))
        starts = tuple(x.value if x.batched or not b else self.repeated(x.value) for b, x in zip(batched, inits))
        targets = tuple(outer.var(c.type, t.name) for c, t in zip(carries, stmt.targets))
        made = For(targets, index, lo, hi, step, carries, starts, Block(tuple(inner.stmts), values), False, stmt.loc,
                   stmt.checkpoint, stmt.segment)
        outer.stmts.append(made)
        self.facts.learn((made,))
        return {old: Lane(new, b) for old, new, b in zip(stmt.targets, targets, batched)}

    def _inner_body(self, stmt: For, outer: Site, index: Var, carries: Sequence[Var],
                    batched: Sequence[bool]) -> list[Lane]:
        """Emit the body at the current builder; its results."""
        opened = Flat(stmt, checked=False)
        path = outer.path
        own = {v: Site(outer.number, s.stmt, (*path, *s.path)) for v, s in opened.sites.items()}
        before, indices = dict(self._found), dict(self._indices)
        first = dict(self._first)
        self.sites.update(own)
        self.facts.values[index.name] = index
        self._indices[stmt.index.name] = dims.symbol(index.name, LOWEST)
        self._found[stmt.index] = Lane(index, False)
        self._found.update((old, Lane(new, b)) for old, new, b in zip(stmt.carries, carries, batched))
        for site in sorted({id(s): s for s in (*opened.sites.values(), *opened.checks)}.values(),
                           key=lambda s: s.number):
            if isinstance(site.stmt, Check):
                with located(site.stmt.loc):
                    self._hoist([Site(outer.number, site.stmt, (*path, *site.path))])
            else:
                for target in site.stmt.targets:
                    self.get(target)
        results = [self.get(r) for r in stmt.body.results]
        self._found, self._indices, self._first = before, indices, first
        for var in own:
            del self.sites[var]
        return results

    def _widened(self, type: Type) -> Type:
        return type.with_shape((self.trips, *type.shape))

    def _repeated_in(self, builder: Builder, value: Value) -> Value:
        with building() as b:
            found = self.repeated(value)
        builder.stmts.extend(b.stmts)
        return found


# --- small things ----------------------------------------------------------------------------------------------


def is_positive(dim: Any) -> bool:
    low = dims.bounds(dim)[0]
    return low is not None and low > 0


def _most(dim: Any) -> int:
    high = dims.bounds(dim)[1]
    return high if high is not None else sys.maxsize


def _needs_order(name: str) -> str:
    return f"each trip needs what the trips before have made of `{shown_name(name)}`"


def _name(array: Value) -> str:
    return f"`{shown_name(array.name)}`" if isinstance(array, Var) else "an array"


def _is_true(value: Value) -> bool:
    return isinstance(value, Const) and bool(value.value)


def _full(scalar: Value, like: Value) -> Value:
    """The scalar in the shape of another value."""
    if isinstance(scalar, Const):
        return Const(scalar.value, scalar.type.with_shape(like.shape))
    return ops.broadcast(scalar, shape=like.shape, axes=())


def chosen(which: Value, a: Value, b: Value, batched: bool = False) -> Value:
    """a where the condition holds, a number or one for each trip, else b."""
    return ops.select(spread(which, a.shape, batched), a, b)


def spread(mask: Value, shape: tuple[Any, ...], batched: bool) -> Value:
    """The condition, one or one for each element of a trip's value, for an array whose first axis is the trips."""
    if isinstance(mask, Const):
        return Const(mask.value, mask.type.with_shape(shape))
    own = range(1, mask.rank + (0 if batched else 1))
    return ops.broadcast(mask, shape=shape, axes=((0, *own) if batched else tuple(own)))


def lane_of(lane: Lane, trip: Value) -> Value:
    """The value of one trip."""
    if not lane.batched:
        return lane.value
    return ops.load(lane.value, trip, index=(At(), *(Span(0, d) for d in lane.value.shape[1:])))
