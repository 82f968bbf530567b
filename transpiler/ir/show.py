"""IR as text.  `parse` reads it back: `show(parse(show(f))) == show(f)`.

    func f(x: f64[n], k: i64) -> (f64, f64[k]) where k >= 0:
      a: f64[n] = negative(x)
      s: f64 = sum(a) {axes=(0,)}
      p: bool = less(s, 1.0:f64)
      check p ValueError "too large"
      t: f64 = if p:
        yield s
      else:
        yield 0.5:f64
      y: f64 = for i: i64 in 0 .. k step 1 carry (acc: f64 = t) parallel:
        u: f64 = call helper(acc)
        yield u
      return y, 0.0:f64[k]

`where` states what is known of a size other than the usual, which is to be at least 2.  `call f(x) if read`
is a call that may go where nobody reads what it gives.  `writes (a)` before `where`: the last result is left in the
memory of the param `a`; a check says what that holds if it fails, `keeping (a = a_1)`.  `rule (x) forward g pull h`
names the funcs that give the derivative by the param `x`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, assert_never

import numpy as np

from .dims import DimExpr, Symbol, substitute, symbol, symbols_of
from .index import At, New, Span
from .nodes import Block, Call, Check, Const, For, Func, If, Let, Module, Stmt, Value, Var, While
from .types import I64, SHORT, Type, dims_in
from .walk import all_statements, blocks, bound_inside, operands

USUAL_LOW = 2
RULE_PARTS = ("forward", "push", "pull", "ahead", "code")


def show(ir: Func | Module, locations: bool = False) -> str:
    """The text of a func or module; with `locations`, lines end in `# file.py:12`."""
    if isinstance(ir, Module):
        return "\n".join(show(func, locations) for func in ir.funcs)
    return _Printer(_lows(ir), locations).func(ir)


def show_statement(stmt: Stmt) -> str:
    """The text of one statement and its blocks, for messages."""
    return "\n".join(_Printer(None, False).statement(stmt, 0)).rstrip()


def show_value(value: Value) -> str:
    return _Printer(None, False).value(value)


class _Printer:
    """`lows` are the bounds that the head states; where it is None, bounds are not shown at all."""

    def __init__(self, lows: dict[str, int] | None, locations: bool) -> None:
        self.lows = lows
        self.locations = locations

    def func(self, func: Func) -> str:
        params = ", ".join(map(self.bound, func.params))
        results = [self.type(r.type) for r in func.results]
        if len(func.result_names) == len(results):
            results = [f"{_name(n)}: {t}" for n, t in zip(func.result_names, results)]
        marks = [f"{n} >= {low}" for n, low in sorted((self.lows or {}).items()) if low != USUAL_LOW]
        where = f" where {', '.join(marks)}" if marks else ""
        writes = f" writes ({', '.join(p.name for p in func.effects)})" if func.effects else ""
        head = f"func {_name(func.name)}({params}) -> ({', '.join(results)}){writes}{_rule(func)}{where}:"
        return "\n".join([head, *self.block(func.body, 1, "return")]) + "\n"

    def block(self, block: Block, depth: int, end: str = "yield") -> Iterator[str]:
        for stmt in block.stmts:
            yield from self.statement(stmt, depth)
        yield f"{'  ' * depth}{end} {self.values(block.results)}".rstrip()

    def statement(self, stmt: Stmt, depth: int) -> Iterator[str]:
        pad = "  " * depth
        left = ", ".join(map(self.bound, stmt.targets))
        start = pad + (left + " = " if left else "")
        at = f"  # {PurePath(stmt.loc.file).name}:{stmt.loc.line}" if self.locations and stmt.loc else ""
        match stmt:
            case Let():
                params = ", ".join(f"{k}={self.param(v)}" for k, v in stmt.params.items())
                text = f"{stmt.op.name}({self.values(stmt.args)})" + (f" {{{params}}}" if params else "")
                yield f"{start if left else pad + '() = '}{text}{at}"
            case Call():
                yield f"{start}call {_name(stmt.func)}({self.values(stmt.args)}){'' if stmt.needed else ' if read'}{at}"
            case Check():
                kept = ", ".join(f"{param.name} = {self.value(value)}" for param, value in stmt.kept)
                kept = f" keeping ({kept})" if kept else ""
                values = f" with ({self.values(stmt.values)})" if stmt.values else ""
                values += f" in ({self.values(stmt.lanes)})" if stmt.lanes else ""
                yield f"{pad}check {self.value(stmt.pred)} {_name(stmt.kind)} {_text(stmt.message)}{values}{kept}{at}"
            case If():
                yield f"{start}if {self.value(stmt.pred)}:{at}"
                yield from self.block(stmt.then, depth + 1)
                yield f"{pad}else:"
                yield from self.block(stmt.orelse, depth + 1)
            case For():
                lo, hi, step = map(self.bound_value, (stmt.lo, stmt.hi, stmt.step))
                carry = f" {self.carries(stmt)}" if stmt.carries else ""
                marks = " parallel" * stmt.parallel + " segment" * stmt.segment + " abreast" * stmt.abreast
                if stmt.checkpoint is not None:
                    wish = stmt.checkpoint
                    marks += f" checkpoint({wish.every or 0}; {wish.memory or 0}; {wish.slots or 0})"
                yield f"{start}for {self.bound(stmt.index)} in {lo} .. {hi} step {step}{carry}{marks}:{at}"
                yield from self.block(stmt.body, depth + 1)
            case While():
                yield f"{start}while{' ' + self.carries(stmt) if stmt.carries else ''}:{at}"
                yield f"{pad}  cond:"
                yield from self.block(stmt.cond, depth + 2)
                yield f"{pad}  do:"
                yield from self.block(stmt.body, depth + 2)
            case _:
                assert_never(stmt)

    def carries(self, stmt: For | While) -> str:
        pairs = zip(stmt.carries, stmt.inits, strict=True)
        return f"carry ({', '.join(f'{self.bound(c)} = {self.value(v)}' for c, v in pairs)})"

    def bound(self, var: Var) -> str:
        return f"{var.name}: {self.type(var.type)}"

    def bound_value(self, value: Value) -> str:
        """A loop's bound: there, a plain integer is an i64."""
        if isinstance(value, Const) and value.type == I64 and type(value.value) is int:
            return str(value.value)
        return self.value(value)

    def values(self, values: tuple[Value, ...]) -> str:
        return ", ".join(map(self.value, values))

    def value(self, value: Value) -> str:
        if isinstance(value, Var):
            return value.name
        return f"{_number(value.value)}:{self.type(value.type)}"

    def type(self, type: Type) -> str:
        dims = ",".join(map(self.dim, type.shape))
        return SHORT[type.dtype] + (f"[{dims}]" if type.shape else "")

    def dim(self, dim: Any) -> str:
        lows = self.lows
        if lows is None or all(s.low == lows[s.name] for s in symbols_of(dim).values()):
            return str(dim)

        def marked(s: Symbol) -> Any:
            return symbol(s.name if s.low == lows[s.name] else f"{s.name}@{s.low}", s.low)

        return str(substitute(dim, marked))

    def param(self, value: Any) -> str:
        match value:
            case DimExpr():
                return self.dim(value)
            case Type():
                return f"type {self.type(value)}"
            case str():
                return _text(value)
            case float() if not math.isfinite(value):
                return f'float("{value!r}")'
            case bool() | int() | float() | complex() | np.generic() | None:
                return _number(value)
            case tuple() if value and all(isinstance(v, At | New | Span) for v in value):
                return f"[{', '.join(map(self.item, value))}]"
            case tuple():
                inside = ", ".join(map(self.param, value))
                return f"({inside},)" if len(value) == 1 else f"({inside})"
            case _:
                return f"<{type(value).__name__}>"

    def item(self, item: At | New | Span) -> str:
        if not isinstance(item, Span):
            return str(item)
        start = "?" if item.start is None else self.dim(item.start)
        return f"span({start}; {self.dim(item.size)}; {item.step})"


def _rule(func: Func) -> str:
    if func.rule is None:
        return ""
    about = ", ".join(func.params[k].name for k in func.rule.wrt)
    parts = [(kind, getattr(func.rule, kind)) for kind in RULE_PARTS]
    return f" rule ({about})" + "".join(f" {kind} {_name(name)}" for kind, name in parts if name is not None)


def _lows(func: Func) -> dict[str, int]:
    """The bound of every size in the func, where it first occurs."""
    found: dict[str, int] = {}

    def note(thing: Any) -> None:
        for dim in dims_in(thing):
            for name, size in symbols_of(dim).items():
                found.setdefault(name, size.low)

    for param in func.params:
        note(param.type)
    for stmt in all_statements(func.body):
        results = [r for inner in blocks(stmt) for r in inner.results]
        for value in (*stmt.targets, *operands(stmt), *bound_inside(stmt), *results):
            note(value.type)
        for param_value in stmt.params.values() if isinstance(stmt, Let) else ():
            note(param_value)
    for result in func.results:
        note(result.type)
    return found


def _number(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _name(name: str) -> str:
    """Names that are not words stand in quotes."""
    return name if name.isidentifier() else _text(name)
