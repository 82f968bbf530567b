"""Hyperbolic functions and their inverses: sinh, cosh, tanh, arcsinh, arccosh, arctanh.

Near 0 sinh and tanh are odd polynomials, elsewhere they come from exp as cosh does. The inverses are log1p of an
argument that carries its rounding error with it.
"""

import math

import numpy as np

from gradsmith.kernels import complex_numbers, polynomials
from gradsmith.kernels.exponential import TOP, clamp, exp_of, exp_reduced, powers_of_two, reduce_exp
from gradsmith.kernels.expression import (
    Value,
    copysign,
    exact_product,
    exact_sum_ordered,
    fma,
    muladd,
    sqrt,
    where,
)
from gradsmith.kernels.inverse_trig import odd_polynomial
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.logarithm import log1p_of


def half_exp(x: Value) -> Value:
    """exp(x) / 2 for x >= 0, which overflows later than exp(x)."""
    r, k = reduce_exp(clamp(x, 0.0, TOP[x.format.width] + 1.0))
    a, b = powers_of_two(k)
    return exp_reduced(r) * a * (b * 0.5)


@kernel(np.sinh, of_complex=complex_numbers.sinh)
def sinh(x: Value) -> Value:
    """The hyperbolic sine."""
    size = abs(x)
    half = half_exp(size)
    near_zero = size + odd_polynomial(where(size < 1.0, size, 0.0), polynomials.SINH)
    return copysign(where(size < 1.0, near_zero, half - 0.25 / half), x)


@kernel(np.cosh, of_complex=complex_numbers.cosh)
def cosh(x: Value) -> Value:
    """The hyperbolic cosine."""
    half = half_exp(abs(x))
    return half + 0.25 / half


@kernel(np.tanh, of_complex=complex_numbers.tanh)
def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    size = abs(x)
    near_zero = size + odd_polynomial(size, polynomials.TANH)
    e = exp_of(where(size > 30.0, 30.0, size) * 2.0)
    return copysign(where(size < 0.55, near_zero, 1.0 - 2.0 / (e + 1.0)), x)


@kernel(np.arcsinh)
def arcsinh(x: Value) -> Value:
    """The inverse hyperbolic sine: log1p(a + a**2 / (1 + sqrt(1 + a**2))) for a = |x|."""
    size = abs(x)
    is_huge = size > 2.0 ** (x.format.mantissa + 2)  # the inverse is log(2 a) here
    a = where(is_huge, 1.0, size)
    square = a * a
    t = square / (sqrt(square + 1.0) + 1.0)
    f, f_low = exact_sum_ordered(a, t)
    result = log1p_of(where(is_huge, size, f), where(is_huge, 0.0, f_low), where(is_huge, x.constant(1.0), 0.0))
    return copysign(where(size < math.inf, result, size), x)


@kernel(np.arccosh)
def arccosh(x: Value) -> Value:
    """The inverse hyperbolic cosine: log1p(d + sqrt(2 d + d**2)) for d = x - 1."""
    is_huge = x > 2.0 ** (x.format.mantissa + 2)
    d = where(is_huge, 1.0, x) - 1.0
    square, square_low = exact_product(d, d)
    inside = muladd(d, 2.0, square)
    twice = d * 2.0
    larger, smaller = where(d > 2.0, square, twice), where(d > 2.0, twice, square)
    inside, inside_low = exact_sum_ordered(larger, smaller)
    root = sqrt(inside)
    safe_root = where(root > 0.0, root, 1.0)
    root_low = (fma(-root, root, inside) + (inside_low + square_low)) * 0.5 / safe_root
    larger, smaller = where(d > root, d, root), where(d > root, root, d)
    f, f_low = exact_sum_ordered(larger, smaller)
    f_low = where(is_huge, 0.0, f_low + root_low)
    result = log1p_of(where(is_huge, x, f), f_low, where(is_huge, x.constant(1.0), 0.0))
    return where(x < 1.0, math.nan, where(x < math.inf, result, x))


@kernel(np.arctanh)
def arctanh(x: Value) -> Value:
    """The inverse hyperbolic tangent: log1p(2 a / (1 - a)) / 2 for a = |x|."""
    a = abs(x)
    twice = a * 2.0
    denominator = 1.0 - a
    denominator_low = (1.0 - denominator) - a
    f = twice / denominator
    f_low = (fma(-f, denominator, twice) - f * denominator_low) / denominator
    result = copysign(log1p_of(f, f_low) * 0.5, x)
    outside = where(a.equals(1.0), copysign(x.constant(math.inf), x), math.nan)
    return where(a < 1.0, result, outside)
