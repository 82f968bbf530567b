"""The error function and its kin: erf, erfc, erfinv.

Where x >= 0.9, erfc(x) = exp(-x**2) P(t) / (x + k) with t = (x - k) / (x + k), one polynomial for the whole half line
(after Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < inf", 1981); x**2 is
taken in two parts, since its rounding error would be multiplied by x**2. erfinv(x) = x P(w) with w = -log(1 - x**2),
and far out x P(sqrt(w)) (after Giles, "Approximating the erfinv function", 2010).
"""

import math
from collections.abc import Sequence
from typing import Any

from gradsmith.kernels import special_polynomials as tables
from gradsmith.kernels.exponential import BOTTOM, TOP, clamp, expm1_reduced, powers_of_two, reduce_exp
from gradsmith.kernels.expression import (
    F64,
    Format,
    Value,
    copysign,
    exact_product,
    exact_sum,
    exact_sum_ordered,
    fma,
    muladd,
    polynomial,
    sqrt,
    where,
)
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.logarithm import LOG_2, log_parts, split_exponent

ERF = {32: tables.ERF_32, 64: tables.ERF_64}
ERFC = {32: tables.ERFC_32, 64: tables.ERFC_64}
ERFC_LOST = {32: tables.ERFC_32_LOST, 64: tables.ERFC_64_LOST}
ERFC_MIDDLE = {32: 2.5, 64: 3.75}
ERFC_TOP = {32: 11.0, 64: 28.0}  # erfc is 0 from here on
# By region: the first over w - 2.5 where w <= 5, the others over sqrt(w) - centre where sqrt(w) <= end.
ERFINV = {
    32: (tables.ERFINV_32_0, tables.ERFINV_32_1),
    64: (tables.ERFINV_64_0, tables.ERFINV_64_1, tables.ERFINV_64_2),
}
ERFINV_CENTRES = {32: (3.125,), 64: (3.0, 4.9375)}
ERFINV_ENDS = {32: (math.inf,), 64: (3.8, math.inf)}


def erf_near_zero(x: Value) -> tuple[Value, Value]:
    """erf(x) and erfc(x) for |x| <= 1, both from erf(x) = x + x P(x**2) with its small P."""
    p = polynomial(x * x, ERF[x.format.width])
    return muladd(x, p, x), muladd(-x, p, 1.0 - x)


def erfc_away(size: Value) -> Value:
    """erfc(size) for size >= 0.9."""
    width = size.format.width
    middle = ERFC_MIDDLE[width]
    size = where(size > ERFC_TOP[width], ERFC_TOP[width], size)
    sum_, sum_low = exact_sum(size, middle)
    inverse = 1.0 / sum_
    relative = fma(-inverse, sum_, 1.0) - inverse * sum_low  # what `inverse` lacks
    t = (size - middle) * inverse
    t = muladd(t, relative, t)
    constant, *rest = ERFC[width]
    p, p_low = exact_sum_ordered(t.constant(constant), t * polynomial(t, rest))
    ratio, ratio_low = exact_product(p, inverse)
    ratio_low = muladd(p_low + polynomial(t, ERFC_LOST[width]), inverse, ratio_low)
    square, square_low = exact_product(size, size)
    r, k = reduce_exp(clamp(-square, BOTTOM[width], TOP[width]))
    q = expm1_reduced(r)
    a, b = powers_of_two(k)
    exponential = muladd(q + 1.0, relative - square_low, q) + 1.0  # (1 + q) exp(-square_low) (1 + relative)
    return muladd(exponential, ratio, exponential * ratio_low) * a * b


def _erf(x: Any) -> Any:
    from scipy.special import erf

    return erf(x)


def _erfc(x: Any) -> Any:
    from scipy.special import erfc

    return erfc(x)


def _erfinv(x: Any) -> Any:
    from scipy.special import erfinv

    return erfinv(x)


@kernel(_erf, takes_complex=False)
def erf(x: Value) -> Value:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    size = abs(x)
    near, _ = erf_near_zero(x)
    return where(size < 1.0, near, copysign(1.0 - erfc_away(size), x))


@kernel(_erfc, takes_complex=False)
def erfc(x: Value) -> Value:
    """1 - erf(x), accurate where that is small."""
    size = abs(x)
    _, near = erf_near_zero(x)
    away = erfc_away(size)
    return where(size < 0.9, near, where(x < 0.0, 2.0 - away, away))


def log_of(x: Value, is_normal: bool = False) -> Value:
    """log(x) for finite x > 0."""
    high, low = LOG_2[x.format.width]
    k, m = split_exponent(x, is_normal)
    parts = log_parts(m - 1.0)
    return muladd(k, high, parts.f - (parts.half_square - muladd(k, low, parts.rest)))


def piecewise(v: Value, regions: Sequence[tuple[Value, Sequence[float]]], otherwise: Sequence[float]) -> Value:
    """The polynomial in v whose coefficients go with the first condition that holds."""
    length = max(len(otherwise), *(len(table) for _, table in regions))
    total = v.constant(0.0)
    for power in reversed(range(length)):
        coefficient = v.constant(otherwise[power] if power < len(otherwise) else 0.0)
        for condition, table in reversed(regions):
            coefficient = where(condition, table[power] if power < len(table) else 0.0, coefficient)
        total = muladd(total, v, coefficient)
    return total


def erfinv_of(x: Value, accuracy: Format) -> Value:
    """In float64, with the digits of `accuracy`."""
    width = accuracy.width
    size = abs(x)
    inside = size < 1.0
    w = -log_of(where(inside, (1.0 - size) * (size + 1.0), 1.0), is_normal=True)
    near = w <= 5.0
    root = sqrt(where(near, 5.0, w))
    *centred, v = [root - centre for centre in ERFINV_CENTRES[width]]
    ends = [root <= end for end in ERFINV_ENDS[width][:-1]]
    for end, candidate in reversed(list(zip(ends, centred))):
        v = where(end, candidate, v)
    v = where(near, w - 2.5, v)
    *tables_before, last = ERFINV[width]
    result = x * piecewise(v, list(zip([near, *ends], tables_before)), last)
    outside = where(size.equals(1.0), copysign(x.constant(math.inf), x), math.nan)
    return where(inside, result, outside)


@kernel(_erfinv, takes_complex=False)
def erfinv(x: Value) -> Value:
    """The y with erf(y) = x: infinite at 1 and -1, NaN beyond."""
    return erfinv_of(x.to(F64), x.format).to(x.format)
