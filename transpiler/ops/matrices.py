"""What the rules of linear algebra are written with: products, transposes and triangles of matrices and stacks of them.

A stack has the shape (..., n, m); stacks that meet have the same leading sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import product, same_size
from ..ir.nodes import Value
from ..ir.types import Type
from .base import batch_all, grid
from .families import Lowering, Op, RuleError


def matrix_transpose(a: Value) -> Value:
    rank = a.rank
    return ops.transpose(a, axes=(*range(rank - 2), rank - 1, rank - 2))


def leading(rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The stack's axes as batch axes of a product."""
    return tuple(range(rank - 2)), tuple(range(rank - 2))


def matmul(a: Value, x: Value) -> Value:
    """a @ x for x (..., n, k), or (..., n) when it has one axis less than a."""
    return ops.dot_general(a, x, contract=((a.rank - 1,), (a.rank - 2,)), batch=leading(a.rank))


def outer(x: Value, y: Value, columns: bool) -> Value:
    """x @ y.T for x (..., n, k) and y (..., m, k); the outer product of vectors (..., n) and (..., m) otherwise."""
    stack = tuple(range(x.rank - (2 if columns else 1)))
    last = ((x.rank - 1,), (y.rank - 1,)) if columns else ((), ())
    return ops.dot_general(x, y, contract=last, batch=(stack, stack))


def inner(a: Value, b: Value) -> Value:
    """The sum of a * b over the last two axes."""
    axes = (a.rank - 2, a.rank - 1)
    return ops.dot_general(a, b, contract=(axes, axes), batch=leading(a.rank))


def over_matrix(x: Value, shape: tuple[Any, ...]) -> Value:
    """Numbers (...) copied over the matrices of a stack of that shape."""
    return ops.broadcast(x, shape=shape, axes=tuple(range(x.rank)))


def triangle(x: Value, *, lower: bool, diagonal: float = 1.0) -> Value:
    """One triangle of x, zeros elsewhere; the diagonal times `diagonal`."""
    rows, columns = (ops.iota(shape=x.shape, axis=x.rank - k, dtype="int64") for k in (2, 1))
    zero = const(0, x.type)
    keeps = rows > columns if lower else rows < columns
    if diagonal == 0.0:
        return ops.select(keeps, x, zero)
    if diagonal == 1.0:
        return ops.select(rows >= columns if lower else rows <= columns, x, zero)
    return ops.select(keeps, x, ops.select(ops.equal(rows, columns), x * const(diagonal, x.type), zero))


def eye(like: Type) -> Value:
    """Identity matrices of a stack's shape."""
    rows, columns = (ops.iota(shape=like.shape, axis=like.rank - k, dtype="int64") for k in (2, 1))
    return ops.select(ops.equal(rows, columns), const(1, like), const(0, like))


def check_square(name: str, a: Type) -> None:
    """NumPy's errors for what is no square matrix of float32 or float64; sizes not known to differ are equal."""
    if a.rank < 2:
        raise RuleError(f"{a.rank}-dimensional array given. Array must be at least two-dimensional",
                        kind=np.linalg.LinAlgError, code="E302")
    m, n = a.shape[-2:]
    if not same_size(m, n):
        raise RuleError("Last 2 dimensions of the array must be square", kind=np.linalg.LinAlgError, code="E302")
    if a.dtype not in ("float32", "float64"):
        raise RuleError(f"{name} of {a.dtype} matrices is not supported", kind=TypeError, code="E309",
                        help="use float64")


class MatrixOp(Op):
    """A function of square matrices, computed by LAPACK; more than one leading axis is made one."""

    masks = False
    lowering, library = Lowering.KERNEL, "LAPACK"
    raises: type[Exception] | None = np.linalg.LinAlgError
    routine: str                    # name in gradsmith.kernels, for single matrices; stacked_NAME takes stacks
    flags = ""                      # further arguments

    def __call__(self, *args: Any, **params: Any) -> Any:
        values = self.prepare(*args)
        rank = values[0].rank
        if rank <= 3:
            return super().__call__(*values, **params)
        result = self.infer(*(v.type for v in values), **params)
        stack = values[0].shape[:rank - 2]
        flat = [ops.reshape(v, shape=(product(stack), *v.shape[rank - 2:])) for v in values]
        return ops.reshape(super().__call__(*flat, **params), shape=result.shape)

    def harmless(self, x: Type) -> Value:
        return eye(x)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Any:
        return self(*batch_all(args, batched), **params)

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Any, **params: Any) -> Any:
        """Everything of a matrix depends on all of it; matrices of a stack are apart."""
        depth = args[0].rank - 2
        joined = ops.union.of([ops.union.along(m, tuple(range(depth, m.rank))) for m in marks if m is not None])
        found = [ops.union.over(joined, r.shape, tuple(range(depth)))
                 for r in (result if self.result_count > 1 else (result,))]
        return tuple(found) if self.result_count > 1 else found[0]

    def kernel(self, types: Sequence[Type], params: Mapping[str, Any]) -> str:
        operands = ", ".join([*(f"{{{k}}}" for k in range(len(types))), *map(str, params.values())])
        return f"{'stacked_' if types[0].rank == 3 else ''}{self.routine}({operands})"


def regular(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    """Well-conditioned square matrices."""
    return (grid(*shape, seed=seed) * 0.5 + shape[-1] * np.eye(shape[-1])).astype(dtype)


def positive(*shape: int, dtype: str = "float64") -> Any:
    """Positive definite matrices."""
    half = grid(*shape)
    return (half @ np.swapaxes(half, -1, -2) + np.eye(shape[-1])).astype(dtype)


def stacked(function: Any, *arrays: Any, out: tuple[int, ...], dtype: Any) -> Any:
    """Apply a function of single matrices over a stack; `out` is the shape of one result."""
    stack = arrays[0].shape[:-2]
    result = np.empty((*stack, *out), dtype)
    for place in np.ndindex(*stack):
        result[place] = function(*(a[place] for a in arrays))
    return result[()]
