"""Operations that put several arrays together, concatenate and stack, and NumPy's ways of joining and splitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import choose, const, size_value
from ..ir.dims import same_size
from ..ir.index import Span
from ..ir.nodes import Const, Value
from ..ir.types import Type
from .base import batch_all, grid
from .families import Lowering, Op, RuleError, Sample, register, sample
from .shape import Reader, shifted, slot


class Joining(Op):
    """Several arrays of one dtype side by side: linear in all of them together."""

    lowering = Lowering.REINDEX
    masks = False

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Value:
        return self(*(const(0, x.type) if t is None else t for t, x in zip(tangents, args)), **params)

    def _pick(self, i: Value, starts: Sequence[Any], read: Callable[[int], Value]) -> Value:
        """`read(k)` for the k of the last start that is not after i; decided by halving."""
        if len(starts) == 1:
            return read(0)
        half = len(starts) // 2
        if isinstance(i, Const) and isinstance(starts[half], int):
            before = i.value < starts[half]
            return self._pick(i, starts[:half] if before else starts[half:],
                              read if before else lambda k: read(k + half))
        return choose(ops.less(i, size_value(starts[half])), lambda: (self._pick(i, starts[:half], read),),
                      lambda: (self._pick(i, starts[half:], lambda k: read(k + half)),))[0]


@register
class Concatenate(Joining):
    """Arrays of one dtype after each other along `axis`; their other sizes are equal."""

    name = "concatenate"

    def __call__(self, *args: Any, **params: Any) -> Any:
        values = self.prepare(*args)
        if len(values) == 1:
            self.infer(values[0].type, **params)
            return values[0]
        return super().__call__(*values, **params)

    def infer(self, *xs: Type, axis: int) -> Type:
        if not xs:
            raise RuleError("need at least one array to concatenate")
        first = xs[0]
        if not 0 <= axis < first.rank:
            raise RuleError(f"axis {axis} is out of bounds for array of dimension {first.rank}", code="E304")
        shape = list(first.shape)
        for number, x in enumerate(xs[1:], 1):
            if x.rank != first.rank or x.dtype != first.dtype:
                raise RuleError(f"concatenate of {first} and {x}", code="E301")
            for k, (a, b) in enumerate(zip(shape, x.shape)):
                if k == axis:
                    shape[k] = a + b
                elif not same_size(a, b):
                    raise RuleError(
                        "all the input array dimensions except for the concatenation axis must match exactly, but "
                        f"along dimension {k}, the array at index 0 has size {a} and the array at index {number} has "
                        f"size {b}",
                        code="E301")
                elif isinstance(b, int):
                    shape[k] = b
        return first.with_shape(tuple(shape))

    def reference(self, *xs: Any, axis: int) -> Any:
        return np.concatenate(xs, axis)

    @staticmethod
    def _starts(sizes: Sequence[Any]) -> list[Any]:
        starts: list[Any] = [0]
        for size in sizes:
            starts.append(starts[-1] + size)
        return starts

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axis: int,
            **params: Any) -> list[Any]:
        starts = self._starts([x.shape[axis] for x in args])
        return [ops.load(ct, index=tuple(Span(start if k == axis else 0, d) for k, d in enumerate(x.shape)))
                if want else None for x, start, want in zip(args, starts, wanted)]

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axis: int, **params: Any) -> Value:
        return ops.concatenate(*batch_all(args, batched), axis=axis + 1)

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, *, axis: int,
                **params: Any) -> Value:
        starts = self._starts([t.shape[axis] for t in types])
        kept = [k for k, t in enumerate(types) if t.shape[axis] != 0] or [0]

        def read(place: int) -> Value:
            k = kept[place]
            return at(k, [shifted(i, -starts[k]) if a == axis else i for a, i in enumerate(index)])

        return self._pick(index[axis], [starts[k] for k in kept], read)

    def pieces(self, types: Sequence[Type], *, axis: int, **params: Any) -> Any:
        rank = types[0].rank
        starts = self._starts([t.shape[axis] for t in types])
        return None, [(k, tuple(starts[k] if a == axis else 0 for a in range(rank)), (1,) * rank, tuple(range(rank)))
                      for k in range(len(types))]

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                axis: int, **params: Any) -> Any:
        """Each written behind the one before, over what is there beyond its length."""
        kind = self.infer(*types, axis=axis)
        out: Value = const(0, kind.with_shape(tuple(map(room.most_of, kind.shape))))
        start: Any = 0
        for value, t in zip(args, types, strict=True):
            index = tuple(Span(None if k == axis else 0, d) for k, d in enumerate(value.shape))
            out = ops.store(out, value, room.length(start), index=index)
            start = start + t.shape[axis]
        return out

    def stablehlo(self, h: Any, *xs: Any, axis: int) -> Any:
        return h.concatenate(list(xs), axis)

    def samples(self) -> list[Sample]:
        return [sample(grid(2), grid(3, seed=1), axis=0), sample(grid(2, 3), grid(2, 1, seed=1), axis=1),
                sample(grid(1, 2), grid(3, 2, seed=1), grid(2, 2, seed=2), axis=0), sample(grid(2), grid(0), axis=0),
                sample(grid(3), axis=0), sample(grid(2, 2, 1), grid(2, 2, 2, seed=1), axis=2),
                sample(grid(2, dtype="float32"), grid(1, dtype="float32"), axis=0),
                sample(np.arange(2), np.arange(3), axis=0)]


@register
class Stack(Joining):
    """Arrays of one type side by side along a new leading axis."""

    name = "stack"

    def infer(self, *xs: Type) -> Type:
        if not xs:
            raise RuleError("need at least one array to stack")
        for x in xs[1:]:
            if x.dtype != xs[0].dtype or x.rank != xs[0].rank or any(
                    not same_size(a, b) for a, b in zip(x.shape, xs[0].shape)):
                raise RuleError("all input arrays must have the same shape", code="E301")
        return xs[0].with_shape((len(xs), *xs[0].shape))

    def reference(self, *xs: Any) -> Any:
        return np.stack(xs)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], **params: Any) -> list[Any]:
        return [slot(ct, 0, k) if want else None for k, want in enumerate(wanted)]

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Value:
        rank = max(a.rank - b for a, b in zip(args, batched))
        return ops.transpose(ops.stack(*batch_all(args, batched)), axes=(1, 0, *range(2, rank + 2)))

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, **params: Any) -> Value:
        return self._pick(index[0], range(len(types)), lambda k: at(k, list(index[1:])))

    def pieces(self, types: Sequence[Type], **params: Any) -> Any:
        rank = types[0].rank
        return None, [(k, (k, *(0,) * rank), (1,) * (rank + 1), tuple(range(1, rank + 1))) for k in range(len(types))]

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], **params: Any) -> Any:
        return args

    def stablehlo(self, h: Any, *xs: Any) -> Any:
        return h.concatenate([h.reshape(x, (1, *x.type.shape)) for x in xs], 0)

    def samples(self) -> list[Sample]:
        return [sample(grid(), grid(seed=1), grid(seed=2)), sample(grid(3), grid(3, seed=1)), sample(grid(2, 1)),
                sample(grid(0), grid(0)), sample(*(grid(2, seed=k) for k in range(5))),
                sample(grid(2, dtype="float32"), grid(2, seed=1, dtype="float32")), sample(np.arange(2), np.arange(2))]
