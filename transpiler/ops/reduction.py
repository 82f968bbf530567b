"""Operations that fold axes away: sum, prod, max, min, any, all, argmax, argmin.

`axes` is a sorted tuple of non-negative ints.  Folding no axes at all gives the argument itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import product
from ..ir.nodes import Const, Value
from ..ir.types import BOOL, I64, Type
from .base import definition, grid, times
from .families import NoGradient, Reduction, RuleError, Sample, register, restore_axes, sample
from .shape import axis_groups, shifted_along


def remaining_axes(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that are not folded."""
    return tuple(k for k in range(rank) if k not in axes)


class Fold(Reduction):
    """A reduction whose result has the dtype of its argument."""

    def __call__(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        (x,) = self.prepare(x)
        return x if not axes else super().__call__(x, axes=axes)

    def simplify(self, args: Sequence[Value], *, axes: tuple[int, ...], **params: Any) -> Value | None:
        """A fold over whole groups of axes that were only merged, split or moved is one over the axes before that."""
        before = definition(args[0])
        if not axes:
            return args[0]
        if before is None or before.op not in (ops.reshape, ops.transpose):
            return None
        x, left = before.args[0], tuple(d for k, d in enumerate(args[0].shape) if k not in axes)
        if before.op is ops.transpose:
            order = before.params["axes"]
            kept = [order[k] for k in remaining_axes(len(order), axes)]
            return self(x, axes=tuple(sorted(order[k] for k in axes))) if kept == sorted(kept) else None
        folded: list[int] = []
        for sources, targets in axis_groups(x.shape, args[0].shape):
            inside = [k in axes for k in targets]
            if any(inside) and not all(inside):
                return None
            if any(inside):
                folded += sources
        return ops.reshape(self(x, axes=tuple(sorted(folded))), shape=left)


@register
class Sum(Fold):
    """Add along `axes`.  Nothing adds up to zero.  The dtype stays: NumPy's widening is made explicit before."""

    name, masks, is_sum = "sum", False, True

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
        return (ops.accumulate(accumulators[0], element),)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.reduce("add", x, 0, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(3), axes=(0,)), sample(grid(2, 3), axes=(0,)), sample(grid(2, 3), axes=(1,)),
                sample(grid(2, 3), axes=(0, 1)), sample(grid(2, 3, 4), axes=(0, 2)), sample(grid(1, 3), axes=(0,)),
                sample(grid(0, 3), axes=(0,)), sample(grid(3, 0), axes=(0,)), sample(grid(2, 3), axes=()),
                sample(grid(3, dtype="float32"), axes=(0,)), sample(np.arange(6).reshape(2, 3), axes=(1,))]


@register
class Prod(Fold):
    """Multiply along `axes`.  Nothing multiplies to one.  The derivative multiplies the other elements, it never
    divides, so it is right where elements are zero."""

    name, masks = "prod", False

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.prod(x, axis=axes, dtype=x.dtype)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axes: tuple[int, ...],
            **params: Any) -> Value:
        (t,) = tangents
        return ops.sum(times(t, product_of_others(args[0], axes), singular=False), axes=axes)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axes: tuple[int, ...],
            **params: Any) -> list[Any]:
        (x,) = args
        return [times(restore_axes(ct, axes, x.shape), product_of_others(x, axes), singular=False)]

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return (const(1, x.scalar),)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        return (accumulators[0] * element,)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.reduce("multiply", x, 1, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(4), axes=(0,)), sample(grid(2, 3), axes=(0,)), sample(grid(2, 3), axes=(1,)),
                sample(grid(2, 3), axes=(0, 1)), sample(grid(2, 3, 2), axes=(0, 2)), sample(grid(1, 3), axes=(0,)),
                sample(np.array([2.0, 0.0, 3.0]), axes=(0,)), sample(np.array([[2.0, 0.0], [0.0, 0.0]]), axes=(1,)),
                sample(grid(0, 3), axes=(0,)), sample(grid(3, 0), axes=(0,)),
                sample(grid(3, dtype="float32"), axes=(0,)), sample(np.arange(1, 7).reshape(2, 3), axes=(1,))]


def product_of_others(x: Value, axes: tuple[int, ...]) -> Value:
    """For each element, the product of all others along `axes`: what is before it times what is after it."""
    kept = remaining_axes(x.rank, axes)
    order = (*kept, *axes)
    shape = tuple(x.shape[k] for k in kept)
    count = product(x.shape[k] for k in axes)
    if count in (0, 1):
        return const(1, x.type)
    rows = ops.reshape(ops.transpose(x, axes=order), shape=(*shape, count))
    last = rows.rank - 1
    before, after = (shifted_along(ops.cumprod(rows, axis=last, reverse=reverse), last, 1, reverse=reverse)
                     for reverse in (False, True))
    back = ops.reshape(before * after, shape=tuple(x.shape[k] for k in order))
    return ops.transpose(back, axes=tuple(order.index(k) for k in range(x.rank)))


class Extremum(Fold):
    """The largest or smallest element along `axes`.  NaN wins.  Equal extrema share the derivative equally."""

    better: ClassVar[str]               # the binary operation
    function: ClassVar[Callable[..., Any]]

    def infer(self, x: Type, *, axes: tuple[int, ...], **params: Any) -> Type:
        if x.kind == "c":
            raise RuleError(f"{self.name} of complex numbers is not supported", kind=TypeError, code="E309",
                            help="compare np.abs(x) or np.real(x)")
        if any(x.shape[k] == 0 for k in axes):
            raise RuleError(f"zero-size array to reduction operation {self.better} which has no identity")
        return super().infer(x, axes=axes)

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return type(self).function(x, axis=axes)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axes: tuple[int, ...],
            **params: Any) -> Value:
        (t,) = tangents
        chosen, count = self._ties(args[0], result, axes)
        return ops.sum(ops.select(chosen, t, 0), axes=axes) / count

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axes: tuple[int, ...],
            **params: Any) -> list[Any]:
        (x,) = args
        chosen, count = self._ties(x, result, axes)
        return [ops.select(chosen, restore_axes(ct / count, axes, x.shape), 0)]

    @staticmethod
    def _ties(x: Value, result: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
        """Where the result comes from, and from how many elements.  NaN comes from nowhere: its derivative is 0."""
        chosen = ops.equal(x, restore_axes(result, axes, x.shape))
        return chosen, ops.maximum(ops.sum(ops.convert(chosen, dtype=x.dtype), axes=axes), 1)

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return (identity_of(self.name, x),)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        name = self.better if element.dtype != "bool" else "logical_or" if self.name == "max" else "logical_and"
        return (getattr(ops, name)(accumulators[0], element),)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        name = self.better if x.type.dtype != "bool" else "or" if self.name == "max" else "and"
        return h.reduce(name, x, identity_of(self.name, x.type).value, axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(4), axes=(0,)), sample(grid(2, 3), axes=(0,)), sample(grid(2, 3), axes=(1,)),
                sample(grid(2, 3), axes=(0, 1)), sample(grid(2, 3, 2), axes=(0, 2)), sample(grid(1, 3), axes=(0,)),
                sample(grid(0, 3), axes=(1,)), sample(grid(3, dtype="float32"), axes=(0,)),
                sample(np.array([1.0, 2.0, 2.0, 1.0, 1.0]), axes=(0,), corner=True),
                sample(np.array([-np.inf, -np.inf]), axes=(0,), corner=True),
                sample(np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, np.inf]]), axes=(1,), corner=True),
                sample(np.arange(6).reshape(2, 3), axes=(1,)), sample(np.array([True, False]), axes=(0,))]


def identity_of(name: str, x: Type) -> Const:
    """What changes no maximum ("max") or minimum ("min") of the dtype."""
    low = name == "max"
    if x.kind == "f":
        return const(-np.inf if low else np.inf, x.scalar)
    if x.kind == "b":
        return const(not low, x.scalar)
    return const(np.iinfo(x.dtype).min if low else np.iinfo(x.dtype).max, x.scalar)


@register
class Max(Extremum):
    """The largest element along `axes`.  NaN wins.  Equal ones share the derivative equally."""

    name, better, function = "max", "maximum", staticmethod(np.max)


@register
class Min(Extremum):
    """The smallest element along `axes`.  NaN wins.  Equal ones share the derivative equally."""

    name, better, function = "min", "minimum", staticmethod(np.min)


class Truth(NoGradient, Fold):
    """Fold bools."""

    joins: ClassVar[str]                # the binary operation
    start: ClassVar[bool]

    def infer(self, x: Type, *, axes: tuple[int, ...], **params: Any) -> Type:
        if x.dtype != "bool":
            raise RuleError(f"{self.name} takes bools, not {x.dtype}", kind=TypeError)
        return super().infer(x, axes=axes)

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return (const(self.start, BOOL),)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        return (getattr(ops, f"logical_{self.joins}")(accumulators[0], element),)

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return h.reduce(self.joins, x, self.start, axes)

    def samples(self) -> list[Sample]:
        x = np.array([[True, False, True], [False, False, False], [True, True, True]])
        return [sample(x, axes=(0,)), sample(x, axes=(1,)), sample(x, axes=(0, 1)), sample(x[:, :1], axes=(1,)),
                sample(x[:0], axes=(0,)), sample(x[:0], axes=(1,))]


@register
class AnyTrue(Truth):
    """Whether one element along `axes` is true."""

    name, joins, start = "any", "or", False

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.any(x, axis=axes)


@register
class AllTrue(Truth):
    """Whether every element along `axes` is true."""

    name, joins, start = "all", "and", True

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.all(x, axis=axes)


class Position(NoGradient, Reduction):
    """Index of the extremum along the one axis in `axes`: the first of equal ones, the first NaN if there is one."""

    extremum: ClassVar[str]             # "max" or "min"
    closer: ClassVar[str]               # comparison that says an element replaces the best so far
    function: ClassVar[Callable[..., Any]]

    def infer(self, x: Type, *, axes: tuple[int, ...], **params: Any) -> Type:
        (axis,) = axes
        if x.kind == "c":
            raise RuleError(f"{self.name} of complex numbers is not supported", kind=TypeError, code="E309",
                            help="compare np.abs(x) or np.real(x)")
        if x.shape[axis] == 0:
            raise RuleError(f"attempt to get {self.name} of an empty sequence")
        return super().infer(x, axes=axes).with_dtype("int64")

    def reference(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return type(self).function(x, axis=axes[0])

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        return identity_of(self.extremum, x), const(0, I64)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        best, position = accumulators
        closer = getattr(ops, self.closer)(element, best)
        if element.type.kind == "f":
            closer = ops.logical_or(closer, ops.logical_and(ops.isnan(element), ops.logical_not(ops.isnan(best))))
        return ops.select(closer, element, best), ops.select(closer, index[0], position)

    def finish(self, accumulators: Sequence[Value], **params: Any) -> Value:
        return accumulators[1]

    def stablehlo(self, h: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        (axis,) = axes
        if x.type.dtype == "bool":
            x = h.convert(x, "int32")
        bound = identity_of(self.extremum, x.type).value
        best = h.reduce("maximum" if self.extremum == "max" else "minimum", x, bound, axes)
        best = h.broadcast(best, x.type.shape, remaining_axes(x.type.rank, axes))
        found = h.compare("EQ", x, best)
        if x.type.kind == "f":
            found = h.op("or", found, h.compare("NE", x, x))
        places = h.iota(Type("int64", x.type.shape), axis)
        return h.reduce("minimum", h.select(found, places, h.constant(x.type.shape[axis], places.type)),
                        x.type.shape[axis], axes)

    def samples(self) -> list[Sample]:
        return [sample(grid(4), axes=(0,)), sample(grid(2, 3), axes=(0,)), sample(grid(2, 3), axes=(1,)),
                sample(grid(2, 3, 2), axes=(1,)), sample(grid(1, 3), axes=(0,)), sample(grid(0, 3), axes=(1,)),
                sample(np.array([1.0, 2.0, 2.0, 1.0]), axes=(0,)), sample(np.array([-np.inf, -np.inf]), axes=(0,)),
                sample(np.array([[1.0, np.nan, np.nan], [np.inf, 1.0, np.inf]]), axes=(1,)),
                sample(grid(3, dtype="float32"), axes=(0,)), sample(np.array([3, 1, 3]), axes=(0,)),
                sample(np.array([False, True, True]), axes=(0,))]


@register
class ArgMax(Position):
    """Index of the largest element along the one axis in `axes`: the first of equal ones, or the first NaN."""

    name, extremum, closer, function = "argmax", "max", "greater", staticmethod(np.argmax)


@register
class ArgMin(Position):
    """Index of the smallest element along the one axis in `axes`: the first of equal ones, or the first NaN."""

    name, extremum, closer, function = "argmin", "min", "less", staticmethod(np.argmin)
