"""Uniform numbers, floats and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_float, checked_int, checked_key, checked_shape, fit
from .elements import fma, is_unit
from .keys import _split, random_bits


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Numbers in [minval, maxval)."""
    return as_array(between(checked_key("uniform", key), checked_shape(shape), checked_float("uniform", dtype), minval,
                            maxval))


def unit(key: Any, shape: Any, dtype: Any) -> Any:
    """Numbers in [0, 1): the high bits are the fraction of a number in [1, 2)."""
    word = np.dtype(f"u{dtype.itemsize}")
    found = random_bits(key, shape, word)
    found >>= word.type(8 * dtype.itemsize - np.finfo(dtype).nmant)
    found |= np.ones((), dtype).view(word)
    ones = found.view(dtype)
    ones -= dtype.type(1)
    return ones


def _traced_unit(key: Any, shape: Any, dtype: Any) -> Any:
    """The same: the high bits are an integer that the float holds exactly."""
    if dtype == np.float32:
        return (random_bits(key, shape, np.dtype(np.uint32)) >> np.uint32(9)).astype(np.float32) * np.float32(2**-23)
    return (random_bits(key, shape, np.dtype(np.uint64)) >> np.uint64(12)).astype(np.float64) * 2.0**-52


unit.__gradsmith_traced__ = _traced_unit  # type: ignore[attr-defined]


def between(key: Any, shape: Any, dtype: Any, minval: Any, maxval: Any) -> Any:
    """Numbers in [minval, maxval), as a multiple of the interval's length that is added with one rounding."""
    if is_unit(minval, maxval):
        return unit(key, shape, dtype)
    low, high = np.asarray(minval).astype(dtype), np.asarray(maxval).astype(dtype)
    fit("uniform", shape, low, high)
    return np.maximum(low, fma(unit(key, shape, dtype), high - low, low))


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Integers in [minval, maxval); minval where the interval is empty."""
    kind = checked_int("randint", dtype)
    return as_array(integers(checked_key("randint", key), checked_shape(shape), minval, maxval, kind))


def integers(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Any:
    """Two words a number, so that the remainder is close to uniform: offset = (high * 2**bits + low) mod span."""
    fit("randint", shape, minval, maxval)
    info = np.iinfo(dtype)
    if dtype.itemsize < 4:
        low = clipped(minval, info.min, info.max, np.dtype(np.int32))
        high = clipped(maxval, info.min, info.max + 1, np.dtype(np.int32))
        return integers(key, shape, low, high, np.dtype(np.int32)).astype(dtype)
    wanted = whole(maxval)
    low, high = clipped(minval, info.min, info.max, dtype), clipped(wanted, info.min, info.max, dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    one, half = word.type(1), word.type(1 << 4 * dtype.itemsize)
    both = _split(key, 2)
    high_bits, low_bits = random_bits(both[0], shape, word), random_bits(both[1], shape, word)
    with np.errstate(over="ignore"):
        span = np.where(high <= low, one, high.astype(word) - low.astype(word))
        if np.iinfo(wanted.dtype).max > info.max:
            span = np.where((wanted > info.max) & (high > low), span + one, span)
        is_all = span == 0                             # all values of the dtype: a remainder by 0 keeps the number
        divisor = np.where(is_all, one, span)
        factor = np.where(is_all, half, half % divisor)
        factor = np.where(is_all, factor * factor, (factor * factor) % divisor)
        offset = np.where(is_all, high_bits, high_bits % divisor) * factor
        offset = offset + np.where(is_all, low_bits, low_bits % divisor)
        offset = np.where(is_all, offset, offset % divisor)
        return (low.astype(word) + offset).astype(dtype).reshape(shape)


def whole(x: Any) -> Any:
    """x as an array of integers."""
    found = np.asarray(x)
    return found if found.dtype.kind in "iu" else found.astype(np.int64)


def clipped(x: Any, low: int, high: int, dtype: Any) -> Any:
    """x in an integer dtype, values out of its range at the range's ends."""
    found = whole(x)
    own = np.iinfo(found.dtype)
    if low <= own.min and own.max <= high:
        return found.astype(dtype)
    return found.clip(max(low, own.min), min(high, own.max)).astype(dtype)
