"""scipy.linalg: solve_triangular, cholesky, cho_factor, cho_solve, and what it shares with np.linalg."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..ir.dims import same_size, shown_shape
from ..ir.nodes import Value
from . import norms, numpy_linalg
from .base import RuleError
from .matrices import check_square, matrix_transpose
from .spelling import spelled


def _system(name: str, a: Any, b: Any) -> tuple[Value, Value]:
    """A matrix and a right side (n,) or (n, k), in LAPACK's dtypes."""
    left, right = numpy_linalg.floats(name, a, b)
    check_square(name, left.type)
    if left.rank != 2 or right.rank not in (1, 2):
        raise RuleError(f"scipy.linalg.{name} of stacks of matrices is not supported", kind=NotImplementedError,
                        code="E203", help="use np.linalg.solve, which takes stacks")
    if not same_size(left.shape[0], right.shape[0]):
        raise RuleError(f"shapes of a {shown_shape(left.shape)} and b {shown_shape(right.shape)} are incompatible",
                        code="E302")
    return left, right


@spelled(("scipy.linalg", "solve_triangular"))
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: Any = False, unit_diagonal: Any = False,
                     overwrite_b: Any = False, check_finite: Any = True) -> Value:
    left, right = _system("solve_triangular", a, b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise RuleError(f"trans of solve_triangular must be one of 0, 1, 2, 'N', 'T', 'C', not {trans!r}",
                        kind=ValueError, code="E208")
    return ops.triangular_solve(left, right, lower=bool(lower), transposed=trans not in (0, "N"),
                                unit_diagonal=bool(unit_diagonal))


@spelled(("scipy.linalg", "cholesky"))
def cholesky(a: Any, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    """Upper triangular, from the upper triangle, unless `lower`."""
    return numpy_linalg.cholesky(a, upper=not lower)


@spelled(("scipy.linalg", "cho_factor"))
def cho_factor(a: Any, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True) -> tuple[Value, Any]:
    """The factor, with zeros in the other triangle, where SciPy leaves what was there."""
    return cholesky(a, lower), bool(lower)


@spelled(("scipy.linalg", "cho_solve"))
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: Any = False, check_finite: Any = True) -> Value:
    factor, lower = c_and_lower
    left, right = _system("cho_solve", factor, b)
    options = {"lower": bool(lower), "unit_diagonal": False}
    half = ops.triangular_solve(left, right, transposed=not lower, **options)
    return ops.triangular_solve(left, half, transposed=bool(lower), **options)


@spelled(("scipy.linalg", "solve"))
def solve(a: Any, b: Any, lower: Any = False, overwrite_a: Any = False, overwrite_b: Any = False,
          check_finite: Any = True, assume_a: Any = None, transposed: Any = False) -> Value:
    if assume_a not in (None, "gen", "general"):
        raise RuleError(f"assume_a={assume_a!r} of scipy.linalg.solve is not supported", kind=NotImplementedError,
                        code="E203", help="leave it out, or use cho_solve(cho_factor(a), b), or solve_triangular")
    left, right = _system("solve", a, b)
    return ops.solve(matrix_transpose(left) if transposed else left, right)


@spelled(("scipy.linalg", "inv"))
def inv(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    return numpy_linalg.inv(a)


@spelled(("scipy.linalg", "det"))
def det(a: Any, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    return numpy_linalg.det(a)


@spelled(("scipy.linalg", "norm"))
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: Any = False, check_finite: Any = True) -> Value:
    return norms.norm(a, ord, axis, keepdims)
