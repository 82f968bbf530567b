"""`gradsmith show`: the generated source, or the IR at any stage on the way to it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .build import ARGNUMS, IN_AXES, OUT_AXES, SIGNATURE, STATIC, TRANSFORM, chain_of, request_of

if TYPE_CHECKING:
    from gradsmith.transpiler.ir.library import Program
    from gradsmith.transpiler.raise_loops.findings import Finding

    from .generate import Request

LANGUAGES = {"python": "python", "stablehlo": "mlir"}


def command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="FILE.py:FUNC or package.module:FUNC.")],
    transform: Annotated[str, TRANSFORM] = "grad",
    sig: Annotated[str | None, SIGNATURE] = None,
    at: Annotated[str, typer.Option("--at", metavar="STAGE", help=(
        "traced, simplify, common, dead, lower, tidy, hoist: the IR after that stage; raise: with loops as operations "
        "on whole arrays; python: the source; stablehlo: text for XLA, for which the signature gives all sizes as "
        "numbers."))] = "python",
    locations: Annotated[bool, typer.Option("--locations", help="End lines of IR with the lines they came from.")
                         ] = False,
    standalone: Annotated[bool, typer.Option("--standalone", help="As for build.")] = False,
    parallel: Annotated[bool, typer.Option("--parallel", help="As for build.")] = False,
    static: Annotated[str | None, STATIC] = None,
    in_axes: Annotated[str | None, IN_AXES] = None,
    out_axes: Annotated[str | None, OUT_AXES] = None,
    argnums: Annotated[str | None, ARGNUMS] = None,
) -> None:
    """Show what a function becomes: its generated source, or the IR at a stage before."""
    require_stage(at)
    chain = chain_of(transform, in_axes=in_axes, out_axes=out_axes, argnums=argnums)
    from .target import opened
    with opened(target) as found:
        request = request_of(found, chain, sig, static=static, standalone=standalone, parallel=parallel)
        text = text_at(request, at, locations=locations)
    print_code(text, LANGUAGES.get(at, "rust"))


def require_stage(name: str) -> None:
    """TranspileError (E507) for what is no stage."""
    from gradsmith.transpiler import pipeline
    from gradsmith.transpiler.errors import did_you_mean, error
    known = ("traced", *pipeline.NAMES, "python", "stablehlo")
    if name not in known:
        raise error("E507", f"there is no stage `{name}`",
                    help=did_you_mean(name, known) or f"the stages are {', '.join(known)}")


def text_at(request: Request, stage: str, *, locations: bool = False) -> str:
    """The request's source, its StableHLO, or its IR after a stage."""
    from gradsmith.transpiler import pipeline
    from gradsmith.transpiler.ir.show import show

    from .generate import generate, traced
    if stage == "python":
        return generate(request)
    if stage == "stablehlo":
        return stablehlo_of(request, locations=locations)
    if stage in {s.name for s in pipeline.stablehlo_stages()} - {s.name for s in pipeline.STAGES}:
        findings: list[Finding] = []
        text = show(raised_of(request, findings, stop=stage), locations)
        note_loops(findings)
        return text
    func = traced(request).func
    if stage != "traced":
        is_parallel = request.parallel or stage not in {s.name for s in pipeline.STAGES}
        stages = pipeline.PARALLEL_STAGES if is_parallel else pipeline.STAGES
        func = pipeline.run(func, stop=stage, stages=stages)
    return show(func, locations)


def note_loops(findings: list[Finding]) -> None:
    """What became of each loop, on standard error."""
    from gradsmith.transpiler.raise_loops.findings import shown

    from .console import note
    if findings:
        note(shown(findings))


def raised_of(request: Request, findings: list[Finding] | None, stop: str | None = None) -> Program:
    """The request's IR on the way to StableHLO, with its loops raised; `findings` is told what became of each."""
    from gradsmith.to_stablehlo import raising
    from gradsmith.transpiler import pipeline

    from .generate import traced
    found: list[Finding] = [] if findings is None else findings
    with raising(found):
        func = traced(request).func
    return pipeline.run(func, stop=stop, stages=pipeline.stablehlo_stages(found))


def stablehlo_of(request: Request, *, locations: bool = False) -> str:
    """TranspileError (E207) where a size is not known or the code has no StableHLO form."""
    from gradsmith.transpiler.emit.stablehlo import emit_stablehlo
    from gradsmith.transpiler.errors import RuleError, error

    func = raised_of(request, None)
    unknown = [p for p in func.params if any(not isinstance(d, int) for d in p.type.shape)]
    if unknown:
        raise error("E207", f"StableHLO needs every size as a number, and {unknown[0].name} is {unknown[0].type}",
                    help='give the sizes in the signature: --sig "f64[1000,20]"')
    try:
        return emit_stablehlo(func, locations=locations)
    except RuleError as problem:
        raise problem.at(None) from None


def print_code(text: str, language: str) -> None:
    """Highlighted on a terminal, else as it is."""
    from .console import console, is_terminal
    if not is_terminal(sys.stdout):
        sys.stdout.write(text)
        return
    from rich.syntax import Syntax
    console().print(Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=False))
