"""Places of an index that move from trip to trip, and loads at them as slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import ops
from ..ir.build import const, int_const, plus, size_value
from ..ir.index import At, Span
from ..ir.nodes import Const, Value
from ..ops.indexing import index_arrays

if TYPE_CHECKING:
    from .lanes import Lane

MOST_SLICES = 32        # of a window that moves, each of whose places becomes a slice


@dataclass(frozen=True)
class Moving:
    """Where one axis is read or written.

    item: what the index has for it.  first, stride: the (first) place in the first trip and what is added in each
    trip, where that is not 0.  lane: else the run-time place, where the item takes one.
    """

    item: At | Span
    first: Value | None = None
    stride: int = 0
    lane: Lane | None = None

    def shifted(self, by: int) -> Moving:
        """As many places further on."""
        if not by:
            return self
        if self.first is not None:
            return replace(self, first=plus(self.first, by))
        if self.lane is not None:
            return replace(self, lane=replace(self.lane, value=ops.add(self.lane.value, by)))
        assert isinstance(self.item, Span)
        return replace(self, item=Span(self.item.start + by, self.item.size, self.item.step))


def slice_of(first: Value, size: Any, step: int) -> tuple[Span, list[Value]]:
    """The span from a run-time place, and the arguments that it takes."""
    if isinstance(first, Const):
        return Span(int(first.value), size, step), []
    return Span(None, size, step), [first]


def index_with(places: Sequence[Moving], axis: int, item: At | Span, scalars: list[Value]) -> tuple[
        tuple[At | Span, ...], list[Value]]:
    """The index and its run-time places, with another item and arguments for one axis."""
    index: list[At | Span] = []
    values: list[Value] = []
    for k, place in enumerate(places):
        if k == axis:
            index.append(item)
            values += scalars
            continue
        index.append(place.item)
        if place.lane is not None:
            values.append(place.lane.value)
    return tuple(index), values


def front(value: Value, axis: int) -> Value:
    """The axis moved to the front."""
    return value if not axis else ops.transpose(value, axes=(axis, *(k for k in range(value.rank) if k != axis)))


def behind(value: Value, axis: int) -> Value:
    """The first axis moved to a place behind."""
    order = list(range(1, value.rank))
    order.insert(axis, 0)
    return value if not axis else ops.transpose(value, axes=tuple(order))


def load_moving(array: Value, places: Sequence[Moving], trips: Any) -> Value | None:
    """What is read in all trips, where one axis moves; None where that takes too many slices."""
    (axis,) = [k for k, p in enumerate(places) if p.stride]
    place = places[axis]
    before = sum(isinstance(p.item, Span) for p in places[:axis])
    assert place.first is not None
    if isinstance(place.item, At):
        item, scalars = slice_of(place.first, trips, place.stride)
        index, values = index_with(places, axis, item, scalars)
        return front(ops.load(array, *values, index=index), before)
    size, step = place.item.size, place.item.step
    if isinstance(size, int) and size <= MOST_SLICES and not (isinstance(trips, int) and trips < size):
        return _stacked(array, places, axis, trips, place.stride, [step * u for u in range(size)], before, 1 + before)
    if isinstance(trips, int) and trips <= MOST_SLICES:
        return _stacked(array, places, axis, size, step, [place.stride * t for t in range(trips)], None, 0)
    return None


def _stacked(array: Value, places: Sequence[Moving], axis: int, size: Any, step: int, offsets: Sequence[int],
             moved: int | None, at: int) -> Value | None:
    """Slices of `size` places from each offset, side by side along a new axis `at`; `moved`: the axis of each slice
    that goes to its front before."""
    if not offsets:
        return None
    first = places[axis].first
    assert first is not None
    parts = []
    for offset in offsets:
        item, scalars = slice_of(plus(first, offset), size, step)
        index, values = index_with(places, axis, item, scalars)
        part = ops.load(array, *values, index=index)
        parts.append(part if moved is None else front(part, moved))
    return behind(ops.stack(*parts), at)


def written(op: Any, array: Value, value: Value, scalars: Sequence[Value], index: tuple[At | Span, ...]) -> Value:
    """A write; what covers the whole array is no write."""
    if all(isinstance(item, Span) and item == Span(0, d) for item, d in zip(index, array.shape, strict=True)):
        return ops.add(array, value) if op.adds else value
    found: Value = op(array, value, *scalars, index=index)
    return found


def write_moving(op: Any, array: Value, value: Value, places: Sequence[Moving], trips: Any, backwards: bool) -> Value:
    """The array after the writes of all trips, whose values have the trips as their first axis: an `op` at slices, or
    at index arrays where that does not fit.  Of writes to one place that of the trip that runs last counts, or all
    where they add."""
    moving = [k for k, p in enumerate(places) if p.stride]
    still = all(p.lane is None or not p.lane.batched for p in places)
    if still and not moving:
        index = tuple(p.item for p in places)
        values = [p.lane.value for p in places if p.lane is not None]
        if op.adds:
            return written(op, array, ops.sum(value, axes=(0,)), values, index)
        end = int_const(0) if backwards else size_value(trips - 1)
        last = ops.load(value, end, index=(At(), *(Span(0, d) for d in value.shape[1:])))
        return written(op, array, last, values, index)
    if still and len(moving) == 1:
        found = _at_slices(op, array, value, places, moving[0], trips)
        if found is not None:
            return found
    return _at_arrays(op, array, value, places, trips, backwards)


def _at_slices(op: Any, array: Value, value: Value, places: Sequence[Moving], axis: int, trips: Any) -> Value | None:
    place = places[axis]
    before = sum(isinstance(p.item, Span) for p in places[:axis])
    assert place.first is not None
    if isinstance(place.item, At):
        item, scalars = slice_of(place.first, trips, place.stride)
        index, values = index_with(places, axis, item, scalars)
        return written(op, array, behind(value, before), values, index)
    size = place.item.size
    if not op.adds or not isinstance(size, int) or size > MOST_SLICES:
        return None
    for u in range(size):
        item, scalars = slice_of(plus(place.first, place.item.step * u), trips, place.stride)
        index, values = index_with(places, axis, item, scalars)
        part = ops.load(value, int_const(u), index=tuple(
            At() if k == 1 + before else Span(0, d) for k, d in enumerate(value.shape)))
        array = written(op, array, behind(part, before), values, index)
    return array


def _at_arrays(op: Any, array: Value, value: Value, places: Sequence[Moving], trips: Any,
               backwards: bool) -> Value:
    scalars: list[Value] = []
    for p in places:
        if p.stride:
            assert p.first is not None
            scalars.append(positions(p.first, p.stride, trips))
        elif p.lane is not None:
            scalars.append(p.lane.value)
    arrays, axes, order = index_arrays(array.shape, scalars, tuple(p.item for p in places), trips)
    arrays = arrays[1:]
    if backwards and not op.adds:               # of equal places the last one counts
        value, arrays = ops.reverse(value, axes=(0,)), [ops.reverse(a, axes=(0,)) for a in arrays]
    value = ops.transpose(value, axes=order)
    found: Value = getattr(ops, op.by_arrays)(array, value, *arrays, axes=tuple(a - 1 for a in axes[1:]))
    return found


def positions(first: Value, stride: int, trips: Any) -> Value:
    """first + stride * trip, for all trips."""
    along = ops.iota(shape=(trips,), axis=0, dtype="int64")
    if stride != 1:
        along = ops.multiply(along, const(stride, along.type))
    if isinstance(first, Const):
        return along if first.value == 0 else ops.add(along, const(first.value, along.type))
    return ops.add(along, ops.broadcast(first, shape=(trips,), axes=()))
