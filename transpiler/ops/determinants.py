"""Determinants of square matrices and stacks of them: det, its matrix of cofactors, and sign and logarithm.

The derivative of det(a) is trace(adjugate(a) @ da), which divides by nothing and is right for singular matrices.  The
adjugate's own derivative, and with it the second one of det, is right for them too: with a = U diag(s) V.T and
y' = U.T y V, it is the matrix M in V M U.T, times det(U) det(V),

    M[i, i] = sum of p[i, j] y'[j, j] over j,      M[i, j] = -p[i, j] y'[i, j],

where p[i, j] is the product of all s but s[i] and s[j].  One more derivative goes through the inverse and raises
LinAlgError at a singular matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.nodes import Value
from ..ir.types import Type
from . import linalg_stablehlo as hlo
from .base import grid, times
from .families import NoGradient, RuleError, Sample, register, sample
from .linalg import total
from .matrices import MatrixOp, check_square, inner, matmul, matrix_transpose, over_matrix, regular, stacked

SINGULAR = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])


class ToNumber(MatrixOp):
    """One number for each matrix."""

    raises = None

    def infer(self, a: Type) -> Type:
        check_square(self.name, a)
        return a.with_shape(a.shape[:-2])

    def samples(self) -> list[Sample]:
        return [sample(regular(1, 1)), sample(regular(2, 2)), sample(-regular(3, 3)), sample(regular(5, 5)),
                sample(grid(4, 4)), sample(regular(2, 3, 3)), sample(regular(2, 1, 2, 2)),
                sample(np.zeros((0, 0))), sample(regular(3, 3, dtype="float32"))]


@register
class Det(ToNumber):
    """The determinant: 0 for a singular matrix, 1 for an empty one."""

    name, routine, short = "det", "det", "determinant"

    def reference(self, a: Any) -> Any:
        return np.linalg.det(a)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        (t,), (a,) = tangents, args
        return inner(matrix_transpose(ops.adjugate(a)), t)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        (a,) = args
        return [times(over_matrix(ct, a.shape), matrix_transpose(ops.adjugate(a)), singular=False)]

    def stablehlo(self, h: Any, a: Any) -> Any:
        return hlo.det(h, a)

    def samples(self) -> list[Sample]:
        return [*super().samples(), sample(SINGULAR), sample(np.zeros((3, 3))), sample(np.ones((4, 4)))]


@register
class Adjugate(MatrixOp):
    """The transposed matrix of cofactors, so that a @ adjugate(a) = det(a) I."""

    name, routine, short = "adjugate", "adjugate", "cofactors"
    raises = None

    def infer(self, a: Type) -> Type:
        check_square(self.name, a)
        return a

    def reference(self, a: Any) -> Any:
        return stacked(_cofactors, a, out=a.shape[-2:], dtype=a.dtype)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        return ops.adjugate_tangent(args[0], tangents[0])

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        return [matrix_transpose(ops.adjugate_tangent(args[0], matrix_transpose(ct)))]

    def stablehlo(self, h: Any, a: Any) -> Any:
        return hlo.adjugate(h, a)

    def samples(self) -> list[Sample]:
        return [sample(regular(1, 1)), sample(regular(2, 2)), sample(regular(3, 3)), sample(grid(4, 4)),
                sample(SINGULAR, corner=True), sample(np.zeros((2, 2)), corner=True),
                sample(np.ones((4, 4)), corner=True), sample(regular(2, 3, 3)),
                sample(np.zeros((0, 0))), sample(regular(3, 3, dtype="float32"))]


def _cofactors(a: Any) -> Any:
    n = len(a)
    found = np.empty_like(a)
    for i, j in np.ndindex(n, n):
        found[j, i] = (-1) ** (i + j) * np.linalg.det(_minor(a, i, j))
    return found


def _minor(a: Any, i: int, j: int) -> Any:
    return np.delete(np.delete(a, i, 0), j, 1)


@register
class AdjugateTangent(MatrixOp):
    """The derivative of adjugate(a) in the direction y: linear in y, and its own transpose when both are transposed."""

    name, routine, short = "adjugate_tangent", "adjugate_tangent", "t_cofactors"
    raises = None

    def infer(self, a: Type, y: Type) -> Type:
        check_square(self.name, a)
        if a != y:
            raise RuleError(f"{self.name} of {a} and {y}", kind=ValueError, code="E208")
        return a

    def reference(self, a: Any, y: Any) -> Any:
        return stacked(_cofactor_tangents, a, y, out=a.shape[-2:], dtype=a.dtype)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        (t_a, t_y), (a, y) = tangents, args
        return total(None if t_y is None else ops.adjugate_tangent(a, t_y),
                     None if t_a is None else self._second(a, y, t_a))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        a, y = args
        back = matrix_transpose(ct)
        return [matrix_transpose(self._second(a, y, back)) if wanted[0] else None,
                matrix_transpose(ops.adjugate_tangent(a, back)) if wanted[1] else None]

    @staticmethod
    def _second(a: Value, y: Value, z: Value) -> Value:
        """The second derivative of the adjugate in the directions y and z, symmetric in them, for a regular a.

        From d adj = tr(w y) adj - w y adj with w the inverse of a.
        """
        w, adj = ops.inv(a), ops.adjugate(a)
        w_y, w_z = matmul(w, y), matmul(w, z)
        along_z = ops.adjugate_tangent(a, z)
        trace = inner(matrix_transpose(w), y)
        both = inner(matrix_transpose(w_z), w_y)
        first = over_matrix(trace, a.shape) * along_z - over_matrix(both, a.shape) * adj
        return first + matmul(matmul(w_z, w_y), adj) - matmul(w_y, along_z)

    def stablehlo(self, h: Any, a: Any, y: Any) -> Any:
        return hlo.adjugate_tangent(h, a, y)

    def samples(self) -> list[Sample]:
        return [sample(regular(1, 1), grid(1, 1, seed=1)), sample(regular(2, 2), grid(2, 2, seed=1)),
                sample(regular(3, 3), grid(3, 3, seed=1)), sample(grid(4, 4), grid(4, 4, seed=1)),
                sample(regular(2, 3, 3), grid(2, 3, 3, seed=1)), sample(np.zeros((0, 0)), np.zeros((0, 0))),
                sample(regular(3, 3, dtype="float32"), grid(3, 3, seed=1, dtype="float32"))]


def _cofactor_tangents(a: Any, y: Any) -> Any:
    n = len(a)
    found = np.empty_like(a)
    for i, j in np.ndindex(n, n):
        found[j, i] = (-1) ** (i + j) * np.sum(_cofactors(_minor(a, i, j)).T * _minor(y, i, j))
    return found


@register
class LogAbsDet(ToNumber):
    """The logarithm of the determinant's size: -inf for a singular matrix, where the derivative is a LinAlgError."""

    name, routine, short = "log_abs_det", "slogdet", "log_size"

    def reference(self, a: Any) -> Any:
        return np.linalg.slogdet(a)[1]

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        (t,), (a,) = tangents, args
        return inner(matrix_transpose(ops.inv(a)), t)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        (a,) = args
        return [times(over_matrix(ct, a.shape), matrix_transpose(ops.inv(a)), singular=True)]

    def kernel(self, types: Sequence[Type], params: Any) -> str:
        return super().kernel(types, params) + "[1]"

    def stablehlo(self, h: Any, a: Any) -> Any:
        return hlo.log_abs_det(h, a)


@register
class SignDet(NoGradient, ToNumber):
    """The sign of the determinant: 0 for a singular matrix."""

    name, routine, short = "sign_det", "slogdet", "sign"

    def reference(self, a: Any) -> Any:
        return np.linalg.slogdet(a)[0]

    def kernel(self, types: Sequence[Type], params: Any) -> str:
        return super().kernel(types, params) + "[0]"

    def stablehlo(self, h: Any, a: Any) -> Any:
        return hlo.sign_det(h, a)
