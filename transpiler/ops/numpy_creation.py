"""NumPy's ways of creating arrays: from other arrays, filled, and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const
from ..ir.dims import DimExpr, bounds, maximum, slice_length
from ..ir.nodes import Const, Value
from ..ir.types import Type
from .base import RuleError
from .families import broadcast_to
from .options import dtype_name, is_given, refuse_options
from .spelling import (
    as_value,
    axis_of,
    broadcast_together,
    cast,
    describe,
    result_dtype,
    shape_of,
    spelled,
    static_int,
)

# ---------------------------------------------------------------------------------------------------------------
# NumPy's names: arrays from arrays


def _with_rank(x: Value, ndmin: Any) -> Value:
    missing = static_int(ndmin, "ndmin") - x.rank
    return ops.reshape(x, shape=(*(1,) * missing, *x.shape)) if missing > 0 else x


@spelled(np.array)
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: Any = 0,
          ndmax: Any = 0, like: Any = None) -> Value:
    refuse_options("array", like)
    return _with_rank(as_value(object, dtype_name(dtype) if is_given(dtype) else None), ndmin)


@spelled(np.asarray, np.asanyarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None,
            like: Any = None) -> Value:
    refuse_options("asarray", like, device)
    return as_value(a, dtype_name(dtype) if is_given(dtype) else None)


@spelled(np.ascontiguousarray, np.asfortranarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Value:
    """At least one axis, as in NumPy; the layout is the lowering's affair."""
    return _with_rank(asarray(a, dtype, like=like), 1)


@spelled(np.copy, np.ndarray.copy)
def copy(a: Any, order: Any = "K", subok: Any = False) -> Value:
    """Values are never written to, so the value itself is its copy."""
    return as_value(a)


@spelled(np.ndarray.astype, np.astype)
def astype(a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True,
           device: Any = None) -> Value:
    x, wanted = as_value(a), dtype_name(dtype)
    if not np.can_cast(x.dtype, wanted, casting):
        raise RuleError(f"Cannot cast array data from dtype('{x.dtype}') to dtype('{wanted}') according to the rule "
                        f"'{casting}'", kind=TypeError, code="E302")
    return cast(x, wanted)


# ---------------------------------------------------------------------------------------------------------------
# NumPy's names: filled arrays


@spelled(np.zeros, np.empty)
def zeros(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Value:
    """np.empty gives zeros too: what it holds must not be read anyhow."""
    refuse_options("zeros", like, device)
    return const(0, Type(dtype_name(dtype), shape_of(shape)))


@spelled(np.ones)
def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Value:
    refuse_options("ones", like, device)
    return const(1, Type(dtype_name(dtype), shape_of(shape)))


@spelled(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None,
         like: Any = None) -> Value:
    refuse_options("full", like, device)
    return broadcast_to(as_value(fill_value, dtype_name(dtype) if is_given(dtype) else None), shape_of(shape))


def _like(a: Any, dtype: Any, shape: Any) -> Type:
    prototype = as_value(a)
    return Type(dtype_name(dtype, prototype.dtype), prototype.shape if shape is None else shape_of(shape))


@spelled(np.zeros_like, np.empty_like)
def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *,
               device: Any = None) -> Value:
    refuse_options("zeros_like", None, device)
    return const(0, _like(a, dtype, shape))


@spelled(np.ones_like)
def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *,
              device: Any = None) -> Value:
    refuse_options("ones_like", None, device)
    return const(1, _like(a, dtype, shape))


@spelled(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *,
              device: Any = None) -> Value:
    wanted = _like(a, dtype, shape)
    return broadcast_to(as_value(fill_value, wanted.dtype), wanted.shape)


# ---------------------------------------------------------------------------------------------------------------
# NumPy's names: ranges


def _length(start: Any, stop: Any, step: Any) -> Any:
    """How many elements arange gives: ceil((stop - start) / step), at least none."""
    if any(isinstance(v, DimExpr) for v in (start, stop, step)):
        step = static_int(step, "the step of np.arange")
        if not all(isinstance(v, (int, np.integer, DimExpr)) for v in (start, stop)):
            raise RuleError("np.arange of a size and a float is not supported", kind=NotImplementedError, code="E303",
                            help="use np.arange(n) * step + start")
        return slice_length(start, stop, step)
    return max(math.ceil((stop - start) / step), 0)


def _bound(bound: Any) -> Any:
    """A bound of arange as a number or a size."""
    if isinstance(bound, Const) and not bound.shape:
        bound = np.dtype(bound.dtype).type(bound.value)
    if not isinstance(bound, (int, float, np.number, DimExpr)):
        raise RuleError(f"np.arange needs bounds known while transpiling, not {describe(bound)}", code="E303",
                        kind=TypeError, help="take the length from a shape: np.arange(x.shape[0])")
    return bound


@spelled(np.arange)
def arange(start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None,
           like: Any = None) -> Value:
    """The bounds are numbers or sizes known while transpiling.  As in NumPy, element i is start + i * (next - start),
    where start and next = start + step were cast to the result's dtype first."""
    refuse_options("arange", like, device)
    if start is None and stop is None:
        raise RuleError("arange() requires stop to be specified.", kind=TypeError)
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_bound(b) for b in (0 if start is None else start, stop, 1 if step is None else step))
    if not isinstance(step, DimExpr) and step == 0:
        raise RuleError("Maximum allowed size exceeded")
    count = _length(start, stop, step)
    wanted = dtype_name(dtype, result_dtype(start, stop, step))
    if np.dtype(wanted).kind not in "iuf":
        raise RuleError(f"np.arange with dtype {wanted} is not supported", kind=TypeError, code="E302")
    if isinstance(start, DimExpr):
        first, delta = as_value(start, wanted), const(step, Type(wanted))
    else:
        number = np.dtype(wanted).type
        with np.errstate(all="ignore"):
            first = const(number(start).item(), Type(wanted))
            delta = const((number(start + step) - number(start)).item(), Type(wanted))
    steps = ops.iota(shape=(count,), axis=0, dtype=wanted)
    if not (isinstance(delta, Const) and delta.value == 1):
        steps = ops.multiply(steps, delta)
    if isinstance(first, Const) and first.value == 0:
        return steps
    return ops.add(broadcast_to(first, (count,)), steps)


def _along(values: Value, axis: int) -> Value:
    """Samples along a leading axis moved to `axis` of the result."""
    place = axis_of(axis, values.rank)
    order = [*range(1, values.rank)]
    order.insert(place, 0)
    return ops.transpose(values, axes=tuple(order))


def _spaced(start: Any, stop: Any, num: Any, endpoint: Any) -> tuple[Value, Value]:
    """num values from start to stop in their inexact dtype (samples first), and the step between them."""
    count = num if isinstance(num, DimExpr) else static_int(num, "num")
    if isinstance(count, int) and count < 0:
        raise RuleError(f"Number of samples, {count}, must be non-negative.")
    common = result_dtype(start, stop, 1.0)
    first, last = broadcast_together(as_value(start, common), as_value(stop, common))
    shape = (count, *first.shape)
    gaps = count - 1 if endpoint else count
    places = ops.broadcast(ops.iota(shape=(count,), axis=0, dtype=common), shape=shape, axes=(0,))
    low = broadcast_to(first, shape)
    delta = last - first
    if isinstance(gaps, int) and gaps <= 0:
        return low + places * broadcast_to(delta, shape), const(np.nan, delta.type)
    step = delta / as_value(maximum(gaps, 1), common)
    values = places * broadcast_to(step, shape) + low
    if endpoint:        # the last of several samples is the stop itself
        ends = ops.equal(ops.iota(shape=shape, axis=0, dtype="int64"), as_value(gaps))
        if (bounds(gaps)[0] or 0) < 1:
            ends = ops.logical_and(ends, broadcast_to(ops.greater(as_value(gaps), 0), shape))
        values = ops.select(ends, broadcast_to(last, shape), values)
    return values, step


@spelled(np.linspace)
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
             axis: Any = 0, *, device: Any = None) -> Any:
    refuse_options("linspace", None, device)
    values, step = _spaced(start, stop, num, endpoint)
    values = _along(values, axis)
    if is_given(dtype):
        if np.dtype(dtype_name(dtype)).kind in "iu":
            values = ops.floor(values)
        values = cast(values, dtype_name(dtype))
    return (values, step) if retstep else values


@spelled(np.logspace)
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None,
             axis: Any = 0) -> Value:
    power = as_value(base, result_dtype(start, stop, base, 1.0))
    if power.rank:
        raise RuleError("np.logspace with several bases is not supported", kind=NotImplementedError, code="E202",
                        help="use base ** np.linspace(start, stop, num)")
    exponents, _ = _spaced(as_value(start, power.dtype), as_value(stop, power.dtype), num, endpoint)
    values = _along(ops.power(broadcast_to(power, exponents.shape), exponents), axis)
    return cast(values, dtype_name(dtype)) if is_given(dtype) else values


@spelled(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Value:
    """Real bounds of one sign: the spacing is even in the logarithm, and the ends are exact."""
    common = result_dtype(start, stop, 1.0)
    if np.dtype(common).kind == "c":
        raise RuleError("np.geomspace of complex numbers is not supported", kind=NotImplementedError, code="E202",
                        help="use np.exp(np.linspace(np.log(a), np.log(b), n))")
    first, last = broadcast_together(as_value(start, common), as_value(stop, common))
    check(ops.all(ops.not_equal(first * last, 0), axes=tuple(range(first.rank))), "ValueError",
          "Geometric sequence cannot include zero")
    sign = ops.sign(first)
    logs, _ = _spaced(ops.log10(first * sign), ops.log10(last * sign), num, endpoint)
    shape = logs.shape
    values = ops.power(const(10, logs.type), logs)
    place = ops.iota(shape=shape, axis=0, dtype="int64")
    values = ops.select(ops.equal(place, 0), broadcast_to(first * sign, shape), values)
    if endpoint:
        values = ops.select(ops.equal(place, as_value(shape[0] - 1)), ops.select(
            ops.equal(place, 0), broadcast_to(first * sign, shape), broadcast_to(last * sign, shape)), values)
    values = _along(values * broadcast_to(sign, shape), axis)
    return cast(values, dtype_name(dtype)) if is_given(dtype) else values


@spelled(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    shape, name = shape_of(dimensions), dtype_name(dtype)
    if sparse:
        return tuple(ops.iota(shape=tuple(d if a == k else 1 for a, d in enumerate(shape)), axis=k, dtype=name)
                     for k in range(len(shape)))
    if not shape:
        return const(0, Type(name, (0,)))
    return ops.stack(*[ops.iota(shape=shape, axis=k, dtype=name) for k in range(len(shape))])
