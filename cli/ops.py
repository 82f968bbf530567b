"""`gradsmith ops`: the operation table, with the names that NumPy, SciPy and Python give its operations."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Annotated, Any

import typer

RULES = ("jvp", "vjp", "batch", "stablehlo")


@dataclass(frozen=True)
class Row:
    """One operation.  names: what users call that is made of it.  rules: "yes", "zero", or why there is none."""

    name: str
    family: str
    about: str
    lowering: str
    rules: dict[str, str]
    names: tuple[str, ...]


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", show_default=False, help=(
        "An operation, or a function as users write it: np.tanh."))] = None,
    family: Annotated[str | None, typer.Option("--family", help="Only the operations of this family.",
                                               show_default=False)] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/ops.md.")] = False,
) -> None:
    """List the operations: their names in NumPy, and which rules they have."""
    rows = table()
    if family is not None:
        rows = _of_family(rows, family)
    if name is not None:
        rows = _named(rows, name)
    if markdown:
        sys.stdout.write(page(rows))
    elif name is not None:
        for row in rows:
            print(details(row))
    else:
        _print(rows)


def table() -> list[Row]:
    """Every operation, by family and name."""
    import gradsmith  # noqa: F401  (its transforms spell things, too)
    from gradsmith.transpiler import ops
    from gradsmith.transpiler.ir.registry import OPERATIONS
    ops.load_table()
    names, families = spellings_of_operations(), family_of_operations()
    rows = [Row(op.name, families[op.name], _first_line(op), op.lowering.name.lower() if hasattr(op, "lowering") else
                "none", {rule: rule_state(op, rule) for rule in RULES}, tuple(sorted(names.get(op.name, ()))))
            for op in OPERATIONS.values()]
    return sorted(rows, key=lambda row: (row.family, row.name))


def family_of_operations() -> dict[str, str]:
    """The file in `ops/` that declares each operation: where its class stands, or, for a row of the elementwise
    table, the first that has it under a name of its own."""
    from gradsmith.transpiler import ops
    from gradsmith.transpiler.ir.registry import OPERATIONS
    found: dict[str, str] = {}
    for op in OPERATIONS.values():
        package, _, family = type(op).__module__.rpartition(".")
        if package == ops.__name__ and family != "families":
            found[op.name] = family
            continue
        holding = [name for name in ops.FAMILIES if any(value is op for value in vars(
            sys.modules[f"{ops.__name__}.{name}"]).values())]
        found[op.name] = min(holding, key=lambda name: name.startswith("numpy_"), default="families")
    return found


def _first_line(op: Any) -> str:
    doc = inspect.getdoc(type(op)) or ""
    return doc.split("\n\n")[0].replace("\n", " ").strip()


def rule_state(op: Any, rule: str) -> str:
    """"yes"; "zero" for derivatives of what is piecewise constant; else the reason why there is none."""
    from gradsmith.transpiler.ops.families import Elementwise, NoGradient
    method = getattr(op, rule)
    why = getattr(method, "unsupported", None)
    if why is not None:
        return str(why)
    if rule in ("jvp", "vjp") and (isinstance(op, NoGradient) or (isinstance(op, Elementwise) and op.partials is None
                                                                  and type(op).jvp is Elementwise.jvp)):
        return "zero"
    return "yes"


# ---------------------------------------------------------------------------------------------------------------
# names


def spelling_name(key: Any) -> str:
    """What users write: np.sum, x.sum (a method), np.add.reduce, math.exp, scipy.special.erf, abs."""
    if isinstance(key, tuple):
        owner, name = key
        return f"{owner}.{name}" if isinstance(owner, str) else f"{spelling_name(owner)}.{name}"
    owner = getattr(key, "__objclass__", None)
    name = getattr(key, "__name__", repr(key))
    if owner is not None and owner.__name__ == "ndarray":
        return f"ndarray.{name}"
    module = getattr(key, "__module__", None) or type(key).__module__
    if owner is not None:
        return f"{owner.__name__}.{name}"
    if type(key).__name__ == "ufunc" or module.partition(".")[0] == "numpy":
        return f"np.{'linalg.' if 'linalg' in module else 'fft.' if 'fft' in module else ''}{name}"
    return name if module == "builtins" else f"{module.lstrip('_')}.{name}"


def spellings_of_operations() -> dict[str, set[str]]:
    """The users' names whose spellings emit each operation."""
    from gradsmith.transpiler.ops.spelling import SPELLINGS
    found: dict[str, set[str]] = {}
    for key, function in SPELLINGS.items():
        for operation in emitted_by(function):
            found.setdefault(operation, set()).add(spelling_name(key))
    return found


def emitted_by(function: Callable[..., Any], seen: set[int] | None = None) -> set[str]:
    """The operations that a spelling mentions as `ops.NAME`, `apply("NAME")` or by themselves, and those that the
    functions of its own module that it calls mention.  What every spelling does to its arguments does not count."""
    from gradsmith.transpiler.ir.registry import OPERATIONS
    from gradsmith.transpiler.ops import spelling
    from gradsmith.transpiler.ops.base import Op
    seen = set() if seen is None else seen
    if isinstance(function, Op):
        return {function.name}
    if not isinstance(function, FunctionType) or id(function) in seen:
        return set()
    seen.add(id(function))
    found: set[str] = set()
    for code in _codes(function.__code__):
        instructions = list(dis.get_instructions(code))
        for before, here in zip([None, *instructions], instructions):
            if before is not None and before.argval == "ops" and here.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                found |= {here.argval} & OPERATIONS.keys()
            elif here.opname == "LOAD_CONST" and before is not None and before.argval == "apply":
                found |= {here.argval} & OPERATIONS.keys() if isinstance(here.argval, str) else set()
            elif here.opname == "LOAD_GLOBAL":
                value = function.__globals__.get(here.argval)
                helper = getattr(value, "__module__", None) == function.__module__ != spelling.__name__
                if value is not None and (isinstance(value, Op) or helper):
                    found |= emitted_by(value, seen)
    for cell in function.__closure__ or ():
        found |= emitted_by(cell.cell_contents, seen)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def all_names() -> list[str]:
    """Every name that users may write."""
    from gradsmith.transpiler.frontend.numpy_in_python import COMPOSED
    from gradsmith.transpiler.ops.spelling import SPELLINGS
    return sorted({spelling_name(key) for key in (*SPELLINGS, *COMPOSED)})


# ---------------------------------------------------------------------------------------------------------------
# choosing and printing


def _of_family(rows: Sequence[Row], family: str) -> list[Row]:
    from gradsmith.transpiler.errors import did_you_mean, error
    families = sorted({row.family for row in rows})
    if family not in families:
        raise error("E202", f"there is no family `{family}`",
                    help=did_you_mean(family, families) or f"the families are {', '.join(families)}",
                    kind=KeyError)
    return [row for row in rows if row.family == family]


def _named(rows: Sequence[Row], name: str) -> list[Row]:
    from gradsmith.transpiler.errors import did_you_mean, error
    wanted = f"np.{name.removeprefix('numpy.')}" if name.startswith("numpy.") else name
    found = [row for row in rows if row.name == wanted]
    found = found or [row for row in rows if wanted in row.names or f"np.{wanted}" in row.names]
    if not found:
        known = sorted({row.name for row in rows} | set(all_names()))
        raise error("E202", f"there is no operation `{name}`", help=did_you_mean(wanted, known) or
                    "`gradsmith ops` lists all that there are", kind=KeyError)
    return found


def details(row: Row) -> str:
    """All that the table knows of one operation."""
    lines = [f"{row.name} ({row.family})", f"  {row.about}" if row.about else "", f"  lowering   {row.lowering}"]
    lines += [f"  {rule:<10} {state}" for rule, state in row.rules.items()]
    lines += _wrapped("  used by    ", ", ".join(row.names) or "other operations and their rules")
    return "\n".join(line for line in lines if line) + "\n"


def _wrapped(head: str, text: str, width: int = 100) -> list[str]:
    import textwrap
    return textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))


def _mark(state: str) -> str:
    return state if state in ("yes", "zero") else "no"


def _print(rows: Sequence[Row]) -> None:
    from rich.table import Table

    from .console import console, is_terminal
    if not is_terminal(sys.stdout):
        for row in rows:
            rules = " ".join(f"{rule}:{_mark(state)}" for rule, state in row.rules.items())
            names = ", ".join(row.names)
            print(f"{row.family:<14} {row.name:<22} {row.lowering:<12} {rules}  {names}".rstrip())
        return
    shown = Table(header_style="bold", row_styles=["", "dim"])
    for title in ("family", "operation", "lowering", *RULES, "used by"):
        shown.add_column(title, overflow="fold")
    for row in rows:
        marks = [_mark(state) for state in row.rules.values()]
        shown.add_row(row.family, row.name, row.lowering, *marks, ", ".join(row.names))
    console().print(shown)


def page(rows: Sequence[Row]) -> str:
    """The operations as Markdown: docs/ops.md."""
    lines = ["# Operations", "",
             "Written by `gradsmith ops --markdown`.  *yes*: the rule is there; *zero*: piecewise constant, so every "
             "derivative is zero; *no*: left out for the reason below the table.", ""]
    for family in dict.fromkeys(row.family for row in rows):
        own = [row for row in rows if row.family == family]
        lines += [f"## {family}", "", f"| operation | lowering | {' | '.join(RULES)} | used by |",
                  f"|---|---|{'---|' * len(RULES)}---|"]
        reasons: list[str] = []
        for row in own:
            marks = " | ".join(_mark(state) for state in row.rules.values())
            names = ", ".join(f"`{name}`" for name in row.names)
            lines.append(f"| `{row.name}` | {row.lowering} | {marks} | {names} |")
            reasons += [f"- `{row.name}` has no {rule} rule: {state}" for rule, state in row.rules.items()
                        if state not in ("yes", "zero")]
        lines += ["", *reasons, *([""] if reasons else [])]
    understood = all_names()
    lines += [f"## The {len(understood)} names that are understood", "", ", ".join(f"`{n}`" for n in understood), ""]
    return "\n".join(lines)
