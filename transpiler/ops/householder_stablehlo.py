"""QR factors in StableHLO: Householder's reflections, on stacks of matrices, with LAPACK's signs.

Golub and Van Loan, "Matrix computations", 5.2.1; a column that has nothing below its diagonal is left as it is, as in
LAPACK's geqrf.
"""

from __future__ import annotations

from typing import Any

from ..ir.dims import product
from ..ir.types import I64, Type


def qr(h: Any, a: Any) -> tuple[Any, Any]:
    """q (..., m, k) and r (..., k, n) with k = min(m, n)."""
    *stack, m, n = a.type.shape
    k = min(m, n)
    if product(a.type.shape) == 0:
        return h.constant(0, a.type.with_shape((*stack, m, k))), h.constant(0, a.type.with_shape((*stack, k, n)))
    flat = h.reshape(a, (product(stack), m, n))
    largest = h.reduce("maximum", h.op("abs", flat), 0, (1, 2))
    scale = h.select(h.compare("EQ", largest, h.constant(0, largest.type)), h.constant(1, largest.type), largest)
    everywhere = h.broadcast(scale, flat.type.shape, (0,))
    r, reflectors, taus = _reflected(h, h.op("divide", flat, everywhere))
    r = h.op("multiply", r, everywhere)
    upper = h.compare("LE", h.iota(Type("int64", r.type.shape), 1), h.iota(Type("int64", r.type.shape), 2))
    r = h.select(upper, r, h.constant(0, r.type))
    r = h.slice(r, [0, 0, 0], [r.type.shape[0], k, n], [1, 1, 1])
    return h.reshape(_orthogonal(h, reflectors, taus), (*stack, m, k)), h.reshape(r, (*stack, k, n))


def orthonormal_columns(h: Any, u: Any) -> Any:
    """Of a stack (b, m, n) with m >= n whose columns are orthonormal, up to some that are 0 and come last: the same
    with these completed (the others up to their signs)."""
    _, reflectors, taus = _reflected(h, u)
    return _orthogonal(h, reflectors, taus)


def _reflected(h: Any, a: Any) -> tuple[Any, Any, Any]:
    """The reflected matrices, the reflectors (b, m, k) in columns, and their factors (b, k)."""
    count, m, n = a.type.shape
    k = min(m, n)
    zero = h.constant(0, I64)

    def step(h: Any, at: Any, a: Any, reflectors: Any, taus: Any) -> list[Any]:
        rows = h.iota(Type("int64", (count, m)), 1)
        here = h.broadcast(at, rows.type.shape, ())
        column = h.reshape(h.dynamic_slice(a, [zero, zero, at], (count, m, 1)), (count, m))
        none = h.constant(0, column.type)
        below = h.select(h.compare("GT", rows, here), column, none)
        first = h.reduce("add", h.select(h.compare("EQ", rows, here), column, none), 0, (1,))
        rest = h.reduce("add", h.op("multiply", below, below), 0, (1,))
        size = h.op("sqrt", h.op("add", h.op("multiply", first, first), rest))
        nothing, one = h.constant(0, first.type), h.constant(1, first.type)
        stays = h.compare("EQ", rest, nothing)
        mirrored = h.select(h.compare("GE", first, nothing), h.op("negate", size), size)
        safe = h.select(stays, one, mirrored)
        tau = h.select(stays, nothing, h.op("divide", h.op("subtract", safe, first), safe))
        divisor = h.select(stays, one, h.op("subtract", first, safe))
        v = h.op("divide", below, h.broadcast(divisor, below.type.shape, (0,)))
        v = h.select(h.compare("EQ", rows, here), h.constant(1, v.type), v)
        a = _reflect(h, a, v, tau)
        reflectors = h.dynamic_update_slice(reflectors, h.reshape(v, (count, m, 1)), [zero, zero, at])
        taus = h.dynamic_update_slice(taus, h.reshape(tau, (count, 1)), [zero, at])
        return [h.op("add", at, h.constant(1, I64)), a, reflectors, taus]

    inits = [zero, a, h.constant(0, a.type.with_shape((count, m, k))), h.constant(0, a.type.with_shape((count, k)))]
    _, a, reflectors, taus = h.while_loop(inits, lambda h, at, *_: h.compare("LT", at, h.constant(k, I64)), step)
    return a, reflectors, taus


def _orthogonal(h: Any, reflectors: Any, taus: Any) -> Any:
    """The first k columns of the product of all reflections."""
    count, m, k = reflectors.type.shape
    square = Type("int64", reflectors.type.shape)
    unit = h.convert(h.compare("EQ", h.iota(square, 1), h.iota(square, 2)), reflectors.type.dtype)
    zero = h.constant(0, I64)

    def step(h: Any, at: Any, q: Any) -> list[Any]:
        v = h.reshape(h.dynamic_slice(reflectors, [zero, zero, at], (count, m, 1)), (count, m))
        tau = h.reshape(h.dynamic_slice(taus, [zero, at], (count, 1)), (count,))
        return [h.op("subtract", at, h.constant(1, I64)), _reflect(h, q, v, tau)]

    return h.while_loop([h.constant(k - 1, I64), unit],
                        lambda h, at, q: h.compare("GT", at, h.constant(-1, I64)), step)[1]


def _reflect(h: Any, a: Any, v: Any, tau: Any) -> Any:
    """a - tau v (v.T a)."""
    along = h.dot_general(v, a, ((1,), (1,)), ((0,), (0,)))
    scaled = h.op("multiply", v, h.broadcast(tau, v.type.shape, (0,)))
    return h.op("subtract", a, h.op("multiply", h.broadcast(scaled, a.type.shape, (0, 1)),
                                    h.broadcast(along, a.type.shape, (0, 2))))
