"""sin(pi x) / (pi x) and its derivatives of any order.

With f(z) = sin(z) / z, the n-th derivative is the sum over k of C(n, k) (d/dz)**(n - k) sin(z) (-1)**k k! / z**(k + 1).
Its terms cancel where z is small beside n; there the power series is used, developed around the middle of the range
of z**2, where its own terms cancel little. Exact zeros of sin(pi x) come out as zeros, since x is reduced before pi.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from gradsmith.kernels.expression import F64, Value, muladd, polynomial, rint, where
from gradsmith.kernels.gamma import cos_pi_reduced, sin_pi_reduced
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.static_order import with_static_order

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459")


def falling(n: int, k: int) -> int:
    """n! / (n - k)!"""
    return math.perm(n, k)


@cache
def closed_form(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The n-th derivative of sinc as sin(pi x) A(1/x) + cos(pi x) B(1/x): A and B, lowest power first, from 1/x."""
    sine, cosine = [Fraction(0)] * (n + 1), [Fraction(0)] * (n + 1)
    for k in range(n + 1):
        order = n - k
        coefficient = Fraction((-1) ** k * falling(n, k)) * PI ** (order - 1) * (-1) ** (order // 2)
        (cosine if order % 2 else sine)[k] = coefficient
    return tuple(map(float, sine)), tuple(map(float, cosine))


@cache
def series_end(n: int) -> Fraction:
    """The |x| from which the terms of the closed form are no larger than a few times the derivative's own size."""
    if n == 0:
        return Fraction(0)
    z = Fraction(1, 2)
    while sum(falling(n, k) / z ** (k + 1) for k in range(n + 1)) > Fraction(5, n + 1):
        z += Fraction(1, 8)
    return z / PI


@cache
def series(n: int) -> tuple[float, float, tuple[float, ...]]:
    """The n-th derivative as x**(n % 2) P(x**2 - middle) for |x| <= end: end, middle and the coefficients of P."""
    end = series_end(n)
    middle = Fraction(float(end * end / 2))
    odd = n % 2
    terms: list[Fraction] = []  # of x**(2 j + odd)
    while True:
        power = 2 * len(terms) + odd
        m = power + n  # from (-1)**(m / 2) (pi x)**m / (m + 1)!, differentiated n times
        terms.append(Fraction((-1) ** (m // 2)) * PI**m * falling(m, n) / math.factorial(m + 1))
        if len(terms) > 4 and abs(terms[-1]) * end**power < Fraction(1, 2**66):
            break
    around = [
        sum((terms[j] * math.comb(j, i) * middle ** (j - i) for j in range(i, len(terms))), Fraction(0))
        for i in range(len(terms))
    ]
    # The last coefficients, small on this range, are not needed any more.
    reach = max(middle, end * end - middle)
    while len(around) > 1 and abs(around[-1]) * reach ** (len(around) - 1) < abs(around[0]) / 2**60:
        around.pop()
    return float(end), float(middle), tuple(map(float, around))


def by_parity(inverse: Value, coefficients: Sequence[float]) -> Value | None:
    """The sum of c_k / x**(k + 1), where every other c_k is 0."""
    first = next((k for k, coefficient in enumerate(coefficients) if coefficient), None)
    if first is None:
        return None
    value = polynomial(inverse * inverse, coefficients[first::2])
    for _ in range(first + 1):
        value = value * inverse
    return value


def derivative_of(n: int, x: Value) -> Value:
    whole = rint(x)
    r = x - whole
    half = whole * 0.5
    is_odd = ~rint(half).equals(half)
    inverse = 1.0 / x
    sine_factor, cosine_factor = (by_parity(inverse, coefficients) for coefficients in closed_form(n))
    away = x.constant(0.0) if sine_factor is None else sin_pi_reduced(r) * sine_factor
    if cosine_factor is not None:
        away = muladd(cos_pi_reduced(r), cosine_factor, away)
    away = where(is_odd, -away, away)
    if n == 0:
        return where(x.equals(0.0), 1.0, away)
    end, middle, coefficients = series(n)
    near = polynomial(x * x - middle, coefficients)
    if n % 2:
        near = near * x
    return where(abs(x) < end, near, away)


@kernel(np.sinc, takes_complex=False)
def sinc(x: Value) -> Value:
    """sin(pi x) / (pi x), 1 at 0 and exactly 0 at the other integers. NaN at infinity, as in NumPy."""
    return derivative_of(0, x.to(F64)).to(x.format)


def _sinc_derivative(n: int, x: Any) -> Any:
    """The same with NumPy."""
    wide = np.asarray(x, np.float64)
    whole = np.rint(wide)
    r = wide - whole
    sign = np.where(np.remainder(whole, 2.0) == 1.0, -1.0, 1.0)
    sine, cosine = np.sin(np.pi * r), np.sin(np.pi * (0.5 - np.abs(r)))
    inverse = 1.0 / np.where(wide == 0.0, 1.0, wide)
    powers = [inverse ** (k + 1) for k in range(n + 1)]
    a, b = (sum(c * power for c, power in zip(coefficients, powers)) for coefficients in closed_form(n))
    away = sign * (sine * a + cosine * b)
    if n == 0:
        return np.where(wide == 0.0, 1.0, away)
    end, middle, coefficients = series(n)
    small = np.where(np.abs(wide) < end, wide, 0.0)
    near = np.polynomial.polynomial.polyval(small * small - middle, coefficients) * (small if n % 2 else 1.0)
    return np.where(np.abs(wide) < end, near, away)


@with_static_order(_sinc_derivative, highest=20)
def sinc_derivative(n: int) -> Callable[[Value], Value]:
    """`sinc_derivative(n, x)`: the n-th derivative of sinc at x, for a literal n from 0 to 20."""
    return lambda x: derivative_of(n, x.to(F64)).to(x.format)
