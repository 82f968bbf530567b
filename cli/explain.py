"""`gradsmith explain`: the page of an error code, or the list of all codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def command(
    code: Annotated[str | None, typer.Argument(metavar="CODE", show_default=False, help=(
        "A code such as E204; without it, all are listed."))] = None,
) -> None:
    """Say what an error code means and what to do about it."""
    from gradsmith.transpiler.error_codes import ERROR_CODES
    from gradsmith.transpiler.errors import error, nearest
    if code is None:
        for entry in sorted(ERROR_CODES.values(), key=lambda entry: entry.code):
            print(f"{entry.code}  {entry.title}")
        return
    wanted = code.strip().upper()
    wanted = wanted if wanted.startswith("E") else f"E{wanted}"
    found = ERROR_CODES.get(wanted)
    if found is None:
        near = nearest(wanted, ERROR_CODES)
        named = " or ".join(f"{n} ({ERROR_CODES[n].title.lower()})" for n in near[:2])
        raise error("E512", f"there is no error code {code}", help=f"did you mean {named}?" if near else
                    "`gradsmith explain` lists all codes")
    from .console import console, is_terminal
    if not is_terminal(sys.stdout):
        print(found.page, end="")
        return
    from rich.markdown import Markdown
    console().print(Markdown(found.page))
