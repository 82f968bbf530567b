"""Marks: one int64 beside each number, whose 64 bits say which groups of inputs the number depends on.

`transforms.marking` carries marks through a function as forward mode carries tangents; each op's `mark` says how.
Where an element depends on several, its mark is their union (bitwise or), so it tells all that it may depend on, and
never less.  Dependence is that of derivatives: what is piecewise constant depends on nothing.

A rule may tell more than there is (both sides of a `where`), which keeps it from depending on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const, for_loop, int_const, size_value
from ..ir.dims import product
from ..ir.index import At, Span
from ..ir.nodes import Const, Value
from ..ir.types import Type
from .families import NoGradient, RuleError, Sample, register, sample
from .reduction import Fold


@register
class Union(NoGradient, Fold):
    """The bitwise or of integers along `axes`; 0 of nothing."""

    name = "union"

    def infer(self, x: Type, *, axes: tuple[int, ...], **params: Any) -> Type:
        if x.kind not in "iu":
            raise RuleError(f"{self.name} takes integers, not {x.dtype}", kind=TypeError)
        return super().infer(x, axes=axes)

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.bitwise_or.reduce(x, axis=axes)

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return (const(0, x.scalar),)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        return (ops.bitwise_or(accumulators[0], element),)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.reduce("or", x, 0, axes)

    def samples(self) -> list[Sample]:
        bits = np.array([[1, 2, 4], [8, 1, 0]])
        return [sample(bits[0], axes=(0,)), sample(bits, axes=(0,)), sample(bits, axes=(1,)),
                sample(bits, axes=(0, 1)), sample(bits[:, :1], axes=(1,)), sample(np.zeros((0, 3), int), axes=(0,)),
                sample(np.array([1, -2**63]), axes=(0,)), sample(bits.astype(np.uint8), axes=(0,))]

    # --- what rules for marks are written with ---------------------------------------------------------------------

    def of(self, marks: Sequence[Value | None]) -> Value | None:
        """The union of marks of one shape."""
        found: Value | None = None
        for mark in marks:
            if mark is not None:
                found = mark if found is None else ops.bitwise_or(found, mark)
        return found

    def of_all(self, marks: Sequence[Value | None]) -> Value:
        """The union of all elements of all, as one number."""
        parts = [self.along(mark, tuple(range(mark.rank))) for mark in marks if mark is not None]
        found = self.of(parts)
        return int_const(0) if found is None else found

    def along(self, mark: Value, axes: tuple[int, ...]) -> Value:
        """The union along `axes`, which disappear."""
        if isinstance(mark, Const):
            return Const(mark.value, self.infer(mark.type, axes=axes))
        return self(mark, axes=axes)

    def over(self, mark: Value, shape: tuple[Any, ...], axes: tuple[int, ...]) -> Value:
        """Marks copied over a shape in which their own axes are `axes`."""
        return ops.broadcast(mark, shape=tuple(shape), axes=axes)

    def coupled(self, mark: Value, axes: tuple[int, ...]) -> Value:
        """Each element with the union along `axes`."""
        kept = tuple(k for k in range(mark.rank) if k not in axes)
        return self.over(self.along(mark, axes), mark.shape, kept)

    def running(self, mark: Value, axis: int, reverse: bool) -> Value:
        """Each element with the union of those up to it along the axis."""
        length = mark.shape[axis]
        if isinstance(mark, Const) or (isinstance(length, int) and length < 2):
            return mark
        at = tuple(At() if k == axis else Span(0, d) for k, d in enumerate(mark.shape))

        def step(number: Value, whole: Value) -> list[Value]:
            here = ops.subtract(size_value(length - 1), number) if reverse else number
            before = here + 1 if reverse else here - 1
            joined = ops.bitwise_or(ops.load(whole, before, index=at), ops.load(whole, here, index=at))
            return [ops.store(whole, joined, here, index=at)]

        return for_loop(int_const(1), size_value(length), [mark], step)[0]

    def scattered(self, mark: Value, added: Value, indices: Sequence[Value], axes: tuple[int, ...]) -> Value:
        """Marks with `added` joined to those at index arrays, one place after the other."""
        count = product(indices[0].shape)
        rest = tuple(d for k, d in enumerate(mark.shape) if k not in axes)
        flat = [ops.reshape(i, shape=(count,)) for i in indices]
        added = ops.reshape(added, shape=(count, *rest))
        at = tuple(At() if k in axes else Span(0, d) for k, d in enumerate(mark.shape))
        order = sorted(range(len(axes)), key=lambda k: axes[k])

        def step(number: Value, whole: Value) -> list[Value]:
            place = [ops.load(flat[k], number, index=(At(),)) for k in order]
            more = ops.load(added, number, index=(At(), *(Span(0, d) for d in rest)))
            joined = ops.bitwise_or(ops.load(whole, *place, index=at), more)
            return [ops.store(whole, joined, *place, index=at)]

        return for_loop(int_const(0), size_value(count), [mark], step)[0]
