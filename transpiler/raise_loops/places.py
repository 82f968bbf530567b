"""Loads and writes of all trips: at slices where places move by the same distance in each trip, at index arrays else.

Where a branch is not taken, its places may not exist; the array then gets a border of zeros, or the place is another
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import ops
from ..ir.build import size_value
from ..ir.dependence import Axis, axis_items, axis_of
from ..ir.index import At, New, Span, index_shape
from ..ir.nodes import Let, Value, Var
from ..ir.types import I64
from .findings import Refused
from .flat import Path
from .lane import Items, Lane, filled, is_positive, most, shown_array
from .moving import Moving, load_moving, positions, written

if TYPE_CHECKING:
    from .lanes import Lanes

WIDEST = 128            # border of zeros that an array is given so that all places exist


class Places:
    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    def of(self, stmt: Let, path: Path) -> Lane:
        array = stmt.args[0]
        items = axis_items(stmt)
        has_new = any(isinstance(i, New) for i in stmt.params["index"])
        whole = self.lanes.get(array)
        shape = whole.value.shape[1:] if whole.batched else whole.value.shape
        if isinstance(array, Var) and array in self.lanes.rows:
            items = self.lanes.rows[array](items)
        items = [(item, self._resolved(scalar)) for item, scalar in items]
        if stmt.op.access == "load":
            found = self.load(whole, shape, items, path, stmt)
        else:
            found = self._write(stmt, whole, shape, items, path)
        if has_new and stmt.op.access == "load":
            wanted = index_shape(stmt.params["index"])
            shaped = (self.lanes.trips, *wanted) if found.batched else wanted
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
            return Lane(ops.load(array.value, *values, index=(Span(0, self.lanes.trips), *index)), True)
        if not arrays and not array.batched and len(moving) == 1:
            found = load_moving(array.value, places, self.lanes.trips)
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
                values.append(positions(p.first, p.stride, self.lanes.trips))
                flags.append(True)
            elif p.lane is not None:
                values.append(p.lane.value)
                flags.append(p.lane.batched)
        return values, flags

    def _made_safe(self, whole: Lane, shape: Sequence[Any], items: Items,
                   path: Path, stmt: Let) -> tuple[Lane, list[Moving]]:
        """The array and the places, all inside of it: what is not surely so reads a border of zeros, or another
        element, which nobody uses."""
        trusted = not path and self.lanes.some
        low, high = [0] * len(items), [0] * len(items)
        places = []
        for k, ((item, scalar), dim) in enumerate(zip(items, shape, strict=True)):
            place = self.place(item, scalar)
            places.append(place)
            if trusted or self.lanes.facts.is_inside(self.axis(item, scalar), dim):
                continue
            border = self.border(item, scalar, dim)
            if border is not None:
                low[k], high[k] = border
            elif isinstance(item, At) and scalar is not None and is_positive(dim):
                places[k] = self.clipped(scalar, dim)
            else:
                raise Refused(f"{shown_array(stmt.args[0])} could be read outside of its elements where " + (
                    "a branch is not taken" if path else "there is no trip"))
        if any(low) or any(high):
            places = [p.shifted(a) for p, a in zip(places, low)]
            around = (0,) if whole.batched else ()
            value = ops.pad(whole.value, low=(*around, *low), high=(*around, *high),
                            interior=(0,) * whole.value.rank)
            whole = Lane(value, whole.batched)
        return whole, places

    def axis(self, item: At | Span, scalar: Value | None) -> Axis:
        return axis_of(item, scalar, self.lanes.facts.ints)

    def border(self, item: At | Span, scalar: Value | None, dim: Any) -> tuple[int, int] | None:
        """How many elements must stand before and behind the axis for all places to exist, if these are few."""
        lowest, highest = (self.lanes.facts.extremes(end) for end in self.axis(item, scalar).ends)
        if lowest is None or highest is None:
            return None
        low, high = max(most(-lowest[0]), 0), max(most(highest[1] - dim + 1), 0)
        return None if low > WIDEST or high > WIDEST else (low, high)

    def place(self, item: At | Span, scalar: Value | None) -> Moving:
        if scalar is None:
            return Moving(item)
        moving = self.lanes.moving(scalar) if scalar.type == I64 else None
        if moving is not None:
            first = self.lanes.at_first(scalar)
            if moving[0]:
                return Moving(item, first=first, stride=moving[0] * self.lanes.step)
            return Moving(item, lane=Lane(first, False))
        return Moving(item, lane=self.lanes.get(scalar))

    def clipped(self, scalar: Value, dim: Any) -> Moving:
        lane = self.lanes.get(scalar)
        value = ops.minimum(ops.maximum(lane.value, 0), filled(size_value(dim - 1), lane.value))
        return Moving(At(), lane=Lane(value, lane.batched))

    def _write(self, stmt: Let, whole: Lane, shape: Sequence[Any],
               items: Items, path: Path) -> Lane:
        """A write to each trip's own array."""
        values = self.lanes.get(stmt.args[1])
        array = stmt.args[0]
        if not whole.batched:
            whole = Lane(self.lanes.repeated(whole.value), True)
        wanted = (self.lanes.trips, *index_shape(tuple(i for i, _ in items)))
        v = values.value if values.batched else self.lanes.repeated(values.value)
        v = ops.reshape(v, shape=wanted)
        if not items:
            return Lane(ops.add(whole.value, v) if stmt.op.adds else v, True)
        places = []
        for (item, scalar), dim in zip(items, shape, strict=True):
            place = self.place(item, scalar)
            inside = (not path and self.lanes.some) or self.lanes.facts.is_inside(
                self.axis(item, scalar), dim)
            if not inside:
                if not isinstance(item, At) or scalar is None or not is_positive(dim):
                    raise Refused(f"{shown_array(array)} could be written outside of its elements where a branch is "
                                  "not taken")
                place = self.clipped(scalar, dim)
            places.append(place)
        if all(p.stride == 0 and not (p.lane is not None and p.lane.batched) for p in places):
            scalars = [p.lane.value for p in places if p.lane is not None]
            index = (Span(0, self.lanes.trips), *(p.item for p in places))
            return Lane(written(stmt.op, whole.value, v, scalars, index), True)
        scalars, flags = self.run_time_places(places)
        found = stmt.op.batch((whole.value, v, *scalars), (True, True, *flags),
                              index=tuple(p.item for p in places))
        return Lane(found, True)

    def _resolved(self, scalar: Value | None) -> Value | None:
        """The int itself, where it is one of two and it is known which."""
        while isinstance(scalar, Var) and (site := self.lanes.sites.get(scalar)) is not None:
            stmt = site.stmt
            if not isinstance(stmt, Let) or not stmt.op.chooses:
                break
            test = self.lanes.sites.get(stmt.args[0]) if isinstance(stmt.args[0], Var) else None
            if test is None or not isinstance(test.stmt, Let) or test.stmt.op.relates is None or any(
                    a.type != I64 for a in test.stmt.args):
                break
            known = self.lanes.facts.decided(test.stmt, site.path, self.lanes.sites)
            if known is None:
                break
            scalar = stmt.args[1 if known else 2]
        return scalar
