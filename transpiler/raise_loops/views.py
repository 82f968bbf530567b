"""Arrays of which each trip works on a part of its own, such as a row.

    for i in 0 .. n carry (a):             each trip has a[i, :], which goes in and comes out as one axis of trips:
      v = load(a, i, j)                    no trip needs what another has made of the array
      ...
      b = store(a, w, i, k)
      yield b

An axis of the array is the trips' own if everything that the loop reads and writes in it lies at one and the same
moving place there.  Other axes may be read anywhere; where all accesses agree on a place or a span, only that goes in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import ops
from ..ir.dependence import axis_items
from ..ir.index import At, New, Span
from ..ir.nodes import Let, Value, Var
from .lane import Items, is_positive
from .lanes import Lanes
from .moving import Moving, load_moving, write_moving, written
from .versions import Versions


@dataclass(frozen=True)
class View:
    """places: for each axis of the array, what goes into the part of a trip (the whole axis, a span, or one place).
    kept: whether an axis is left in the part.  low, high: borders that the array is given before."""

    places: tuple[Moving, ...]
    kept: tuple[bool, ...]
    narrowed: tuple[bool, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def reduced(self, items: Items) -> Items:
        """What is left of an index into the array."""
        return [(Span(0, place.item.size), None) if narrow and isinstance(place.item, Span) else item
                for item, place, kept, narrow in zip(items, self.places, self.kept, self.narrowed, strict=True) if kept]

    def parts(self, lanes: Lanes, array: Value) -> Value:
        """The parts of all trips, along a first axis."""
        array = self._widened(array)
        places = [p.shifted(a) for p, a in zip(self.places, self.low)]
        found = load_moving(array, places, lanes.trips) if sum(bool(p.stride) for p in places) == 1 else None
        if found is not None:
            return found
        values, flags = lanes.places.run_time_places(places)
        value: Value = ops.load.batch((array, *values), (False, *flags), index=tuple(p.item for p in places))
        return value

    def put_back(self, lanes: Lanes, array: Value, parts: Value) -> Value:
        wide = self._widened(array)
        places = [p.shifted(a) for p, a in zip(self.places, self.low)]
        found = write_moving(ops.store, wide, parts, places, lanes.trips, lanes.backwards)
        if wide is array:
            return found
        return ops.load(found, index=tuple(Span(a, d) for a, d in zip(self.low, array.shape)))

    def _widened(self, array: Value) -> Value:
        if not (any(self.low) or any(self.high)):
            return array
        return ops.pad(array, low=self.low, high=self.high, interior=(0,) * array.rank)


def view_of(lanes: Lanes, carry: Var, versions: Versions) -> View | None:
    """The trips' own parts of a carried array; None where they are not each one's own."""
    if not versions.pure or not versions.accesses or versions.only_adds or any(
            isinstance(item, New) for let, _, _ in versions.accesses for item in let.params["index"]):
        return None
    always = lanes.some and any(runs for _, _, runs in versions.accesses)
    places, kept, narrowed, low, high = [], [], [], [], []
    owned = False
    for axis, dim in enumerate(carry.shape):
        place = _agreed(lanes, versions, axis)
        border = (0, 0)
        if place is not None and not always:
            item, scalar = _item(versions.accesses[0][0], axis)
            if not lanes.facts.is_inside(lanes.places.axis(item, scalar), dim):
                found = lanes.places.border(item, scalar, dim) if place.stride else None
                if found is None and place.stride:
                    return None
                place, border = (None, border) if found is None else (place, found)
        if place is None:
            place = Moving(Span(0, dim))
        places.append(place)
        kept.append(isinstance(place.item, Span))
        narrowed.append(place.item != Span(0, dim) and isinstance(place.item, Span))
        low.append(border[0])
        high.append(border[1])
        owned |= bool(place.stride) and isinstance(place.item, At)
    if not owned or any(p.stride and isinstance(p.item, Span) for p in places):
        return None
    return View(tuple(places), tuple(kept), tuple(narrowed), tuple(low), tuple(high))


def _item(let: Let, axis: int) -> tuple[At | Span, Value | None]:
    return axis_items(let)[axis]


def _agreed(lanes: Lanes, versions: Versions, axis: int) -> Moving | None:
    """The place that all accesses have for an axis, if it is one and the same; None where the axis is used as a whole.
    """
    keys: set[Any] = set()
    for let, _, _ in versions.accesses:
        item, scalar = _item(let, axis)
        moving = (0, item.start) if scalar is None and isinstance(item, Span) else lanes.moving(
            scalar) if scalar is not None else None
        if moving is None:
            return None
        if isinstance(item, Span) and moving[0]:
            return None
        keys.add((isinstance(item, At), *moving) if isinstance(item, At) else (False, *moving, item.size, item.step))
    if len(keys) != 1:
        return None
    item, scalar = _item(versions.accesses[0][0], axis)
    return Moving(item) if scalar is None else lanes.places.place(item, scalar)


# --- parts that are the same in all trips -----------------------------------------------------------------------


def fixed_part(lanes: Lanes, carry: Var, versions: Versions) -> View | None:
    """The part of a carried array that all trips work on, where it is smaller than the array."""
    if not versions.pure or any(inner for _, inner, _ in versions.accesses) or any(
            isinstance(item, New) for let, _, _ in versions.accesses for item in let.params["index"]):
        return None
    if not versions.writes or versions.only_adds:
        return None
    always = lanes.some and any(runs for _, _, runs in versions.accesses)
    places = []
    for axis, dim in enumerate(carry.shape):
        place = _agreed(lanes, versions, axis)
        if place is not None and place.stride:
            return None
        if place is not None and not always:
            item, scalar = _item(versions.accesses[0][0], axis)
            if not lanes.facts.is_inside(lanes.places.axis(item, scalar), dim) or not is_positive(dim):
                return None
        places.append(Moving(Span(0, dim)) if place is None else place)
    kept = tuple(isinstance(p.item, Span) for p in places)
    narrowed = tuple(k and p.item != Span(0, d) for k, p, d in zip(kept, places, carry.shape))
    if all(kept) and not any(narrowed):
        return None
    zeros = (0,) * carry.rank
    return View(tuple(places), kept, narrowed, zeros, zeros)


def part_once(view: View, array: Value) -> Value:
    """The part that is the same in all trips."""
    return ops.load(array, *_scalars(view), index=tuple(p.item for p in view.places))


def put_back_once(view: View, array: Value, part: Value) -> Value:
    return written(ops.store, array, part, _scalars(view), tuple(p.item for p in view.places))


def _scalars(view: View) -> list[Value]:
    return [p.lane.value for p in view.places if p.lane is not None]

