"""Forward mode: each statement beside its tangent.

    before                         after
    func f(x: f64):                func f_jvp(x: f64, t_x: f64):
      y = sin(x)                     y = sin(x)
      return y                       t = cos(x)
                                     t_y = multiply(t_x, t)
                                     return y, t_y
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ..ir.build import Names, building, const, located
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import used_names
from .common import name_like, unsupported_statement
from .limits import jvp_limits


def jvp(func: Func, wrt: Sequence[bool], *, name: str | None = None) -> Func:
    """Params: those of `func`, then a tangent for each param in `wrt`.  Results: those of `func`, then the tangent
    of each result that is real or complex (zeros where it does not depend on `wrt`)."""
    with building(Names(used_names(func))) as b:
        tangents: dict[Var, Value] = {}
        extra = []
        for param, moving in zip(func.params, wrt, strict=True):
            if moving:
                tangent = b.var(param.type, f"t_{param.name}")
                tangents[param] = tangent
                extra.append(tangent)
        for stmt in func.body.stmts:
            b.stmts.append(stmt)
            push_statement(stmt, tangents)
        inexact = [r for r in func.results if r.type.is_inexact]
        moved = [tangent_of(r, tangents) for r in inexact]
        for number, stmt in enumerate(func.body.stmts):
            if isinstance(stmt, Let) and any(a in tangents for a in stmt.args):
                incoming = [None if isinstance(a, Const) else tangents.get(a) for a in stmt.args]
                limits = jvp_limits(stmt, incoming, func.body.stmts[number + 1:], inexact, push_statement)
                moved = [t if more is None else t + more for t, more in zip(moved, limits, strict=True)]
    return Func(name or f"{func.name}_jvp", (*func.params, *extra),
                Block(tuple(b.stmts), (*func.results, *moved)))


def tangent_of(value: Value, tangents: dict[Var, Value]) -> Value:
    found = None if isinstance(value, Const) else tangents.get(value)
    return const(0, value.type) if found is None else found


def push_statement(stmt: Stmt, tangents: dict[Var, Value]) -> None:
    """Emit the tangents of the statement's targets, as far as those of what it reads are known."""
    match stmt:
        case Let():
            with located(stmt.loc):
                _push(stmt, tangents)
        case Check():
            pass
        case If() | For() | While() | Call():
            unsupported_statement(stmt, "jvp")
        case _:
            assert_never(stmt)


def _push(let: Let, tangents: dict[Var, Value]) -> None:
    incoming = [None if isinstance(a, Const) else tangents.get(a) for a in let.args]
    if all(t is None for t in incoming):
        return
    result = let.targets if let.op.result_count > 1 else let.target
    outgoing = let.op.jvp(incoming, let.args, result, **let.params)
    for target, tangent in zip(let.targets, outgoing if let.op.result_count > 1 else (outgoing,), strict=True):
        if tangent is not None and target.type.is_inexact:
            tangents[target] = name_like(tangent, "t_", target)
