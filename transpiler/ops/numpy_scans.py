"""NumPy's running totals and differences: cumsum, cumprod, ufunc.accumulate, diff, gradient, trapezoid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, size_value
from ..ir.dims import bounds, maximum, minimum, product
from ..ir.nodes import Value
from .base import RuleError
from .families import broadcast_to
from .numpy_joining import numpy_concatenate
from .numpy_reductions import numpy_sum, widened, without_nan
from .options import dtype_name, is_given, refuse_out
from .shape import part
from .spelling import as_value, axis_of, cast, promote, spelled, static_int


def _running(a: Any, axis: Any, scan: Callable[..., Value]) -> Value:
    """The scan along an axis; of the flattened array without one."""
    x = as_value(a)
    if axis is None:
        return scan(ops.reshape(x, shape=(product(x.shape),)), axis=0, reverse=False)
    return scan(x, axis=axis_of(axis, x.rank), reverse=False)


def _accumulated(a: Any, axis: Any, dtype: Any, name: str) -> Value:
    x = as_value(a)
    wanted = dtype_name(dtype, widened(x.dtype))
    if wanted == "bool":
        return _running(cast(x, "bool"), axis, ops.cummax if name == "cumsum" else ops.cummin)
    return _running(cast(x, wanted), axis, getattr(ops, name))


@spelled(np.cumsum, np.ndarray.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Value:
    refuse_out(out, "cumsum")
    return _accumulated(a, axis, dtype, "cumsum")


@spelled(np.cumprod, np.ndarray.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Value:
    refuse_out(out, "cumprod")
    return _accumulated(a, axis, dtype, "cumprod")


def _cumulative(x: Any, axis: Any, dtype: Any, include_initial: Any, name: str) -> Value:
    """NumPy 2's cumulative_sum and cumulative_prod: the axis may be left out for vectors only."""
    value = as_value(x)
    if axis is None:
        if value.rank != 1:
            raise RuleError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    along = axis_of(axis, value.rank)
    found = _accumulated(value, along, dtype, name)
    if not include_initial:
        return found
    start = as_value(0 if name == "cumsum" else 1, found.dtype)
    first = broadcast_to(start, tuple(1 if k == along else d for k, d in enumerate(found.shape)))
    return ops.concatenate(first, found, axis=along)


@spelled(np.cumulative_sum)
def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None,
                   include_initial: Any = False) -> Value:
    refuse_out(out, "cumulative_sum")
    return _cumulative(x, axis, dtype, include_initial, "cumsum")


@spelled(np.cumulative_prod)
def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None,
                    include_initial: Any = False) -> Value:
    refuse_out(out, "cumulative_prod")
    return _cumulative(x, axis, dtype, include_initial, "cumprod")


@spelled(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Value:
    return cumsum(without_nan(as_value(a), 0), axis, dtype, out)


@spelled(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Value:
    return cumprod(without_nan(as_value(a), 1), axis, dtype, out)


# ---------------------------------------------------------------------------------------------------------------
# ufunc.accumulate


def _spell_accumulate(ufunc: np.ufunc, scan: Callable[[Value, Any, Any], Value]) -> None:
    def call(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Value:
        refuse_out(out, f"{ufunc.__name__}.accumulate")
        x = as_value(array)
        if x.rank == 0:
            raise RuleError("cannot accumulate on a scalar", kind=TypeError)
        return scan(x, axis, dtype)

    call.__name__ = f"{ufunc.__name__}_accumulate"
    spelled((ufunc, "accumulate"))(call)


_spell_accumulate(np.add, lambda x, axis, dtype: cumsum(x, axis, dtype))
_spell_accumulate(np.multiply, lambda x, axis, dtype: cumprod(x, axis, dtype))
_spell_accumulate(np.maximum, lambda x, axis, dtype: _running(cast(x, dtype_name(dtype, x.dtype)), axis, ops.cummax))
_spell_accumulate(np.minimum, lambda x, axis, dtype: _running(cast(x, dtype_name(dtype, x.dtype)), axis, ops.cummin))
_spell_accumulate(np.logical_or, lambda x, axis, dtype: _running(cast(x, "bool"), axis, ops.cummax))
_spell_accumulate(np.logical_and, lambda x, axis, dtype: _running(cast(x, "bool"), axis, ops.cummin))


# ---------------------------------------------------------------------------------------------------------------
# differences


def _neighbours(x: Value, axis: int) -> tuple[Value, Value]:
    """All elements but the first along the axis, and all but the last."""
    length = x.shape[axis]
    count = maximum(length - 1, 0)
    return part(x, axis, minimum(length, 1), count), part(x, axis, 0, count)


@spelled(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Value:
    """Differences of neighbours, n times; of bools, whether they differ."""
    x, times = as_value(a), static_int(n, "n")
    if times == 0:
        return x
    if times < 0:
        raise RuleError(f"order must be non-negative but got {times}")
    if x.rank == 0:
        raise RuleError("diff requires input that is at least one dimensional")
    along = axis_of(axis, x.rank)
    pieces = []
    for extra in (prepend, x, append):
        if not is_given(extra):
            continue
        piece = as_value(extra)
        if piece.rank == 0:
            piece = broadcast_to(piece, tuple(1 if k == along else d for k, d in enumerate(x.shape)))
        pieces.append(piece)
    x = numpy_concatenate(pieces, along)
    for _ in range(times):
        later, earlier = _neighbours(x, along)
        x = ops.not_equal(later, earlier) if x.dtype == "bool" else later - earlier
    return x


@spelled(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Value:
    x = as_value(ary)
    found = diff(ops.reshape(x, shape=(product(x.shape),)))
    pieces = [cast(as_value(p), x.dtype) for p in (to_begin, found, to_end) if p is not None]
    return ops.concatenate(*[ops.reshape(p, shape=(product(p.shape),)) for p in pieces], axis=0)


@spelled(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Value:
    values = as_value(y)
    along = axis_of(axis, values.rank)
    if x is None:
        width = as_value(dx, None) if not isinstance(dx, (int, float)) else dx
    else:
        points = as_value(x)
        width = diff(points) if points.rank == 1 else diff(points, axis=along)
        if width.rank == 1:
            width = ops.reshape(width, shape=tuple(width.shape[0] if k == along else 1
                                                   for k in range(values.rank)))
    later, earlier = _neighbours(values, along)
    pair, step = promote(later + earlier, width)
    shape = pair.shape
    return numpy_sum(broadcast_to(step, shape) * pair / 2.0, along)


@spelled(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Central differences inside, one-sided ones of first or second order at the ends.

    varargs: nothing, one spacing for all axes, or for each axis a spacing or the coordinates of its points.
    """
    x = as_value(f)
    x = x if x.type.is_inexact else cast(x, "float64")
    if axis is None:
        axes = list(range(x.rank))
    else:
        axes = [axis_of(a, x.rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    order = static_int(edge_order, "edge_order")
    if order not in (1, 2):
        raise RuleError("'edge_order' greater than 2 not supported")
    spacings: list[Any] = list(varargs)
    if not spacings:
        spacings = [1.0] * len(axes)
    elif len(spacings) == 1 and len(axes) > 1:
        if not isinstance(spacings[0], (int, float)) and as_value(spacings[0]).rank:
            raise RuleError("invalid number of arguments", kind=TypeError)
        spacings = spacings * len(axes)
    elif len(spacings) != len(axes):
        raise RuleError("invalid number of arguments", kind=TypeError)
    found = []
    for along, spacing in zip(axes, spacings):
        length = x.shape[along]
        small = ("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
                 "required.")
        if isinstance(length, int) and length < order + 1:
            raise RuleError(small)
        if (bounds(length)[0] or 0) < order + 1:
            check(ops.greater(size_value(length), order), "ValueError", small)
        points = spacing if isinstance(spacing, (int, float)) else as_value(spacing)
        if isinstance(points, (int, float)) or not points.rank:
            found.append(_even(x, along, as_value(points, x.dtype), order))
        else:
            if points.rank != 1:
                raise RuleError("distances must be either scalars or 1d")
            found.append(_uneven(x, along, cast(diff(points), x.dtype), order))
    return found[0] if len(found) == 1 else tuple(found)


def _even(x: Value, k: int, h: Value, order: int) -> Value:
    n = x.shape[k]

    def at(start: Any, size: Any = 1) -> Value:
        return part(x, k, start, size)

    def over(numerator: Value, factor: float = 1.0) -> Value:
        return numerator / broadcast_to(h * factor, numerator.shape)

    inner = over(at(2, n - 2) - at(0, n - 2), 2.0)
    if order == 1:
        first, last = over(at(1) - at(0)), over(at(n - 1) - at(n - 2))
    else:
        first = over(at(0) * -1.5 + at(1) * 2.0 + at(2) * -0.5)
        last = over(at(n - 3) * 0.5 + at(n - 2) * -2.0 + at(n - 1) * 1.5)
    return ops.concatenate(first, inner, last, axis=k)


def _uneven(x: Value, k: int, steps: Value, order: int) -> Value:
    """Second-order weights for points at distances `steps` (Fornberg 1988)."""
    n = x.shape[k]

    def at(start: Any, size: Any = 1) -> Value:
        return part(x, k, start, size)

    def step(start: Any, size: Any = 1) -> Value:
        return ops.broadcast(part(steps, 0, start, size), shape=tuple(
            size if a == k else d for a, d in enumerate(x.shape)), axes=(k,))

    before, after = step(0, n - 2), step(1, n - 2)
    inner = (at(0, n - 2) * (-after / (before * (before + after)))
             + at(1, n - 2) * ((after - before) / (before * after))
             + at(2, n - 2) * (before / (after * (before + after))))
    if order == 1:
        first = (at(1) - at(0)) / step(0)
        last = (at(n - 1) - at(n - 2)) / step(n - 2)
    else:
        a, b = step(0), step(1)
        first = at(0) * (-(a * 2.0 + b) / (a * (a + b))) + at(1) * ((a + b) / (a * b)) + at(2) * (-a / (b * (a + b)))
        a, b = step(n - 3), step(n - 2)
        last = (at(n - 3) * (b / (a * (a + b))) + at(n - 2) * (-(b + a) / (a * b))
                + at(n - 1) * ((b * 2.0 + a) / (b * (a + b))))
    return ops.concatenate(first, inner, last, axis=k)
