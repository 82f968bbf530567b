"""Which variables carry derivatives: those that depend on the wanted params (varied) and reach a result (useful)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from ..ir.nodes import Call, Check, For, Func, If, Let, Stmt, Value, Var, While


def varied_variables(func: Func, wrt: Sequence[bool]) -> set[Var]:
    """Real or complex variables, of nested blocks too, that depend on a param in `wrt`."""
    varied = {p for p, wanted in zip(func.params, wrt, strict=True) if wanted}
    _forward(func.body.stmts, varied)
    return varied


def active_variables(func: Func, wrt: Sequence[bool]) -> set[Var]:
    """Those of the varied variables that a real or complex result depends on."""
    useful = _inexact(func.results)
    _backward(func.body.stmts, useful)
    return varied_variables(func, wrt) & useful


def _inexact(values: Iterable[Value]) -> set[Var]:
    return {v for v in values if isinstance(v, Var) and v.type.is_inexact}


def _forward(stmts: Sequence[Stmt], varied: set[Var]) -> None:
    for stmt in stmts:
        match stmt:
            case Let() | Call():
                if not varied.isdisjoint(stmt.args):
                    varied |= _inexact(stmt.targets)
            case Check():
                pass
            case If():
                for block in (stmt.then, stmt.orelse):
                    _forward(block.stmts, varied)
                    varied |= _moved(stmt.targets, block.results, varied)
            case For() | While():
                varied |= _moved(stmt.carries, stmt.inits, varied)
                while True:                                    # a carry may become varied after a trip
                    before = len(varied)
                    _forward(stmt.body.stmts, varied)
                    varied |= _moved(stmt.carries, stmt.body.results, varied)
                    if len(varied) == before:
                        break
                varied |= _moved(stmt.targets, stmt.carries, varied)
            case _:
                assert_never(stmt)


def _backward(stmts: Sequence[Stmt], useful: set[Var]) -> None:
    for stmt in reversed(stmts):
        match stmt:
            case Let() | Call():
                if not useful.isdisjoint(stmt.targets):
                    useful |= _inexact(stmt.args)
            case Check():
                pass
            case If():
                for block in (stmt.then, stmt.orelse):
                    useful |= _moved(block.results, stmt.targets, useful)
                    _backward(block.stmts, useful)
            case For() | While():
                useful |= _moved(stmt.carries, stmt.targets, useful)
                while True:
                    before = len(useful)
                    useful |= _moved(stmt.body.results, stmt.carries, useful)
                    _backward(stmt.body.stmts, useful)
                    if len(useful) == before:
                        break
                useful |= _moved(stmt.inits, stmt.carries, useful)
            case _:
                assert_never(stmt)


def _moved(to: Sequence[Any], source: Sequence[Any], marked: set[Var]) -> set[Var]:
    """Variables of `to` beside marked ones of `source`."""
    return _inexact(t for t, s in zip(to, source, strict=True) if isinstance(s, Var) and s in marked)
