"""Distributions of real numbers that are functions of uniform or normal ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_float, checked_key, checked_shape, common_shape, fit
from .elements import erf, erfinv
from .keys import _split, random_bits
from .uniform import between, unit


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal numbers; of a complex dtype, with variance 1/2 in each part."""
    words, dims = checked_key("normal", key), checked_shape(shape)
    kind = np.dtype(np.float32 if dtype is None else dtype)
    if kind.kind != "c":
        return as_array(standard_normal(words, dims, checked_float("normal", kind)))
    both = _split(words, 2)
    part = np.dtype(np.float32 if kind == np.complex64 else np.float64)
    scale = part.type(1) / part.type(math.sqrt(2))
    real, imaginary = standard_normal(both[0], dims, part), standard_normal(both[1], dims, part)
    return as_array(scale * real + kind.type(1j) * (scale * imaginary))


def standard_normal(key: Any, shape: Any, dtype: Any) -> Any:
    from ..kernels import normal_numbers
    bits = random_bits(key, shape, np.dtype(f"u{dtype.itemsize}"))
    return normal_numbers(bits.reshape(-1), dtype).reshape(shape)


def _traced_normal(key: Any, shape: Any, dtype: Any) -> Any:
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    return dtype.type(math.sqrt(2)) * erfinv(between(key, shape, dtype, low, 1.0))


standard_normal.__gradsmith_traced__ = _traced_normal  # type: ignore[attr-defined]


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Normal numbers given that they lie between `lower` and `upper`."""
    words, kind = checked_key("truncated_normal", key), checked_float("truncated_normal", dtype)
    dims = common_shape(shape, lower, upper)
    fit("truncated_normal", dims, lower, upper)
    root = kind.type(math.sqrt(2))
    low, high = np.asarray(lower).astype(kind), np.asarray(upper).astype(kind)
    inside = root * erfinv(between(words, dims, kind, erf(low / root), erf(high / root)))
    return as_array(np.clip(inside, np.nextafter(low, kind.type(np.inf)), np.nextafter(high, kind.type(-np.inf))))


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Exponentially distributed numbers of mean 1."""
    return as_array(standard_exponential(checked_key("exponential", key), checked_shape(shape),
                                         checked_float("exponential", dtype)))


def standard_exponential(key: Any, shape: Any, dtype: Any) -> Any:
    return -np.log1p(-unit(key, shape, dtype))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of density exp(-|x|) / 2."""
    kind = checked_float("laplace", dtype)
    low = kind.type(-1.0 + np.finfo(kind).epsneg)
    u = between(checked_key("laplace", key), checked_shape(shape), kind, low, 1.0)
    return as_array(np.sign(u) * np.log1p(-np.abs(u)))


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: Any = None) -> Any:
    """Numbers of the standard Gumbel distribution.  mode: "high" draws twice as many bits, for a longer tail."""
    return as_array(standard_gumbel(checked_key("gumbel", key), checked_shape(shape), checked_float("gumbel", dtype),
                                    mode))


def standard_gumbel(key: Any, shape: Any, dtype: Any, mode: Any) -> Any:
    info = np.finfo(dtype)
    if mode in (None, "low"):
        return -np.log(-np.log(between(key, shape, dtype, info.tiny, 1.0)))
    if mode != "high":
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    both = unit(key, (2, *shape), dtype)
    high, low = both[0], both[1]
    x = np.where(high >= 0.5, high, high + dtype.type(2.0 ** -info.nmant) * low + info.tiny)
    return -np.log(-np.log1p(-x))


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of the standard logistic distribution."""
    kind = checked_float("logistic", dtype)
    u = between(checked_key("logistic", key), checked_shape(shape), kind, np.finfo(kind).tiny, 1.0)
    return as_array(np.log(u) - np.log1p(-u))


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers of the standard Cauchy distribution."""
    kind = checked_float("cauchy", dtype)
    u = between(checked_key("cauchy", key), checked_shape(shape), kind, np.finfo(kind).eps, 1.0)
    return as_array(np.tan(kind.type(np.pi) * (u - kind.type(0.5))))


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Lengths of vectors of two normal numbers of standard deviation `scale`."""
    kind, dims = checked_float("rayleigh", dtype), common_shape(shape, scale)
    fit("rayleigh", dims, scale)
    return as_array(np.asarray(scale).astype(kind) * np.sqrt(kind.type(-2) * np.log(
        unit(checked_key("rayleigh", key), dims, kind))))


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Any:
    """scale * E ** (1 / concentration) for exponentially distributed E."""
    kind = checked_float("weibull_min", dtype)
    e = standard_exponential(checked_key("weibull_min", key), checked_shape(shape), kind)
    one = kind.type(1)
    return as_array(e ** (one / np.asarray(concentration).astype(kind)) * np.asarray(scale).astype(kind))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of density b / x**(b + 1) above 1."""
    kind, dims = checked_float("pareto", dtype), common_shape(shape, b)
    fit("pareto", dims, b)
    return as_array(np.exp(standard_exponential(checked_key("pareto", key), dims, kind) / np.asarray(b).astype(kind)))


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Any:
    """exp of normal numbers of standard deviation `sigma`."""
    kind, dims = checked_float("lognormal", dtype), common_shape(shape, sigma)
    fit("lognormal", dims, sigma)
    return as_array(np.exp(standard_normal(checked_key("lognormal", key), dims, kind) * np.asarray(sigma).astype(kind)))


def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Lengths of vectors of three standard normal numbers."""
    kind, dims = checked_float("maxwell", dtype), checked_shape(shape)
    z = standard_normal(checked_key("maxwell", key), (*dims, 3), kind)
    return as_array(np.sqrt(np.sum(z * z, axis=-1)))


def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers whose density rises from `left` to `mode` and falls to `right`."""
    kind, dims = checked_float("triangular", dtype), common_shape(shape, left, mode, right)
    fit("triangular", dims, left, mode, right)
    low, top, high = (np.asarray(left).astype(kind), np.asarray(mode).astype(kind), np.asarray(right).astype(kind))
    u = unit(checked_key("triangular", key), dims, kind)
    rising = low + np.sqrt(u * (high - low) * (top - low))
    falling = high - np.sqrt((kind.type(1) - u) * (high - low) * (high - top))
    return as_array(np.where(u < (top - low) / (high - low), rising, falling))


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of the inverse Gaussian distribution of that mean (Michael, Schucany and Haas, "Generating random
    variates using transformations with multiple roots", 1976)."""
    kind, dims = checked_float("wald", dtype), common_shape(shape, mean)
    fit("wald", dims, mean)
    both, m = _split(checked_key("wald", key), 2), np.asarray(mean).astype(kind)
    v, z = standard_normal(both[0], dims, kind), unit(both[1], dims, kind)
    y = v * v
    x = m + m * m * y / kind.type(2) - m / kind.type(2) * np.sqrt(kind.type(4) * m * y + m * m * (y * y))
    return as_array(np.where(z <= m / (m + x), x, m * m / x))
