"""Errors that several parts of the frontend raise, and which of them a `try` in the user's function catches."""

from __future__ import annotations

from typing import Any

from ..errors import Location, TranspileError, error

# Codes that stand for an exception Python or NumPy itself would raise; the others say that gradsmith cannot go on.
PYTHONS_OWN = frozenset({"E114", "E115", "E116", "E118", "E119", "E120", "E128", "E201", "E208", "E301", "E302", "E303",
                         "E304", "E305", "E306", "E308", "E309", "E310", "E312", "E314", "E315", "E316"})


class Unfinished(Exception):
    """A recursive call in a func whose results are not known yet: this way through it tells nothing about them."""

    def __init__(self, recursion: Any) -> None:
        super().__init__("a recursive call")
        self.recursion = recursion


def raised(exception: BaseException, loc: Location | None) -> TranspileError:
    """What the user's own program raises at this place."""
    kind = type(exception)
    text = str(exception)
    if isinstance(exception, KeyError) and exception.args:
        text = repr(exception.args[0])
    message = f"{kind.__name__}: {text}" if text else kind.__name__
    code = "E119" if isinstance(exception, AssertionError) else "E120"
    try:
        made = error(code, message, loc, kind=kind if issubclass(kind, Exception) else None)
    except TypeError:              # a class that cannot be a base beside ours
        made = error(code, message, loc)
    made.__cause__ = exception
    return made


def original_exception(problem: TranspileError) -> BaseException:
    """What `except E as e` binds."""
    return problem.__cause__ or problem


def is_pythons_own(problem: TranspileError) -> bool:
    return problem.code in PYTHONS_OWN


def run_time_control(what: str, loc: Location | None, help: str) -> TranspileError:
    """Control flow on a value that only the running function has."""
    return error("E110", f"{what} depends on a value known only at run time", loc, kind=NotImplementedError,
                 label="known only at run time", help=help)
