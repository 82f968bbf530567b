"""Operations that fold axes away: sum, prod, max, min, any, all, argmax, argmin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Value
from ..ir.types import Type
from .base import grid
from .families import Reduction, Sample, register, restore_axes, sample


def others(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(k for k in range(rank) if k not in axes)


@register
class Sum(Reduction):
    """Add along `axes`.  Nothing adds up to zero.  The dtype stays: NumPy's widening is made explicit before."""

    name = "sum"

    def __call__(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        (x,) = self.prepare(x)
        return x if not axes else super().__call__(x, axes=axes)

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.sum(x, axis=axes, dtype=x.dtype)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axes: tuple[int, ...],
            **params: Any) -> Value:
        (t,) = tangents
        return ops.sum(t, axes=axes)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axes: tuple[int, ...],
            **params: Any) -> list[Any]:
        return [restore_axes(ct, axes, args[0].shape)]

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return (const(0, x.scalar),)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        return (accumulators[0] + element,)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.reduce("add", x, 0, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(3), axes=(0,)), sample(grid(2, 3), axes=(0,)), sample(grid(2, 3), axes=(1,)),
                sample(grid(2, 3), axes=(0, 1)), sample(grid(2, 3, 4), axes=(0, 2)), sample(grid(1, 3), axes=(0,)),
                sample(grid(0, 3), axes=(0,)), sample(grid(3, 0), axes=(0,)), sample(grid(2, 3), axes=()),
                sample(grid(3, dtype="float32"), axes=(0,)), sample(np.arange(6).reshape(2, 3), axes=(1,))]
