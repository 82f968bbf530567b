"""searchsorted: where numbers belong in a sorted array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const, for_loop, int_const, size_value, while_loop
from ..ir.dims import same_size
from ..ir.index import At
from ..ir.nodes import Value
from ..ir.types import BOOL, I64, Type
from .base import batch_all, grid
from .families import Lowering, NoGradient, Op, RuleError, Sample, register, sample
from .numpy_indexing import integer_indices, wrapped
from .spelling import as_value, promote, spelled


@register
class SearchSorted(NoGradient, Op):
    """For each element of v, how many elements along the last axis of a, sorted, stand before it: those that are less,
    and with side "right" those that are equal too.  NaN is greater than all else.

    a: (*stack, n), v: (*stack, ...), where `stack` says how many leading axes they share.
    """

    name, masks = "searchsorted", False
    lowering = Lowering.EXPAND

    def infer(self, a: Type, v: Type, *, side: str, stack: int = 0) -> Type:
        if a.dtype != v.dtype or a.kind == "c":
            raise RuleError(f"searchsorted of {v} in {a}", kind=TypeError, code="E309")
        if a.rank != stack + 1 or v.rank < stack or not all(map(same_size, a.shape[:stack], v.shape)):
            raise RuleError(f"searchsorted of {v} in {a}: object too deep for desired array", code="E302")
        if side not in ("left", "right"):
            raise RuleError(f"search side must be one of 'left' or 'right' (got {side!r})",
                            kind=ValueError, code="E208")
        return Type("int64", v.shape)

    def reference(self, a: Any, v: Any, *, side: str, stack: int = 0) -> Any:
        result = np.empty(np.shape(v), np.int64)
        for place in np.ndindex(a.shape[:stack]):
            result[place] = np.searchsorted(a[place], v[place], side)  # type: ignore[call-overload]
        return result[()]

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, side: str, stack: int = 0,
              **params: Any) -> Value:
        a, v = args
        if not batched[0] and not stack:
            return ops.searchsorted(a, v, side=side, stack=0)
        return ops.searchsorted(*batch_all(args, batched), side=side, stack=stack + 1)

    def expand(self, a: Value, v: Value, *, side: str, stack: int = 0, **params: Any) -> Value:
        if not v.rank:
            return _place(a, v, (), side)
        everywhere = (At(),) * v.rank

        def over(axis: int, index: tuple[Value, ...], out: Value) -> Value:
            if axis == v.rank:
                place = _place(a, ops.load(v, *index, index=everywhere), index[:stack], side)
                return ops.store(out, place, *index, index=everywhere)
            return for_loop(int_const(0), size_value(v.shape[axis]), (out,),
                            lambda i, inner: (over(axis + 1, (*index, i), inner),), parallel=axis == 0,
                            hints=("out",))[0]

        return over(0, (), ops.empty(shape=v.shape, dtype="int64"))

    def stablehlo(self, h: Any, a: Any, v: Any, *, side: str, stack: int = 0) -> Any:
        """The count itself, of all elements that stand before."""
        n = a.type.shape[-1]
        shape = (*v.type.shape, n)
        elements = h.broadcast(a, shape, (*range(stack), len(shape) - 1))
        wanted = h.broadcast(v, shape, tuple(range(len(shape) - 1)))
        before = h.compare("LT" if side == "left" else "LE", elements, wanted)
        if a.type.kind == "f":
            last = h.compare("NE", wanted, wanted)
            if side == "left":
                last = h.op("and", last, h.compare("EQ", elements, elements))
            before = h.op("or", before, last)
        return h.reduce("add", h.convert(before, "int64"), 0, (len(shape) - 1,))

    def samples(self) -> list[Sample]:
        a, v = np.sort(grid(6)), grid(5, seed=1)
        repeated = np.array([0.0, 1.0, 1.0, 2.0])
        found = []
        for side in ("left", "right"):
            found += [sample(a, v, side=side, stack=0), sample(repeated, np.array([[1.0, 3.0], [-1.0, 2.0]]), side=side,
                                                               stack=0),
                      sample(a, np.float64(0.1), side=side, stack=0), sample(np.zeros(0), v, side=side, stack=0),
                      sample(np.sort(grid(2, 4)), grid(2, 3, seed=1), side=side, stack=1),
                      sample(np.array([1.0, 2.0, np.nan, np.nan]), np.array([1.5, np.nan, np.inf]), side=side, stack=0),
                      sample(np.arange(5), np.array([2, 7, -1]), side=side, stack=0)]
        return found


def _place(a: Value, v: Value, index: tuple[Value, ...], side: str) -> Value:
    """Binary search for the number v in one row of a."""

    def body(low: Value, high: Value) -> tuple[Value, Value]:
        middle = low + ops.floor_divide(high - low, int_const(2))
        element = ops.load(a, *index, middle, index=(At(),) * (len(index) + 1))
        before = _less(element, v) if side == "left" else ops.logical_not(_less(v, element))
        return ops.select(before, middle + int_const(1), low), ops.select(before, high, middle)

    return while_loop((int_const(0), size_value(a.shape[-1])), lambda low, high: low < high, body,
                      hints=("low", "high"))[0]


def _less(x: Value, y: Value) -> Value:
    """x < y, with NaN after everything else."""
    if x.type.kind != "f":
        return ops.less(x, y)
    return ops.logical_or(ops.less(x, y), ops.logical_and(ops.isnan(y), ops.logical_not(ops.isnan(x))))


@spelled(np.searchsorted, np.ndarray.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Value:
    array, wanted = promote(as_value(a), v)
    if array.rank != 1:
        raise RuleError("object too deep for desired array" if array.rank else "object of too small depth for desired "
                        "array", code="E302")
    if sorter is not None:
        order = integer_indices(sorter, "sorter")
        array = ops.gather(array, wrapped(order, array.shape[0], 0), axes=(0,))
    return ops.searchsorted(array, wanted, side=str(side), stack=0)


@spelled(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Value:
    """The number of the bin that each element falls into; bins rise or fall."""
    edges, values = promote(as_value(bins), x)
    if edges.rank != 1:
        raise RuleError("object too deep for desired array" if edges.rank else "object of too small depth for desired "
                        "array", code="E302")
    (count,) = edges.shape
    if count == 0:
        return const(0, I64.with_shape(values.shape))
    rising = ops.searchsorted(edges, values, side="left" if right else "right", stack=0)
    falling = ops.searchsorted(ops.reverse(edges, axes=(0,)), values, side="right" if not right else "left", stack=0)
    falling = ops.subtract(size_value(count), falling)
    first, last = (ops.load(edges, size_value(k), index=(At(),)) for k in (0, count - 1))
    rises = ops.less_equal(first, last)
    assert rises.type == BOOL
    return ops.select(ops.broadcast(rises, shape=values.shape, axes=()), rising, falling)
