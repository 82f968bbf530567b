"""Arrays of one call that share memory, where the function writes to one of them.

What NumPy would do depends on how they share it.  The same array passed twice is one array in the trace, too; arrays
that share memory in any other way are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types

from .kernels.guard import Miss
from .transpiler.errors import error

EFFORT = 10_000         # candidates that NumPy may try to find a shared element; beyond, arrays count as sharing


class Raised(Exception):
    """Carries what compiled code with effects raised: it has begun its work, which is not to be done again."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def share_memory(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether an element of one is an element of the other."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=EFFORT)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def is_same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether they are one array, as far as can be told from inside of a function."""
    return (a.__array_interface__["data"][0] == b.__array_interface__["data"][0] and a.shape == b.shape
            and a.strides == b.strides and a.dtype == b.dtype)


def overlaps_itself(a: np.ndarray[Any, Any]) -> bool:
    """Whether two indices may be one element in memory, as in a broadcast array."""
    reach = a.itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(a.strides, a.shape) if size > 1):
        if stride < reach:
            return True
        reach = stride * (size - 1) + reach
    return False


def same_arrays(written: Sequence[int], values: Sequence[Any], names: Sequence[str], leaves: int) -> dict[int, int]:
    """Which values are the same array as an earlier one, of those that share memory with a written one; the first
    `leaves` are arguments, the rest is captured.  ValueError: they share memory otherwise."""
    arrays = [k for k, v in enumerate(values) if isinstance(v, np.ndarray) and v.ndim and v.size]
    found: dict[int, int] = {}
    for w in written:
        if w not in arrays:
            continue
        if overlaps_itself(values[w]):
            raise error("E127", f"{names[w]} has elements that share memory, and the function writes to it", None,
                        kind=ValueError, help="pass a copy")
        group = [w]
        for k in arrays:
            if k == w or not share_memory(values[w], values[k]):
                continue
            if not is_same(values[w], values[k]) or k >= leaves or w >= leaves:
                raise error("E127", f"{names[w]}, which the function writes to, shares memory with {names[k]}", None,
                            kind=ValueError, help="pass a copy of one of them")
            group.append(k)
        found.update((k, min(group)) for k in group if k != min(group))
    return found


def guarded(entry: Callable[..., Any], written: Sequence[int], signature: Sequence[Any]) -> Callable[..., Any]:
    """The entry (of arguments of these Numba types) for calls whose arrays share no memory with those that it writes
    to; Miss for others."""
    arrays = [k for k, type in enumerate(signature) if isinstance(type, types.Array) and type.ndim]
    pairs = list({tuple(sorted((w, k))): (w, k) for w in written for k in arrays if k != w}.values())
    loose = [w for w in written if signature[w].layout == "A"]
    may_share = np.may_share_memory

    def call(*flat: Any) -> Any:
        for a, b in pairs:
            if may_share(flat[a], flat[b]) and share_memory(flat[a], flat[b]):
                raise Miss
        for k in loose:
            if overlaps_itself(flat[k]):
                raise Miss
        try:
            return entry(*flat)
        except TypeError as problem:
            raise Raised(problem) from None

    return call
