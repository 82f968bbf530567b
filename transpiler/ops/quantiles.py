"""NumPy's order statistics: median, quantile, percentile and nanmedian, read off the sorted elements.

Among equal elements the derivative goes to those that a stable sort puts at the place that is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.dims import bounds, product
from ..ir.nodes import Value
from ..ir.types import Type
from .base import RuleError
from .families import broadcast_to
from .numpy_reductions import keep_axes
from .options import is_true, refuse_out
from .shape import slot
from .spelling import Weak, as_value, axes_of, cast, describe, is_value, spelled


def _inexact(a: Any) -> Value:
    x = as_value(a)
    return x if x.type.is_inexact else cast(x, "float64")


def _rows(x: Value, axis: Any) -> tuple[Value, tuple[int, ...]]:
    """The elements along the axes, sorted, as one last axis; the axes."""
    axes = axes_of(axis, x.rank)
    kept = tuple(k for k in range(x.rank) if k not in axes)
    count = product(x.shape[k] for k in axes)
    rows = ops.reshape(ops.transpose(x, axes=(*kept, *axes)), shape=(*(x.shape[k] for k in kept), count))
    return rows if count == 0 else ops.sort(rows, axis=rows.rank - 1), axes


def _empty(ordered: Value, name: str) -> bool:
    """Whether there is nothing to choose from; a size that could be zero is checked at run time."""
    count = ordered.shape[-1]
    if count != 0 and (bounds(count)[0] or 0) < 1:
        check(ops.greater(size_value(count), 0), "ValueError", f"np.{name} of an empty array")
    return bool(count == 0)


def _nan(ordered: Value) -> Value:
    return const(np.nan, Type(ordered.dtype if ordered.type.is_inexact else "float64", ordered.shape[:-1]))


def _unless_nan(ordered: Value, result: Value) -> Value:
    """NaN, which a sort puts last, where a row has one."""
    if not ordered.type.is_inexact:
        return result
    largest = slot(ordered, ordered.rank - 1, ordered.shape[-1] - 1)
    return ops.select(ops.isnan(largest), np.nan, result)


@spelled(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Value:
    """The middle of the sorted elements, or the mean of the two.  NaN if there is one."""
    refuse_out(out, "median")
    x = _inexact(a)
    ordered, axes = _rows(x, axis)
    if _empty(ordered, "median"):
        return keep_axes(_nan(ordered), x, axes, is_true(keepdims))
    last, count = ordered.rank - 1, ordered.shape[-1]
    high = slot(ordered, last, count // 2)
    if isinstance(count, int) and count % 2 == 1:
        result = high
    else:
        result = (slot(ordered, last, (count - 1) // 2) + high) / 2
        if not isinstance(count, int):
            odd = ops.equal(ops.remainder(size_value(count), 2), 1)
            result = ops.select(broadcast_to(odd, high.shape), high, result)
    return keep_axes(_unless_nan(ordered, result), x, axes, is_true(keepdims))


def _at(ordered: Value, place: Value) -> Value:
    """The elements of the last axis at `place`: one place for each row, or one for all."""
    left = ordered.shape[:-1]
    place = broadcast_to(place, left)
    rows = [ops.iota(shape=left, axis=k, dtype="int64") for k in range(len(left))]
    return ops.gather(ordered, *rows, place, axes=tuple(range(ordered.rank)))


@spelled(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Value:
    """The median of what is not NaN; NaN where there is nothing else."""
    refuse_out(out, "nanmedian")
    x = _inexact(a)
    ordered, axes = _rows(x, axis)
    if _empty(ordered, "nanmedian"):
        return keep_axes(_nan(ordered), x, axes, is_true(keepdims))
    there = ops.convert(ops.logical_not(ops.isnan(ordered)), dtype="int64")
    count = ops.sum(there, axes=(ordered.rank - 1,))
    low = _at(ordered, ops.floor_divide(ops.maximum(ops.subtract(count, 1), 0), 2))
    high = _at(ordered, ops.minimum(ops.floor_divide(count, 2), size_value(ordered.shape[-1] - 1)))
    odd = ops.equal(ops.remainder(count, 2), 1)
    result = ops.select(odd, low, (low + high) / 2)
    return keep_axes(ops.select(ops.equal(count, 0), np.nan, result), x, axes, is_true(keepdims))


METHODS = ("linear", "lower", "higher")


def _quantile(ordered: Value, q: Any, method: str, scale: float, dtype: str) -> Value:
    """One quantile of each row: an element, or, where `dtype` says in what to compute it, between neighbours."""
    work = dtype or "float64"
    if isinstance(q, (int, float)):
        if not 0 <= q <= scale:
            raise RuleError("Percentiles must be in the range [0, 100]" if scale == 100 else
                            "Quantiles must be in the range [0, 1]")
        share: Value = const(np.dtype(work).type(q) / np.dtype(work).type(scale), Type(work))
    else:
        if isinstance(q, Weak) or (is_value(q) and not q.shape):
            share = cast(as_value(q), work)
            share = share if scale == 1 else share / scale
        else:
            raise RuleError(f"quantiles must be numbers, or a list of them, not {describe(q)}", kind=TypeError,
                            code="E303")
        check(ops.logical_and(ops.greater_equal(share, 0), ops.less_equal(share, 1)), "ValueError",
              "Quantiles must be in the range [0, 1]")
    gaps = ordered.shape[-1] - 1
    place = share * cast(size_value(gaps), work)
    floor = ops.floor(place)
    low = ops.convert(floor, dtype="int64")
    high = ops.minimum(ops.add(low, 1), size_value(gaps))
    if method == "lower" or (method == "linear" and not dtype):
        result = _at(ordered, low)
    elif method == "higher":
        result = _at(ordered, ops.convert(ops.ceil(place), dtype="int64"))
    else:
        first, second = cast(_at(ordered, low), dtype), cast(_at(ordered, high), dtype)
        part = broadcast_to(place - floor, first.shape)
        gap = second - first        # from the nearer end, as NumPy does
        result = ops.select(ops.greater_equal(part, 0.5), second - gap * (1 - part), first + gap * part)
        result = ops.select(ops.equal(first, second), first, result)
    return _unless_nan(ordered, result)


def _quantiles(name: str, scale: float, a: Any, q: Any, axis: Any, out: Any, method: Any, keepdims: Any,
               weights: Any) -> Value:
    refuse_out(out, name)
    if weights is not None or method not in METHODS:
        raise RuleError(f"np.{name} with weights or method {method!r} is not supported", kind=NotImplementedError,
                        code="E202", help=f"use one of the methods {', '.join(METHODS)}")
    x = as_value(a)
    ordered, axes = _rows(x, axis)
    if x.type.kind == "c":
        raise RuleError("a must be an array of real numbers", kind=TypeError, code="E302")
    if isinstance(q, np.ndarray):
        q = q.tolist()
    elif isinstance(q, np.generic):
        q = q.item()
    several = isinstance(q, (list, tuple))
    if method != "linear" or (scale == 1 and all(isinstance(v, int) for v in (q if several else [q]))):
        dtype = ""              # no number between elements is asked for
    else:
        dtype = np.result_type(x.dtype, "float64" if several or not x.type.is_inexact else x.dtype).name
    empty = _empty(ordered, name)
    found = [keep_axes(_nan(ordered) if empty else _quantile(ordered, one, method, scale, dtype), x, axes,
                       is_true(keepdims)) for one in (q if several else [q])]
    if not several:
        return found[0]
    return ops.stack(*found) if found else const(0, Type(x.dtype, (0, *_nan(ordered).shape)))


@spelled(np.quantile)
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
             keepdims: Any = False, *, weights: Any = None) -> Value:
    return _quantiles("quantile", 1, a, q, axis, out, method, keepdims, weights)


@spelled(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
               method: Any = "linear", keepdims: Any = False, *, weights: Any = None) -> Value:
    return _quantiles("percentile", 100, a, q, axis, out, method, keepdims, weights)
