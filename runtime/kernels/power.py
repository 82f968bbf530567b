"""Powers and roots: power, cbrt, hypot.

power is exp(y log(x)) with log(x) as a sum of two floats, good to some 66 bits: log(m) = 2 atanh(s), where s and the
first terms of the series are kept in two parts (Dekker, "A floating-point technique for extending the available
precision", 1971). float32 is computed in float64, which needs none of this.
"""

import math

import numpy as np

from gradsmith.kernels import polynomials
from gradsmith.kernels.exp import clamp, expm1_reduced, powers_of_two, reduce_exp
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
    sqrt,
    where,
)
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.log import LOG_2, log_parts, split_exponent

TOP_SIZE = 746.0  # the exponential of more overflows, of less than minus that underflows
CBRT_OFFSET = 0x2AA00000 - 34500  # two thirds of the high half of 1.0, less what centres the error
TWO_THIRDS, TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17


def log_in_two_parts(x: Value) -> tuple[Value, Value]:
    """log(x) as high + low for finite x > 0, in float64."""
    k, m = split_exponent(x)
    f = m - 1.0
    denominator = m + 1.0
    denominator_low = m - (denominator - 1.0)
    inverse = 1.0 / denominator
    s = f * inverse
    s_low = (fma(-s, denominator, f) - s * denominator_low) * inverse
    # 2 atanh(s) = 2 s + s z (2/3 + z q) with z = s**2.
    z, z_low = exact_product(s, s)
    z_low = muladd(s * 2.0, s_low, z_low)
    zq = z * polynomial(z, polynomials.LOG_TAIL[64])
    factor, factor_low = exact_sum_ordered(z.constant(TWO_THIRDS), zq)
    factor_low = factor_low + TWO_THIRDS_LOW
    cube, cube_low = exact_product(s, z)
    cube_low = muladd(s_low, z, muladd(s, z_low, cube_low))
    more, more_low = exact_product(cube, factor)
    more_low = muladd(cube, factor_low, muladd(cube_low, factor, more_low))
    high, low = exact_sum_ordered(s * 2.0, more)
    low = low + muladd(s_low, 2.0, more_low)
    # k log(2), whose first part is exact, and is 0 or larger than what is added.
    of_two, of_two_low = LOG_2[64]
    total, lost = exact_sum_ordered(k * of_two, high)
    return exact_sum_ordered(total, lost + muladd(k, of_two_low, low))


def power_double(x: Value, y: Value) -> Value:
    """x**y for finite x > 0 and finite y, in float64."""
    log_x, log_x_low = log_in_two_parts(x)
    product, product_low = exact_product(y, log_x)
    product_low = where(abs(product) < TOP_SIZE, muladd(y, log_x_low, product_low), 0.0)
    r, k = reduce_exp(clamp(product, -TOP_SIZE, TOP_SIZE))
    a, b = powers_of_two(k)
    return (expm1_reduced(r + product_low) + 1.0) * a * b


def power_single(x: Value, y: Value) -> Value:
    """The same in float32."""
    k, m = split_exponent(x.to(F64))
    parts = log_parts(m - 1.0, accuracy=F32)
    log_x = muladd(k, math.log(2.0), parts.f - (parts.half_square - parts.rest))
    r, k = reduce_exp(clamp(y.to(F64) * log_x, -120.0, 100.0))
    scale = ((k << F64.mantissa) + F64.one).floats()
    return ((expm1_reduced(r, accuracy=F32) + 1.0) * scale).to(F32)


def round_to_integer(x: Value) -> Value:
    """x rounded to an integer."""
    return x._intrinsic("llvm.rint")


@kernel(np.power)
def power(x: Value, y: Value) -> Value:
    """x to the power y, both floats, with C's special values."""
    size = abs(x)
    half = y * 0.5
    is_finite = abs(y) < math.inf
    is_integer = round_to_integer(y).equals(y)
    is_odd = is_integer & ~round_to_integer(half).equals(half)

    result = power_double(size, y) if x.format is F64 else power_single(size, y)
    # Where the logarithm or y is infinite the result is infinite or zero.
    grows = (y > 0.0).equals(size > 1.0)
    at_end = where(grows, y.constant(math.inf), 0.0)
    result = where(size.equals(0.0) | size.equals(math.inf) | ~is_finite, at_end, result)
    result = where((x.bits() < 0) & is_odd, -result, result)
    result = where((x < 0.0) & (x > -math.inf) & ~is_integer, math.nan, result)
    result = where(x.is_nan(), x, where(y.is_nan(), y, result))
    is_one = y.equals(0.0) | x.equals(1.0) | (size.equals(1.0) & ~is_finite & ~y.is_nan())
    return where(is_one, 1.0, result)


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


@kernel(np.cbrt)
def cbrt(x: Value) -> Value:
    """The cube root, negative for negative x."""
    size = abs(x)
    root = cbrt_double(size.to(F64)).to(x.format)
    root = where(size.equals(0.0), size, where(size < math.inf, root, size))
    return copysign(root, x)


@kernel(np.hypot)
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
