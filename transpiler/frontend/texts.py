"""Text of run-time values: what f-strings, `str`, `.format`, `%` and `print` make of them.

It is kept as a template and values (`OpaqueText`), for messages of exceptions and for what is printed.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any

from ..ir.build import current, size_value
from ..ir.dims import DimExpr
from ..ir.nodes import PRINT, Check, Const, Value, Var
from ..ir.types import BOOL
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .values import ArrayRef, Masked, OpaqueText, is_static, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter

PERCENT = re.compile(r"%(%|[-+ #0]*\d*(?:\.\d+)?[sdifgeEGrx])")


def escaped(text: str) -> str:
    """Static text inside a template."""
    return text.replace("{", "{{").replace("}", "}}")


def piece(it: Interpreter, x: Any, spec: str = "", conversion: str = "") -> tuple[str, tuple[Any, ...]]:
    """A value as a piece of a template, with the values for it."""
    if isinstance(x, OpaqueText):
        return (x.template, x.values) if not spec else ("<text of run-time values>", ())
    if is_static(x):
        value = to_python(x)
        value = repr(value) if conversion == "r" else ascii(value) if conversion == "a" else value
        return escaped(it.native(format, str(value) if conversion == "s" else value, spec)), ()
    if isinstance(x, DimExpr):
        x = Weak(size_value(x))
    if isinstance(x, (Weak, Var, Const, ArrayRef)):
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
    return x.read() if isinstance(x, ArrayRef) else x.value if isinstance(x, Weak) else x


def without_arrays(template: str, values: tuple[Any, ...]) -> tuple[str, tuple[Value, ...]]:
    """The same where arrays cannot stand."""
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
    if any(isinstance(x, Masked) for x in values):
        from .errors import shape_depends_on_values
        raise shape_depends_on_values(it.here)
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
