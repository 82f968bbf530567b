"""Operations that run along an axis: cumsum, cumprod, cummax, cummin and the recurrence that their derivatives need.

All take `axis` and `reverse` (from the last element to the first) and keep shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import ops
from ..ir.build import const, for_loop, int_const, size_value
from ..ir.dims import bounds, minimum
from ..ir.index import At
from ..ir.nodes import Value
from ..ir.types import Type
from .base import batch_all, grid, times
from .families import Linear, Lowering, Op, RuleError, Sample, register, sample
from .reduction import identity_of
from .shape import shifted_along

Combine = Callable[[Value, Sequence[Value]], Value]


class Scan(Op):
    """Each element of the result comes from the one before it and the elements of the arguments at its place."""

    lowering = Lowering.EXPAND
    masks = False

    def infer(self, *args: Type, axis: int, reverse: bool) -> Type:
        if not 0 <= axis < args[0].rank:
            raise RuleError(f"axis {axis} is out of bounds for array of dimension {args[0].rank}", code="E304")
        if any(a != args[0] for a in args):
            raise RuleError(f"{self.name} got {', '.join(map(str, args))}")
        return args[0]

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axis: int, reverse: bool,
              **params: Any) -> Value:
        return self(*batch_all(args, batched), axis=axis + 1, reverse=reverse)

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
             axis: int, reverse: bool, **params: Any) -> Any:
        return ops.union.running(ops.union.of(marks), axis, reverse)

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                axis: int, reverse: bool, **params: Any) -> Any:
        """Backwards, it begins with what changes nothing."""
        if not reverse:
            return args
        return [room.filled(v, t, (axis,), i) for v, t, i in zip(args, types, self.idle(*types), strict=True)]

    def idle(self, *args: Type) -> Sequence[Value]:
        """Elements of the arguments behind which it begins anew."""
        raise NotImplementedError(self.name)

    def first(self, *elements: Value) -> Value:
        """The result's first element."""
        return elements[0]

    def following(self, previous: Value, *elements: Value) -> Value:
        """The result's element after `previous`."""
        raise NotImplementedError(self.name)

    def expand(self, *args: Value, axis: int, reverse: bool, **params: Any) -> Value:
        """A loop for the first elements, then one in memory order for those that follow; along the last axis the
        running value is carried as a scalar."""
        shape = args[0].shape
        out = ops.empty(shape=shape, dtype=args[0].dtype)
        if any(d == 0 for d in shape):
            return out
        length = shape[axis]
        start = 1 if (bounds(length)[0] or 0) >= 1 else minimum(length, 1)

        def place(index: Sequence[Value], step: Value) -> list[Value]:
            at = ops.subtract(size_value(length - 1), step) if reverse else step
            return [at if k == axis else i for k, i in enumerate(index)]

        def read(index: Sequence[Value]) -> list[Value]:
            return [load_element(x, index) for x in args]

        def begin(index: Sequence[Value], out: Value) -> Value:
            where = place(index, int_const(0))
            return store_element(out, self.first(*read(where)), where)

        ranges = [(0, start if k == axis else d) for k, d in enumerate(shape)]
        if axis < len(shape) - 1:
            (out,) = loops(ranges, (out,), lambda index, out: (begin(index, out),))

            def go_on(index: Sequence[Value], out: Value) -> Value:
                where = place(index, index[axis])
                previous = load_element(out, place(index, index[axis] - 1))
                return store_element(out, self.following(previous, *read(where)), where)

            ranges[axis] = (1, length)
            return loops(ranges, (out,), lambda index, out: (go_on(index, out),))[0]

        def row(index: Sequence[Value], out: Value) -> tuple[Value]:
            head = place((*index, int_const(0)), int_const(0))
            if start == 1:
                seed: Value = self.first(*read(head))
                out = store_element(out, seed, head)
            else:
                seed = const(0, out.type.scalar)
                (out,) = loops([(0, start)], (out,), lambda _, out: (begin((*index, int_const(0)), out),))

            def go_on(step: Sequence[Value], running: Value, out: Value) -> tuple[Value, Value]:
                where = place((*index, step[0]), step[0])
                if start != 1:
                    running = load_element(out, place((*index, step[0]), step[0] - 1))
                running = self.following(running, *read(where))
                return running, store_element(out, running, where)

            return (loops([(1, length)], (seed, out), go_on, hints=("running", "out"))[1],)

        return loops(ranges[:-1], (out,), row)[0]


def loops(ranges: Sequence[tuple[Any, Any]], carried: Sequence[Value], body: Callable[..., Sequence[Value]], *,
          hints: Sequence[str] = ()) -> tuple[Value, ...]:
    """A loop nest over half-open ranges of dimensions; `body(indices, *carried)` gives the next carried values.  A
    range that is known to hold one index makes no loop."""

    def nest(done: tuple[Value, ...], carried: Sequence[Value]) -> Sequence[Value]:
        if len(done) == len(ranges):
            return body(done, *carried)
        low, high = ranges[len(done)]
        if isinstance(low, int) and high - low == 1:
            return nest((*done, int_const(low)), carried)
        return for_loop(size_value(low), size_value(high), carried, lambda i, *inner: nest((*done, i), inner),
                        index="ijklmn"[min(len(done), 5)], hints=hints or tuple("out" for _ in carried))

    return tuple(nest((), carried))


def load_element(x: Value, index: Sequence[Value]) -> Value:
    return x if not x.rank else ops.load(x, *index, index=(At(),) * x.rank)


def store_element(x: Value, element: Value, index: Sequence[Value]) -> Value:
    return element if not x.rank else ops.store(x, element, *index, index=(At(),) * x.rank)


def _doubled(h: Any, carried: Sequence[Any], idle: Sequence[Any], combine: Callable[[Any, Any], Sequence[Any]],
             axis: int, reverse: bool) -> Sequence[Any]:
    """StableHLO: a scan of an associative `combine(earlier, later)` in log2(length) steps (Hillis and Steele, 1986).
    `idle` are numbers that change nothing."""
    shape = carried[0].type.shape
    distance = 1
    while distance < shape[axis]:
        low = [distance if k == axis and not reverse else 0 for k in range(len(shape))]
        high = [distance if k == axis and reverse else 0 for k in range(len(shape))]
        earlier = [h.pad(x, number, [a - b for a, b in zip(low, high)], [b - a for a, b in zip(low, high)],
                         [0] * len(shape)) for x, number in zip(carried, idle)]
        carried = combine(earlier, carried)
        distance *= 2
    return carried


def _lanes(function: Callable[..., Any], x: Any, axis: int, reverse: bool) -> Any:
    """A NumPy accumulation along the axis, backwards if reverse."""
    x = np.asarray(x)
    return np.flip(function(np.flip(x, axis), axis), axis) if reverse else function(x, axis)


def _along_each_way(*inputs: Any, corner: bool = False) -> list[Sample]:
    last = inputs[0].ndim - 1
    return [sample(*inputs, axis=axis, reverse=reverse, corner=corner)
            for axis in {0, last} for reverse in (False, True)]


@register
class CumSum(Linear, Scan):
    """Running sums."""

    name = "cumsum"

    def reference(self, x: Any, *, axis: int, reverse: bool) -> Any:
        return _lanes(lambda a, k: np.cumsum(a, k, dtype=a.dtype), x, axis, reverse)

    def transpose(self, ct: Value, x: Value, *, axis: int, reverse: bool) -> Value:
        return ops.cumsum(ct, axis=axis, reverse=not reverse)

    def following(self, previous: Value, *elements: Value) -> Value:
        return previous + elements[0]

    def stablehlo(self, h: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        return _doubled(h, [x], [0], lambda a, b: [h.op("add", a[0], b[0])], axis, reverse)[0]

    def idle(self, *args: Type) -> Sequence[Value]:
        return (const(0, args[0].scalar),)

    def samples(self) -> list[Sample]:
        return [*_along_each_way(grid(5)), *_along_each_way(grid(2, 3)), *_along_each_way(grid(2, 1, 3)),
                *_along_each_way(grid(0)), *_along_each_way(grid(3, 0)), sample(grid(2, 3, 4), axis=1, reverse=False),
                *_along_each_way(grid(3, dtype="float32")), *_along_each_way(np.arange(6).reshape(2, 3))]


@register
class LinearRecurrence(Scan):
    """y[i] = a[i] * y[i-1] + b[i], with y[-1] = 0 (a[0] has no effect).

    The derivative of every scan here: its tangent is a recurrence with the same a, its adjoint one that runs the
    other way, so derivatives of any order stay within this operation and nothing divides.
    """

    name = "linear_recurrence"

    def reference(self, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        a, b = (np.moveaxis(np.asarray(v), axis, 0)[:: -1 if reverse else 1] for v in (a, b))
        out = np.array(b)
        for i in range(1, len(out)):
            out[i] += a[i] * out[i - 1]
        return np.moveaxis(out[:: -1 if reverse else 1], 0, axis)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axis: int, reverse: bool,
            **params: Any) -> Value:
        t_a, t_b = tangents
        parts = [] if t_b is None else [t_b]
        if t_a is not None:
            parts.append(times(t_a, shifted_along(result, axis, 0, reverse=reverse), singular=False))
        drive = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return ops.linear_recurrence(args[0], drive, axis=axis, reverse=reverse)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axis: int, reverse: bool,
            **params: Any) -> list[Any]:
        back = ops.linear_recurrence(shifted_along(args[0], axis, 0, reverse=not reverse), ct, axis=axis,
                                     reverse=not reverse)
        return [times(back, shifted_along(result, axis, 0, reverse=reverse), singular=False) if wanted[0] else None,
                back if wanted[1] else None]

    def first(self, *elements: Value) -> Value:
        return elements[1]

    def following(self, previous: Value, *elements: Value) -> Value:
        return elements[0] * previous + elements[1]

    def idle(self, *args: Type) -> Sequence[Value]:
        return const(1, args[0].scalar), const(0, args[1].scalar)

    def stablehlo(self, h: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        def combine(first: Sequence[Any], then: Sequence[Any]) -> Sequence[Any]:
            return [h.op("multiply", first[0], then[0]),
                    h.op("add", h.op("multiply", then[0], first[1]), then[1])]

        return _doubled(h, [a, b], [1, 0], combine, axis, reverse)[1]

    def samples(self) -> list[Sample]:
        return [*_along_each_way(grid(4), grid(4, seed=1)), *_along_each_way(grid(2, 3), grid(2, 3, seed=1)),
                *_along_each_way(grid(1), grid(1, seed=1)), *_along_each_way(grid(0), grid(0)),
                *_along_each_way(np.array([2.0, 0.0, 3.0]), grid(3)),
                *_along_each_way(grid(3, dtype="float32"), grid(3, seed=1, dtype="float32"))]


@register
class CumProd(Scan):
    """Running products.  The derivative is a recurrence and never divides, so it is right where elements are zero."""

    name = "cumprod"

    def reference(self, x: Any, *, axis: int, reverse: bool) -> Any:
        return _lanes(lambda a, k: np.cumprod(a, k, dtype=a.dtype), x, axis, reverse)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axis: int, reverse: bool,
            **params: Any) -> Value:
        before = shifted_along(result, axis, 1, reverse=reverse)
        return ops.linear_recurrence(args[0], times(tangents[0], before, singular=False),  # type: ignore[arg-type]
                                     axis=axis, reverse=reverse)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axis: int, reverse: bool,
            **params: Any) -> list[Any]:
        factors = shifted_along(args[0], axis, 0, reverse=not reverse)
        back = ops.linear_recurrence(factors, ct, axis=axis, reverse=not reverse)
        return [times(back, shifted_along(result, axis, 1, reverse=reverse), singular=False)]

    def following(self, previous: Value, *elements: Value) -> Value:
        return previous * elements[0]

    def stablehlo(self, h: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        return _doubled(h, [x], [1], lambda a, b: [h.op("multiply", a[0], b[0])], axis, reverse)[0]

    def idle(self, *args: Type) -> Sequence[Value]:
        return (const(1, args[0].scalar),)

    def samples(self) -> list[Sample]:
        return [*_along_each_way(grid(4)), *_along_each_way(grid(2, 3)), *_along_each_way(grid(2, 1, 2)),
                *_along_each_way(np.array([2.0, 0.0, 3.0, 0.0])), *_along_each_way(grid(0)),
                *_along_each_way(grid(3, dtype="float32")), *_along_each_way(np.arange(1, 7).reshape(2, 3))]


class CumulativeExtremum(Scan):
    """Running maxima or minima.  NaN wins.  Equal extrema so far share the derivative equally, as in max and min."""

    masks = True
    of: ClassVar[str]                   # "max" or "min"
    function: ClassVar[np.ufunc]

    def infer(self, *args: Type, axis: int, reverse: bool) -> Type:
        if args[0].kind == "c":
            raise RuleError(f"{self.name} of complex numbers is not supported", kind=TypeError, code="E309",
                            help="compare np.abs(x) or np.real(x)")
        return super().infer(*args, axis=axis, reverse=reverse)

    def reference(self, x: Any, *, axis: int, reverse: bool) -> Any:
        return _lanes(type(self).function.accumulate, x, axis, reverse)

    def _weights(self, x: Value, result: Value, axis: int, reverse: bool) -> tuple[Value, Value]:
        """The shares that the running value and the new element have in the next running value."""
        before = shifted_along(result, axis, identity_of(self.of, x.type).value, reverse=reverse)
        beats, loses = (ops.greater, ops.less) if self.of == "max" else (ops.less, ops.greater)
        stays = ops.convert(ops.logical_not(beats(x, before)), dtype=x.dtype)
        enters = ops.convert(ops.logical_not(loses(x, before)), dtype=x.dtype)
        count = ops.linear_recurrence(stays, enters, axis=axis, reverse=reverse)
        earlier = shifted_along(count, axis, 0, reverse=reverse)
        return stays * earlier / count, enters / count

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axis: int, reverse: bool,
            **params: Any) -> Value:
        old, new = self._weights(args[0], result, axis, reverse)
        return ops.linear_recurrence(old, ops.scale(tangents[0], new), axis=axis, reverse=reverse)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axis: int, reverse: bool,
            **params: Any) -> list[Any]:
        old, new = self._weights(args[0], result, axis, reverse)
        back = ops.linear_recurrence(shifted_along(old, axis, 0, reverse=not reverse), ct, axis=axis,
                                     reverse=not reverse)
        return [back * new]

    def following(self, previous: Value, *elements: Value) -> Value:
        if previous.dtype == "bool":
            return (ops.logical_or if self.of == "max" else ops.logical_and)(previous, elements[0])
        return (ops.maximum if self.of == "max" else ops.minimum)(previous, elements[0])

    def idle(self, *args: Type) -> Sequence[Value]:
        return (identity_of(self.of, args[0]),)

    def stablehlo(self, h: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        name = {"max": "maximum", "min": "minimum"}[self.of]
        if x.type.dtype == "bool":
            name = {"max": "or", "min": "and"}[self.of]
        idle = identity_of(self.of, x.type).value
        return _doubled(h, [x], [idle], lambda a, b: [h.op(name, a[0], b[0])], axis, reverse)[0]

    def samples(self) -> list[Sample]:
        return [*_along_each_way(grid(5)), *_along_each_way(grid(3, 3)), *_along_each_way(grid(2, 1)),
                *_along_each_way(np.array([1.0, 0.0, 1.0, 2.0, 2.0]), corner=True), *_along_each_way(grid(0)),
                *_along_each_way(np.array([1.0, np.nan, 2.0]), corner=True),
                *_along_each_way(grid(3, dtype="float32")), *_along_each_way(np.array([2, 1, 3])),
                *_along_each_way(np.array([False, True, False]))]


@register
class CumMax(CumulativeExtremum):
    """Running maxima.  NaN wins.  Equal maxima so far share the derivative equally."""

    name, of, function = "cummax", "max", np.maximum


@register
class CumMin(CumulativeExtremum):
    """Running minima.  NaN wins.  Equal minima so far share the derivative equally."""

    name, of, function = "cummin", "min", np.minimum
