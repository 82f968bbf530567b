"""Stable merge sort along an axis, for code that Numba compiles: compiled once per element type and rank, then cached.

NaN comes last, as in NumPy.  Where Numba is disabled the functions are NumPy's own.  The element type is any that
compares: bool, ints and floats.  Runs of 16 are sorted by insertion, then merged.
"""

from typing import Any

import numpy as np
from numba import config, njit

RUN = 16


def sort(x: Any, axis: int) -> Any:
    """A sorted copy of `x` along `axis`."""
    return np.sort(x, axis, kind="stable")


def argsort(x: Any, axis: int) -> Any:
    """The order, int64, that sorts `x` along `axis`; equal elements keep theirs."""
    return np.argsort(x, axis, kind="stable")


@njit(cache=True, nogil=True, inline="never")
def _comes_after(a: Any, b: Any) -> Any:
    """Whether a must stand after b."""
    return a > b or (a != a and b == b)


@njit(cache=True, nogil=True)
def _sort_lane(lane: Any, scratch: Any) -> None:
    """Sort `lane` in place; `scratch` is as long."""
    n = lane.size
    for low in range(0, n, RUN):
        for i in range(low + 1, min(low + RUN, n)):
            element = lane[i]
            j = i - 1
            while j >= low and _comes_after(lane[j], element):
                lane[j + 1] = lane[j]
                j -= 1
            lane[j + 1] = element
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle = min(low + width, n)
            high = min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not _comes_after(lane[i], lane[j])):
                    scratch[k] = lane[i]
                    i += 1
                else:
                    scratch[k] = lane[j]
                    j += 1
        for k in range(n):
            lane[k] = scratch[k]
        width *= 2


@njit(cache=True, nogil=True)
def _argsort_lane(lane: Any, order: Any, scratch: Any) -> None:
    """Put into `order` the indices that sort `lane`; `scratch` is as long, of the same type as `order`."""
    n = lane.size
    for i in range(n):
        order[i] = i
    for low in range(0, n, RUN):
        for i in range(low + 1, min(low + RUN, n)):
            j = i - 1
            while j >= low and _comes_after(lane[order[j]], lane[i]):
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = i
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle = min(low + width, n)
            high = min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not _comes_after(lane[order[i]], lane[order[j]])):
                    scratch[k] = order[i]
                    i += 1
                else:
                    scratch[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = scratch[k]
        width *= 2


@njit(cache=True, nogil=True)
def _sort_all(flat: Any, length: int, stride: int) -> None:
    """Sort every lane of a flat C-contiguous array: `length` elements that are `stride` apart."""
    lane = np.empty(length, flat.dtype)
    scratch = np.empty(length, flat.dtype)
    for block in range(0, flat.size, length * stride):
        for first in range(block, block + stride):
            for k in range(length):
                lane[k] = flat[first + k * stride]
            _sort_lane(lane, scratch)
            for k in range(length):
                flat[first + k * stride] = lane[k]


@njit(cache=True, nogil=True)
def _argsort_all(flat: Any, result: Any, length: int, stride: int) -> None:
    """As `_sort_all`, with the order of each lane put into `result`."""
    lane = np.empty(length, flat.dtype)
    order = np.empty(length, np.int64)
    scratch = np.empty(length, np.int64)
    for block in range(0, flat.size, length * stride):
        for first in range(block, block + stride):
            for k in range(length):
                lane[k] = flat[first + k * stride]
            _argsort_lane(lane, order, scratch)
            for k in range(length):
                result[first + k * stride] = order[k]


@njit(cache=True, nogil=True)
def _stride(x: Any, axis: int) -> Any:
    """Distance of neighbours along `axis` in a C-contiguous array of the shape of `x`."""
    stride = 1
    for k in range(axis + 1, x.ndim):
        stride *= x.shape[k]
    return stride


@njit(cache=True, nogil=True)
def _sorted(x: Any, axis: int) -> Any:
    result = x.copy()
    if result.size > 0:
        _sort_all(result.reshape(result.size), x.shape[axis], _stride(x, axis))
    return result


@njit(cache=True, nogil=True)
def _order(x: Any, axis: int) -> Any:
    result = np.empty(x.shape, np.int64)
    if x.size > 0:
        _argsort_all(x.copy().reshape(x.size), result.reshape(x.size), x.shape[axis], _stride(x, axis))
    return result


if not config.DISABLE_JIT:  # type: ignore[attr-defined]
    sort, argsort = _sorted, _order
