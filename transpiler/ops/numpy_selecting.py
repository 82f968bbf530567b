"""NumPy's functions whose results are as long as a mask says: nonzero, flatnonzero, argwhere, compress, extract.

How many elements a mask selects is known when the function runs: a size named after the scalar that holds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const, size_value
from ..ir.dims import product, symbol
from ..ir.index import Span
from ..ir.nodes import Const, Value
from ..ir.types import I64
from .base import RuleError
from .numpy_arithmetic import truth
from .numpy_indexing import take
from .options import refuse_out
from .spelling import as_value, spelled


def places(mask: Value) -> Value:
    """The numbers (k,), counted through the mask's elements in C order, of the k that are set; int64.

    Each set element writes its number behind those of the ones before it; the others write theirs to one place more.
    """
    size = product(mask.shape)
    chosen = ops.reshape(mask, shape=(size,))
    marks = ops.convert(chosen, dtype="int64")
    total = ops.sum(marks, axes=(0,))
    count = int(total.value) if isinstance(total, Const) else symbol(total.name, 0)
    before = ops.subtract(ops.cumsum(marks, axis=0, reverse=False), marks)
    behind = ops.broadcast(total, shape=(size,), axes=())
    numbers = ops.iota(shape=(size,), axis=0, dtype="int64")
    room = const(0, I64.with_shape((count + 1,)))
    whole = ops.scatter(room, numbers, ops.select(chosen, before, behind), axes=(0,))
    return ops.load(whole, index=(Span(0, count),))


def selected(x: Value, mask: Value) -> Value:
    """x[mask] (k, ...) for a mask that covers the leading axes of x."""
    rest = x.shape[mask.rank:]
    return ops.gather(ops.reshape(x, shape=(product(mask.shape), *rest)), places(mask), axes=(0,))


def mask_indices(mask: Value) -> tuple[Value, ...]:
    """The index arrays of the elements that are set, one for each axis."""
    found, left = [], places(mask)
    for size in reversed(mask.shape[1:]):
        by = ops.broadcast(size_value(size), shape=left.shape, axes=())
        found.append(ops.remainder(left, by))
        left = ops.floor_divide(left, by)
    return (left, *reversed(found))


@spelled(np.nonzero, np.ndarray.nonzero)
def nonzero(a: Any) -> tuple[Value, ...]:
    """The indices of the elements that are not 0, an array for each axis."""
    x = as_value(a)
    if not x.rank:
        raise RuleError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.",
                        kind=ValueError, code="E302")
    return mask_indices(truth(x))


@spelled(np.flatnonzero)
def flatnonzero(a: Any) -> Value:
    return places(truth(as_value(a)))


@spelled(np.argwhere)
def argwhere(a: Any) -> Value:
    """The same as `nonzero`, a row for each element."""
    x = as_value(a)
    if not x.rank:
        raise RuleError("np.argwhere of an array without dimensions is not supported", kind=NotImplementedError,
                        code="E202")
    parts = mask_indices(truth(x))
    return ops.concatenate(*(ops.reshape(p, shape=(*p.shape, 1)) for p in parts), axis=1)


@spelled(np.extract)
def extract(condition: Any, arr: Any) -> Value:
    """The elements of `arr`, flattened, where `condition`, flattened, holds."""
    return take(arr, flatnonzero(condition))


@spelled(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Value:
    """What a mask, which may be shorter than the axis, selects along it; of all elements without an axis."""
    refuse_out(out, "compress")
    chosen = as_value(condition)
    if chosen.rank != 1:
        raise RuleError("condition must be a 1-d array", kind=ValueError, code="E302")
    return take(a, places(truth(chosen)), axis)


@spelled(np.ndarray.compress)
def compress_method(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Value:
    return compress(condition, a, axis, out)
