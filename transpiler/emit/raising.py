"""How a `raise` is written whose message has places for values that the run alone knows.

    raise IndexError("no row {} [m.py:3] (in lane {})", k, lane)            left to fill, for whoever catches it
    raise FilledIndexError("no row {} [m.py:3] (in lane {})", k, lane)      filled by the exception's own class
"""

from __future__ import annotations

import string

from ..errors import escaped, in_lanes, placed
from ..ir.nodes import Check, Value

PREFIX = "Filled"       # as in gradsmith.kernels.filled


def left_to_fill(stmt: Check) -> tuple[str, str, tuple[Value, ...]]:
    """The name of a class, the message and the values that an exception is made of."""
    message = placed(stmt.message, stmt.loc) + in_lanes(["{}"] * len(stmt.lanes))
    return stmt.kind, message, (*stmt.values, *stmt.lanes)


def filled(stmt: Check) -> tuple[str, str, tuple[Value, ...]]:
    """The same where the class puts the values into the message; what has no place there is left out."""
    if not has_places(stmt):
        message = stmt.message.format() if stmt.values else stmt.message       # a template only where there are values
        return stmt.kind, placed(message, stmt.loc), ()
    template = stmt.message if stmt.values else escaped(stmt.message)
    place = placed("", stmt.loc)
    message = template + escaped(place) + in_lanes(["{}"] * len(stmt.lanes))
    return filled_name(stmt.kind), message, (*stmt.values[:_places(stmt)], *stmt.lanes)


def has_places(stmt: Check) -> bool:
    """Whether there are values for the message."""
    return not stmt.prints and bool(stmt.lanes or _places(stmt))


def _places(stmt: Check) -> int:
    if not stmt.values:
        return 0
    return sum(name is not None for _, name, _, _ in string.Formatter().parse(stmt.message))


def filled_name(kind: str) -> str:
    return PREFIX + kind


def is_filled(name: str) -> bool:
    return name.startswith(PREFIX)


def filled_exception(name: str) -> str:
    """The text of the class, for modules that import nothing of ours."""
    kind = name.removeprefix(PREFIX)
    article = "An" if kind[0] in "AEIOU" else "A"
    return f'''\
class {name}({kind}):
    """{article} {kind} whose message gets its values when it is raised."""

    def __init__(self, message, *values):
        super().__init__(message.format(*values) if values else message)'''


def quoted(text: str) -> str:
    """A string literal in double quotes where that needs no escapes."""
    return repr(text) if "'" in text or '"' in text else f'"{text}"' if repr(text)[1:-1] == text else repr(text)
