"""Whether arrays may share memory: asked on entry to a compiled function that writes to its arguments.

Both look at the first and the last byte alone, so interleaved views count as sharing.
"""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def apart(a: Any, b: Any) -> bool:
    """Whether all of one array lies before all of the other in memory."""
    if a.size == 0 or b.size == 0:
        return True
    first_a = last_a = np.int64(a.ctypes.data)
    for k in range(a.ndim):
        reach = (a.shape[k] - 1) * a.strides[k]
        first_a += min(reach, 0)
        last_a += max(reach, 0)
    first_b = last_b = np.int64(b.ctypes.data)
    for k in range(b.ndim):
        reach = (b.shape[k] - 1) * b.strides[k]
        first_b += min(reach, 0)
        last_b += max(reach, 0)
    return last_a + a.itemsize <= first_b or last_b + b.itemsize <= first_a


@njit(cache=True, nogil=True)
def distinct(a: Any) -> bool:
    """Whether no two elements of an array are one in memory, as they are in a broadcast array: each stride is longer
    than all that the shorter ones reach."""
    for k in range(a.ndim):
        reach = a.itemsize
        for j in range(a.ndim):
            if abs(a.strides[j]) < abs(a.strides[k]) or (abs(a.strides[j]) == abs(a.strides[k]) and j < k):
                reach += (a.shape[j] - 1) * abs(a.strides[j])
        if a.shape[k] > 1 and abs(a.strides[k]) < reach:
            return False
    return True
