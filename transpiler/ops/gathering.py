"""Reading and writing by index arrays: gather, scatter, scatter_add.

gather(x, *indices; axes) reads x at int64 index arrays of one shape I, one for each of the distinct `axes` of x: the
result has the shape I, then the axes of x that are not indexed, in order.  The writing operations take a `v` of that
shape.  Indices are in range and non-negative, which whoever makes them has checked.  Places may repeat: scatter_add
adds all, and in scatter the last one in C order of I wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import same_size
from ..ir.nodes import Const, Value, Var
from ..ir.types import Type
from .base import batch_size, grid, marks_of
from .families import Into, Linear, Lowering, Op, RuleError, Sample, broadcast_to, register, sample
from .shape import Reader

Axes = tuple[int, ...]


def rest_of(rank: int, axes: Axes) -> Axes:
    """The axes that are not indexed."""
    return tuple(k for k in range(rank) if k not in axes)


def gathered_shape(name: str, x: Type, indices: Sequence[Type], axes: Axes) -> tuple[Any, ...]:
    if not indices or len(indices) != len(axes) or len(set(axes)) != len(axes) or any(
            not 0 <= a < x.rank for a in axes):
        raise RuleError(f"{name}: {len(indices)} index arrays for the axes {axes} of {x}", kind=IndexError, code="E306")
    for i in indices:
        if i.dtype != "int64" or i.rank != indices[0].rank or any(
                not same_size(a, b) for a, b in zip(i.shape, indices[0].shape)):
            raise RuleError(f"{name}: index arrays of types {', '.join(map(str, indices))}", kind=IndexError,
                            code="E306")
    return (*indices[0].shape, *(x.shape[k] for k in rest_of(x.rank, axes)))


def numpy_places(x: Any, indices: Sequence[Any], axes: Axes) -> tuple[Any, ...]:
    """Index arrays for x with the indexed axes first, in C order, since NumPy assigns in the order of their memory;
    IndexError where one is out of range."""
    for i, axis in zip(indices, axes):
        if np.size(i) and not (np.min(i) >= 0 and np.max(i) < x.shape[axis]):
            raise IndexError(f"index is out of bounds for axis {axis} with size {x.shape[axis]}")
    return tuple(np.asarray(i, order="C") for i in indices)


def place_of(at: Reader, index: Sequence[Value], first: int, types: Sequence[Type], axes: Axes) -> tuple[Value, ...]:
    """Where in argument 0 the element `index` of the gathered array lies; index arrays begin at argument `first`."""
    depth = types[first].rank
    found = {axis: at(first + k, tuple(index[:depth])) for k, axis in enumerate(axes)}
    found.update(zip(rest_of(types[0].rank, axes), index[depth:]))
    return tuple(found[axis] for axis in range(types[0].rank))


def own_example(indices: Sequence[Value], batched: Sequence[bool], axes: Axes, size: Any) -> tuple[
        list[Value], Axes]:
    """Index arrays (size, *I) with one in front that says which example it is, for x with the batch axis first."""
    shape = next(i.shape[1:] for i, b in zip(indices, batched) if b)
    found = [i if b else broadcast_to(i, (size, *shape)) for i, b in zip(indices, batched)]
    return [ops.iota(shape=(size, *shape), axis=0, dtype="int64"), *found], (0, *(a + 1 for a in axes))


@register
class Gather(Linear):
    """x at index arrays: shape I, then the axes that are not indexed.  Its cotangent is added in place."""

    name, masks, checked_kinds = "gather", True, "biufc"
    lowering = Lowering.REINDEX

    def __call__(self, x: Any, *indices: Any, axes: Axes) -> Any:
        (x,) = self.prepare(x)
        if isinstance(x, Const):
            return Const(x.value, self.infer(x.type, *(i.type for i in indices), axes=axes))
        return super().__call__(x, *indices, axes=axes)

    def infer(self, x: Type, *indices: Type, axes: Axes) -> Type:
        return x.with_shape(gathered_shape(self.name, x, indices, axes))

    def reference(self, x: Any, *indices: Any, axes: Axes) -> Any:
        places = numpy_places(x, indices, axes)
        return np.transpose(x, (*axes, *rest_of(x.ndim, axes)))[places]

    def transpose(self, ct: Value, x: Value, *indices: Value, axes: Axes) -> Into:
        return Into(lambda adjoint: ops.scatter_add(adjoint, ct, *indices, axes=axes))

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axes: Axes, **params: Any) -> Value:
        x, *indices = args
        size = batch_size(args, batched)
        if not any(batched[1:]):
            depth = indices[0].rank
            found = ops.gather(x, *indices, axes=tuple(a + 1 for a in axes))
            return ops.transpose(found, axes=(depth, *range(depth), *range(depth + 1, found.rank)))
        arrays, wider = own_example(indices, batched[1:], axes, size)
        if batched[0]:
            return ops.gather(x, *arrays, axes=wider)
        return ops.gather(x, *arrays[1:], axes=axes)

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, **params: Any) -> Value:
        return at(0, place_of(at, index, 1, types, params["axes"]))

    def copies_along(self, types: Sequence[Type], *, axes: Axes, **params: Any) -> tuple[int, ...]:
        return tuple(range(types[1].rank))

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], **params: Any) -> Any:
        return args

    def stablehlo(self, h: Any, x: Any, *indices: Any, axes: Axes) -> Any:
        return h.gather(x, list(indices), axes)

    def samples(self) -> list[Sample]:
        return [sample(x, *indices, axes=axes) for x, indices, axes in _samples()]


def _samples() -> list[tuple[Any, tuple[Any, ...], Axes]]:
    repeats, table = np.array([2, 0, 2]), np.array([[1, 0], [3, 1]])
    return [
        (grid(4), (repeats,), (0,)),
        (grid(4), (table,), (0,)),
        (grid(3, 4), (repeats,), (0,)),
        (grid(3, 4), (table,), (1,)),
        (grid(3, 4), (repeats, np.array([1, 3, 1])), (0, 1)),
        (grid(3, 4), (np.array([3, 1, 3]), repeats), (1, 0)),
        (grid(2, 3, 4), (np.array([1, 0, 1]), repeats), (0, 2)),
        (grid(2, 3, 4), (np.int64(2),), (1,)),
        (grid(3), (np.array([], np.int64),), (0,)),
        (grid(2, 0), (np.array([1, 1]),), (0,)),
        (grid(1), (np.zeros((1, 1), np.int64),), (0,)),
        (grid(4, dtype="float32"), (repeats,), (0,)),
        (np.arange(4), (repeats,), (0,)),
    ]


class ArrayWrite(Op):
    """Argument 1 put into argument 0 at index arrays."""

    masks = True
    checked_kinds = "biufc"
    lowering = Lowering.SCATTER
    hlo: ClassVar[str]

    def __call__(self, x: Any, v: Any, *indices: Any, axes: Axes) -> Any:
        (x,) = self.prepare(x)
        if not isinstance(v, (Var, Const)):
            v = const(v, x.type.scalar)
        v = broadcast_to(v, gathered_shape(self.name, x.type, [i.type for i in indices], axes))
        return super().__call__(x, v, *indices, axes=axes)

    def hint(self, args: Sequence[Value]) -> str:
        return args[0].name if isinstance(args[0], Var) else "t"

    def infer(self, x: Type, v: Type, *indices: Type, axes: Axes) -> Type:
        region = gathered_shape(self.name, x, indices, axes)
        if v.dtype != x.dtype or v.rank != len(region) or any(
                not same_size(a, b) for a, b in zip(v.shape, region)):
            raise RuleError(f"{self.name}: {v} does not fit in {x.with_shape(region)}", kind=ValueError, code="E208")
        return x

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axes: Axes,
            **params: Any) -> Value:
        x, v = (const(0, a.type) if t is None else t for t, a in zip(tangents, args[:2]))
        return self(x, v, *args[2:], axes=axes)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axes: Axes, **params: Any) -> Value:
        size = batch_size(args, batched)
        x, v = (a if b else broadcast_to(a, (size, *a.shape)) for a, b in zip(args[:2], batched))
        indices = args[2:]
        if any(batched[2:]):
            arrays, wider = own_example(indices, batched[2:], axes, size)
            return self(x, v, *arrays, axes=wider)
        depth = indices[0].rank
        v = ops.transpose(v, axes=(*range(1, depth + 1), 0, *range(depth + 1, v.rank)))
        return self(x, v, *indices, axes=tuple(a + 1 for a in axes))

    def place(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, **params: Any) -> tuple[Value, ...]:
        return place_of(at, index, 2, types, params["axes"])

    def stablehlo(self, h: Any, x: Any, v: Any, *indices: Any, axes: Axes) -> Any:
        return h.scatter(x, v, list(indices), axes, self.hlo)

    def samples(self) -> list[Sample]:
        found = []
        for x, indices, axes in _samples():
            shape = (*np.shape(indices[0]), *(x.shape[k] for k in rest_of(x.ndim, axes)))
            found.append(sample(x, np.asarray(grid(*shape, seed=9)).astype(x.dtype)[()], *indices, axes=axes))
        return found


@register
class ScatterAdd(ArrayWrite):
    """x with v added at index arrays; what falls on one place is added up."""

    name, hlo, adds, masks = "scatter_add", "add", True, False
    additive = (0,)

    def reference(self, x: Any, v: Any, *indices: Any, axes: Axes) -> Any:
        places = numpy_places(x, indices, axes)
        result = np.array(x)
        np.add.at(np.transpose(result, (*axes, *rest_of(x.ndim, axes))), places, v)
        return result

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
             axes: Axes, **params: Any) -> Any:
        x, v, *indices = marks_of(marks, args)
        return ops.union.scattered(x, v, indices, axes)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axes: Axes,
            **params: Any) -> list[Any]:
        indices = args[2:]
        return [ct if wanted[0] else None, ops.gather(ct, *indices, axes=axes) if wanted[1] else None,
                *[None] * len(indices)]

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], **params: Any) -> Any:
        """Nothing is added where there are no positions."""
        v = room.filled(args[1], types[1], range(types[1].rank), const(0, types[1].scalar))
        return [args[0], v, *args[2:]]


@register
class Scatter(ArrayWrite):
    """x with the elements at index arrays replaced by v; where places repeat the last one wins, and it alone gets
    the cotangent."""

    name, hlo, adds = "scatter", "replace", False

    def reference(self, x: Any, v: Any, *indices: Any, axes: Axes) -> Any:
        places = numpy_places(x, indices, axes)
        result = np.array(x)
        np.transpose(result, (*axes, *rest_of(x.ndim, axes)))[places] = np.asarray(v, order="C")
        return result

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axes: Axes,
            **params: Any) -> list[Any]:
        x, v, *indices = args
        d_v = None
        if wanted[1]:                              # read first: the write may then be in place
            won = broadcast_front(last_writers(x, indices, axes), v.shape)
            d_v = ops.select(won, ops.gather(ct, *indices, axes=axes), const(0, v.type))
        d_x = ops.scatter(ct, 0, *indices, axes=axes) if wanted[0] else None
        return [d_x, d_v, *[None] * len(indices)]


def broadcast_front(x: Value, shape: tuple[Any, ...]) -> Value:
    """x copied along new last axes."""
    return ops.broadcast(x, shape=shape, axes=tuple(range(x.rank)))


def last_writers(x: Value, indices: Sequence[Value], axes: Axes) -> Value:
    """bool, shape I: whether no later index falls on the same place."""
    shape = indices[0].shape
    number: Value = const(0, Type("int64", shape))
    for axis, dim in enumerate(shape):                  # the position in C order of I
        along = ops.iota(shape=shape, axis=axis, dtype="int64")
        number = along if axis == 0 else number * broadcast_to(ops.size(dim=dim), shape) + along
    places = Type("int64", tuple(x.shape[a] for a in axes))
    order = tuple(range(len(axes)))
    winner = ops.scatter(const(0, places), number, *indices, axes=order)
    return ops.equal(ops.gather(winner, *indices, axes=order), number)
