"""What a function sees of the functions around it: a func that was made for it serves while that is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .environment import MISSING, Frame
from .liveness import loads
from .templates import same_static
from .values import ArrayRef, Closure, Instance


@dataclass(frozen=True)
class Surroundings:
    """What a closure can see of the functions around it: values by name, and the contents of the cells in them."""

    cells: tuple[Any, ...]
    marks: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Surroundings) and len(self.marks) == len(other.marks) and all(
            a is b or same_static(a, b) for a, b in zip(self.marks, other.marks))

    __hash__ = None  # type: ignore[assignment]


def surroundings(node: Any, frame: Frame) -> Surroundings:
    cells: list[Any] = []
    marks: list[Any] = []
    closures: set[tuple[int, int]] = set()

    def look(code: Any, around: Frame | None) -> None:
        if around is None or (id(code), id(around)) in closures:
            return
        closures.add((id(code), id(around)))
        for name in sorted(set(loads(code))):
            owner = around.owner_of(name)
            if owner is not None:
                visit(owner.variables.get(name, MISSING))

    def visit(x: Any) -> None:
        marks.append(x)
        if isinstance(x, Closure):
            look(x.node, x.frame)
        elif isinstance(x, ArrayRef):
            if all(x.root is not c for c in cells):
                cells.append(x.root)
            marks.extend((x.root.value, x.root.known))
        elif isinstance(x, (list, tuple, dict, set, Instance)):
            if any(x is c for c in cells):
                return
            cells.append(x)
            for part in x.fields.values() if isinstance(x, Instance) else x.values() if isinstance(x, dict) else x:
                visit(part)

    look(node, frame.parent)
    return Surroundings(tuple(cells), tuple(marks))
