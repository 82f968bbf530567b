"""The printer's reads and writes of parts: dynamic slices, gather, scatter.

Gather and scatter have the meaning of our own: equal-shaped int64 index arrays, in range, one for each of the `axes`;
what is read or written has the shape of an index array, then the axes of x that are not indexed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.dims import product
from ..ir.types import Type
from .hlo_text import HloValue
from .hlo_types import function_type


class Indexing:
    """Methods of `Printer`."""

    emit: Any
    op: Any
    constant: Any
    compare: Any
    select: Any
    convert: Any
    reshape: Any
    broadcast: Any
    concatenate: Any
    iota: Any
    region: Any
    slice: Any

    def dynamic_slice(self, x: HloValue, starts: Sequence[HloValue], sizes: Sequence[int]) -> HloValue:
        """The part of x of these sizes that begins at the scalars `starts`; moved into x where it would leave it."""
        known = [s.number for s in starts if s.number is not None]
        if len(known) == len(starts) and all(0 <= n <= d - size for n, d, size in zip(known, x.type.shape, sizes)):
            return self.slice(x, known, [n + size for n, size in zip(known, sizes)], [1] * len(known))
        result = x.type.with_shape(tuple(sizes))
        if any(size > d for size, d in zip(sizes, x.type.shape)):
            return self.constant(0, result)             # of an array without elements, in a loop that makes no trip
        types = [x.type, *(s.type for s in starts)]
        return self.emit(["stablehlo.dynamic_slice ", x, *(p for s in starts for p in (", ", s)),
                          f", sizes = {list(sizes)} : {function_type(types, [result])}"], result)

    def dynamic_update_slice(self, x: HloValue, v: HloValue, starts: Sequence[HloValue]) -> HloValue:
        """x with v written at the scalars `starts`."""
        if any(size > d for size, d in zip(v.type.shape, x.type.shape)):
            return x
        types = [x.type, v.type, *(s.type for s in starts)]
        return self.emit(["stablehlo.dynamic_update_slice ", x, ", ", v, *(p for s in starts for p in (", ", s)),
                          f" : {function_type(types, [x.type])}"], x.type)

    def gather(self, x: HloValue, indices: Sequence[HloValue], axes: Sequence[int]) -> HloValue:
        depth = indices[0].type.rank
        rest = [k for k in range(x.type.rank) if k not in axes]
        result = x.type.with_shape((*indices[0].type.shape, *(x.type.shape[k] for k in rest)))
        if 0 in result.shape:
            return self.constant(0, result)
        places = self._stacked(indices)
        sizes = [1 if k in axes else d for k, d in enumerate(x.type.shape)]
        numbers = _attributes(
            offset_dims=range(depth, depth + len(rest)), collapsed_slice_dims=sorted(axes), start_index_map=axes)
        return self.emit(['"stablehlo.gather"(', x, ", ", places,
                          f") <{{dimension_numbers = #stablehlo.gather<{numbers}index_vector_dim = {depth}>, "
                          f"indices_are_sorted = {str(indices[0].rises).lower()}, "
                          f"slice_sizes = array<i64{_listed(sizes)}>}}> : "
                          f"{function_type([x.type, places.type], [result])}"], result)

    def scatter(self, x: HloValue, v: HloValue, indices: Sequence[HloValue], axes: Sequence[int], how: str,
                unique: bool = False, ordered: bool = False) -> HloValue:
        """x with v put in.  how: "add" (or another binary op), or "replace", where the last write to a place wins.
        unique: no place is written twice.  ordered: places rise.  Both are also seen from indices that surely rise."""
        if 0 in v.type.shape:
            return x
        unique, ordered = unique or any(i.rises for i in indices), ordered or indices[0].rises
        if how == "replace" and not unique:
            return self._scatter_last(x, v, indices, axes)
        return self._scatter(x, v, self._stacked(indices), axes, how, unique, indices[0].type.rank, ordered)

    def _scatter(self, x: HloValue, v: HloValue, places: HloValue, axes: Sequence[int], how: str, unique: bool,
                 depth: int, ordered: bool = False) -> HloValue:
        rest = x.type.rank - len(axes)
        numbers = _attributes(update_window_dims=range(depth, depth + rest), inserted_window_dims=sorted(axes),
                              scatter_dims_to_operand_dims=axes)
        merge = (lambda old, new: new) if how == "replace" else lambda old, new: self.op(how, old, new)
        types = [x.type, places.type, v.type]
        sorted_, where = str(ordered).lower(), f"#stablehlo.scatter<{numbers}"
        return self.emit(['"stablehlo.scatter"(', x, ", ", places, ", ", v,
                          f") <{{indices_are_sorted = {sorted_}, scatter_dimension_numbers = {where}"
                          f"index_vector_dim = {depth}>, unique_indices = {str(unique).lower()}}}> ",
                          self.region([x.type.scalar] * 2, merge), f" : {function_type(types, [x.type])}"], x.type)

    def _scatter_last(self, x: HloValue, v: HloValue, indices: Sequence[HloValue], axes: Sequence[int]) -> HloValue:
        """StableHLO leaves the order of writes open.  So each place first learns the number of its last writer, and
        the other writers are sent out of range, where writes are dropped."""
        shape = indices[0].type.shape
        count = product(shape)
        if count == 1:
            return self._scatter(x, v, self._stacked(indices), axes, "replace", True, len(shape))
        writer = self.reshape(self.iota(Type("int64", (count,)), 0), shape)
        board = self.constant(-1, Type("int64", tuple(x.type.shape[a] for a in axes)))
        own = range(len(axes))
        places = self._stacked(indices)
        last = self.gather(self._scatter(board, writer, places, own, "maximum", False, len(shape)), indices, own)
        outside = self.constant(x.type.shape[axes[0]], indices[0].type)
        first = self.select(self.compare("EQ", last, writer), indices[0], outside)
        return self._scatter(x, v, self._stacked([first, *indices[1:]]), axes, "replace", True, len(shape))

    def _stacked(self, indices: Sequence[HloValue]) -> HloValue:
        """The index arrays side by side along a new last axis (none where there is one array)."""
        if len(indices) == 1:
            return indices[0]
        shape = (*indices[0].type.shape, 1)
        return self.concatenate([self.reshape(i, shape) for i in indices], len(shape) - 1)


def _listed(sizes: Sequence[int]) -> str:
    return f": {', '.join(map(str, sizes))}" if sizes else ""


def _attributes(**lists: Any) -> str:
    """`name = [..], ` for each list that is not empty."""
    return "".join(f"{name} = {list(values)}, " for name, values in lists.items() if list(values))
