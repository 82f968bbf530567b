"""NumPy's statistics: mean, var, std, average, ptp and their NaN-skipping forms; SciPy's logsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.dims import product, same_size
from ..ir.nodes import Value
from ..ir.types import Type
from .base import RuleError
from .families import broadcast_to
from .numpy_reductions import extremum, keep_axes, log_sum_exp, masked, numpy_sum, without_nan
from .options import dtype_name, is_given, is_true, refuse_out
from .spelling import as_value, axes_of, broadcast_together, cast, promote, spelled


def _floating(x: Value, dtype: Any) -> Value:
    """x in the dtype that NumPy takes means in: `dtype`, or float64 for bools and integers."""
    if is_given(dtype):
        return cast(x, dtype_name(dtype))
    return x if x.type.is_inexact else cast(x, "float64")


def _count(x: Value, axes: tuple[int, ...], where: Any) -> Value:
    """How many elements are folded, in the (real) dtype of x: a scalar, or an array where there is a mask."""
    dtype = np.zeros(0, x.dtype).real.dtype.name
    if where is True or not is_given(where):
        return cast(size_value(product(x.shape[k] for k in axes)), dtype)
    mask = broadcast_to(cast(as_value(where), "bool"), x.shape)
    return ops.sum(ops.convert(mask, dtype=dtype), axes=axes)


def _quotient(total: Value, count: Value) -> Value:
    """total / count for a real count."""
    return ops.divide(total, cast(count, total.dtype))


@spelled(np.mean, np.ndarray.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
         where: Any = True) -> Value:
    refuse_out(out, "mean")
    x = _floating(as_value(a), dtype)
    shown = masked(x, where, 0)
    axes = axes_of(axis, shown.rank)
    return keep_axes(_quotient(ops.sum(shown, axes=axes), _count(shown, axes, where)), shown, axes, is_true(keepdims))


def _variance(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, given_mean: Any) -> Value:
    """Mean squared distance from the mean, as NumPy computes it: in two passes.  Complex: of the absolute values."""
    if not isinstance(ddof, (int, float)):
        raise RuleError("ddof must be a number known while transpiling", kind=TypeError, code="E303")
    x = _floating(as_value(a), dtype)
    centred = masked(x, where, 0)
    axes = axes_of(axis, centred.rank)
    count = _count(centred, axes, where)
    if is_given(given_mean):
        centre = cast(as_value(given_mean), x.dtype)
    else:
        centre = keep_axes(_quotient(ops.sum(centred, axes=axes), count), centred, axes, True)
    distance = centred - broadcast_to(centre, centred.shape)
    if x.type.kind == "c":
        re, im = ops.real(distance), ops.imag(distance)
        square = re * re + im * im
    else:
        square = distance * distance
    total = ops.sum(masked(square, where, 0), axes=axes)
    if not is_given(ddof) or ddof == 0:
        degrees = count
    else:
        degrees = ops.maximum(ops.subtract(count, float(ddof)), 0)
    result = keep_axes(_quotient(total, degrees), centred, axes, is_true(keepdims))
    return cast(result, dtype_name(dtype, result.dtype))


def _degrees(ddof: Any, correction: Any) -> Any:
    """ddof, under either of its names."""
    if not is_given(correction):
        return ddof
    if ddof != 0:
        raise RuleError("ddof and correction can't be provided simultaneously.")
    return correction


def root(variance: Value) -> Value:
    """The square root with derivative 0 at 0, where the variance has a minimum."""
    flat = ops.equal(variance, 0)
    return ops.select(flat, 0, ops.sqrt(ops.select(flat, 1, variance)))


@spelled(np.var, np.ndarray.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = None, correction: Any = None) -> Value:
    refuse_out(out, "var")
    return _variance(a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean)


@spelled(np.std, np.ndarray.std)
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = None, correction: Any = None) -> Value:
    """The derivative at zero variance is 0."""
    refuse_out(out, "std")
    return root(_variance(a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean))


@spelled(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *,
            keepdims: Any = False) -> Any:
    """Weighted mean.  Weights that sum to zero raise ZeroDivisionError, as in NumPy."""
    x = as_value(a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        if not returned:
            return result
        axes = axes_of(axis, x.rank)
        return result, broadcast_to(cast(size_value(product(x.shape[k] for k in axes)), result.dtype), result.shape)
    w = as_value(weights)
    axes = axes_of(axis, x.rank)
    if w.rank != x.rank or any(not same_size(d, e) for d, e in zip(w.shape, x.shape)):
        if axis is None:
            raise RuleError("Axis must be specified when shapes of a and weights differ.", kind=TypeError)
        if w.rank != len(axes):
            raise RuleError("Shape of weights must be consistent with shape of a along specified axis.")
        order = axes
        if isinstance(axis, (tuple, list)):     # weights' axes are in the order given
            order = tuple(k % x.rank for k in axis)
        w = ops.broadcast(w, shape=x.shape, axes=order)
    x, w = promote(x, w)
    if not x.type.is_inexact:
        x, w = cast(x, "float64"), cast(w, "float64")
    scale = ops.sum(w, axes=axes)
    check(ops.all(ops.not_equal(scale, 0), axes=tuple(range(scale.rank))), "ZeroDivisionError",
          "Weights sum to zero, can't be normalized")
    result = keep_axes(ops.sum(x * w, axes=axes) / scale, x, axes, is_true(keepdims))
    return (result, keep_axes(scale, x, axes, is_true(keepdims))) if returned else result


@spelled(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    refuse_out(out, "ptp")
    x = as_value(a)
    return extremum("max", x, axis, keepdims, None, True) - extremum("min", x, axis, keepdims, None, True)


# ---------------------------------------------------------------------------------------------------------------
# skipping NaN


def _present(x: Value, where: Any) -> Value:
    """Where there is an element that counts."""
    there = ops.logical_not(ops.isnan(x)) if x.type.is_inexact else const(True, Type("bool", x.shape))
    return masked(there, where, False)


@spelled(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
            where: Any = True) -> Value:
    """The mean of what is not NaN; NaN where there is nothing else."""
    refuse_out(out, "nanmean")
    x = _floating(as_value(a), dtype)
    return mean(without_nan(x, 0), axis, None, None, keepdims, where=_present(x, where))


def _nan_variance(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, given_mean: Any) -> Value:
    x = _floating(as_value(a), dtype)
    there = _present(x, where)
    result = _variance(without_nan(x, 0), axis, dtype, ddof, keepdims, there, given_mean)
    count = numpy_sum(there, axis, keepdims=keepdims)
    return ops.select(ops.less_equal(cast(count, "float64"), float(ddof)), np.nan, result)


@spelled(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
           where: Any = True, mean: Any = None, correction: Any = None) -> Value:
    refuse_out(out, "nanvar")
    return _nan_variance(a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean)


@spelled(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
           where: Any = True, mean: Any = None, correction: Any = None) -> Value:
    refuse_out(out, "nanstd")
    return root(_nan_variance(a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean))


# ---------------------------------------------------------------------------------------------------------------
# SciPy


@spelled(("scipy.special", "logsumexp"))
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: Any = False, return_sign: Any = False) -> Any:
    """log(sum(b * exp(a))), for real a and b."""
    x = as_value(a)
    if x.type.kind == "c":
        raise RuleError("logsumexp of complex numbers is not supported", kind=NotImplementedError, code="E202")
    x = x if x.type.is_inexact else cast(x, "float64")
    weights = None
    if b is not None:
        x, weights = broadcast_together(*promote(x, b))
        x = ops.select(ops.equal(weights, 0), -np.inf, x)
    axes = axes_of(axis, x.rank)
    result, sign = log_sum_exp(x, axes, weights)
    result = keep_axes(result, x, axes, is_true(keepdims))
    if return_sign:
        return result, keep_axes(sign, x, axes, is_true(keepdims))
    if weights is None:
        return result
    return ops.select(ops.less(keep_axes(sign, x, axes, is_true(keepdims)), 0), np.nan, result)
