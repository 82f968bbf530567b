"""np.linalg: inv, solve, det, slogdet, cholesky, matrix_power, multi_dot; what is not supported is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import ops
from ..ir.dims import same_size
from ..ir.nodes import Value
from .base import RuleError
from .families import broadcast_shapes, broadcast_to
from .matrices import check_square, eye, matrix_transpose
from .numpy_products import contract_last, stacked_matmul, strong
from .products import not_aligned, shown_size
from .spelling import as_value, cast, spelled, static_int


def floats(name: str, *operands: Any) -> list[Value]:
    """Matrices in LAPACK's dtypes, as NumPy casts them: float32 stays, integers and bools become float64."""
    values = [as_value(x) for x in operands]
    for v in values:
        if v.dtype == "float16":
            raise RuleError("array type float16 is unsupported in linalg", kind=TypeError, code="E309")
        if v.type.kind == "c":
            raise RuleError(f"{name} of complex matrices is not supported", kind=NotImplementedError, code="E203",
                            help="solve the real system of twice the size: [[re, -im], [im, re]]")
    dtype = "float32" if all(v.dtype == "float32" for v in values) else "float64"
    return [cast(v, dtype) for v in values]


def _square(name: str, a: Any) -> Value:
    (value,) = floats(name, a)
    check_square(name, value.type)
    return value


@spelled(np.linalg.inv)
def inv(a: Any) -> Value:
    return ops.inv(_square("inv", a))


@spelled(np.linalg.det)
def det(a: Any) -> Value:
    return ops.det(_square("det", a))


SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


@spelled(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    value = _square("slogdet", a)
    return SlogdetResult(ops.sign_det(value), ops.log_abs_det(value))


@spelled(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: Any = False) -> Value:
    """L with L @ L.T = a, from the lower triangle of a; its transpose, from the upper one, if `upper`."""
    value = _square("cholesky", a)
    return matrix_transpose(ops.cholesky(matrix_transpose(value))) if upper else ops.cholesky(value)


@spelled(np.linalg.solve)
def solve(a: Any, b: Any) -> Value:
    """A right side of one axis is a vector, any other holds matrices; leading axes broadcast."""
    left, right = floats("solve", a, b)
    check_square("solve", left.type)
    if not right.rank:
        raise RuleError("solve: Input operand 1 does not have enough dimensions (has 0, gufunc core with signature "
                        "(m,m),(m)->(m) requires 1)", code="E302")
    core = 1 if right.rank == 1 else 2
    if not same_size(left.shape[-1], right.shape[-core]):
        raise RuleError(f"solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                        f"{'(m,m),(m)->(m)' if core == 1 else '(m,m),(m,n)->(m,n)'} (size "
                        f"{shown_size(right.shape[-core])} is different from {shown_size(left.shape[-1])})",
                        code="E302")
    if left.rank == 2 and right.rank > 2:                 # one matrix: all right sides are its columns
        return _one_matrix(left, right)
    stack = broadcast_shapes(left.shape[:-2], right.shape[:-core])
    return ops.solve(broadcast_to(left, (*stack, *left.shape[-2:])),
                     broadcast_to(right, (*stack, *right.shape[-core:])))


def _one_matrix(a: Value, b: Value) -> Value:
    stack, (n, k) = b.shape[:-2], b.shape[-2:]
    count: Any = 1
    for d in stack:
        count = count * d
    last = b.rank - 1
    columns = ops.reshape(ops.transpose(b, axes=(last - 1, *range(last - 1), last)), shape=(n, count * k))
    found = ops.reshape(ops.solve(a, columns), shape=(n, *stack, k))
    return ops.transpose(found, axes=(*range(1, last), 0, last))


@spelled(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Value:
    """a @ a @ ... n times, by squaring; of the inverse for negative n."""
    value = as_value(a)
    if value.rank < 2:
        raise RuleError(f"{value.rank}-dimensional array given. Array must be at least two-dimensional",
                        kind=np.linalg.LinAlgError, code="E302")
    if not same_size(value.shape[-1], value.shape[-2]):
        raise RuleError("Last 2 dimensions of the array must be square", kind=np.linalg.LinAlgError, code="E302")
    exponent = static_int(n, "exponent")
    if exponent < 0:
        value, exponent = inv(value), -exponent
    if exponent == 0:
        return eye(value.type)
    result: Value | None = None
    while True:
        if exponent & 1:
            result = value if result is None else stacked_matmul(result, value)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        value = stacked_matmul(value, value)


@spelled(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Value:
    """The product of matrices, the first and last of which may be vectors, in a good order."""
    if out is not None:
        raise RuleError("out= of np.linalg.multi_dot is not supported here", kind=NotImplementedError, code="E203",
                        help="assign the result instead")
    if not isinstance(arrays, (list, tuple)):
        raise RuleError("multi_dot takes a list of arrays", kind=TypeError, code="E208")
    if len(arrays) < 2:
        raise RuleError("Expecting at least two arrays.", kind=ValueError, code="E208")
    values = strong(*arrays)
    if len(values) > 2:
        for k, v in enumerate(values):
            if v.rank != 2 and not (v.rank == 1 and k in (0, len(values) - 1)):
                raise RuleError(f"{v.rank}-dimensional array given. Array must be two-dimensional",
                                kind=np.linalg.LinAlgError, code="E302")
    for a, b in pairwise(values):
        if a.rank and b.rank and not same_size(a.shape[-1], b.shape[0]):
            raise not_aligned(a.shape, b.shape, a.rank - 1, 0)
    return _chain(values)


def _chain(values: Sequence[Value]) -> Value:
    """The product: in the cheapest order where all sizes are known, else from an end that is a vector."""
    if len(values) == 1:
        return values[0]
    last = len(values) - 1
    sizes = [1 if values[0].rank == 1 else values[0].shape[0], *(v.shape[0] for v in values[1:]),
             1 if values[-1].rank == 1 else values[-1].shape[-1]]
    if all(isinstance(d, int) for d in sizes):
        cut = _cheapest_cut(sizes, 0, last, {})[1]
    else:
        cut = 0 if values[-1].rank == 1 and values[0].rank != 1 else last - 1
    left, right = _chain(values[:cut + 1]), _chain(values[cut + 1:])
    return contract_last(left, right, 0) if left.rank and right.rank else ops.multiply(left, right)


def _cheapest_cut(sizes: Sequence[int], first: int, last: int,
                  known: dict[tuple[int, int], tuple[int, int]]) -> tuple[int, int]:
    """(multiplications, where to cut) for the matrices first..last, of sizes[k] by sizes[k + 1]."""
    if first == last:
        return 0, first
    if (first, last) not in known:
        known[first, last] = min(
            (_cheapest_cut(sizes, first, cut, known)[0] + _cheapest_cut(sizes, cut + 1, last, known)[0]
             + sizes[first] * sizes[cut + 1] * sizes[last + 1], cut) for cut in range(first, last))
    return known[first, last]


def _refused(name: str, help: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        raise RuleError(f"np.linalg.{name} is not supported yet", kind=NotImplementedError, code="E202", help=help)

    return refuse


_ADVICE = {
    "eig": "use eigh of a symmetric matrix, det, solve or svd where they do",
    "eigvals": "use eigvalsh of a symmetric matrix, det, trace or svdvals where they do",
    "lstsq": "use pinv(a) @ b", "matrix_rank": "compute it outside of the function",
    "tensorsolve": "reshape to matrices and use solve", "tensorinv": "reshape to a matrix and use inv",
}
for _name, _help in _ADVICE.items():
    spelled(getattr(np.linalg, _name))(_refused(_name, _help))
