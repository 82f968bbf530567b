"""All that running code can change while a function is interpreted, so that both arms of a branch start alike.

A *cell* is a thing with changeable contents: a frame (its variables), a list, a dict, a set, an Instance (its fields),
an iterator (how far it is) or an array (its current version).  A `State` has the contents of all cells that the
running functions can reach.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from collections.abc import Iterator as PythonIterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..ir import build
from ..ir.build import Builder
from .environment import Frame
from .iteration import Iterator
from .values import (
    ArrayMethod,
    ArrayRef,
    BoundMethod,
    Closure,
    Instance,
    Maybe,
    Partial,
    Super,
    TransformValue,
)

if TYPE_CHECKING:
    from .interpreter import Interpreter


@dataclass
class State:
    """cells: by identity, with their contents.  references: how often each array and container is referred to."""

    cells: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    references: dict[int, int] = field(default_factory=dict)

    def contents(self, cell: Any) -> Any:
        return self.cells[id(cell)][1]


def capture(it: Interpreter, frame: Frame | None = None, extra: Iterable[Any] = (),
            known: State | None = None, without: Frame | None = None) -> State:
    """The contents of everything reachable.

    extra: values held besides; known: cells to look at in any case; without: a frame that is about to end.
    """
    state = State()
    frames = dict.fromkeys([*it.frames, frame])
    # The caller refers to its arrays, too.
    held = [*it.outside.arrays.values(), *it.outside.held, *extra]
    _walk(state, [f for f in frames if f is not None and f is not without] + held, counting=True)
    if known is not None:
        _walk(state, [cell for cell, _ in known.cells.values()], counting=False)
    return state


def _walk(state: State, roots: list[Any], counting: bool) -> None:
    pending = list(roots)
    while pending:
        x = pending.pop()
        if isinstance(x, ArrayRef):
            root = x.root
            if counting:
                state.references[id(root)] = state.references.get(id(root), 0) + 1
            if id(root) not in state.cells:
                state.cells[id(root)] = (root, contents_of(root))
                pending.extend(other for other, _ in root.depends)
            continue
        if isinstance(x, (list, dict, set, Instance, Iterator)):
            if counting:
                state.references[id(x)] = state.references.get(id(x), 0) + 1
        elif isinstance(x, tuple):
            pending.extend(x)
            continue
        elif not isinstance(x, Frame):
            pending.extend(_parts(x))
            continue
        if id(x) in state.cells:
            continue
        contents = contents_of(x)
        state.cells[id(x)] = (x, contents)
        pending.extend(contents if isinstance(contents, list) else x.held() if isinstance(x, Iterator) else
                       contents.values())
        if isinstance(x, Frame) and x.parent is not None:
            pending.append(x.parent)


def _parts(x: Any) -> tuple[Any, ...]:
    match x:
        case Maybe():
            return (x.value,)
        case Closure():
            return (x.frame, *x.defaults, *x.kw_defaults.values())
        case BoundMethod():
            return (x.function, x.receiver)
        case Partial():
            return (x.function, *x.args, *x.kwargs.values())
        case TransformValue():
            return (x.fun, *x.args, *x.kwargs.values())
        case ArrayMethod() | Super():
            return (x.receiver,)
    return ()


def contents_of(cell: Any) -> Any:
    """A copy of what a cell holds now."""
    match cell:
        case ArrayRef():
            return {"value": cell.value, "known": cell.known, "recipe": cell.recipe, "version": cell.version}
        case Frame():
            return dict(cell.variables)
        case Instance():
            return dict(cell.fields)
        case Iterator():
            return {"position": cell.position}
        case set():
            return dict.fromkeys(cell, True)
    return list(cell) if isinstance(cell, list) else dict(cell)


def put(cell: Any, contents: Any) -> None:
    """Make a cell hold this."""
    match cell:
        case ArrayRef():
            cell.value, cell.known, cell.recipe, cell.version = contents.values()
        case Frame():
            cell.variables = dict(contents)
        case Instance():
            cell.fields = dict(contents)
        case Iterator():
            cell.position = contents["position"]
        case list():
            cell[:] = contents
        case _:
            cell.clear()
            cell.update(contents)


def restore(state: State) -> None:
    """Everything as it was."""
    for cell, contents in state.cells.values():
        put(cell, contents)


def same_contents(a: Any, b: Any) -> bool:
    """Whether a cell was not changed."""
    if a is b:
        return True
    if isinstance(a, list):
        return len(a) == len(b) and all(x is y for x, y in zip(a, b))
    if a.keys() == {"value", "known", "recipe", "version"} and b.keys() == a.keys():
        return a["value"] is b["value"] and a["known"] is b["known"] and a["recipe"] is b["recipe"]
    if a.keys() == b.keys() == {"position"}:
        return bool(a["position"] == b["position"])
    return a.keys() == b.keys() and all(a[k] is b[k] for k in a)


_versions = itertools.count(1_000_000, 1_000_000)


def next_version() -> int:
    """Of an array after a branch or at the start of a trip: unlike all others."""
    return next(_versions)


@contextmanager
def resumed(builder: Builder) -> PythonIterator[Builder]:
    """Go on building a block."""
    token = build._current.set(builder)
    try:
        yield builder
    finally:
        build._current.reset(token)
