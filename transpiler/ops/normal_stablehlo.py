"""The normal distribution function's logarithm, its quantiles and erfcx as StableHLO, in the dtype of the operands."""

from __future__ import annotations

import math
from typing import Any

from .incomplete_stablehlo import Number, repeat, where

TERMS = 15      # of the asymptotic series: the next is below 2e-16 at x = 8, 1e-7 at x = 5


def scaled_erfc(x: Number) -> Number:
    """exp(x**2) erfc(x): this product where neither factor leaves the range of the dtype, and the asymptotic series
    1 / (x sqrt(pi)) sum_k (-1)**k (2k - 1)!! / (2 x**2)**k far out."""
    is_double = x.value.type.dtype == "float64"
    is_far = x > (8 if is_double else 5)
    near, far = where(is_far, 0.0, x), where(is_far, x, 8)
    part, total = -0.5 / far / far, far.filled(1)
    for k in range(TERMS if is_double else TERMS // 2, 0, -1):
        total = 1 + (2 * k - 1) * part * total
    return where(is_far, total / far * math.sqrt(1 / math.pi),
                 (near * near).call("exponential") * near.call("chlo.erfc"))


def log_normal_cdf(x: Number) -> Number:
    is_low = x < -1
    low, rest = where(is_low, x, -1), where(is_low, 0.0, x)
    below = (0.5 * scaled_erfc(low * -math.sqrt(0.5))).call("log") - 0.5 * low * low
    return where(is_low, below, (-0.5 * (rest * math.sqrt(0.5)).call("chlo.erfc")).call("log_plus_one"))


def normal_quantile(p: Number, rest: Number) -> Number:
    """x where the distribution function is p and 1 minus it is `rest`, both in (0, 1).

    In the middle by the inverse of erf; in a tail by Newton's method on the logarithm, which is concave and so comes
    from one side (started at Abramowitz and Stegun, 26.2.22)."""
    is_double = p.value.type.dtype == "float64"
    tail = where(p < rest, p, rest)
    is_tail = tail < 0.2
    log_tail = where(is_tail, tail, 0.1).call("log")
    root = (-2 * log_tail).call("sqrt")
    start = (2.30753 + 0.27061 * root) / (1 + 0.99229 * root + 0.04481 * root * root) - root
    near = 1e-6 if is_double else 1e-3

    def step(_: Number, x: Number, __: Number) -> list[Number]:
        change = (log_tail - log_normal_cdf(x)) * math.sqrt(math.pi / 2) * scaled_erfc(x * -math.sqrt(0.5))
        return [x + change, abs(change) <= near * abs(x)]

    outer = repeat([start, ~is_tail], step, longest=20)[0]
    distance = where(p < rest, p - 0.5, 0.5 - rest)
    middle = math.sqrt(2) * (2 * where(is_tail, 0.0, distance)).call("chlo.erf_inv")
    return where(is_tail, where(p < rest, outer, -outer), middle)


def erfcx_hlo(h: Any, x: Any) -> Any:
    return scaled_erfc(Number(h, x)).value


def log_ndtr_hlo(h: Any, x: Any) -> Any:
    return log_normal_cdf(Number(h, x)).value


def ndtri_hlo(h: Any, p: Any) -> Any:
    p = Number(h, p)
    inside = (p > 0) & (p < 1)
    safe = where(inside, p, 0.5)
    ends = where(p.equals(0), -math.inf, where(p.equals(1), p.filled(math.inf), math.nan))
    return where(inside, normal_quantile(safe, 1 - safe), ends).value
