"""Linear algebra on square matrices and stacks of them (..., n, n): solve, inv, triangular_solve, cholesky.

A matrix that is singular (not positive definite, for cholesky) raises NumPy's LinAlgError.  Formulas: Giles,
"Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008); Murray,
"Differentiation of the Cholesky decomposition" (2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.dims import same_size
from ..ir.nodes import Value
from ..ir.types import Type
from . import linalg_stablehlo as hlo
from .base import batch_all, grid
from .families import RuleError, Sample, register, sample
from .matrices import (
    MatrixOp,
    check_square,
    matmul,
    matrix_transpose,
    outer,
    positive,
    regular,
    triangle,
)


def total(*terms: Value | None) -> Value | None:
    """The sum of the terms that there are."""
    found = [t for t in terms if t is not None]
    result = found[0] if found else None
    for t in found[1:]:
        result = result + t
    return result


@register
class Inv(MatrixOp):
    """The inverse."""

    name, routine, short = "inv", "inv", "inverse"

    def infer(self, a: Type) -> Type:
        check_square(self.name, a)
        return a

    def reference(self, a: Any) -> Any:
        return np.linalg.inv(a)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        (t,) = tangents
        return -matmul(matmul(result, t), result)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        back = matrix_transpose(result)
        return [-matmul(matmul(back, ct), back)]

    def stablehlo(self, h: Any, a: Any) -> Any:
        return hlo.inv(h, a)

    def samples(self) -> list[Sample]:
        return [sample(regular(1, 1)), sample(regular(2, 2)), sample(regular(3, 3)), sample(regular(5, 5)),
                sample(regular(2, 3, 3)), sample(regular(2, 2, 2, 2)), sample(np.zeros((0, 0))),
                sample(np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 0.5], [0.5, 1.0, 0.0]])),
                sample(regular(3, 3, dtype="float32"))]


class Solving(MatrixOp):
    """The solution x of a system with the matrix a and the right side b: (..., n, k), or (..., n) when b has one axis
    less than a; in a stack such a vector is made a column."""

    def __call__(self, *args: Any, **params: Any) -> Any:
        a, b = self.prepare(*args)
        if a.rank <= 2 or b.rank == a.rank:
            return super().__call__(a, b, **params)
        column = ops.reshape(b, shape=(*b.shape, 1))
        return ops.reshape(super().__call__(a, column, **params), shape=b.shape)

    def infer(self, a: Type, b: Type, **params: Any) -> Type:
        check_square(self.name, a)
        if b.dtype != a.dtype or b.rank not in (a.rank, a.rank - 1):
            raise RuleError(f"{self.name} of {a} and {b}", kind=TypeError, code="E309")
        for m, n in zip(a.shape[:-1], b.shape):
            if not same_size(m, n):
                raise RuleError(f"{self.name}: {a} and {b} do not fit together", code="E302")
        return b

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Value:
        """Many right sides for one matrix are more columns."""
        a, b = args
        if batched[0] or a.rank != 2:
            return self(*batch_all(args, batched), **params)
        if b.rank == 2:
            return matrix_transpose(self(a, matrix_transpose(b), **params))
        size, n, k = b.shape
        columns = ops.reshape(ops.transpose(b, axes=(1, 0, 2)), shape=(n, size * k))
        return ops.transpose(ops.reshape(self(a, columns, **params), shape=(n, size, k)), axes=(1, 0, 2))

    def gains_from_batch(self, types: Sequence[Type], batched: Sequence[bool], **params: Any) -> bool:
        """One matrix is factored once."""
        return not batched[0] and types[0].rank == 2


@register
class Solve(Solving):
    """x with a @ x = b."""

    name, routine, short = "solve", "solve", "solution"

    def reference(self, a: Any, b: Any) -> Any:
        if b.ndim == a.ndim:
            return np.linalg.solve(a, b)
        return np.linalg.solve(a, b[..., None])[..., 0]

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        (t_a, t_b), (a, _) = tangents, args
        return ops.solve(a, total(t_b, None if t_a is None else -matmul(t_a, result)))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        a, b = args
        d_b = ops.solve(matrix_transpose(a), ct)
        return [-outer(d_b, result, b.rank == a.rank) if wanted[0] else None, d_b]

    def stablehlo(self, h: Any, a: Any, b: Any) -> Any:
        return hlo.solve(h, a, b)

    def samples(self) -> list[Sample]:
        return [sample(regular(3, 3), grid(3, seed=1)), sample(regular(3, 3), grid(3, 2, seed=1)),
                sample(regular(1, 1), grid(1, seed=1)), sample(regular(5, 5), grid(5, 1, seed=1)),
                sample(regular(2, 3, 3), grid(2, 3, seed=1)), sample(regular(2, 3, 3), grid(2, 3, 4, seed=1)),
                sample(regular(2, 2, 3, 3), grid(2, 2, 3, 1, seed=1)), sample(regular(3, 3), np.zeros((3, 0))),
                sample(np.array([[0.0, 2.0], [3.0, 1.0]]), grid(2, seed=1)),
                sample(regular(3, 3, dtype="float32"), grid(3, seed=1, dtype="float32"))]


@register
class TriangularSolve(Solving):
    """x with a @ x = b, or a.T @ x = b if `transposed`, for a lower (else upper) triangular a.

    The other triangle is not read, nor the diagonal if `unit_diagonal`, which then is ones.
    """

    name, routine, short = "triangular_solve", "solve_triangular", "solution"

    def infer(self, a: Type, b: Type, *, lower: bool, transposed: bool, unit_diagonal: bool) -> Type:
        return super().infer(a, b)

    def reference(self, a: Any, b: Any, *, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
        a = np.tril(a) if lower else np.triu(a)
        if unit_diagonal:
            on = np.arange(a.shape[-1])
            a[..., on, on] = 1
        return ops.solve.reference(np.swapaxes(a, -1, -2) if transposed else a, b)

    def _apply(self, a: Value, x: Value, *, lower: bool, transposed: bool, unit_diagonal: bool) -> Value:
        """The product with the part of a that is read."""
        part = triangle(a, lower=lower, diagonal=0.0 if unit_diagonal else 1.0)
        return matmul(matrix_transpose(part) if transposed else part, x)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        (t_a, t_b), (a, _) = tangents, args
        moved = None if t_a is None else -self._apply(t_a, result, **params)
        return ops.triangular_solve(a, total(t_b, moved), **params)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, lower: bool = True,
            transposed: bool = False, unit_diagonal: bool = False, **params: Any) -> list[Any]:
        a, b = args
        d_b = ops.triangular_solve(a, ct, lower=lower, transposed=not transposed, unit_diagonal=unit_diagonal)
        if not wanted[0]:
            return [None, d_b]
        left, right = (result, d_b) if transposed else (d_b, result)
        d_a = outer(left, right, b.rank == a.rank)
        return [-triangle(d_a, lower=lower, diagonal=0.0 if unit_diagonal else 1.0), d_b]

    def kernel(self, types: Sequence[Type], params: Mapping[str, Any]) -> str:
        name = "stacked_solve_triangular" if types[0].rank == 3 else self.routine
        return f"{name}({{0}}, {{1}}, {params['lower']}, {params['transposed']}, {params['unit_diagonal']})"

    def stablehlo(self, h: Any, a: Any, b: Any, *, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
        if not unit_diagonal:
            hlo.require_regular(h, a)
        x = h.triangular_solve(a, hlo.as_columns(h, a, b), lower, transposed, unit_diagonal)
        return h.reshape(x, b.type.shape)

    def samples(self) -> list[Sample]:
        found = [sample(regular(3, 3), grid(3, 2, seed=1), lower=lower, transposed=transposed, unit_diagonal=unit)
                 for lower in (False, True) for transposed in (False, True) for unit in (False, True)]
        usual = {"lower": True, "transposed": False, "unit_diagonal": False}
        return [*found, sample(regular(3, 3), grid(3, seed=1), **usual),
                sample(regular(2, 3, 3), grid(2, 3, seed=1), **usual),
                sample(regular(2, 3, 3), grid(2, 3, 2, seed=1), **usual),
                sample(regular(1, 1), grid(1, 1, seed=1), **usual),
                sample(regular(3, 3, dtype="float32"), grid(3, seed=1, dtype="float32"), **usual)]


@register
class Cholesky(MatrixOp):
    """The lower triangular L with L @ L.T = a.  Only the lower triangle of a is read, so only it has a derivative."""

    name, routine, short = "cholesky", "cholesky", "factor"

    def infer(self, a: Type) -> Type:
        check_square(self.name, a)
        return a

    def reference(self, a: Any) -> Any:
        return np.linalg.cholesky(a)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        """L half(L^-1 S L^-T), where half keeps the lower triangle and half of the diagonal."""
        (t,) = tangents
        low = triangle(t, lower=True, diagonal=0.5)  # type: ignore[arg-type]
        symmetric = low + matrix_transpose(low)
        left = _lower_solve(result, symmetric)
        both = _lower_solve(result, matrix_transpose(left))
        return matmul(result, triangle(both, lower=True, diagonal=0.5))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        """The transpose of the above: half(X + X.T) with X = L^-T half(L.T ct) L^-1."""
        product = matmul(matrix_transpose(result), triangle(ct, lower=True))
        left = _lower_solve(result, triangle(product, lower=True, diagonal=0.5), transposed=True)
        both = _lower_solve(result, matrix_transpose(left), transposed=True)
        return [triangle(both + matrix_transpose(both), lower=True, diagonal=0.5)]

    def stablehlo(self, h: Any, a: Any) -> Any:
        return hlo.cholesky(h, a)

    def samples(self) -> list[Sample]:
        return [sample(positive(1, 1)), sample(positive(2, 2)), sample(positive(4, 4)), sample(positive(2, 3, 3)),
                sample(positive(3, 3) + np.triu(np.ones((3, 3)), 1)), sample(np.zeros((0, 0))),
                sample(positive(2, 1, 2, 2)), sample(positive(3, 3, dtype="float32"))]


def _lower_solve(low: Value, b: Value, transposed: bool = False) -> Value:
    return ops.triangular_solve(low, b, lower=True, transposed=transposed, unit_diagonal=False)
