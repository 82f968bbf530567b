"""np.linalg: svd, svdvals, eigh, eigvalsh, qr, pinv, cond."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import same_size
from ..ir.nodes import Value
from .base import RuleError
from .decompositions import check_matrix
from .matrices import check_square
from .norms import matrix_norm
from .numpy_linalg import floats, inv
from .spelling import spelled

SVDResult: Any = type(np.linalg.svd(np.eye(1)))
EighResult: Any = type(np.linalg.eigh(np.eye(1)))
QRResult: Any = type(np.linalg.qr(np.eye(1)))


def _matrix(name: str, a: Any) -> Value:
    """A matrix, or a stack of them, in LAPACK's dtypes."""
    (value,) = floats(name, a)
    check_matrix(name, value.type)
    return value


@spelled(np.linalg.svd)
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    value = _matrix("svd", a)
    if hermitian:
        raise RuleError("np.linalg.svd(hermitian=True) is not supported", kind=NotImplementedError, code="E203",
                        help="use np.linalg.eigh, or leave hermitian out")
    if not compute_uv:
        return ops.svd(value)[1]
    if full_matrices and not same_size(*value.shape[-2:]):
        raise RuleError("np.linalg.svd with full matrices of a matrix that is not square has vectors without a "
                        "derivative", kind=NotImplementedError, code="E203", help="pass full_matrices=False")
    return SVDResult(*ops.svd(value))


@spelled(np.linalg.svdvals)
def svdvals(x: Any, /) -> Value:
    return ops.svd(_matrix("svdvals", x))[1]


def _symmetric(name: str, a: Any, uplo: Any) -> tuple[Value, bool]:
    """A matrix, and whether its lower triangle is the one to read."""
    (value,) = floats(name, a)
    check_square(name, value.type)
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise RuleError("UPLO argument must be 'L' or 'U'", kind=ValueError, code="E208")
    return value, uplo.upper() == "L"


@spelled(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:
    value, lower = _symmetric("eigh", a, UPLO)
    return EighResult(*ops.eigh(value, lower=lower))


@spelled(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any = "L") -> Value:
    value, lower = _symmetric("eigvalsh", a, UPLO)
    return ops.eigh(value, lower=lower)[0]


@spelled(np.linalg.qr)
def qr(a: Any, mode: Any = "reduced") -> Any:
    value = _matrix("qr", a)
    if mode == "r":
        return ops.qr(value)[1]
    if mode not in ("reduced", "complete"):
        raise RuleError(f"np.linalg.qr in mode {mode!r} is not supported", kind=NotImplementedError, code="E203",
                        help="use mode='reduced'")
    if mode == "complete" and not same_size(*value.shape[-2:]):
        raise RuleError("np.linalg.qr in mode 'complete' of a matrix that is not square has columns without a "
                        "derivative", kind=NotImplementedError, code="E203", help="use mode='reduced'")
    return QRResult(*ops.qr(value))


@spelled(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = 0) -> Value:
    value = _matrix("pinv", a)
    if hermitian:
        raise RuleError("np.linalg.pinv(hermitian=True) is not supported", kind=NotImplementedError, code="E203",
                        help="leave hermitian out")
    if rcond is not None and rtol != 0:
        raise RuleError("`rtol` and `rcond` can't be both set.", kind=ValueError, code="E208")
    cutoff = rcond if rcond is not None else 1e-15 if rtol == 0 else rtol
    if isinstance(cutoff, bool) or not isinstance(cutoff, (int, float, np.floating, np.integer)):
        raise RuleError("the cutoff of pinv must be one number known while transpiling", kind=TypeError, code="E303")
    return ops.pinv(value, cutoff=float(cutoff))


@spelled(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Value:
    """The ratio of the largest to the smallest singular value, or norm(x) norm(inv(x)) for other norms."""
    if p is not None and p not in (2, -2):
        return ops.multiply(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))
    s = svdvals(x)
    most, least = ops.max(s, axes=(s.rank - 1,)), ops.min(s, axes=(s.rank - 1,))
    ratio = least / most if p == -2 else most / least
    return ops.select(ops.isnan(ratio), const(np.inf, ratio.type), ratio)
