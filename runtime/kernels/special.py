"""Special functions: the logarithmic ones here, the error, gamma and sinc functions from files of their own."""

import math
from typing import Any

import numpy as np

from gradsmith.kernels.error_function import erf, erfc, erfinv, log_of
from gradsmith.kernels.exponential import exp_of
from gradsmith.kernels.expression import Value, where
from gradsmith.kernels.gamma import digamma, gammaln, polygamma
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.logarithm import log1p_of, with_edges
from gradsmith.kernels.sinc_derivatives import sinc, sinc_derivative

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "gammaln",
    "logaddexp",
    "logaddexp2",
    "logit",
    "polygamma",
    "sinc",
    "sinc_derivative",
    "xlog1py",
    "xlogy",
]


def log_everywhere(x: Value) -> Value:
    return with_edges(log_of(x), x)


def log1p_everywhere(x: Value) -> Value:
    result = where(x < math.inf, log1p_of(x), x)
    outside = where(x.equals(-1.0), x.constant(-math.inf), math.nan)
    return where(x.equals(0.0), x, where(x > -1.0, result, outside))


def _logit(p: Any) -> Any:
    from scipy.special import logit

    return logit(p)


@kernel(_logit, takes_complex=False)
def logit(p: Value) -> Value:
    """log(p / (1 - p)), infinite at 0 and 1 and NaN beyond; accurate near its zero at 1/2."""
    rest = 1.0 - p
    middle = log1p_of(((p - 0.5) - (0.5 - p)) / rest)
    outer = log_everywhere(p / rest)
    is_middle = (p > 0.3) & (p < 0.65)
    return where(is_middle, middle, where(p > 1.0, math.nan, where(p.equals(1.0), math.inf, outer)))


def _xlogy(x: Any, y: Any) -> Any:
    from scipy.special import xlogy

    return xlogy(x, y)


@kernel(_xlogy, takes_complex=False)
def xlogy(x: Value, y: Value) -> Value:
    """x log(y), and 0 where x is 0 and y is a number."""
    return where(x.equals(0.0) & ~y.is_nan(), 0.0, x * log_everywhere(y))


def _xlog1py(x: Any, y: Any) -> Any:
    from scipy.special import xlog1py

    return xlog1py(x, y)


@kernel(_xlog1py, takes_complex=False)
def xlog1py(x: Value, y: Value) -> Value:
    """x log(1 + y), and 0 where x is 0 and y is a number."""
    return where(x.equals(0.0) & ~y.is_nan(), 0.0, x * log1p_everywhere(y))


def _entr(x: Any) -> Any:
    from scipy.special import entr

    return entr(x)


@kernel(_entr, takes_complex=False)
def entr(x: Value) -> Value:
    """-x log(x), 0 at 0 and -inf below."""
    below = where(x < 0.0, x.constant(-math.inf), where(x.is_nan(), x, 0.0))
    return where(x > 0.0, -x * log_everywhere(x), below)


def log_of_sum(x: Value, y: Value, base: float) -> Value:
    """log(base**x + base**y) to that base, as max(x, y) + log(1 + base**-|x - y|)."""
    log_base = math.log(base)
    small = log1p_of(exp_of(abs(x - y) * -log_base)) * (1 / log_base)
    result = where(x.equals(y), x + math.log(2) / log_base, where(x > y, x, y) + small)
    return where(x.is_nan(), x, where(y.is_nan(), y, result))


@kernel(np.logaddexp, takes_complex=False)
def logaddexp(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)) without overflow."""
    return log_of_sum(x, y, math.e)


@kernel(np.logaddexp2, takes_complex=False)
def logaddexp2(x: Value, y: Value) -> Value:
    """log2(2**x + 2**y) without overflow."""
    return log_of_sum(x, y, 2.0)
