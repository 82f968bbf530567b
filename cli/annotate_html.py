"""An annotated source as one HTML file: no network, no scripts needed, light and dark.

Lines that have something to say are <details>; what a script adds (unfolding all, showing one kind, keys) comes on
top.  The page's own policy lets it load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from gradsmith.transpiler.annotate.facts import Annotation, Fact, GeneratedLine, Kind, Part, Section, SourceLine


def page(made: Annotation) -> str:
    """The whole file; equal annotations give equal pages."""
    style, script = _asset("annotate.css"), _asset("annotate.js")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    head = [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="generator" content="gradsmith annotate">', f"<title>{escape(made.title)}</title>",
        f"<style>{style}</style>", "</head>", "<body>"]
    body = [*_header(made), "<main>", *(line for section in made.sections for line in _section(section)),
            *_module(made.module), "</main>", f"<script>{script}</script>", "</body>", "</html>"]
    return "\n".join([*head, *body]) + "\n"


@cache
def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    """What the policy knows an inline style or script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _header(made: Annotation) -> Iterator[str]:
    yield f"<header><h1>{escape(made.title)}</h1>"
    yield f"<p><code>{escape(made.signature)}</code></p>"
    yield f'<p class="quiet">The module: <code>{escape(made.command)}</code></p>'
    kinds = made.kinds()
    if kinds:
        yield '<ul class="legend" aria-label="What is said of lines">'
        for kind, count in kinds:
            yield (f'<li data-kind="{kind.title}"><span class="chip {kind.title}">{kind.title} · {count}</span>'
                   f'<span class="about">{escape(kind.about)}</span></li>')
        yield "</ul>"
        yield '<details class="meanings"><summary>What the words mean</summary><dl>'
        for kind, _ in kinds:
            yield f'<dt><span class="chip {kind.title}">{kind.title}</span></dt><dd>{escape(kind.about)}</dd>'
        yield "</dl></details>"
    yield '<div class="tools" hidden><span class="quiet">j and k go from line to line, Enter unfolds</span></div>'
    yield "</header>"


# ---------------------------------------------------------------------------------------------------------------
# the user's functions


def _section(section: Section) -> Iterator[str]:
    yield f"<section><h2>{escape(section.file)}: {escape(section.name)}</h2>"
    yield '<ol class="source">'
    for line, code in zip(section.lines, highlighted([line.text for line in section.lines]), strict=True):
        yield from _line(line, code, section)
    yield "</ol></section>"


def _line(line: SourceLine, code: str, section: Section) -> Iterator[str]:
    kinds = " ".join(kind.title for kind in Kind if any(fact.kind is kind for fact in line.facts))
    named = f' data-kinds="{kinds}"' if kinds else ""
    classes = f"line {line.kind.title}" if line.kind is not None else "line"
    chips = "".join(f'<span class="chip {kind.title}">{escape(label)}</span>' for kind, label in line.labels)
    row = (f'<span class="fold" aria-hidden="true"></span><span class="number">{line.number}</span>'
           f'<code class="code">{code}</code><span class="chips">{chips}</span>')
    yield f'<li class="{classes}"{named} id="{_anchor(section, line.number)}">'
    if line.facts or line.parts:
        yield f'<details><summary class="row">{row}</summary><div class="inside">'
        yield from _facts(line.facts)
        for part in line.parts:
            yield from _part(part)
        yield "</div></details></li>"
    else:
        yield f'<div class="row">{row}</div></li>'


def _anchor(section: Section, number: int) -> str:
    return f"{re.sub(r'[^A-Za-z0-9_.]', '-', section.file)}-{number}"


def _facts(facts: Sequence[Fact]) -> Iterator[str]:
    if facts:
        yield '<ul class="facts">'
        for fact in facts:
            yield f'<li><span class="chip {fact.kind.title}">{escape(fact.shown)}</span> {escape(fact.detail)}</li>'
        yield "</ul>"


def _part(part: Part) -> Iterator[str]:
    yield f'<div class="part"><h3>{escape(part.name)}</h3><ol class="generated">'
    for line, code in zip(part.lines, highlighted([line.text for line in part.lines]), strict=True):
        yield _generated(line, code)
    yield "</ol></div>"


def _generated(line: GeneratedLine, code: str) -> str:
    context = ' class="context"' if line.context else ""
    return (f'<li{context}><a href="#G{line.number}" aria-label="line {line.number} of the module">{line.number}</a>'
            f'<code class="code">{" " * (4 * line.depth)}{code}</code></li>')


# ---------------------------------------------------------------------------------------------------------------
# the generated module


def _module(text: str) -> Iterator[str]:
    lines = text.rstrip("\n").split("\n")
    yield '<details id="module"><summary>The generated module</summary><ol class="generated">'
    for number, code in enumerate(highlighted(lines), 1):
        yield f'<li id="G{number}"><a href="#G{number}">{number}</a><code class="code">{code}</code></li>'
    yield "</ol></details>"


# ---------------------------------------------------------------------------------------------------------------
# colours of code


def highlighted(lines: Sequence[str]) -> list[str]:
    """Each line as HTML, keywords, strings, comments and numbers marked; strings may go over several lines."""
    from pygments.lexers import PythonLexer
    from pygments.token import Comment, Keyword, Number, Operator, String
    classes = ((Keyword, "k"), (Operator.Word, "k"), (String, "s"), (Comment, "c"), (Number, "m"))
    found = [""]
    for token, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        name = next((name for kind, name in classes if token in kind), None)
        for k, piece in enumerate(text.split("\n")):
            if k:
                found.append("")
            if piece:
                found[-1] += f'<span class="{name}">{escape(piece)}</span>' if name else escape(piece)
    return found[:len(lines)] if len(found) >= len(lines) else [*found, *[""] * (len(lines) - len(found))]
