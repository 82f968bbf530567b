"""Keys, and the bits that they give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_key, checked_shape
from .elements import folded, words

WORD = 0xFFFFFFFF


def PRNGKey(seed: Any) -> Any:
    """The key of an integer seed.  TypeError for other seeds; OverflowError beyond 64 bits."""
    return key(seed)


def key(seed: Any) -> Any:
    """The key of an integer seed, in the same form as `PRNGKey` gives."""
    if np.ndim(seed):
        raise TypeError(f"PRNGKey accepts a scalar seed, but was given an array of shape {np.shape(seed)} != ()")
    number = np.asarray(np.int64(seed) if isinstance(seed, int) else seed)
    if number.dtype.kind not in "iu":
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    value = int(number) & ((1 << max(32, 8 * number.dtype.itemsize)) - 1)
    return as_array(np.array([value >> 32, value & WORD], np.uint32))


def _traced_key(seed: Any) -> Any:
    number = np.asarray(seed)
    if number.ndim:
        raise TypeError("PRNGKey accepts a scalar seed: use vmap for several")
    if number.dtype.kind not in "iu":
        raise TypeError("PRNG key seed must be an integer")
    if number.dtype.itemsize < 8:
        return np.stack([np.zeros((), np.uint32), number.astype(np.uint32)])
    wide = number.astype(np.uint64)
    return np.stack([(wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)])


def split(key: Any, num: Any = 2) -> Any:
    """New keys: an array of shape (num, 2), or (*num, 2)."""
    shape = checked_shape(num if isinstance(num, (tuple, list)) else (num,))
    return as_array(_split(checked_key("split", key), math.prod(shape)).reshape((*shape, 2)))


def _split(key: Any, count: Any) -> Any:
    return words(key, 2 * count).reshape((count, 2))


def fold_in(key: Any, data: Any) -> Any:
    """A new key out of a key and an integer (of which 32 bits count).  TypeError for several integers."""
    if np.ndim(data):
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != ()")
    word = np.uint32(int(data) & WORD)
    return as_array(folded(checked_key("fold_in", key), word))


def _traced_fold_in(key: Any, data: Any) -> Any:
    if np.ndim(data):
        raise TypeError("fold_in accepts a scalar: use vmap for several")
    return folded(checked_key("fold_in", key), np.asarray(data).astype(np.uint32))


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Unsigned integers with uniformly distributed bits.  ValueError for dtypes other than unsigned ints."""
    kind = np.dtype(np.uint32 if dtype is None else dtype)
    if kind.kind != "u":
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {kind}")
    return as_array(random_bits(checked_key("bits", key), checked_shape(shape), kind))


def random_bits(key: Any, shape: Any, dtype: Any) -> Any:
    """Unsigned integers of 8, 16, 32 or 64 bits, every one of them as likely."""
    count, width = math.prod(shape), 8 * dtype.itemsize
    if width == 64:
        stream = words(key, 2 * count)
        return ((stream[:count].astype(np.uint64) << np.uint64(32)) | stream[count:]).reshape(shape)
    if width == 32:
        return words(key, count).reshape(shape)
    parts = 32 // width                                # the low bits of a word come first
    stream = words(key, (count + parts - 1) // parts)
    shifts = np.arange(parts, dtype=np.uint32) * np.uint32(width)
    return (stream[:, None] >> shifts).astype(dtype).reshape(-1)[:count].reshape(shape)


def key_data(keys: Any) -> Any:
    """The words of keys: keys are their words here."""
    return as_array(np.asarray(keys))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Any:
    """Keys of their words, uint32 of shape (..., 2).  TypeError for other arrays; ValueError for another generator."""
    if impl not in (None, "threefry2x32"):
        raise ValueError(f"the only generator is threefry2x32, not {impl!r}")
    words_ = np.asarray(key_bits_array)
    if words_.dtype != np.uint32 or words_.ndim < 1 or words_.shape[-1] != 2:
        raise TypeError("invalid key data: expected uint32 of shape (..., 2)")
    return as_array(words_)


def clone(key: Any) -> Any:
    """The key itself: reuse of keys is not checked."""
    return key


key.__gradsmith_traced__ = _traced_key  # type: ignore[attr-defined]
fold_in.__gradsmith_traced__ = _traced_fold_in  # type: ignore[attr-defined]
