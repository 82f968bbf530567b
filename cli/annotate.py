"""`gradsmith annotate`: the user's source, each line with what happens to it and the generated lines behind it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .build import ARGNUMS, IN_AXES, OUT_AXES, SIGNATURE, STATIC, TRANSFORM, chain_of, request_of, write

if TYPE_CHECKING:
    from gradsmith.transpiler.annotate.facts import Annotation

    from .generate import Request

FORMATS = ("text", "html")


def command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="FILE.py:FUNC or package.module:FUNC.")],
    transform: Annotated[str, TRANSFORM] = "grad",
    sig: Annotated[str | None, SIGNATURE] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="OUT.html", show_default=False, help=(
        "The file to write.  `-`, or nothing, prints it."))] = None,
    format: Annotated[str | None, typer.Option("--format", metavar="text|html", show_default=False, help=(
        "By default html for a file that is called so, else text."))] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Text without the generated lines.")] = False,
    standalone: Annotated[bool, typer.Option("--standalone", help="As for build.")] = False,
    parallel: Annotated[bool, typer.Option("--parallel", help="As for build.")] = False,
    static: Annotated[str | None, STATIC] = None,
    in_axes: Annotated[str | None, IN_AXES] = None,
    out_axes: Annotated[str | None, OUT_AXES] = None,
    argnums: Annotated[str | None, ARGNUMS] = None,
) -> None:
    """Show what happens to each line of a function: saved and how much, recomputed, fused, parallel, slow, ...

    The page is one file, which needs no network and no scripts.
    """
    chosen = format_of(format, output)
    chain = chain_of(transform, in_axes=in_axes, out_axes=out_axes, argnums=argnums)
    from .target import opened
    with opened(target) as found:
        request = request_of(found, chain, sig, static=static, standalone=standalone, parallel=parallel)
        made = annotated(request)
    if chosen == "html":
        from .annotate_html import page
        text = page(made)
    elif output in (None, "-"):
        from .annotate_text import print_annotation
        print_annotation(made, brief=brief)
        return
    else:
        from .annotate_text import as_text
        text = as_text(made, brief=brief)
    if output in (None, "-"):
        sys.stdout.write(text)
    else:
        write(Path(output), text)      # type: ignore[arg-type]


def format_of(given: str | None, output: str | None) -> str:
    """TranspileError (E513) for what is no format."""
    from gradsmith.transpiler.errors import did_you_mean, error
    if given is None:
        return "html" if output is not None and output.lower().endswith((".html", ".htm")) else "text"
    if given not in FORMATS:
        raise error("E513", f"there is no format `{given}`",
                    help=did_you_mean(given, FORMATS) or f"the formats are {' and '.join(FORMATS)}")
    return given


def annotated(request: Request) -> Annotation:
    """The annotated source of a request.  TranspileError as for `build`."""
    from gradsmith.transpiler.annotate.source_lines import annotation
    from gradsmith.transpiler.ir.library import main_of

    from .generate import composed, described
    from .transform import transform_text
    made = composed(request, reporting=True)
    found = made.found
    assert found.trace.report is not None
    of = f"{transform_text(request.chain)} of " if request.chain else ""
    file, _, name = request.shown.rpartition(":")
    signature = f"{request.name}({described(main_of(found.func))})"
    return annotation(
        title=f"{of}{name} in {file}", signature=signature, command=request.command,
        traced=found.func, report=found.trace.report, emitted=made.emitted, finished=made.text,
        sources=[s for s in found.trace.sources if not s.file.startswith(_own_folders())])


def _own_folders() -> tuple[str, ...]:
    """Where gradsmith's own functions are, which are not shown."""
    import gradsmith
    import gradsmith.transpiler
    files = (gradsmith.__file__, gradsmith.transpiler.__file__, __file__)
    return tuple(str(Path(file).parent) for file in files if file)
