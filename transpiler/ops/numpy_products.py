"""NumPy's names for products of arrays: dot, matmul, vdot, inner, outer, tensordot, kron, cross and their kin."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.dims import product, same_size, shown_shape
from ..ir.index import Span
from ..ir.nodes import Value
from .base import RuleError
from .families import broadcast_shapes, broadcast_to
from .options import refuse_out
from .products import not_aligned, shown_size
from .spelling import as_value, axis_of, promote, spelled, static_int

NONE: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def strong(*operands: Any) -> list[Value]:
    """The operands of one dtype; Python numbers count as arrays, as these functions take them."""
    return promote(*map(as_value, operands))


def contract_last(a: Value, b: Value, axis: int) -> Value:
    """The sum over the last axis of a and `axis` of b; all else is multiplied with all else."""
    i, j = a.rank - 1, axis % b.rank
    if not same_size(a.shape[i], b.shape[j]):
        raise not_aligned(a.shape, b.shape, i, j)
    return ops.dot_general(a, b, contract=((i,), (j,)), batch=NONE)


@spelled(np.dot, np.ndarray.dot)
def dot(a: Any, b: Any, out: Any = None) -> Value:
    refuse_out(out, "dot")
    a, b = strong(a, b)
    if not a.rank or not b.rank:
        return ops.multiply(a, b)
    return contract_last(a, b, -2 if b.rank > 1 else -1)


def stacked_matmul(a: Value, b: Value) -> Value:
    """Matrix products of two stacks (..., m, k) and (..., k, n) whose leading sizes broadcast.

    A stack of one matrix is no stack: its matrix meets all others in one product.
    """
    if not same_size(a.shape[-1], b.shape[-2]):
        raise RuleError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->"
            f"(n?,m?) (size {shown_size(b.shape[-2])} is different from {shown_size(a.shape[-1])})", code="E302")
    stack = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2], b.shape[-1]
    if all(d == 1 for d in b.shape[:-2]):
        found = contract_last(a, ops.reshape(b, shape=b.shape[-2:]), 0)
        return ops.reshape(found, shape=(*stack, m, n))
    if all(d == 1 for d in a.shape[:-2]):
        found = contract_last(ops.reshape(a, shape=a.shape[-2:]), b, -2)                # (m, ..., n)
        found = ops.transpose(found, axes=(*range(1, found.rank - 1), 0, found.rank - 1))
        return ops.reshape(found, shape=(*stack, m, n))
    a, b = broadcast_to(a, (*stack, *a.shape[-2:])), broadcast_to(b, (*stack, *b.shape[-2:]))
    shared = tuple(range(len(stack)))
    return ops.dot_general(a, b, contract=((a.rank - 1,), (b.rank - 2,)), batch=(shared, shared))


@spelled(np.matmul, operator.matmul, np.linalg.matmul)
def matmul(x1: Any, x2: Any, /, out: Any = None) -> Value:
    """NumPy's @: the last two axes are matrices, the others broadcast; a vector is a row on the left, a column on the
    right, and that axis disappears."""
    refuse_out(out, "matmul")
    a, b = promote(x1, x2)
    for k, x in enumerate((a, b)):
        if not x.rank:
            raise RuleError(f"matmul: Input operand {k} does not have enough dimensions (has 0, gufunc core with "
                            "signature (n?,k),(k,m?)->(n?,m?) requires 1)", code="E302")
    if b.rank == 1:
        return matvec(a, b) if a.rank > 1 else contract_last(a, b, 0)
    if a.rank == 1:
        return vecmat(a, b)
    return stacked_matmul(a, b)


def matvec(a: Value, x: Value) -> Value:
    if x.rank == 1:
        return contract_last(a, x, 0)
    return _drop(stacked_matmul(a, ops.reshape(x, shape=(*x.shape, 1))), -1)


def vecmat(x: Value, a: Value) -> Value:
    if x.rank == 1:
        return contract_last(x, a, -2)
    return _drop(stacked_matmul(ops.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1])), a), -2)


def _drop(x: Value, axis: int) -> Value:
    axis %= x.rank
    return ops.reshape(x, shape=(*x.shape[:axis], *x.shape[axis + 1:]))


def _conjugate(x: Value) -> Value:
    return ops.conj(x) if x.type.kind == "c" else x


@spelled(np.matvec)
def numpy_matvec(x1: Any, x2: Any, /) -> Value:
    return matvec(*promote(x1, x2))


@spelled(np.vecmat)
def numpy_vecmat(x1: Any, x2: Any, /) -> Value:
    x, a = promote(x1, x2)
    return vecmat(_conjugate(x), a)


@spelled(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Value:
    a, b = promote(x1, x2)
    return _along_last(_conjugate(_to_last(a, axis)), _to_last(b, axis))


def _to_last(x: Value, axis: Any) -> Value:
    at = axis_of(axis, x.rank)
    return ops.transpose(x, axes=(*(k for k in range(x.rank) if k != at), at))


def _along_last(a: Value, b: Value) -> Value:
    shape = broadcast_shapes(a.shape, b.shape)
    terms = broadcast_to(a, shape) * broadcast_to(b, shape)
    return ops.sum(terms, axes=(len(shape) - 1,))


@spelled(np.vdot)
def vdot(a: Any, b: Any, /) -> Value:
    x, y = strong(a, b)
    x, y = (ops.reshape(v, shape=(product(v.shape),)) for v in (x, y))
    return contract_last(_conjugate(x), y, 0)


@spelled(np.inner)
def inner(a: Any, b: Any, /) -> Value:
    x, y = strong(a, b)
    return contract_last(x, y, -1) if x.rank and y.rank else ops.multiply(x, y)


@spelled(np.outer, np.linalg.outer)
def outer(a: Any, b: Any, out: Any = None) -> Value:
    refuse_out(out, "outer")
    x, y = strong(a, b)
    x, y = (ops.reshape(v, shape=(product(v.shape),)) for v in (x, y))
    return ops.dot_general(x, y, contract=NONE, batch=NONE)


@spelled(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Value:
    x, y = strong(a, b)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise RuleError("axes of tensordot must be an int or a pair of ints or sequences", code="E303")
        left, right = (tuple(axis_of(k, v.rank) for k in (side if isinstance(side, (tuple, list)) else (side,)))
                       for side, v in zip(axes, (x, y)))
    else:
        count = static_int(axes, "axes")
        if not 0 <= count <= min(x.rank, y.rank):
            raise RuleError(f"tensordot over {count} axes of shapes {shown_shape(x.shape)} and "
                            f"{shown_shape(y.shape)}", code="E303")
        left, right = tuple(range(x.rank - count, x.rank)), tuple(range(count))
    if len(left) != len(right) or any(not same_size(x.shape[i], y.shape[j]) for i, j in zip(left, right)):
        raise RuleError("shape-mismatch for sum", code="E302")
    return ops.dot_general(x, y, contract=(left, right), batch=NONE)


@spelled(np.kron)
def kron(a: Any, b: Any) -> Value:
    """Every element of a times all of b, in blocks."""
    x, y = strong(a, b)
    rank = max(x.rank, y.rank)
    x, y = (ops.reshape(v, shape=((1,) * (rank - v.rank) + v.shape)) for v in (x, y))
    both = ops.dot_general(x, y, contract=NONE, batch=NONE)
    woven = ops.transpose(both, axes=tuple(k + side * rank for k in range(rank) for side in (0, 1)))
    return ops.reshape(woven, shape=tuple(m * n for m, n in zip(x.shape, y.shape)))


@spelled(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Value:
    """Of vectors with three components; two, which NumPy deprecates, are taken as NumPy does: the third is 0."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = strong(a, b)
    x, y = _components(a, axisa), _components(b, axisb)
    if len(x) == 2 and len(y) == 2:
        return _difference(x[0], y[1], x[1], y[0])
    parts = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        parts.append(_difference(_at(x, i), _at(y, j), _at(x, j), _at(y, i)))
    shape = broadcast_shapes(*(p.shape for p in parts))
    result = ops.stack(*(broadcast_to(p, shape) for p in parts))
    at = axis_of(axisc, result.rank)
    return ops.transpose(result, axes=(*range(1, at + 1), 0, *range(at + 1, result.rank)))


@spelled(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Value:
    a, b = promote(x1, x2)
    if any(v.shape[axis_of(axis, v.rank)] != 3 for v in (a, b)):
        raise RuleError("Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
                        f"{a.shape[axis_of(axis, a.rank)]} and {b.shape[axis_of(axis, b.rank)]} dimensional instead.",
                        code="E302")
    return cross(a, b, axis=axis)


def _components(x: Value, axis: Any) -> list[Value]:
    at = axis_of(axis, x.rank)
    count = 3 if same_size(x.shape[at], 3) else 2 if same_size(x.shape[at], 2) else 0
    if not count:
        raise RuleError("incompatible dimensions for cross product\n(dimension must be 2 or 3)", code="E302")
    return [ops.reshape(ops.load(x, index=tuple(Span(k, 1) if a == at else Span(0, d) for a, d in enumerate(x.shape))),
                        shape=tuple(d for a, d in enumerate(x.shape) if a != at)) for k in range(count)]


def _at(parts: Sequence[Value], k: int) -> Value | None:
    return parts[k] if k < len(parts) else None


def _difference(a: Value | None, b: Value | None, c: Value | None, d: Value | None) -> Value:
    """a * b - c * d, where what is missing is 0."""
    first = None if a is None or b is None else ops.multiply(a, b)
    second = None if c is None or d is None else ops.multiply(c, d)
    if first is None:
        assert second is not None
        return ops.negative(second)
    return first if second is None else ops.subtract(first, second)
