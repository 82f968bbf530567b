"""`x.at[index].set(values)` and its kin: changed copies, as JAX spells them.

These classes are what the run time's arrays give, and what the frontend interprets when transpiled code says `.at`;
so they keep to plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MODES = (None, "promise_in_bounds", "clip", "drop", "fill")


class At:
    """`x.at`: waits for an index."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Place:
        return Place(self.array, index)


class Place:
    """`x.at[index]`.  Every method returns a changed copy of x, of x's dtype.

    Indices that occur repeatedly add up (`add`), multiply up (`multiply`) and so on.  TypeError for values that x's
    dtype cannot hold.

    mode: what becomes of ints outside of the array.  None and "promise_in_bounds": IndexError; "clip": the first or
    last place is meant; "drop" and "fill": nothing is written there, and `get` gives its `fill_value` (NaN, the least
    signed or greatest unsigned int, or True).  wrap_negative_indices: False where negative ints are outside, too.
    `indices_are_sorted` and `unique_indices` promise something to other systems and are not needed here.
    """

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None,
            fill_value: Any = None, wrap_negative_indices: bool = True) -> Any:
        """x[index], a copy."""
        missing = filling(self.array.dtype) if fill_value is None else fill_value
        array, index, _ = opened(self.array, self.index, mode, wrap_negative_indices, missing)
        return array[index].copy()

    def set(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with `values` at the index; of several values for one place, the last counts."""
        require_fitting(self.array, values)
        new, index, spare = opened(self.array, self.index, mode, wrap_negative_indices)
        new[index] = values
        return closed(new, spare)

    def add(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with `values` added at the index."""
        return updated(np.add, self, values, mode, wrap_negative_indices)

    def subtract(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with `values` subtracted at the index."""
        return updated(np.subtract, self, values, mode, wrap_negative_indices)

    def multiply(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with what is at the index multiplied by `values`."""
        return updated(np.multiply, self, values, mode, wrap_negative_indices)

    mul = multiply

    def divide(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
               mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with what is at the index divided by `values`."""
        return updated(np.divide, self, values, mode, wrap_negative_indices)

    def power(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
              mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with what is at the index raised to the power of `values`."""
        return updated(np.power, self, values, mode, wrap_negative_indices)

    def min(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with the smaller ones of `values` and of what is at the index."""
        return updated(np.minimum, self, values, mode, wrap_negative_indices)

    def max(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with the larger ones of `values` and of what is at the index."""
        return updated(np.maximum, self, values, mode, wrap_negative_indices)

    def apply(self, function: Callable[[Any], Any], *, indices_are_sorted: bool = False, unique_indices: bool = False,
              mode: str | None = None, wrap_negative_indices: bool = True) -> Any:
        """x with `function`, which works element by element, of what is at the index; of its own result where the place
        occurs again."""
        new, index, spare = opened(self.array, self.index, mode, wrap_negative_indices)
        count = np.zeros(new.shape, np.int64)
        np.add.at(count, index, 1)
        new[index] = function(new[index])
        for done in range(1, int(np.max(count, initial=0))):
            new[index] = np.where(count[index] > done, function(new[index]), new[index])
        return closed(new, spare)


def updated(ufunc: Any, place: Place, values: Any, mode: str | None, wraps: bool) -> Any:
    """The array with `ufunc.at` done to it."""
    require_fitting(place.array, values)
    new, index, spare = opened(place.array, place.index, mode, wraps)
    ufunc.at(new, index, values)
    return closed(new, spare)


def require_fitting(array: Any, values: Any) -> None:
    """TypeError where the array's dtype cannot hold the values."""
    own = array.dtype
    if type(values) in (bool, int, float, complex):
        common = np.result_type(own, type(values)(0))
    else:
        common = np.result_type(own, np.asarray(values).dtype)
    if not np.can_cast(common, own, "same_kind"):
        raise TypeError(f"values of {common} do not fit into an array of {own}")


def opened(array: Any, index: Any, mode: str | None, wraps: bool = True,
           missing: Any = 1) -> tuple[Any, Any, int | None]:
    """A copy of the array, and the index with ints that are all in range.

    Where those outside are to mean nothing, the copy has one more place along an axis, which they mean instead and
    where `missing` is; that axis is the third result.
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is none of 'promise_in_bounds', 'clip', 'drop', 'fill'")
    parts = index if isinstance(index, tuple) else (index,)
    axes = axes_of(parts, array.ndim)
    ints = [k for k in range(len(parts)) if is_ints(parts[k])]
    if not ints or (mode in (None, "promise_in_bounds") and wraps):
        return array.copy(), index, None
    found = [np.asarray(part) if isinstance(part, list) else part for part in parts]
    if wraps:
        for k in ints:
            found[k] = np.where(found[k] < 0, found[k] + array.shape[axes[k]], found[k])
    if mode == "clip":
        for k in ints:
            found[k] = np.clip(found[k], 0, array.shape[axes[k]] - 1)
        return array.copy(), tuple(found), None
    inside = True
    for k in ints:
        inside = inside & (found[k] >= 0) & (found[k] < array.shape[axes[k]])
    if mode in (None, "promise_in_bounds"):
        if not np.all(inside):
            raise IndexError("index out of bounds")
        return array.copy(), tuple(found), None
    spare = axes[ints[0]]
    for k in ints:
        found[k] = np.where(inside, found[k], array.shape[spare] if k == ints[0] else 0)
    shape = tuple(1 if k == spare else array.shape[k] for k in range(array.ndim))
    return np.concatenate([array, np.full(shape, missing, array.dtype)], axis=spare), tuple(found), spare


def closed(array: Any, spare: int | None) -> Any:
    """The array without the place that stood for those outside."""
    if spare is None:
        return array
    return array[tuple(slice(0, array.shape[k] - (1 if k == spare else 0)) for k in range(array.ndim))].copy()


def axes_of(parts: tuple[Any, ...], rank: int) -> list[int]:
    """The first axis that each part of an index is for."""
    taken = [axes_taken(part) for part in parts]
    axes, axis = [], 0
    for k in range(len(parts)):
        axes.append(axis)
        axis += rank - sum(taken) if parts[k] is Ellipsis else taken[k]
    return axes


def axes_taken(part: Any) -> int:
    """How many axes a part of an index is for; an ellipsis is for what is left."""
    if part is None or part is Ellipsis:
        return 0
    return int(np.ndim(part)) if not isinstance(part, slice) and np.asarray(part).dtype == bool else 1


def is_ints(part: Any) -> bool:
    """Whether a part of an index is an int or ints."""
    return not (part is None or part is Ellipsis or isinstance(part, slice)) and np.asarray(part).dtype.kind in "iu"


def filling(dtype: Any) -> Any:
    """What stands for an element that is not there, as in JAX."""
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return np.nan
