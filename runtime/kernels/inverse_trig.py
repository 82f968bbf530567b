"""Inverse trigonometric functions: arcsin, arccos, arctan, arctan2.

Polynomials on [-1/2, 1/2] and [-1, 1]. The rest of arcsin and arccos follows from arcsin(x) = pi / 2 - 2 arcsin(s) with
s = sqrt((1 - x) / 2), of arctan from arctan(x) = pi / 2 - arctan(1 / x) (Cody and Waite, Software Manual for the
Elementary Functions, 1980). Each ends in one sum of a constant, in two parts, and what the polynomial gave.
"""

import numpy as np

from gradsmith.kernels import polynomials
from gradsmith.kernels.expression import Operand, Value, copysign, exact_sum_ordered, muladd, polynomial, sqrt, where
from gradsmith.kernels.kernel import kernel

# pi and pi / 2 in two parts.
PI = {32: (3.1415927410125732, -8.742278000372485e-08), 64: (3.141592653589793, 1.2246467991473532e-16)}
HALF_PI = {32: (1.5707963705062866, -4.3711390001862426e-08), 64: (1.5707963267948966, 6.123233995736766e-17)}


def odd_polynomial(x: Value, coefficients: dict[int, tuple[float, ...]]) -> Value:
    """x**3 P(x**2), what the function is more than x."""
    z = x * x
    return z * x * polynomial(z, coefficients[x.format.width])


def fold_arcsin(x: Value) -> tuple[Value, Value, Value]:
    """t and arcsin(t) - t, with t = |x| up to 1/2 and sqrt((1 - |x|) / 2) above, and whether it is above."""
    size = abs(x)
    is_above = size > 0.5
    t = where(is_above, sqrt(muladd(size, -0.5, 0.5)), size)
    return t, odd_polynomial(t, polynomials.ARCSIN), is_above


@kernel(np.arcsin)
def arcsin(x: Value) -> Value:
    """The inverse sine, between -pi / 2 and pi / 2."""
    high, low = HALF_PI[x.format.width]
    t, more, is_above = fold_arcsin(x)
    total, lost = exact_sum_ordered(t.constant(high), t * -2.0)
    above = total + (lost + muladd(more, -2.0, low))
    return copysign(where(is_above, above, t + more), x)


@kernel(np.arccos)
def arccos(x: Value) -> Value:
    """The inverse cosine, between 0 and pi."""
    width = x.format.width
    t, more, is_above = fold_arcsin(x)
    is_negative = x < 0.0
    scale = where(is_above, t.constant(2.0), 1.0)
    # 2 arcsin(t), pi - 2 arcsin(t), or pi / 2 -+ arcsin(t).
    base = where(is_above, where(is_negative, t.constant(PI[width][0]), 0.0), HALF_PI[width][0])
    base_low = where(is_above, where(is_negative, t.constant(PI[width][1]), 0.0), HALF_PI[width][1])
    scale = where(is_negative.equals(is_above), -scale, scale)
    total, lost = exact_sum_ordered(base, t * scale)
    return total + (lost + muladd(more, scale, base_low))


def arctan_of_quotient(numerator: Value, denominator: Value, base: Value, base_low: Value, sign: Operand) -> Value:
    """base + sign arctan(numerator / denominator), for a quotient between 0 and 1; the base is 0 or at least pi / 2."""
    q = numerator / denominator
    q = where(numerator.equals(denominator), 1.0, q)  # also where both are infinite
    q = where(denominator.equals(0.0), 0.0, q)
    more = odd_polynomial(q, polynomials.ARCTAN)
    total, lost = exact_sum_ordered(base, q * sign)
    return total + (lost + muladd(more, sign, base_low))


@kernel(np.arctan)
def arctan(x: Value) -> Value:
    """The inverse tangent, between -pi / 2 and pi / 2."""
    size = abs(x)
    high, low = HALF_PI[x.format.width]
    is_above = size > 1.0
    q = where(is_above, 1.0, size) / where(is_above, size, 1.0)
    more = odd_polynomial(q, polynomials.ARCTAN)
    above = (high - q) - (more - low)
    return copysign(where(is_above, above, q + more), x)


@kernel(np.arctan2, takes_complex=False)
def arctan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), between -pi and pi, with the signs of zeros respected as in C."""
    width = x.format.width
    height, breadth = abs(y), abs(x)
    is_steep = height > breadth
    is_left = x.bits() < 0
    numerator, denominator = where(is_steep, breadth, height), where(is_steep, height, breadth)
    base = where(is_steep, x.constant(HALF_PI[width][0]), where(is_left, x.constant(PI[width][0]), 0.0))
    base_low = where(is_steep, x.constant(HALF_PI[width][1]), where(is_left, x.constant(PI[width][1]), 0.0))
    sign = where(is_steep.equals(is_left), x.constant(1.0), -1.0)
    angle = copysign(arctan_of_quotient(numerator, denominator, base, base_low, sign), y)
    return where(x.is_nan(), x, where(y.is_nan(), y, angle))
