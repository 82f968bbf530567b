"""Norms of vectors and matrices: np.linalg.norm, vector_norm, matrix_norm.

The derivative of a norm at the origin is 0, the subgradient of least size, and where an element is 0 so is the
derivative in it.  The second derivative at the origin is 0 as well, also that of norm(v) ** 2, whose first one is
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import product
from ..ir.nodes import Value
from ..ir.types import Type
from .base import grid, times
from .families import Reduction, RuleError, Sample, register, restore_axes, sample
from .spelling import NotKnown, Weak, as_value, axes_of, axis_of, cast, is_value, python_type, spelled


@register
class Norm(Reduction):
    """(sum of |x| ** order) ** (1 / order) over `axes`, of real floats; `order` is finite and not 0."""

    name, masks = "norm", False
    cost = 2

    def infer(self, x: Type, *, axes: tuple[int, ...], order: float) -> Type:
        if x.kind != "f":
            raise RuleError(f"norm of {x}", kind=TypeError, code="E309")
        if not order or not np.isfinite(order):
            raise RuleError(f"norm of order {order} is not a power sum", kind=ValueError, code="E208")
        return super().infer(x, axes=axes)

    def reference(self, x: Any, *, axes: tuple[int, ...], order: float) -> Any:
        with np.errstate(divide="ignore"):
            if order == 2:
                return np.sqrt(np.sum(x * x, axis=axes))
            return np.sum(np.abs(x) ** order, axis=axes) ** x.dtype.type(1 / order)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axes: tuple[int, ...],
            order: float, **params: Any) -> Value:
        (t,), (x,) = tangents, args
        return ops.sum(times(t, _slope(x, result, axes, order), singular=False), axes=axes)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axes: tuple[int, ...],
            order: float, **params: Any) -> list[Any]:
        (x,) = args
        return [times(restore_axes(ct, axes, x.shape), _slope(x, result, axes, order), singular=False)]

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return (const(0, x.scalar),)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value], *, order: float,
             **params: Any) -> tuple[Value, ...]:
        return (ops.accumulate(accumulators[0], _power(element, order)),)

    def idle(self, x: Type, *, order: float, **params: Any) -> Value:  # type: ignore[override]
        return const(0 if order > 0 else np.inf, x.scalar)

    def finish(self, accumulators: Sequence[Value], *, order: float, **params: Any) -> Value:
        total = accumulators[0]
        return ops.sqrt(total) if order == 2 else ops.power(total, const(1 / order, total.type))

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...], order: float) -> Any:
        if order == 2:
            return h.op("sqrt", h.reduce("add", h.op("multiply", x, x), 0, axes))
        total = h.reduce("add", h.op("power", h.op("abs", x), h.constant(order, x.type)), 0, axes)
        return h.op("power", total, h.constant(1 / order, total.type))

    def samples(self) -> list[Sample]:
        at_origin = [sample(np.zeros(3), axes=(0,), order=order, corner=True) for order in (2.0, 3.0, 0.5)]
        return [sample(grid(3), axes=(0,), order=2.0), sample(grid(2, 3), axes=(1,), order=2.0),
                sample(grid(2, 3), axes=(0, 1), order=2.0), sample(grid(2, 3), axes=(0,), order=3.0),
                sample(grid(4), axes=(0,), order=2.5), sample(grid(4), axes=(0,), order=0.5),
                sample(grid(4), axes=(0,), order=-1.0), sample(grid(4), axes=(0,), order=4.0),
                sample(np.array([3.0, 0.0, -4.0]), axes=(0,), order=2.0),
                sample(np.array([3.0, 0.0, -4.0]), axes=(0,), order=3.0), sample(grid(1), axes=(0,), order=2.0),
                sample(grid(0, 2), axes=(0,), order=2.0, corner=True),
                sample(grid(3, dtype="float32"), axes=(0,), order=2.0), *at_origin]


def _power(x: Value, order: float) -> Value:
    """|x| ** order."""
    if order == 2:
        return x * x
    if order > 0 and order % 2 == 0 and order <= 64:
        return ops.int_power(x, n=int(order))
    size = ops.absolute(x)
    return ops.int_power(size, n=int(order)) if order > 0 and order % 1 == 0 and order <= 64 else ops.power(
        size, const(order, x.type))


def _slope(x: Value, result: Value, axes: tuple[int, ...], order: float) -> Value:
    """d norm / d x = sign(x) (|x| / norm) ** (order - 1), and 0 where x or the norm is 0."""
    norm = restore_axes(result, axes, x.shape)
    zero = const(0, x.type)
    if order == 2:
        return ops.select(ops.equal(norm, zero), zero, x / norm)
    slope = ops.sign(x) * ops.power(ops.absolute(x) / norm, const(order - 1, x.type))
    return ops.select(ops.logical_or(ops.equal(norm, zero), ops.equal(x, zero)), zero, slope)


# --- NumPy's names ------------------------------------------------------------------------------------------------


@spelled(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Value:
    value = _inexact(x)
    if axis is None and (ord is None or (ord in ("f", "fro") and value.rank == 2)):
        return _kept(euclidean(value, tuple(range(value.rank))), value, tuple(range(value.rank)), keepdims)
    axes: tuple[int, ...]
    if axis is None:
        axes = tuple(range(value.rank))
    elif isinstance(axis, (tuple, list)):
        axes = tuple(axis_of(a, value.rank) for a in axis)
    else:
        axes = (axis_of(axis, value.rank),)
    if len(axes) == 1:
        found = of_vectors(value, ord, axes)
    elif len(axes) == 2:
        if axes[0] == axes[1]:
            raise RuleError("Duplicate axes given.", code="E303")
        found = of_matrices(value, ord, axes[0], axes[1])
    else:
        raise RuleError("Improper number of dimensions to norm.", code="E303")
    return _kept(found, value, tuple(sorted(axes)), keepdims)


@spelled(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Value:
    value = _inexact(x)
    axes = axes_of(axis, value.rank)
    return _kept(of_vectors(value, ord, axes), value, axes, keepdims)


@spelled(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Value:
    value = _inexact(x)
    if value.rank < 2:
        raise RuleError(f"matrix_norm takes at least two axes, not {value.rank}", code="E303")
    axes = (value.rank - 2, value.rank - 1)
    return _kept(of_matrices(value, ord, *axes), value, axes, keepdims)


def _inexact(x: Any) -> Value:
    value = as_value(x)
    return value if value.type.is_inexact else cast(value, "float64")


def _kept(result: Value, x: Value, axes: tuple[int, ...], keepdims: Any) -> Value:
    if not keepdims:
        return result
    return ops.reshape(result, shape=tuple(1 if k in axes else d for k, d in enumerate(x.shape)))


def euclidean(x: Value, axes: tuple[int, ...]) -> Value:
    """The root of the sum of squared absolute values over `axes`."""
    if x.type.kind == "c":
        x, axes = ops.stack(ops.real(x), ops.imag(x)), (0, *(a + 1 for a in axes))
    return ops.norm(x, axes=axes, order=2.0) if axes else ops.absolute(x)


def of_vectors(x: Value, order: Any, axes: tuple[int, ...]) -> Value:
    if isinstance(order, str):
        raise RuleError(f"Invalid norm order '{order}' for vectors", kind=ValueError, code="E208")
    if order is None or (_is_number(order) and order == 2):
        return euclidean(x, axes)
    if not _is_number(order):
        raise NotKnown("the order of a norm", order)
    size = ops.absolute(x)
    if order == np.inf:
        return _largest(size, axes)
    if order == -np.inf:
        return ops.min(size, axes=axes)
    if order == 0:
        nonzero = ops.not_equal(x, const(0, x.type))
        return ops.sum(ops.convert(nonzero, dtype=size.dtype), axes=axes)
    if order == 1:
        return ops.sum(size, axes=axes)
    return ops.norm(size if x.type.kind == "c" else x, axes=axes, order=float(order)) if axes else size


def _is_number(order: Any) -> bool:
    return python_type(order) in (int, float) and isinstance(order, (int, float))


def _largest(size: Value, axes: tuple[int, ...]) -> Value:
    """The maximum, 0 where there is nothing."""
    if product(size.shape[a] for a in axes) == 0:
        return const(0, size.type.with_shape(tuple(d for k, d in enumerate(size.shape) if k not in axes)))
    return ops.max(size, axes=axes)


def of_matrices(x: Value, order: Any, rows: int, columns: int) -> Value:
    if order is None or (isinstance(order, str) and order in ("fro", "f")):
        return euclidean(x, tuple(sorted((rows, columns))))
    if (isinstance(order, str) and order == "nuc") or (_is_number(order) and order in (2, -2)):
        return _of_singular_values(x, order, rows, columns)
    if isinstance(order, Weak) or is_value(order):
        raise NotKnown("the order of a norm", order)
    if not _is_number(order) or order not in (1, -1, np.inf, -np.inf):
        raise RuleError("Invalid norm order for matrices.", kind=ValueError, code="E208")
    along, over = (rows, columns) if order in (1, -1) else (columns, rows)
    sums = ops.sum(ops.absolute(x), axes=(along,))
    over -= over > along
    return _largest(sums, (over,)) if order > 0 else ops.min(sums, axes=(over,))


def _of_singular_values(x: Value, order: Any, rows: int, columns: int) -> Value:
    """The sum ("nuc"), the largest (2) or the smallest (-2) singular value; equal ones share the derivative equally.

    One that is 0 has the derivative 0.
    """
    if x.type.kind == "c":
        raise RuleError(f"the matrix norm of order {order!r} of complex matrices is not supported",
                        kind=NotImplementedError, code="E203", help="use the Frobenius norm: np.linalg.norm(x)")
    others = tuple(k for k in range(x.rank) if k not in (rows, columns))
    _, s, _ = ops.svd(ops.transpose(x, axes=(*others, rows, columns)))
    zero = const(0, s.type)
    s = ops.select(ops.equal(s, zero), zero, s)
    last = (s.rank - 1,)
    if order == "nuc":
        return ops.sum(s, axes=last)
    return _largest(s, last) if order == 2 else ops.min(s, axes=last)
