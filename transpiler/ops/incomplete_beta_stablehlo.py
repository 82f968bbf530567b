"""The incomplete beta function and its derivatives by the shapes, and gamma and beta, as StableHLO.

The formulas are those of `kernels.incomplete_slopes`, over whole arrays in the dtype of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .incomplete_stablehlo import Number, deviance, repeat, spread, stirling_error, trigamma, where

Jet = tuple[Number, Number, Number, Number, Number, Number]     # a value; by a, b, a twice, a and b, b twice


def times(u: Jet, v: Jet) -> Jet:
    return (u[0] * v[0], u[1] * v[0] + u[0] * v[1], u[2] * v[0] + u[0] * v[2],
            u[3] * v[0] + 2 * u[1] * v[1] + u[0] * v[3],
            u[4] * v[0] + u[1] * v[2] + u[2] * v[1] + u[0] * v[4],
            u[5] * v[0] + 2 * u[2] * v[2] + u[0] * v[5])


def inverse(u: Jet) -> Jet:
    r = 1 / u[0]
    s = r * r
    return (r, -u[1] * s, -u[2] * s, (2 * u[1] * u[1] * r - u[3]) * s, (2 * u[1] * u[2] * r - u[4]) * s,
            (2 * u[2] * u[2] * r - u[5]) * s)


def one_plus(u: Jet) -> Jet:
    return (1 + u[0], *u[1:])


def linear(value: Number, in_a: Number | float, in_b: Number | float) -> Jet:
    zero = value * 0
    return value, zero + in_a, zero + in_b, zero, zero, zero


def beta_fraction(a: Number, b: Number, x: Number) -> Sequence[Number]:
    """I_x(a, b) a B(a, b) / (x**a (1 - x)**b) with its derivatives, below x = (a + 1) / (a + b + 2)."""
    eps = 3e-16 if a.value.type.dtype == "float64" else 2e-7
    start = times(linear(-(a + b) * x, -x, -x), inverse(linear(a + 1, 1, 0)))
    c = linear(a * 0 + 1, 0, 0)
    d = inverse(one_plus(start))

    def step(trip: Number, *state: Number) -> list[Number]:
        c, d, h = state[:6], state[6:12], state[12:18]
        m = spread(trip, a)
        middle = inverse(linear(a + 2 * m, 1, 0))
        even = times(linear(m * (b - m) * x, 0, m * x), times(inverse(linear(a + 2 * m - 1, 1, 0)), middle))
        odd = times(linear(-(a + m) * x, -x, 0), linear(a + b + m, 1, 1))
        odd = times(odd, times(middle, inverse(linear(a + 2 * m + 1, 1, 0))))
        for term in (even, odd):
            d = inverse(one_plus(times(term, d)))  # type: ignore[arg-type]
            c = one_plus(times(term, inverse(c)))  # type: ignore[arg-type]
            q = times(c, d)
            h = times(h, q)  # type: ignore[arg-type]
        settled = abs(q[0] - 1) < eps
        for k in range(1, 6):
            settled = settled & (abs(h[0] * q[k]) <= eps * abs(h[k]))
        return [*c, *d, *h, settled]

    return repeat([*c, *d, *d, (a < 0)], step)[12:18]


def value_of_fraction(a: Number, b: Number, x: Number, where_: Number) -> Number:
    """`beta_fraction` without its derivatives, where `where_` holds."""
    eps = 3e-16 if a.value.type.dtype == "float64" else 2e-7
    d = 1 / (1 - (a + b) * x / (a + 1))

    def step(trip: Number, c: Number, d: Number, ratio: Number, _: Number) -> list[Number]:
        m = spread(trip, a)
        middle, quotient = a + 2 * m, a
        even = m * (b - m) * x / ((middle - 1) * middle)
        odd = -(a + m) * (a + b + m) * x / (middle * (middle + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            quotient, ratio = d * c, ratio * (d * c)
        return [c, d, ratio, abs(quotient - 1) < eps]

    return repeat([a.filled(1), d, d, ~where_], step)[2]


def log_factor(a: Number, b: Number, log_x: Number, log_y: Number) -> Number:
    """The logarithm of x**a y**b / B(a, b) for x + y = 1, whose terms cancel where a shape is large."""
    both, lgamma = a + b, "chlo.lgamma"
    plain = a * log_x + b * log_y + both.call(lgamma) - a.call(lgamma) - b.call(lgamma)
    in_order = a < b
    small, large = where(in_order, a, b), where(in_order, b, a)
    log_small, log_large = where(in_order, log_x, log_y), where(in_order, log_y, log_x)
    one, two = large > 10, small > 10
    return where(two, _around(where(two, small, 10), where(two, large, 10), log_small, log_large),
                 where(one, _beside(where(two, 10, small), where(one, large, 10), log_small, log_large), plain))


def _around(p: Number, q: Number, log_x: Number, log_y: Number) -> Number:
    """Where both are large: by their distances from the mean."""
    n = p + q
    x, y, log_n = n * log_x.call("exponential"), n * log_y.call("exponential"), n.call("log")
    distances = deviance(p, x, p.call("log") - log_n - log_x) + deviance(q, y, q.call("log") - log_n - log_y)
    return (stirling_error(n) - stirling_error(p) - stirling_error(q) - distances
            + 0.5 * (p * (q / n) * (0.5 / math.pi)).call("log"))


def _beside(p: Number, q: Number, log_x: Number, log_y: Number) -> Number:
    """Where q alone is large: gamma(p + q) / gamma(q) by Stirling's series."""
    n = p + q
    ratio = (q - 0.5) * (p / q).call("log_plus_one") - p + stirling_error(n) - stirling_error(q)
    return p * (log_x + n.call("log")) + q * log_y + ratio - p.call("chlo.lgamma")


def betainc_hlo(h: Any, a: Any, b: Any, x: Any, in_a: int = 0, in_b: int = 0) -> Any:
    """I_x(a, b), differentiated so many times by a and b."""
    a, b, x = Number(h, a), Number(h, b), Number(h, x)
    is_valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    inside = is_valid & (x > 0) & (x < 1)
    a, b, middle = where(inside, a, 1), where(inside, b, 1), where(inside, x, 0.5)
    log_x, log_y = middle.call("log"), (-middle).call("log_plus_one")
    swapped = middle > (a + 1) / (a + b + 2)
    p, q = where(swapped, b, a), where(swapped, a, b)
    log_p, log_q = where(swapped, log_y, log_x), where(swapped, log_x, log_y)
    end = where(swapped, 1 - middle, middle)
    factor = log_factor(p, q, log_p, log_q).call("exponential") / p
    if in_a + in_b == 0:
        part = factor * value_of_fraction(p, q, end, inside)
        found = where(swapped, 1 - part, part)
        return where(is_valid, where(inside, found, where(x > 0, a * 0 + 1, 0.0)), math.nan).value
    f, both = beta_fraction(p, q, end), (p + q).call("chlo.digamma")
    by_p, by_q = log_p - (p + 1).call("chlo.digamma") + both, log_q - q.call("chlo.digamma") + both
    if in_a + in_b == 1:
        first, second = by_p * f[0] + f[1], by_q * f[0] + f[2]
        total = where(swapped, second, first) if in_a else where(swapped, first, second)
    elif in_a == 1:
        total = (trigamma(p + q) + by_p * by_q) * f[0] + by_p * f[2] + by_q * f[1] + f[4]
    else:
        bend = trigamma(p + q)
        twice_p = (bend + by_p * by_p - trigamma(p + 1)) * f[0] + 2 * by_p * f[1] + f[3]
        twice_q = (bend + by_q * by_q - trigamma(q)) * f[0] + 2 * by_q * f[2] + f[5]
        total = where(swapped, twice_q, twice_p) if in_a else where(swapped, twice_p, twice_q)
    found = factor * where(swapped, -total, total)
    return where(is_valid, where(inside, found, 0.0), math.nan).value


def _sign_of_gamma(x: Number) -> Number:
    """-1 where floor(x) is a negative odd number."""
    below = x.call("floor")
    odd = ~(below * 0.5).call("floor").equals(below * 0.5)
    return where((x < 0) & odd, -1.0, where(x.equals(x), 1.0, x))


def gamma_hlo(h: Any, x: Any) -> Any:
    number = Number(h, x)
    found = _sign_of_gamma(number) * number.call("chlo.lgamma").call("exponential")
    return where((number <= 0) & number.call("floor").equals(number), math.nan, found).value


def beta_hlo(h: Any, a: Any, b: Any) -> Any:
    a, b = Number(h, a), Number(h, b)
    signs = _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    logs = a.call("chlo.lgamma") + b.call("chlo.lgamma") - (a + b).call("chlo.lgamma")
    return (signs * logs.call("exponential")).value
