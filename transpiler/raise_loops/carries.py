"""What a loop's carries come to, and what they are in each trip.

    s = s + x[i]                    s + sum(x)                  in each trip: s + the sums so far
    if x[i] > m: m = x[i]           the first largest of x, if it is larger than m; with >=, the last
    if x[i] > x[k]: k = i           where that is
    sign = -sign                    the product of so many -1                   in each trip: the product so far
    on = not on                     whether there are an odd number of trips    in each trip: of those so far
    p = x[i]                        the last x                  in each trip: x, one place on
    a[i] = ...                      see `views`
    a[k] += ..., a[i - 1] = ...     see `stores`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import ops
from ..ir.build import const, int_const, located, size_value
from ..ir.index import At, Span
from ..ir.nodes import Block, For, If, Let, Value, Var
from ..ir.types import BOOL
from ..ir.walk import reads
from ..ops.base import Folding, Search
from .facts import Meeting
from .findings import Refused
from .flat import Path, choice_of
from .lane import Lane, chosen, spread
from .lanes import Lanes
from .stores import Stores, stores_of
from .versions import Versions, versions_of
from .views import View, view_of

MOST_BRANCHES = 8       # one after the other, in which a total may be added to: each doubles its terms


@dataclass(frozen=True)
class Term:
    """What one trip folds in where the conditions hold."""

    path: Path
    value: Value
    folding: Folding
    loc: Any


@dataclass(frozen=True)
class Pick:
    """`if x > best`: where the conditions and the comparison hold, `value` is taken.  judged: the number of `best`, or
    of the place where it is read.  first: `best` before the loop.  swapped: the comparison reads `best < x`."""

    comparison: Let
    swapped: bool
    judged: int
    first: Value
    x: Value
    value: Value
    path: Path

    @property
    def search(self) -> Search:
        found: Search = self.comparison.op.prefers[1 if self.swapped else 0]
        return found

    @property
    def takes_equals(self) -> bool:
        """Whether the last of the best ones is found, not the first."""
        return self.comparison.op.relates in ("<=", ">=")

    def better(self, x: Value, best: Value) -> Value:
        found: Value = self.comparison.op(best, x) if self.swapped else self.comparison.op(x, best)
        return found


class Carries:
    """versions, views: of carried arrays, by their number."""

    def __init__(self, lanes: Lanes, meeting: Meeting) -> None:
        self.lanes = lanes
        self.loop: For = lanes.loop
        self.versions: dict[int, Versions] = {}
        self.views: dict[int, View] = {}
        self.stores: dict[int, Stores] = {}
        self._depends: dict[tuple[Value, int], bool] = {}
        self._totals: dict[int, Value] = {}
        lanes.carried, lanes.read_version = self.before, self._read_version
        for k, carry in enumerate(self.loop.carries):
            if not carry.type.shape or self.loop.body.results[k] is carry:
                continue
            versions = self.versions[k] = versions_of(self.loop, k)
            view = view_of(lanes, carry, versions)
            if view is not None:
                self.views[k] = view
                for version in versions.vars:
                    lanes.rows[version] = view.reduced  # type: ignore[index]
                continue
            stores = stores_of(lanes, k, versions, meeting)
            if stores is not None:
                self.stores[k] = stores

    # --- in each trip ------------------------------------------------------------------------------------------

    def before(self, number: int) -> Lane:
        """The carry at the beginning of each trip."""
        loop, lanes = self.loop, self.lanes
        carry, init = loop.carries[number], loop.inits[number]
        if loop.body.results[number] is carry:
            return Lane(init, False)
        if number in self.views:
            return Lane(self.views[number].parts(lanes, init), True)
        if number in self.stores:
            lanes.refuse_carry(number)
        terms = self.terms(number)
        if terms is not None and terms:
            totals = self._scanned(number, terms)
            return Lane(ops.load(totals, index=(Span(1 if lanes.backwards else 0, lanes.trips),
                                                *(Span(0, d) for d in totals.shape[1:]))), True)
        if (flips := self._flips(number)) is not None:
            return Lane(ops.logical_xor(lanes.repeated(init), self._is_odd(flips, before=True)), True)
        if lanes.some and (taken := self._taken(number)) is not None:
            return self._latest_before(init, *taken)
        if self.depends(loop.body.results[number], number) or not lanes.some:
            lanes.refuse_carry(number)
        return Lane(lanes.before_each(init, lanes.along(loop.body.results[number])), True)

    def _read_version(self, let: Let) -> Lane | None:
        if let.op.access != "load":
            return None
        for stores in self.stores.values():
            if let.args[0] in stores.versions.vars:
                return stores.read(let)
        return None

    # --- after all trips ---------------------------------------------------------------------------------------

    def after(self, number: int) -> Value:
        """What the loop gives for the carry."""
        loop, lanes = self.loop, self.lanes
        carry, result, init = loop.carries[number], loop.body.results[number], loop.inits[number]
        if result is carry:
            return init
        with located(loop.loc):
            if number in self.views:
                return self.views[number].put_back(lanes, init, lanes.along(result))
            if number in self.stores:
                return self.stores[number].final()
            terms = self.terms(number)
            if terms is not None:
                return self._folded(number, terms)
            flips = self._flips(number)
            if flips is not None:
                return ops.logical_xor(init, self._is_odd(flips, before=False))
            picked = self._picked(number)
            if picked is not None:
                return picked
            if lanes.some and (taken := self._taken(number)) is not None:
                return self._latest(init, *taken)
            if self.depends(result, number):
                lanes.refuse_carry(number)
            return self._last(lanes.get(result))

    def _last(self, lane: Lane) -> Value:
        lanes = self.lanes
        if not lanes.some:
            raise Refused("what it gives is that of the last trip, and there may be none")
        if not lane.batched:
            return lane.value
        return lanes.last(lane.value)

    # --- folds -------------------------------------------------------------------------------------------------

    def terms(self, number: int) -> list[Term] | None:
        """What the trips fold into the carry, if that is all that happens to it."""
        carry = self.loop.carries[number]
        found = self._traced(self.loop.body.results[number], carry, number, ())
        if found is None or not found:
            return None
        if any(t.folding.reduction != found[0].folding.reduction for t in found):
            return None
        if any(self.depends(v, number) for t in found for v in (t.value, *(p for p, _ in t.path))):
            return None
        return found

    def _traced(self, value: Value, carry: Var, number: int, path: Path) -> list[Term] | None:
        if value is carry:
            return []
        if len(path) > MOST_BRANCHES:
            return None
        site = self.lanes.sites.get(value) if isinstance(value, Var) else None
        if site is None:
            return None
        stmt = site.stmt
        choice = choice_of(stmt, value)
        if choice is not None:
            return self._either(*choice, carry, number, path)
        if isinstance(stmt, Let) and stmt.op.repeats is not None:
            name, number_beside = stmt.op.repeats
            folded = getattr(ops, name).folding
            sooner = self._traced(stmt.args[0], carry, number, path) if carry.type.kind in "ifc" else None
            return None if sooner is None else [*sooner, Term(path, const(number_beside, carry.type), folded, stmt.loc)]
        if isinstance(stmt, Let) and stmt.op.folding is not None and carry.type.kind in stmt.op.folding.kinds:
            folding: Folding = stmt.op.folding
            for k in (0, 1) if folding.commutes else (0,):
                if self.depends(stmt.args[k], number):
                    before = self._traced(stmt.args[k], carry, number, path)
                    if before is None:
                        return None
                    return [*before, Term(path, stmt.args[1 - k], folding, stmt.loc)]
        return None

    def _either(self, pred: Value, yes: Value, no: Value, carry: Var, number: int, path: Path) -> list[Term] | None:
        if pred.type.shape not in ((), carry.type.shape):
            return None
        one = self._traced(yes, carry, number, (*path, (pred, True)))
        other = self._traced(no, carry, number, (*path, (pred, False)))
        return None if one is None or other is None else [*one, *other]

    def depends(self, value: Value, number: int) -> bool:
        """Whether the value is made of the carry."""
        if value is self.loop.carries[number]:
            return True
        site = self.lanes.sites.get(value) if isinstance(value, Var) else None
        if site is None:
            return False
        key = (value, number)
        if key not in self._depends:
            self._depends[key] = False
            stmt = site.stmt
            match stmt:
                case Let():
                    sources: Sequence[Any] = stmt.args
                case If():
                    k = stmt.targets.index(value)  # type: ignore[arg-type]
                    sources = (stmt.pred, stmt.then.results[k], stmt.orelse.results[k])
                case For():
                    inside = reads(Block((stmt,), ()))
                    sources = [v for v in inside if isinstance(v, Var)]
                case _:
                    sources = ()
            self._depends[key] = any(self.depends(v, number) for v in sources)
        return self._depends[key]

    def _each(self, term: Term) -> Value:
        """The term in all trips; what changes nothing where its conditions do not hold."""
        lanes = self.lanes
        with located(term.loc):
            value = term.folding.term(lanes.along(term.value))
            reduction: Any = getattr(ops, term.folding.reduction)
            (idle,) = reduction.init(value.type)
            for condition in term.path:
                where = lanes.holds((condition,))
                if where is not None:
                    value = ops.select(spread(where.value, value.shape, where.batched), value,
                                       const(idle.value, value.type))
            return value

    def _folded(self, number: int, terms: Sequence[Term]) -> Value:
        if number in self._totals:
            return _at(self._totals[number], size_value(0 if self.lanes.backwards else self.lanes.trips))
        folding = terms[0].folding
        if not folding.of_nothing:
            self._require_trips()
        total = self.loop.inits[number]
        for term in terms:
            with located(term.loc):
                part = getattr(ops, folding.reduction)(self._each(term), axes=(0,))
                total = getattr(ops, folding.joins)(total, part)
        return total

    def _require_trips(self) -> None:
        if not self.lanes.some:
            raise Refused("there may be no trip, of which there is no largest or smallest")

    def _scanned(self, number: int, terms: Sequence[Term]) -> Value:
        """The carry before the first trip and after each one, as the trips stand."""
        if number not in self._totals:
            folding = terms[0].folding
            each = self._each(terms[0])
            for term in terms[1:]:
                each = getattr(ops, folding.joins)(each, self._each(term))
            init = self.loop.inits[number]
            first = ops.reshape(init, shape=(1, *init.shape))
            backwards = self.lanes.backwards
            values = ops.concatenate(*((each, first) if backwards else (first, each)), axis=0)
            self._totals[number] = getattr(ops, folding.scan)(values, axis=0, reverse=backwards)
        return self._totals[number]

    # --- bools that change from trip to trip ---------------------------------------------------------------------

    def _flips(self, number: int) -> list[Path] | None:
        """Under which conditions the carry becomes its opposite, if that is all that happens to it."""
        carry = self.loop.carries[number]
        if carry.type != BOOL:
            return None
        found = self._flipped(self.loop.body.results[number], carry, ())
        if not found or any(self.depends(p, number) for path in found for p, _ in path):
            return None
        return found

    def _flipped(self, value: Value, carry: Var, path: Path) -> list[Path] | None:
        if value is carry:
            return []
        site = self.lanes.sites.get(value) if isinstance(value, Var) else None
        if site is None or len(path) > MOST_BRANCHES:
            return None
        choice = choice_of(site.stmt, value)
        if choice is not None:
            pred, yes, no = choice
            one = self._flipped(yes, carry, (*path, (pred, True)))
            other = self._flipped(no, carry, (*path, (pred, False)))
            return None if one is None or other is None else [*one, *other]
        if isinstance(site.stmt, Let) and site.stmt.op.connects == "not":
            sooner = self._flipped(site.stmt.args[0], carry, path)
            return None if sooner is None else [*sooner, path]
        return None

    def _is_odd(self, flips: Sequence[Path], *, before: bool) -> Value:
        """Whether the number of flips is odd: of all trips, or before each."""
        lanes, counted = self.lanes, None
        for path in flips:
            lane = lanes.holds(path) or Lane(const(True, BOOL), False)
            each = ops.convert(lanes.repeated(lane.value) if not lane.batched else lane.value, dtype="int64")
            counted = each if counted is None else ops.add(counted, each)
        assert counted is not None
        if before:
            sums = ops.cumsum(counted, axis=0, reverse=lanes.backwards)
            counted = ops.subtract(sums, counted)
        else:
            counted = ops.sum(counted, axes=(0,))
        return ops.equal(ops.remainder(counted, const(2, counted.type)), const(1, counted.type))

    # --- picks -------------------------------------------------------------------------------------------------

    def _picked(self, number: int) -> Value | None:
        """`if x > best: best, at = x, i`: the first x that no other is better than, if it is better than `best`."""
        found = self._pick_of(number)
        if found is None or found.takes_equals:
            return None
        self._require_trips()
        lanes = self.lanes
        where = lanes.first_of(getattr(ops, found.search.reduction), self._counted(found))
        top = _at(self._counted(found), where)
        taken = found.better(top, found.first)
        if found.value is found.x:
            return chosen(taken, top, self.loop.inits[number])
        lane = lanes.get(found.value)
        other = _at(lane.value, where) if lane.batched else lane.value
        return chosen(taken, other, self.loop.inits[number])

    def _pick_of(self, number: int) -> Pick | None:
        """What the carry is a search for, if it is one."""
        found = self._pick(self.loop.body.results[number], number, ())
        if found is None:
            return None
        path, pred, value = found
        comparison = self.lanes.sites[pred].stmt
        assert isinstance(comparison, Let)
        x, best = comparison.args
        swapped = self._judged(best) is None
        if swapped:
            x, best = best, x
        judged = self._judged(best)
        assert judged is not None
        if x.type.kind not in "iuf" or x.type.shape or any(
                self.depends(v, k) for v in (x, value, *(p for p, _ in path)) for k in (number, judged)):
            return None
        again = self._pick(self.loop.body.results[judged], judged, ())
        if again is None or again[0] != path or again[1] is not pred:
            return None
        if self._number_of(best) is not None:
            return None if again[2] is not x else Pick(comparison, swapped, judged, self.loop.inits[judged], x, value,
                                                       path)
        if not self._reads_at(x, again[2], best, judged):
            return None
        return Pick(comparison, swapped, judged, self._first_read(best, judged), x, value, path)

    def _judged(self, best: Value) -> int | None:
        """The number of a carry, or of the one carry by which a place is given that is read of an array that no trip
        changes."""
        number = self._number_of(best)
        if number is not None:
            return number
        let = self._read_before(best)
        found = [] if let is None else [n for a in let.args[1:] if (n := self._number_of(a)) is not None]
        return found[0] if len(found) == 1 else None

    def _read_before(self, value: Value) -> Let | None:
        site = self.lanes.sites.get(value) if isinstance(value, Var) else None
        let = None if site is None else site.stmt
        if not isinstance(let, Let) or let.op.access != "load" or self.lanes.is_inner(let.args[0]):
            return None
        return let

    def _reads_at(self, x: Value, place: Value, best: Value, judged: int) -> bool:
        """Whether x is what `best` would be with the place in the carry's stead."""
        one, other, dim = self._read_before(x), self._read_before(best), self.lanes.facts.dim
        return one is not None and other is not None and one.args[0] is other.args[0] and (
            one.params == other.params) and all(
                dim(a) == dim(place if self._number_of(b) == judged else b)
                and (self._number_of(b) == judged or not self.lanes.is_inner(b))
                for a, b in zip(one.args[1:], other.args[1:], strict=True))

    def _first_read(self, best: Value, judged: int) -> Value:
        let = self._read_before(best)
        assert let is not None
        places = [self.loop.inits[judged] if self._number_of(a) == judged else a for a in let.args[1:]]
        found: Value = ops.load(let.args[0], *places, **let.params)
        return found

    def _counted(self, pick: Pick) -> Value:
        """x in all trips, and what is never better where it does not count: NaN is not."""
        xs, counts = self.lanes.along(pick.x), self._counts(pick)
        if counts is None:
            return xs
        (idle, _) = getattr(ops, pick.search.reduction).init(pick.x.type)
        return ops.select(spread(counts.value, xs.shape, counts.batched), xs, const(idle.value, xs.type))

    def _counts(self, pick: Pick) -> Lane | None:
        """In which trips x is a number, and compared at all; None: in all."""
        lanes, x = self.lanes, pick.x
        counts = lanes.holds(pick.path)
        if x.type.kind == "f":
            real = Lane(ops.logical_not(ops.isnan(lanes.along(x))), True)
            counts = real if counts is None else lanes.together(ops.logical_and, counts, real)
        return counts

    def _taken(self, number: int) -> tuple[Value, Value] | None:
        """In which trips the carry is replaced, and by what, where it is either that or stays as it is."""
        lanes, carry = self.lanes, self.loop.carries[number]
        pick = self._pick_of(number)
        if pick is not None:
            best: Any = getattr(ops, pick.search.scan)
            xs = self._counted(pick)
            so_far = best(lanes.before_each(pick.first, xs), axis=0, reverse=lanes.backwards)
            better = pick.better(xs, so_far)
            counts = self._counts(pick) if pick.takes_equals else None          # else what does not count is not better
            if counts is not None:
                better = ops.logical_and(better, spread(counts.value, better.shape, counts.batched))
            return better, lanes.along(pick.value)
        options = self._options(self.loop.body.results[number], carry, number, ())
        if not options or any(self.depends(p, number) for path, _ in options for p, _ in path):
            return None
        taken: Lane | None = None
        value: Value | None = None
        for path, option in options:
            holds = lanes.holds(path)
            if holds is None:
                return None
            along = lanes.along(option)
            taken = holds if taken is None else lanes.together(ops.logical_or, taken, holds)
            mask = spread(holds.value, along.shape, holds.batched)
            value = along if value is None else ops.select(mask, along, value)
        assert taken is not None and value is not None
        return taken.value if taken.batched else lanes.repeated(taken.value), value

    def _options(self, value: Value, carry: Var, number: int, path: Path) -> list[tuple[Path, Value]] | None:
        """Under which conditions which values replace the carry; None where it may become anything else."""
        if value is carry:
            return []
        if not self.depends(value, number):
            return [(path, value)]
        if len(path) > MOST_BRANCHES:
            return None
        site = self.lanes.sites.get(value) if isinstance(value, Var) else None
        if site is None:
            return None
        choice = choice_of(site.stmt, value)
        if choice is None or choice[0].type.shape:
            return None
        pred, yes, no = choice
        one = self._options(yes, carry, number, (*path, (pred, True)))
        other = self._options(no, carry, number, (*path, (pred, False)))
        return None if one is None or other is None else [*one, *other]

    def _numbered(self, taken: Value) -> tuple[Value, Value]:
        """The number of each trip that takes, and what stands for none."""
        lanes = self.lanes
        own = ops.iota(shape=(lanes.trips,), axis=0, dtype="int64")
        none = size_value(lanes.trips) if lanes.backwards else int_const(-1)
        return ops.select(taken, own, spread(none, own.shape, False)), none

    def _found(self, init: Value, last: Value, values: Value) -> Value:
        """The value of the trip `last` (or of several), or `init` where there is none."""
        lanes = self.lanes
        end = spread(size_value(lanes.trips - 1), last.shape, False)
        real = ops.less_equal(last, end) if lanes.backwards else ops.greater_equal(last, 0)
        place = ops.minimum(ops.maximum(last, 0), end)
        if not last.shape:
            return chosen(real, _at(values, place), init)
        there = ops.gather(values, place, axes=(0,))
        return ops.select(spread(real, there.shape, True), there, lanes.repeated(init))

    def _latest_before(self, init: Value, taken: Value, values: Value) -> Lane:
        lanes = self.lanes
        numbers, none = self._numbered(taken)
        scan: Any = ops.cummin if lanes.backwards else ops.cummax
        last = scan(lanes.before_each(none, numbers), axis=0, reverse=lanes.backwards)
        return Lane(self._found(init, last, values), True)

    def _latest(self, init: Value, taken: Value, values: Value) -> Value:
        numbers, _ = self._numbered(taken)
        reduction: Any = ops.min if self.lanes.backwards else ops.max
        return self._found(init, reduction(numbers, axes=(0,)), values)

    def _pick(self, value: Value, number: int, path: Path) -> tuple[Path, Var, Value] | None:
        """(conditions around, the comparison, what is taken where it holds) if the carry stays as it is elsewhere."""
        carry = self.loop.carries[number]
        site = self.lanes.sites.get(value) if isinstance(value, Var) else None
        if site is None:
            return None
        choice = choice_of(site.stmt, value)
        if choice is None:
            return None
        pred, yes, no = choice
        if not isinstance(pred, Var) or pred.type.shape:
            return None
        if yes is carry:
            return self._pick(no, number, (*path, (pred, False)))
        if no is not carry:
            return None
        test = self.lanes.sites.get(pred)
        if test is not None and isinstance(test.stmt, Let) and test.stmt.op.prefers is not None and any(
                self._judged(a) is not None for a in test.stmt.args):
            return path, pred, yes
        return self._pick(yes, number, (*path, (pred, True)))

    def _number_of(self, value: Value) -> int | None:
        return self.loop.carries.index(value) if value in self.loop.carries else None  # type: ignore[arg-type]


def _at(value: Value, place: Value) -> Value:
    return ops.load(value, place, index=(At(), *(Span(0, d) for d in value.shape[1:])))


