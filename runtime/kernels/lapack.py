"""Linear algebra by direct LAPACK calls, for code that Numba compiles: solve, inv, det, cholesky and what they rest on.

As in `blas`, each function is ordinary Python that does its work with NumPy or SciPy, and in compiled code becomes a
call of a small support function. Matrices are float32 or float64, of any layout, and are never changed. Results are
new arrays, C-contiguous unless it says otherwise. A matrix without rows is handled as NumPy does. Errors are NumPy's:
`LinAlgError` for a matrix that is not square, singular or not positive definite.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

from gradsmith.kernels.factorisations import (
    FACTOR_FLAGS,
    NOT_POSITIVE,
    NOT_SQUARE,
    SINGULAR,
    emit_adjugate,
    emit_cholesky,
    emit_det,
    emit_inv,
    emit_lu_factor,
    emit_lu_solve,
    emit_slogdet,
    emit_solve,
    emit_solve_triangular,
)
from gradsmith.kernels.strided import INT, POINTER, SIZE, Matrix, raise_on_failure, support_function
from gradsmith.kernels.symbols import register

LETTERS = {types.float32: "s", types.float64: "d"}
ROUTINES = ("getrf", "getrs", "gesv", "potrf", "gesdd", "syevd", "geqrf", "orgqr", "trtrs", "gesvd")

register("cython_lapack", [letter + routine for letter in "sd" for routine in ROUTINES])
register("cython_blas", [letter + routine for letter in "sd" for routine in ("gemm", "trsm")])


# What generated code calls ------------------------------------------------------------------------------------------


def solve(a, b):
    """The solution x of `a @ x = b` for `a` (n, n) and `b` (n,) or (n, k)."""
    return np.linalg.solve(a, b)


def inv(a):
    """The inverse of `a` (n, n)."""
    return np.linalg.inv(a)


def det(a):
    """The determinant of `a` (n, n), a scalar: 0 if `a` is singular, 1 if it is empty.

    The product of the pivots is kept in range, so only a result that is itself too large or small overflows.
    """
    return np.linalg.det(a)


def slogdet(a):
    """The sign of the determinant of `a` (n, n) and the logarithm of its size: (0, -inf) if `a` is singular."""
    sign, log_size = np.linalg.slogdet(a)
    return sign, log_size


def cholesky(a):
    """The lower triangular L with `L @ L.T = a`, for `a` (n, n) of which only the lower triangle is read."""
    return np.linalg.cholesky(a)


def lu_factor(a):
    """The factors of `a` (n, n) in one Fortran-contiguous (n, n), and the row swaps as int32 (n,), counted from 0.

    As `scipy.linalg.lu_factor`, except that a singular matrix is no reason for a warning.
    """
    from scipy.linalg.lapack import get_lapack_funcs

    _check_square(a)
    if a.size == 0:
        return np.empty_like(a, order="F"), np.empty(0, np.int32)
    lu, pivots, _ = get_lapack_funcs("getrf", (a,))(a)
    return np.asfortranarray(lu), pivots.astype(np.int32)


def lu_solve(lu, piv, b, trans=False):
    """The solution x of `a @ x = b`, or of `a.T @ x = b` if `trans`, from the factors of `lu_factor(a)`.

    `b` is (n,) or (n, k). Pivots of zero give infinities.
    """
    from scipy.linalg import lu_solve

    if b.size == 0:
        return np.empty_like(b)
    return np.ascontiguousarray(lu_solve((lu, piv), b, trans=int(trans), check_finite=False))


def solve_triangular(a, b, lower=False, trans=False, unit_diagonal=False):
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


def adjugate(a):
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


def _check_square(a):
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


# From a call in user code to a support function ----------------------------------------------------------------------

FAILURES = (
    (NOT_SQUARE, np.linalg.LinAlgError, "Last 2 dimensions of the array must be square"),
    (SINGULAR, np.linalg.LinAlgError, "Singular matrix"),
    (NOT_POSITIVE, np.linalg.LinAlgError, "Matrix is not positive definite"),
)

Result = Callable[[Sequence[types.Array]], types.Type]


def _new(like: int, layout: str = "C") -> Result:
    """A new array of the type and shape of the operand number `like`."""
    return lambda operands: types.Array(operands[like].dtype, operands[like].ndim, layout)


def _scalar(operands: Sequence[types.Array]) -> types.Type:
    return operands[0].dtype


def _pivots(operands: Sequence[types.Array]) -> types.Type:
    return types.Array(types.int32, 1, "C")


def _compiled(
    function: Callable,
    emit: Callable,
    operands: tuple[set[int], ...],
    results: tuple[tuple[int, Result], ...],
    flags: tuple[str, ...] = (),
    integers: tuple[int, ...] = (),
) -> None:
    """Compile `function(*arrays, *flags)`.

    `operands` are the allowed dimensions of each array and `integers` says which of them hold int32; a result is the
    operand whose shape it has, and its type. A flag is a truth value or integer, False when left out.
    """
    name, count, declared = function.__name__, len(operands), inspect.signature(function)

    class Template(AbstractTemplate):
        key = function

        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature:
            try:
                bound = declared.bind(*arguments, **keywords).arguments
            except TypeError as problem:
                raise TypingError(f"{name}: {problem}") from None
            arrays = tuple(bound.values())[:count]
            _check_operands(name, arrays, operands, integers)
            produced = [make(arrays) for _, make in results]
            result = produced[0] if len(produced) == 1 else types.Tuple(produced)
            # Numba fills in the defaults and casts what is given to truth values.
            return Signature(result, (*arrays, *[types.boolean] * len(flags)), None, declared)

    infer_global(function, types.Function(Template))

    @lower_builtin(function, *[types.Array] * count, *[types.Boolean] * len(flags))
    def lower(context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value]) -> ir.Value:
        arrays = list(zip(signature.args[:count], values[:count]))
        produced = signature.return_type
        kinds = list(produced) if isinstance(produced, types.BaseTuple) else [produced]
        made = [_allocate(context, builder, kind, arrays[like]) for kind, (like, _) in zip(kinds, results)]
        matrices = [Matrix.of_array(context, builder, *pair) for pair in arrays] + [matrix for matrix, _ in made]
        bits = INT(0)
        for flag, value in zip(flags, values[count:]):
            bits = builder.or_(bits, builder.select(value, INT(FACTOR_FLAGS[flag]), INT(0)))
        letter, sizes = LETTERS[signature.args[0].dtype], [matrix.itemsize for matrix in matrices]
        callee = support_function(context, builder, name, letter, INT, emit, sizes)
        status = builder.call(callee, [bits] + [value for matrix in matrices for value in matrix.values])
        raise_on_failure(context, builder, status, name, FAILURES)
        final = [finish() for _, finish in made]
        return final[0] if len(final) == 1 else context.make_tuple(builder, produced, final)


def _check_operands(
    name: str, arrays: tuple[Any, ...], dimensions: tuple[set[int], ...], integers: tuple[int, ...]
) -> None:
    given = ", ".join(map(str, arrays))
    if len(arrays) != len(dimensions) or not all(isinstance(array, types.Array) for array in arrays):
        raise TypingError(f"{name} takes {len(dimensions)} arrays, not {given}")
    if any(array.ndim not in allowed for array, allowed in zip(arrays, dimensions)):
        raise TypingError(f"{name} takes arrays of {', '.join(map(str, dimensions))} dimensions, not {given}")
    for i, array in enumerate(arrays):
        if i in integers:
            if array.dtype != types.int32:
                raise TypingError(f"{name} takes pivots as int32, not {array}")
        elif array.dtype not in LETTERS or array.dtype != arrays[0].dtype:
            raise TypingError(f"{name} takes arrays of one dtype, float32 or float64, not {given}")


def _allocate(
    context: Any, builder: IRBuilder, kind: types.Type, like: tuple[types.Array, ir.Value]
) -> tuple[Matrix, Callable[[], ir.Value]]:
    """Room for a result, and how to read it when it has been written."""
    from numba.np.arrayobj import _empty_nd_impl  # loaded by any compilation, but not by the import of Numba

    if not isinstance(kind, types.Array):
        place = cgutils.alloca_once(builder, context.get_value_type(kind))
        size = context.get_abi_sizeof(context.get_data_type(kind))
        matrix = Matrix(builder.bitcast(place, POINTER), SIZE(1), SIZE(1), SIZE(size), SIZE(size), size)
        return matrix, lambda: builder.load(place)
    shape = cgutils.unpack_tuple(builder, context.make_array(like[0])(context, builder, like[1]).shape)
    array = _empty_nd_impl(context, builder, kind, shape[: kind.ndim])
    value = array._getvalue()
    return Matrix.of_array(context, builder, kind, value), lambda: value


SQUARE, RIGHT_SIDE = {2}, {1, 2}

_compiled(solve, emit_solve, (SQUARE, RIGHT_SIDE), ((1, _new(1)),))
_compiled(inv, emit_inv, (SQUARE,), ((0, _new(0)),))
_compiled(det, emit_det, (SQUARE,), ((0, _scalar),))
_compiled(slogdet, emit_slogdet, (SQUARE,), ((0, _scalar), (0, _scalar)))
_compiled(cholesky, emit_cholesky, (SQUARE,), ((0, _new(0)),))
_compiled(lu_factor, emit_lu_factor, (SQUARE,), ((0, _new(0, "F")), (0, _pivots)))
_compiled(lu_solve, emit_lu_solve, (SQUARE, {1}, RIGHT_SIDE), ((2, _new(2)),), ("trans",), integers=(1,))
_compiled(
    solve_triangular,
    emit_solve_triangular,
    (SQUARE, RIGHT_SIDE),
    ((1, _new(1)),),
    ("lower", "trans", "unit_diagonal"),
)
_compiled(adjugate, emit_adjugate, (SQUARE,), ((0, _new(0)),))
