"""Distributions of whole numbers, drawn by rejection: all numbers of a call together, until the last is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_float, checked_int, checked_key, common_shape, fit, parameter
from .elements import gammaln
from .keys import _split
from .uniform import unit

SINGLE = np.dtype(np.float32)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of events where `lam` are expected.

    Below 10 by Knuth's product of uniform numbers, else by Hörmann's transformed rejection ("The transformed rejection
    method for generating Poisson random variables", 1993), computed in float32.
    """
    words, kind, dims = checked_key("poisson", key), checked_int("poisson", dtype), common_shape(shape, lam)
    fit("poisson", dims, lam)
    rate = np.broadcast_to(np.asarray(lam).astype(SINGLE), dims)
    is_small = np.isnan(rate) | (rate < 10)
    found = np.zeros(dims, SINGLE)
    if np.any(is_small):
        found = _knuth(words, np.where(is_small, rate, np.float32(0)))
    if not np.all(is_small):
        found = np.where(is_small, found, _hormann(words, np.where(is_small, np.float32(1e5), rate)))
    return as_array(np.where(rate == 0, np.float32(0), found).astype(kind))


def _knuth(key: Any, rate: Any) -> Any:
    count, log_product = np.zeros(rate.shape, SINGLE), np.zeros(rate.shape, SINGLE)
    while np.any(log_product > -rate):
        keys = _split(key, 2)
        key = keys[0]
        count = np.where(log_product > -rate, count + np.float32(1), count)
        with np.errstate(divide="ignore"):
            log_product = log_product + np.log(unit(keys[1], rate.shape, SINGLE))
    return count - np.float32(1)


def _hormann(key: Any, rate: Any) -> Any:
    one = np.float32
    log_rate = np.log(rate)
    b = one(0.931) + one(2.53) * np.sqrt(rate)
    a = one(-0.059) + one(0.02483) * b
    inverse = one(1.1239) + one(1.1328) / (b - one(3.4))
    ratio = one(0.9277) - one(3.6224) / (b - one(2))
    found, is_taken = -np.ones(rate.shape, SINGLE), np.zeros(rate.shape, np.bool_)
    while not np.all(is_taken):
        keys = _split(key, 3)
        key = keys[0]
        u = unit(keys[1], rate.shape, SINGLE) - one(0.5)
        v = unit(keys[2], rate.shape, SINGLE)
        shifted = one(0.5) - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((one(2) * a / shifted + b) * u + rate + one(0.43))
            s = np.log(v * inverse / (a / (shifted * shifted) + b))
            bound = -rate + k * log_rate - gammaln(k + one(1))
        is_out = (k < 0) | ((shifted < one(0.013)) & (v > shifted))
        accept = ((shifted >= one(0.07)) & (v <= ratio)) | (~is_out & (s <= bound))
        found = np.where(accept, k, found)
        is_taken = is_taken | accept
    return found


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers of successes in `n` trials of probability `p`, as floats; NaN for a negative n, or p outside [0, 1].

    Where n min(p, 1 - p) <= 10 by counting the failures between successes, else by Hörmann's transformed rejection
    ("The generation of binomial random variates", 1993).
    """
    words, kind = checked_key("binomial", key), checked_float("binomial", dtype)
    chance = parameter(p)
    work = checked_float("binomial", chance.dtype)
    dims = common_shape(shape, n, chance)
    fit("binomial", dims, n, chance)
    trials = np.broadcast_to(np.floor(np.asarray(n).astype(work)), dims)
    chance = np.broadcast_to(chance, dims)
    one = work.type
    is_low = chance < one(0.5)
    q = np.where(is_low, chance, one(1) - chance)
    is_bad = np.isnan(q) | (q < 0) | np.isnan(trials) | (trials < 0)
    q = np.where(is_bad, one(0.01), q)
    trials = np.where(is_bad, one(0), trials)
    is_few = trials * q <= one(10)
    found = np.zeros(dims, work)
    if np.any(is_few):
        found = _by_gaps(words, np.where(is_few, trials, one(0)), q)
    if not np.all(is_few):
        many, half = np.where(is_few, one(1e4), trials), np.where(is_few, one(0.5), q)
        found = np.where(is_few, found, _btrs(words, many, half))
    found = np.where(is_low, found, trials - found)
    return as_array(np.where(is_bad, one(np.nan), found).astype(kind))


def _by_gaps(key: Any, trials: Any, q: Any) -> Any:
    """Geometric numbers are the distances of successes."""
    one = q.dtype.type
    count, total, log_miss = np.zeros(q.shape, q.dtype), np.zeros(q.shape, q.dtype), np.log1p(-q)
    while np.any(total <= trials):
        keys = _split(key, 2)
        key = keys[1]
        count = np.where(total <= trials, count + one(1), count)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.ceil(np.log(unit(keys[0], q.shape, q.dtype)) / log_miss)
        total = total + gap
    return count - one(1)


def _btrs(key: Any, trials: Any, q: Any) -> Any:
    one = q.dtype.type
    deviation = np.sqrt(trials * q * (one(1) - q))
    b = one(1.15) + one(2.53) * deviation
    a = one(-0.0873) + one(0.0248) * b + one(0.01) * q
    c = trials * q + one(0.5)
    ratio = one(0.92) - one(4.2) / b
    odds = q / (one(1) - q)
    alpha = (one(2.83) + one(5.1) / b) * deviation
    mode = np.floor((trials + one(1)) * q)
    at_mode = (mode + one(0.5)) * np.log((mode + one(1)) / (odds * (trials - mode + one(1)))) + _tail(mode) + _tail(
        trials - mode)
    found, is_taken = -np.ones(q.shape, q.dtype), np.zeros(q.shape, np.bool_)
    while not np.all(is_taken):
        keys = _split(key, 3)
        key = keys[0]
        u, v = unit(keys[1], q.shape, q.dtype) - one(0.5), unit(keys[2], q.shape, q.dtype)
        shifted = one(0.5) - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((one(2) * a / shifted + b) * u + c)
            is_out = (k < 0) | (k > trials)
            inside = np.where(is_out, mode, k)
            rest = trials - inside + one(1)
            bound = at_mode + (trials + one(1)) * np.log((trials - mode + one(1)) / rest) + (
                inside + one(0.5)) * np.log(odds * rest / (inside + one(1))) - _tail(inside) - _tail(trials - inside)
            s = np.log(v * alpha / (a / (shifted * shifted) + b))
        accept = ((shifted >= one(0.07)) & (v <= ratio) & ~is_out) | (~is_out & (s <= bound))
        found = np.where(accept, k, found)
        is_taken = is_taken | accept
    return found


def _tail(k: Any) -> Any:
    """log(k!) - log(sqrt(2 pi)) - (k + 1/2) log(k + 1) + k + 1, what Stirling's formula leaves."""
    one = k.dtype.type
    m = k + one(1)
    small = gammaln(m) - one(0.9189385332046727) - (k + one(0.5)) * np.log(m) + m
    square = m * m
    series = (one(1 / 12) - (one(1 / 360) - one(1 / 1260) / square) / square) / m
    return np.where(k <= 9, small, series)
