"""`x.at[index].set(values)` and its kin: changed copies, as JAX spells them.

These classes are what the run time's arrays give, and what the frontend interprets when transpiled code says `.at`;
so they keep to plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class At:
    """`x.at`: waits for an index."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Place:
        return Place(self.array, index)


class Place:
    """`x.at[index]`.  Every method returns a changed copy of x, of x's dtype.

    Indices that occur repeatedly add up (`add`), multiply up (`multiply`) and so on.  IndexError for indices outside
    of the array; TypeError for values that x's dtype cannot hold.  `indices_are_sorted` and `unique_indices` promise
    something to other systems and are not needed here.
    """

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Any:
        """x[index], a copy."""
        check_mode(mode)
        return self.array[self.index].copy()

    def set(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None) -> Any:
        """x with `values` at the index; of several values for one place, the last counts."""
        new = copied(self.array, values, mode)
        new[self.index] = values
        return new

    def add(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None) -> Any:
        """x with `values` added at the index."""
        new = copied(self.array, values, mode)
        np.add.at(new, self.index, values)
        return new

    def subtract(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | None = None) -> Any:
        """x with `values` subtracted at the index."""
        new = copied(self.array, values, mode)
        np.subtract.at(new, self.index, values)
        return new

    def multiply(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | None = None) -> Any:
        """x with what is at the index multiplied by `values`."""
        new = copied(self.array, values, mode)
        np.multiply.at(new, self.index, values)
        return new

    mul = multiply

    def divide(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
               mode: str | None = None) -> Any:
        """x with what is at the index divided by `values`."""
        new = copied(self.array, values, mode)
        np.divide.at(new, self.index, values)
        return new

    def power(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
              mode: str | None = None) -> Any:
        """x with what is at the index raised to the power of `values`."""
        new = copied(self.array, values, mode)
        np.power.at(new, self.index, values)
        return new

    def min(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None) -> Any:
        """x with the smaller ones of `values` and of what is at the index."""
        new = copied(self.array, values, mode)
        np.minimum.at(new, self.index, values)
        return new

    def max(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | None = None) -> Any:
        """x with the larger ones of `values` and of what is at the index."""
        new = copied(self.array, values, mode)
        np.maximum.at(new, self.index, values)
        return new

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """x with `function` of what is at the index."""
        return self.set(function(self.array[self.index]))


def check_mode(mode: str | None) -> None:
    """Out of bounds is out of bounds."""
    if mode is not None and mode != "promise_in_bounds":
        raise ValueError(f"mode={mode!r} is not supported: indices outside of the array are always an IndexError")


def copied(array: Any, values: Any, mode: str | None) -> Any:
    """A copy to write `values` into."""
    check_mode(mode)
    own = array.dtype
    if type(values) in (bool, int, float, complex):
        common = np.result_type(own, type(values)(0))
    else:
        common = np.result_type(own, np.asarray(values).dtype)
    if not np.can_cast(common, own, "same_kind"):
        raise TypeError(f"values of {common} do not fit into an array of {own}")
    return array.copy()
