"""A value in the trips of a loop, and what is done with such values."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from .. import ops
from ..ir import dims
from ..ir.index import At, Span
from ..ir.nodes import Const, Value, Var
from .findings import shown_name

Items = list[tuple[At | Span, Value | None]]


@dataclass(frozen=True)
class Lane:
    """batched: whether the value has the axis of trips."""

    value: Value
    batched: bool



def is_positive(dim: Any) -> bool:
    low = dims.bounds(dim)[0]
    return low is not None and low > 0


def most(dim: Any) -> int:
    high = dims.bounds(dim)[1]
    return high if high is not None else sys.maxsize


def needs_order(name: str) -> str:
    return f"each trip needs what the trips before have made of `{shown_name(name)}`"


def shown_array(array: Value) -> str:
    return f"`{shown_name(array.name)}`" if isinstance(array, Var) else "an array"


def is_true(value: Value) -> bool:
    return isinstance(value, Const) and bool(value.value)


def filled(scalar: Value, like: Value) -> Value:
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
