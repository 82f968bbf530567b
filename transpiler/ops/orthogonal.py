"""QR factors and pseudo-inverses of matrices and stacks of them (..., m, n).

Formulas: Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010) for tall matrices, with
the columns after the first m of a wide one by the product rule; Golub and Pereyra, "The differentiation of
pseudo-inverses" (1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import minimum
from ..ir.index import Span
from ..ir.nodes import Value
from ..ir.types import Type
from . import householder_stablehlo, jacobi_stablehlo
from .base import Sample, grid, sample
from .decompositions import Decomposition, antisymmetric, check_matrix, is_empty, rest
from .families import register
from .linalg import total
from .matrices import matmul, matrix_transpose, outer, triangle


def columns(a: Value, start: Any, count: Any) -> Value:
    return ops.load(a, index=(*[Span(0, d) for d in a.shape[:-1]], Span(start, count)))


@register
class Qr(Decomposition):
    """q (..., m, k) with orthonormal columns and r (..., k, n), upper triangular, with k = min(m, n): a = q @ r.

    The derivative is a LinAlgError where the first k columns are dependent, which r shows by a 0 on its diagonal.
    """

    name, routine, result_count = "qr", "qr", 2
    raises = None

    def infer(self, a: Type) -> tuple[Type, Type]:
        check_matrix(self.name, a)
        *stack, m, n = a.shape
        k = minimum(m, n)
        return a.with_shape((*stack, m, k)), a.with_shape((*stack, k, n))

    def reference(self, a: Any) -> Any:
        return tuple(np.linalg.qr(a))

    def stablehlo(self, h: Any, a: Any) -> tuple[Any, Any]:
        return householder_stablehlo.qr(h, a)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value],
            **params: Any) -> tuple[Value, Value]:
        (t,), (a,), (q, r) = tangents, args, result
        if is_empty(a):
            return const(0, q.type), const(0, r.type)
        k, n = r.shape[-2:]
        square = columns(r, 0, k)
        moved = matrix_transpose(_upper_solve(square, matrix_transpose(columns(t, 0, k)), True))  # type: ignore[arg-type]
        inner = matmul(matrix_transpose(q), moved)
        turn = antisymmetric(triangle(inner, lower=True, diagonal=0.0))
        t_q = matmul(q, turn) + rest(q, moved)
        t_r = matmul(inner - turn, square)
        if n == k:
            return t_q, t_r
        beyond = (matmul(matrix_transpose(t_q), columns(a, k, n - k))
                  + matmul(matrix_transpose(q), columns(t, k, n - k)))  # type: ignore[arg-type]
        return t_q, ops.concatenate(t_r, beyond, axis=r.rank - 1)

    def vjp(self, ct: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value], wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        (ct_q, ct_r), (a,), (q, r) = ct, args, result
        if is_empty(a):
            return [const(0, a.type)]
        k, n = r.shape[-2:]
        square, beyond = columns(r, 0, k), None
        if ct_r is not None and n != k:
            ct_beyond = columns(ct_r, k, n - k)
            beyond = matmul(q, ct_beyond)
            ct_q = total(ct_q, outer(columns(a, k, n - k), ct_beyond, True))
        products = total(None if ct_r is None else outer(square, columns(ct_r, 0, k), True),
                         None if ct_q is None else -matmul(matrix_transpose(ct_q), q))
        low = triangle(products, lower=True, diagonal=0.0)  # type: ignore[arg-type]
        symmetric = triangle(products, lower=True) + matrix_transpose(low)  # type: ignore[arg-type]
        pulled = total(ct_q, matmul(q, symmetric))
        d_first = matrix_transpose(_upper_solve(square, matrix_transpose(pulled), False))  # type: ignore[arg-type]
        if n == k:
            return [d_first]
        if beyond is None:
            beyond = const(0, a.type.with_shape((*a.shape[:-1], n - k)))
        return [ops.concatenate(d_first, beyond, axis=a.rank - 1)]

    def samples(self) -> list[Sample]:
        return _samples()


def _upper_solve(r: Value, b: Value, transposed: bool) -> Value:
    return ops.triangular_solve(r, b, lower=False, transposed=transposed, unit_diagonal=False)


@register
class Pinv(Decomposition):
    """The pseudo-inverse (..., n, m); singular values up to `cutoff` times the largest count as 0.

    Its derivative is for matrices that keep their rank.
    """

    name, routine = "pinv", "pinv"

    def infer(self, a: Type, *, cutoff: float) -> Type:
        check_matrix(self.name, a)
        return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))

    def reference(self, a: Any, *, cutoff: float) -> Any:
        return np.linalg.pinv(a, cutoff)

    def stablehlo(self, h: Any, a: Any, *, cutoff: float) -> Any:
        return jacobi_stablehlo.pinv(h, a, cutoff)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        """-P t P + (I - P a) t.T P.T P + P P.T t.T (I - a P)."""
        (t,), (a,) = tangents, args
        if is_empty(a):
            return const(0, result.type)
        p, back = result, matrix_transpose(t)  # type: ignore[arg-type]
        over = matmul(matmul(back, matrix_transpose(p)), p)
        left = matmul(matmul(p, matrix_transpose(p)), back)
        return (over - matmul(p, matmul(a, over))) + (left - matmul(matmul(left, a), p)) - matmul(
            matmul(p, t), p)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        """-P.T ct P.T + P.T P ct.T (I - P a) ... the transpose of the above, term by term."""
        (a,) = args
        if is_empty(a):
            return [const(0, a.type)]
        p, back = matrix_transpose(result), matrix_transpose(ct)
        over = matmul(p, matmul(result, back))
        left = matmul(matmul(back, result), p)
        return [(over - matmul(matmul(over, result), a)) + (left - matmul(a, matmul(result, left)))
                - matmul(matmul(p, ct), p)]

    def samples(self) -> list[Sample]:
        deficient = np.outer(np.arange(1.0, 4.0), [2.0, -1.0])
        found = [sample(*s.args, corner=s.corner, cutoff=1e-15) for s in _samples()]
        return [*found, sample(deficient, cutoff=1e-10, corner=True), sample(np.zeros((2, 2)), cutoff=1e-15,
                                                                               corner=True)]


def _samples() -> list[Sample]:
    return [sample(grid(1, 1)), sample(grid(3, 3)), sample(grid(4, 2)), sample(grid(2, 4)), sample(grid(2, 3, 2)),
            sample(grid(3, 0)), sample(grid(0, 2)), sample(grid(2, 1, 2, 3)), sample(grid(3, 2, dtype="float32"))]
