"""Operations on one array that move its elements and compute none: broadcast, reshape, transpose, reverse, pad.

Each is linear, lowers by reindexing, and takes the loop index of a result's element to the index of an argument's.
Sizes may be symbolic; whether sizes that need to agree do so is asked of `dims.same_size`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import choose, const, int_const, size_value
from ..ir.dims import bounds, maximum, product, same_size, shown_shape
from ..ir.index import At, Span
from ..ir.nodes import Const, Value
from ..ir.types import Type
from .base import definition, grid
from .families import Linear, Lowering, RuleError, Sample, register, sample

Reader = Callable[[int, Sequence[Value]], Value]


class Reindexing(Linear):
    """Linear in its only argument; each element of the result is an element of the argument, or zero.

    A call that would change nothing gives its argument, and equal elements stay one constant.
    """

    lowering = Lowering.REINDEX
    masks = False

    def __call__(self, x: Any, **params: Any) -> Any:
        (x,) = self.prepare(x)
        self.infer(x.type, **params)
        simpler = Reindexing.simplify(self, (x,), **params)
        return super().__call__(x, **params) if simpler is None else simpler

    def simplify(self, args: Sequence[Value], **params: Any) -> Value | None:
        (x,) = args
        if self.is_identity(x.type, **params):
            return x
        if isinstance(x, Const) and self.keeps_splats(x.type, **params):
            return Const(x.value, self.infer(x.type, **params))
        return None

    def is_identity(self, x: Type, **params: Any) -> bool:
        return False

    def keeps_splats(self, x: Type, **params: Any) -> bool:
        return True

    def view(self, types: Sequence[Type], params: dict[str, Any]) -> str | None:
        """Source text of the result as a NumPy view of {0}, or None where there is no cheap one."""
        return None


def shifted(i: Value, dim: Any) -> Value:
    """i + dim."""
    if isinstance(dim, int) and isinstance(i, Const):
        return int_const(i.value + dim)
    if isinstance(dim, int):
        return i if dim == 0 else i + dim if dim > 0 else i - (-dim)
    return i + size_value(dim)


def _certainly_at_most(dim: Any, limit: int) -> bool:
    high = bounds(dim)[1]
    return high is not None and high <= limit


@register
class Broadcast(Reindexing):
    """Copy along new or stretched axes: axis k of x becomes axis axes[k] of `shape`; a size of 1 stretches."""

    name = "broadcast"

    def infer(self, x: Type, *, shape: tuple[Any, ...], axes: tuple[int, ...]) -> Type:
        if len(axes) != x.rank or len(set(axes)) != len(axes) or any(not 0 <= a < len(shape) for a in axes):
            raise RuleError(f"broadcast of {x} to {len(shape)} axes by {axes}")
        for dim, axis in zip(x.shape, axes):
            wanted = shape[axis]
            if dim != 1 and not same_size(dim, wanted):
                raise RuleError(f"could not broadcast input array from shape {shown_shape(x.shape)} into shape "
                                f"{shown_shape(shape)}", code="E301")
        return x.with_shape(shape)

    def is_identity(self, x: Type, *, shape: tuple[Any, ...], axes: tuple[int, ...]) -> bool:
        return x.shape == tuple(shape) and axes == tuple(range(x.rank))

    def reference(self, x: Any, *, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
        x = np.asarray(x)
        inner = [1] * len(shape)
        for dim, axis in zip(x.shape, axes):
            inner[axis] = dim
        ordered = np.transpose(x, sorted(range(x.ndim), key=axes.__getitem__))
        return np.broadcast_to(ordered.reshape(inner), shape)[()]

    def simplify(self, args: Sequence[Value], *, shape: tuple[Any, ...], axes: tuple[int, ...],
                 **params: Any) -> Value | None:
        before = definition(args[0])
        if before is not None and before.op is self:
            return ops.broadcast(before.args[0], shape=shape, axes=tuple(axes[a] for a in before.params["axes"]))
        return super().simplify(args, shape=shape, axes=axes)

    def transpose(self, ct: Value, x: Value, *, shape: tuple[Any, ...], axes: tuple[int, ...]) -> Value:
        kept = [a for k, a in enumerate(axes) if not self._stretches(x.shape[k], shape[a])]
        dropped = tuple(a for a in range(len(shape)) if a not in kept)
        total = ops.sum(ct, axes=dropped) if dropped else ct
        left = sorted(kept)
        total = ops.transpose(total, axes=tuple(left.index(a) for a in kept))
        return ops.reshape(total, shape=x.shape)

    @staticmethod
    def _stretches(dim: Any, wanted: Any) -> bool:
        return dim == 1 and wanted != 1

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, shape: tuple[Any, ...], axes: tuple[int, ...],
              **params: Any) -> Value:
        (x,) = args
        return ops.broadcast(x, shape=(x.shape[0], *shape), axes=(0, *(a + 1 for a in axes)))

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, *, shape: tuple[Any, ...],
                axes: tuple[int, ...], **params: Any) -> Value:
        return at(0, [int_const(0) if dim == 1 else index[a] for dim, a in zip(types[0].shape, axes)])

    def copies_along(self, types: Sequence[Type], *, shape: tuple[Any, ...], axes: tuple[int, ...],
                     **params: Any) -> tuple[int, ...]:
        kept = {a for dim, a in zip(types[0].shape, axes) if not self._stretches(dim, shape[a])}
        return tuple(a for a in range(len(shape)) if a not in kept)

    def lies_along(self, types: Sequence[Type], *, shape: tuple[Any, ...], axes: tuple[int, ...],
                   **params: Any) -> tuple[int, ...] | None:
        return axes if all(d == shape[a] for d, a in zip(types[0].shape, axes)) else None

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                shape: tuple[Any, ...], axes: tuple[int, ...], **params: Any) -> Any:
        kept = [room.most_of(shape[a]) if d != 1 else 1 for d, a in zip(types[0].shape, axes)]
        return [room.fitted(args[0], kept)]

    def stablehlo(self, h: Any, x: Any, *, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
        return h.broadcast(x, shape, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(), shape=(3, 2), axes=()), sample(grid(3), shape=(2, 3), axes=(1,)),
                sample(grid(3), shape=(3, 2), axes=(0,)), sample(grid(2, 1), shape=(2, 3), axes=(0, 1)),
                sample(grid(2, 3), shape=(3, 4, 2), axes=(2, 0)), sample(grid(1, 1), shape=(1, 2, 1), axes=(1, 2)),
                sample(grid(3), shape=(0, 3), axes=(1,)), sample(grid(2, dtype="float32"), shape=(2, 2), axes=(0,)),
                sample(np.arange(3), shape=(2, 3), axes=(1,))]


def axis_groups(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
    """Smallest runs of axes with equal products: each run of `before` is split and merged into one of `after`.

    Axes of size 1 fall into runs of their own, with nothing on the other side.
    """
    left, right = ([k for k, d in enumerate(dims) if d != 1] for dims in (before, after))
    found: list[tuple[list[int], list[int]]] = []
    found += [([k], []) for k, d in enumerate(before) if d == 1]
    found += [([], [k]) for k, d in enumerate(after) if d == 1]
    ends: dict[Any, int] = {}
    total: Any = 1
    for count, k in enumerate(left, 1):
        total = total * before[k]
        ends.setdefault(total, count)
    total, done, start = 1, 0, 0
    for count, k in enumerate(right, 1):
        total = total * after[k]
        end = ends.get(total, 0)
        if end > done and not (count == len(right) and end != len(left)):
            found.append((left[done:end], right[start:count]))
            done, start = end, count
    if done < len(left) or start < len(right):
        found.append((left[done:], right[start:]))
    return found


def linear_position(index: Sequence[Value], sizes: Sequence[Any]) -> Value:
    """The place of an element of an array of these sizes in C order."""
    position: Value = index[0] if index else int_const(0)
    for i, size in zip(index[1:], sizes[1:]):
        position = position * size_value(size) + i
    return position


@register
class Reshape(Reindexing):
    """The same elements in C order under another shape of as many elements."""

    name = "reshape"

    def infer(self, x: Type, *, shape: tuple[Any, ...]) -> Type:
        if isinstance(product(x.shape) - product(shape), int) and product(x.shape) != product(shape):
            raise RuleError(f"cannot reshape array of size {product(x.shape)} into shape {shown_shape(shape)}",
                            code="E301")
        return x.with_shape(shape)

    def is_identity(self, x: Type, *, shape: tuple[Any, ...]) -> bool:
        return x.shape == tuple(shape)

    def reference(self, x: Any, *, shape: tuple[int, ...]) -> Any:
        return np.reshape(x, shape)[()]

    def transpose(self, ct: Value, x: Value, *, shape: tuple[Any, ...]) -> Value:
        return ops.reshape(ct, shape=x.shape)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, shape: tuple[Any, ...], **params: Any) -> Value:
        return ops.reshape(args[0], shape=(args[0].shape[0], *shape))

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, *, shape: tuple[Any, ...],
                **params: Any) -> Value:
        before = types[0].shape
        inner: list[Value] = [int_const(0)] * len(before)
        for sources, targets in axis_groups(before, shape):
            if not sources:
                continue
            position = linear_position([index[k] for k in targets], [shape[k] for k in targets])
            for k in reversed(sources[1:]):
                size = size_value(before[k])
                inner[k] = ops.remainder(position, size)
                position = ops.floor_divide(position, size)
            inner[sources[0]] = position
        return at(0, inner)

    def destination(self, types: Sequence[Type], /, *, shape: tuple[Any, ...],
                    **params: Any) -> Callable[[Sequence[Value]], list[Value]] | None:
        """Where axes are only merged: a product tells where an element goes, a quotient where it comes from."""
        before = types[0].shape
        groups = axis_groups(before, shape)
        if any(len(targets) > 1 for _, targets in groups) or all(len(sources) < 2 for sources, _ in groups):
            return None

        def goes(index: Sequence[Value]) -> list[Value]:
            place: list[Value] = [int_const(0)] * len(shape)
            for sources, targets in groups:
                for k in targets:
                    place[k] = linear_position([index[s] for s in sources], [before[s] for s in sources])
            return place

        return goes

    def simplify(self, args: Sequence[Value], *, shape: tuple[Any, ...], **params: Any) -> Value | None:
        before = definition(args[0])
        if before is not None and before.op is self:
            return ops.reshape(before.args[0], shape=shape)
        return super().simplify(args, shape=shape)

    def view(self, types: Sequence[Type], params: dict[str, Any]) -> str | None:
        """A copy where the argument is not C-contiguous."""
        return f"reshaped({{0}}, ({''.join(f'{d}, ' for d in params['shape']).rstrip()}))"

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                shape: tuple[Any, ...], **params: Any) -> Any:
        """What is beyond the length stays behind all else where the first axis that is not 1 is the only long one."""
        for sources, targets in axis_groups(types[0].shape, shape):
            long = [k for k in sources if room.is_roomy(types[0].shape[k])]
            wide = [k for k in targets if room.is_roomy(shape[k])]
            if (long or wide) and (long != sources[:1] or wide != targets[:1]):
                return None
        return args

    def stablehlo(self, h: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
        return h.reshape(x, shape)

    def samples(self) -> list[Sample]:
        return [sample(grid(2, 3), shape=(6,)), sample(grid(6), shape=(2, 3)), sample(grid(4, 3), shape=(2, 6)),
                sample(grid(2, 3, 4), shape=(6, 4)), sample(grid(2, 12), shape=(2, 3, 4)),
                sample(grid(2, 1, 3), shape=(2, 3)), sample(grid(2, 3), shape=(1, 2, 1, 3, 1)),
                sample(grid(), shape=(1, 1)),
                sample(grid(1), shape=()), sample(grid(0, 3), shape=(0, 2, 5)), sample(grid(3, 4), shape=(4, 3)),
                sample(grid(6, dtype="float32"), shape=(3, 2))]


@register
class Transpose(Reindexing):
    """Axis k of the result is axis axes[k] of x."""

    name = "transpose"

    def infer(self, x: Type, *, axes: tuple[int, ...]) -> Type:
        if sorted(axes) != list(range(x.rank)):
            raise RuleError("axes don't match array", code="E304")
        return x.with_shape(tuple(x.shape[a] for a in axes))

    def is_identity(self, x: Type, *, axes: tuple[int, ...]) -> bool:
        return axes == tuple(range(x.rank))

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.transpose(x, axes)[()]

    def transpose(self, ct: Value, x: Value, *, axes: tuple[int, ...]) -> Value:
        return ops.transpose(ct, axes=tuple(axes.index(k) for k in range(len(axes))))

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axes: tuple[int, ...], **params: Any) -> Value:
        return ops.transpose(args[0], axes=(0, *(a + 1 for a in axes)))

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, *, axes: tuple[int, ...],
                **params: Any) -> Value:
        return at(0, [index[axes.index(k)] for k in range(len(axes))])

    def simplify(self, args: Sequence[Value], *, axes: tuple[int, ...], **params: Any) -> Value | None:
        before = definition(args[0])
        if before is not None and before.op is self:
            return ops.transpose(before.args[0], axes=tuple(before.params["axes"][a] for a in axes))
        return super().simplify(args, axes=axes)

    def view(self, types: Sequence[Type], params: dict[str, Any]) -> str | None:
        axes = params["axes"]
        return "{0}.T" if axes == tuple(range(len(axes)))[::-1] else f"permuted({{0}}, {axes})"

    def lies_along(self, types: Sequence[Type], *, axes: tuple[int, ...], **params: Any) -> tuple[int, ...]:
        return tuple(axes.index(k) for k in range(len(axes)))

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], **params: Any) -> Any:
        return args

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.transpose(x, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(2, 3), axes=(1, 0)), sample(grid(2, 3, 4), axes=(2, 0, 1)),
                sample(grid(2, 3, 4), axes=(0, 2, 1)), sample(grid(1, 3), axes=(1, 0)), sample(grid(0, 3), axes=(1, 0)),
                sample(grid(2, 3, dtype="float32"), axes=(1, 0)), sample(np.arange(6).reshape(2, 3), axes=(1, 0))]


@register
class Reverse(Reindexing):
    """Backwards along `axes`."""

    name = "reverse"

    def infer(self, x: Type, *, axes: tuple[int, ...]) -> Type:
        if any(not 0 <= a < x.rank for a in axes):
            raise RuleError(f"axes {axes} of an array of {x.rank} axes", code="E304")
        return x

    def is_identity(self, x: Type, *, axes: tuple[int, ...]) -> bool:
        return all(x.shape[a] in (0, 1) for a in axes)

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.flip(x, axes)

    def transpose(self, ct: Value, x: Value, *, axes: tuple[int, ...]) -> Value:
        return ops.reverse(ct, axes=axes)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axes: tuple[int, ...], **params: Any) -> Value:
        return ops.reverse(args[0], axes=tuple(a + 1 for a in axes))

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, *, axes: tuple[int, ...],
                **params: Any) -> Value:
        return at(0, [size_value(types[0].shape[k] - 1) - i if k in axes else i for k, i in enumerate(index)])

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                axes: tuple[int, ...], **params: Any) -> Any:
        index = tuple(Span(d - 1, d, -1) if k in axes else Span(0, d) for k, d in enumerate(types[0].shape))
        return ops.load.in_room(room, args, types, index=index)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.reverse(x, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(4), axes=(0,)), sample(grid(2, 3), axes=(1,)), sample(grid(2, 3), axes=(0, 1)),
                sample(grid(2, 1, 3), axes=(0, 1)), sample(grid(0, 2), axes=(0, 1)),
                sample(grid(3, dtype="float32"), axes=(0,))]


@register
class Pad(Reindexing):
    """Zeros around and between: low[k] before, high[k] after, interior[k] between neighbours along axis k.

    Negative low or high cut elements off, after the interior zeros were put in.
    """

    name, masks = "pad", True

    def infer(self, x: Type, *, low: tuple[Any, ...], high: tuple[Any, ...], interior: tuple[int, ...]) -> Type:
        if not len(low) == len(high) == len(interior) == x.rank:
            raise RuleError(f"padding of {len(low)} axes for an array of {x.rank}")
        shape = tuple(self._spread(d, between) + before + after
                      for d, before, after, between in zip(x.shape, low, high, interior))
        if any(isinstance(d, int) and d < 0 for d in shape):
            raise RuleError(f"padding cuts more than there is: {x} by {low} and {high}")
        return x.with_shape(shape)

    @staticmethod
    def _spread(dim: Any, between: int) -> Any:
        return dim + maximum(dim - 1, 0) * between if between else dim

    def is_identity(self, x: Type, *, low: tuple[Any, ...], high: tuple[Any, ...], interior: tuple[int, ...]) -> bool:
        return all(a == 0 and b == 0 for a, b in zip(low, high)) and not any(interior)

    def keeps_splats(self, x: Type, *, low: tuple[Any, ...], high: tuple[Any, ...], interior: tuple[int, ...]) -> bool:
        return all(_certainly_at_most(a, 0) for a in (*low, *high)) and not any(interior)

    def reference(self, x: Any, *, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> Any:
        x = np.asarray(x)
        spread = tuple(self._spread(d, between) for d, between in zip(x.shape, interior))
        full = np.zeros(tuple(d + max(a, 0) + max(b, 0) for d, a, b in zip(spread, low, high)), x.dtype)
        full[tuple(slice(max(a, 0), max(a, 0) + d, between + 1)
                   for a, d, between in zip(low, spread, interior))] = x
        return full[tuple(slice(max(-a, 0), d - max(-b, 0)) for a, b, d in zip(low, high, full.shape))][()]

    def transpose(self, ct: Value, x: Value, *, low: tuple[Any, ...], high: tuple[Any, ...],
                  interior: tuple[int, ...]) -> Value:
        inner = ops.pad(ct, low=tuple(-d for d in low), high=tuple(-d for d in high), interior=(0,) * x.rank)
        if not any(interior):
            return inner
        return ops.load(inner, index=tuple(Span(0, d, between + 1) for d, between in zip(x.shape, interior)))

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, low: tuple[Any, ...], high: tuple[Any, ...],
              interior: tuple[int, ...], **params: Any) -> Value:
        return ops.pad(args[0], low=(0, *low), high=(0, *high), interior=(0, *interior))

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, *, low: tuple[Any, ...],
                high: tuple[Any, ...], interior: tuple[int, ...], **params: Any) -> Value:
        inside: Value | None = None
        inner: list[Value] = []
        for k, i in enumerate(index):
            i = shifted(i, -low[k])
            tests = []
            if interior[k]:
                tests.append(ops.equal(ops.remainder(i, interior[k] + 1), 0))
                tests.append(ops.greater_equal(i, 0))
                i = ops.floor_divide(i, interior[k] + 1)
                tests.append(ops.less(i, size_value(types[0].shape[k])))
            else:
                if not _certainly_at_most(low[k], 0):
                    tests.append(ops.greater_equal(i, 0))
                if not _certainly_at_most(high[k], 0):
                    tests.append(ops.less(i, size_value(types[0].shape[k])))
            inner.append(i)
            for test in tests:
                inside = test if inside is None else ops.logical_and(inside, test)
        if inside is None:
            return at(0, inner)
        return choose(inside, lambda: (at(0, inner),), lambda: (const(0, types[0].scalar),))[0]

    def pieces(self, types: Sequence[Type], *, low: tuple[Any, ...], high: tuple[Any, ...], interior: tuple[int, ...],
               **params: Any) -> Any:
        if not all(_certainly_at_most(-d, 0) for d in (*low, *high)):
            return None
        return 0, [(0, low, tuple(b + 1 for b in interior), tuple(range(len(low))))]

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                low: tuple[Any, ...], high: tuple[Any, ...], interior: tuple[int, ...], **params: Any) -> Any:
        """Zeros are behind the elements already."""
        if any(map(room.is_roomy, low)):
            return None
        (x,), axes = types, [k for k, d in enumerate(types[0].shape) if room.is_roomy(d)]
        if any(interior[k] for k in axes):
            return None
        return [room.filled(args[0], x, axes, const(0, x.scalar))]

    def stablehlo(self, h: Any, x: Any, *, low: tuple[int, ...], high: tuple[int, ...],
                  interior: tuple[int, ...]) -> Any:
        return h.pad(x, 0, low, high, interior)

    def samples(self) -> list[Sample]:
        return [sample(grid(3), low=(1,), high=(2,), interior=(0,)),
                sample(grid(4), low=(-1,), high=(-2,), interior=(0,)),
                sample(grid(3), low=(0,), high=(1,), interior=(2,)),
                sample(grid(4), low=(-1,), high=(-1,), interior=(1,)),
                sample(grid(2, 3), low=(0, 1), high=(1, -1), interior=(1, 0)),
                sample(grid(1, 2), low=(2, 0), high=(0, 1), interior=(1, 3)),
                sample(grid(0), low=(1,), high=(1,), interior=(2,)), sample(grid(), low=(), high=(), interior=()),
                sample(grid(2, dtype="float32"), low=(1,), high=(0,), interior=(0,))]


def part(x: Value, axis: int, start: Any, size: Any) -> Value:
    """`size` elements from `start` along the axis; both are dimensions, in range."""
    if start == 0 and size == x.shape[axis]:
        return x
    return ops.load(x, index=tuple(Span(start, size) if k == axis else Span(0, d) for k, d in enumerate(x.shape)))


def slot(x: Value, axis: int, place: Any) -> Value:
    """What is at `place` (a dimension, in range) along the axis, which disappears."""
    return ops.load(x, size_value(place), index=tuple(At() if k == axis else Span(0, d) for k, d in enumerate(x.shape)))


def shifted_along(x: Value, axis: int, fill: Any, *, reverse: bool) -> Value:
    """Each element moved one place on (back, if reverse) along the axis; `fill` at the place that is left."""
    length = x.shape[axis]
    if length == 1:
        return const(fill, x.type)
    step = tuple(int(k == axis) for k in range(x.rank))
    back = tuple(-k for k in step)
    moved = ops.pad(x, low=back if reverse else step, high=step if reverse else back, interior=(0,) * x.rank)
    if fill == 0:
        return moved
    place = ops.iota(shape=x.shape, axis=axis, dtype="int64")
    edge = size_value(length - 1) if reverse else int_const(0)
    return ops.select(ops.equal(place, edge), fill, moved)
