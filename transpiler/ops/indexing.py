"""Reading and writing parts of an array by a basic index: load, store, add_at.

The index is a tuple of `At`, `Span` and `New` items (ir/index.py) which covers every axis of x; its run-time starts
and positions are int64 scalars that follow the arrays.  All of them are in range and non-negative, which whoever
builds the index has checked.  Where a batch gives every example positions of its own, the rules go over to index
arrays (`gather`, `scatter`, `scatter_add`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..ir.build import const, int_const, size_value
from ..ir.dims import same_size
from ..ir.index import At, Item, New, Span, argument_count, index_shape
from ..ir.nodes import Const, Value, Var
from ..ir.types import I64, Type
from .base import batch_size, grid, marks_of
from .families import Into, Linear, Lowering, Op, RuleError, Sample, broadcast_to, register, sample
from .shape import Reader

Index = tuple[Item, ...]


def full(dim: Any) -> Span:
    """All of an axis."""
    return Span(0, dim)


def is_full(item: Item, dim: Any) -> bool:
    return isinstance(item, Span) and item.start == 0 and item.step == 1 and item.size == dim


def axis_items(index: Index, scalars: Sequence[Any]) -> list[tuple[At | Span, Any]]:
    """For each axis of the array, its item and the first position along it: a dimension or one of `scalars`."""
    rest = iter(scalars)
    return [(item, next(rest) if isinstance(item, At) or item.start is None else item.start)
            for item in index if not isinstance(item, New)]


def check_index(name: str, x: Type, scalars: Sequence[Type], index: Index) -> None:
    axes = [item for item in index if not isinstance(item, New)]
    if len(axes) != x.rank:
        raise RuleError(f"{name}: an index of {len(axes)} axes for {x}", kind=IndexError, code="E306")
    if len(scalars) != argument_count(index) or any(s != I64 for s in scalars):
        raise RuleError(f"{name}: the index takes {argument_count(index)} int64 scalars, not "
                        f"({', '.join(map(str, scalars))})", kind=TypeError, code="E208")
    for item, dim in zip(axes, x.shape):
        if isinstance(item, At):
            continue
        if item.step == 0:
            raise RuleError("slice step cannot be zero", kind=ValueError, code="E208")
        known = isinstance(item.start, int) and isinstance(item.size, int) and isinstance(dim, int)
        if known and item.size and not all(0 <= at < dim for at in (
                item.start, item.start + (item.size - 1) * item.step)):
            raise RuleError(f"{name}: {item} is not inside an axis of {dim} elements", kind=IndexError, code="E305")


def numpy_index(shape: Sequence[int], scalars: Sequence[Any], index: Index) -> tuple[Any, ...]:
    """The index as NumPy takes it; IndexError where it leaves the array."""
    rest = iter(axis_items(index, scalars))
    sizes = iter(shape)
    found: list[Any] = []
    for item in index:
        if isinstance(item, New):
            found.append(None)
            continue
        _, start = next(rest)
        start, dim = int(start), next(sizes)
        last = start if isinstance(item, At) else start + (item.size - 1) * item.step
        if isinstance(item, Span) and item.size == 0:
            found.append(slice(0, 0))
            continue
        if not (0 <= start < dim and 0 <= last < dim):
            raise IndexError(f"index {start} is out of bounds for axis of size {dim}")
        if isinstance(item, At):
            found.append(start)
            continue
        stop = last + (1 if item.step > 0 else -1)
        found.append(slice(start, stop if stop >= 0 else None, item.step))
    return tuple(found)


def stepped(start: Value, i: Value, step: int) -> Value:
    """start + i * step."""
    if isinstance(start, Const) and isinstance(i, Const):
        return int_const(start.value + i.value * step)
    if isinstance(start, Const) and start.value == 0:
        return i if step == 1 else i * step
    if step == 1:
        return start if isinstance(i, Const) and i.value == 0 else start + i
    return start - i if step == -1 else start + i * step


def positions(index: Index, scalars: Sequence[Value], at: Sequence[Value]) -> tuple[Value, ...]:
    """Where in the array the element `at` (of what the index reads) lies."""
    inner = [i for item, i in zip([i for i in index if not isinstance(i, At)], at) if isinstance(item, Span)]
    rest = iter(inner)
    found = []
    for item, start in axis_items(index, scalars):
        if isinstance(item, At):
            found.append(start)
            continue
        found.append(stepped(start if isinstance(start, (Var, Const)) else size_value(start), next(rest), item.step))
    return tuple(found)


def index_arrays(shape: Sequence[Any], scalars: Sequence[Value], index: Index, size: Any) -> tuple[
        list[Value], tuple[int, ...], tuple[int, ...]]:
    """The index of `size` examples as index arrays for an array (size, *shape) whose positions are (size,) each.

    Gives the arrays, the axes that they index, and for each axis of their gather's result (index axes, then the
    remaining ones) its place in (size, *index_shape(index without New)).
    """
    items = axis_items(index, scalars)
    looped = [k for k, (item, _) in enumerate(items) if not is_full(item, shape[k])]
    spans = [k for k in looped if isinstance(items[k][0], Span)]
    common = (size, *(items[k][0].size for k in spans))  # type: ignore[union-attr]
    arrays = [ops.iota(shape=common, axis=0, dtype="int64")]
    for k in looped:
        item, start = items[k]
        if isinstance(start, (Var, Const)):
            first = ops.broadcast(start, shape=common, axes=(0,)) if start.rank else broadcast_to(start, common)
        else:
            first = broadcast_to(size_value(start), common)
        if isinstance(item, Span):
            along = ops.iota(shape=common, axis=1 + spans.index(k), dtype="int64")
            first = first + along * const(item.step, along.type)
        arrays.append(first)
    kept = [k for k, (item, _) in enumerate(items) if isinstance(item, Span)]
    order = [*spans, *(k for k in kept if k not in looped)]
    return arrays, (0, *(k + 1 for k in looped)), (0, *(kept.index(k) + 1 for k in order))


def without_new(index: Index) -> Index:
    return tuple(item for item in index if not isinstance(item, New))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(list(order).index(k) for k in range(len(order)))


def widened(room: Any, x: Value, scalars: Sequence[Value], index: Index) -> tuple[Value, list[Value], Index, Index]:
    """`Op.in_room` for an index: x with as many zeros around as keep its longest spans inside, the scalars and the
    index for that, and the index of x in it."""
    low, high, inside = [0] * x.rank, [0] * x.rank, []
    items: list[Any] = []
    places: list[Value] = []
    rest, axis = iter(scalars), 0
    for item in index:
        if isinstance(item, New):
            items.append(item)
            continue
        place = next(rest) if isinstance(item, At) or item.start is None else item.start
        if isinstance(item, Span) and any(map(room.is_roomy, item.dims())):
            size = room.most_of(item.size)
            first = place.value if isinstance(place, Const) else place
            if isinstance(first, int) and 0 <= first + max(size - 1, 0) * item.step < max(x.shape[axis], 1):
                item = Span(first, size, item.step)
            else:
                reach = max(size - 1, 0) * abs(item.step) + 1
                low[axis], high[axis] = (0, reach) if item.step > 0 else (reach, 0)
                place = (place if item.start is None else room.length(place)) + low[axis]
                item = Span(None, size, item.step)
        items.append(item)
        if isinstance(item, At) or item.start is None:
            places.append(place)
        inside.append(Span(low[axis], x.shape[axis]))
        axis += 1
    if any(low) or any(high):
        x = ops.pad(x, low=tuple(low), high=tuple(high), interior=(0,) * x.rank)
    return x, places, tuple(items), tuple(inside)


@register
class Load(Linear):
    """The elements of x at a basic index.  Its cotangent is added into that of x in place."""

    name, access, masks = "load", "load", True
    lowering = Lowering.REINDEX

    def __call__(self, x: Any, *scalars: Any, index: Index) -> Any:
        x, scalars = self.prepare(x)[0], tuple(as_scalar(s) for s in scalars)
        simpler = self.simplify((x, *scalars), index=index)
        return super().__call__(x, *scalars, index=index) if simpler is None else simpler

    def simplify(self, args: Sequence[Value], *, index: Index, **params: Any) -> Value | None:
        x = args[0]
        if isinstance(x, Const):
            return Const(x.value, self.infer(*(a.type for a in args), index=index))
        return x if len(index) == x.rank and all(map(is_full, index, x.shape)) else None

    def hint(self, args: Sequence[Value]) -> str:
        return f"{args[0].name}_i" if isinstance(args[0], Var) else "t"

    def infer(self, x: Type, *scalars: Type, index: Index) -> Type:
        check_index(self.name, x, scalars, index)
        return x.with_shape(index_shape(index))

    def reference(self, x: Any, *scalars: Any, index: Index) -> Any:
        return x[numpy_index(x.shape, scalars, index)]

    def transpose(self, ct: Value, x: Value, *scalars: Value, index: Index) -> Value | Into:
        """Where every element is read once, as by `x[:, None]` and `x[::-1]`, the cotangent is only rearranged, which
        fuses with what made it."""
        back = _reversed_axes(x.type, index)
        if back is None:
            return Into(lambda adjoint: ops.add_at(adjoint, ct, *scalars, index=index))
        whole = ct if ct.shape == x.shape else ops.reshape(ct, shape=x.shape)
        return ops.reverse(whole, axes=back) if back else whole

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, index: Index, **params: Any) -> Value:
        x, *scalars = args
        size = batch_size(args, batched)
        if not any(batched[1:]):
            return ops.load(x, *scalars, index=(full(size), *index))
        x, scalars, index = self._read_common(x, scalars, batched, index)
        shape = x.shape[1:] if batched[0] else x.shape
        arrays, axes, order = index_arrays(shape, scalars, without_new(index), size)
        if not batched[0]:
            arrays, axes = arrays[1:], tuple(a - 1 for a in axes[1:])
        found = ops.transpose(ops.gather(x, *arrays, axes=axes), axes=inverse(order))
        return ops.reshape(found, shape=(size, *index_shape(index)))

    @staticmethod
    def _read_common(x: Value, scalars: Sequence[Value], batched: Sequence[bool], index: Index) -> tuple[
            Value, list[Value], Index]:
        """Read what is at the same place for every example first; the rest of the index is left over."""
        own = iter(zip(scalars, batched[1:]))
        shape = iter(x.shape[1:] if batched[0] else x.shape)
        first: list[Item] = [full(x.shape[0])] if batched[0] else []
        then: list[Item] = []
        shared: list[Value] = []
        left: list[Value] = []
        for item in index:
            if isinstance(item, New):
                then.append(item)
                continue
            dim = next(shape)
            start, varies = next(own) if isinstance(item, At) or item.start is None else (None, False)
            if varies and start is not None:
                first.append(full(dim))
                then.append(item)
                left.append(start)
                continue
            first.append(item)
            if start is not None:
                shared.append(start)
            if isinstance(item, Span):
                then.append(full(item.size))
        return ops.load(x, *shared, index=tuple(first)), left, tuple(then)

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, **params: Any) -> Value:
        scalars = [at(k, ()) for k in range(1, len(types))]
        return at(0, positions(params["index"], scalars, index))

    def stablehlo(self, h: Any, x: Any, *scalars: Any, index: Index) -> Any:
        items = axis_items(index, scalars)
        widths = [1 if isinstance(item, At) else _extent(item) for item, _ in items]
        starts = [_lowest(h, item, start) for item, start in items]
        x = _hlo_slice(h, x, starts, widths)
        steps = [1 if isinstance(item, At) else abs(item.step) for item, _ in items]
        if any(s != 1 for s in steps):
            x = h.slice(x, [0] * len(widths), widths, steps)
        backwards = tuple(k for k, (item, _) in enumerate(items) if isinstance(item, Span) and item.step < 0)
        if backwards:
            x = h.reverse(x, backwards)
        return h.reshape(x, index_shape(index))

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *, index: Index, **params: Any) -> Any:
        x, scalars, wider, _ = widened(room, args[0], args[1:], index)
        return ops.load(x, *scalars, index=wider)

    def samples(self) -> list[Sample]:
        return [sample(a, *map(np.int64, s), index=i) for a, s, i in _index_samples()]


def _reversed_axes(x: Type, index: Index) -> tuple[int, ...] | None:
    """The axes that an index reverses if it reads every element of x once, in order but for those; else None."""
    found = []
    for axis, (dim, item) in enumerate(zip(x.shape, without_new(index), strict=True)):
        if isinstance(item, Span) and item.size == dim and item.step in (1, -1):
            found += [axis] if item.step == -1 else []
        elif not isinstance(item, At) or dim != 1:
            return None
    return tuple(found)


def as_scalar(value: Any) -> Value:
    return value if isinstance(value, (Var, Const)) else int_const(value)


def _extent(item: Span) -> int:
    """How many neighbours the span covers."""
    return (item.size - 1) * abs(item.step) + 1 if item.size else 0


def _lowest(h: Any, item: At | Span, start: Any) -> Any:
    """The lowest position that the item covers, an int or a StableHLO scalar."""
    if isinstance(item, At) or item.step > 0 or item.size == 0:
        return start if not (isinstance(item, Span) and item.size == 0) else 0
    back = (item.size - 1) * -item.step
    return start - back if isinstance(start, int) else h.op("subtract", start, h.constant(back, I64))


def _hlo_slice(h: Any, x: Any, starts: Sequence[Any], widths: Sequence[int]) -> Any:
    if all(isinstance(s, int) for s in starts):
        return h.slice(x, starts, [s + w for s, w in zip(starts, widths)], [1] * len(widths))
    return h.dynamic_slice(x, _hlo_scalars(h, starts), widths)


def _hlo_scalars(h: Any, starts: Sequence[Any]) -> list[Any]:
    return [h.constant(s, I64) if isinstance(s, int) else s for s in starts]


def _index_samples() -> list[tuple[Any, tuple[int, ...], Index]]:
    return [
        (grid(4), (2,), (At(),)),
        (grid(3, 4), (2, 1), (At(), At())),
        (grid(3, 4), (1,), (At(), Span(0, 4))),
        (grid(3, 4), (3,), (Span(0, 3), At())),
        (grid(5), (), (Span(1, 3),)),
        (grid(5), (), (Span(0, 3, 2),)),
        (grid(5), (), (Span(4, 5, -1),)),
        (grid(6), (), (Span(5, 3, -2),)),
        (grid(3, 4), (), (Span(1, 2), New(), Span(0, 2, 3))),
        (grid(3, 4), (1, 3), (Span(None, 2), New(), Span(None, 2, -1))),
        (grid(2, 3, 4), (1, 2), (At(), Span(2, 2, -1), Span(None, 2))),
        (grid(2, 3, 4), (1,), (New(), Span(0, 2), At(), Span(0, 4, 1))),
        (grid(3), (), (Span(0, 0),)),
        (grid(0, 3), (1,), (Span(0, 0), At())),
        (grid(), (), (New(),)),
        (grid(1), (0,), (At(),)),
        (grid(4, dtype="float32"), (1,), (Span(None, 2),)),
        (np.arange(6).reshape(2, 3), (1,), (At(), Span(2, 2, -1))),
        (np.array([True, False, True]), (1,), (At(),)),
    ]


class Write(Op):
    """Argument 1 put into argument 0 at a basic index; shapes agree, a number stretches."""

    masks = True
    lowering = Lowering.SCATTER
    by_arrays: ClassVar[str]            # the operation of the same meaning with index arrays

    def __call__(self, x: Any, v: Any, *scalars: Any, index: Index) -> Any:
        (x,) = self.prepare(x)
        if not isinstance(v, (Var, Const)):
            v = const(v, x.type.scalar)
        v = broadcast_to(v, index_shape(index))
        if not x.rank:                      # a number cannot be written into
            self.infer(x.type, v.type, index=index)
            v = ops.reshape(v, shape=())
            return ops.add(x, v) if self.adds else v
        return super().__call__(x, v, *map(as_scalar, scalars), index=index)

    def hint(self, args: Sequence[Value]) -> str:
        return args[0].name if isinstance(args[0], Var) else "t"

    def infer(self, x: Type, v: Type, *scalars: Type, index: Index) -> Type:
        check_index(self.name, x, scalars, index)
        region = index_shape(index)
        if v.dtype != x.dtype or v.rank != len(region) or any(
                not same_size(a, b) for a, b in zip(v.shape, region)):
            raise RuleError(f"{self.name}: {v} does not fit in {x.with_shape(region)}", kind=ValueError, code="E208")
        return x

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, index: Index,
            **params: Any) -> Value:
        x, v = (const(0, a.type) if t is None else t for t, a in zip(tangents, args[:2]))
        return self(x, v, *args[2:], index=index)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, index: Index, **params: Any) -> Value:
        size = batch_size(args, batched)
        x, v = (a if b else broadcast_to(a, (size, *a.shape)) for a, b in zip(args[:2], batched))
        if not any(batched[2:]):
            return self(x, v, *args[2:], index=(full(size), *index))
        arrays, axes, order = index_arrays(x.shape[1:], args[2:], without_new(index), size)
        v = ops.reshape(v, shape=(size, *index_shape(without_new(index))))
        return getattr(ops, self.by_arrays)(x, ops.transpose(v, axes=order), *arrays, axes=axes)

    def place(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, **params: Any) -> tuple[Value, ...]:
        return positions(params["index"], [at(k, ()) for k in range(2, len(types))], index)

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *, index: Index, **params: Any) -> Any:
        """What is beyond the length adds nothing, or is what was there."""
        x, scalars, wider, inside = widened(room, args[0], args[2:], index)
        v = room.fitted(args[1], index_shape(wider))
        if self.adds:
            v = room.filled(v, types[1], range(v.rank), const(0, v.type.scalar))
        elif any(map(room.is_roomy, types[1].shape)):
            v = room.filled(v, types[1], range(v.rank), ops.load(x, *scalars, index=wider))
        written = self(x, v, *scalars, index=wider)
        return ops.load(written, index=inside)

    def stablehlo(self, h: Any, x: Any, v: Any, *scalars: Any, index: Index) -> Any:
        items = axis_items(index, scalars)
        if any(isinstance(item, Span) and abs(item.step) != 1 for item, _ in items):
            return self._hlo_by_arrays(h, x, v, items)
        widths = [1 if isinstance(item, At) else item.size for item, _ in items]
        if 0 in widths:
            return x
        v = h.reshape(v, tuple(widths))
        backwards = tuple(k for k, (item, _) in enumerate(items) if isinstance(item, Span) and item.step < 0)
        if backwards:
            v = h.reverse(v, backwards)
        starts = [_lowest(h, item, start) for item, start in items]
        if self.adds:
            v = h.op("add", _hlo_slice(h, x, starts, widths), v)
        return h.dynamic_update_slice(x, v, _hlo_scalars(h, starts))

    def _hlo_by_arrays(self, h: Any, x: Any, v: Any, items: Sequence[tuple[At | Span, Any]]) -> Any:
        """A strided region, every element by its position."""
        region = tuple(item.size for item, _ in items if isinstance(item, Span))
        common = Type("int64", region)
        arrays, axis = [], 0
        for item, start in items:
            first = h.constant(start, common) if isinstance(start, int) else h.broadcast(start, region, ())
            if isinstance(item, Span):
                along = h.op("multiply", h.iota(common, axis), h.constant(item.step, common))
                first, axis = h.op("add", first, along), axis + 1
            arrays.append(first)
        return h.scatter(x, h.reshape(v, region), arrays, tuple(range(len(items))), "add" if self.adds else "replace",
                         unique=True, ordered=all(isinstance(i, At) or i.step > 0 for i, _ in items))

    def samples(self) -> list[Sample]:
        return [sample(a, np.asarray(values_like(a, index_shape(i))), *map(np.int64, s), index=i)
                for a, s, i in _index_samples() if self.name == "store" or a.dtype != bool]


def values_like(x: Any, shape: tuple[int, ...]) -> Any:
    return np.asarray(grid(*shape, seed=9)).astype(x.dtype)[()]


@register
class Store(Write):
    """x with the elements at the index replaced by v."""

    name, access, by_arrays, adds = "store", "store", "scatter", False

    def reference(self, x: Any, v: Any, *scalars: Any, index: Index) -> Any:
        result = np.array(x)
        result[numpy_index(x.shape, scalars, index)] = v
        return result[()]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, index: Index,
            **params: Any) -> list[Any]:
        scalars = args[2:]
        d_v = ops.load(ct, *scalars, index=index) if wanted[1] else None      # first: the store may then be in place
        d_x = ops.store(ct, 0, *scalars, index=index) if wanted[0] else None
        return [d_x, d_v, *[None] * len(scalars)]


@register
class AddAt(Write):
    """x with v added to the elements at the index."""

    name, access, by_arrays, adds, masks = "add_at", "add_at", "scatter_add", True, False
    additive = (0,)

    def reference(self, x: Any, v: Any, *scalars: Any, index: Index) -> Any:
        result = np.array(x)
        result[numpy_index(x.shape, scalars, index)] += v
        return result[()]

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
             index: Index, **params: Any) -> Any:
        x, v, *scalars = marks_of(marks, args)
        return ops.store(x, ops.bitwise_or(ops.load(x, *scalars, index=index), v), *scalars, index=index)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, index: Index,
            **params: Any) -> list[Any]:
        scalars = args[2:]
        return [ct if wanted[0] else None, ops.load(ct, *scalars, index=index) if wanted[1] else None,
                *[None] * len(scalars)]
