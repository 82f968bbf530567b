"""NumPy's reductions to one number: `axis`, `dtype`, `keepdims`, `initial` and `where` over sum, prod, max, min, any,
all, argmax and argmin, their NaN-skipping forms, and the `reduce` method of ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.dims import bounds, product
from ..ir.nodes import Value
from ..ir.types import Type
from .base import RuleError
from .families import broadcast_shapes, broadcast_to
from .options import dtype_name, is_given, is_true, refuse_out
from .reduction import identity_of
from .spelling import as_value, axes_of, axis_of, cast, spelled, ufunc_dtypes


def keep_axes(reduced: Value, before: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The reduced array with axes of size 1 where `before` was reduced, if keepdims."""
    if not keepdims:
        return reduced
    return ops.reshape(reduced, shape=tuple(1 if k in axes else d for k, d in enumerate(before.shape)))


def masked(x: Value, where: Any, fill: Any) -> Value:
    """x with `fill`, which is neutral, where the mask is false; both are stretched to their common shape."""
    if where is True or where is None or where is np._NoValue:
        return x
    where = cast(as_value(where), "bool")
    shape = broadcast_shapes(x.shape, where.shape)
    return ops.select(broadcast_to(where, shape), broadcast_to(x, shape), fill)


def widened(dtype: str) -> str:
    """The dtype in which NumPy sums and multiplies: bools and short integers in 64 bits."""
    kind = np.dtype(dtype).kind
    if kind in "bi":
        return "int64"
    return "uint64" if kind == "u" else dtype


def _accumulate(name: str, neutral: int, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any,
                where: Any) -> Value:
    """sum and prod."""
    refuse_out(out, name)
    x = as_value(a)
    wanted = dtype_name(dtype, widened(x.dtype))
    if wanted == "bool":        # NumPy adds bools by `or` and multiplies them by `and`
        x, fold = cast(x, "bool"), ops.any if name == "sum" else ops.all
        x = masked(x, where, bool(neutral))
    else:
        x, fold = cast(x, wanted), ops.sum if name == "sum" else ops.prod
        x = masked(x, where, neutral)
    axes = axes_of(axis, x.rank)
    result = fold(x, axes=axes)
    if is_given(initial):
        start = as_value(initial, wanted)
        join = {"sum": ops.add, "prod": ops.multiply}[name] if wanted != "bool" else (
            ops.logical_or if name == "sum" else ops.logical_and)
        result = join(result, broadcast_to(start, result.shape))
    return keep_axes(result, x, axes, is_true(keepdims))


@spelled(np.sum, np.ndarray.sum)
def numpy_sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
              initial: Any = None, where: Any = True) -> Value:
    return _accumulate("sum", 0, a, axis, dtype, out, keepdims, initial, where)


@spelled(np.prod, np.ndarray.prod)
def numpy_prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
               initial: Any = None, where: Any = True) -> Value:
    return _accumulate("prod", 1, a, axis, dtype, out, keepdims, initial, where)


def extremum(name: str, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Value:
    """max and min ("max" or "min").  Without elements there must be an initial value."""
    x = as_value(a)
    axes = axes_of(axis, x.rank)
    ufunc = {"max": "maximum", "min": "minimum"}[name]
    if where is not True and is_given(where):
        if not is_given(initial):
            raise RuleError(f"reduction operation '{ufunc}' does not have an identity, so to use a where mask one has "
                            "to specify 'initial'")
        x = masked(x, where, identity_of(name, x.type).value)
        axes = axes_of(axis, x.rank)
    keepdims = is_true(keepdims)
    if not is_given(initial):
        count = product(x.shape[k] for k in axes)
        if not isinstance(count, int) and (bounds(count)[0] or 0) < 1:
            check(ops.greater(size_value(count), 0), "ValueError",
                  f"zero-size array to reduction operation {ufunc} which has no identity")
        return keep_axes(getattr(ops, name)(x, axes=axes), x, axes, keepdims)
    start = as_value(initial, x.dtype)
    if any(x.shape[k] == 0 for k in axes):
        left = tuple(d for k, d in enumerate(x.shape) if k not in axes)
        return keep_axes(broadcast_to(start, left), x, axes, keepdims)
    result = getattr(ops, name)(x, axes=axes)
    join = getattr(ops, ufunc) if x.dtype != "bool" else ops.logical_or if name == "max" else ops.logical_and
    return keep_axes(join(result, broadcast_to(start, result.shape)), x, axes, keepdims)


@spelled(np.max, np.ndarray.max)        # np.amax is np.max
def numpy_max(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
              where: Any = True) -> Value:
    refuse_out(out, "max")
    return extremum("max", a, axis, keepdims, initial, where)


@spelled(np.min, np.ndarray.min)
def numpy_min(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
              where: Any = True) -> Value:
    refuse_out(out, "min")
    return extremum("min", a, axis, keepdims, initial, where)


for _alias, _spelling in ((np.amax, numpy_max), (np.amin, numpy_min)):
    if _alias not in (np.max, np.min):
        spelled(_alias)(_spelling)


def _truth(name: str, a: Any, axis: Any, keepdims: Any, where: Any) -> Value:
    x = masked(cast(as_value(a), "bool"), where, name == "all")
    axes = axes_of(axis, x.rank)
    return keep_axes(getattr(ops, name)(x, axes=axes), x, axes, is_true(keepdims))


@spelled(np.any, np.ndarray.any)
def numpy_any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Value:
    refuse_out(out, "any")
    return _truth("any", a, axis, keepdims, where)


@spelled(np.all, np.ndarray.all)
def numpy_all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Value:
    refuse_out(out, "all")
    return _truth("all", a, axis, keepdims, where)


def _position(name: str, x: Value, axis: Any, keepdims: Any) -> Value:
    before = x
    if axis is None:
        x, along, axes = ops.reshape(x, shape=(product(x.shape),)), 0, tuple(range(x.rank))
    else:
        along = axis_of(axis, x.rank)
        axes = (along,)
    length = x.shape[along]
    if not isinstance(length, int) and (bounds(length)[0] or 0) < 1:
        check(ops.greater(size_value(length), 0), "ValueError", f"attempt to get {name} of an empty sequence")
    return keep_axes(getattr(ops, name)(x, axes=(along,)), before, axes, is_true(keepdims))


@spelled(np.argmax, np.ndarray.argmax)
def numpy_argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Value:
    refuse_out(out, "argmax")
    return _position("argmax", as_value(a), axis, keepdims)


@spelled(np.argmin, np.ndarray.argmin)
def numpy_argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Value:
    refuse_out(out, "argmin")
    return _position("argmin", as_value(a), axis, keepdims)


@spelled(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Value:
    return numpy_sum(cast(as_value(a), "bool"), axis, keepdims=keepdims)


# ---------------------------------------------------------------------------------------------------------------
# skipping NaN


def without_nan(x: Value, fill: Any) -> Value:
    """x with `fill` in place of NaN; its derivative there is zero."""
    return ops.select(ops.isnan(x), fill, x) if x.type.is_inexact else x


@spelled(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
           where: Any = True) -> Value:
    return numpy_sum(without_nan(as_value(a), 0), axis, dtype, out, keepdims, initial, where)


@spelled(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
            where: Any = True) -> Value:
    return numpy_prod(without_nan(as_value(a), 1), axis, dtype, out, keepdims, initial, where)


def _nan_extremum(name: str, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Value:
    """NaN where there is nothing but NaN, unless an initial value is given."""
    refuse_out(out, f"nan{name}")
    x = as_value(a)
    if x.type.kind != "f":
        return extremum(name, x, axis, keepdims, initial, where)
    result = extremum(name, without_nan(x, identity_of(name, x.type).value), axis, keepdims, initial, where)
    if is_given(initial):
        return result
    empty = numpy_all(ops.isnan(x), axis, keepdims=keepdims)
    return ops.select(empty, np.nan, result)


@spelled(np.nanmax)
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
           where: Any = True) -> Value:
    return _nan_extremum("max", a, axis, out, keepdims, initial, where)


@spelled(np.nanmin)
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
           where: Any = True) -> Value:
    return _nan_extremum("min", a, axis, out, keepdims, initial, where)


# ---------------------------------------------------------------------------------------------------------------
# ufunc.reduce: as the functions, but over the first axis unless told otherwise


def _spell_reduce(ufunc: np.ufunc, reduce: Callable[..., Value]) -> None:
    def call(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
             initial: Any = None, where: Any = True) -> Value:
        refuse_out(out, f"{ufunc.__name__}.reduce")
        x = as_value(array)
        if x.rank == 0 and axis == 0:
            axis = None
        return reduce(x, axis, dtype, keepdims, initial, where)

    call.__name__ = f"{ufunc.__name__}_reduce"
    spelled((ufunc, "reduce"))(call)


def _extremum_reduce(name: str) -> Callable[..., Value]:
    def reduce(x: Value, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Value:
        return extremum(name, cast(x, dtype_name(dtype, x.dtype)), axis, keepdims, initial, where)

    return reduce


def _truth_reduce(name: str) -> Callable[..., Value]:
    def reduce(x: Value, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Value:
        result = _truth(name, x, axis, keepdims, where)
        if not is_given(initial):
            return result
        join = ops.logical_or if name == "any" else ops.logical_and
        return join(result, broadcast_to(as_value(initial, "bool"), result.shape))

    return reduce


def _parity_reduce(x: Value, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Value:
    """logical_xor: whether an odd number of elements is true."""
    odd = ops.equal(ops.remainder(numpy_sum(cast(x, "bool"), axis, None, None, keepdims, None, where), 2), 1)
    if not is_given(initial):
        return odd
    return ops.logical_xor(odd, broadcast_to(as_value(initial, "bool"), odd.shape))


_spell_reduce(np.add, lambda x, axis, dtype, keepdims, initial, where: numpy_sum(
    x, axis, dtype, None, keepdims, initial, where))
_spell_reduce(np.multiply, lambda x, axis, dtype, keepdims, initial, where: numpy_prod(
    x, axis, dtype, None, keepdims, initial, where))
_spell_reduce(np.maximum, _extremum_reduce("max"))
_spell_reduce(np.minimum, _extremum_reduce("min"))
_spell_reduce(np.fmax, lambda x, axis, dtype, keepdims, initial, where: nanmax(x, axis, None, keepdims, initial, where))
_spell_reduce(np.fmin, lambda x, axis, dtype, keepdims, initial, where: nanmin(x, axis, None, keepdims, initial, where))
_spell_reduce(np.logical_or, _truth_reduce("any"))
_spell_reduce(np.logical_and, _truth_reduce("all"))
_spell_reduce(np.logical_xor, _parity_reduce)


@spelled((np.logaddexp, "reduce"))
def logaddexp_reduce(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
                     initial: Any = None, where: Any = True) -> Value:
    """log(sum(exp(x))): the identity is -inf."""
    refuse_out(out, "logaddexp.reduce")
    x = as_value(array)
    x = cast(x, dtype_name(dtype, ufunc_dtypes(np.logaddexp, (x, x))[-1]))
    x = masked(x, where, -np.inf)
    axes = axes_of(axis if x.rank else None, x.rank)
    result, _ = log_sum_exp(x, axes)
    if is_given(initial):
        result = ops.logaddexp(result, broadcast_to(as_value(initial, x.dtype), result.shape))
    return keep_axes(result, x, axes, is_true(keepdims))


def log_sum_exp(x: Value, axes: tuple[int, ...], weights: Value | None = None) -> tuple[Value, Value]:
    """log(abs(total)) and sign(total) of total = sum(weights * exp(x)), without overflow, for real x.

    The largest element is taken out first.  The result does not depend on what is taken out, so that counts as a
    constant: the derivative is softmax.  Where all elements are -inf, the result is -inf and the derivative 0.
    """
    if any(x.shape[k] == 0 for k in axes):
        left = Type(x.dtype, tuple(d for k, d in enumerate(x.shape) if k not in axes))
        return const(-np.inf, left), const(0, left)
    top = ops.max(x, axes=axes)
    top = ops.stop_gradient(ops.select(ops.isfinite(top), top, 0))
    kept = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
    terms = ops.exp(x - broadcast_to(ops.reshape(top, shape=kept), x.shape))
    total = ops.sum(terms if weights is None else weights * terms, axes=axes)
    nothing = ops.equal(total, 0)
    sign = const(1, total.type) if weights is None else ops.sign(total)
    size = total if weights is None else ops.absolute(total)
    return ops.select(nothing, -np.inf, ops.log(ops.select(nothing, 1, size)) + top), sign
