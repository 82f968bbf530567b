"""An annotated source as text: plain in a pipe, coloured on a terminal.

    9 |     h = np.tanh(x @ w)                            saved 8*k*n B, BLAS
      |       forward 21   gemm(x, w, h)
      |       reverse 40   d_h[i, j] * (1.0 - h[i, j] * h[i, j])
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gradsmith.transpiler.annotate.facts import Annotation, Kind, Part, SourceLine

from .console import console, is_terminal

COLUMN = 64         # where what is said of a line begins
STYLES = {
    Kind.SLOW: "bold red", Kind.SAVED: "yellow", Kind.RESTORED: "magenta", Kind.LIBRARY: "blue",
    Kind.RECOMPUTED: "cyan", Kind.PARALLEL: "green", Kind.FUSED: "green", Kind.ARRAY: "", Kind.INACTIVE: "dim",
    Kind.ONCE: "cyan", Kind.ELIDED: "dim",
}

Piece = tuple[str, str]         # text and its style


def as_text(made: Annotation, *, brief: bool = False) -> str:
    """The whole as plain text."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in _lines(made, brief))


def print_annotation(made: Annotation, *, brief: bool = False) -> None:
    """Print it to standard output."""
    if not is_terminal(sys.stdout):
        sys.stdout.write(as_text(made, brief=brief))
        return
    from rich.text import Text
    out = console()
    for line in _lines(made, brief):
        text = Text(no_wrap=False, overflow="fold")
        for piece, style in line:
            text.append(piece, style=style or None)
        out.print(text)


def _lines(made: Annotation, brief: bool) -> Iterator[list[Piece]]:
    yield [(made.title, "bold")]
    yield [(made.signature, "")]
    width = max((len(str(line.number)) for section in made.sections for line in section.lines), default=1)
    for section in made.sections:
        yield []
        yield [(f"{section.file}: {section.name}", "bold")]
        yield []
        for line in section.lines:
            yield from _source_line(line, width, brief)
    yield []
    for kind, count in made.kinds():
        yield [(f"{kind.title:<11}", STYLES[kind]), (f" {count:>4} line{'s' if count > 1 else ' '}  {kind.about}", "")]


def _source_line(line: SourceLine, width: int, brief: bool) -> Iterator[list[Piece]]:
    head = f"{line.number:>{width}} | {line.text}"
    pieces: list[Piece] = [(head, STYLES[line.kind] if line.kind else "")]
    if line.labels:
        pieces.append((" " * max(COLUMN - len(head), 2), ""))
        for k, (kind, label) in enumerate(line.labels):
            pieces += [(", ", "")] if k else []
            pieces.append((label, STYLES[kind]))
    yield pieces
    if brief:
        return
    indent = len(line.text) - len(line.text.lstrip())
    longest = max((len(part.name) for part in line.parts), default=0)
    size = max((len(str(part.lines[-1].number)) for part in line.parts), default=0)
    for part in line.parts:
        yield from _part(part, " " * width + " |   " + " " * indent, longest, size)


def _part(part: Part, before: str, longest: int, size: int) -> Iterator[list[Piece]]:
    for k, line in enumerate(part.lines):
        name = (part.name if k == 0 else "").ljust(longest)
        text = "    " * line.depth + line.text
        yield [(f"{before}{name} {line.number:>{size}}  ", "dim"), (text, "dim" if line.context else "italic")]
