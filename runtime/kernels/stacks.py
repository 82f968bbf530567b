"""The functions of `lapack`, and `gemm`, over a stack of matrices: along the first axis of every operand."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import lower_builtin, type_callable

from gradsmith.kernels import blas, lapack
from gradsmith.kernels.adjugates import emit_adjugate, emit_adjugate_tangent
from gradsmith.kernels.factorisations import (
    emit_cholesky,
    emit_det,
    emit_inv,
    emit_slogdet,
    emit_solve,
    emit_solve_triangular,
)
from gradsmith.kernels.lapack import RIGHT_SIDE, SQUARE
from gradsmith.kernels.matrix_calls import SCALAR, compiled, new, over_stack
from gradsmith.kernels.strided import DOUBLE, Matrix, raise_on_failure, support_function


def each(function: Callable, *arrays: Any, flags: tuple[bool, ...] = ()) -> np.ndarray:
    """`function` of every place of the first axis, as one array."""
    if len({len(array) for array in arrays}) != 1:
        raise ValueError(f"stacked_{function.__name__}: the shapes of the operands do not fit together")
    results = [function(*places, *flags) for places in zip(*arrays)]
    return np.stack(results) if results else np.empty_like(arrays[-1])


def stacked_solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`solve` for `a` (s, n, n) and `b` (s, n) or (s, n, k)."""
    return each(lapack.solve, a, b)


def stacked_inv(a: np.ndarray) -> np.ndarray:
    """`inv` for `a` (s, n, n)."""
    return np.linalg.inv(a)


def stacked_det(a: np.ndarray) -> np.ndarray:
    """`det` for `a` (s, n, n): (s,)."""
    return np.linalg.det(a)


def stacked_slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`slogdet` for `a` (s, n, n): two (s,)."""
    sign, log_size = np.linalg.slogdet(a)
    return sign, log_size


def stacked_cholesky(a: np.ndarray) -> np.ndarray:
    """`cholesky` for `a` (s, n, n)."""
    return np.linalg.cholesky(a)


def stacked_solve_triangular(
    a: np.ndarray, b: np.ndarray, lower: bool = False, trans: bool = False, unit_diagonal: bool = False
) -> np.ndarray:
    """`solve_triangular` for `a` (s, n, n) and `b` (s, n) or (s, n, k)."""
    return each(lapack.solve_triangular, a, b, flags=(lower, trans, unit_diagonal))


def stacked_adjugate(a: np.ndarray) -> np.ndarray:
    """`adjugate` for `a` (s, n, n)."""
    return each(lapack.adjugate, a)


def stacked_adjugate_tangent(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`adjugate_tangent` for `a` and `y` (s, n, n)."""
    return each(lapack.adjugate_tangent, a, y)


def batched_gemm(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """`out[:] = a @ b` for `a` (s, m, k), `b` (s, k, n) and `out` (s, m, n)."""
    np.matmul(a, b, out=out)


TRIANGULAR_FLAGS = ("lower", "trans", "unit_diagonal")

compiled(stacked_solve, emit_solve, (SQUARE, RIGHT_SIDE), (new(1),), is_stacked=True)
compiled(stacked_inv, emit_inv, (SQUARE,), (new(0),), is_stacked=True)
compiled(stacked_det, emit_det, (SQUARE,), (SCALAR,), is_stacked=True)
compiled(stacked_slogdet, emit_slogdet, (SQUARE,), (SCALAR, SCALAR), is_stacked=True)
compiled(stacked_cholesky, emit_cholesky, (SQUARE,), (new(0),), is_stacked=True)
compiled(stacked_adjugate, emit_adjugate, (SQUARE,), (new(0),), is_stacked=True)
compiled(stacked_adjugate_tangent, emit_adjugate_tangent, (SQUARE, SQUARE), (new(0),), is_stacked=True)
compiled(
    stacked_solve_triangular,
    emit_solve_triangular,
    (SQUARE, RIGHT_SIDE),
    (new(1),),
    TRIANGULAR_FLAGS,
    is_stacked=True,
)


@type_callable(batched_gemm)
def type_batched_gemm(context: Any) -> Callable[..., Any]:
    def typer(a: Any, b: Any, out: Any) -> types.Type:
        blas.check_arrays("batched_gemm", (a, b, out), (3, 3, 3))
        if not out.mutable:
            raise TypingError("batched_gemm writes into its last argument, which is read-only")
        return types.none

    return typer


@lower_builtin(batched_gemm, types.Array, types.Array, types.Array)
def lower_batched_gemm(context: Any, builder: IRBuilder, signature: Any, values: list[ir.Value]) -> ir.Value:
    def call(matrices: list[Matrix]) -> None:
        letter, sizes = blas.LETTERS[signature.args[0].dtype], [matrix.itemsize for matrix in matrices]
        callee = support_function(context, builder, "gemm", letter, DOUBLE, blas.emit_gemm, sizes)
        status = builder.call(callee, [DOUBLE(0.0)] + [value for m in matrices for value in m.values])
        raise_on_failure(context, builder, status, "batched_gemm")

    over_stack(context, builder, "batched_gemm", list(zip(signature.args, values)), call)
    return context.get_dummy_value()
