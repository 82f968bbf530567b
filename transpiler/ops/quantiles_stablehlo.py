"""Quantiles of the gamma and beta distributions as StableHLO: the inverses of the incomplete functions.

Both solve for a variable in which the logarithms of the distribution function and of 1 minus it are concave (log(x),
and log(x / (1 - x)), whose densities are log-concave): Newton's method on the logarithm of the smaller of the two then
comes from one side, and settles from any start.  What leaves the interval in which the solution is known to be is
replaced by its middle, so that rounding and poor starts do no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import incomplete_beta_stablehlo as beta
from . import incomplete_stablehlo as gamma
from .incomplete_stablehlo import Number, repeat, where
from .normal_stablehlo import normal_quantile

LONGEST = 200


def solved(excess: Callable[[Number], tuple[Number, Number]], start: Number, low: Number, high: Number,
           is_known: Number) -> Number:
    """The root in (low, high) of a rising function; excess(u): its value, and Newton's step from u to the root."""
    near = 1e-9 if start.value.type.dtype == "float64" else 1e-4

    def step(_: Number, u: Number, low: Number, high: Number, __: Number) -> list[Number]:
        value, change = excess(u)
        low, high = where(value <= 0, u, low), where(value >= 0, u, high)
        fits = (u + change >= low) & (u + change <= high)
        following = where(fits, u + change, 0.5 * (low + high))
        settled = (fits & (abs(change) <= near)) | value.equals(0) | (high - low <= 0)
        return [following, low, high, settled]

    inside = where((start > low) & (start < high), start, 0.5 * (low + high))
    return repeat([inside, low, high, is_known], step, longest=LONGEST)[0]


# --- gamma ------------------------------------------------------------------------------------------------------


def log_gamma_quantile(a: Number, p: Number, rest: Number, is_known: Number) -> Number:
    """log(x) where P(a, x) is p and 1 - P(a, x) is `rest`, for a > 0 and p in (0, 1)."""
    is_upper = rest < p
    log_tail = where(is_upper, rest, p).call("log")
    # P(a, x) <= x**a / gamma(a + 1); and a sum of L, a and sqrt(2 a L) has at most exp(-L) above it (Boucheron, Lugosi
    # and Massart, "Concentration inequalities", 2013, 2.4)
    low = (p.call("log") + (a + 1).call("chlo.lgamma")) / a
    reach = -rest.call("log")
    high = (a + (2 * a * reach).call("sqrt") + reach).call("log")
    # Wilson and Hilferty, "The distribution of chi-square", 1931
    cube = 1 - 1 / (9 * a) + normal_quantile(p, rest) / (3 * a.call("sqrt"))
    start = where((a > 0.5) & (cube > 0.1), a.call("log") + 3 * where(cube > 0.1, cube, 1).call("log"), low)

    def excess(y: Number) -> tuple[Number, Number]:
        x = y.call("exponential")
        is_low = x <= a + 1
        log_f = gamma.log_factor(a, x, y)
        ratio = where(is_low, gamma.lower_sum(a, x, is_low & ~is_known), gamma.upper_ratio(a, x, ~is_low & ~is_known))
        near = log_f + ratio.call("log")                            # the logarithm of the one that is computed
        far = (-near.call("exponential")).call("log_plus_one")      # and of the other
        reached = where(is_low.equals(is_upper), far, near)
        value = where(is_upper, log_tail - reached, reached - log_tail)
        change = -value * (reached - log_f).call("exponential")
        # far up the logarithm of 1 - P is nearly linear in x: Newton's step is one of x
        in_x = where(change > -1, change, 0.0).call("log_plus_one")
        return value, where(is_upper & (x > 1) & (change > -1), in_x, change)

    return solved(excess, start, low - abs(low) * 1e-6, high, is_known)


def gammaincinv_hlo(h: Any, a: Any, p: Any, upper: bool = False) -> Any:
    a, p = Number(h, a), Number(h, p)
    inside = (a > 0) & (p > 0) & (p < 1)
    shape, safe = where(inside, a, 1), where(inside, p, 0.5)
    lower, rest = (1 - safe, safe) if upper else (safe, 1 - safe)
    found = log_gamma_quantile(shape, lower, rest, ~inside).call("exponential")
    ends = where(p.equals(1), 0.0 if upper else math.inf, p.filled(math.nan))
    ends = where(p.equals(0), math.inf if upper else 0.0, ends)
    return where(inside, found, where(a > 0, ends, math.nan)).value


# --- beta -------------------------------------------------------------------------------------------------------


def _logistic_logs(u: Number) -> tuple[Number, Number]:
    """log(x) and log(1 - x) where u = log(x / (1 - x))."""
    rest = (-abs(u)).call("exponential").call("log_plus_one")
    return where(u < 0, u, 0.0) - rest, -(where(u > 0, u, 0.0) + rest)


def logit_beta_quantile(a: Number, b: Number, p: Number, is_known: Number) -> Number:
    """log(x / (1 - x)) where I_x(a, b) = p <= 1/2."""
    log_p = p.call("log")
    widest = 740.0 if a.value.type.dtype == "float64" else 100.0
    slopes = [gamma.trigamma(v).call("sqrt") for v in (a, b)]
    spread = (slopes[0] * slopes[0] + slopes[1] * slopes[1]).call("sqrt")
    start = a.call("chlo.digamma") - b.call("chlo.digamma") + normal_quantile(p, 1 - p) * spread

    def excess(u: Number) -> tuple[Number, Number]:
        log_x, log_y = _logistic_logs(u)
        x = log_x.call("exponential")
        swapped = x > (a + 1) / (a + b + 2)
        log_f = beta.log_factor(a, b, log_x, log_y)
        first, second = where(swapped, b, a), where(swapped, a, b)
        end = where(swapped, log_y.call("exponential"), x)
        near = log_f + (beta.value_of_fraction(first, second, end, ~is_known) / first).call("log")
        reached = where(swapped, (-near.call("exponential")).call("log_plus_one"), near)
        value = reached - log_p
        return value, -value * (reached - log_f).call("exponential")

    return solved(excess, start, a.filled(-widest), a.filled(widest), is_known)


def betaincinv_hlo(h: Any, a: Any, b: Any, p: Any) -> Any:
    a, b, p = Number(h, a), Number(h, b), Number(h, p)
    valid = (a > 0) & (b > 0)
    inside = valid & (p > 0) & (p < 1)
    a, b, safe = where(inside, a, 1), where(inside, b, 1), where(inside, p, 0.5)
    swapped = safe > 0.5
    u = logit_beta_quantile(where(swapped, b, a), where(swapped, a, b), where(swapped, 1 - safe, safe), ~inside)
    found = where(swapped, -u, u).call("logistic")
    ends = where(p.equals(0) | p.equals(1), p, math.nan)
    return where(inside, found, where(valid, ends, math.nan)).value
