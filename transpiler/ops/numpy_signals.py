"""NumPy's functions of sampled signals: convolve, correlate, interp."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const, size_value
from ..ir.dims import bounds, floordiv, maximum, minimum, same_size
from ..ir.index import At
from ..ir.nodes import Value
from .base import RuleError
from .families import broadcast_to
from .shape import part
from .spelling import Weak, as_value, cast, promote, python_type, spelled

# --- convolution -------------------------------------------------------------------------------------------------


def _signal(x: Any, name: str) -> Value:
    value = as_value(x)
    if value.rank > 1:
        raise RuleError(f"{name}: object too deep for desired array", code="E302")
    if not value.rank:
        value = ops.reshape(value, shape=(1,))
    if value.shape[0] == 0:
        raise RuleError(f"{name}: an operand cannot be empty", kind=ValueError, code="E208")
    return value


def _full_convolution(a: Value, v: Value) -> Value:
    """sum over j of a[k - j] v[j] for all k where there is any."""
    (n,), (m,) = a.shape, v.shape
    shifted = ops.skew(ops.broadcast(a, shape=(n, m), axes=(0,)), size=n + m - 1, down=True)
    return ops.sum(shifted * ops.broadcast(v, shape=shifted.shape, axes=(1,)), axes=(1,))


def _valid_correlation(a: Value, v: Value) -> Value:
    """sum over j of a[k + j] v[j] for all k where all of v overlaps a, which is not shorter."""
    (n,), (m,) = a.shape, v.shape
    shifted = ops.skew(ops.broadcast(a, shape=(n, m), axes=(0,)), size=n - m + 1, down=False)
    return ops.sum(shifted * ops.broadcast(v, shape=shifted.shape, axes=(1,)), axes=(1,))


def _convolved(a: Value, v: Value, mode: Any, name: str) -> Value:
    (n,), (m,) = a.shape, v.shape
    if mode in (2, "full"):
        return _full_convolution(a, v)
    if mode in (0, "valid"):
        low, high = bounds(n - m)
        if low is not None and low >= 0:
            return _valid_correlation(a, ops.reverse(v, axes=(0,)))
        if high is not None and high <= 0:
            return _valid_correlation(v, ops.reverse(a, axes=(0,)))
        return part(_full_convolution(a, v), 0, minimum(n, m) - 1, maximum(n, m) - minimum(n, m) + 1)
    if mode in (1, "same"):
        swapped = minimum(maximum(m - n, 0), 1) if name == "correlate" else 0       # NumPy then correlates backwards
        return part(_full_convolution(a, v), 0, floordiv(minimum(n, m) - 1 + swapped, 2), maximum(n, m))
    raise RuleError(f"mode of np.{name} must be one of 'full', 'same' or 'valid', not {mode!r}",
                    kind=ValueError, code="E208")


@spelled(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Value:
    left, right = promote(_signal(a, "convolve"), _signal(v, "convolve"))
    return _convolved(left, right, mode, "convolve")


@spelled(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Value:
    """sum over j of a[j + k] conj(v[j]), which is a convolution with v reversed."""
    left, right = promote(_signal(a, "correlate"), _signal(v, "correlate"))
    right = ops.reverse(ops.conj(right) if right.type.kind == "c" else right, axes=(0,))
    return _convolved(left, right, mode, "correlate")


# --- interpolation -----------------------------------------------------------------------------------------------


@spelled(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Value:
    """Through the points (xp, fp) by straight lines, xp rising.  At a point the slope is that of the line after it,
    and 0 at the last; beyond the ends the value is constant."""
    values, points, heights = as_value(x, "float64"), as_value(xp, "float64"), as_value(fp)
    heights = cast(heights, "complex128" if heights.type.kind == "c" else "float64")
    if points.rank != 1 or heights.rank != 1:
        raise RuleError("Data points must be 1-D sequences", code="E302")
    if not same_size(points.shape[0], heights.shape[0]):
        raise RuleError("fp and xp are not of the same length.", code="E302")
    if points.shape[0] == 0:
        raise RuleError("array of sample points is empty", kind=ValueError, code="E208")
    if period is not None:
        values, points, heights = _periodic(values, points, heights, period)
        left = right = None
    n = points.shape[0]
    first, last = (ops.load(heights, size_value(k), index=(At(),)) for k in (0, n - 1))
    start, stop = (ops.load(points, size_value(k), index=(At(),)) for k in (0, n - 1))
    below = _end(left, first, heights.dtype)
    above = _end(right, last, heights.dtype)
    everywhere = lambda v: broadcast_to(v, values.shape)
    if n == 1:
        inside = everywhere(first)
    else:
        at = ops.searchsorted(points, values, side="right", stack=0) - const(1, values.type.with_dtype("int64"))
        at = ops.minimum(ops.maximum(at, const(0, at.type)), broadcast_to(size_value(n - 2), at.shape))
        after = at + const(1, at.type)
        x0, x1 = (ops.gather(points, k, axes=(0,)) for k in (at, after))
        y0, y1 = (ops.gather(heights, k, axes=(0,)) for k in (at, after))
        share = cast(values - x0, heights.dtype) / cast(x1 - x0, heights.dtype)
        inside = share * (y1 - y0) + y0
        inside = ops.select(ops.equal(values, everywhere(stop)), everywhere(last), inside)
    found = ops.select(values > everywhere(stop), everywhere(above), inside)
    return ops.select(values < everywhere(start), everywhere(below), found)


def _end(given: Any, known: Value, dtype: str) -> Value:
    return known if given is None else as_value(given.value if isinstance(given, Weak) else given, dtype)


def _periodic(x: Value, points: Value, heights: Value, period: Any) -> tuple[Value, Value, Value]:
    """The same over one period, with a point of the neighbouring periods at each end."""
    if python_type(period) in (int, float) and not isinstance(period, Weak) and period == 0:
        raise RuleError("period must be a non-zero value", kind=ValueError, code="E208")
    length = ops.absolute(as_value(period, "float64"))
    x, points = ops.remainder(x, length), ops.remainder(points, length)
    order = ops.argsort(points, axis=0, stable=True)
    points, heights = (ops.gather(v, order, axes=(0,)) for v in (points, heights))
    last = points.shape[0] - 1
    points = ops.concatenate(part(points, 0, last, 1) - length, points, part(points, 0, 0, 1) + length, axis=0)
    return x, points, ops.concatenate(part(heights, 0, last, 1), heights, part(heights, 0, 0, 1), axis=0)
