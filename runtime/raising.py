"""Exceptions of the running function as the user's program raises them.

Compiled code raises built-in exceptions with texts that name the user's line.  Where the program raises one of a class
of its own, or with values in its text, `explaining` puts that one in its place.  What is raised for one element of a
batch says for which: ` (in lane 2)` ends its message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .transpiler.errors import in_lanes
from .transpiler.frontend.texts import Raised, exception_with, filled, parts_of
from .transpiler.frontend.values import OpaqueNumber, OpaqueText
from .transpiler.ir.library import Program
from .transpiler.ir.nodes import Check, Module
from .transpiler.ir.walk import all_statements

if TYPE_CHECKING:
    from .transpiler.frontend.trace import Trace


LANES = re.compile(r" \(in lane (?:\{\}|\((?:\{\}, )*\{\}\))\)$")       # as `errors.in_lanes` writes it


TOLD = re.compile(r" \(in lane (?:\d+|\((?:\d+, )*\d+\))\)$")


def explaining(entry: Callable[..., Any], trace: Trace) -> Callable[..., Any]:
    """The entry of a trace, whose exceptions become the user's."""
    raises = trace.raises
    if not raises and not _tells_lanes(trace.func):
        return entry

    def call(*args: Any) -> Any:
        try:
            return entry(*args)
        except Exception as problem:
            wanted = users_exception(problem, raises)
            if wanted is None:
                raise
            raise wanted from None

    return call


def _tells_lanes(program: Program) -> bool:
    funcs = program.funcs if isinstance(program, Module) else (program,)
    return any(isinstance(stmt, Check) and stmt.lanes for func in funcs for stmt in all_statements(func.body))


def users_exception(problem: Exception, raises: Mapping[str, Raised]) -> BaseException | None:
    """What the user's program raises where compiled code raises `problem`; None for the same."""
    if not problem.args or not isinstance(problem.args[0], str):
        return None
    whole, *values = problem.args
    found = LANES.search(whole)
    lanes: list[Any] = []
    if found is not None:
        count = len(values) - found.group().count("{}")
        whole, values, lanes = whole[:found.start()], values[:count], values[count:]
    raised = raises.get(whole)
    if raised is None:
        return with_lanes(type(problem)(whole), lanes) if lanes else None
    supply = iter(values)
    parts = {id(part): _told(part, [next(supply, None) for _ in part.values]) for part in parts_of(raised.exception)}
    made = with_lanes(exception_with(raised.exception, parts), lanes)
    place = whole[len(raised.text) + 2:-1]
    if place and hasattr(made, "add_note"):
        made.add_note(place)
    return made


def with_lanes(problem: BaseException, lanes: Sequence[Any]) -> BaseException:
    """The exception, whose message says in which lane: at its end, or as one more argument where it has no message."""
    before = _told_already(problem)
    if before is not None:
        lanes = [*lanes, *map(int, re.findall(r"\d+", before.group()))]
        problem.args = (problem.args[0][:before.start()], *problem.args[1:])
    text = in_lanes(lanes)
    if text and problem.args and isinstance(problem.args[0], str):
        problem.args = (problem.args[0] + text, *problem.args[1:])
    elif text:
        problem.args = (*problem.args, text.strip(" ()"))
    return problem


def has_lanes(problem: BaseException) -> bool:
    """Whether the exception says in which lane it was raised."""
    return bool(lanes_told(problem))


def lanes_told(problem: BaseException) -> list[int]:
    """The lane that the exception says that it was raised in, of each batch; [] where it says nothing."""
    found = _told_already(problem)
    last = problem.args[-1] if problem.args else None
    text = found.group() if found is not None else last if isinstance(last, str) and last.startswith("in lane ") else ""
    return list(map(int, re.findall(r"\d+", text)))


def _told_already(problem: BaseException) -> re.Match[str] | None:
    return TOLD.search(problem.args[0]) if problem.args and isinstance(problem.args[0], str) else None


def _told(part: OpaqueText, values: list[Any]) -> Any:
    """A text or number that the exception holds, from what the compiled code gives for it."""
    if not isinstance(part, OpaqueNumber):
        return filled(part.template, values)
    return values[0] if part.scalar is None or values[0] is None else part.scalar(values[0])
