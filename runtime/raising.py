"""Exceptions of the running function as the user's program raises them.

Compiled code raises built-in exceptions with texts that name the user's line.  Where the program raises one of a class
of its own, or with values in its text, `explaining` puts that one in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .transpiler.frontend.texts import Raised, exception_with, filled, parts_of
from .transpiler.frontend.values import OpaqueNumber, OpaqueText


def explaining(entry: Callable[..., Any], raises: Mapping[str, Raised]) -> Callable[..., Any]:
    """An entry whose exceptions are the user's.  raises: those, by what the compiled code raises for them."""
    if not raises:
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


def users_exception(problem: Exception, raises: Mapping[str, Raised]) -> BaseException | None:
    """What the user's program raises where compiled code raises `problem`; None for the same."""
    if not problem.args or not isinstance(problem.args[0], str):
        return None
    whole, *values = problem.args
    raised = raises.get(whole)
    if raised is None:
        return None
    supply = iter(values)
    parts = {id(part): _told(part, [next(supply, None) for _ in part.values]) for part in parts_of(raised.exception)}
    made = exception_with(raised.exception, parts)
    place = whole[len(raised.text) + 2:-1]
    if place and hasattr(made, "add_note"):
        made.add_note(place)
    return made


def _told(part: OpaqueText, values: list[Any]) -> Any:
    """A text or number that the exception holds, from what the compiled code gives for it."""
    if not isinstance(part, OpaqueNumber):
        return filled(part.template, values)
    return values[0] if part.scalar is None or values[0] is None else part.scalar(values[0])
