"""`gradsmith build`: write the module for a function, a transform and a signature, or all that the project lists."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from .generate import HloOptions, Request
    from .target import Target

KINDS = ("python", "stablehlo", "tpu")
TARGET = typer.Argument(metavar="TARGET", help="FILE.py:FUNC or package.module:FUNC.  Without it, everything that "
                                                 "[tool.gradsmith] in the nearest pyproject.toml lists.",
                        show_default=False)
TRANSFORM = typer.Option("--transform", "-t", metavar="EXPR", help=(
    "jit, grad, value_and_grad, vjp, jvp, hvp, jacfwd, jacrev, hessian or vmap, with options as in "
    '"grad(argnums=(0, 1))", nested as in "jit(grad(vmap))".'))
SIGNATURE = typer.Option("--sig", "-s", metavar="TYPES", show_default=False, help=(
    'Types of the arguments: "f64[n], f64[n,m], i64" or "float64[:], float64[:,::1], int64".  Not needed where the '
    "function's parameters are typed."))
STATIC = typer.Option("--static", metavar="NAME=VALUE", show_default=False, help=(
    "Arguments to fix, as in \"n=3, mode='fast'\"; the signature leaves them out."))
IN_AXES = typer.Option("--in-axes", metavar="AXES", show_default=False, help='in_axes of vmap, as in "None, 0".')
OUT_AXES = typer.Option("--out-axes", metavar="AXES", show_default=False, help="out_axes of vmap.")
KIND = typer.Option("--target", metavar="KIND", help=(
    "python; stablehlo: one module for XLA, at the sizes of the signature; tpu: the same, compiled by the TPU compiler "
    "(libtpu) to see that it is taken."))
CAST = typer.Option("--cast", metavar="TYPE", show_default=False,
                    help="What all floats become, for StableHLO: f32, f16 or bf16.")
MAX_TRIPS = typer.Option("--max-trips", metavar="NUMBER", min=1, show_default=False, help=(
    "How often a loop runs at most whose steps a derivative saves and nothing else bounds, for StableHLO."))
CHECKED = typer.Option("--checked", help="StableHLO with an error flag as its last result: 0, or which check failed.")
ARGNUMS = typer.Option("--argnums", metavar="NUMBERS", show_default=False,
                       help='Arguments to differentiate, as in "0" or "0, 1".')


def command(
    context: typer.Context,
    target: Annotated[str | None, TARGET] = None,
    transform: Annotated[str, TRANSFORM] = "grad",
    sig: Annotated[str | None, SIGNATURE] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="OUT.py", show_default=False, help=(
        "The file to write; folders on its way are made.  `-`, or nothing, prints it."))] = None,
    name: Annotated[str | None, typer.Option("--name", show_default=False,
                                             help="Name of the generated function, instead of FUNC_TRANSFORM.")] = None,
    standalone: Annotated[bool, typer.Option("--standalone", help="Import nothing of gradsmith.")] = False,
    parallel: Annotated[bool, typer.Option("--parallel", help="Run loops that can be in parallel.")] = False,
    static: Annotated[str | None, STATIC] = None,
    in_axes: Annotated[str | None, IN_AXES] = None,
    out_axes: Annotated[str | None, OUT_AXES] = None,
    argnums: Annotated[str | None, ARGNUMS] = None,
    kind: Annotated[str, KIND] = "python",
    cast: Annotated[str | None, CAST] = None,
    checked: Annotated[bool, CHECKED] = False,
    max_trips: Annotated[int | None, MAX_TRIPS] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; status 1 if a file is out of date.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Build and write what has not changed, too.")] = False,
) -> None:
    """Write a module with the derivative (or batched version) of a function.

    OUT.py defines FUNC_TRANSFORM, such as loss_grad.  It is plain Python for NumPy and Numba.  With --target stablehlo,
    OUT.mlir has the public function main.
    """
    from gradsmith.transpiler.errors import error
    if target is None:
        require_alone(context)
        from .project import build_project
        build_project(Path.cwd(), check=check, force=force)
        return
    if check and output in (None, "-"):
        raise error("E510", "--check compares a file, and there is none to compare",
                    help="name the file that was built: -o OUT.py")
    chain = chain_of(transform, in_axes=in_axes, out_axes=out_axes, argnums=argnums)
    from .generate import generate
    from .target import opened
    with opened(target) as found:
        request = request_of(found, chain, sig, static=static, name=name, standalone=standalone, parallel=parallel,
                             hlo=hlo_options(kind, checked=checked, cast=cast, max_trips=max_trips))
        text = generate(request)
    if kind == "tpu":
        from .hlo import show_costs
        show_costs(text)
    if output is None or output == "-":
        sys.stdout.write(text)
        return
    path = Path(output)
    if check:
        require_same(path, text)
        return
    write(path, text, force=force)


def require_alone(context: typer.Context) -> None:
    """Without a target the entries of the table say everything: other options are an error (E504), not ignored."""
    from gradsmith.transpiler.errors import error
    given = [param.opts[0] for param in context.command.params
             if param.name not in ("target", "check", "force") and param.name is not None
             and (source := context.get_parameter_source(param.name)) is not None and source.name == "COMMANDLINE"]
    if given:
        raise error("E504", f"{', '.join(given)} without a target", help=(
            "name a target, FILE.py:FUNC; what [tool.gradsmith] lists has its options there"))


def chain_of(transform: str, *, in_axes: str | None = None, out_axes: str | None = None,
             argnums: str | None = None) -> Any:
    """The transform with the options that were given by themselves: they go to the outermost step that takes them."""
    from .transform import OPTIONS, parse_option, parse_transform
    chain = list(parse_transform(transform))
    for name, text in (("in_axes", in_axes), ("out_axes", out_axes), ("argnums", argnums)):
        if text is None:
            continue
        value = parse_option(name, text)
        places = [k for k, step in enumerate(chain) if name in OPTIONS[step.kind] and name not in step.options]
        if not places:
            from gradsmith.transpiler.errors import error
            raise error("E506", f"--{name.replace('_', '-')} is for none of the transforms in {transform}")
        chain[places[-1]] = chain[places[-1]].with_default(name, value)
    return tuple(chain)


def hlo_options(kind: str, *, checked: bool = False, cast: str | None = None,
                max_trips: int | None = None) -> HloOptions | None:
    """What `--target` and its options ask for; None for Python.  TranspileError (E504) for what there is not."""
    from gradsmith.target import CASTS
    from gradsmith.transpiler.errors import did_you_mean, error

    from .generate import HloOptions
    if kind not in KINDS:
        raise error("E504", f"--target {kind}: there is no such target",
                    help=did_you_mean(kind, KINDS) or f"targets are {', '.join(KINDS)}")
    if cast is not None and cast not in CASTS:
        raise error("E504", f"--cast {cast}: floats cannot become that",
                    help=did_you_mean(cast, CASTS) or f"they can become {', '.join(CASTS)}")
    if kind != "python":
        return HloOptions(kind, checked, cast, max_trips)
    given = next((name for name, value in (("--cast", cast), ("--checked", checked or None), ("--max-trips", max_trips))
                  if value is not None), None)
    if given is not None:
        raise error("E504", f"{given} is for StableHLO", help="add --target stablehlo")
    return None


def request_of(target: Target, chain: Any, signature: str | None, *, static: str | None = None,
               name: str | None = None, standalone: bool = False, parallel: bool = False,
               hlo: HloOptions | None = None) -> Request:
    """The request for an opened target."""
    from .generate import request_for
    from .transform import parse_statics
    if hlo is not None and (standalone or parallel):
        from gradsmith.transpiler.errors import error
        raise error("E504", f"--{'standalone' if standalone else 'parallel'} is for Python, not for StableHLO")
    return request_for(target.function, target.shown, chain, signature, name=name, standalone=standalone,
                       parallel=parallel, statics=parse_statics(static) if static else None, hlo=hlo)


def write(path: Path, text: str, *, force: bool = False) -> bool:
    """Put the text into the file, at once or not at all; False where it was there already, unless `force`.

    A link stays one, and its file is written; a device or pipe is written to.  TranspileError (E510).
    """
    from gradsmith.transpiler.errors import error
    shown = path
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as file:
                file.write(text)
            return True
        path = path.resolve()
        if not force and current(path) == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, _usual_mode(path))
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except IsADirectoryError:
        raise error("E510", f"{shown} cannot be written: it is a folder") from None
    except (FileExistsError, NotADirectoryError):
        raise error("E510", f"{shown} cannot be written: {shown.parent} is not a folder") from None
    except (OSError, RuntimeError) as fault:
        raise error("E510", f"{shown} cannot be written: {getattr(fault, 'strerror', None) or fault}") from None
    return True


def _usual_mode(path: Path) -> int:
    """The mode that the file has, or that a new one would get."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def current(path: Path) -> str | None:
    """What the file holds; None where there is none that can be read."""
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def require_same(path: Path, text: str) -> None:
    """For --check: status 1 where building would change the file."""
    from .console import note
    if current(path) != text:
        note(f"{path} is out of date")
        raise typer.Exit(1)
