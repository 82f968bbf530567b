"""Operations that sort along an axis, sort and argsort, and NumPy's names for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import product
from ..ir.nodes import Value
from ..ir.types import Type
from .base import Op, RuleError, Sample, batch_all, grid, sample
from .families import Lowering, NoGradient, register
from .spelling import as_value, axis_of, spelled


class Sorting(Op):
    """Along one axis, stably, NaN last.  Complex numbers are not supported."""

    lowering = Lowering.KERNEL

    def infer(self, x: Type, *, axis: int, **params: Any) -> Type:
        if not 0 <= axis < x.rank:
            raise RuleError(f"axis {axis} is out of bounds for array of dimension {x.rank}", code="E304")
        if x.kind == "c":
            raise RuleError(f"{self.name} of complex numbers is not supported", kind=TypeError, code="E309",
                            help="sort by np.abs(x) or np.real(x)")
        return x

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axis: int, **params: Any) -> Value:
        return self(*batch_all(args, batched), axis=axis + 1, **params)

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
             axis: int, **params: Any) -> Any:
        """Every element may come from anywhere along the axis."""
        return ops.union.coupled(marks[0], (axis,))

    def kernel(self, types: Sequence[Type], params: dict[str, Any]) -> str:
        return f"{self.name}({{0}}, {params['axis']})"

    def _inputs(self) -> list[Sample]:
        tied = np.array([2.0, 1.0, 2.0, 1.0, 3.0])
        return [sample(grid(5), axis=0), sample(grid(40), axis=0), sample(grid(2, 3), axis=0),
                sample(grid(2, 3), axis=1), sample(grid(2, 3, 4), axis=1), sample(grid(3, 1), axis=1),
                sample(grid(0), axis=0), sample(grid(3, 0), axis=0), sample(grid(3, dtype="float32"), axis=0),
                sample(np.array([3, 1, 2, 1]), axis=0), sample(np.array([True, False, True]), axis=0),
                sample(tied, axis=0, corner=True), sample(np.array([1.0, np.nan, -np.inf, 0.5]), axis=0, corner=True)]

    def samples(self) -> list[Sample]:
        return self._inputs()


def places_along(order: Value, axis: int) -> list[Value]:
    """Index arrays that take, along the axis, the places in `order`; one for each axis."""
    return [order if k == axis else ops.iota(shape=order.shape, axis=k, dtype="int64") for k in range(order.rank)]


@register
class Sort(Sorting):
    """Sorted along `axis`, NaN last.  The derivative goes where the elements went; equal ones keep their order."""

    name = "sort"

    def reference(self, x: Any, *, axis: int) -> Any:
        return np.sort(x, axis, kind="stable")

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, axis: int,
            **params: Any) -> Value:
        order = ops.argsort(args[0], axis=axis, stable=True)
        return ops.gather(tangents[0], *places_along(order, axis), axes=tuple(range(order.rank)))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, axis: int,
            **params: Any) -> list[Any]:
        order = ops.argsort(args[0], axis=axis, stable=True)
        zeros = const(0, args[0].type)
        return [ops.scatter_add(zeros, ct, *places_along(order, axis), axes=tuple(range(order.rank)))]

    def stablehlo(self, h: Any, x: Any, *, axis: int) -> Any:
        return h.sort(x, axis)


@register
class ArgSort(NoGradient, Sorting):
    """The order, int64, that sorts x along `axis`, NaN last.  Equal elements keep their order, stable or not."""

    name = "argsort"

    def infer(self, x: Type, *, axis: int, stable: bool, **params: Any) -> Type:
        return super().infer(x, axis=axis).with_dtype("int64")

    def reference(self, x: Any, *, axis: int, stable: bool) -> Any:
        return np.argsort(x, axis, kind="stable")

    def stablehlo(self, h: Any, x: Any, *, axis: int, stable: bool) -> Any:
        return h.argsort(x, axis)

    def samples(self) -> list[Sample]:
        return [Sample(s.args, {**s.params, "stable": True}, s.corner) for s in self._inputs()]


# ---------------------------------------------------------------------------------------------------------------
# NumPy's names


KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _along(a: Any, axis: Any, kind: Any, order: Any) -> tuple[Value, int]:
    if order is not None:
        raise RuleError("order= is for structured arrays, which are not supported", kind=TypeError, code="E202")
    if kind not in KINDS:
        raise RuleError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    x = as_value(a)
    if axis is None:
        return ops.reshape(x, shape=(product(x.shape),)), 0
    if x.rank == 0:
        raise RuleError(f"axis {axis} is out of bounds for array of dimension 0", kind=np.exceptions.AxisError,
                        code="E304")
    return x, axis_of(axis, x.rank)


@spelled(np.sort)
def numpy_sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Value:
    x, along = _along(a, axis, kind, order)
    return ops.sort(x, axis=along)


@spelled(np.argsort, np.ndarray.argsort)
def numpy_argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Value:
    x, along = _along(a, axis, kind, order)
    return ops.argsort(x, axis=along, stable=bool(stable) or kind in ("stable", "mergesort"))
