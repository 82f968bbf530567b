"""The logarithm of the gamma function and its derivatives: gammaln, digamma, polygamma.

Small arguments are shifted by the recurrence to where a polynomial holds, large ones take Stirling's series, and
negative ones the reflection formula (Abramowitz and Stegun, 6.1, 6.3 and 6.4). polygamma shifts upwards and then takes
the series. All is computed in float64. Accurate to a few ulp for positive arguments; near the zeros at negative ones to
a few ulp of the terms of the reflection formula.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from gradsmith.kernels import special_polynomials as tables
from gradsmith.kernels.error_function import log_of
from gradsmith.kernels.expression import F64, Value, muladd, polynomial, rint, where
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.static_order import with_static_order

STIRLING_FROM = 10.0
HALF_LOG_2_PI = 0.9189385332046727
PI = (math.pi, 1.2246467991473532e-16)  # in two parts


def sin_pi_reduced(r: Value) -> Value:
    """sin(pi r) for |r| <= 1/2."""
    z = r * r
    return muladd(r, PI[0], muladd(r, PI[1], r * z * polynomial(z, tables.SIN_PI)))


def cos_pi_reduced(r: Value) -> Value:
    """cos(pi r) for |r| <= 1/2."""
    return sin_pi_reduced(0.5 - abs(r))


def _gammaln(x: Any) -> Any:
    from scipy.special import gammaln

    return gammaln(x)


@kernel(_gammaln, takes_complex=False)
def gammaln(x: Value) -> Value:
    """The logarithm of |gamma(x)|: infinite at 0 and the negative integers."""
    return gammaln_of(x.to(F64)).to(x.format)


def gammaln_of(x: Value) -> Value:
    size = abs(x)
    is_large = size >= STIRLING_FROM
    # v = size - n - 2 within [-1/2, 1/2], and the product of the factors from there to size.
    moderate = where(is_large, 2.0, size)
    n = rint(moderate - 2.0)
    v = moderate - (n + 2.0)
    up = where(n < -1.5, muladd(moderate, moderate, moderate), moderate)
    down = moderate - 1.0
    for k in range(2, 9):
        down = where(n >= float(k), down * (moderate - float(k)), down)
    product = where(n < 0.0, up, where(n > 0.0, down, 1.0))
    logarithm = log_of(where(size < math.inf, where(is_large, size, product), 1.0))
    moderate = v * polynomial(v, tables.LGAMMA) + where(n < 0.0, -logarithm, logarithm)
    inverse = 1.0 / size
    rest = muladd(inverse, polynomial(inverse * inverse, tables.STIRLING), HALF_LOG_2_PI - 0.5)
    large = muladd(size - 0.5, logarithm - 1.0, rest)
    positive = where(is_large, large, moderate)

    sine = abs(sin_pi_reduced(x - rint(x)))
    is_pole = sine.equals(0.0) & (x <= 0.0)
    is_near_zero = size < 2.0**-60  # where gamma(x) and -gamma(-x) are the same
    regular = ~(is_pole | is_near_zero) & (x < 0.0)
    reflected = log_of(where(regular, math.pi / (size * sine), 1.0)) - positive
    result = where((x > 0.0) | is_near_zero, positive, reflected)
    result = where(is_pole, math.inf, result)
    return where(size < math.inf, result, x)  # -inf for -inf as in SciPy


def _digamma(x: Any) -> Any:
    from scipy.special import digamma

    return digamma(x)


@kernel(_digamma, takes_complex=False)
def digamma(x: Value) -> Value:
    """The derivative of gammaln: NaN at the negative integers and -inf, and infinite at 0, with the sign of -1/x."""
    return digamma_of(x.to(F64)).to(x.format)


def digamma_of(x: Value) -> Value:
    is_negative = x < 0.0
    b = where(is_negative, 1.0 - x, x)
    is_large = b >= STIRLING_FROM
    # y = b - n within [1, 2], and the sum of 1 / (b - k) from there to b as one fraction.
    moderate = where(is_large, 2.0, b)
    n = rint(moderate - 0.5) - 1.0
    y = moderate - n
    numerator, denominator = where(n < 0.0, moderate.constant(-1.0), 0.0), where(n < 0.0, moderate, 1.0)
    for k in range(1, 9):
        takes_part, factor = n >= float(k), moderate - float(k)
        numerator = where(takes_part, muladd(numerator, factor, denominator), numerator)
        denominator = where(takes_part, denominator * factor, denominator)
    high, low = tables.DIGAMMA_ROOT
    near = ((y - high) - low) * polynomial(y - 1.5, tables.DIGAMMA)
    inverse = 1.0 / b
    z = inverse * inverse
    logarithm = log_of(where(is_large & (b < math.inf), b, 1.0), is_normal=True)
    large = logarithm - muladd(z, polynomial(z, tables.DIGAMMA_TAIL), 0.5 * inverse)
    large = where(b.equals(math.inf), math.inf, large)
    positive = where(is_large, large, near + numerator / denominator)
    r = x - rint(x)
    cotangent = cos_pi_reduced(r) / sin_pi_reduced(r)
    reflected = muladd(cotangent, -math.pi, positive)
    reflected = where(r.equals(0.0), math.nan, reflected)
    return where(x.equals(0.0), -1.0 / x, where(is_negative, reflected, positive))


# polygamma ----------------------------------------------------------------------------------------------------------


@cache
def bernoulli(count: int) -> tuple[Fraction, ...]:
    """B_0, B_1 = -1/2, B_2, ..., `count` of them."""
    numbers: list[Fraction] = []
    for m in range(count):
        rest = sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0))
        numbers.append(Fraction(1) if m == 0 else -rest / (m + 1))
    return tuple(numbers)


def series_coefficient(n: int, k: int) -> Fraction:
    """Of x**-(n + 2 k) in the asymptotic series of |polygamma(n, x)|."""
    return bernoulli(2 * k + 1)[2 * k] * Fraction(math.factorial(2 * k + n - 1), math.factorial(2 * k))


@cache
def shift_and_terms(n: int) -> tuple[int, int]:
    """How far to shift and how many terms to take, so that together they are cheapest and right to 2**-57."""
    choices = []
    for shift in range(4, 60):
        for terms in range(1, 30):
            left_out = abs(series_coefficient(n, terms + 1)) / Fraction(shift) ** (2 * terms + 2)
            if left_out < math.factorial(n - 1) * Fraction(1, 2**57):
                choices.append((2 * shift + terms, shift, terms))
                break
    return min(choices)[1:]


@cache
def cotangent_derivative(n: int) -> tuple[int, ...]:
    """The n-th derivative of cot(t) as a polynomial in cot(t), lowest power first: each step is p -> -(1 + c**2) p'."""
    coefficients = [0, 1]
    for _ in range(n):
        slope = [-power * coefficient for power, coefficient in enumerate(coefficients)][1:]
        coefficients = [a + b for a, b in zip([*slope, 0, 0], [0, 0, *slope])]
    return tuple(coefficients)


def integer_power(x: Value, n: int) -> Value:
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        if n:
            square = square * square
    return result if result is not None else x.constant(1.0)


def polygamma_of(n: int, x: Value) -> Value:
    """The n-th derivative of digamma, for n >= 1: (-1)**(n + 1) n! times the sum of (x + k)**-(n + 1) over k >= 0."""
    shift, terms = shift_and_terms(n)
    is_negative = x <= 0.0
    b = where(is_negative, 1.0 - x, x)
    inverse = 1.0 / (b + float(shift))
    z = inverse * inverse
    series = [float(series_coefficient(n, k)) for k in range(1, terms + 1)]
    lead = muladd(inverse, math.factorial(n) / 2, muladd(z, polynomial(z, series), float(math.factorial(n - 1))))
    total = integer_power(inverse, n) * (lead * (1 / math.factorial(n)))
    for k in reversed(range(shift)):
        total = total + integer_power(1.0 / (b + float(k)), n + 1)
    sign = (-1) ** (n + 1)
    value = total * float(sign * math.factorial(n))

    r = x - rint(x)
    cotangent = cos_pi_reduced(r) / sin_pi_reduced(r)
    square = cotangent * cotangent
    reflection = polynomial(square, [float(c) for c in cotangent_derivative(n)[(n + 1) % 2 :: 2]])
    if n % 2 == 0:
        reflection = reflection * cotangent
    mirrored = -value if n % 2 else value
    reflected = muladd(reflection, -(math.pi ** (n + 1)), mirrored)
    reflected = where(r.equals(0.0) | x.equals(-math.inf), sign * math.inf, reflected)
    return where(is_negative, reflected, value)


def _polygamma(n: int, x: Any) -> Any:
    from scipy.special import digamma, polygamma

    return digamma(x) if n == 0 else polygamma(n, x)


@with_static_order(_polygamma, highest=30)
def polygamma(n: int) -> Callable[[Value], Value]:
    """`polygamma(n, x)`: the n-th derivative of digamma at x, for a literal n from 0 to 30."""

    def body(x: Value) -> Value:
        wide = x.to(F64)
        return (digamma_of(wide) if n == 0 else polygamma_of(n, wide)).to(x.format)

    return body
