"""Random numbers from explicit keys, as JAX has them: the same key gives the same numbers on every machine.

Streams are those of JAX's Threefry-2x32 in its classic form (`jax_threefry_partitionable=False`): bits, integers and
uniform numbers in float32 are equal to JAX's bit by bit, other distributions up to the last digits of `log` and
`erfinv`.  Dtypes are JAX's defaults, float32 and int32, unless `dtype` says otherwise; arrays that are passed in
(probabilities, logits) keep theirs.

A key is an array of two uint32 words.  Use a key once: `key, subkey = split(key)`.

    key = random.PRNGKey(0)
    x = random.normal(key, (10,))

Inside a transpiled function these are refused for now: draw outside and pass the numbers in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import threefry
from .array import Array, as_array
from .normal_quantile import erf, erfinv

__all__ = ["PRNGKey", "bernoulli", "bits", "categorical", "choice", "exponential", "fold_in", "gumbel", "key",
           "laplace", "normal", "permutation", "randint", "split", "truncated_normal", "uniform"]

Shape = Sequence[int]
Plain = npt.NDArray[Any]


# ---------------------------------------------------------------------------------------------------------------
# keys


def PRNGKey(seed: Any) -> Array:
    """The key of an integer seed.  TypeError for other seeds; OverflowError beyond 64 bits."""
    return key(seed)


def key(seed: Any) -> Array:
    """The key of an integer seed, in the same form as `PRNGKey` gives."""
    if np.ndim(seed):
        raise TypeError(f"PRNGKey accepts a scalar seed, but was given an array of shape {np.shape(seed)} != ()")
    number = np.asarray(np.int64(seed) if isinstance(seed, int) else seed)
    if number.dtype.kind not in "iu":
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    return as_array(threefry.seed(int(number), max(32, 8 * number.dtype.itemsize)))


def split(key: Any, num: int | Shape = 2) -> Array:
    """New keys: an array of shape (num, 2), or (*num, 2)."""
    shape = _shape(num if isinstance(num, Sequence) else (num,))
    return as_array(threefry.split(_key("split", key), math.prod(shape)).reshape(*shape, 2))


def fold_in(key: Any, data: Any) -> Array:
    """A new key out of a key and an integer (of which 32 bits count)."""
    if np.ndim(data):
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != ()")
    return as_array(threefry.fold_in(_key("fold_in", key), int(data)))


def _key(name: str, key: Any) -> threefry.Words:
    """A key's two words."""
    if not all(hasattr(key, a) for a in ("ndim", "shape", "dtype")):
        raise TypeError(f"unexpected PRNG key type {type(key)}: {name} takes a key made by random.PRNGKey")
    if key.dtype != np.uint32 or key.ndim < 1 or key.shape[-1] != 2:
        raise TypeError(f"invalid PRNG key: {name} takes a uint32 array of shape (2,), not {key.dtype} of shape "
                        f"{tuple(key.shape)}")
    if key.ndim > 1:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {key.shape[:-1]} != ()")
    return np.asarray(key)


# ---------------------------------------------------------------------------------------------------------------
# uniform numbers


def bits(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Unsigned integers with uniformly distributed bits."""
    kind = np.dtype(np.uint32 if dtype is None else dtype)
    if kind.kind != "u":
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {kind}")
    return as_array(_bits(_key("bits", key), _shape(shape), kind))


def uniform(key: Any, shape: Shape = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Numbers in [minval, maxval)."""
    return as_array(_uniform(_key("uniform", key), _shape(shape), _float("uniform", dtype), minval, maxval))


def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = None) -> Array:
    """Integers in [minval, maxval); minval where the interval is empty."""
    kind = np.dtype(np.int32 if dtype is None else dtype)
    if kind.kind not in "iu":
        raise TypeError(f"randint only accepts integer dtypes, got {kind}")
    return as_array(_randint(_key("randint", key), _shape(shape), minval, maxval, kind))


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        found = tuple(d.__index__() for d in shape)
    except (TypeError, AttributeError):
        raise TypeError("Shapes must be 1D sequences of concrete values of integer type, got "
                        f"{shape!r}") from None
    if any(d < 0 for d in found):
        raise ValueError(f"negative dimensions are not allowed, got shape {found}")
    return found


def _float(name: str, dtype: Any) -> np.dtype[Any]:
    kind = np.dtype(np.float32 if dtype is None else dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype argument to `{name}` must be float32 or float64, got {kind}")
    return kind


def _fits(name: str, shape: tuple[int, ...], *params: Any) -> None:
    """The parameters' shapes must stretch to `shape`."""
    result = np.broadcast_shapes(shape, *map(np.shape, params))
    if result != shape:
        raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of "
                         f"broadcasting the shapes must equal the shape argument, but got result {result} for shape "
                         f"argument {shape}.")


def _bits(key: threefry.Words, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plain:
    return threefry.random_bits(key, 8 * dtype.itemsize, math.prod(shape)).reshape(shape)


def _uniform(key: threefry.Words, shape: tuple[int, ...], dtype: np.dtype[Any], minval: Any = 0.0,
             maxval: Any = 1.0) -> Plain:
    """The high bits are the fraction of a number in [1, 2)."""
    low, high = np.asarray(minval, dtype), np.asarray(maxval, dtype)
    _fits("uniform", shape, low, high)
    word = np.dtype(f"u{dtype.itemsize}")
    found = _bits(key, shape, word)
    found >>= word.type(8 * dtype.itemsize - np.finfo(dtype).nmant)
    found |= np.ones((), dtype).view(word)
    unit = found.view(dtype)
    unit -= dtype.type(1)
    if low.ndim == 0 and high.ndim == 0 and low == 0 and high == 1:
        return unit
    span = high - low
    if dtype == np.float32:          # one rounding, as XLA's fused multiply-add has
        scaled = (unit * span.astype(np.float64) + low).astype(np.float32)
    else:
        scaled = unit * span + low
    return np.maximum(low, scaled)


def _randint(key: threefry.Words, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: np.dtype[Any]) -> Plain:
    """Two words a number, so that the remainder is close to uniform: offset = (high * 2**bits + low) mod span."""
    _fits("randint", shape, minval, maxval)
    if dtype.itemsize < 4:
        info = np.iinfo(dtype)
        low, high = _integers(minval).clip(info.min, info.max), _integers(maxval).clip(info.min, info.max + 1)
        return _randint(key, shape, low, high, np.dtype(np.int32)).astype(dtype)
    info = np.iinfo(dtype)
    wanted = _integers(maxval)
    beyond = wanted > info.max
    low, high = _clipped(_integers(minval), dtype), _clipped(wanted, dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    first, second = threefry.split(key, 2)
    high_bits, low_bits = _bits(first, shape, word), _bits(second, shape, word)
    with np.errstate(over="ignore"):
        span = np.where(high <= low, word.type(1), high.astype(word) - low.astype(word))
        span = np.where(beyond & (high > low), span + word.type(1), span)
        whole = span == 0                              # all values of the dtype: a remainder by 0 keeps the number
        divisor = np.where(whole, word.type(1), span)
        multiplier = np.where(whole, word.type(1 << 4 * dtype.itemsize), word.type(1 << 4 * dtype.itemsize) % divisor)
        multiplier = np.where(whole, multiplier * multiplier, (multiplier * multiplier) % divisor)
        offset = np.where(whole, high_bits, high_bits % divisor) * multiplier
        offset = offset + np.where(whole, low_bits, low_bits % divisor)
        offset = np.where(whole, offset, offset % divisor)
        return np.asarray((low.astype(word) + offset).astype(dtype)).reshape(shape)


def _integers(x: Any) -> Plain:
    found = np.asarray(x)
    return found if found.dtype.kind in "iu" else found.astype(np.int64)


def _clipped(x: Plain, dtype: np.dtype[Any]) -> Plain:
    own, info = np.iinfo(x.dtype), np.iinfo(dtype)
    return x.clip(max(info.min, own.min), min(info.max, own.max)).astype(dtype)


# ---------------------------------------------------------------------------------------------------------------
# distributions


def normal(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Standard normal numbers; of a complex dtype, with variance 1/2 in each part."""
    words, dims = _key("normal", key), _shape(shape)
    kind = np.dtype(np.float32 if dtype is None else dtype)
    if kind.kind != "c":
        return as_array(_normal(words, dims, _float("normal", kind)))
    parts = [_normal(k, dims, np.zeros((), kind).real.dtype) for k in threefry.split(words, 2)]
    return as_array((parts[0] + np.asarray(1j, kind) * parts[1]) / np.asarray(math.sqrt(2), kind))


def _normal(key: threefry.Words, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plain:
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    return dtype.type(math.sqrt(2)) * erfinv(_uniform(key, shape, dtype, low, 1.0))


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Normal numbers given that they lie between `lower` and `upper`."""
    words, kind = _key("truncated_normal", key), _float("truncated_normal", dtype)
    dims = np.broadcast_shapes(np.shape(lower), np.shape(upper)) if shape is None else _shape(shape)
    _fits("truncated_normal", dims, lower, upper)
    root = kind.type(math.sqrt(2))
    low, high = np.asarray(lower, kind), np.asarray(upper, kind)
    inside = root * erfinv(_uniform(words, dims, kind, erf(low / root), erf(high / root)))
    return as_array(np.clip(inside, np.nextafter(low, kind.type(np.inf)), np.nextafter(high, kind.type(-np.inf))))


def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None, mode: str = "low") -> Array:
    """True with probability p.  mode: "high" draws twice as many bits and is exact for small p."""
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    words, chance = _key("bernoulli", key), _parameter(p)
    if chance.dtype.kind != "f":
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {chance.dtype}.")
    dims = chance.shape if shape is None else _shape(shape)
    _fits("bernoulli", dims, chance)
    kind = _float("bernoulli", chance.dtype)
    if mode == "low":
        return as_array(_uniform(words, dims, kind) < chance)
    coarse, fine = _uniform(words, (2, *dims), kind)
    return as_array(fine * kind.type(2.0 ** -np.finfo(kind).nmant) < chance - coarse)


def exponential(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Exponentially distributed numbers of mean 1."""
    return as_array(-np.log1p(-_uniform(_key("exponential", key), _shape(shape), _float("exponential", dtype))))


def laplace(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Numbers of density exp(-|x|) / 2."""
    kind = _float("laplace", dtype)
    low = kind.type(-1.0 + np.finfo(kind).epsneg)
    u = _uniform(_key("laplace", key), _shape(shape), kind, low, 1.0)
    return as_array(np.sign(u) * np.log1p(-np.abs(u)))


def gumbel(key: Any, shape: Shape = (), dtype: Any = None, mode: str | None = None) -> Array:
    """Numbers of the standard Gumbel distribution.  mode: "high" draws twice as many bits, for a longer tail."""
    return as_array(_gumbel(_key("gumbel", key), _shape(shape), _float("gumbel", dtype), mode))


def _gumbel(key: threefry.Words, shape: tuple[int, ...], dtype: np.dtype[Any], mode: str | None) -> Plain:
    info = np.finfo(dtype)
    if mode in (None, "low"):
        return -np.log(-np.log(_uniform(key, shape, dtype, info.tiny, 1.0)))
    if mode != "high":
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    high, low = _uniform(key, (2, *shape), dtype)
    x = np.where(high >= 0.5, high, high + dtype.type(2.0 ** -info.nmant) * low + info.tiny)
    return -np.log(-np.log1p(-x))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None, replace: bool = True,
                mode: str | None = None) -> Array:
    """Indices along `axis`, drawn with the unnormalised log-probabilities `logits`.

    shape: that of the result, which ends with that of `logits` without `axis`.  replace=False draws different
    indices along the axes that `shape` has in front.
    """
    words, given = _key("categorical", key), _parameter(logits)
    if given.ndim == 0:
        raise ValueError("categorical takes logits of at least one dimension")
    axis = _axis(axis, given.ndim)
    batch = given.shape[:axis] + given.shape[axis + 1:]
    dims = batch if shape is None else _shape(shape)
    _fits("categorical", dims, np.empty(batch))
    kind = _float("categorical", given.dtype)
    prefix, rest = dims[:len(dims) - len(batch)], dims[len(dims) - len(batch):]
    if replace:
        noise = _gumbel(words, (*prefix, *rest[:axis], given.shape[axis], *rest[axis:]), kind, mode)
        return as_array(np.argmax(noise + given, axis=axis - given.ndim).astype(np.int32))
    count = math.prod(prefix)
    if count > given.shape[axis]:
        raise ValueError(f"Number of samples without replacement ({count}) cannot exceed number of categories "
                         f"({given.shape[axis]}).")
    noisy = np.moveaxis(given + _gumbel(words, given.shape, kind, mode), axis, -1)
    return as_array(np.moveaxis(_largest(noisy, count), -1, 0).reshape(dims))


def _largest(x: Plain, count: int) -> Plain:
    """Indices of the largest entries along the last axis, largest first."""
    return np.argsort(-x, axis=-1, kind="stable")[..., :count].astype(np.int32)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """`x` (an int: `arange(x)`) in random order along `axis`; independent: each line in an order of its own."""
    words, given = _key("permutation", key), _parameter(x)
    axis = _axis(axis, given.ndim or 1)
    if given.ndim == 0:
        if given.dtype.kind not in "iu":
            raise TypeError("x must be an integer or at least 1-dimensional")
        return as_array(_shuffled(words, np.arange(int(given), dtype=np.int32), 0))
    if independent or given.ndim == 1:
        return as_array(_shuffled(words, given, axis))
    return as_array(np.take(given, _shuffled(words, np.arange(given.shape[axis]), 0), axis))


def _shuffled(key: threefry.Words, x: Plain, axis: int) -> Plain:
    """Sorted by random keys, so often that ties among keys do not matter (the power 3 of the size)."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(threefry.WORD))
    for _ in range(rounds):
        key, drawn = threefry.split(key, 2)
        order = np.argsort(_bits(drawn, x.shape, np.dtype(np.uint32)), axis=axis, kind="stable")
        x = np.take_along_axis(x, order, axis)
    return x


def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0,
           mode: str | None = None) -> Array:
    """Entries of `a` along `axis` (an int: of `arange(a)`), drawn with probabilities `p`, by default equal ones."""
    words = _key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of random.choice must be a sequence, got {shape}")
    given, dims = _parameter(a), _shape(shape)
    axis = _axis(axis, given.ndim) if given.ndim else 0
    inputs, draws = int(given) if given.ndim == 0 else given.shape[axis], math.prod(dims)
    if draws == 0:
        return as_array(np.zeros(dims, given.dtype))
    if inputs <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > inputs:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size {inputs}) when "
                         "'replace=False'")
    if p is None and not replace:
        order = permutation(words, inputs if given.ndim == 0 else given, axis)
        found = order[(slice(None),) * axis + (slice(draws),)]
    else:
        drawn = _randint(words, dims, 0, inputs, np.dtype(np.int32)) if p is None else _weighted(
            words, _parameter(p), inputs, dims, replace, mode)
        found = drawn if given.ndim == 0 else np.take(given, drawn, axis)
    return as_array(np.reshape(found, dims if given.ndim == 0 else
                               (*given.shape[:axis], *dims, *given.shape[axis + 1:])))


def _weighted(key: threefry.Words, p: Plain, inputs: int, shape: tuple[int, ...], replace: bool,
              mode: str | None) -> Plain:
    if p.shape != (inputs,):
        raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                         f"{p.shape} and a.shape[axis] is {inputs}.")
    p = p if p.dtype.kind == "f" else p.astype(np.float32)
    kind = _float("choice", p.dtype)
    if replace:
        total = np.cumsum(p, dtype=kind)
        return np.searchsorted(total, total[-1] * (1 - _uniform(key, shape, kind))).astype(np.int32)
    with np.errstate(divide="ignore"):
        weights = np.log(p)
    return _largest(_gumbel(key, (inputs,), kind, mode) + weights, math.prod(shape))


def _parameter(x: Any) -> Plain:
    """What a distribution is made of, or drawn from; Python's floats are float32, its ints int32."""
    return np.asarray(x) if hasattr(x, "dtype") else _narrow(np.asarray(x))


def _narrow(x: Plain) -> Plain:
    return x.astype({np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}.get(x.dtype, x.dtype))


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def _refused(function: Callable[..., Any]) -> None:
    function.__gradsmith_refusal__ = (  # type: ignore[attr-defined]
        f"random.{function.__name__} inside a transpiled function is not supported yet",
        "draw the numbers outside and pass them in as an argument")


for _name in __all__:
    _refused(globals()[_name])
