"""Text of run-time values: what f-strings, `str`, `.format`, `%` and `print` make of them.

It is kept as a template and values (`OpaqueText`), for messages of exceptions and for what is printed.  Exceptions may
also be given numbers (`OpaqueNumber`); `exception_with` puts into one what its texts and numbers are in the end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TranspileError, escaped
from ..ir.build import current, size_value
from ..ir.dims import DimExpr
from ..ir.nodes import PRINT, Check, Const, Value, Var
from ..ir.types import BOOL
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .errors import raised
from .masked import elements
from .values import ArrayRef, Masked, OpaqueNumber, OpaqueText, is_static, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter


@dataclass(frozen=True)
class Raised:
    """An exception of the program, and the text that the compiled code raises for it in front of the place."""

    exception: BaseException
    text: str


PERCENT = re.compile(r"%(%|[-+ #0]*\d*(?:\.\d+)?[sdifgeEGrx])")


def piece(it: Interpreter, x: Any, spec: str = "", conversion: str = "") -> tuple[str, tuple[Any, ...]]:
    """A value as a piece of a template, with the values for it."""
    if isinstance(x, OpaqueText):
        return (x.template, x.values) if not spec else ("<text of run-time values>", ())
    if is_static(x):
        value = to_python(x)
        value = repr(value) if conversion == "r" else ascii(value) if conversion == "a" else value
        return escaped(it.native(format, str(value) if conversion == "s" else value, spec)), ()
    if isinstance(x, (DimExpr, Weak, Var, Const, ArrayRef)):
        return f"{{{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}", (x,)
    if isinstance(x, (list, tuple)) and not spec and type(x) in (list, tuple):
        inner = [piece(it, v, conversion="r") for v in x]
        text = ", ".join(t for t, _ in inner)
        ends = "[]" if isinstance(x, list) else ("(", ",)") if len(x) == 1 else "()"
        return f"{ends[0]}{text}{ends[1]}", tuple(v for _, vs in inner for v in vs)
    return escaped("<a run-time value>"), ()


def joined(it: Interpreter, pieces: list[tuple[str, tuple[Any, ...]]]) -> str:
    """The text of several pieces."""
    values = tuple(v for _, vs in pieces for v in vs)
    template = "".join(t for t, _ in pieces)
    return OpaqueText(template, values) if values else template.replace("{{", "{").replace("}}", "}")


def concatenated(it: Interpreter, a: str, b: str) -> str:
    return joined(it, [piece(it, a), piece(it, b)])


def formatted(it: Interpreter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """`text.format(*args, **kwargs)`."""
    pieces: list[tuple[str, tuple[Any, ...]]] = []
    count = 0
    for literal, name, spec, conversion in string.Formatter().parse(text):
        pieces.append((escaped(literal), ()))
        if name is None:
            continue
        if name == "":
            name, count = str(count), count + 1
        if not name.isidentifier() and not name.isdigit():
            raise RuleError("attributes and items in a format string with run-time values are not supported",
                            code="E111", kind=NotImplementedError)
        x = it.native(lambda name=name: args[int(name)] if name.isdigit() else kwargs[name])
        pieces.append(piece(it, x, spec or "", conversion or ""))
    return joined(it, pieces)


def percent(it: Interpreter, text: str, args: Any) -> str:
    """`text % args`."""
    values = list(args) if isinstance(args, tuple) else [args]
    pieces: list[tuple[str, tuple[Any, ...]]] = []
    last = 0
    for found in PERCENT.finditer(text):
        pieces.append((escaped(text[last:found.start()]), ()))
        last = found.end()
        form = found.group(1)
        if form == "%":
            pieces.append(("%", ()))
            continue
        if not values:
            raise RuleError("not enough arguments for format string", kind=TypeError, code="E120")
        kind, flags = form[-1], form[:-1]
        spec = "" if kind in "sr" and not flags else flags.replace("-", "<") + ("d" if kind in "di" else
                                                                               "" if kind in "sr" else kind)
        pieces.append(piece(it, values.pop(0), spec, "r" if kind == "r" else ""))
    pieces.append((escaped(text[last:]), ()))
    return joined(it, pieces)


def value_of(x: Any) -> Value:
    """What stands in a template, as an IR value."""
    if isinstance(x, DimExpr):
        return size_value(x)
    return x.read() if isinstance(x, ArrayRef) else x.value if isinstance(x, Weak) else x


def argument(it: Interpreter, x: Any) -> Any:
    """What an exception is given, as it is kept: run-time numbers stay numbers, other run-time values become text."""
    if isinstance(x, OpaqueText) or is_static(x):
        return x if isinstance(x, OpaqueText) else to_python(x)
    if isinstance(x, (DimExpr, Weak)):
        return OpaqueNumber(x)
    if isinstance(x, (Var, Const, ArrayRef)) and not x.type.shape:
        return OpaqueNumber(x, np.dtype(x.type.dtype).type)
    return joined(it, [piece(it, x)])


def parts_of(exception: BaseException) -> list[OpaqueText]:
    """The run-time texts and numbers that an exception holds: its arguments, then attributes."""
    held = [*exception.args, *vars(exception).values()]
    return list({id(x): x for x in held if isinstance(x, OpaqueText)}.values())


def exception_with(exception: BaseException, parts: Mapping[int, Any]) -> BaseException:
    """A copy with other `parts_of` it, by their identities."""
    args = tuple(parts.get(id(a), a) for a in exception.args)
    made: BaseException = type(exception).__new__(type(exception), *args)      # whatever its `__init__` would take
    made.args = args
    made.__dict__.update({name: parts.get(id(x), x) for name, x in vars(exception).items()})
    return made


def filled(template: str, values: Iterable[Any]) -> str:
    """The text with its values; "..." where one is None or missing."""
    pieces, supply = [], iter(values)
    for literal, name, spec, conversion in string.Formatter().parse(template):
        pieces.append(literal)
        if name is not None:
            field = "{" + ("!" + conversion if conversion else "") + (":" + spec if spec else "") + "}"
            value = next(supply, None)
            pieces.append(field.format(value) if value is not None else "...")
    return "".join(pieces)


def in_this_call(problem: TranspileError, known: Callable[[Any], Any]) -> TranspileError:
    """What the program raises for all arguments like these, with what is known of those of this call.

    known: the value that stands for an abstract one in this call, or None.
    """
    exception = problem.__cause__
    parts = [] if exception is None else parts_of(exception)
    if exception is None or not parts:
        return problem
    found: dict[int, Any] = {}
    for part in parts:
        values = [known(x) for x in part.values]
        is_number = isinstance(part, OpaqueNumber) and values[0] is not None
        found[id(part)] = values[0] if is_number else filled(part.template, values)
    return raised(exception_with(exception, found), problem.location)


def without_arrays(text: OpaqueText) -> OpaqueText:
    """The same of IR values, where arrays cannot stand."""
    if isinstance(text, OpaqueNumber):
        return OpaqueNumber(value_of(text.values[0]), text.scalar)
    template, values = _without_arrays(text.template, text.values)
    return OpaqueText(template, values)


def _without_arrays(template: str, values: tuple[Any, ...]) -> tuple[str, tuple[Value, ...]]:
    kept, pieces = [], []
    supply = iter(values)
    for literal, name, spec, conversion in string.Formatter().parse(template):
        pieces.append(escaped(literal))
        if name is None:
            continue
        value = value_of(next(supply))
        if value.type.shape:
            pieces.append(escaped(f"<an array {value.type}>"))
            continue
        pieces.append(f"{{{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}")
        kept.append(value)
    return "".join(pieces), tuple(kept)


def print_values(it: Interpreter, *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None,
                 flush: Any = False) -> None:
    """`print(...)`, when the function runs."""
    values = tuple(elements(x) if isinstance(x, Masked) else x for x in values)
    if file is not None:
        raise RuleError("printing to a file is not supported", code="E126", kind=NotImplementedError)
    if it.ahead or it.watch is not None:
        return
    pieces: list[tuple[str, tuple[Any, ...]]] = []
    for k, x in enumerate(values):
        if k:
            pieces.append((escaped(" " if sep is None else sep), ()))
        pieces.append(piece(it, x, conversion="" if not is_static(x) else "s"))
    pieces.append((escaped("\n" if end is None else end), ()))
    text, found = "".join(t for t, _ in pieces), tuple(value_of(v) for _, vs in pieces for v in vs)
    it.leave_probe()
    message = text if found else text.replace("{{", "{").replace("}}", "}")
    current().stmts.append(Check(Const(False, BOOL), PRINT, message, it.here, (), found))
