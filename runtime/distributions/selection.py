"""Random orders, choices and integers of given probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_axis, checked_float, checked_int, checked_key, checked_shape, common_shape, fit, parameter
from .continuous import standard_gumbel
from .keys import _split, random_bits
from .uniform import integers, unit


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Any:
    """True with probability p.  mode: "high" draws twice as many bits and is exact for small p."""
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    words, chance = checked_key("bernoulli", key), parameter(p)
    if chance.dtype.kind != "f":
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {chance.dtype}.")
    dims = common_shape(shape, chance)
    fit("bernoulli", dims, chance)
    kind = checked_float("bernoulli", chance.dtype)
    if mode == "low":
        return as_array(unit(words, dims, kind) < chance)
    both = unit(words, (2, *dims), kind)
    return as_array(both[1] * kind.type(2.0 ** -np.finfo(kind).nmant) < chance - both[0])


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """-1 and 1, each with probability 1/2."""
    kind = np.dtype(np.int32 if dtype is None else dtype)
    signs = unit(checked_key("rademacher", key), checked_shape(shape), np.dtype(np.float32)) < np.float32(0.5)
    return as_array(kind.type(2) * signs.astype(kind) - kind.type(1))


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The number of trials up to the first success, of probability p."""
    chance, kind = parameter(p), checked_int("geometric", dtype)
    dims = common_shape(shape, chance)
    fit("geometric", dims, chance)
    u = unit(checked_key("geometric", key), dims, checked_float("geometric", chance.dtype))
    u = np.where(u == 0, chance.dtype.type(1), u)
    return as_array((np.floor(np.log(u) / np.log1p(-chance)) + chance.dtype.type(1)).astype(kind))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True,
                mode: Any = None) -> Any:
    """Indices along `axis`, drawn with the unnormalised log-probabilities `logits`.

    shape: that of the result, which ends with that of `logits` without `axis`.  replace=False draws different
    indices along the axes that `shape` has in front.
    """
    words, given = checked_key("categorical", key), parameter(logits)
    if given.ndim == 0:
        raise ValueError("categorical takes logits of at least one dimension")
    axis = checked_axis(axis, given.ndim)
    batch = given.shape[:axis] + given.shape[axis + 1:]
    dims = batch if shape is None else checked_shape(shape)
    fit("categorical", dims, np.zeros(batch))
    kind = checked_float("categorical", given.dtype)
    prefix, rest = dims[:len(dims) - len(batch)], dims[len(dims) - len(batch):]
    if replace:
        noise = standard_gumbel(words, (*prefix, *rest[:axis], given.shape[axis], *rest[axis:]), kind, mode)
        return as_array(np.argmax(noise + given, axis=axis - given.ndim).astype(np.int32))
    count = math.prod(prefix)
    if count > given.shape[axis]:
        raise ValueError(f"Number of samples without replacement ({count}) cannot exceed number of categories "
                         f"({given.shape[axis]}).")
    noisy = np.moveaxis(given + standard_gumbel(words, given.shape, kind, mode), axis, -1)
    return as_array(np.moveaxis(_largest(noisy, count), -1, 0).reshape(dims))


def _largest(x: Any, count: Any) -> Any:
    """Indices of the largest entries along the last axis, largest first."""
    return np.argsort(-x, axis=-1, kind="stable")[..., :count].astype(np.int32)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """`x` (an int: `arange(x)`) in random order along `axis`; independent: each line in an order of its own."""
    words = checked_key("permutation", key)
    if np.ndim(x) == 0:
        if np.asarray(x).dtype.kind not in "iu":
            raise TypeError("x must be an integer or at least 1-dimensional")
        return as_array(shuffled(words, np.arange(int(x), dtype=np.int32), 0))
    given = parameter(x)
    axis = checked_axis(axis, given.ndim)
    if independent or given.ndim == 1:
        return as_array(shuffled(words, given, axis))
    return as_array(np.take(given, shuffled(words, np.arange(given.shape[axis]), 0), axis))


def rounds_of(size: Any) -> Any:
    """How often to sort so that ties among keys do not matter: the third power of the size in words, rounded up."""
    if size <= 1625:
        return 1 if size > 1 else 0
    return 2 if size <= 2642245 else 3


def shuffled(key: Any, x: Any, axis: int) -> Any:
    """Sorted by random keys."""
    for _ in range(rounds_of(x.size)):
        both = _split(key, 2)
        key = both[0]
        order = np.argsort(random_bits(both[1], x.shape, np.dtype(np.uint32)), axis=axis, kind="stable")
        x = np.take_along_axis(x, order, axis)
    return x


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0,
           mode: Any = None) -> Any:
    """Entries of `a` along `axis` (an int: of `arange(a)`), drawn with probabilities `p`, by default equal ones."""
    words = checked_key("choice", key)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"shape argument of random.choice must be a sequence, got {shape}")
    dims, is_range = checked_shape(shape), np.ndim(a) == 0
    draws = math.prod(dims)
    if is_range:
        if np.asarray(a).dtype.kind not in "iu":
            raise TypeError("a must be an integer or at least 1-dimensional")
        inputs = int(a)
        found = _drawn(words, a, inputs, dims, draws, replace, p, mode)
        return as_array(found.reshape(dims))
    given = parameter(a)
    axis = checked_axis(axis, given.ndim)
    places = _drawn(words, given.shape[axis], given.shape[axis], dims, draws, replace, p, mode)
    found = np.take(given, places.reshape((draws,)), axis)
    return as_array(found.reshape((*given.shape[:axis], *dims, *given.shape[axis + 1:])))


def _drawn(key: Any, a: Any, inputs: Any, shape: Any, draws: Any, replace: bool, p: Any, mode: Any) -> Any:
    """int32 indices below `inputs`."""
    if draws == 0:
        return np.zeros(shape, np.int32)
    if inputs <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > inputs:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size {inputs}) when "
                         "'replace=False'")
    if p is not None:
        return _weighted(key, parameter(p), inputs, shape, draws, replace, mode)
    if replace:
        return integers(key, shape, 0, inputs, np.dtype(np.int32))
    return shuffled(key, np.arange(inputs, dtype=np.int32), 0)[:draws]


def _weighted(key: Any, p: Any, inputs: Any, shape: Any, draws: Any, replace: bool, mode: Any) -> Any:
    if p.ndim != 1 or p.shape[0] != inputs:
        raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                         f"{p.shape} and a.shape[axis] is {inputs}.")
    p = p if p.dtype.kind == "f" else p.astype(np.float32)
    kind = checked_float("choice", p.dtype)
    if replace:
        total = np.cumsum(p, dtype=kind)
        return np.searchsorted(total, total[-1] * (kind.type(1) - unit(key, shape, kind))).astype(np.int32)
    with np.errstate(divide="ignore"):
        weights = np.log(p)
    return _largest(standard_gumbel(key, (inputs,), kind, mode) + weights, draws)
