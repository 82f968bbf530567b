"""Which variables carry derivatives: those that depend on the wanted params (varied) and reach a result (useful)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from ..ir.library import library
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
            case Let():
                if not varied.isdisjoint(stmt.args):
                    varied |= _inexact(stmt.targets)
            case Call():
                varied |= _inexact(t for t, params in zip(stmt.targets, dependences(stmt), strict=True)
                                   if any(stmt.args[k] in varied for k in params))
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
            case Let():
                if not useful.isdisjoint(stmt.targets):
                    useful |= _inexact(stmt.args)
            case Call():
                useful |= _inexact(stmt.args[k] for t, params in zip(stmt.targets, dependences(stmt), strict=True)
                                   if t in useful for k in params)
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


def dependences(call: Call) -> tuple[frozenset[int], ...]:
    """For each result of the callee: the numbers of the real or complex params that it depends on.

    Of recursive funcs, the least answer that agrees with itself.
    """
    callee = library().funcs.get(call.func)
    if callee is not None and callee.rule is not None:
        from .rules import dependences_of
        return dependences_of(call, callee)
    known = library().facts
    key = ("dependences", call.func)
    if key not in known:
        reached = [library().callee(call.func), *library().reached(library().callee(call.func))]
        todo = {func.name: func for func in reached if ("dependences", func.name) not in known}
        known.update({("dependences", name): (frozenset(),) * len(func.results) for name, func in todo.items()})
        while True:
            found = {("dependences", name): _dependences_of(func) for name, func in todo.items()}
            if all(known[k] == v for k, v in found.items()):
                break
            known.update(found)
    found_now: tuple[frozenset[int], ...] = known[key]
    return found_now


def _dependences_of(func: Func) -> tuple[frozenset[int], ...]:
    found: list[set[int]] = [set() for _ in func.results]
    for k, param in enumerate(func.params):
        if param.type.is_inexact:
            varied = varied_variables(func, [p is param for p in func.params])
            for result, params in zip(func.results, found, strict=True):
                if isinstance(result, Var) and result in varied:
                    params.add(k)
    return tuple(map(frozenset, found))


def _moved(to: Sequence[Any], source: Sequence[Any], marked: set[Var]) -> set[Var]:
    """Variables of `to` beside marked ones of `source`."""
    return _inexact(t for t, s in zip(to, source, strict=True) if isinstance(s, Var) and s in marked)
