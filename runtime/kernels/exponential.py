"""Exponentials: exp, exp2, expm1, expit.

Cody and Waite's reduction x = k log(2) + r with |r| <= log(2) / 2 (Software Manual for the Elementary Functions, 1980),
a polynomial for exp(r), and two factors 2**a 2**b = 2**k put together from bits, so that overflow and gradual underflow
happen in the last multiplication and round once.
"""

from typing import Any

import numpy as np

from gradsmith.kernels import complex_numbers, polynomials
from gradsmith.kernels.expression import Value, copysign, exact_sum_ordered, fma, muladd, polynomial_in_pairs, where
from gradsmith.kernels.kernel import kernel

LOG2_E = 1.4426950408889634
# log(2) in two parts; the high one times any k that occurs is exact.
LOG_2_HIGH = {32: 0.693359375, 64: 0.6931471805598903}
LOG_2_LOW = {32: -0.00021219444005469057, 64: 5.497923018708371e-14}
# Beyond these, exp is infinite or zero for certain.
TOP = {32: 89.0, 64: 710.0}
BOTTOM = {32: -104.0, 64: -746.0}


def nearest_integer(x: Value) -> tuple[Value, Value]:
    """x rounded to an integer k, as a float and as an integer whose low bits (13, or 10 of float32) are those of k.

    Adding 1.5 * 2**mantissa leaves no room for fraction bits. Good for |x| < 2**(mantissa - 1).
    """
    shift = 1.5 * 2.0**x.format.mantissa
    shifted = x + shift
    return shifted - shift, shifted.bits()


def clamp(x: Value, low: float, high: float) -> Value:
    """NaN stays NaN."""
    x = where(x > high, high, x)
    return where(x < low, low, x)


def powers_of_two(k: Value) -> tuple[Value, Value]:
    """Two powers of two whose product is 2**k, for a k from `nearest_integer`, |k| < 2**(exponent bits)."""
    format = k.format
    limit = 2 * (format.bias + 1)  # makes k positive; one more bit than the exponent has
    k = k + limit
    half = k >> 1
    a = (half << format.mantissa) - (1 << format.mantissa)
    b = ((k - half) << format.mantissa) - (1 << format.mantissa)
    return a.floats(), b.floats()


def reduce_exp(x: Value) -> tuple[Value, Value]:
    """r and the integer k with x = k log(2) + r."""
    width = x.format.width
    k, k_bits = nearest_integer(x * LOG2_E)
    r = muladd(k, -LOG_2_HIGH[width], x)
    return muladd(k, -LOG_2_LOW[width], r), k_bits


def series(r: Value) -> Value:
    """(exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2.  The first coefficient is added last: where r is small, no other
    rounding counts."""
    first, *rest = polynomials.EXP[r.format.width]
    return muladd(polynomial_in_pairs(r, rest), r, first)


def expm1_reduced(r: Value) -> Value:
    """exp(r) - 1 for |r| <= log(2) / 2."""
    return muladd(r * r, series(r), r)


def exp_reduced(r: Value) -> Value:
    """exp(r) for |r| <= log(2) / 2. What 1 + r loses goes to the smaller term."""
    total, lost = exact_sum_ordered(r.constant(1.0), r)
    return total + muladd(r * r, series(r), lost)


def exp_of(x: Value) -> Value:
    width = x.format.width
    r, k = reduce_exp(clamp(x, BOTTOM[width], TOP[width]))
    a, b = powers_of_two(k)
    return exp_reduced(r) * a * b


@kernel(np.exp, of_complex=complex_numbers.exp)
def exp(x: Value) -> Value:
    """e to the power x."""
    return exp_of(x)


@kernel(np.exp2)
def exp2(x: Value) -> Value:
    """2 to the power x."""
    format = x.format
    x = clamp(x, 1.0 - format.bias - format.mantissa - 2, format.bias + 2.0)
    k, k_bits = nearest_integer(x)
    a, b = powers_of_two(k_bits)
    return exp_reduced((x - k) * 0.6931471805599453) * a * b


def expm1_of(x: Value) -> Value:
    """2**k (q + 1) - 1 as (q + 1 - 2**-k) 2**k, exactly so for q = exp(r) - 1."""
    format = x.format
    low = {32: -20.0, 64: -40.0}[format.width]  # expm1 is -1 from here on
    r, k = reduce_exp(clamp(x, low, TOP[format.width]))
    q = expm1_reduced(r)
    a, b = powers_of_two(k)
    one_over_b = ((2 * format.one) - b.bits()).floats()
    scaled = (q * a + (a - one_over_b)) * b
    return copysign(where(abs(x) < 0.34, q, scaled), x)  # the sign of -0.0


@kernel(np.expm1)
def expm1(x: Value) -> Value:
    """exp(x) - 1, accurate near 0."""
    return expm1_of(x)


def logistic(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


@kernel(logistic, takes_complex=False)
def expit(x: Value) -> Value:
    """The logistic sigmoid, 1 / (1 + exp(-x))."""
    e = exp_of(-abs(x))
    denominator = e + 1.0
    lost = e - (denominator - 1.0)
    numerator = where(x < 0.0, e, 1.0)
    inverse = 1.0 / denominator
    quotient = numerator * inverse
    rest = fma(-quotient, denominator, numerator) - quotient * lost
    return muladd(rest, inverse, quotient)
