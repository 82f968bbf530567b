"""Decompositions by direct LAPACK calls, for code that Numba compiles: SVD, eigh, QR, pseudo-inverse.

They call the drivers that NumPy calls (gesdd, syevd, geqrf and orgqr) on the same copies, so that signs and phases are
NumPy's.  Each function writes its results into arrays given after the matrix, whose sizes say what is wanted, and
returns nothing.  Matrices are float32 or float64, of any layout, and are never changed.  `stacked_NAME` takes stacks
along the first axis of every array.  Errors are NumPy's `LinAlgError`.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

import gradsmith.kernels.lapack  # noqa: F401 (it gives the routines their names)
from gradsmith.kernels.decomposition_calls import (
    FAILURES,
    emit_eigh,
    emit_eigvalsh,
    emit_pinv,
    emit_qr,
    emit_singular_values,
    emit_svd,
)
from gradsmith.kernels.matrix_calls import LETTERS, check_operands, matrix_of, over_stack
from gradsmith.kernels.strided import DOUBLE, Matrix, raise_on_failure, support_function

# What generated code calls ------------------------------------------------------------------------------------------


def svd(a: np.ndarray, u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> None:
    """`a` (m, n) = u @ diag(s) @ vt with u (m, k), s (k,) falling, vt (k, n) and k = min(m, n)."""
    u[...], s[...], vt[...] = np.linalg.svd(a, full_matrices=False)


def singular_values(a: np.ndarray, s: np.ndarray) -> None:
    """The singular values of `a` (m, n), falling: s (min(m, n),)."""
    s[...] = np.linalg.svd(a, compute_uv=False)


def eigh(a: np.ndarray, lower: bool, w: np.ndarray, v: np.ndarray) -> None:
    """The eigenvalues w (n,), rising, and vectors v (n, n) of the symmetric `a` (n, n). Reads its lower triangle, or
    its upper one."""
    w[...], v[...] = np.linalg.eigh(a, "L" if lower else "U")


def eigvalsh(a: np.ndarray, lower: bool, w: np.ndarray) -> None:
    """The eigenvalues of the symmetric `a` (n, n), rising: w (n,). Reads its lower triangle, or its upper one."""
    w[...] = np.linalg.eigvalsh(a, "L" if lower else "U")


def qr(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    """`a` (m, n) = q @ r with q (m, k) of orthonormal columns, r (k, n) upper triangular and k = min(m, n)."""
    q[...], r[...] = np.linalg.qr(a)


def pinv(a: np.ndarray, cutoff: float, out: np.ndarray) -> None:
    """The pseudo-inverse of `a` (m, n): out (n, m). Singular values up to `cutoff` times the largest count as 0."""
    out[...] = np.linalg.pinv(a, cutoff)


def stacked_svd(a: np.ndarray, u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> None:
    """`svd` for `a` (b, m, n)."""
    svd(a, u, s, vt)


def stacked_singular_values(a: np.ndarray, s: np.ndarray) -> None:
    """`singular_values` for `a` (b, m, n)."""
    singular_values(a, s)


def stacked_eigh(a: np.ndarray, lower: bool, w: np.ndarray, v: np.ndarray) -> None:
    """`eigh` for `a` (b, n, n)."""
    eigh(a, lower, w, v)


def stacked_eigvalsh(a: np.ndarray, lower: bool, w: np.ndarray) -> None:
    """`eigvalsh` for `a` (b, n, n)."""
    eigvalsh(a, lower, w)


def stacked_qr(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    """`qr` for `a` (b, m, n)."""
    qr(a, q, r)


def stacked_pinv(a: np.ndarray, cutoff: float, out: np.ndarray) -> None:
    """`pinv` for `a` (b, m, n)."""
    pinv(a, cutoff, out)


# How it is compiled -------------------------------------------------------------------------------------------------


def written_into(function: Callable, emit: Callable, dimensions: tuple[int, ...], is_stacked: bool = False) -> None:
    """Compile `function(*arrays)`, which writes into all of them but the first.

    `dimensions` are those of each array, one more if the function is for stacks. The second parameter may be a number
    or truth value instead, `cutoff` or `lower`, which the support function gets as a double; the others get 0.
    """
    name, support = function.__name__, emit.__name__.removeprefix("emit_")
    declared = list(inspect.signature(function).parameters)
    number = next((k for k, parameter in enumerate(declared) if parameter in ("cutoff", "lower")), None)
    allowed = [{ndim + is_stacked} for ndim in dimensions]

    def arrays_among(items: Any) -> list[Any]:
        return [item for k, item in enumerate(items) if k != number]

    class Template(AbstractTemplate):
        key = function

        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
            if keywords or len(arguments) != len(declared):
                return None
            check_operands(name, tuple(arrays_among(arguments)), allowed)
            taken = tuple(types.float64 if k == number else kind for k, kind in enumerate(arguments))
            return Signature(types.none, taken, None)

    infer_global(function, types.Function(Template))

    @lower_builtin(function, *[types.Float if k == number else types.Array for k in range(len(declared))])
    def lower(context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value]) -> ir.Value:
        pairs = list(zip(arrays_among(signature.args), arrays_among(values)))
        letter = LETTERS[pairs[0][0].dtype]
        head = DOUBLE(0.0) if number is None else values[number]

        def call(matrices: list[Matrix]) -> None:
            sizes = [matrix.itemsize for matrix in matrices]
            callee = support_function(context, builder, support, letter, DOUBLE, emit, sizes)
            status = builder.call(callee, [head] + [value for matrix in matrices for value in matrix.values])
            raise_on_failure(context, builder, status, name, FAILURES)

        if is_stacked:
            over_stack(context, builder, name, pairs, call)
        else:
            call([matrix_of(context, builder, *pair) for pair in pairs])
        return context.get_dummy_value()


_KINDS: tuple[tuple[Callable, Callable, Callable, tuple[int, ...]], ...] = (
    (svd, stacked_svd, emit_svd, (2, 2, 1, 2)),
    (singular_values, stacked_singular_values, emit_singular_values, (2, 1)),
    (eigh, stacked_eigh, emit_eigh, (2, 1, 2)),
    (eigvalsh, stacked_eigvalsh, emit_eigvalsh, (2, 1)),
    (qr, stacked_qr, emit_qr, (2, 2, 2)),
    (pinv, stacked_pinv, emit_pinv, (2, 2)),
)
for _single, _stacked, _emit, _dimensions in _KINDS:
    written_into(_single, _emit, _dimensions)
    written_into(_stacked, _emit, _dimensions, is_stacked=True)
