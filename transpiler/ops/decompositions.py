"""Decompositions of matrices and stacks of them (..., m, n): svd, eigh, and their values alone.

The derivatives of singular and eigenvectors divide by differences of values.  A function that does not depend on the
choice of vectors is smooth where values coincide, and there each quotient is 0/0 with a limit: the rules leave it out,
and `jvp_limit` and `vjp_limit` give it from how the numerator changes when the values part (`transforms/limits.py`).
What depends on the choice of vectors has no derivative there; nothing becomes NaN.

Formulas: Townsend, "Differentiating the singular value decomposition" (2016), here with the quotients by s_j**2 -
s_i**2 split into those by s_j - s_i and by s_j + s_i; Giles, "Collected matrix derivative results" (2008).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import minimum, product
from ..ir.nodes import Value
from ..ir.types import Type
from . import jacobi_stablehlo
from .base import Sample, grid, sample
from .families import RuleError, register
from .linalg import total
from .matrices import MatrixOp, check_square, matmul, matrix_transpose, outer, triangle


class Decomposition(MatrixOp):
    """Several results, which the kernel writes into arrays allocated before; more than one leading axis is made one."""

    def __call__(self, *args: Any, **params: Any) -> Any:
        (a,) = self.prepare(*args)
        if a.rank <= 3:
            return super().__call__(a, **params)
        stack, kinds = a.shape[:-2], self.infer(a.type, **params)
        found = super().__call__(ops.reshape(a, shape=(product(stack), *a.shape[-2:])), **params)
        if isinstance(kinds, Type):
            return ops.reshape(found, shape=kinds.shape)
        return tuple(ops.reshape(x, shape=kind.shape) for x, kind in zip(found, kinds, strict=True))

    def kernel(self, types: Sequence[Type], params: Mapping[str, Any]) -> str:
        kinds = self.infer(*types, **params)
        outs = [f"{{out{k}}}" for k in range(1 if isinstance(kinds, Type) else len(kinds))]
        operands = ", ".join(["{0}", *map(repr, params.values()), *outs])
        return f"{'stacked_' if types[0].rank == 3 else ''}{self.routine}({operands})"


def check_matrix(name: str, a: Type) -> None:
    if a.rank < 2:
        raise RuleError(f"{a.rank}-dimensional array given. Array must be at least two-dimensional",
                        kind=np.linalg.LinAlgError, code="E301")
    if a.dtype not in ("float32", "float64"):
        raise RuleError(f"{name} of {a.dtype} matrices is not supported", kind=TypeError, code="E309",
                        help="use float64")


# --- coinciding values ------------------------------------------------------------------------------------------------


class Pairs:
    """Sums or differences of values s (..., k), as divisors for every pair (..., k, k) or every column (..., m, k).

    Where one is so small that rounding alone may have made it, it is not divided by.  A difference is, if it is below
    half the digits of the two values, or below what LAPACK knows of it, a few roundings of the largest value.
    """

    def __init__(self, s: Value) -> None:
        self.s = s
        self.pairs = s.type.with_shape((*s.shape, s.shape[-1]))
        self.precision = float(np.finfo(s.dtype).eps)
        self.largest = ops.max(ops.absolute(s), axes=(s.rank - 1,))
        self.left = self._over_rows(s)
        self.right = self._over_columns(s)

    def _over_rows(self, s: Value) -> Value:
        """[i, j] is s[i]."""
        return ops.broadcast(s, shape=self.pairs.shape, axes=tuple(range(s.rank)))

    def _over_columns(self, s: Value, shape: tuple[Any, ...] | None = None) -> Value:
        """[i, j] is s[j]."""
        shape = shape or self.pairs.shape
        return ops.broadcast(s, shape=shape, axes=(*range(s.rank - 1), len(shape) - 1))

    def _floor(self, shape: tuple[Any, ...]) -> Value:
        largest = ops.broadcast(self.largest, shape=shape, axes=tuple(range(self.largest.rank)))
        return largest * const(16 * self.precision, largest.type)

    @property
    def is_diagonal(self) -> Value:
        shape = self.pairs.shape
        rows, columns = (ops.iota(shape=shape, axis=len(shape) - k, dtype="int64") for k in (2, 1))
        return ops.equal(rows, columns)

    def differences(self, x: Value) -> Value:
        """x[i, j] / (s[j] - s[i]), 0 for equals and on the diagonal."""
        return divided(x, self.right - self.left, self._are_equal())

    def difference_limits(self, x: Value, again: Value | None = None) -> Value:
        """x[i, j] / (p[j] - p[i]) for equals off the diagonal, where p are the `steps`; 0 elsewhere.

        again: the derivative of x along p, for what is one order more exact in the difference (transforms/limits.py).
        """
        p = steps(self.s)
        elsewhere = ops.logical_not(ops.logical_and(self._are_equal(), ops.logical_not(self.is_diagonal)))
        return limit(x, again, self.right - self.left, self._over_columns(p) - self._over_rows(p), elsewhere)

    def _are_equal(self) -> Value:
        larger = ops.maximum(ops.absolute(self.left), ops.absolute(self.right))
        bound = larger * const(self.precision ** 0.5, self.pairs) + self._floor(self.pairs.shape)
        return ops.logical_or(ops.absolute(self.right - self.left) <= bound, self.is_diagonal)

    def sums(self, x: Value) -> Value:
        """x[i, j] / (s[j] + s[i]), 0 where both are 0 and on the diagonal."""
        return divided(x, self.right + self.left, ops.logical_or(self._vanish(), self.is_diagonal))

    def sum_limits(self, x: Value, again: Value | None = None) -> Value:
        p = steps(self.s)
        elsewhere = ops.logical_not(ops.logical_and(self._vanish(), ops.logical_not(self.is_diagonal)))
        return limit(x, again, self.right + self.left, self._over_columns(p) + self._over_rows(p), elsewhere)

    def _vanish(self) -> Value:
        return self.right + self.left <= self._floor(self.pairs.shape)

    def columns(self, x: Value) -> Value:
        """x[i, j] / s[j], 0 where s[j] is."""
        s = self._over_columns(self.s, x.shape)
        return divided(x, s, s <= self._floor(x.shape))

    def column_limits(self, x: Value, again: Value | None = None) -> Value:
        s = self._over_columns(self.s, x.shape)
        return limit(x, again, s, self._over_columns(steps(self.s), x.shape), s > self._floor(x.shape))


def limit(x: Value, again: Value | None, divisor: Value, step: Value, elsewhere: Value) -> Value:
    """x / step - divisor * again / (2 step ** 2), and 0 `elsewhere`."""
    first = divided(x, step, elsewhere)
    if again is None:
        return first
    zero = const(0, x.type)
    return first - divided(ops.select(elsewhere, zero, divisor) * ops.select(elsewhere, zero, again),
                           const(2, x.type) * step * step, elsewhere)


def divided(x: Value, by: Value, is_zero: Value) -> Value:
    """x / by, and 0 where `is_zero`."""
    zero, one = const(0, x.type), const(1, x.type)
    return ops.select(is_zero, zero, x / ops.select(is_zero, one, by))


def steps(s: Value) -> Value:
    """A direction in which equal values part and those that are 0 become positive: 1, 2, 3, ..."""
    return ops.iota(shape=s.shape, axis=s.rank - 1, dtype=s.dtype) + const(1, s.type)


def scaled_columns(x: Value, s: Value) -> Value:
    """x @ diag(s)."""
    return x * ops.broadcast(s, shape=x.shape, axes=(*range(s.rank - 1), x.rank - 1))


def diagonal_of(x: Value, y: Value) -> Value:
    """The sums of x * y over rows: the diagonal of x.T @ y."""
    return ops.sum(x * y, axes=(x.rank - 2,))


def rest(q: Value, x: Value) -> Value:
    """The part of the columns of x that is orthogonal to those of q: (I - q q.T) x."""
    return x - matmul(q, matmul(matrix_transpose(q), x))


def antisymmetric(x: Value) -> Value:
    return x - matrix_transpose(x)


def is_empty(a: Value) -> bool:
    return any(isinstance(d, int) and d == 0 for d in a.shape[-2:])


# --- symmetric matrices -----------------------------------------------------------------------------------------------


def symmetrised(t: Value, lower: bool) -> Value:
    """What the decomposition takes a matrix for: one of its triangles, mirrored."""
    half = triangle(t, lower=lower, diagonal=0.5)
    return half + matrix_transpose(half)


def folded(g: Value, lower: bool) -> Value:
    """The transpose of `symmetrised`."""
    return triangle(g + matrix_transpose(g), lower=lower, diagonal=0.5)


def turned(v: Value, x: Value) -> Value:
    """v @ x @ v.T."""
    return outer(matmul(v, x), v, True)


@register
class Eigh(Decomposition):
    """Eigenvalues (..., n), rising, and vectors (..., n, n) in columns of symmetric matrices, of which one
    triangle is read and has a derivative: the lower or the upper."""

    name, routine, result_count = "eigh", "eigh", 2

    def infer(self, a: Type, *, lower: bool) -> tuple[Type, Type]:
        check_square(self.name, a)
        return a.with_shape(a.shape[:-1]), a

    def reference(self, a: Any, *, lower: bool) -> Any:
        return tuple(np.linalg.eigh(a, "L" if lower else "U"))

    def stablehlo(self, h: Any, a: Any, *, lower: bool) -> tuple[Any, ...]:
        return jacobi_stablehlo.eigh(h, a, lower)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value],
            lower: bool = True, **params: Any) -> tuple[Value, Value]:
        (t,), (w, v) = tangents, result
        if is_empty(v):
            return const(0, w.type), const(0, v.type)
        inner = matmul(matrix_transpose(v), matmul(symmetrised(t, lower), v))  # type: ignore[arg-type]
        pairs = Pairs(w)
        on = ops.sum(ops.select(pairs.is_diagonal, inner, const(0, inner.type)), axes=(inner.rank - 1,))
        return on, matmul(v, pairs.differences(inner))

    def vjp(self, ct: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value], wanted: Sequence[bool],
            lower: bool = True, **params: Any) -> list[Any]:
        (ct_w, ct_v), (w, v) = ct, result
        if is_empty(v):
            return [const(0, v.type)]
        turns = None if ct_v is None else turned(v, Pairs(w).differences(matmul(matrix_transpose(v), ct_v)))
        grows = None if ct_w is None else outer(scaled_columns(v, ct_w), v, True)
        return [folded(total(turns, grows), lower)]  # type: ignore[arg-type]

    def parting(self, args: Sequence[Value], result: Sequence[Value], **params: Any) -> Sequence[Value | None] | None:
        w, _ = result
        return None if w.shape[-1] in (0, 1) else (steps(w), None)

    def jvp_limit(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value],
                  lower: bool = True, **params: Any) -> Sequence[Value | None]:
        (t,), (w, v) = tangents, result
        inner = matmul(matrix_transpose(v), matmul(symmetrised(t, lower), v))  # type: ignore[arg-type]
        return None, matmul(v, Pairs(w).difference_limits(inner))

    def vjp_limit(self, moved: Sequence[Value | None], again: Sequence[Value | None], args: Sequence[Value],
                  result: Sequence[Value], lower: bool = True, **params: Any) -> list[Any]:
        (_, moved_v), (_, again_v), (w, v) = moved, again, result
        if moved_v is None:
            return [None]
        back = matrix_transpose(v)
        inner = Pairs(w).difference_limits(matmul(back, moved_v), None if again_v is None else matmul(back, again_v))
        return [folded(turned(v, inner), lower)]

    def giving_only(self, used: Sequence[bool]) -> Any:
        return ops.eigvalsh if tuple(used) == (True, False) else None

    def samples(self) -> list[Sample]:
        return symmetric_samples()


@register
class Eigvalsh(Decomposition):
    """The eigenvalues of symmetric matrices alone, rising: what is left of eigh where nobody reads the vectors.

    Its second derivative does not see that equal eigenvalues part; that of eigh does.
    """

    name, routine = "eigvalsh", "eigvalsh"

    def infer(self, a: Type, *, lower: bool) -> Type:
        check_square(self.name, a)
        return a.with_shape(a.shape[:-1])

    def reference(self, a: Any, *, lower: bool) -> Any:
        return np.linalg.eigvalsh(a, "L" if lower else "U")

    def stablehlo(self, h: Any, a: Any, *, lower: bool) -> Any:
        return jacobi_stablehlo.eigh(h, a, lower, vectors=False)[0]

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value,
            lower: bool = True, **params: Any) -> Value:
        (t,), (a,) = tangents, args
        _, v = ops.eigh(a, lower=lower)
        return diagonal_of(v, matmul(symmetrised(t, lower), v))  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            lower: bool = True, **params: Any) -> list[Any]:
        _, v = ops.eigh(args[0], lower=lower)
        return [folded(outer(scaled_columns(v, ct), v, True), lower)]

    def samples(self) -> list[Sample]:
        return symmetric_samples()


def symmetric(*shape: int, dtype: str = "float64") -> Any:
    x = grid(*shape)
    return (x + np.swapaxes(x, -1, -2) + np.diag(np.arange(shape[-1]) * 2.0)).astype(dtype)


def symmetric_samples() -> list[Sample]:
    uneven = symmetric(3, 3) + np.triu(np.ones((3, 3)), 1)
    arrays = [symmetric(1, 1), symmetric(2, 2), symmetric(4, 4), symmetric(2, 3, 3), uneven, np.zeros((0, 0)),
              symmetric(2, 1, 2, 2), symmetric(3, 3, dtype="float32")]
    return [*(sample(a, lower=True) for a in arrays), sample(uneven, lower=False),
            sample(np.eye(3), corner=True, lower=True), sample(np.zeros((2, 2)), corner=True, lower=True)]


# --- any matrices -----------------------------------------------------------------------------------------------------


@register
class Svd(Decomposition):
    """u (..., m, k), s (..., k), falling, and vt (..., k, n) with k = min(m, n): a = u @ diag(s) @ vt."""

    name, routine, result_count = "svd", "svd", 3

    def infer(self, a: Type) -> tuple[Type, Type, Type]:
        check_matrix(self.name, a)
        *stack, m, n = a.shape
        k = minimum(m, n)
        return a.with_shape((*stack, m, k)), a.with_shape((*stack, k)), a.with_shape((*stack, k, n))

    def reference(self, a: Any) -> Any:
        return tuple(np.linalg.svd(a, full_matrices=False))

    def stablehlo(self, h: Any, a: Any) -> tuple[Any, ...]:
        return jacobi_stablehlo.svd(h, a)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value],
            **params: Any) -> tuple[Value, Value, Value]:
        (t,), (u, s, vt) = tangents, result
        if is_empty(args[0]):
            return const(0, u.type), const(0, s.type), const(0, vt.type)
        pairs = Pairs(s)
        t_u, t_v = self._turns(t, u, vt, pairs.differences, pairs.sums, pairs.columns)  # type: ignore[arg-type]
        return t_u, diagonal_of(u, matmul(t, matrix_transpose(vt))), matrix_transpose(t_v)  # type: ignore[arg-type]

    @staticmethod
    def _turns(t: Value, u: Value, vt: Value, differences: Any, sums: Any, columns: Any) -> tuple[Value, Value]:
        """Tangents of u and of v, by what divides by differences of singular values, by sums and by themselves."""
        v = matrix_transpose(vt)
        over, back = matmul(t, v), matmul(matrix_transpose(t), u)
        inner = matmul(matrix_transpose(u), over)
        other = matrix_transpose(inner)
        both, apart = differences(inner + other), sums(inner - other)
        half = const(0.5, both.type)
        return (matmul(u, (both + apart) * half) + columns(rest(u, over)),
                matmul(v, (both - apart) * half) + columns(rest(v, back)))

    def vjp(self, ct: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value], wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        (ct_u, ct_s, ct_vt), (u, s, vt) = ct, result
        if is_empty(args[0]):
            return [const(0, args[0].type)]
        pairs = Pairs(s)
        grows = None if ct_s is None else matmul(scaled_columns(u, ct_s), vt)
        return [total(grows, *self._pulled(ct_u, ct_vt, u, vt, pairs.differences, pairs.sums, pairs.columns))]

    @classmethod
    def _pulled(cls, ct_u: Value | None, ct_vt: Value | None, u: Value, vt: Value, differences: Any, sums: Any,
                columns: Any, again: tuple[Value | None, Value | None] | None = None) -> list[Value | None]:
        """The transpose of `_turns`.  again: derivatives of ct_u and ct_vt, given to what divides."""
        if ct_u is None and ct_vt is None:
            return []
        second = cls._numerators(again[0], again[1], u, vt) if again else ()
        first = cls._numerators(ct_u, ct_vt, u, vt)
        both, apart, beside_u, beside_v = (
            None if x is None else divide(x, *second[k:k + 1])
            for k, (divide, x) in enumerate(zip((differences, sums, columns, columns), first, strict=True)))
        inner = (both + apart) * const(0.5, both.type)  # type: ignore[operator, union-attr]
        return [matmul(matmul(u, inner), vt), None if beside_u is None else matmul(beside_u, vt),
                None if beside_v is None else matmul(u, matrix_transpose(beside_v))]

    @staticmethod
    def _numerators(ct_u: Value | None, ct_vt: Value | None, u: Value, vt: Value) -> tuple[Value | None, ...]:
        """What is divided by differences of singular values, by sums, and by themselves for u and for v."""
        ct_v = None if ct_vt is None else matrix_transpose(ct_vt)
        of_u = None if ct_u is None else antisymmetric(matmul(matrix_transpose(u), ct_u))
        of_v = None if ct_v is None else antisymmetric(matmul(vt, ct_v))
        return (total(of_u, of_v), total(of_u, None if of_v is None else -of_v),
                None if ct_u is None else rest(u, ct_u),
                None if ct_v is None else rest(matrix_transpose(vt), ct_v))

    def parting(self, args: Sequence[Value], result: Sequence[Value], **params: Any) -> Sequence[Value | None] | None:
        return None if is_empty(args[0]) else (None, steps(result[1]), None)

    parts_from_zero = True

    def jvp_limit(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value],
                  **params: Any) -> Sequence[Value | None]:
        (t,), (u, s, vt) = tangents, result
        pairs = Pairs(s)
        t_u, t_v = self._turns(t, u, vt, pairs.difference_limits, pairs.sum_limits,  # type: ignore[arg-type]
                               pairs.column_limits)
        return t_u, None, matrix_transpose(t_v)

    def vjp_limit(self, moved: Sequence[Value | None], again: Sequence[Value | None], args: Sequence[Value],
                  result: Sequence[Value], **params: Any) -> list[Any]:
        (u, _, vt), pairs = result, Pairs(result[1])
        return [total(*self._pulled(moved[0], moved[2], u, vt, pairs.difference_limits, pairs.sum_limits,
                                    pairs.column_limits, (again[0], again[2])))]

    def giving_only(self, used: Sequence[bool]) -> Any:
        return ops.singular_values if tuple(used) == (False, True, False) else None

    def samples(self) -> list[Sample]:
        return matrix_samples()


@register
class SingularValues(Decomposition):
    """The singular values (..., min(m, n)) alone, falling: what is left of svd where nobody reads the vectors."""

    name, routine = "singular_values", "singular_values"

    def infer(self, a: Type) -> Type:
        check_matrix(self.name, a)
        return a.with_shape((*a.shape[:-2], minimum(*a.shape[-2:])))

    def reference(self, a: Any) -> Any:
        return np.linalg.svd(a, compute_uv=False)

    def stablehlo(self, h: Any, a: Any) -> Any:
        return jacobi_stablehlo.svd(h, a, vectors=False)[0]

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        (t,), (a,) = tangents, args
        u, _, vt = ops.svd(a)
        return diagonal_of(u, matmul(t, matrix_transpose(vt)))  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Any]:
        u, _, vt = ops.svd(args[0])
        return [matmul(scaled_columns(u, ct), vt)]

    def samples(self) -> list[Sample]:
        return matrix_samples()


def matrix_samples() -> list[Sample]:
    return [sample(grid(1, 1)), sample(grid(3, 3)), sample(grid(4, 2)), sample(grid(2, 4)), sample(grid(2, 3, 2)),
            sample(grid(3, 0)), sample(grid(0, 2)), sample(grid(2, 1, 2, 3)), sample(np.eye(3), corner=True),
            sample(np.zeros((2, 3)), corner=True), sample(np.ones((3, 3)), corner=True),
            sample(grid(3, 2, dtype="float32"))]
