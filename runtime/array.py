"""`Array`: NumPy's array with the few methods more that JAX's has.

It is what `gradsmith.numpy`, `gradsmith.random` and `device_put` give, and what compiled functions return when they
are called with one.  Elements and results of rank 0 are Arrays too, so that `.block_until_ready()` works on whatever
came out.  An Array of rank 1 or more is mutable, as NumPy's is; one of rank 0 stands for a number: `total += x` binds
the name anew and never changes it for other holders.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .device import CPU, Device
from .transpiler.frontend.updates import At

AXIS_WIDTH = 75            # of a line of `repr`


class Array(np.ndarray):  # type: ignore[type-arg]
    """An ndarray with `block_until_ready`, `device`, `devices` and `.at[...]`."""

    # Numba is to ask for the type of Arrays, which is not that of ndarrays (see `numba_array`).
    __numba_array_subtype_dispatch__ = True

    def block_until_ready(self) -> Array:
        """The array itself: results are ready when a call returns."""
        return self

    @property
    def device(self) -> Device:  # type: ignore[override]
        """Where the elements are."""
        return CPU

    def devices(self) -> set[Device]:
        """The devices that hold the elements: one."""
        return {CPU}

    @property
    def at(self) -> At:
        """`x.at[i].set(v)` and its kin: a changed copy, x stays as it is."""
        return At(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return as_array(found) if isinstance(found, np.generic) else found

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return as_array(array)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions on Arrays give Arrays."""
        return converted(super().__array_function__(func, types, args, kwargs))

    def __repr__(self) -> str:
        if self.dtype.kind not in "biufc":
            return super().__repr__()
        prefix = f"{type(self).__name__}("
        body = np.array2string(np.asarray(self), separator=", ", prefix=prefix, suffix=",", max_line_width=AXIS_WIDTH)
        if self.size == 0:
            body = f"[], shape={self.shape}" if self.shape != (0,) else "[]"
        tail = f"dtype={self.dtype})"
        last = len(body) - body.rfind("\n") - 1 + (0 if "\n" in body else len(prefix))
        space = " " if last + len(tail) + 2 <= AXIS_WIDTH else "\n" + " " * len(prefix)
        return f"{prefix}{body},{space}{tail}"

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __round__(self, digits: int | None = None) -> Any:
        """As of NumPy's scalars where there is one element: an int without `digits`."""
        return converted(round(self.item(), digits) if digits is None and self.ndim == 0 else self.round(digits or 0))

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError(f"unhashable type: {type(self).__name__!r}")


def _number_or_in_place(name: str, base: type) -> Callable[[Any, Any], Any]:
    in_place = getattr(base, name)

    def update(self: Any, other: Any) -> Any:
        return NotImplemented if self.ndim == 0 else in_place(self, other)

    update.__name__ = name
    return update


def bind_numbers_anew(cls: type, base: type) -> None:
    """`x += y` of the class changes arrays in place, as its base does, but gives a new one where x is of rank 0."""
    for op in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
        setattr(cls, f"__i{op}__", _number_or_in_place(f"__i{op}__", base))


bind_numbers_anew(Array, np.ndarray)


def _giving_arrays(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)

    @functools.wraps(method)
    def call(self: Array, *args: Any, **kwargs: Any) -> Any:
        return converted(method(self, *args, **kwargs))

    return call


# Methods that are not made of ufuncs give NumPy's scalars otherwise.
for _name in ("argmax", "argmin", "choose", "dot", "round", "searchsorted", "take", "trace"):
    setattr(Array, _name, _giving_arrays(_name))


def as_array(x: Any) -> Array:
    """A NumPy array or scalar (or anything NumPy makes one of) as an Array, without a copy of the elements."""
    return x if type(x) is Array else np.asarray(x).view(Array)


def _same(x: Any) -> Any:
    return x


as_array.__gradsmith_traced__ = _same  # type: ignore[attr-defined]


def captured(x: Any) -> Any:
    """A captured value as compiled code takes it: arrays of rank 0 are numbers there."""
    if hasattr(type(x), "__gradsmith_array__"):
        x = x.__gradsmith_array__()
    if not isinstance(x, np.ndarray):
        return x
    return plain(x) if x.ndim else np.asarray(x)[()]


def plain(x: Any) -> Any:
    """An Array as NumPy's own array, the same elements; anything else as it is."""
    return x.view(np.ndarray) if type(x) is Array else x


def converted(result: Any) -> Any:
    """What a NumPy function returned, with Arrays in it: alone or in tuples, lists and dicts."""
    kind = type(result)
    if kind is np.ndarray or isinstance(result, np.generic):
        return as_array(result) if result.dtype.kind in "biufc" else result
    if kind in (tuple, list):
        return kind(map(converted, result))
    if isinstance(result, tuple) and hasattr(kind, "_make"):
        return kind._make(map(converted, result))  # type: ignore[attr-defined]
    return result
