"""Logarithms: log, log2, log10, log1p.

x = 2**k m with m between sqrt(1/2) and sqrt(2), and log(m) = 2 atanh(s) with f = m - 1 and s = f / (2 + f), arranged as
f - (f**2 / 2 - s (f**2 / 2 + R)) so that the division's error meets only small terms (K. C. Ng, in FDLIBM's e_log.c).
"""

import math
from dataclasses import dataclass

import numpy as np

from gradsmith.kernels import polynomials
from gradsmith.kernels.expression import Operand, Value, exact_sum_ordered, muladd, polynomial_in_pairs, where
from gradsmith.kernels.kernel import kernel

# Constants in two parts; the high one times any exponent, or times a number of half the format's digits, is exact.
LOG_2 = {32: (0.693115234375, 3.194618329871446e-05), 64: (0.693147180559663, 2.8235290563031577e-13)}
LOG10_2 = {32: (0.301025390625, 4.605039066518657e-06), 64: (0.30102999566383914, 1.42050232272661e-13)}
LOG2_E = {32: (1.4423828125, 0.00031222838896340733), 64: (1.4426950216293335, 1.9259629911266175e-08)}
LOG10_E = {32: (0.4342041015625, 9.038034075182765e-05), 64: (0.4342944771051407, 4.798111141615973e-09)}


def split_exponent(x: Value, is_normal: bool = False) -> tuple[Value, Value]:
    """k, a float, and m, between sqrt(1/2) and sqrt(2), with x = 2**k m. Good for all finite x > 0."""
    format = x.format
    half_root = format.bits(math.sqrt(0.5))
    # An integer below 2**mantissa becomes a float when it is put into the mantissa of 2.0**mantissa.
    integer_one = 2.0**format.mantissa
    offset: Operand = integer_one + format.bias
    if not is_normal:
        digits = format.mantissa + 1
        is_subnormal = x < format.smallest_normal
        x = where(is_subnormal, x * 2.0**digits, x)
        offset = where(is_subnormal, x.constant(integer_one + format.bias + digits), offset)
    bits = x.bits() + (format.one - half_root)
    m = ((bits & ((1 << format.mantissa) - 1)) + half_root).floats()
    k = ((bits >> format.mantissa) | format.bits(integer_one)).floats()
    return k - offset, m


@dataclass(frozen=True)
class Parts:
    """log(1 + f) = f - half_square + rest."""

    f: Value
    half_square: Value
    rest: Value

    def halves(self) -> tuple[Value, Value]:
        """log(1 + f) as two numbers, the first with half of the format's digits."""
        format = self.f.format
        high = ((self.f - self.half_square).bits() & -(1 << (32 if format.width == 64 else 12))).floats()
        return high, (self.f - high) - self.half_square + self.rest


def log_parts(f: Value) -> Parts:
    """For f between sqrt(1/2) - 1 and sqrt(2) - 1."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * 0.5 * f
    return Parts(f, half_square, s * muladd(z, polynomial_in_pairs(z, polynomials.LOG[f.format.width]), half_square))


def with_edges(result: Value, x: Value) -> Value:
    """`result` where x is positive and finite, and what a logarithm gives elsewhere."""
    result = where(x < math.inf, result, x)
    outside = where(x.equals(0.0), x.constant(-math.inf), math.nan)
    return where(x > 0.0, result, outside)


def scaled_log(x: Value, of_two: tuple[float, float], factor: tuple[float, float]) -> Value:
    """log(x) * factor, where 2 has the logarithm `of_two`."""
    k, m = split_exponent(x)
    high, low = log_parts(m - 1.0).halves()
    product = high * factor[0]
    product_low = muladd(low + high, factor[1], low * factor[0])
    total, lost = exact_sum_ordered(k * of_two[0], product)
    if of_two[1]:
        product_low = muladd(k, of_two[1], product_low)
    return with_edges(total + (lost + product_low), x)


@kernel(np.log)
def log(x: Value) -> Value:
    """The natural logarithm."""
    high, low = LOG_2[x.format.width]
    k, m = split_exponent(x)
    parts = log_parts(m - 1.0)
    small = parts.half_square - muladd(k, low, parts.rest)
    return with_edges(muladd(k, high, parts.f - small), x)


@kernel(np.log2)
def log2(x: Value) -> Value:
    """The logarithm to base 2; exact at powers of two."""
    return scaled_log(x, (1.0, 0.0), LOG2_E[x.format.width])


@kernel(np.log10)
def log10(x: Value) -> Value:
    """The logarithm to base 10."""
    return scaled_log(x, LOG10_2[x.format.width], LOG10_E[x.format.width])


def log1p_of(x: Value, x_low: Operand = 0.0, extra_exponent: Operand = 0.0) -> Value:
    """log((1 + x + x_low) 2**extra_exponent), for x > -1, finite and |x_low| at most an ulp or so of x."""
    high, low = LOG_2[x.format.width]
    one_plus = x + 1.0
    k, m = split_exponent(one_plus)
    # What 1 + x lost; the larger of the two summands comes first.
    lost = where(x > 1.0, 1.0 - (one_plus - x), x - (one_plus - 1.0))
    correction = (lost + x_low) / one_plus
    near_one = k.equals(0.0)
    f = where(near_one, x, m - 1.0)
    correction = where(near_one, x_low / one_plus if isinstance(x_low, Value) else x_low, correction)
    parts = log_parts(f)
    k = k + extra_exponent
    small = parts.half_square - (muladd(k, low, correction) + parts.rest)
    return muladd(k, high, parts.f - small)


@kernel(np.log1p)
def log1p(x: Value) -> Value:
    """log(1 + x), accurate near 0."""
    result = where(x < math.inf, log1p_of(x), x)
    outside = where(x.equals(-1.0), x.constant(-math.inf), math.nan)
    return where(x.equals(0.0), x, where(x > -1.0, result, outside))
