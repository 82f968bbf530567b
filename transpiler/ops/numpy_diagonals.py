"""NumPy's diagonals and triangles: eye, diag, trace, tri, tril, triu and vander."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import DimExpr, maximum, minimum, product
from ..ir.nodes import Value
from ..ir.types import Type
from .base import RuleError
from .families import broadcast_to
from .numpy_reductions import numpy_sum
from .options import dtype_name, refuse_options, refuse_out
from .spelling import as_value, axis_of, cast, shape_of, spelled, static_int


def _size(n: Any) -> Any:
    (dim,) = shape_of(n)
    return dim if isinstance(dim, DimExpr) else max(dim, 0)


def row_and_column(rows: Any, columns: Any) -> tuple[Value, Value]:
    """The indices of each place of a matrix."""
    return tuple(ops.iota(shape=(rows, columns), axis=k, dtype="int64") for k in (0, 1))  # type: ignore[return-value]


@spelled(np.eye)
def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *, device: Any = None,
        like: Any = None) -> Value:
    refuse_options("eye", like, device)
    rows = _size(N)
    row, column = row_and_column(rows, rows if M is None else _size(M))
    return cast(ops.equal(ops.add(row, static_int(k, "k")), column), dtype_name(dtype))


@spelled(np.identity)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Value:
    return eye(n, dtype=dtype_name(dtype), like=like)


@spelled(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Value:
    refuse_options("tri", like)
    rows = _size(N)
    row, column = row_and_column(rows, rows if M is None else _size(M))
    return cast(ops.greater_equal(ops.add(row, static_int(k, "k")), column), dtype_name(dtype))


def _triangle(m: Any, k: Any, lower: bool) -> Value:
    x = as_value(m)
    if x.rank == 0:
        raise RuleError("tril and triu need an array of at least one axis", code="E301")
    if x.rank == 1:         # NumPy stretches the mask, and with it a vector
        x = broadcast_to(x, (x.shape[0], x.shape[0]))
    shape = x.shape
    row, column = (ops.iota(shape=shape, axis=len(shape) - 2 + side, dtype="int64") for side in (0, 1))
    moved = ops.add(row, static_int(k, "k"))
    inside = ops.greater_equal(moved, column) if lower else ops.less_equal(moved, column)
    return ops.select(inside, x, 0)


@spelled(np.tril)
def tril(m: Any, k: Any = 0) -> Value:
    return _triangle(m, k, True)


@spelled(np.triu)
def triu(m: Any, k: Any = 0) -> Value:
    return _triangle(m, k, False)


def _diagonal(x: Value, offset: int, axis1: Any, axis2: Any) -> Value:
    """The diagonal of two axes, as the last axis."""
    if x.rank < 2:
        raise RuleError("diag requires an array of at least two dimensions", code="E304")
    first, second = axis_of(axis1, x.rank), axis_of(axis2, x.rank)
    if first == second:
        raise RuleError("axis1 and axis2 cannot be the same", code="E304")
    kept = tuple(k for k in range(x.rank) if k not in (first, second))
    x = ops.transpose(x, axes=(first, second, *kept))
    rows, columns = x.shape[:2]
    down, right = max(-offset, 0), max(offset, 0)
    count = maximum(minimum(rows - down, columns - right), 0)
    places = ops.iota(shape=(count,), axis=0, dtype="int64")
    found = ops.gather(x, ops.add(places, down), ops.add(places, right), axes=(0, 1))
    return ops.transpose(found, axes=(*range(1, found.rank), 0))


@spelled(np.diagonal, np.ndarray.diagonal)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Value:
    return _diagonal(as_value(a), static_int(offset, "offset"), axis1, axis2)


@spelled(np.trace, np.ndarray.trace)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Value:
    refuse_out(out, "trace")
    return numpy_sum(_diagonal(as_value(a), static_int(offset, "offset"), axis1, axis2), -1, dtype)


@spelled(np.diag)
def diag(v: Any, k: Any = 0) -> Value:
    x, offset = as_value(v), static_int(k, "k")
    if x.rank == 2:
        return _diagonal(x, offset, 0, 1)
    if x.rank != 1:
        raise RuleError("Input must be 1- or 2-d.", code="E301")
    size = x.shape[0] + abs(offset)
    row, column = row_and_column(size, size)
    down, right = max(-offset, 0), max(offset, 0)
    spread = ops.broadcast(ops.pad(x, low=(down,), high=(right,), interior=(0,)), shape=(size, size), axes=(0,))
    return ops.select(ops.equal(ops.add(row, offset), column), spread, 0)


@spelled(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Value:
    x = as_value(v)
    return diag(ops.reshape(x, shape=(product(x.shape),)), k)


@spelled(np.vander)
def vander(x: Any, N: Any = None, increasing: Any = False) -> Value:
    """Powers by repeated multiplication, as NumPy computes them."""
    base = as_value(x)
    if base.rank != 1:
        raise RuleError("x must be a one-dimensional array or sequence.", code="E301")
    columns = base.shape[0] if N is None else _size(N)
    if not isinstance(columns, int):
        raise RuleError("np.vander needs the number of columns known while transpiling", kind=NotImplementedError,
                        code="E303", help="pass N")
    base = cast(base, np.promote_types(base.dtype, int))
    powers: list[Value] = [const(1, base.type)]
    for _ in range(1, columns):
        powers.append(powers[-1] * base if len(powers) > 1 else base)
    if not columns:
        return const(0, Type(base.dtype, (base.shape[0], 0)))
    return ops.transpose(ops.stack(*(powers if increasing else powers[::-1])), axes=(1, 0))
