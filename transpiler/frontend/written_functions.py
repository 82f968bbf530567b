"""NumPy's functions that write into an array, as plain Python over its assignments.

The frontend interprets these in the place of NumPy's own, so that they work on run-time values, through views and
under every transform.  They are NumPy's in values and exceptions, and run as they are (the tests compare them).
"""

from __future__ import annotations

from typing import Any

import numpy as np


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """np.put: elements of the flat array, values repeated as needed; of repeated places, the last counts."""
    indices, values = np.ravel(ind), np.ravel(v)
    if indices.size == 0 or values.size == 0:
        return
    if mode == "clip":
        indices = np.clip(indices, 0, a.size - 1)
    elif mode == "wrap":
        indices = indices % a.size
    elif mode != "raise":
        raise ValueError("clipmode must be one of 'clip', 'raise', or 'wrap'")
    a.flat[indices] = values


def set_repeated(flat: Any, key: Any, v: Any) -> None:
    """`x.flat[key] = v`, on the elements as a vector: values are repeated, or left over, as the places need."""
    values = np.ravel(v)
    if values.size == 0:
        return
    if values.size == 1:
        flat[key] = values[0]
    else:
        count = np.size(flat[key])
        flat[key] = values if values.size == count else values[np.arange(count) % values.size]


def putmask(a: Any, mask: Any, values: Any) -> None:
    """np.putmask: where the mask is set, the value at the same place; values repeated."""
    chosen, new = np.ravel(mask), np.ravel(values)
    if chosen.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    if new.size == 0:
        return
    new = new[0] if new.size == 1 else new[np.arange(a.size) % new.size]
    old = np.ravel(a)
    a[...] = np.reshape(np.where(chosen != 0, new, old), a.shape)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """np.place: the first value where the mask is set first, and so on; values repeated."""
    chosen, new = np.ravel(mask) != 0, np.ravel(vals)
    if chosen.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    if new.size == 0:
        if np.any(chosen):
            raise ValueError("Cannot insert from an empty array!")
        return
    order = np.cumsum(chosen) - 1
    arr[...] = np.reshape(np.where(chosen, new[order % new.size], np.ravel(arr)), arr.shape)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """np.put_along_axis."""
    if axis is None:
        if np.ndim(indices) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        arr.flat[indices] = np.broadcast_to(values, np.shape(indices))
        return
    if np.ndim(indices) != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    if not -arr.ndim <= axis < arr.ndim:
        raise np.exceptions.AxisError(axis, arr.ndim)
    key = []
    for k in range(arr.ndim):
        if k == axis % arr.ndim:
            key.append(indices)
        else:
            shape = [1] * arr.ndim
            shape[k] = arr.shape[k]
            key.append(np.arange(arr.shape[k]).reshape(tuple(shape)))
    arr[tuple(key)] = values


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """np.fill_diagonal: values repeated; `wrap`: the diagonal of a tall matrix begins anew below."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2:
        for size in a.shape[1:]:
            if size != a.shape[0]:
                raise ValueError("All dimensions of input must be of equal length")
    values = np.ravel(val)
    if values.size == 0:
        return
    if wrap and a.ndim == 2 and a.shape[0] > a.shape[1] + 1:
        a.flat[np.arange(0, a.size, a.shape[1] + 1)] = values
        return
    count = min(a.shape[0], a.shape[1])
    diagonal = np.arange(count)
    a[(diagonal,) * a.ndim] = values[0] if values.size == 1 else values[diagonal % values.size]


def copy_where(dst: Any, src: Any, where: Any) -> None:
    """np.copyto with a mask."""
    dst[...] = np.where(where, src, dst)


def nan_to_num(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """np.nan_to_num with copy=False."""
    x[...] = np.nan_to_num(x, True, nan, posinf, neginf)
    return x


def on_every_element(mapped: Any, function: Any, dtypes: Any, *args: Any) -> Any:
    """A function of numbers on arrays, broadcast; `mapped` is it on vectors.  dtypes: of each argument and the result,
    or None."""
    given = [np.asarray(x) if dtype is None else np.asarray(x).astype(dtype) for x, dtype in zip(args, dtypes)]
    arrays = np.broadcast_arrays(*given)
    if arrays[0].ndim == 0:
        result = np.asarray(function(*[x[()] for x in arrays]))[()]
    else:
        result = np.reshape(mapped(*[np.ravel(x) for x in arrays]), arrays[0].shape)
    return result if dtypes[-1] is None else result.astype(dtypes[-1])
