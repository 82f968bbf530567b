"""Eigenvalues and singular values in StableHLO, which has no such operations: Jacobi's method, on stacks of matrices.

A sweep rotates every pair of rows and columns once.  Pairs that have nothing in common are rotated at once: the
columns stand in two halves, column k of the one beside column k of the other, and move on like the hands of a round
dance around the first, until each has met each (Brent and Luk, "The solution of singular-value and symmetric
eigenvalue problems on multiprocessor arrays", 1985).  Sweeps end when all is orthogonal up to rounding.

Rotations: Golub and Van Loan, "Matrix computations", 8.5 (two-sided, of symmetric matrices) and 8.6.3 (one-sided, of
columns).  Singular vectors of values that are 0 up to rounding are completed to an orthonormal basis.  The signs of
vectors are those that come out, which may differ from LAPACK's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.dims import product
from ..ir.types import BOOL, I64, Type
from .householder_stablehlo import orthonormal_columns

SWEEPS = 40             # at most; 6 to 10 are usual


def eigh(h: Any, a: Any, lower: bool, vectors: bool = True) -> tuple[Any, ...]:
    """Rising eigenvalues (..., n), and with `vectors` the eigenvectors (..., n, n) in columns."""
    *stack, n, _ = a.type.shape
    if product(a.type.shape) == 0:
        return h.constant(0, a.type.with_shape((*stack, n))), h.constant(0, a.type)
    flat, scale = _scaled(h, _flat(h, _mirrored(h, a, lower)))
    count = flat.type.shape[0]
    work = _evened(h, flat)
    turned = [_unit(h, work.type)] if vectors else []
    size = h.reduce("add", h.op("multiply", work, work), 0, (1, 2))
    if n > 1:
        work, *turned = _until_diagonal(h, work, turned, size, flat.type)
    values = _diagonal(h, work)
    if vectors:
        keys = h.broadcast(values, work.type.shape, (0, 2))
        keys, columns = h.sort_together([keys, turned[0]], 2)
        values = h.reshape(h.slice(keys, [0, 0, 0], [count, 1, n], [1, 1, 1]), (count, n))
        found = h.slice(columns, [0, 0, 0], [count, n, n], [1, 1, 1])
    else:
        values = h.slice(h.sort(values, 1), [0, 0], [count, n], [1, 1])
    values = h.op("multiply", values, h.broadcast(scale, values.type.shape, (0,)))
    values = h.reshape(values, (*stack, n))
    return (values, h.reshape(found, a.type.shape)) if vectors else (values,)


def svd(h: Any, a: Any, vectors: bool = True) -> tuple[Any, ...]:
    """u (..., m, k), s (..., k), falling, and vt (..., k, n); without `vectors`, (s,)."""
    *stack, m, n = a.type.shape
    k = min(m, n)
    if product(a.type.shape) == 0:
        shapes = [(*stack, m, k), (*stack, k), (*stack, k, n)] if vectors else [(*stack, k)]
        return tuple(h.constant(0, a.type.with_shape(s)) for s in shapes)
    h.require(h.op("not", _any(h, h.compare("NE", a, a))), "SVD did not converge")
    flat, scale = _scaled(h, _flat(h, a))
    wide = m < n
    columns = h.transpose(flat, (0, 2, 1)) if wide else flat
    found = _tall_svd(h, columns, vectors)
    s = found[1] if vectors else found[0]
    s = h.reshape(h.op("multiply", s, h.broadcast(scale, s.type.shape, (0,))), (*stack, k))
    if not vectors:
        return (s,)
    u, _, v = found
    left, right = (v, u) if wide else (u, v)
    return (h.reshape(left, (*stack, m, k)), s, h.reshape(h.transpose(right, (0, 2, 1)), (*stack, k, n)))


def pinv(h: Any, a: Any, cutoff: float) -> Any:
    """The pseudo-inverse (..., n, m), where singular values up to `cutoff` times the largest count as 0."""
    *stack, m, n = a.type.shape
    if product(a.type.shape) == 0:
        return h.constant(0, a.type.with_shape((*stack, n, m)))
    u, s, vt = svd(h, _flat(h, a))
    largest = h.broadcast(h.reduce("maximum", s, float("-inf"), (1,)), s.type.shape, (0,))
    counts = h.compare("GT", s, h.op("multiply", largest, h.constant(cutoff, s.type)))
    one, zero = h.constant(1, s.type), h.constant(0, s.type)
    inverse = h.select(counts, h.op("divide", one, h.select(counts, s, one)), zero)
    scaled = h.op("multiply", u, h.broadcast(inverse, u.type.shape, (0, 2)))
    found = h.dot_general(vt, scaled, ((1,), (2,)), ((0,), (0,)))
    return h.reshape(found, (*stack, n, m))


# --- two-sided: symmetric matrices --------------------------------------------------------------------------------


def _until_diagonal(h: Any, work: Any, turned: Sequence[Any], size: Any, of: Type) -> Any:
    precision = float(np.finfo(of.dtype).eps)
    pairs = work.type.shape[1] // 2

    def off_diagonal(h: Any, work: Any) -> Any:
        square = Type("int64", work.type.shape)
        on = h.compare("EQ", h.iota(square, 1), h.iota(square, 2))
        squares = h.select(on, h.constant(0, work.type), h.op("multiply", work, work))
        return h.reduce("add", squares, 0, (1, 2))

    def going(h: Any, sweep: Any, work: Any, *turned: Any) -> Any:
        bound = h.op("multiply", size, h.constant((precision / 8) ** 2, size.type))
        large = h.compare("GT", off_diagonal(h, work), bound)
        return h.op("and", h.compare("LT", sweep, h.constant(SWEEPS, I64)), _any(h, large))

    def sweep(h: Any, sweep: Any, work: Any, *turned: Any) -> list[Any]:
        return [h.op("add", sweep, h.constant(1, I64)), *_rounds(h, pairs, _rotate_both, [work, *turned])]

    return h.while_loop([h.constant(0, I64), work, *turned], going, sweep)[1:]


def _rotate_both(h: Any, work: Any, *turned: Any) -> list[Any]:
    pairs = work.type.shape[1] // 2
    both = _diagonal(h, work)
    count = both.type.shape[0]
    first, second = (h.slice(both, [0, k], [count, k + pairs], [1, 1]) for k in (0, pairs))
    beside = h.slice(work, [0, 0, pairs], [count, pairs, 2 * pairs], [1, 1, 1])
    c, s = _rotation(h, first, second, _diagonal(h, beside))
    work = _turned(h, work, c, s, 1)
    work = _turned(h, work, c, s, 2)
    square = Type("int64", work.type.shape)                 # what is 0 now up to rounding
    apart = h.op("abs", h.op("subtract", h.iota(square, 1), h.iota(square, 2)))
    work = h.select(h.compare("EQ", apart, h.constant(pairs, square)), h.constant(0, work.type), work)
    work = _moved_on(h, _moved_on(h, work, 1), 2)
    return [work, *(_moved_on(h, _turned(h, v, c, s, 2), 2) for v in turned)]


# --- one-sided: the columns of any matrix -------------------------------------------------------------------------


def _tall_svd(h: Any, a: Any, vectors: bool) -> tuple[Any, ...]:
    """Of a stack (b, m, n) with m >= n: (u, s, v), or (s,)."""
    count, m, n = a.type.shape
    work = h.pad(a, 0, (0, 0, 0), (0, 0, n % 2), (0, 0, 0)) if n > 1 and n % 2 else a
    unit = Type(a.type.dtype, (count, work.type.shape[2], work.type.shape[2]))
    turned = [_unit(h, unit)] if vectors else []
    if n > 1:
        work, *turned = _until_orthogonal(h, work, turned)
    sizes = h.op("sqrt", h.reduce("add", h.op("multiply", work, work), 0, (1,)))
    if not vectors:
        ordered = h.op("negate", h.sort(h.op("negate", sizes), 1))
        return (h.slice(ordered, [0, 0], [count, n], [1, 1]),)
    if n % 2 and n > 1:                                     # the column that was added comes last
        last = h.compare("EQ", h.iota(Type("int64", turned[0].type.shape), 1), h.constant(n, Type(
            "int64", turned[0].type.shape)))
        added = h.reduce("add", h.select(last, h.op("abs", turned[0]), h.constant(0, turned[0].type)), 0, (1,))
        keys = h.select(h.compare("GT", added, h.constant(0.5, added.type)), h.constant(-1, sizes.type), sizes)
    else:
        keys = sizes
    keys = h.op("negate", keys)
    _, work = h.sort_together([h.broadcast(keys, work.type.shape, (0, 2)), work], 2)
    _, v = h.sort_together([h.broadcast(keys, turned[0].type.shape, (0, 2)), turned[0]], 2)
    s = h.op("negate", h.slice(h.sort(keys, 1), [0, 0], [count, n], [1, 1]))
    work = h.slice(work, [0, 0, 0], [count, m, n], [1, 1, 1])
    v = h.slice(v, [0, 0, 0], [count, n, n], [1, 1, 1])
    return _left_vectors(h, work, s), s, v


def _left_vectors(h: Any, work: Any, s: Any) -> Any:
    """The columns divided by their lengths; those of no length are any that make the whole orthonormal."""
    precision = float(np.finfo(s.type.dtype).eps)
    largest = h.broadcast(h.reduce("maximum", s, 0, (1,)), s.type.shape, (0,))
    known = h.compare("GT", s, h.op("multiply", largest, h.constant(4 * max(work.type.shape[1:]) * precision, s.type)))
    one = h.constant(1, s.type)
    lengths = h.broadcast(h.select(known, s, one), work.type.shape, (0, 2))
    everywhere = h.broadcast(known, work.type.shape, (0, 2))
    u = h.select(everywhere, h.op("divide", work, lengths), h.constant(0, work.type))
    return h.select(everywhere, u, orthonormal_columns(h, u))


def _until_orthogonal(h: Any, work: Any, turned: Sequence[Any]) -> Any:
    pairs = work.type.shape[2] // 2
    whole = h.reduce("add", h.op("multiply", work, work), 0, (1, 2))

    def rotate(h: Any, rotated: Any, work: Any, *turned: Any) -> list[Any]:
        count, m, _ = work.type.shape
        first, second = (h.slice(work, [0, 0, k], [count, m, k + pairs], [1, 1, 1]) for k in (0, pairs))
        a, b, both = (h.reduce("add", h.op("multiply", x, y), 0, (1,)) for x, y in (
            (first, first), (second, second), (first, second)))
        precision = float(np.finfo(work.type.dtype).eps)
        bound = h.op("multiply", h.op("multiply", h.op("sqrt", a), h.op("sqrt", b)), h.constant(precision, a.type))
        floor = h.op("multiply", h.broadcast(whole, a.type.shape, (0,)), h.constant(precision ** 2 / 16, a.type))
        needed = h.compare("GT", h.op("abs", both), h.op("maximum", bound, floor))
        c, s = _rotation(h, a, b, h.select(needed, both, h.constant(0, both.type)))
        found = [_moved_on(h, _turned(h, x, c, s, 2), 2) for x in (work, *turned)]
        return [h.op("or", rotated, _any(h, needed)), *found]

    def going(h: Any, sweep: Any, rotated: Any, *carried: Any) -> Any:
        return h.op("and", h.compare("LT", sweep, h.constant(SWEEPS, I64)), rotated)

    def sweep(h: Any, sweep: Any, rotated: Any, *carried: Any) -> list[Any]:
        found = _rounds(h, pairs, rotate, [h.constant(False, BOOL), *carried])
        return [h.op("add", sweep, h.constant(1, I64)), *found]

    return h.while_loop([h.constant(0, I64), h.constant(True, BOOL), work, *turned], going, sweep)[2:]


# --- rotations ----------------------------------------------------------------------------------------------------


def _rounds(h: Any, pairs: int, rotate: Any, carried: Sequence[Any]) -> Sequence[Any]:
    """As many rounds as it takes for each to meet each."""
    def body(h: Any, k: Any, *carried: Any) -> list[Any]:
        return [h.op("add", k, h.constant(1, I64)), *rotate(h, *carried)]

    if pairs == 1:
        return rotate(h, *carried)
    return h.while_loop([h.constant(0, I64), *carried], lambda h, k, *_: h.compare(
        "LT", k, h.constant(2 * pairs - 1, I64)), body)[1:]


def _rotation(h: Any, a: Any, b: Any, both: Any) -> tuple[Any, Any]:
    """Cosine and sine that make [[a, both], [both, b]] diagonal."""
    one, zero = h.constant(1, a.type), h.constant(0, a.type)
    is_zero = h.compare("EQ", both, zero)
    divisor = h.select(is_zero, one, both)
    tau = h.op("divide", h.op("subtract", b, a), h.op("multiply", h.constant(2, a.type), divisor))
    root = h.op("sqrt", h.op("add", one, h.op("multiply", tau, tau)))
    size = h.op("divide", one, h.op("add", h.op("abs", tau), root))
    tangent = h.select(h.compare("LT", tau, zero), h.op("negate", size), size)
    tangent = h.select(is_zero, zero, tangent)
    c = h.op("rsqrt", h.op("add", one, h.op("multiply", tangent, tangent)))
    return c, h.op("multiply", tangent, c)


def _turned(h: Any, x: Any, c: Any, s: Any, axis: int) -> Any:
    """The two halves of x along the axis, rotated against each other."""
    first, second = _halves(h, x, axis)
    c, s = (h.broadcast(v, first.type.shape, (0, axis)) for v in (c, s))
    return h.concatenate([
        h.op("subtract", h.op("multiply", c, first), h.op("multiply", s, second)),
        h.op("add", h.op("multiply", s, first), h.op("multiply", c, second))], axis)


def _moved_on(h: Any, x: Any, axis: int) -> Any:
    """The next round: the first stays, the others go one on, down the first half and back up the second."""
    pairs = x.type.shape[axis] // 2
    if pairs == 1:
        return x

    def part(start: int, stop: int) -> Any:
        starts, stops = [0] * x.type.rank, list(x.type.shape)
        starts[axis], stops[axis] = start, stop
        return h.slice(x, starts, stops, [1] * x.type.rank)

    return h.concatenate([part(0, 1), part(pairs, pairs + 1), *([part(1, pairs - 1)] if pairs > 2 else []),
                          part(pairs + 1, 2 * pairs), part(pairs - 1, pairs)], axis)


def _halves(h: Any, x: Any, axis: int) -> tuple[Any, Any]:
    half = x.type.shape[axis] // 2
    first, second = list(x.type.shape), [0] * x.type.rank
    first[axis] = second[axis] = half
    ones = [1] * x.type.rank
    return h.slice(x, [0] * x.type.rank, first, ones), h.slice(x, second, list(x.type.shape), ones)


# --- matrices -----------------------------------------------------------------------------------------------------


def _flat(h: Any, a: Any) -> Any:
    """Any stack of matrices with one leading axis."""
    return h.reshape(a, (product(a.type.shape[:-2]), *a.type.shape[-2:]))


def _scaled(h: Any, a: Any) -> tuple[Any, Any]:
    """Each matrix divided by its largest element, so that squares neither overflow nor vanish, and that element."""
    largest = h.reduce("maximum", h.op("abs", a), 0, (1, 2))
    scale = h.select(h.compare("EQ", largest, h.constant(0, largest.type)), h.constant(1, largest.type), largest)
    return h.op("divide", a, h.broadcast(scale, a.type.shape, (0,))), scale


def _mirrored(h: Any, a: Any, lower: bool) -> Any:
    rank = a.type.rank
    square = Type("int64", a.type.shape)
    kept = h.compare("GE" if lower else "LE", h.iota(square, rank - 2), h.iota(square, rank - 1))
    return h.select(kept, a, h.transpose(a, (*range(rank - 2), rank - 1, rank - 2)))


def _evened(h: Any, a: Any) -> Any:
    """With one more row and column where their number is odd, whose eigenvalue is above all others."""
    n = a.type.shape[-1]
    if n % 2 == 0 or n == 1:
        return a
    wider = h.pad(a, 0, (0, 0, 0), (0, 1, 1), (0, 0, 0))
    square = Type("int64", wider.type.shape)
    corner = h.compare("EQ", h.op("add", h.iota(square, 1), h.iota(square, 2)), h.constant(2 * n, square))
    return h.select(corner, h.constant(2 * n, wider.type), wider)


def _unit(h: Any, type: Type) -> Any:
    square = Type("int64", type.shape)
    return h.convert(h.compare("EQ", h.iota(square, 1), h.iota(square, 2)), type.dtype)


def _diagonal(h: Any, a: Any) -> Any:
    square = Type("int64", a.type.shape)
    on = h.compare("EQ", h.iota(square, 1), h.iota(square, 2))
    return h.reduce("add", h.select(on, a, h.constant(0, a.type)), 0, (2,))


def _any(h: Any, x: Any) -> Any:
    return h.reduce("or", x, False, tuple(range(x.type.rank)))
