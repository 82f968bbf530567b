"""Slices in brackets: Python's rules for bounds, known while transpiling or when the function runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import check, const, size_value
from ..ir.dims import is_dim, symbol
from ..ir.index import Span
from ..ir.nodes import Const, Value
from ..ir.types import I64
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast
from .ranges import surely_nonnegative
from .values import is_scalar, type_of, unboxed

if TYPE_CHECKING:
    from .interpreter import Interpreter


def span_of(it: Interpreter, part: slice, size: Any) -> tuple[Span, list[Value]]:
    """A slice as a Span, by Python's rules for bounds; the value of a start known only at run time."""
    step = 1 if part.step is None else it.static_int(part.step, "the step of a slice")
    if step == 0:
        raise RuleError("slice step cannot be zero", kind=ValueError, code="E306")
    start, stop = (_bound(it, b) for b in (part.start, part.stop))
    if (start is not None and not is_dim(start)) or (stop is not None and not is_dim(stop)):
        return _moving_span(it, start, stop, step, size)
    if step > 0:
        first = _clipped(it, start, 0, size, size)
        last = _clipped(it, stop, size, size, size)
    else:
        first = _clipped(it, start, size - 1, size, size - 1)
        last = -1 if stop is None else _clipped(it, stop, None, size, size - 1)
    length = last - first if step > 0 else first - last
    empty = it.assumptions.is_negative(length - 1)
    if empty:
        return Span(0, 0, step), []
    exact = abs(step) == 1 and empty is not None
    return Span(first, length if exact else dims.slice_length(first, last, step), step), []


def _bound(it: Interpreter, bound: Any) -> Any:
    """A bound of a slice: None, a dimension, or a value known only at run time."""
    bound = unboxed(bound)
    if bound is None or is_dim(bound):
        return bound
    if isinstance(bound, (bool, np.integer)):
        return int(bound)
    if type_of(bound) is int or (is_scalar(bound) and bound.type.kind in "iu"):
        value = bound.value if isinstance(bound, Weak) else bound
        if isinstance(value, Const):
            return int(value.value)
        size = it.as_dim(bound)
        if size is not None and it.assumptions.decidable(size):
            return it.dimension(bound, "a bound of a slice", signed=True)
        return value
    raise RuleError("slice indices must be integers or None or have an __index__ method", kind=TypeError, code="E306")


def _clipped(it: Interpreter, bound: Any, default: Any, size: Any, most: Any) -> Any:
    """A bound as Python clips it: negative ones count from the end."""
    if bound is None:
        return default
    known = it.assumptions
    least = 0 if most is size else -1
    negative = known.is_negative(bound)
    if negative is None:
        raise RuleError(f"whether the bound {bound} of this slice is negative is known only at run time", code="E117",
                        kind=TypeError)
    if negative:
        bound = bound + size
        below = known.is_negative(bound - least)
        return dims.maximum(bound, least) if below is None else least if below else bound
    above = known.is_negative(most - bound)
    return dims.minimum(bound, most) if above is None else most if above else bound


def _moving_span(it: Interpreter, start: Any, stop: Any, step: int, size: Any) -> tuple[Span, list[Value]]:
    """`x[i:i + 3]`: a start known only at run time, with a length known from how the stop is made of it."""
    length = it.span_length(start, stop)
    if step == 1 and length is not None:
        begin = cast(as_value(start), "int64")
        check(ops.logical_and(ops.greater_equal(begin, const(0, I64)),
                              ops.less_equal(ops.add(begin, size_value(length)), size_value(size))),
              "IndexError", f"a slice of {length} elements leaves an axis of {size}")
        return Span(None, length, 1), [begin]
    return _run_time_span(it, start, stop, step, size)


def _run_time_span(it: Interpreter, start: Any, stop: Any, step: int, size: Any) -> tuple[Span, list[Value]]:
    """A slice with bounds known only at run time: its length is a size named after the int that holds it."""
    first, last = (b if is_dim(b) else it.sizes.get(b) for b in (start, stop))
    if step == 1 and (start is None or first is not None) and (stop is None or last is not None):
        low: Any = first or 0
        high: Any = size if stop is None else last
        if all(surely_nonnegative(it, d) for d in (low, high - low, size - high)):
            return Span(None, high - low, 1), [size_value(low)]
    length = size_value(size)
    zero, one = const(0, I64), const(1, I64)
    least, most = (zero, length) if step > 0 else (const(-1, I64), ops.subtract(length, one))

    def clipped(bound: Any, default: Value) -> Value:
        if bound is None:
            return default
        value = cast(as_value(bound), "int64")
        value = ops.select(ops.less(value, zero), ops.add(value, length), value)
        return ops.minimum(ops.maximum(value, least), most)

    begin = clipped(start, least if step > 0 else most)
    end = clipped(stop, most if step > 0 else least)
    if step == 1 and isinstance(begin, Const) and begin.value == 0:
        span = end
    else:
        span = ops.subtract(end, begin) if step > 0 else ops.subtract(begin, end)
    by = const(abs(step), I64)
    count = span if abs(step) == 1 else ops.floor_divide(ops.add(span, const(abs(step) - 1, I64)), by)
    count = ops.maximum(count, zero)
    if isinstance(count, Const):
        return Span(None, int(count.value), step), [begin]
    # Over nothing, the start may lie outside: it is moved to where no element would be read anyway.
    if not (isinstance(begin, Const) and begin.value == 0):
        begin = ops.select(ops.equal(count, zero), zero, begin)
    return Span(None, symbol(count.name, 0), step), [begin]

