"""Reads of one and the same place in all trips, which one of the trips writes to.

    for j in 0 .. n:                          the trips up to k find what was there before the loop, those behind find
      path[i, j] = f(path[i, j], path[i, k])  what trip k has stored, which needs only what was there before

So what all trips store is computed once with the old element, for that of the trip in question, and then again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import ops
from ..ir.build import int_const, size_value
from ..ir.dependence import axis_items
from ..ir.index import At
from ..ir.nodes import Let, Value
from .lane import Lane, lane_of, spread
from .lanes import Lanes

if TYPE_CHECKING:
    from .stores import Writer


def crossing_axis(lanes: Lanes, writers: Sequence[Writer], before: set[Let], let: Let) -> int | None:
    """The axis along which the only write passes the place of a read; None where this is not of that kind."""
    if len(writers) != 1 or writers[0].path or before or lanes.flat.checks or not lanes.some or (
            writers[0].stmt.op.adds):
        return None
    loop = lanes.loop
    if sum(result is not carry for result, carry in zip(loop.body.results, loop.carries)) != 1:
        return None                     # nothing else may be computed from what is only supposed
    passing = []
    read, written = lanes.facts.place(let), lanes.facts.place(writers[0].stmt)
    for k, (mine, other) in enumerate(zip(axis_items(let), axis_items(writers[0].stmt), strict=True)):
        if mine[0] == other[0] and read[k] == written[k] and not _moves(lanes, mine[1]):
            continue
        moving = lanes.moving(other[1]) if other[1] is not None else None
        if not isinstance(mine[0], At) or not isinstance(other[0], At) or moving is None or abs(moving[0]) != 1 or (
                lanes.step != 1 or _moves(lanes, mine[1])):
            return None
        passing.append(k)
    return passing[0] if len(passing) == 1 else None


def _moves(lanes: Lanes, scalar: Value | None) -> bool:
    """Whether a place differs, or may differ, from trip to trip."""
    if scalar is None:
        return False
    moving = lanes.moving(scalar)
    return moving is None or moving[0] != 0


def read_across(lanes: Lanes, let: Let, axis: int, writer: Let, old: Lane, stored: Value) -> Lane:
    """What the trips find: `old` up to the trip that writes there, then what it has `stored`, of all trips those
    values that they would store if they found `old`."""
    scalar, target = axis_items(let)[axis][1], axis_items(writer)[axis][1]
    assert scalar is not None and target is not None
    moving = lanes.moving(target)
    assert moving is not None
    place, first = lanes.at_first(scalar), lanes.at_first(target)
    trip = ops.subtract(place, first) if moving[0] > 0 else ops.subtract(first, place)
    happens = ops.logical_and(ops.greater_equal(trip, 0), ops.less(trip, size_value(lanes.trips)))
    inside = ops.minimum(ops.maximum(trip, int_const(0)), size_value(lanes.trips - 1))
    new = lane_of(Lane(stored, True), inside)
    own = ops.iota(shape=(lanes.trips,), axis=0, dtype="int64")
    those = ops.broadcast(trip, shape=(lanes.trips,), axes=())
    behind = ops.less(own, those) if lanes.backwards else ops.greater(own, those)
    found = ops.logical_and(behind, ops.broadcast(happens, shape=(lanes.trips,), axes=()))
    before = old.value if old.batched else lanes.repeated(old.value)
    after = lanes.repeated(ops.reshape(new, shape=before.shape[1:]))
    return Lane(ops.select(spread(found, before.shape, True), after, before), True)

