"""What differs between the states after two arms, part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Iterator as PythonIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Location, TranspileError, error
from ..ir.nodes import Var
from .arms import (
    NUMBERED,
    Arm,
    Jump,
)
from .environment import MISSING, Frame
from .iteration import Iterator
from .merge import (
    Merger,
)
from .state import State, next_version, put, same_contents
from .templates import (
    DEAD,
    Broken,
    DontCare,
    Slot,
    Template,
)
from .values import ArrayRef, Instance

if TYPE_CHECKING:
    from .interpreter import Interpreter


@dataclass
class Part:
    """One thing to merge: its template, what it is in both arms, and how to set it.

    strict: it must have a value, unlike a variable that may never be read.
    """

    name: str
    template: Template
    values: tuple[Any, Any]
    put: Callable[[Any], None]
    strict: bool = True
    cell: ArrayRef | None = None          # the array whose contents this is

    def __post_init__(self) -> None:
        if self.strict and isinstance(self.template, Broken):
            raise self.template.problem


def prune(frame: Frame, live: frozenset[str] | None) -> None:
    """Forget the values of variables that nothing reads any more, lest they stand for aliases."""
    if live is None or frame.is_comprehension:
        return
    names = {frame.mangled(name) for name in live}
    for name in frame.variables:
        if name not in names:
            frame.variables[name] = DEAD


def state_parts(merger: Merger, frame: Frame | None, before: State, arms: tuple[Arm, Arm]) -> tuple[
        list[Part], list[tuple[Any, Any]]]:
    """What differs between the states, in an order that depends on the program alone; and contents of cells that one
    arm alone, or none, can still reach."""
    parts: list[Part] = []
    replaced: list[tuple[Any, Any]] = []
    for cell, first in before.cells.values():
        ca, cb = (arm.state.contents(cell) for arm in arms)
        reached = [isinstance(cell, Frame) or id(cell) in arm.state.references for arm in arms]
        if not any(reached):
            replaced.append((cell, first))
            continue
        if not all(reached) and not isinstance(cell, ArrayRef):
            replaced.append((cell, ca if reached[0] else cb))
            ca, cb = (c if r else _nobody(cb if reached[1] else ca) for c, r in zip((ca, cb), reached))
        if same_contents(ca, cb):
            if isinstance(cell, ArrayRef):
                cell.version = max(ca["version"], cb["version"])
            continue
        parts += cell_parts(merger, cell, (ca, cb), [
            not r or (cell is frame and isinstance(arm.outcome, Jump) and arm.outcome.kind == "return")
            for arm, r in zip(arms, reached)])
    return parts, replaced


def _nobody(contents: Any) -> Any:
    """Contents like these, of a cell that nobody looks at."""
    return [DontCare()] * len(contents) if isinstance(contents, list) else {k: DontCare() for k in contents}


def cell_parts(merger: Merger, cell: Any, contents: tuple[Any, Any], leaving: Sequence[bool]) -> PythonIterator[Part]:
    """The parts of one cell that differ.  leaving: whether nobody sees this side any more."""
    ca, cb = contents
    name = cell_name(merger.it, cell)
    if isinstance(cell, ArrayRef):
        known = [c["known"] for c in contents]
        if all(k is not None for k in known) and np.array_equal(
                known[0], known[1], equal_nan=cell.type.is_inexact):
            put(cell, {**ca, "version": next_version()})
            return
        values = tuple(DontCare() if hidden else cell for hidden in leaving)
        yield Part(name, Slot("array", cell.type, cell.layout), values, lambda v: put_array(cell, v),  # type: ignore
                   cell=cell)
        return
    if isinstance(cell, Iterator):
        raise error(merger.code, "how far an iterator is would be decided when the function runs", merger.where,
                    help="make a new iterator in each branch, or index what it goes over")
    if isinstance(cell, list):
        if len(ca) != len(cb):
            raise _differs(merger, "a list has as many elements", merger.where)
        for k, (x, y) in enumerate(zip(ca, cb)):
            if x is not y:
                yield Part(name, merger.join(x, y, f"{name}[{k}]"), (x, y), setter(cell, k))
        return
    if not isinstance(cell, Frame) and ca.keys() != cb.keys():
        raise _differs(merger, "a set, dict or object has the same entries", merger.where)
    for key in dict.fromkeys((*ca, *cb)):
        x, y = ca.get(key, MISSING), cb.get(key, MISSING)
        if x is y:
            continue
        if isinstance(cell, Frame):
            x, y = (DontCare(v) if gone else v for v, gone in zip((x, y), leaving))
            if isinstance(x, DontCare) and isinstance(y, DontCare):
                continue
            yield Part(str(key), merger.join(x, y, str(key), may_lack=True), (x, y), _variable_setter(cell, key),
                       strict=False)
        else:
            yield Part(str(key), merger.join(x, y, str(key)), (x, y), setter(cell, key))


def _differs(merger: Merger, what: str, where: Location | None) -> TranspileError:
    return error(merger.code, f"{what} whichever way the function runs", where, help="build it before, with all "
                 "entries, and change them")


def put_array(cell: ArrayRef, value: Any) -> None:
    cell.value, cell.known, cell.recipe, cell.version = value, None, None, next_version()


def cell_name(it: Interpreter, cell: Any) -> str:
    """What generated code calls a changed array: as the variable that holds it, where there is one."""
    if not isinstance(cell, ArrayRef):
        return "t"
    for frame in reversed(it.frames):
        for name, held in frame.variables.items():
            if isinstance(held, ArrayRef) and held.root is cell:
                return name
    value = cell.current_value
    return NUMBERED.sub("", value.name) if isinstance(value, Var) else "x"


def has_moved(merger: Merger, cell: ArrayRef) -> bool:
    """Whether all that referred to this array refers to a merged one now."""
    moved = [sum(merger.sites[n] for n, things in merger.roots.items() if merger.is_exact[n]
                 and isinstance(things[side], ArrayRef) and things[side].root is cell) for side in (0, 1)]
    return any(moved) and all(side is not None and side.references.get(id(cell), 0) <= count
                              for side, count in zip(merger.sides, moved))


def setter(target: Any, key: Any) -> Callable[[Any], None]:
    def set_it(value: Any) -> None:
        (target.fields if isinstance(target, Instance) else target)[key] = value

    return set_it


def _variable_setter(frame: Frame, name: str) -> Callable[[Any], None]:
    def set_it(value: Any) -> None:
        if value is MISSING:
            frame.variables.pop(name, None)
        else:
            frame.variables[name] = value

    return set_it
