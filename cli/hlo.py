"""`gradsmith build --target stablehlo`: one module for XLA, at the sizes of a signature.

    request ─► chain of transforms ─► trace at numbers ─► pipeline ─► StableHLO ─► (tpu) the TPU compiler
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from gradsmith.to_stablehlo import Arguments, Lowered, Options, lowered_at
from gradsmith.transpiler.emit.hlo_blocks import location
from gradsmith.transpiler.errors import Location, Problem, TranspileError, error, error_of
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.library import main_of
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.signature import Spec, arrays_in, format_signature, with_dims

from .chain import apply_chain
from .generate import Request
from .parameters import arguments_for, map_leaves, names_for

WIDE = ("float64", "complex128")


def stablehlo_text(request: Request) -> str:
    """The module, which is the same on every machine.  TranspileError: E207 for a size that is not given, an operation
    that StableHLO lacks, float64 for a TPU; else as for Python."""
    made = lowered(request)
    if request.hlo is not None and request.hlo.machine == "tpu":
        warn_of_loops(made)
    text = made.text
    for source in made.trace.sources:
        text = text.replace(f"loc({_file(source.file)}:", f"loc({_file(os.path.basename(source.file))}:")
    return text


def warn_of_loops(made: Lowered) -> None:
    """One line for each loop that a TPU would run element by element, with the reason."""
    from .console import note
    for finding in made.loops:
        if finding.is_slow:
            note(f"warning: {finding}")


def _file(path: str) -> str:
    """A file as places in the text name it."""
    return location(Location(path, 1, 0, 1, 1)).removesuffix(":1:1")


def lowered(request: Request) -> Lowered:
    """The module, and what it was made of."""
    assert request.hlo is not None
    names = names_for(request.function, len(request.specs))
    _require_sizes(request, names)
    specs = arguments_for(request.specs, names, 0)
    if request.hlo.cast is not None:
        specs = tuple(map_leaves(lambda leaf: replace(leaf, stored=None), tree) for tree in specs)
    applied = apply_chain(request.function, request.chain, specs, names)
    leaves: list[Leaf] = []
    labels: list[str] = []
    for tree, name in zip(applied.arguments, applied.names, strict=True):
        _take_apart(tree, name, leaves, labels)
    given = Arguments(applied.arguments, {}, leaves, labels, [None] * len(leaves))
    try:
        made = lowered_at(applied.callable, given, Options(checked=request.hlo.checked, cast=request.hlo.cast,
                                                           max_trips=request.hlo.max_trips), name=request.name)
    except TranspileError as fault:
        raise error_of(map(_told_here, fault.problems)) from fault
    if request.hlo.machine == "tpu" and request.hlo.cast is None:
        _require_narrow(main_of(made.func), len(leaves))
    return made


def show_costs(text: str) -> None:
    """Compile for a TPU, and say what its compiler thinks of the module.  TranspileError: E605 where libtpu is missing,
    E207 where the compiler refuses."""
    from gradsmith.xla import XlaError, compile_for_tpu

    from .console import note
    try:
        made = compile_for_tpu(text)
    except XlaError as refused:
        raise error("E207", f"the TPU compiler refuses the module: {refused}", kind=NotImplementedError) from None
    shown = [f"{made.costs[key]:.4g} {key}" for key in ("flops", "bytes accessed") if key in made.costs]
    if "optimal_seconds" in made.costs:
        shown.append(f"{1e6 * made.costs['optimal_seconds']:.4g} us at best")
    note(f"compiled for TPU {made.topology}{': ' if shown else ''}{', '.join(shown)}")


def _require_sizes(request: Request, names: list[str]) -> None:
    for name, spec in zip(names, request.specs):
        unknown = next((part for part in arrays_in(spec) if not all(isinstance(d, int) for d in part.dims)), None)
        if unknown is not None:
            raise error("E207", f"StableHLO needs every size as a number, and `{name}` is {spec}", help=(
                f'give `{name}` sizes in the signature: --sig "{format_signature(tuple(map(_sized, request.specs)))}"'))


def _sized(spec: Spec) -> Spec:
    """An example of it with numbers for sizes."""
    return with_dims(spec, lambda d: d if isinstance(d, int) else 128)


def _take_apart(tree: Any, name: str, leaves: list[Leaf], labels: list[str]) -> None:
    if isinstance(tree, Leaf):
        leaves.append(tree)
        labels.append(name)
    elif isinstance(tree, dict):
        for key, part in tree.items():
            _take_apart(part, f"{name}[{key!r}]", leaves, labels)
    elif isinstance(tree, (tuple, list)):
        for number, part in enumerate(tree):
            _take_apart(part, f"{name}[{number}]", leaves, labels)


def _require_narrow(func: Func, count: int) -> None:
    """TranspileError: a float64 anywhere but in a captured number, which is a constant.  count: of the arguments."""
    wide = next((p for k, p in enumerate(func.params) if p.type.dtype in WIDE and (k < count or p.type.shape)), None)
    found: tuple[str, Location | None] | None = None if wide is None else (f"`{wide.name}` is {wide.type}", None)
    if found is None:
        made = [(f"a value here is {t.type}", stmt.loc) for stmt in all_statements(func.body)
                for t in stmt.targets if t.type.dtype in WIDE]
        found = min(made, key=lambda one: one[1] is None, default=None)         # the first that has a place
    if found is not None:
        raise error("E207", f"a TPU has no float64, and {found[0]}", found[1], kind=NotImplementedError,
                    help="let all floats become float32: --cast f32")


def _told_here(problem: Problem) -> Problem:
    """The problem with the command's own options as advice."""
    help = problem.help or ""
    if "max_trips=" in help:
        return replace(problem, help=help.replace("stablehlo(..., max_trips=100)", "--max-trips 100"))
    if problem.code == "E117" or "specialise(" in help:
        return replace(problem, help='fix it, and leave it out of the signature: --static "NAME=VALUE"')
    return problem
