"""Linear algebra by direct LAPACK calls, for code that Numba compiles: solve, inv, det, cholesky and what they rest on.

As in `blas`, each function is ordinary Python that does its work with NumPy or SciPy, and in compiled code becomes a
call of a small support function. Matrices are float32 or float64, of any layout, and are never changed. Results are
new arrays, C-contiguous unless it says otherwise. A matrix without rows is handled as NumPy does. Errors are NumPy's:
`LinAlgError` for a matrix that is not square, singular or not positive definite.
"""

from typing import Any

import numpy as np

from gradsmith.kernels.adjugates import emit_adjugate, emit_adjugate_tangent
from gradsmith.kernels.factorisations import (
    emit_cholesky,
    emit_det,
    emit_inv,
    emit_lu_factor,
    emit_lu_solve,
    emit_slogdet,
    emit_solve,
    emit_solve_triangular,
)
from gradsmith.kernels.matrix_calls import PIVOTS, SCALAR, compiled, new
from gradsmith.kernels.symbols import register

ROUTINES = ("getrf", "getrs", "gesv", "potrf", "gesdd", "syevd", "geqrf", "orgqr", "trtrs", "gesvd")

register("cython_lapack", [letter + routine for letter in "sd" for routine in ROUTINES])
register("cython_blas", [letter + routine for letter in "sd" for routine in ("gemm", "trsm")])


# What generated code calls ------------------------------------------------------------------------------------------


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution x of `a @ x = b` for `a` (n, n) and `b` (n,) or (n, k)."""
    return np.linalg.solve(a, b)


def inv(a: np.ndarray) -> np.ndarray:
    """The inverse of `a` (n, n)."""
    return np.linalg.inv(a)


def det(a: np.ndarray) -> Any:
    """The determinant of `a` (n, n), a scalar: 0 if `a` is singular, 1 if it is empty.

    The product of the pivots is kept in range, so only a result that is itself too large or small overflows.
    """
    return np.linalg.det(a)


def slogdet(a: np.ndarray) -> tuple[Any, Any]:
    """The sign of the determinant of `a` (n, n) and the logarithm of its size: (0, -inf) if `a` is singular."""
    sign, log_size = np.linalg.slogdet(a)
    return sign, log_size


def cholesky(a: np.ndarray) -> np.ndarray:
    """The lower triangular L with `L @ L.T = a`, for `a` (n, n) of which only the lower triangle is read."""
    return np.linalg.cholesky(a)


def lu_factor(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factors of `a` (n, n) in one Fortran-contiguous (n, n), and the row swaps as int32 (n,), counted from 0.

    As `scipy.linalg.lu_factor`, except that a singular matrix is no reason for a warning.
    """
    from scipy.linalg.lapack import get_lapack_funcs

    _check_square(a)
    if a.size == 0:
        return np.empty_like(a, order="F"), np.empty(0, np.int32)
    lu, pivots, _ = get_lapack_funcs("getrf", (a,))(a)
    return np.asfortranarray(lu), pivots.astype(np.int32)


def lu_solve(lu: np.ndarray, piv: np.ndarray, b: np.ndarray, trans: bool = False) -> np.ndarray:
    """The solution x of `a @ x = b`, or of `a.T @ x = b` if `trans`, from the factors of `lu_factor(a)`.

    `b` is (n,) or (n, k). Pivots of zero give infinities.
    """
    from scipy.linalg import lu_solve

    if b.size == 0:
        return np.empty_like(b)
    return np.ascontiguousarray(lu_solve((lu, piv), b, trans=int(trans), check_finite=False))


def solve_triangular(
    a: np.ndarray, b: np.ndarray, lower: bool = False, trans: bool = False, unit_diagonal: bool = False
) -> np.ndarray:
    """The solution x of `a @ x = b`, or of `a.T @ x = b` if `trans`, for a triangular `a` (n, n).

    Only the lower triangle is read if `lower`, else only the upper; the diagonal is taken as ones if `unit_diagonal`.
    `b` is (n,) or (n, k).
    """
    from scipy.linalg import solve_triangular

    _check_square(a)
    if b.size == 0:
        return np.empty_like(b)
    if not unit_diagonal and not np.all(np.diagonal(a)):
        raise np.linalg.LinAlgError("Singular matrix")
    return np.ascontiguousarray(
        solve_triangular(a, b, int(trans), lower=bool(lower), unit_diagonal=bool(unit_diagonal), check_finite=False)
    )


def adjugate(a: np.ndarray) -> np.ndarray:
    """The transposed matrix of cofactors of `a` (n, n): the derivative of `det(a)` is `trace(adjugate(a) @ da)`.

    Right for matrices of every rank. By formula up to 3 x 3; above, from the singular values, of which none is divided
    by: for a = U diag(s) V.T, adj(a) = det(U) det(V) V diag(prod of the other s) U.T (Stewart, On the adjugate matrix,
    1998). Rounding errors are then relative to the largest cofactor. Not finite: all NaN.
    """
    _check_square(a)
    n = len(a)
    if n == 0:
        return np.empty_like(a, order="C")
    if n == 1:
        return np.ones_like(a, order="C")
    if n <= 3:
        minors = [[np.delete(np.delete(a, j, 0), i, 1) for j in range(n)] for i in range(n)]
        size = [[m[0, 0] if n == 2 else m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0] for m in row] for row in minors]
        return np.array([[(-1) ** (i + j) * size[i][j] for j in range(n)] for i in range(n)], a.dtype)
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan, order="C")
    u, s, vt = np.linalg.svd(a)
    sign = np.linalg.slogdet(u)[0] * np.linalg.slogdet(vt)[0]
    with np.errstate(over="ignore", under="ignore"):
        others = np.array([np.prod(np.delete(s, i)) for i in range(n)], a.dtype)
    return (vt.T * (sign * others)) @ u.T


def adjugate_tangent(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The derivative of `adjugate(a)` in the direction `y`, both (n, n); linear in `y`.

    As `adjugate`, right for matrices of every rank: for a = diag(s), it is -y[i, j] times the product of all values but
    s[i] and s[j] off the diagonal, and the sum over j of y[j, j] times them on it.
    """
    _check_square(a)
    n = len(a)
    if n < 2:
        return np.zeros_like(a, order="C")
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan, order="C")
    u, s, vt = np.linalg.svd(a)
    sign = np.linalg.slogdet(u)[0] * np.linalg.slogdet(vt)[0]
    with np.errstate(over="ignore", under="ignore"):
        others = np.array([[np.prod(np.delete(s, [i, j])) for j in range(n)] for i in range(n)], a.dtype) * sign
    np.fill_diagonal(others, 0)
    z = u.T @ y @ vt.T
    inner = -z * others + np.diag(others @ np.diagonal(z))
    return vt.T @ inner @ u.T


def _check_square(a: np.ndarray) -> None:
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


# How it is compiled -------------------------------------------------------------------------------------------------

SQUARE, RIGHT_SIDE = {2}, {1, 2}

compiled(solve, emit_solve, (SQUARE, RIGHT_SIDE), (new(1),))
compiled(inv, emit_inv, (SQUARE,), (new(0),))
compiled(det, emit_det, (SQUARE,), (SCALAR,))
compiled(slogdet, emit_slogdet, (SQUARE,), (SCALAR, SCALAR))
compiled(cholesky, emit_cholesky, (SQUARE,), (new(0),))
compiled(lu_factor, emit_lu_factor, (SQUARE,), (new(0, "F"), PIVOTS))
compiled(lu_solve, emit_lu_solve, (SQUARE, {1}, RIGHT_SIDE), (new(2),), ("trans",), integers=(1,))
compiled(
    solve_triangular,
    emit_solve_triangular,
    (SQUARE, RIGHT_SIDE),
    (new(1),),
    ("lower", "trans", "unit_diagonal"),
)
compiled(adjugate, emit_adjugate, (SQUARE,), (new(0),))
compiled(adjugate_tangent, emit_adjugate_tangent, (SQUARE, SQUARE), (new(0),))
