"""Operations that make an array from sizes: iota, unit_vectors, size and empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const, int_const
from ..ir.nodes import Value
from ..ir.types import I64, Type
from .base import Sample, sample
from .families import Creation, Lowering, NoGradient, Op, RuleError, register


@register
class Iota(Creation):
    """Each element is its own index along `axis`."""

    name, lowering = "iota", Lowering.REINDEX

    def infer(self, *, shape: tuple[Any, ...], axis: int, dtype: str) -> Type:
        if not 0 <= axis < len(shape):
            raise RuleError(f"axis {axis} is out of bounds for array of dimension {len(shape)}", code="E304")
        return Type(dtype, tuple(shape))

    def reference(self, *, shape: tuple[int, ...], axis: int, dtype: str) -> Any:
        inner = tuple(d if k == axis else 1 for k, d in enumerate(shape))
        return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(inner), shape)

    def simplify(self, args: Sequence[Value], *, shape: tuple[Any, ...], axis: int, dtype: str,
                 **params: Any) -> Value | None:
        return const(0, Type(dtype, tuple(shape))) if shape[axis] == 1 else None

    def element(self, at: Callable[[int, Sequence[Value]], Value], index: Sequence[Value], types: Sequence[Type], /, *,
                shape: tuple[Any, ...], axis: int, dtype: str, **params: Any) -> Value:
        return index[axis] if dtype == "int64" else ops.convert(index[axis], dtype=dtype)

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], **params: Any) -> Any:
        return args

    def stablehlo(self, h: Any, *, shape: tuple[int, ...], axis: int, dtype: str) -> Any:
        return h.iota(Type(dtype, shape), axis)

    def samples(self) -> list[Sample]:
        return [sample(shape=(3,), axis=0, dtype="int64"), sample(shape=(2, 3), axis=0, dtype="float64"),
                sample(shape=(2, 3), axis=1, dtype="float32"), sample(shape=(2, 0), axis=0, dtype="int32"),
                sample(shape=(1,), axis=0, dtype="float64")]


@register
class UnitVectors(NoGradient, Op):
    """`count` unit vectors of `size` elements as rows, from number `first` (int64).  What Jacobians multiply by: a
    product with them picks, and multiplies nothing."""

    name, lowering = "unit_vectors", Lowering.REINDEX

    def infer(self, first: Type, *, count: Any, size: Any, dtype: str) -> Type:
        if first != I64:
            raise RuleError(f"{self.name} from {first}", kind=TypeError, code="E309")
        return Type(dtype, (count, size))

    def reference(self, first: Any, *, count: int, size: int, dtype: str) -> Any:
        return (np.arange(count)[:, None] + first == np.arange(size)).astype(dtype)

    def element(self, at: Callable[[int, Sequence[Value]], Value], index: Sequence[Value], types: Sequence[Type], /, *,
                dtype: str, **params: Any) -> Value:
        return ops.convert(ops.equal(index[0] + at(0, ()), index[1]), dtype=dtype)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, count: Any, size: Any, dtype: str,
              **params: Any) -> Value:
        shape = (args[0].shape[0], count, size)
        rows, columns = (ops.iota(shape=shape, axis=k, dtype="int64") for k in (1, 2))
        rows = rows + ops.broadcast(args[0], shape=shape, axes=(0,))
        return ops.convert(ops.equal(rows, columns), dtype=dtype)

    def stablehlo(self, h: Any, first: Any, *, count: int, size: int, dtype: str) -> Any:
        shape = Type("int64", (count, size))
        rows = h.op("add", h.iota(shape, 0), h.broadcast(first, shape.shape, ()))
        return h.convert(h.compare("EQ", rows, h.iota(shape, 1)), dtype)

    def samples(self) -> list[Sample]:
        return [sample(np.int64(0), count=3, size=3, dtype="float64"),
                sample(np.int64(2), count=2, size=5, dtype="float32"),
                sample(np.int64(0), count=0, size=0, dtype="float64"),
                sample(np.int64(1), count=1, size=3, dtype="complex128")]


@register
class Size(Creation):
    """A dimension as an int64 scalar; its source text is the dimension itself."""

    name, lowering = "size", Lowering.KERNEL

    def infer(self, *, dim: Any) -> Type:
        return I64

    def reference(self, *, dim: int) -> Any:
        return np.int64(dim)

    def simplify(self, args: Sequence[Value], *, dim: Any, **params: Any) -> Value | None:
        return int_const(dim) if isinstance(dim, int) else None

    def as_dimension(self, *, dim: Any, **params: Any) -> Any:
        return dim

    def kernel(self, types: Sequence[Type], params: dict[str, Any]) -> str:
        return str(params["dim"])

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *, dim: Any, **params: Any) -> Any:
        return room.length(dim)

    def stablehlo(self, h: Any, *, dim: int) -> Any:
        return h.constant(dim, I64)

    def samples(self) -> list[Sample]:
        return [sample(dim=3), sample(dim=0)]


@register
class Empty(Creation):
    """An array whose elements are all going to be stored.  The reference fills it with NaN, the largest integer or
    True, so that a read of an element that was not stored shows."""

    name, lowering, is_shareable, is_unset = "empty", Lowering.KERNEL, False, True

    def infer(self, *, shape: tuple[Any, ...], dtype: str) -> Type:
        return Type(dtype, tuple(shape))

    def reference(self, *, shape: tuple[int, ...], dtype: str) -> Any:
        kind = np.dtype(dtype).kind
        return np.full(shape, np.nan if kind in "fc" else np.iinfo(dtype).max if kind in "iu" else True, dtype)

    def kernel(self, types: Sequence[Type], params: dict[str, Any]) -> str:
        shape = "".join(f"{d}, " for d in params["shape"]).rstrip()
        return f"np.empty(({shape}), dtype=np.{params['dtype']}{'_' if params['dtype'] == 'bool' else ''})"

    def stablehlo(self, h: Any, *, shape: tuple[int, ...], dtype: str) -> Any:
        return h.constant(0, Type(dtype, shape))

    def samples(self) -> list[Sample]:
        return [sample(shape=(2, 3), dtype="float64"), sample(shape=(0,), dtype="int32"),
                sample(shape=(), dtype="bool")]
