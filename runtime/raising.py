"""Exceptions of the running function as the user's program raises them.

Compiled code raises built-in exceptions with texts that name the user's line.  Where the program raises one of a class
of its own, or with values in its text, `explaining` puts that one in its place.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any

from .transpiler.frontend.values import OpaqueText


def explaining(entry: Callable[..., Any], raises: Mapping[str, BaseException]) -> Callable[..., Any]:
    """An entry whose exceptions are the user's.  raises: those, by the texts that the compiled code has for them."""
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


def users_exception(problem: Exception, raises: Mapping[str, BaseException]) -> BaseException | None:
    """What the user's program raises where compiled code raises `problem`; None for the same."""
    if not problem.args or not isinstance(problem.args[0], str):
        return None
    whole, *values = problem.args
    text = max((t for t in raises if whole == t or whole.startswith(t + " [")), key=len, default=None)
    if text is None:
        return None
    like = raises[text]
    args = tuple(filled(text, values) if isinstance(a, OpaqueText) else a for a in like.args)
    made: BaseException = type(like).__new__(type(like), *args)      # whatever its `__init__` would take
    made.args = args
    made.__dict__.update(like.__dict__)
    place = whole[len(text) + 2:-1]
    if place and hasattr(made, "add_note"):
        made.add_note(place)
    return made


def filled(template: str, values: list[Any]) -> str:
    """The text with its values; a place that nothing fits stays."""
    pieces, supply = [], iter(values)
    for literal, name, spec, conversion in string.Formatter().parse(template):
        pieces.append(literal)
        if name is not None:
            field = "{" + ("!" + conversion if conversion else "") + (":" + spec if spec else "") + "}"
            pieces.append(field.format(next(supply, field)))
    return "".join(pieces)
