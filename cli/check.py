"""`gradsmith check`: a function's derivatives against the complex step or differences, and forward against reverse."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .build import ARGNUMS, IN_AXES, OUT_AXES, SIGNATURE, STATIC, TRANSFORM, chain_of

if TYPE_CHECKING:
    from gradsmith.checking import Report


def command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="FILE.py:FUNC or package.module:FUNC.")],
    transform: Annotated[str, TRANSFORM] = "grad",
    sig: Annotated[str | None, SIGNATURE] = None,
    inputs: Annotated[str | None, typer.Option("--inputs", metavar="FILE", show_default=False, help=(
        "Arguments instead of sampled ones: an .npz with an array for each parameter's name, or FILE.py:NAME, a "
        "tuple or dict of arguments or a function that returns one."))] = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="How many times to draw arguments.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn.")] = 0,
    rtol: Annotated[float | None, typer.Option("--rtol", help="Relative tolerance of every comparison.",
                                               show_default=False)] = None,
    static: Annotated[str | None, STATIC] = None,
    in_axes: Annotated[str | None, IN_AXES] = None,
    out_axes: Annotated[str | None, OUT_AXES] = None,
    argnums: Annotated[str | None, ARGNUMS] = None,
) -> None:
    """Check derivatives at given or sampled arguments; status 1 if something disagrees.

    Every differentiating step of the transform is checked on the function that it is applied to: `grad(grad)` checks
    the gradient, and then the gradient's gradient.  A vmap is checked against one example at a time.
    """
    chain = chain_of(transform, in_axes=in_axes, out_axes=out_axes, argnums=argnums)
    from .chain import with_static
    from .inputs import located, read_inputs, sampled
    from .parameters import specs_for
    from .target import opened
    from .transform import parse_statics
    with opened(target) as found:
        function = with_static(found.function, parse_statics(static), found.name) if static else found.function
        if inputs is not None:
            drawn = [read_inputs(inputs, function)]
        else:
            specs = specs_for(function, sig, chain, found.name, original=found.function)
            drawn = sampled(function, specs, chain, samples, seed)
        with located(found.name, function):
            reports = [report for k, args in enumerate(drawn)
                       for report in reports_of(function, found.name, chain, args, rtol=rtol, seed=seed + k)]
    _print(reports, Path(target.rpartition(":")[0]).name, len(drawn))
    for report in reports:
        report.raise_if_not()


def reports_of(function: Any, name: str, chain: Any, args: tuple[Any, ...], *, rtol: float | None,
               seed: int) -> list[Report]:
    """A report for each step of the chain, the innermost first."""
    reports: list[Report] = []
    _visit(function, name, chain, args, rtol, seed, reports)
    if not reports:
        from gradsmith.transpiler.errors import error
        raise error("E506", "there is nothing to check: the transform does not differentiate or batch")
    return reports


def _visit(fun: Any, name: str, chain: Any, args: tuple[Any, ...], rtol: float | None, seed: int,
           reports: list[Report]) -> tuple[Any, str]:
    """Check the chain's steps at `args`, the outermost step's; the transformed function and its name."""
    from gradsmith import checking
    from gradsmith.transforms import function, vmap
    from gradsmith.transpiler.errors import error

    if not chain:
        checking.plain_function(fun)(*copy.deepcopy(args))          # what it raises by itself is no fault of ours
        return fun, name
    *inner, step = chain
    options = dict(step.options)
    if step.kind == "vmap":
        axes = options.get("in_axes", 0)
        fun, name = _visit(fun, name, tuple(inner), _first_example(args, axes), rtol, seed, reports)
        out_axes = options.get("out_axes", 0)
        reports.append(checking.check_batch(fun, *args, in_axes=axes, out_axes=out_axes, rtol=rtol or 1e-10,
                                            name=f"vmap({name})", raises=False))
        return vmap(fun, in_axes=axes, out_axes=out_axes), f"vmap({name})"
    fun, name = _visit(fun, name, tuple(inner), args, rtol, seed, reports)
    if step.kind == "jit":
        return function("jit", fun), name
    usual = None if step.kind in ("vjp", "jvp", "hvp") else 0
    numbers = options.pop("argnums", usual)
    if options.pop("holomorphic", False):
        raise error("E409", "derivatives of complex functions are not checked",
                    help="check its real and imaginary parts")
    reports.append(checking.check(fun, *args, argnums=numbers, rtol=rtol, seed=seed, name=name, raises=False))
    if step.kind in ("hessian", "hvp"):
        gradient = function("grad", fun, 0 if numbers is None else numbers)
        reports.append(checking.check(gradient, *args, argnums=numbers, rtol=rtol, seed=seed, name=f"grad({name})",
                                      raises=False))
    if step.kind in ("vjp", "jvp", "hvp"):
        return _not_further(step.kind), name
    return function(step.kind, fun, numbers, **options), f"{step.kind}({name})"


def _first_example(args: tuple[Any, ...], in_axes: Any) -> tuple[Any, ...]:
    from gradsmith.checking import example

    from .parameters import axes_of_arguments
    return tuple(example(arg, axis, 0) for arg, axis in zip(args, axes_of_arguments(in_axes, len(args))))


def _not_further(kind: str) -> Any:
    def refuse(*args: Any) -> Any:
        from gradsmith.transpiler.errors import error
        raise error("E506", f"{kind} can only be the outermost transform of what is checked",
                    help="use grad, jacfwd or jacrev inside")

    return refuse


def _print(reports: list[Report], file: str, count: int) -> None:
    from .console import console, is_terminal
    rows = [(report.name, row) for report in reports for row in report.rows]
    wrong = sum(not row.agrees for _, row in rows)
    if is_terminal(sys.stdout):
        from rich.table import Table
        table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
        for title in ("function", "what", "against", "error", "tolerance", ""):
            table.add_column(title)
        for name, row in rows:
            state = "[green]agrees[/]" if row.agrees else "[bold red]disagrees[/]"
            table.add_row(name, row.what, row.against, f"{row.error:.1e}", f"{row.tolerance:.0e}", state)
        console().print(table)
    else:
        for report in reports:
            print(report)
    times = f"{count} sample{'s' if count != 1 else ''}"
    print(f"{file}: {len(rows) - wrong} of {len(rows)} comparisons agree, at {times}")
