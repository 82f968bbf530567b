"""Tokens of the IR's text form, and a reader to take them one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

TOKEN = re.compile(r"""
    (?P<space>[ ]+|\#.*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?)
  | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
  | (?P<sign>\.\.|->|//|>=|[-+*%(){}\[\],:;=?@<>])
""", re.VERBOSE)


class ParseError(ValueError):
    """The text is not IR.  Lines and columns count from 1."""

    def __init__(self, message: str, line: int, column: int, text: str = "") -> None:
        caret = f"\n    {text}\n    {' ' * (column - 1)}^" if text else ""
        super().__init__(f"line {line}, column {column}: {message}{caret}")
        self.line, self.column = line, column


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int
    column: int


def _tokens(text: str) -> list[Token]:
    """Tokens, with one of kind `line` before those of each line that has any; its text is the indentation."""
    found: list[Token] = []
    number = 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        position = 0
        first = True
        while position < len(line):
            match = TOKEN.match(line, position)
            if match is None:
                raise ParseError(f"unexpected {line[position]!r}", number, position + 1, line)
            kind = match.lastgroup or ""
            if kind != "space":
                if first:
                    found.append(Token("line", line[:position], number, position + 1))
                    first = False
                found.append(Token(kind, match.group(), number, position + 1))
            position = match.end()
    found.append(Token("line", "", number + 1, 1))
    found.append(Token("end", "", number + 1, 1))
    return found


class Reader:
    """The tokens of a text, and where we are in it."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.tokens = _tokens(text)
        self.at = 1  # the first token is a `line`

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        token = token or self.peek()
        if token.kind in ("line", "end"):  # point behind what came before
            before = next((t for t in reversed(self.tokens[:self.at]) if t.kind not in ("line", "end")), token)
            token = Token(token.kind, "", before.line, before.column + len(before.text))
        line = self.lines[token.line - 1] if token.line <= len(self.lines) else ""
        raise ParseError(message, token.line, token.column, line)

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def sees(self, *texts: str) -> bool:
        """Whether the next tokens read so."""
        return all(self.peek(i).text == text and self.peek(i).kind in ("sign", "name") for i, text in enumerate(texts))

    def accept(self, text: str) -> bool:
        found = self.sees(text)
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            found = self.peek()
            instead = "the end of the line" if found.kind in ("line", "end") else f"`{found.text}`"
            self.fail(f"expected `{text}`, found {instead}")

    def end_line(self) -> None:
        if self.peek().kind != "line":
            self.fail(f"unexpected `{self.peek().text}`")
        self.at += 1

    def name(self) -> str:
        if self.peek().kind != "name":
            self.fail(f"expected a name, found `{self.peek().text}`")
        return self.take().text

    def name_or_text(self) -> str:
        return self.text() if self.peek().kind == "string" else self.name()

    def text(self) -> str:
        token = self.take()
        try:
            if token.kind == "string":
                return str(json.loads(token.text))
        except ValueError:
            pass
        self.fail("expected a string", token)

    def listed(self, end: str, item: Callable[[], Any]) -> list[Any]:
        """Items up to `end`, with commas between."""
        found: list[Any] = []
        while not self.accept(end):
            if found:
                self.expect(",")
                if self.accept(end):
                    break
            found.append(item())
        return found
