"""NumPy's ways of joining arrays and of splitting them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, size_value
from ..ir.dims import DimExpr, maximum, minimum, product
from ..ir.nodes import Value
from .base import RuleError
from .numpy_shape import at_least
from .options import dtype_name, is_given, refuse_out
from .shape import part, slot
from .spelling import as_value, axis_of, cast, is_value, promote, spelled, static_int

# ---------------------------------------------------------------------------------------------------------------
# joining


def _arrays(arrays: Any, dtype: Any, casting: Any = "same_kind") -> list[Value]:
    """The arrays of a sequence, or the rows of an array, in their common dtype."""
    if is_value(arrays):
        arrays = rows_of(arrays)
    items = list(arrays)
    if not items:
        raise RuleError("need at least one array to concatenate")
    values = promote(*[as_value(a) for a in items])
    if not is_given(dtype):
        return values
    wanted = dtype_name(dtype)
    for v in values:
        if not np.can_cast(v.dtype, wanted, casting):
            raise RuleError(f"Cannot cast array data from dtype('{v.dtype}') to dtype('{wanted}') according to the "
                            f"rule '{casting}'", kind=TypeError, code="E302")
    return [cast(v, wanted) for v in values]


def rows_of(x: Value) -> list[Value]:
    """The arrays along the first axis, whose size must be known."""
    if x.rank == 0:
        raise RuleError("iteration over a 0-d array", kind=TypeError)
    if not isinstance(x.shape[0], int):
        raise RuleError(f"a sequence of arrays is needed, not an array of {x.shape[0]} rows", kind=TypeError,
                        code="E303", help="use np.reshape")
    return [slot(x, 0, k) for k in range(x.shape[0])]


@spelled(np.concatenate)
def numpy_concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None,
                      casting: Any = "same_kind") -> Value:
    refuse_out(out, "concatenate")
    values = _arrays(arrays, dtype, casting)
    if axis is None:
        values, axis = [ops.reshape(v, shape=(product(v.shape),)) for v in values], 0
    if any(v.rank == 0 for v in values):
        raise RuleError("zero-dimensional arrays cannot be concatenated", code="E301")
    for number, v in enumerate(values):
        if v.rank != values[0].rank:
            raise RuleError("all the input array dimensions except for the concatenation axis must match exactly, but "
                            f"the array at index 0 has {values[0].rank} dimension(s) and the array at index {number} "
                            f"has {v.rank} dimension(s)", code="E301")
    return ops.concatenate(*values, axis=axis_of(axis, values[0].rank))


if np.concat is not np.concatenate:
    spelled(np.concat)(numpy_concatenate)


@spelled(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Value:
    return numpy_concatenate((arr, values), axis)


@spelled(np.stack)
def numpy_stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Value:
    refuse_out(out, "stack")
    values = _arrays(arrays, dtype, casting)
    place = axis_of(axis, values[0].rank + 1)
    order = [*range(1, values[0].rank + 1)]
    order.insert(place, 0)
    return ops.transpose(ops.stack(*values), axes=tuple(order))


@spelled(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Value:
    return numpy_concatenate([at_least(2, v) for v in _arrays(tup, dtype, casting)], 0)


@spelled(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Value:
    values = [at_least(1, v) for v in _arrays(tup, dtype, casting)]
    return numpy_concatenate(values, 0 if values[0].rank == 1 else 1)


@spelled(np.dstack)
def dstack(tup: Any) -> Value:
    return numpy_concatenate([at_least(3, v) for v in _arrays(tup, None)], 2)


@spelled(np.column_stack)
def column_stack(tup: Any) -> Value:
    columns = [ops.reshape(v, shape=(product(v.shape), 1)) if v.rank < 2 else v for v in _arrays(tup, None)]
    return numpy_concatenate(columns, 1)


@spelled(np.block)
def block(arrays: Any) -> Value:
    """Nested lists of blocks: the innermost are joined along the last axis, and so on outwards."""
    def depth(item: Any) -> int:
        return 1 + max((depth(i) for i in item), default=0) if isinstance(item, list) else 0

    levels = depth(arrays)

    def leaves(item: Any) -> list[Value]:
        return [leaf for i in item for leaf in leaves(i)] if isinstance(item, list) else [as_value(item)]

    rank = max(levels, *(leaf.rank for leaf in leaves(arrays)))

    def join(item: Any, level: int) -> Value:
        if not isinstance(item, list):
            x = as_value(item)
            return ops.reshape(x, shape=(*(1,) * (rank - x.rank), *x.shape))
        if not item:
            raise RuleError("List at arrays cannot be empty")
        return numpy_concatenate([join(i, level - 1) for i in item], -level)

    return join(arrays, levels)


@spelled(np.meshgrid)
def meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> tuple[Value, ...]:
    if indexing not in ("xy", "ij"):
        raise RuleError("Valid values for `indexing` are 'xy' and 'ij'.")
    lines = [ops.reshape(v, shape=(product(v.shape),)) for v in map(as_value, xi)]
    order = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[0], order[1] = 1, 0
    shape: list[Any] = [1] * len(lines)
    for v, axis in zip(lines, order):
        shape[axis] = v.shape[0]
    return tuple(ops.broadcast(v, shape=tuple(d if a == axis or not sparse else 1 for a, d in enumerate(shape)),
                               axes=(axis,)) for v, axis in zip(lines, order))


# ---------------------------------------------------------------------------------------------------------------
# splitting


def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Value, ...]:
    """The arrays along an axis, whose size must be known."""
    value = as_value(x)
    return tuple(rows_of(ops.transpose(value, axes=_first(axis_of(axis, value.rank), value.rank))))


def _first(axis: int, rank: int) -> tuple[int, ...]:
    return (axis, *(k for k in range(rank) if k != axis))


if hasattr(np, "unstack"):      # since NumPy 2.1
    spelled(np.unstack)(unstack)


def _split(ary: Any, sections: Any, axis: Any, exact: bool) -> list[Value]:
    x = as_value(ary)
    along = axis_of(axis, x.rank)
    length = x.shape[along]
    if isinstance(sections, np.ndarray):
        sections = sections.tolist()
    if isinstance(sections, (tuple, list)):
        places = [0]
        cuts = [c if isinstance(c, DimExpr) else static_int(c, "a place to split") for c in sections]
        places = [0, *(_clipped(c, length) for c in cuts), length]
        return [part(x, along, a, maximum(b - a, 0)) for a, b in pairwise(places)]
    count = static_int(sections, "number of sections")
    if count <= 0:
        raise RuleError("number sections must be larger than 0.")
    if exact:
        if isinstance(length, int) and length % count:
            raise RuleError("array split does not result in an equal division")
        if not isinstance(length, int):
            check(ops.equal(ops.remainder(size_value(length), count), 0), "ValueError",
                  "array split does not result in an equal division")
        return [part(x, along, length // count * k, length // count) for k in range(count)]
    small, extra = length // count, length % count

    def start(k: int) -> Any:
        return small * k + minimum(extra, k)

    return [part(x, along, start(k), start(k + 1) - start(k)) for k in range(count)]


def _clipped(cut: Any, length: Any) -> Any:
    """Where a slice that ends at `cut` ends."""
    if isinstance(cut, int) and cut < 0:
        return maximum(length + cut, 0)
    return minimum(cut, length)


@spelled(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Value]:
    return _split(ary, indices_or_sections, axis, True)


@spelled(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Value]:
    return _split(ary, indices_or_sections, axis, False)


@spelled(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Value]:
    x = as_value(ary)
    if x.rank == 0:
        raise RuleError("hsplit only works on arrays of 1 or more dimensions")
    return _split(x, indices_or_sections, 1 if x.rank > 1 else 0, True)


@spelled(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Value]:
    x = as_value(ary)
    if x.rank < 2:
        raise RuleError("vsplit only works on arrays of 2 or more dimensions")
    return _split(x, indices_or_sections, 0, True)


@spelled(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Value]:
    x = as_value(ary)
    if x.rank < 3:
        raise RuleError("dsplit only works on arrays of 3 or more dimensions")
    return _split(x, indices_or_sections, 2, True)
