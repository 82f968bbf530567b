"""Problems in the user's code, and the one function that draws them over the user's own line.

    error[E204]: np.median has no reverse-mode rule
      --> model.py:12:9
       |
    12 |     m = np.median(residuals)
       |         ^^^^^^^^^^^^^^^^^^^^ `residuals` depends on `w`, which you asked to differentiate
       = help: use np.mean, or wrap the call in stop_gradient(...)

Code that knows what is wrong but not where raises `RuleError`; the caller that holds the statement says where,
with `RuleError.at(location)` or inside `with locate(location)`. Code that knows both raises `error(...)`.
"""

import difflib
import linecache
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from gradsmith.transpiler.error_codes import default_kind


class SourceText:
    """Text that locations point into; `first_line` is the number of its first line in the user's file."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.text = text
        self.first_line = first_line

    @cached_property
    def lines(self) -> list[str]:
        # Not str.splitlines, which also splits at form feeds and other signs that end no line in Python.
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def line(self, number: int) -> str | None:
        index = number - self.first_line
        return self.lines[index] if 0 <= index < len(self.lines) else None


@dataclass(frozen=True, slots=True)
class Location:
    """A span of the user's text. Lines count from 1, columns are characters and count from 0, as in `ast`; the end
    is exclusive. Its text is looked up only when it is drawn: in `source`, or else in the file.

    part: what transforms made of the line, innermost first, where someone asked for a report: `("reverse",)`."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    source: SourceText | None = field(default=None, repr=False, compare=False)
    part: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def source_line(self) -> str | None:
        if self.source is not None:
            return self.source.line(self.line)
        return linecache.getline(self.file, self.line).rstrip("\r\n") or None

    def __str__(self) -> str:
        return f"{_shown_path(self.file)}:{self.line}:{self.column + 1}"


def placed(message: str, loc: Location | None) -> str:
    """The message with the user's line, as compiled code raises it, which cannot look the line up."""
    if loc is None:
        return message
    text = (loc.source_line or "").strip()
    return f"{message} [{os.path.basename(loc.file)}:{loc.line}{': ' + text if text else ''}]"


def escaped(text: str) -> str:
    """Static text inside a template that `str.format` fills."""
    return text.replace("{", "{{").replace("}", "}}")


def in_lanes(lanes: Sequence[object]) -> str:
    """What a message ends in where elements of batches are computed, outermost batch first: ` (in lane 2)`."""
    if not lanes:
        return ""
    return f" (in lane {lanes[0]})" if len(lanes) == 1 else f" (in lane ({', '.join(map(str, lanes))}))"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: what, where, why (`label`, beside the carets), and what to write instead."""

    code: str
    message: str
    location: Location | None = None
    label: str = ""
    help: str | None = None
    kind: type[Exception] | None = None
    also: tuple[tuple[Location, str], ...] = ()  # other lines that take part, each with its label

    def __str__(self) -> str:
        return draw(self)


class TranspileError(Exception):
    """The user's code cannot be transpiled. `str` draws every problem.

    What is raised is usually a subclass that is also the builtin exception NumPy or Python would have raised
    (see `error`), so that `except ValueError` goes on working.
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        if not self.problems:
            raise ValueError("a TranspileError needs a problem")
        self.args = (self.problems,)

    @property
    def code(self) -> str:
        return self.problems[0].code

    @property
    def message(self) -> str:
        return self.problems[0].message

    @property
    def location(self) -> Location | None:
        return self.problems[0].location

    def __str__(self) -> str:
        return "\n\n".join(draw(problem) for problem in self.problems)

    def __reduce__(self) -> tuple[Callable[..., Exception], tuple[object, ...]]:
        return error_of, (self.problems,)


def error(
    code: str,
    message: str,
    location: Location | None = None,
    *,
    label: str = "",
    help: str | None = None,
    kind: type[Exception] | None = None,
    also: Sequence[tuple[Location, str]] = (),
) -> TranspileError:
    """An exception to raise, which is also a `kind` (by default the one that is usual for `code`)."""
    return error_of((Problem(code, message, location, label, help, kind, tuple(also)),))


def error_of(problems: Iterable[Problem]) -> TranspileError:
    """One exception for several problems. It is also a builtin exception where all of them agree on which."""
    problems = tuple(problems)
    kinds = {problem.kind or default_kind(problem.code) for problem in problems}
    kind = kinds.pop() if len(kinds) == 1 else None
    return _error_class(kind)(problems)


_error_classes: dict[type[Exception], type[TranspileError]] = {}


def _error_class(kind: type[Exception] | None) -> type[TranspileError]:
    if kind is None:
        return TranspileError
    if kind not in _error_classes:
        made = type(f"Transpile{kind.__name__}", (TranspileError, kind), {"__module__": __name__})
        return _error_classes.setdefault(kind, made)
    return _error_classes[kind]


class RuleError(Exception):
    """Raised by code that does not know the place. `code` defaults to shapes that do not fit."""

    def __init__(
        self, message: str, *, code: str = "E302", help: str | None = None, kind: type[Exception] | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.help, self.kind = message, code, help, kind

    def at(self, location: Location | None, *, label: str = "") -> TranspileError:
        return error(self.code, self.message, location, label=label, help=self.help, kind=self.kind)


@contextmanager
def locate(location: Location | None) -> Iterator[None]:
    """Give every `RuleError` raised inside its place."""
    try:
        yield
    except RuleError as problem:
        raise problem.at(location) from None


Paint = Callable[[str, str], str]


def draw(problem: Problem, *, severity: str = "error", paint: Paint = lambda style, text: text) -> str:
    """`problem` over the user's line. `paint(style, text)` may add colour; its styles are those called here:
    "severity", "message", "place", "gutter", "source", "caret", "label", "help"."""
    parts = [paint("severity", f"{severity}[{problem.code}]") + paint("message", f": {problem.message}")]
    places = [*([(problem.location, problem.label)] if problem.location else []), *problem.also]
    width = max((len(str(place.line)) for place, _ in places), default=1)
    for number, (place, label) in enumerate(places):
        arrow = "-->" if number == 0 else ":::"
        parts.append(paint("gutter", " " * width + arrow) + " " + paint("place", str(place)))
        parts += _draw_line(place, label, width, paint)
    if problem.label and not problem.location:
        parts.append(paint("gutter", " " * width + " = ") + paint("label", problem.label))
    if problem.help:
        first, *rest = problem.help.splitlines()
        parts.append(paint("gutter", " " * width + " = ") + paint("help", f"help: {first}"))
        parts += [" " * (width + 3) + paint("help", f"      {line}") for line in rest]
    return "\n".join(parts)


def _draw_line(place: Location, label: str, width: int, paint: Paint) -> list[str]:
    text = place.source_line
    empty = paint("gutter", " " * width + " |")
    if text is None:
        return [empty, f"{empty} {paint('label', label)}"] if label else []
    text = text.rstrip()
    end = place.end_column if place.end_line == place.line else len(text)
    start = min(place.column, len(text))
    end = max(end, start + 1)  # an empty span, or one at the end of the line, still gets its caret
    # A tab stays a tab, so that the carets stand under the expression whatever a tab is worth.
    indent = "".join(c if c == "\t" else " " * _columns(c) for c in text[:start])
    carets = "^" * max(sum(map(_columns, text[start:end])), 1)
    return [
        empty,
        paint("gutter", f"{place.line:>{width}} |") + " " + paint("source", text),
        f"{empty} {indent}{paint('caret', carets)}{' ' + paint('label', label) if label else ''}",
        *([paint("gutter", " " * width + " ...")] if place.end_line > place.line else []),
    ]


def _columns(character: str) -> int:
    """The columns a character takes in a terminal."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown_path(file: str) -> str:
    """`file` from the working directory where it lies below it, since that is how the user knows it."""
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def nearest(name: str, candidates: Iterable[str], *, most: int = 3) -> list[str]:
    """The candidates that `name` may be a slip for, the likeliest first."""
    by_lower: dict[str, str] = {}
    for candidate in sorted(candidates):
        by_lower.setdefault(candidate.lower(), candidate)
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=0.6)
    return [by_lower[key] for key in close]


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A line of help that offers the nearest candidates, or None when nothing is near."""
    return offer(nearest(name, candidates))


def offer(names: list[str]) -> str | None:
    """A line of help that offers `names`, or None when there are none."""
    match names:
        case []:
            return None
        case [only]:
            return f"did you mean `{only}`?"
        case [*others, last]:
            return f"did you mean {', '.join(f'`{other}`' for other in others)} or `{last}`?"
    raise AssertionError("a list is empty, of one, or longer")
