"""NumPy's functions that pick elements by index: take, take_along_axis, choose, select, and where they put them.

Indices are wrapped and checked here, as the operations demand: a negative one counts from the end, and one that is out
of range raises IndexError when the function runs, or at once where it is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.dims import product
from ..ir.nodes import Const, Value
from .base import RuleError
from .families import broadcast_shapes, broadcast_to
from .options import refuse_out
from .spelling import as_value, axis_of, broadcast_together, cast, promote, spelled


def integer_indices(x: Any, what: str = "indices") -> Value:
    """An index array, as int64."""
    value = as_value(x)
    if isinstance(x, (list, tuple)) and not len(x):
        return const(0, value.type.with_dtype("int64"))
    if value.type.kind not in "iu":
        raise RuleError(f"{what} must be integers: cannot cast {value.dtype} to int64 according to the rule 'safe'",
                        kind=TypeError, code="E309")
    return cast(value, "int64")


def wrapped(i: Value, size: Any, axis: int, mode: Any = "raise") -> Value:
    """The indices in range and non-negative.  mode: "raise" an IndexError, "wrap" around, or "clip" to the ends."""
    low, high = const(0, i.type), broadcast_to(size_value(size), i.shape)
    if mode == "wrap":
        _check_nonempty(i, size)
        return ops.remainder(i, high)
    if mode == "clip":
        _check_nonempty(i, size)
        return ops.maximum(ops.minimum(i, high - const(1, i.type)), low)
    if mode != "raise":
        raise RuleError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})",
                        kind=ValueError, code="E208")
    if isinstance(i, Const) and isinstance(size, int):
        return const(_known(int(i.value), size, axis, i), i.type)
    inside = ops.logical_and(i >= ops.negative(high), i < high)
    check(ops.all(inside, axes=tuple(range(i.rank))) if i.rank else inside, "IndexError",
          f"index is out of bounds for axis {axis} with size {size}")
    return ops.select(i < low, i + high, i)


def _known(i: int, size: int, axis: int, indices: Value) -> int:
    if product(indices.shape) == 0:
        return 0
    if not -size <= i < size:
        raise RuleError(f"index {i} is out of bounds for axis {axis} with size {size}", kind=IndexError, code="E305")
    return i % size


def _check_nonempty(i: Value, size: Any) -> None:
    if isinstance(size, int) and size == 0 and product(i.shape) != 0:
        raise RuleError("cannot do a non-empty take from an empty axes.", kind=IndexError, code="E305")


@spelled(np.take, np.ndarray.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Value:
    """The elements of a at `indices` along `axis` (of all of it, flattened, without one)."""
    refuse_out(out, "take")
    x, i = as_value(a), integer_indices(indices)
    if axis is None:
        x, axis = ops.reshape(x, shape=(product(x.shape),)), 0
    at = axis_of(axis, max(x.rank, 1))
    if not x.rank:
        x = ops.reshape(x, shape=(1,))
    found = ops.gather(x, wrapped(i, x.shape[at], at, mode), axes=(at,))        # axes: of i, then the rest of x
    order = (*range(i.rank, i.rank + at), *range(i.rank), *range(i.rank + at, found.rank))
    return ops.transpose(found, axes=order)


@spelled(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Value:
    """For each lane along `axis`, its elements at the indices of the same lane."""
    x, i = as_value(arr), integer_indices(indices, "`indices`")
    if axis is None:
        x, axis = ops.reshape(x, shape=(product(x.shape),)), 0
    if x.rank != i.rank:
        raise RuleError("`indices` and `arr` must have the same number of dimensions", code="E302")
    at = axis_of(axis, x.rank)
    shape = tuple(i.shape[k] if k == at else broadcast_shapes(x.shape[k:k + 1], i.shape[k:k + 1])[0]
                  for k in range(x.rank))
    places = broadcast_to(wrapped(i, x.shape[at], at), shape)
    x = broadcast_to(x, tuple(x.shape[k] if k == at else d for k, d in enumerate(shape)))
    own = [places if k == at else ops.iota(shape=shape, axis=k, dtype="int64") for k in range(x.rank)]
    return ops.gather(x, *own, axes=tuple(range(x.rank)))


@spelled(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Value, ...]:
    """The index along each axis of the element at a flat index, as for `x[np.unravel_index(x.argmax(), x.shape)]`."""
    left = integer_indices(indices)
    sizes = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    if order != "C" or not sizes:
        raise RuleError("np.unravel_index needs a shape, and order 'C'", code="E302")
    count = broadcast_to(size_value(product(sizes)), left.shape)
    fits = ops.all(ops.logical_and(left >= 0, ops.less(left, count)), axes=tuple(range(left.rank)))
    check(fits, "ValueError", f"index is out of bounds for array with size {product(sizes)}")
    found = []
    for size in reversed(sizes[1:]):
        along = broadcast_to(size_value(size), left.shape)
        found.append(ops.remainder(left, along))
        left = ops.floor_divide(left, along)
    return (left, *reversed(found))


@spelled(np.choose, np.ndarray.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Value:
    """For each element of a, the element at its place of the choice with that number."""
    refuse_out(out, "choose")
    number = integer_indices(a, "choose's first argument")
    if not isinstance(choices, (list, tuple)):
        stacked = as_value(choices)
        if not stacked.rank:
            raise RuleError("choose needs a sequence of arrays", kind=TypeError, code="E208")
        return _choose_row(number, stacked, mode)
    if not choices:
        raise RuleError("choose needs at least one array to choose from", code="E302")
    options = promote(*choices)
    number, *options = broadcast_together(number, *options)
    number = _in_choices(number, len(options), mode)
    found = options[-1]
    for k in range(len(options) - 2, -1, -1):
        found = ops.select(ops.equal(number, const(k, number.type)), options[k], found)
    return found


def _in_choices(number: Value, count: Any, mode: Any) -> Value:
    """As `wrapped`, but here a negative number is an error too."""
    if mode != "raise":
        return wrapped(number, count, 0, mode)
    high = broadcast_to(size_value(count), number.shape)
    inside = ops.logical_and(number >= const(0, number.type), number < high)
    check(ops.all(inside, axes=tuple(range(number.rank))) if number.rank else inside, "ValueError",
          "invalid entry in choice array")
    return number


def _choose_row(number: Value, rows: Value, mode: Any) -> Value:
    shape = broadcast_shapes(number.shape, rows.shape[1:])
    number = _in_choices(broadcast_to(number, shape), rows.shape[0], mode)
    rows = ops.broadcast(rows, shape=(rows.shape[0], *shape), axes=(0, *range(len(shape) + 2 - rows.rank,
                                                                            len(shape) + 1)))
    own = [ops.iota(shape=shape, axis=k, dtype="int64") for k in range(len(shape))]
    return ops.gather(rows, number, *own, axes=tuple(range(rows.rank)))


@spelled(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Value:
    """For each element the first choice whose condition holds, else `default`."""
    if not isinstance(condlist, (list, tuple)) or not isinstance(choicelist, (list, tuple)):
        raise RuleError("select takes lists of conditions and of choices", kind=TypeError, code="E208")
    if len(condlist) != len(choicelist):
        raise RuleError("list of cases must be same length as list of conditions", kind=ValueError, code="E208")
    if not condlist:
        raise RuleError("select with an empty condition list is not possible", kind=ValueError, code="E208")
    conditions = [as_value(c) for c in condlist]
    for k, c in enumerate(conditions):
        if c.dtype != "bool":
            raise RuleError(f"invalid entry {k} in condlist: should be boolean ndarray", kind=TypeError, code="E309")
    *choices, otherwise = promote(*choicelist, default)
    shape = broadcast_shapes(*(v.shape for v in (*conditions, *choices, otherwise)))
    found = broadcast_to(otherwise, shape)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        found = ops.select(broadcast_to(condition, shape), broadcast_to(choice, shape), found)
    return found
