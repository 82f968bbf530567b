"""What the loops of a nest do to elements of its arrays, and which of that may be exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir import dependence
from ..ir.dependence import Axis, Order
from ..ir.ints import Ints
from ..ir.nodes import Const, For
from ..ir.walk import all_statements, bound_inside


@dataclass(frozen=True)
class Access:
    """An element that is read, written or added to.  place: its position, as dimensions.  loops: the loops of the nest
    around it, the outermost first."""

    root: int
    place: tuple[Any, ...]
    writes: bool
    adds: bool
    loops: tuple[For, ...]

    def concerns(self, other: Access) -> bool:
        """Whether the order of the two matters if they touch one element.  Adds may be in any order."""
        return self.root == other.root and (self.writes or other.writes) and not (self.adds and other.adds)


class Dependences:
    def __init__(self, ints: Ints) -> None:
        self.ints = ints
        self._inside: dict[For, frozenset[str]] = {}

    def may_meet(self, a: Access, b: Access, order: Iterable[Order]) -> bool:
        """Whether both may touch one element where their trips are in that order.  True also where it is not known."""
        names = self.names_inside(a.loops[0]) | self.names_inside(b.loops[0])
        one, other = (dependence.Access(tuple(map(Axis, x.place)), x.loops) for x in (a, b))
        return dependence.may_meet(one, other, order, self.ints, names.__contains__)

    def names_inside(self, loop: For) -> frozenset[str]:
        """Names of what differs from trip to trip: of indices, and of ints that are computed or read in the loop."""
        if loop not in self._inside:
            self._inside[loop] = frozenset((loop.index.name, *(
                v.name for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s)))))
        return self._inside[loop]


def step_of(loop: For) -> int:
    """Of a loop whose step is known."""
    assert isinstance(loop.step, Const)
    return int(loop.step.value)


def any_meet(dependences: Dependences, first: Sequence[Access], second: Sequence[Access],
             order: Sequence[Order]) -> bool:
    """Whether an access of the first may touch what one of the second touches, where that matters."""
    return any(a.concerns(b) and dependences.may_meet(a, b, order) for a in first for b in second)
