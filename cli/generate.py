"""The text of a module for one function, transform and signature: what `build` writes and `show` shows.

    function ─► chain of transforms ─► trace ─► pipeline ─► emit ─► guards, defaults and containers put around it

Sizes may be anything, 0 and 1 included, where the code can be written so; else the least size that the code was
written for is among what it checks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradsmith.transpiler import pipeline
from gradsmith.transpiler.emit.effects import sharing_conditions
from gradsmith.transpiler.emit.names import RESERVED
from gradsmith.transpiler.emit.python import Emitted, Guard, emit_lines
from gradsmith.transpiler.errors import Problem, RuleError, TranspileError, error, error_of
from gradsmith.transpiler.frontend.guards import Capture, ShapeGuard
from gradsmith.transpiler.frontend.trace import Trace, trace
from gradsmith.transpiler.ir.dims import DimExpr, symbols_of
from gradsmith.transpiler.ir.library import Program, collecting, each_func, main_of
from gradsmith.transpiler.ir.nodes import Block, Func, Var
from gradsmith.transpiler.ir.walk import blocks, with_blocks
from gradsmith.transpiler.signature import Spec, format_signature

from .chain import Applied, apply_chain, with_static
from .finish import Entry, finished_text, result_names
from .parameters import arguments_for, names_for, specs_for
from .transform import Chain, generated_name, transform_text

OURS = str(Path(__file__).parent)       # what is traced there is no line of the user's


@dataclass(frozen=True)
class HloOptions:
    """machine: "stablehlo" for any, or "tpu".  checked: an error flag is the last result.  cast: what floats become.
    max_trips: of loops whose steps a derivative saves."""

    machine: str = "stablehlo"
    checked: bool = False
    cast: str | None = None
    max_trips: int | None = None


@dataclass(frozen=True)
class Request:
    """What to generate.  shown: the target as the header names it.  name: of the generated function.  hlo: for
    StableHLO instead of Python."""

    function: Callable[..., Any]
    shown: str
    chain: Chain
    specs: tuple[Spec, ...]
    name: str
    standalone: bool = False
    parallel: bool = False
    statics: Mapping[str, Any] = field(default_factory=dict)
    hlo: HloOptions | None = None

    @property
    def command(self) -> str:
        """The command that makes it again."""
        words = ["gradsmith build", self.shown]
        if self.chain:
            words.append(f'--transform "{transform_text(self.chain)}"')
        words.append(f'--sig "{format_signature(self.specs)}"')
        if self.statics:
            words.append(f'--static "{", ".join(f"{name}={value!r}" for name, value in self.statics.items())}"')
        words += ["--standalone"] if self.standalone else []
        words += ["--parallel"] if self.parallel else []
        usual = generated_name(self.shown.rpartition(":")[2].rpartition(".")[2], self.chain)
        return " ".join(words + ([f"--name {self.name}"] if self.name != usual else []))


@dataclass(frozen=True)
class Traced:
    """A request's trace, before the pipeline."""

    request: Request
    applied: Applied
    trace: Trace

    @property
    def func(self) -> Program:
        """The traced func, with captured arrays in front of captured numbers, which have defaults; a module where it
        calls others."""
        func, count = self.trace.func, len(self.trace.captures)
        own = func.params[:len(func.params) - count]
        captured = [param for param, _ in self.captures]
        names = result_names(self.trace.out_tree, self.applied, len(func.returned), own)
        names = (*names, *(param.name for param in func.effects)) if names else ()
        main = Func(self.request.name, (*own, *captured), without_places_in(func.body, OURS), names, func.effects)
        with collecting(func) as callees:
            return each_func(callees.program(main), lambda f: replace(f, body=without_places_in(f.body, OURS)))

    @property
    def captures(self) -> list[tuple[Var, Capture]]:
        count = len(self.trace.captures)
        params = self.trace.func.params
        pairs = zip(params[len(params) - count:], self.trace.captures)
        return sorted(pairs, key=lambda pair: not pair[0].type.shape)


def traced(request: Request, *, low: int | None = None, reporting: bool = False) -> Traced:
    """Trace a request.  Sizes are at least `low`; without it, they are anything, or at least 2 where that fails.
    reporting: the trace comes with a report of what transforms did."""
    if low is None:
        try:
            return traced(request, low=0, reporting=reporting)
        except TranspileError:
            return traced(request, low=2, reporting=reporting)
    names = names_for(request.function, len(request.specs))
    arguments = arguments_for(request.specs, names, low)
    try:
        applied = apply_chain(request.function, request.chain, arguments, names)
        return Traced(request, applied, trace(applied.callable, applied.arguments, name=request.name,
                                              reporting=reporting))
    except TranspileError as fault:
        raise error_of(map(_told_here, fault.problems)) from fault


def _told_here(problem: Problem) -> Problem:
    """The problem as the command tells it: not in our own lines, with the command's own options as advice."""
    if problem.location is not None and problem.location.file.startswith(OURS):
        problem = replace(problem, location=None)
    if problem.code == "E117" and problem.help and "static_argnums" in problem.help:
        problem = replace(problem, help='fix it, and leave it out of the signature: --static "NAME=VALUE"')
    return problem


def without_places_in(block: Block, folder: str) -> Block:
    """The block without locations in files of that folder."""
    stmts = []
    for stmt in block.stmts:
        new = with_blocks(stmt, [without_places_in(inner, folder) for inner in blocks(stmt)])
        if new.loc is not None and new.loc.file.startswith(folder):
            new = replace(new, loc=None)
        stmts.append(new)
    return Block(tuple(stmts), block.results)


def generate(request: Request) -> str:
    """The module's text.  TranspileError for code that cannot be transpiled or written."""
    if request.hlo is not None:
        from .hlo import stablehlo_text
        return stablehlo_text(request)
    return composed(request).text


@dataclass(frozen=True)
class Composed:
    """text: the module's; `emitted` is what it was before checks, defaults and containers were put around it."""

    found: Traced
    emitted: Emitted
    text: str


def composed(request: Request, *, reporting: bool = False) -> Composed:
    """The module with what it was made of.  TranspileError for code that cannot be transpiled or written."""
    try:
        return _composed(traced(request, low=0, reporting=reporting))
    except TranspileError:
        return _composed(traced(request, low=2, reporting=reporting))


def _composed(found: Traced) -> Composed:
    request = found.request
    stages = pipeline.PARALLEL_STAGES if request.parallel else pipeline.STAGES
    if found.trace.report is not None:
        stages = pipeline.reporting(stages, found.trace.report)
    program = pipeline.run(found.func, stages=stages)
    func = main_of(program)
    entry = Entry(found.trace, found.applied, func, found.captures, request.name, described(func))
    try:
        guards = [*size_guards(func, found.trace, request.name), *sharing_guards(func, request.name)]
        emitted = emit_lines(program, name=entry.compiled_name, doc=_header(found, func), guards=guards,
                             parallel=request.parallel, standalone=request.standalone, fills=True)
    except RuleError as problem:
        code = "E207" if request.standalone else problem.code
        raise error(code, problem.message, help=problem.help, kind=problem.kind) from None
    if request.name in _imported(emitted.text) or f"\ndef {entry.compiled_name}(" not in emitted.text:
        raise _taken(request.name)
    return Composed(found, emitted, finished_text(emitted.text, entry))


def _imported(text: str) -> set[str]:
    """The names that a module imports."""
    imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _taken(name: str) -> TranspileError:
    return error("E504", f"the function cannot be called `{name}`: the name means something else in the module",
                 help=f'choose another: --name "{name}_"')


# ---------------------------------------------------------------------------------------------------------------
# what the header says


def described(func: Program) -> str:
    """The parameters with their types: `x: f64[n], w: f64[n,m]`."""
    return ", ".join(f"{p.name}: {p.type}" for p in func.params)


def _header(found: Traced, func: Program) -> str:
    request = found.request
    of = f"{transform_text(request.chain)} of " if request.chain else ""
    file, _, name = request.shown.rpartition(":")
    lines = [f"{of}{name} in {file}, generated by gradsmith: {request.name}({described(func)}).", "",
             "Make it again, rather than edit it, with", f"    {request.command}"]
    lines += _captured(found)
    return "\n".join(lines)


def _captured(found: Traced) -> list[str]:
    lines: list[str] = []
    arrays = [param.name for param, _ in found.captures if param.type.shape]
    numbers = [param.name for param, _ in found.captures if not param.type.shape]
    if arrays or numbers:
        lines += ["", "What the source reads from outside of the function became parameters of this one:"]
        lines += [f"    {', '.join(arrays)}: required"] if arrays else []
        lines += [f"    {', '.join(numbers)}: by default as when this was generated"] if numbers else []
    fixed = {str(g.access): g.expected for g in found.trace.static_guards
             if g.kind == "equal" and isinstance(g.expected, (bool, int, float, str)) and str(g.access).isidentifier()}
    if fixed:
        values = ", ".join(f"{name} = {value!r}" for name, value in sorted(fixed.items()))
        lines += ["", f"It holds for {values}."]
    return lines


# ---------------------------------------------------------------------------------------------------------------
# what is checked on entry


def size_guards(func: Program, found: Trace, name: str) -> list[Guard]:
    """What must hold of the arguments' sizes for this code to be right."""
    conditions, extra = size_conditions(func, found)
    if not conditions and not extra:
        return []
    holding = f", where {' and '.join(extra)}" if extra else ""
    message = f"{name} was generated for {described(func)}{holding}"
    return [(" and ".join([*conditions, *extra]), f"ValueError({_quoted(message)})")]


def sharing_guards(func: Program, name: str) -> list[Guard]:
    """What is written to must not share memory with anything else."""
    conditions = sharing_conditions(func)
    written = ", ".join(param.name for param in func.effects)
    message = f"{name} writes to {written}: pass arrays that share no memory"
    return [(" and ".join(conditions), f"ValueError({_quoted(message)})")] if conditions else []


def size_conditions(func: Program, found: Trace) -> tuple[list[str], list[str]]:
    """Conditions that the types in `described` tell already, and those that they do not."""
    conditions: list[str] = []
    extra: list[str] = []
    bound = {p.name for p in func.params if not p.type.shape and p.type.kind in "iu"}
    for param in func.params:
        for axis, dim in enumerate(param.type.shape):
            symbols = symbols_of(dim)
            if str(dim) in symbols and str(dim) not in bound:
                bound.add(str(dim))
                low = symbols[str(dim)].low
                extra += [f"{dim} >= {low}"] if low else []
                continue
            conditions.append(f"{param.name}.shape[{axis}] == {dim}")
    extra += [_readable(guard) for guard in found.shape_guards]
    return list(dict.fromkeys(conditions)), list(dict.fromkeys(extra))


def _readable(guard: ShapeGuard) -> str:
    """The guard with its constant on the right: `n >= 1` for `n - 1 >= 0`."""
    constant = dict(guard.dim.terms).get((), 0) if isinstance(guard.dim, DimExpr) else 0
    rest = guard.dim - constant
    if not constant or isinstance(rest, int):
        return str(guard)
    sign = {("==", True): "==", ("==", False): "!=", ("<", True): "<", ("<", False): ">="}[guard.relation, guard.truth]
    return f"{rest} {sign} {-constant}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def request_for(function: Callable[..., Any], shown: str, chain: Chain, signature: str | None, *,
                name: str | None = None, standalone: bool = False, parallel: bool = False,
                statics: Mapping[str, Any] | None = None, hlo: HloOptions | None = None) -> Request:
    """A request under the usual name, FUNC_TRANSFORM.  TranspileError (E501 to E504) for what does not fit."""
    stem = shown.rpartition(":")[2].rpartition(".")[2]
    chosen = name or generated_name(stem, chain)
    if not chosen.isidentifier():
        raise error("E504", f"`{chosen}` cannot be the name of a function")
    if chosen in RESERVED:
        raise _taken(chosen)
    bound = with_static(function, statics, stem) if statics else function
    specs = specs_for(bound, signature, chain, stem, original=function, halves=hlo is not None)
    return Request(bound, shown, chain, specs, chosen, standalone, parallel, dict(statics or {}), hlo)
