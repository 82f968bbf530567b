"""Checks of what users pass to `gradsmith.random`, in Python and in the code that is interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np

Shape = Any         # a sequence of ints


def _mark(public: Any, traced: Any) -> None:
    public.__gradsmith_traced__ = traced


def checked_key(name: str, key: Any) -> Any:
    """A key's two words.  TypeError for what is not one; ValueError for several."""
    if not all(hasattr(key, a) for a in ("ndim", "shape", "dtype")):
        raise TypeError(f"unexpected PRNG key type {type(key)}: {name} takes a key made by random.PRNGKey")
    if key.dtype != np.uint32 or key.ndim < 1 or key.shape[-1] != 2:
        raise TypeError(f"invalid PRNG key: {name} takes a uint32 array of shape (2,), not {key.dtype} of shape "
                        f"{tuple(key.shape)}")
    if key.ndim > 1:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {key.shape[:-1]} != ()")
    return np.asarray(key)


def _traced_key(name: str, key: Any) -> Any:
    words = np.asarray(key)
    if words.dtype != np.uint32 or words.ndim < 1 or words.shape[-1] != 2:
        raise TypeError(f"invalid PRNG key: {name} takes a uint32 array of shape (2,) made by random.PRNGKey")
    if words.ndim > 1:
        raise ValueError(f"{name} accepts a single key, but was given an array of keys: use vmap")
    return words


def checked_shape(shape: Shape) -> tuple[Any, ...]:
    """A shape as a tuple.  TypeError for anything but a sequence of ints; ValueError for negative ones."""
    try:
        found = tuple(d.__index__() for d in shape)
    except (TypeError, AttributeError):
        raise TypeError("Shapes must be 1D sequences of concrete values of integer type, got "
                        f"{shape!r}") from None
    if any(d < 0 for d in found):
        raise ValueError(f"negative dimensions are not allowed, got shape {found}")
    return found


def _traced_shape(shape: Any) -> Any:
    if not isinstance(shape, (tuple, list)):
        raise TypeError("Shapes must be 1D sequences of integers")
    for d in shape:
        if d < 0:
            raise ValueError("negative dimensions are not allowed")
    return tuple(shape)


def checked_float(name: str, dtype: Any) -> np.dtype[Any]:
    """float32 or float64, by default float32.  ValueError for others."""
    kind = np.dtype(np.float32 if dtype is None else dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype argument to `{name}` must be float32 or float64, got {kind}")
    return kind


def checked_int(name: str, dtype: Any) -> np.dtype[Any]:
    """An integer dtype, by default int32.  TypeError for others."""
    kind = np.dtype(np.int32 if dtype is None else dtype)
    if kind.kind not in "iu":
        raise TypeError(f"{name} only accepts integer dtypes, got {kind}")
    return kind


def checked_axis(axis: Any, rank: int) -> int:
    """An axis counted from the front.  ValueError where there is none."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def fit(name: str, shape: Any, *params: Any) -> None:
    """The parameters' shapes must stretch to `shape`.  ValueError where they do not."""
    result = np.broadcast_shapes(shape, *map(np.shape, params))
    if result != shape:
        raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of "
                         f"broadcasting the shapes must equal the shape argument, but got result {result} for shape "
                         f"argument {shape}.")


def _traced_fit(name: str, shape: Any, *params: Any) -> None:
    for p in params:
        if np.ndim(p) > len(shape):
            raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape argument")
        np.broadcast_to(p, shape)


def common_shape(shape: Any, *params: Any) -> Any:
    """`shape`, by default that of all parameters together."""
    return np.broadcast_shapes(*map(np.shape, params)) if shape is None else checked_shape(shape)


def _traced_common_shape(shape: Any, *params: Any) -> Any:
    if shape is not None:
        return _traced_shape(shape)
    if len(params) == 1:
        return np.shape(params[0])
    return np.shape(np.broadcast_arrays(*params)[0])


def parameter(x: Any) -> Any:
    """What a distribution is made of, or drawn from; Python's floats are float32, its ints int32."""
    return np.asarray(x) if hasattr(x, "dtype") else _narrow(np.asarray(x))


def _narrow(x: Any) -> Any:
    if x.dtype == np.float64:
        return x.astype(np.float32)
    return x.astype(np.int32) if x.dtype == np.int64 else x


_mark(checked_key, _traced_key)
_mark(checked_shape, _traced_shape)
_mark(fit, _traced_fit)
_mark(common_shape, _traced_common_shape)
