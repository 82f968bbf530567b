"""The gamma distribution and what is made of it: beta, dirichlet, chi-square, Student's t, F, and balls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_float, checked_key, checked_shape, common_shape, fit
from .continuous import standard_exponential, standard_normal
from .elements import gamma_draws
from .keys import _split
from .selection import rademacher


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of density x**(a - 1) exp(-x) / gamma(a).  Divide by a rate, or multiply by a scale."""
    words, kind = checked_key("gamma", key), checked_float("gamma", dtype)
    return as_array(standard_gamma("gamma", words, a, common_shape(shape, a), kind, False))


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The logarithms of the numbers of `gamma`, which do not underflow where a is small."""
    words, kind = checked_key("loggamma", key), checked_float("loggamma", dtype)
    return as_array(standard_gamma("loggamma", words, a, common_shape(shape, a), kind, True))


def standard_gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any, is_log: bool) -> Any:
    fit(name, shape, a)
    shapes = np.broadcast_to(np.asarray(a).astype(dtype), shape).reshape(-1)
    return gamma_draws(_split(key, shapes.size), shapes, is_log).reshape(shape)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of density x**(a - 1) (1 - x)**(b - 1) / B(a, b)."""
    kind, dims, keys = checked_float("beta", dtype), common_shape(shape, a, b), _split(checked_key("beta", key), 2)
    first = standard_gamma("beta", keys[0], a, dims, kind, True)
    second = standard_gamma("beta", keys[1], b, dims, kind, True)
    top = np.maximum(first, second)
    scaled, other = np.exp(first - top), np.exp(second - top)
    return as_array(scaled / (scaled + other))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Vectors of positive numbers that sum to 1, of density prod(x**(alpha - 1)) times a constant.

    alpha: (..., n).  shape: that of the result without n.  ValueError for an `alpha` that is a number.
    """
    words, kind = checked_key("dirichlet", key), checked_float("dirichlet", dtype)
    if np.ndim(alpha) < 1:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    shapes = np.asarray(alpha).astype(kind)
    dims = common_shape(shape, shapes[..., 0])
    logs = standard_gamma("dirichlet", words, shapes, (*dims, shapes.shape[-1]), kind, True)
    weights = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return as_array(weights / np.sum(weights, axis=-1, keepdims=True))


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Sums of squares of `df` normal numbers."""
    words, kind = checked_key("chisquare", key), checked_float("chisquare", dtype)
    return as_array(_chisquare("chisquare", words, df, common_shape(shape, df), kind))


def _chisquare(name: str, key: Any, df: Any, shape: Any, dtype: Any) -> Any:
    half = np.asarray(df).astype(dtype) / dtype.type(2)
    return dtype.type(2) * np.exp(standard_gamma(name, key, half, shape, dtype, True))


def t(key: Any, df: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of Student's distribution with `df` degrees of freedom."""
    kind, dims, keys = checked_float("t", dtype), common_shape(shape, df), _split(checked_key("t", key), 2)
    half = np.asarray(df).astype(kind) / kind.type(2)
    g = standard_gamma("t", keys[1], half, dims, kind, False)
    return as_array(standard_normal(keys[0], dims, kind) * np.sqrt(half / g))


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Ratios of two `chisquare` numbers, each divided by its degrees of freedom."""
    kind, dims, keys = checked_float("f", dtype), common_shape(shape, dfnum, dfden), _split(checked_key("f", key), 2)
    top = _chisquare("f", keys[1], dfnum, dims, kind) / np.asarray(dfnum).astype(kind)
    return as_array(top / (_chisquare("f", keys[0], dfden, dims, kind) / np.asarray(dfden).astype(kind)))


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of density exp(-|x|**p) times a constant."""
    kind, dims = checked_float("generalized_normal", dtype), checked_shape(shape)
    return as_array(_generalized_normal(checked_key("generalized_normal", key), p, dims, kind))


def _generalized_normal(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    keys, power = _split(key, 2), dtype.type(1) / np.asarray(p).astype(dtype)
    g = standard_gamma("generalized_normal", keys[0], power, shape, dtype, False)
    return rademacher(keys[1], shape, dtype) * g ** power


def ball(key: Any, d: Any, p: Any = 2, shape: Any = (), dtype: Any = None) -> Any:
    """Points uniform in the unit ball of `d` dimensions with the norm of order p."""
    kind, dims, keys = checked_float("ball", dtype), checked_shape(shape), _split(checked_key("ball", key), 2)
    g = _generalized_normal(keys[0], p, (*dims, d), kind)
    e, power = standard_exponential(keys[1], dims, kind), np.asarray(p).astype(kind)
    radius = (np.sum(np.abs(g) ** power, axis=-1) + e) ** (kind.type(1) / power)
    return as_array(g / radius[..., None])
