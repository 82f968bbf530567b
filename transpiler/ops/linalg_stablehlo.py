"""Linear algebra in StableHLO, which has triangular solves and Cholesky factors only: Gaussian elimination with row
pivoting as a loop over all matrices of a stack at once, and determinants of minors.

A singular matrix gives inf or NaN where NumPy raises LinAlgError, and what is required of it (`Printer.require`) fails:
pivots other than 0, finite factors of what is finite.
Matrices are (stack, n, n) below, with the sizes known.
"""

from __future__ import annotations

from typing import Any

from ..ir.dims import product
from ..ir.types import I64, Type

# --- elimination --------------------------------------------------------------------------------------------------


def eliminated(h: Any, a: Any, right: int) -> tuple[Any, Any]:
    """Rows of a (stack, n, n + right) brought to upper triangular form in the first n columns.

    Gives the result, whose part below the diagonal means nothing, and the sign of the row swaps (stack,).
    """
    stack, n, width = a.type.shape
    assert width == n + right
    sign = h.constant(1, a.type.with_shape((stack,)))
    zero = h.constant(0, I64)

    def step(h: Any, k: Any, a: Any, sign: Any) -> tuple[Any, Any, Any]:
        lanes = Type("int64", (stack, n))
        rows, here = h.iota(lanes, 1), h.broadcast(k, lanes.shape, ())
        column = h.reshape(h.dynamic_slice(a, [zero, zero, k], (stack, n, 1)), (stack, n))
        pivot_row, pivot = _largest(h, column, rows, here)
        at_pivot, at_k = (_over_columns(h, h.compare("EQ", rows, x), width) for x in (
            h.broadcast(pivot_row, lanes.shape, (0,)), here))
        upper = h.reduce("add", h.select(at_pivot, a, h.constant(0, a.type)), 0, (1,))
        other = h.dynamic_slice(a, [zero, k, zero], (stack, 1, width))
        swapped = h.select(at_pivot, h.broadcast(other, a.type.shape, (0, 1, 2)), a)
        swapped = h.select(at_k, h.broadcast(upper, a.type.shape, (0, 2)), swapped)
        column = h.reshape(h.dynamic_slice(swapped, [zero, zero, k], (stack, n, 1)), (stack, n))
        divisor = h.broadcast(pivot, lanes.shape, (0,))
        factor = h.select(h.compare("EQ", divisor, h.constant(0, divisor.type)), h.constant(0, divisor.type),
                          h.op("divide", column, divisor))
        taken = h.op("multiply", h.broadcast(factor, a.type.shape, (0, 1)), h.broadcast(upper, a.type.shape, (0, 2)))
        below = _over_columns(h, h.compare("GT", rows, here), width)
        moved = h.compare("NE", pivot_row, h.broadcast(k, (stack,), ()))
        sign = h.select(moved, h.op("negate", sign), sign)
        return h.op("add", k, h.constant(1, I64)), h.select(below, h.op("subtract", swapped, taken), swapped), sign

    _, a, sign = h.while_loop([zero, a, sign], lambda h, k, *_: h.compare("LT", k, h.constant(n, I64)), step)
    return a, sign


def _largest(h: Any, column: Any, rows: Any, here: Any) -> tuple[Any, Any]:
    """The row, not above `here`, of the element of greatest size (NaN counts as such), and that element."""
    real = column.type
    size = h.op("abs", column)
    size = h.select(h.compare("EQ", size, size), size, h.constant(float("inf"), real))
    size = h.select(h.compare("GE", rows, here), size, h.constant(-1, real))
    best = h.broadcast(h.reduce("maximum", size, -1, (1,)), real.shape, (0,))
    candidates = h.select(h.compare("EQ", size, best), rows, h.constant(real.shape[1], rows.type))
    row = h.reduce("minimum", candidates, real.shape[1], (1,))
    is_it = h.compare("EQ", rows, h.broadcast(row, real.shape, (0,)))
    return row, h.reduce("add", h.select(is_it, column, h.constant(0, real)), 0, (1,))


def _over_columns(h: Any, mask: Any, width: int) -> Any:
    return h.broadcast(mask, (*mask.type.shape, width), (0, 1))


def _diagonal(h: Any, a: Any) -> Any:
    """(stack, n) of (stack, n, n)."""
    n = a.type.shape[-1]
    square = Type("int64", a.type.shape)
    on = h.compare("EQ", h.iota(square, 1), h.iota(square, 2))
    assert n
    return h.reduce("add", h.select(on, a, h.constant(0, a.type)), 0, (2,))


def _flat(h: Any, a: Any) -> Any:
    """Any stack of matrices with one leading axis."""
    return h.reshape(a, (product(a.type.shape[:-2]), *a.type.shape[-2:]))


# --- the rules ----------------------------------------------------------------------------------------------------


def as_columns(h: Any, a: Any, b: Any) -> Any:
    """A right side that is a vector, as a matrix of one column."""
    return b if b.type.rank == a.type.rank else h.reshape(b, (*b.type.shape, 1))


def solve(h: Any, a: Any, b: Any) -> Any:
    if 0 in b.type.shape:
        return h.constant(0, b.type)
    left, right = _flat(h, a), _flat(h, as_columns(h, a, b))
    stack, n, count = right.type.shape
    both, _ = eliminated(h, h.concatenate([left, right], 2), count)
    upper = h.slice(both, [0, 0, 0], [stack, n, n], [1, 1, 1])
    require_regular(h, upper)
    right = h.slice(both, [0, 0, n], [stack, n, n + count], [1, 1, 1])
    return h.reshape(h.triangular_solve(upper, right, False), b.type.shape)


def inv(h: Any, a: Any) -> Any:
    square = Type("int64", a.type.shape)
    rank = a.type.rank
    on = h.compare("EQ", h.iota(square, rank - 2), h.iota(square, rank - 1))
    return solve(h, a, h.select(on, h.constant(1, a.type), h.constant(0, a.type)))


def cholesky(h: Any, a: Any) -> Any:
    if 0 in a.type.shape:
        return a
    square = Type("int64", a.type.shape)
    rank = a.type.rank
    lower = h.compare("GE", h.iota(square, rank - 2), h.iota(square, rank - 1))
    zero = h.constant(0, a.type)
    factor = h.select(lower, h.cholesky(a), zero)
    was_finite, is_finite = (_is_finite(h, x) for x in (h.select(lower, a, zero), factor))
    found = h.op("or", h.op("not", was_finite), is_finite)
    h.require(h.reduce("and", found, True, tuple(range(rank - 2))), "Matrix is not positive definite")
    return factor


def _is_finite(h: Any, a: Any) -> Any:
    """Whether all of each matrix is."""
    each = h.op("is_finite", a, type=a.type.with_dtype("bool"))
    return h.reduce("and", each, True, (a.type.rank - 2, a.type.rank - 1))


def require_regular(h: Any, triangular: Any) -> None:
    """No 0 on the diagonal."""
    rank = triangular.type.rank
    square = Type("int64", triangular.type.shape)
    off = h.compare("NE", h.iota(square, rank - 2), h.iota(square, rank - 1))
    fits = h.op("or", off, h.compare("NE", triangular, h.constant(0, triangular.type)))
    h.require(h.reduce("and", fits, True, tuple(range(rank))), "Singular matrix")


def _pivots(h: Any, a: Any) -> tuple[Any, Any]:
    """(stack, n) pivots of the elimination, and the sign of its swaps."""
    flat = _flat(h, a)
    upper, sign = eliminated(h, flat, 0)
    return _diagonal(h, upper), sign


def _is_empty(a: Any) -> bool:
    return 0 in a.type.shape


def det(h: Any, a: Any) -> Any:
    result = a.type.with_shape(a.type.shape[:-2])
    if _is_empty(a):
        return h.constant(1, result)
    pivots, sign = _pivots(h, a)
    return h.reshape(h.op("multiply", h.reduce("multiply", pivots, 1, (1,)), sign), result.shape)


def log_abs_det(h: Any, a: Any) -> Any:
    result = a.type.with_shape(a.type.shape[:-2])
    if _is_empty(a):
        return h.constant(0, result)
    pivots, _ = _pivots(h, a)
    return h.reshape(h.reduce("add", h.op("log", h.op("abs", pivots)), 0, (1,)), result.shape)


def sign_det(h: Any, a: Any) -> Any:
    result = a.type.with_shape(a.type.shape[:-2])
    if _is_empty(a):
        return h.constant(1, result)
    pivots, sign = _pivots(h, a)
    return h.reshape(h.op("multiply", h.reduce("multiply", h.op("sign", pivots), 1, (1,)), sign), result.shape)


# --- minors -------------------------------------------------------------------------------------------------------


def _minors(h: Any, a: Any) -> Any:
    """(stack, n, n, n - 1, n - 1): the matrices without row i and column j."""
    n = a.type.shape[-1]
    whole = Type("int64", (n, n, n - 1, n - 1))

    def skipping(axis: int, left_out: int) -> Any:
        place = h.iota(whole, axis)
        after = h.compare("GE", place, h.iota(whole, left_out))
        return h.op("add", place, h.convert(after, "int64"))

    return h.transpose(h.gather(a, [skipping(2, 0), skipping(3, 1)], (1, 2)), (4, 0, 1, 2, 3))


def _signed_and_turned(h: Any, cofactors: Any) -> Any:
    """(stack, n, n) with the signs of a chessboard, transposed."""
    square = Type("int64", cofactors.type.shape)
    number = h.op("add", h.iota(square, 1), h.iota(square, 2))
    odd = h.compare("EQ", h.op("remainder", number, h.constant(2, square)), h.constant(1, square))
    return h.transpose(h.select(odd, h.op("negate", cofactors), cofactors), (0, 2, 1))


def adjugate(h: Any, a: Any) -> Any:
    """Determinants of all minors: n ** 5 multiplications, for the small n that one takes a determinant of."""
    n = a.type.shape[-1]
    if _is_empty(a) or n == 1:
        return h.constant(1, a.type)
    flat = _flat(h, a)
    return h.reshape(_signed_and_turned(h, det(h, _minors(h, flat))), a.type.shape)


def adjugate_tangent(h: Any, a: Any, y: Any) -> Any:
    """The derivative of each minor's determinant: the sum of its own adjugate, transposed, times the minor of y."""
    n = a.type.shape[-1]
    if _is_empty(a) or n == 1:
        return h.constant(0, a.type)
    inner, along = (_minors(h, _flat(h, x)) for x in (a, y))
    turned = h.transpose(adjugate(h, inner), (0, 1, 2, 4, 3))
    tangents = h.reduce("add", h.op("multiply", turned, along), 0, (3, 4))
    return h.reshape(_signed_and_turned(h, tangents), a.type.shape)
