"""What the command prints: problems on standard error in the user's own lines, colours only on a terminal."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from gradsmith.transpiler.errors import Problem

_STYLES: dict[str, dict[str, Any]] = {
    "severity": {"fg": "red", "bold": True},
    "message": {"bold": True},
    "place": {"fg": "cyan"},
    "gutter": {"fg": "blue", "bold": True},
    "source": {},
    "caret": {"fg": "red", "bold": True},
    "label": {"fg": "red"},
    "help": {"fg": "green"},
}


def is_terminal(stream: TextIO) -> bool:
    """Whether colours and moving bars are for this stream.  NO_COLOR and TERM=dumb say no, FORCE_COLOR yes."""
    if os.environ.get("FORCE_COLOR"):
        return True
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def console(*, stderr: bool = False) -> Console:
    """A rich console for the standard output or error of this moment."""
    from rich.console import Console
    stream = sys.stderr if stderr else sys.stdout
    colour = is_terminal(stream)
    return Console(file=stream, force_terminal=colour, no_color=not colour, highlight=False, soft_wrap=not colour)


def report(problem: Problem, *, severity: str = "error") -> None:
    """Draw a problem on standard error."""
    from gradsmith.transpiler.errors import draw
    print(draw(problem, severity=severity, paint=_painter(severity)), file=sys.stderr)


def _painter(severity: str) -> Any:
    if not is_terminal(sys.stderr):
        return lambda style, text: text
    import typer

    def paint(style: str, text: str) -> str:
        chosen = dict(_STYLES[style])
        if severity == "warning" and chosen.get("fg") == "red":
            chosen["fg"] = "yellow"
        return typer.style(text, **chosen) if chosen else text

    return paint


def note(text: str) -> None:
    """A line about the work itself: on standard error, so that output can be piped."""
    print(text, file=sys.stderr)


def show_warnings() -> None:
    """Warnings as one line each, without the place in gradsmith that raised them."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
             line: str | None = None) -> None:
        head = "warning"
        if is_terminal(sys.stderr):
            import typer
            head = typer.style(head, fg="yellow", bold=True)
        print(f"{head}: {message}", file=sys.stderr)

    warnings.showwarning = show
