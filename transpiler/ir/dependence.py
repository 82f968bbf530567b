"""Which accesses of loops may touch one element of an array, in which trips.

    for j: for k: a[i, j] -= a[i, k] * a[k, j]        with k < i <= j, the write a[i, j] meets neither other access

Places are polyhedra: positions and the bounds of loops that are linear in indices and sizes become inequalities,
together with the order of the trips.

Source: R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures" (2001), chapters 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from . import dims
from .constraints import Constraints
from .index import At, Span
from .inequalities import Row, combined
from .ints import LOWEST, Ints
from .nodes import Const, For, Let, Value


@dataclass(frozen=True)
class Axis:
    """Positions first + k * step for 0 <= k < size, as dimensions."""

    first: Any
    size: Any = 1
    step: int = 1

    @property
    def ends(self) -> tuple[Any, Any]:
        """The lowest and the highest position, where there is one."""
        last = self.first + (self.size - 1) * self.step
        return (self.first, last) if self.step > 0 else (last, self.first)


Place = tuple[Axis, ...]


@dataclass(frozen=True)
class Access:
    """What is read or written.  place: None for anywhere in the array.  loops: those around, in whose trips it is."""

    place: Place | None
    loops: tuple[For, ...] = ()


# The trip of the first loop around the first access is before, after or the same as that of the second loop around the
# second access; the indices of the two loops count the same ints in the same direction.  An int: by as many at least.
Relation = Literal["before", "after", "same"]
Order = tuple[For, For, Relation] | tuple[For, For, Relation, int]


def position_of(let: Let) -> tuple[Value, ...]:
    """The run-time ints in the index of a load, store or add_at."""
    return let.args[1 if let.op.access == "load" else 2:]


def axis_items(let: Let) -> list[tuple[At | Span, Value | None]]:
    """For each axis of the array that a load, store or add_at reads or writes, its item and the run-time int that it
    takes."""
    scalars = iter(position_of(let))
    found: list[tuple[At | Span, Value | None]] = []
    for item in let.params["index"]:
        if isinstance(item, At) or (isinstance(item, Span) and item.start is None):
            found.append((item, next(scalars)))
        elif isinstance(item, Span):
            found.append((item, None))
    return found


def axis_of(item: At | Span, scalar: Value | None, ints: Ints) -> Axis:
    if isinstance(item, At):
        assert scalar is not None
        return Axis(ints.dim(scalar))
    return Axis(item.start if scalar is None else ints.dim(scalar), item.size, item.step)


def place_of(let: Let, ints: Ints) -> Place:
    """Where a load, store or add_at reads or writes."""
    return tuple(axis_of(item, scalar, ints) for item, scalar in axis_items(let))


def may_meet(a: Access, b: Access, order: Iterable[Order], ints: Ints, differs: Callable[[str], bool]) -> bool:
    """Whether both may touch one element where their trips are in that order.  True also where it is not known.

    differs: whether the int of a name may be another where `b` is than where `a` is.
    """
    order = list(order)
    apart = {loop.index.name for first, second, relation, *_ in order if relation != "same" for loop in (first, second)}
    known = Constraints(ints, lambda name: name in apart or differs(name))
    for side, access in (("a", a), ("b", b)):
        for loop in access.loops:
            known.in_range(loop, side)
    for first, second, relation, *more in order:
        one, other = known.row(_index(first), "a"), known.row(_index(second), "b")
        if relation == "same":
            known.equal(one, other)
        elif not isinstance(first.step, Const):
            return True
        else:
            early, late = (one, other) if (first.step.value > 0) == (relation == "before") else (other, one)
            apart_by = more[0] if more else abs(int(first.step.value)) if first is second else 1
            known.not_above(combined(early, 1, {"": apart_by}, 1), late)
    if a.place is not None and b.place is not None:
        for k, (p, q) in enumerate(zip(a.place, b.place, strict=True)):
            known.equal(_position(known, p, "a", k), _position(known, q, "b", k))
    return known.may_hold()


def _index(loop: For) -> Any:
    return dims.symbol(loop.index.name, LOWEST)


def _position(known: Constraints, axis: Axis, side: str, number: int) -> Row:
    first = known.row(axis.first, side)
    if axis.size == 1:
        return first
    along = {f"{side} along axis {number}": 1}
    known.at_least_zero(along)
    known.not_above(combined(along, 1, {"": 1}, 1), known.row(axis.size, side))
    return combined(first, 1, along, axis.step)
