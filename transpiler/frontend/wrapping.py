"""Ints and arrays of ints in brackets: negative ones count from the end, what is out of range raises.

Those known while transpiling are wrapped here; those known at run time by a `select`, and checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.dims import is_dim, symbols_of
from ..ir.nodes import Const, Value
from ..ir.types import I64
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast, static_array
from .ranges import surely_nonnegative

if TYPE_CHECKING:
    from .interpreter import Interpreter


def scalar_place(it: Interpreter, part: Any, axis: int, size: Any) -> Value:
    """An int index as an in-range, non-negative int64 value."""
    known = part if is_dim(part) else None
    held = part.value if isinstance(part, Weak) else part
    if isinstance(held, Const):
        known = int(held.value)
    if known is not None:
        negative = it.assumptions.is_negative(known)
        if negative is not None:
            outside = _is_out_of_range(it, known, size, negative)
            if outside:
                shown = it.assumptions.example(known)
                raise _out_of_bounds(it, known if shown is None else shown, axis, size)
            place = known + size if negative else known
            if outside is None and not surely_nonnegative(it, place if negative else size - 1 - place):
                check(ops.greater_equal(size_value(place), const(0, I64)) if negative else
                      ops.less(size_value(place), size_value(size)), "IndexError", _outside(axis, size))
            return size_value(place)
    value = cast(as_value(part), "int64")
    dim = it.as_dim(part)
    if dim is not None and it.ranges.keys().isdisjoint(symbols_of(dim)):
        dim = None                          # not of a loop: one check costs less than code for each sign
    if dim is not None and surely_nonnegative(it, dim):
        if not surely_nonnegative(it, size - 1 - dim):
            check(ops.less(value, size_value(size)), "IndexError", _outside(axis, size))
        return value
    if dim is not None and surely_nonnegative(it, -1 - dim):
        if not surely_nonnegative(it, dim + size):
            check(ops.greater_equal(value, ops.negative(size_value(size))), "IndexError", _outside(axis, size))
        return ops.add(value, size_value(size))
    _check_in_range(value, axis, size)
    return _wrapped(value, size)


def _outside(axis: int, size: Any) -> str:
    return f"index out of bounds for axis {axis} with size {size}"


def _is_out_of_range(it: Interpreter, number: Any, size: Any, negative: bool) -> bool | None:
    """Whether an int known while transpiling is no index of an axis; decided by this call's size where need be.  None
    where the size is known only when the function runs."""
    if negative:
        return it.assumptions.is_negative(size + number)
    inside = it.assumptions.is_negative(number - size)
    return None if inside is None else not inside


def array_places(it: Interpreter, array: Any, axis: int, size: Any) -> Value:
    """An array of ints as in-range, non-negative int64 values."""
    if isinstance(array, np.ndarray):
        if array.size:
            low, high = int(array.min()), int(array.max())
            outside = {number: _is_out_of_range(it, number, size, number < 0) for number in (low, high)}
            for number, is_outside in outside.items():
                if is_outside:
                    raise _out_of_bounds(it, number, axis, size)
            if None in outside.values():
                _check_in_range(static_array(array.astype(np.int64)), axis, size)
            if low >= 0 or isinstance(size, int):
                array = np.where(array < 0, array + (size if isinstance(size, int) else 0), array)
                return static_array(array.astype(np.int64)) if array.ndim else const(int(array), I64)
        else:
            return Const(0, I64.with_shape(array.shape))
        return _wrapped(static_array(array.astype(np.int64)), size)
    value = cast(array.read(), "int64")
    _check_in_range(value, axis, size)
    return _wrapped(value, size)


def _wrapped(value: Value, size: Any) -> Value:
    zero = const(0, value.type)
    length = size_value(size)
    if value.rank:
        length = ops.broadcast(length, shape=value.shape, axes=()) if not isinstance(length, Const) else Const(
            length.value, value.type)
    return ops.select(ops.less(value, zero), ops.add(value, length), value)


def _check_in_range(value: Value, axis: int, size: Any) -> None:
    """Check -size <= value < size when the function runs."""
    length = size_value(size)
    if value.rank:
        everything = tuple(range(value.rank))
        # Over nothing there is nothing to check; max and min have no value there.
        whole = Const(length.value, value.type) if isinstance(length, Const) else ops.broadcast(
            length, shape=value.shape, axes=())
        fits = ops.all(ops.logical_and(ops.less(value, whole), ops.greater_equal(value, ops.negative(whole))),
                       axes=everything)
    else:
        fits = ops.logical_and(ops.less(value, length), ops.greater_equal(value, ops.negative(length)))
    check(fits, "IndexError", _outside(axis, size))


def _out_of_bounds(it: Interpreter, number: Any, axis: int, size: Any) -> RuleError:
    shown = it.assumptions.example(size)
    return RuleError(f"index {number} is out of bounds for axis {axis} with size {size if shown is None else shown}",
                     kind=IndexError, code="E305")
