"""Funcs that call each other in a circle, made one that calls itself: a compiler of one function at a time takes that.

    before                            after
    func a(n, x):                     func a(which, n, x, n_1):
      ... call b(n - 1)                 r, r_1 = if which == 0:
    func b(n):                            ... call a(1, 0, 0.0, n - 1)
      ... call a(n, 0.5)                  yield r, 0.0
                                        else:
                                          ... call a(0, n_1, 0.5, 0)
                                          yield 0.0, r_1

What a call does not need is zero, and arrays are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import ops
from ..ir.build import Names, building, const, current, int_const
from ..ir.dims import symbol, symbols_of
from ..ir.library import Program, callees
from ..ir.nodes import Block, Call, Func, If, Module, Stmt, Value, Var
from ..ir.types import BOOL, I64, Type, map_dims
from ..ir.walk import Copier, size_substitution, used_names


def fuse_mutual_calls(program: Program) -> Program:
    """Every circle of more than one func as one func; the program itself where there is none."""
    if not isinstance(program, Module):
        return program
    circles = _circles(program)
    if not circles:
        return program
    fused = {member.name: circle for circle in circles for member in circle.members}
    funcs: list[Func] = []
    done: set[int] = set()
    for func in program.funcs:
        circle = fused.get(func.name)
        if circle is None:
            funcs.append(_redirected(func, fused))
        elif id(circle) not in done:
            done.add(id(circle))
            funcs.append(_fused(circle, fused))
    return Module(tuple(funcs))


@dataclass(frozen=True, eq=False)
class _Circle:
    """members: the funcs, each with names and sizes that no other has."""

    name: str
    members: tuple[Func, ...]


def _circles(module: Module) -> list[_Circle]:
    direct = {func.name: set(callees(func)) for func in module.funcs}
    reached = {name: set(called) for name, called in direct.items()}
    while True:
        count = sum(map(len, reached.values()))
        for found in reached.values():
            found.update(*(reached[name] for name in list(found)))
        if count == sum(map(len, reached.values())):
            break
    circles: list[_Circle] = []
    seen: set[str] = set()
    for func in module.funcs:
        group = [f for f in module.funcs if f.name in reached[func.name] and func.name in reached[f.name]]
        if func.name not in seen and len(group) > 1:
            seen.update(f.name for f in group)
            names = Names()
            circles.append(_Circle(func.name, tuple(_apart(f, names) for f in group)))
    return circles


def _apart(func: Func, names: Names) -> Func:
    """The func with names of values and sizes that are new in `names`."""
    sizes = {s: names.fresh(s) for s in dict.fromkeys(s for p in func.params for d in p.type.shape
                                                      for s in symbols_of(d))}
    scalars = {p.name for p in func.params if p.type == I64}
    copier = Copier(sizes={s: symbol(new, 0) for s, new in sizes.items() if s not in scalars})
    with building(names) as body:
        for param in sorted(func.params, key=lambda p: bool(p.type.shape)):
            if param.name in sizes and param.type == I64:
                copier.values[param] = Var(sizes[param.name], I64)
                copier.sizes[param.name] = symbol(sizes[param.name], 0)
        copier.bind_all([p for p in func.params if p not in copier.values])
        for stmt in func.body.stmts:
            copier.statement(stmt)
    params = tuple(copier.values[p] for p in func.params)
    return Func(func.name, params, Block(tuple(body.stmts), tuple(map(copier.value, func.results))))  # type: ignore


class _Redirector(Copier):
    """Copies statements; calls of members of circles become calls of the circle's func."""

    def __init__(self, fused: dict[str, _Circle]) -> None:
        super().__init__()
        self.fused = fused

    def statement(self, stmt: Stmt) -> None:
        circle = self.fused.get(stmt.func) if isinstance(stmt, Call) else None
        if circle is None or not isinstance(stmt, Call):
            super().statement(stmt)
            return
        args: list[Value] = []
        targets: list[Var] = []
        mine = [m.name for m in circle.members].index(stmt.func)
        for number, member in enumerate(circle.members):
            if number == mine:
                args += map(self.value, stmt.args)
                targets += self.bind_all(stmt.targets)
                continue
            nothing = [const(0, map_dims(p.type, lambda s: 0)) for p in member.params]
            sizes: dict[str, Any] = size_substitution(member.params, [v.type for v in nothing])
            sizes.update((p.name, 0) for p in member.params if p.type == I64)
            args += nothing
            targets += [current().var(_sized(r.type, sizes), "unused") for r in member.results]
        current().stmts.append(Call(tuple(targets), circle.name, (int_const(mine), *args), stmt.loc, stmt.needed))


def _sized(type: Type, sizes: dict[str, Any]) -> Type:
    found: Type = map_dims(type, lambda s: sizes.get(s.name, symbol(s.name, s.low)))
    return found


def _redirected(func: Func, fused: dict[str, _Circle]) -> Func:
    if not any(name in fused for name in callees(func)):
        return func
    copier = _Redirector(fused)
    taken = [n for p in func.params for n in (p.name, *(s for d in p.type.shape for s in symbols_of(d)))]
    with building(Names(taken)) as body:
        for stmt in func.body.stmts:
            copier.statement(stmt)
    return replace(func, body=Block(tuple(body.stmts), tuple(map(copier.value, func.results))))


def _fused(circle: _Circle, fused: dict[str, _Circle]) -> Func:
    names = Names([n for m in circle.members for n in used_names(m)])
    which = Var(names.fresh("which"), I64)
    params = [p for m in circle.members for p in m.params]
    with building(names) as body:
        results = _choice(which, circle.members, 0, fused)
    return Func(circle.name, (which, *params), Block(tuple(body.stmts), tuple(results)))


def _choice(which: Var, members: Sequence[Func], first: int, fused: dict[str, _Circle]) -> list[Value]:
    """Emit the body of the member that is called, of those from `first` on; the results of all members."""
    outer = current()
    if first == len(members) - 1:
        return _body(members, first, fused)
    pred = ops.equal(which, int_const(first))
    assert pred.type == BOOL
    with building() as then:
        mine = _body(members, first, fused)
    with building() as orelse:
        others = _choice(which, members, first + 1, fused)
    targets = tuple(outer.var(r.type, r.name if isinstance(r, Var) else "result") for m in members for r in m.results)
    outer.stmts.append(If(targets, pred, Block(tuple(then.stmts), tuple(mine)),
                          Block(tuple(orelse.stmts), tuple(others)), outer.loc))
    return list(targets)


def _body(members: Sequence[Func], number: int, fused: dict[str, _Circle]) -> list[Value]:
    copier = _Redirector(fused)
    for stmt in members[number].body.stmts:
        copier.statement(stmt)
    return [copier.value(r) if k == number else const(0, r.type) for k, m in enumerate(members) for r in m.results]
