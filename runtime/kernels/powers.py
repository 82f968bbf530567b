"""Powers and roots: power, cbrt, hypot.

power is exp(y log(x)) with log(x) as a sum of two floats, good to some 64 bits: log(m) = 2 atanh(s), where s and the
first two terms of the series are kept in two parts (Dekker, "A floating-point technique for extending the available
precision", 1971). float32 is computed in float64, which needs none of this.

cbrt starts from a third of the exponent (Kahan, "Computing a real cube root", 1991), and ends with Halley's iteration.
"""

import math

import numpy as np

from gradsmith.kernels import polynomials
from gradsmith.kernels.exponential import LOG2_E, clamp, exp_reduced, nearest_integer, powers_of_two
from gradsmith.kernels.expression import (
    F32,
    F64,
    Value,
    copysign,
    exact_product,
    exact_sum_ordered,
    fma,
    muladd,
    polynomial,
    polynomial_in_halves,
    rint,
    sqrt,
    where,
)
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.logarithm import split_exponent

TOP_SIZE = 1.5 * 746.0  # the exponential of two thirds of it overflows, of minus that underflows
# 3/2 log(2) in two parts. The first times any exponent is exact.
LOG_2_AND_HALF = (1.039720770839267, 6.509030338887058e-13)
CBRT_OFFSET = 0x2AA00000 - 34500  # two thirds of the high half of 1.0, less what centres the error


def log_in_two_parts(x: Value) -> tuple[Value, Value]:
    """3/2 log(x) as high + low for finite x > 0, in float64; low is below 2**-40 high.

    3/2 because 3 atanh(s) = 3 s + s**3 + ... has no factor at the second term that would need two parts.
    """
    k, m = split_exponent(x)
    f = m - 1.0
    denominator = m + 1.0
    denominator_low = m - (denominator - 1.0)
    inverse = 1.0 / denominator
    s = f * inverse
    s_low = (fma(-s, denominator, f) - s * denominator_low) * inverse
    z = s * s
    z_low = fma(s, s, -z)
    cube = s * z
    cube_low = fma(s, z, -cube)
    tail = cube * (z * polynomial_in_halves(z, polynomials.LOG_TAIL[64]))
    triple = s * 3.0
    triple_low = fma(s, 3.0, -triple)
    of_m, lost = exact_sum_ordered(triple, cube)
    of_s_low = muladd(muladd(z, 3.0, 3.0), s_low, muladd(s, z_low, cube_low))
    low = tail + (lost + (triple_low + of_s_low))
    high, lost = exact_sum_ordered(k * LOG_2_AND_HALF[0], of_m)
    return high, muladd(k, LOG_2_AND_HALF[1], low + lost)


def power_double(log_x: Value, log_x_low: Value, y: Value) -> Value:
    """exp(y log(x)) for 3/2 log(x) in two parts."""
    product, product_low = exact_product(y, log_x)
    product_low = where(abs(product) < TOP_SIZE, muladd(y, log_x_low, product_low), 0.0)
    product = clamp(product, -TOP_SIZE, TOP_SIZE)
    k, k_bits = nearest_integer(product * (LOG2_E / 1.5))
    r = muladd(k, -LOG_2_AND_HALF[1], muladd(k, -LOG_2_AND_HALF[0], product))
    a, b = powers_of_two(k_bits)
    return exp_reduced((r + product_low) * (1 / 1.5)) * a * b


def log2_single(x: Value) -> Value:
    """log2(x) of a float64 that was a finite float32 > 0, with what a right float32 power needs."""
    k, m = split_exponent(x, is_normal=True)
    s = (m - 1.0) / (m + 1.0)
    return muladd(polynomial(s * s, polynomials.POWER_LOG2[32]), s, k)


def power_single(log2_x: Value, y: Value) -> Value:
    """2**(y log2(x)) in float64, accurate for float32. The exponent of 2 is added to that of 2**r."""
    exponent = clamp(y * log2_x, -200.0, 200.0)
    k, k_bits = nearest_integer(exponent)
    significand = polynomial(exponent - k, polynomials.POWER_EXP2[32])
    return (significand.bits() + (k_bits << F64.mantissa)).floats()


@kernel(np.power)
def power(x: Value, y: Value) -> Value:
    """x to the power y, both floats, with C's special values."""
    size = abs(x)
    half = y * 0.5
    is_integer = rint(y).equals(y)
    is_odd = is_integer & ~rint(half).equals(half)
    is_zero, is_finite = size.equals(0.0), size < math.inf
    is_invalid = (x < 0.0) & ~is_integer & is_finite
    if x.format is F32:
        # An infinite exponent does what an infinite logarithm would, and is chosen among float32.
        y_at_edge = y * where(is_finite, math.inf, size)
        exponent = where(is_zero | ~is_finite, y_at_edge, y)
        result = power_single(log2_single(size.to(F64)), exponent.to(F64)).to(F32)
    else:
        log_size, log_low = log_in_two_parts(size)
        log_size = where(is_zero, -math.inf, where(is_finite, log_size, size))
        result = power_double(log_size, log_low, y)
    result = where(y.equals(0.0) | size.equals(1.0), 1.0, result)
    result = where(is_invalid, math.nan, result)
    return where((x.bits() < 0) & is_odd, -result, result)


def cbrt_double(x: Value) -> Value:
    """The cube root of x >= 0, in float64."""
    is_subnormal = x < F64.smallest_normal
    x = where(is_subnormal, x * 2.0**54, x)
    # A third of the bits as an integer is a third of the logarithm, roughly. The offset is for the bias and to be
    # neither above nor below on average.
    third = ((x.bits() >> 32) * 0x55555556) >> 32
    t = ((third + CBRT_OFFSET) << 32).floats()
    t = t * polynomial(t * t / x * t, polynomials.CBRT[64])
    # Few enough digits to square t exactly; then one step of Halley's iteration.
    t = (t.bits() & -(1 << 30)).floats()
    r = x / (t * t)
    root = muladd(t, (r - t) / (t * 2.0 + r), t)
    return where(is_subnormal, root * 2.0**-18, root)


@kernel(np.cbrt, takes_complex=False)
def cbrt(x: Value) -> Value:
    """The cube root, negative for negative x."""
    size = abs(x)
    root = cbrt_double(size.to(F64)).to(x.format)
    root = where(size.equals(0.0), size, where(size < math.inf, root, size))
    return copysign(root, x)


@kernel(np.hypot, takes_complex=False)
def hypot(x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2) without overflow or underflow on the way."""
    a, b = abs(x).to(F64), abs(y).to(F64)
    if x.format is F32:
        result = sqrt(muladd(a, a, b * b)).to(F32)
    else:
        larger, smaller = where(a > b, a, b), where(a > b, b, a)
        is_large, is_small = larger > 2.0**510, larger < 2.0**-450
        scale = where(is_large, x.constant(2.0**-600), where(is_small, x.constant(2.0**600), 1.0))
        back = where(is_large, x.constant(2.0**600), where(is_small, x.constant(2.0**-600), 1.0))
        larger, smaller = larger * scale, smaller * scale
        result = sqrt(muladd(smaller, smaller, larger * larger)) * back
    is_infinite = abs(x).equals(math.inf) | abs(y).equals(math.inf)
    return where(is_infinite, math.inf, where(x.is_nan(), x, where(y.is_nan(), y, result)))
