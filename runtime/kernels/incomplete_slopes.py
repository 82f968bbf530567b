"""Derivatives of the incomplete gamma and beta functions with respect to their shapes, up to second order.

The regularised functions are f times a factor, where f has simple derivatives and the factor is a series or a
continued fraction:

    P(a, x) = f sum_k x**k / (a (a + 1) ... (a + k)),   1 - P(a, x) = f C(a, x),   f = x**a exp(-x) / gamma(a)
    I_x(a, b) = f h(a, b, x),                           f = x**a (1 - x)**b / (a B(a, b))

(Abramowitz and Stegun, 6.5.29, 6.5.31 and 26.5.8). The series is taken below x = a + 1, the fraction C above it, and h
where x < (a + 1) / (a + b + 2), else I_x(a, b) = 1 - I_{1-x}(b, a). Fractions are run forwards by Lentz's method with
their derivatives along (as Boik and Robison-Cox, "Derivatives of the incomplete beta function", J. Stat. Software 3,
1998). For large shapes, f is computed from deviances, which cancel nothing (Loader, "Fast and accurate computation of
binomial probabilities", 2000).

All is computed in float64, in compiled code and without it. Arguments outside of the domain give NaN.
"""

import math
from typing import Any

from numba import config, njit

from gradsmith.kernels.gamma import digamma, polygamma

HALF_LOG_2_PI = 0.9189385332046727
TINY = 1e-300
CLOSE = 2e-17  # of a term of a series to the sum, or of a fraction's factor to 1
LONGEST = 100000


def compiled(function: Any) -> Any:
    return function if config.DISABLE_JIT else njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore


@compiled
def stirling_error(z: float) -> float:
    """log(gamma(z + 1)) - (z + 1/2) log(z) + z - log(2 pi) / 2."""
    if z < 15.0:
        return math.lgamma(z + 1.0) - (z + 0.5) * math.log(z) + z - HALF_LOG_2_PI
    s = 1.0 / (z * z)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - (1 / 1188 - 691 / 360360 * s) * s) * s) * s) * s) / z


@compiled
def deviance(x: float, mean: float) -> float:
    """x log(x / mean) + mean - x."""
    difference = x - mean
    if abs(difference) >= 0.1 * (x + mean):
        return x * math.log(x / mean) - difference
    v = difference / (x + mean)
    total, term, square = difference * v, 2.0 * x * v, v * v
    for k in range(1, 1000):
        term *= square
        new = total + term / (2 * k + 1)
        if new == total:
            break
        total = new
    return total


@compiled
def gamma_factor(a: float, x: float) -> float:
    """x**a exp(-x) / gamma(a)."""
    if a < 100.0:
        if x < 600.0:
            return math.pow(x, a) * math.exp(-x) / math.gamma(a)
        return math.exp(a * math.log(x) - x - math.lgamma(a))
    return a * math.exp(-stirling_error(a) - deviance(a, x)) / math.sqrt(2.0 * math.pi * a)


@compiled
def beta_factor(a: float, b: float, x: float) -> float:
    """x**a (1 - x)**b / (a B(a, b))."""
    n = a + b
    if n < 100.0:
        tail = math.pow(1.0 - x, b) if x > 0.5 else math.exp(b * math.log1p(-x))
        return math.pow(x, a) * tail * (math.gamma(n) / (math.gamma(a + 1.0) * math.gamma(b)))
    exponent = stirling_error(n) - stirling_error(a) - stirling_error(b)
    exponent -= deviance(a, n * x) + deviance(b, n * (1.0 - x))
    return math.exp(exponent) * math.sqrt(b / (2.0 * math.pi * a * n))


@compiled
def gamma_ratios(a: float, x: float, log_x: float) -> tuple[float, float]:
    """The first and second derivative of P(a, x) with respect to a, divided by f."""
    if x <= a + 1.0:
        term, offset, curvature = 1.0 / a, log_x - digamma(a + 1.0), polygamma(1, a + 1.0)
        first, second = term * offset, term * (offset * offset - curvature)
        for k in range(1, LONGEST):
            step = 1.0 / (a + k)
            term *= x * step
            offset -= step
            curvature -= step * step
            first += term * offset
            second += term * (offset * offset - curvature)
            if term * (offset * offset + 1.0) <= CLOSE * min(abs(first), abs(second)) or term == 0.0:
                break
        return first, second
    c, c1, c2 = gamma_fraction(a, x)
    slope = log_x - digamma(a)
    return -(slope * c + c1), -((slope * slope - polygamma(1, a)) * c + 2.0 * slope * c1 + c2)


@compiled
def gamma_fraction(a: float, x: float) -> tuple[float, float, float]:
    """(1 - P(a, x)) / f with its first and second derivative: 1 / (b0 + a1 / (b1 + ...)) with a_i = -i (i - a) and
    b_i = x + 1 - a + 2 i."""
    b = x + 1.0 - a
    c, c1, c2 = 1.0 / TINY, 0.0, 0.0
    d = 1.0 / b
    d1, d2 = d * d, 2.0 * d * d * d
    h, h1, h2 = d, d1, d2
    for i in range(1, LONGEST):
        top, top1 = -i * (i - a), float(i)
        b += 2.0
        # d = 1 / (b + top d), c = b + top / c
        e = b + top * d
        e1 = -1.0 + top1 * d + top * d1
        e2 = 2.0 * top1 * d1 + top * d2
        d = 1.0 / e
        d1 = -e1 * d * d
        d2 = (2.0 * e1 * e1 * d - e2) * d * d
        r = 1.0 / c
        r1 = -c1 * r * r
        r2 = (2.0 * c1 * c1 * r - c2) * r * r
        c = b + top * r
        c1 = -1.0 + top1 * r + top * r1
        c2 = 2.0 * top1 * r1 + top * r2
        q = d * c
        q1 = d1 * c + d * c1
        q2 = d2 * c + 2.0 * d1 * c1 + d * c2
        h2 = h2 * q + 2.0 * h1 * q1 + h * q2
        h1 = h1 * q + h * q1
        h = h * q
        if abs(q - 1.0) < 3e-16 and abs(h * q1) <= 1e-16 * abs(h1) and abs(h * q2) <= 1e-16 * abs(h2):
            break
    return h, h1, h2


@compiled
def gammainc_slope(order: int, a: float, x: float) -> float:
    """The derivative of that order, 1 or 2, of P(a, x) with respect to a."""
    if not (a > 0.0 and x >= 0.0):
        return math.nan
    if x == 0.0 or x == math.inf:
        return 0.0
    first, second = gamma_ratios(a, x, math.log(x))
    return gamma_factor(a, x) * (first if order == 1 else second)


@compiled
def log_gamma_slope(order: int, a: float, y: float) -> float:
    """-1 times the derivative of that order of P(a, exp(y)) with respect to a, divided by that with respect to y.

    With order 1: the derivative of a quantile's logarithm with respect to a."""
    if not a > 0.0 or y != y:
        return math.nan
    first, second = gamma_ratios(a, math.exp(y), y)
    return -first if order == 1 else -second


# Values with derivatives in a, b, a twice, a and b, b twice --------------------------------------------------------


@compiled
def times(u: Any, v: Any) -> Any:
    return (
        u[0] * v[0],
        u[1] * v[0] + u[0] * v[1],
        u[2] * v[0] + u[0] * v[2],
        u[3] * v[0] + 2.0 * u[1] * v[1] + u[0] * v[3],
        u[4] * v[0] + u[1] * v[2] + u[2] * v[1] + u[0] * v[4],
        u[5] * v[0] + 2.0 * u[2] * v[2] + u[0] * v[5],
    )


@compiled
def inverse(u: Any) -> Any:
    r = 1.0 / u[0]
    s = r * r
    return (
        r,
        -u[1] * s,
        -u[2] * s,
        (2.0 * u[1] * u[1] * r - u[3]) * s,
        (2.0 * u[1] * u[2] * r - u[4]) * s,
        (2.0 * u[2] * u[2] * r - u[5]) * s,
    )


@compiled
def one_plus(u: Any) -> Any:
    return 1.0 + u[0], u[1], u[2], u[3], u[4], u[5]


@compiled
def linear(value: float, in_a: float, in_b: float) -> Any:
    return value, in_a, in_b, 0.0, 0.0, 0.0


@compiled
def beta_fraction(a: float, b: float, x: float) -> Any:
    """h(a, b, x) with its derivatives."""
    start = times(linear(-(a + b) * x, -x, -x), inverse(linear(a + 1.0, 1.0, 0.0)))
    c = linear(1.0, 0.0, 0.0)
    d = inverse(one_plus(start))
    h = d
    for m in range(1, LONGEST):
        middle = inverse(linear(a + 2 * m, 1.0, 0.0))
        even = times(linear(m * (b - m) * x, 0.0, m * x), times(inverse(linear(a + 2 * m - 1, 1.0, 0.0)), middle))
        odd = times(linear(-(a + m) * x, -x, 0.0), linear(a + b + m, 1.0, 1.0))
        odd = times(odd, times(middle, inverse(linear(a + 2 * m + 1, 1.0, 0.0))))
        d = inverse(one_plus(times(even, d)))
        c = one_plus(times(even, inverse(c)))
        h = times(h, times(c, d))
        d = inverse(one_plus(times(odd, d)))
        c = one_plus(times(odd, inverse(c)))
        q = times(c, d)
        h = times(h, q)
        if abs(q[0] - 1.0) < 3e-16 and is_settled(h, q):
            break
    return h


@compiled
def is_settled(h: Any, q: Any) -> bool:
    """Whether the derivatives of the last factor change nothing."""
    return (
        abs(h[0] * q[1]) <= 1e-16 * abs(h[1])
        and abs(h[0] * q[2]) <= 1e-16 * abs(h[2])
        and abs(h[0] * q[3]) <= 1e-16 * abs(h[3])
        and abs(h[0] * q[4]) <= 1e-16 * abs(h[4])
        and abs(h[0] * q[5]) <= 1e-16 * abs(h[5])
    )


@compiled
def betainc_slope(in_a: int, in_b: int, a: float, b: float, x: float) -> float:
    """The derivative of I_x(a, b), `in_a` times with respect to a and `in_b` times to b: one or two in all."""
    if not (a > 0.0 and b > 0.0 and x >= 0.0 and x <= 1.0):
        return math.nan
    if x == 0.0 or x == 1.0:
        return 0.0
    sign, log_x, log_y = 1.0, math.log(x), math.log1p(-x)
    if x > (a + 1.0) / (a + b + 2.0):
        sign, log_x, log_y = -1.0, log_y, log_x
        in_a, in_b, a, b, x = in_b, in_a, b, a, 1.0 - x
    h = beta_fraction(a, b, x)
    both = digamma(a + b)
    slope_a, slope_b = log_x - digamma(a + 1.0) + both, log_y - digamma(b) + both
    if in_a + in_b == 1:
        total = slope_a * h[0] + h[1] if in_a == 1 else slope_b * h[0] + h[2]
    else:
        bend = polygamma(1, a + b)
        if in_a == 2:
            bend += slope_a * slope_a - polygamma(1, a + 1.0)
            total = bend * h[0] + 2.0 * slope_a * h[1] + h[3]
        elif in_b == 2:
            bend += slope_b * slope_b - polygamma(1, b)
            total = bend * h[0] + 2.0 * slope_b * h[2] + h[5]
        else:
            total = (bend + slope_a * slope_b) * h[0] + slope_a * h[2] + slope_b * h[1] + h[4]
    return sign * beta_factor(a, b, x) * total
