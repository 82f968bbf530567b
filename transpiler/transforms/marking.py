"""Which inputs each element of the results depends on: marks go through the function as tangents do in forward mode.

    before                            after
    func f(x: f64[n]):                func f_marks(x: f64[n], m_x: i64[n]):
      y = sin(x)                        y = sin(x)
      s = sum(y) {axes=(0,)}            s = sum(y) {axes=(0,)}
      return y, s                       t = union(m_x) {axes=(0,)}
                                        return m_x, t

An input's mark has a bit of its own, or shares one with others; a result's mark has the bits of all that it may depend
on.  Branches and loops run as they do for the values; what the values are for nothing else is dead code afterwards.
See `ops.marks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from .. import ops
from ..errors import RuleError
from ..ir.build import Names, building, const, current
from ..ir.library import library
from ..ir.nodes import Block, Call, Check, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import inline, used_names, without_prints
from ..ops.base import mark_type, unsteady_values
from .activity import dependences, varied_variables
from .jvp import ForwardMode
from .rules import given_parts, is_given, push_of, with_rules, without_given


def marking(func: Func, wrt: Sequence[bool], *, name: str | None = None) -> Func:
    """Params: those of `func`, then marks for each param in `wrt`.  Results: marks of each result that is real or
    complex.  It prints nothing, as it may run several times for one call of the user's."""
    func = with_rules(replace(func, body=without_prints(func.body)), wrt, "push")
    forward = _Marking(func, varied_variables(func, wrt))
    with building(Names(used_names(func))) as b, unsteady_values(unsteady_variables(func)):
        extra = []
        for param, moving in zip(func.params, wrt, strict=True):
            if moving:
                mark = b.var(mark_type(param.type), f"m_{param.name}")
                forward.tangents[param] = mark
                extra.append(mark)
        forward.statements(func.body.stmts)
        marks = tuple(forward.tangent(r) for r in func.results if r.type.is_inexact)
    return without_given(Func(name or f"{func.name}_marks", (*func.params, *extra), Block(tuple(b.stmts), marks)))


class _Marking(ForwardMode):
    prefix = "m_"

    def __init__(self, func: Func, varied: set[Var]) -> None:
        super().__init__(func, varied, marked=False, is_whole=False)

    def type_beside(self, value: Value) -> Type:
        return mark_type(value.type)

    def push(self, let: Let) -> None:
        marks = [self.tangents.get(a) if isinstance(a, Var) else None for a in let.args]
        if all(m is None for m in marks):
            return
        several = let.op.result_count > 1
        found = let.op.mark(marks, let.args, let.targets if several else let.target, **let.params)
        for target, mark in zip(let.targets, (found or ()) if several else (found,)):
            if mark is not None and target.type.is_inexact:
                self.tangents[target] = mark

    def call(self, call: Call, tangents: Sequence[Value | None]) -> Sequence[Value | None]:
        """Every element of a result of a recursive function depends on all of what the result depends on.  A rule that
        is given is asked itself."""
        current().stmts.append(call)
        if not is_given(call):
            return [_all_of([m for k, m in enumerate(tangents) if k in params], target)
                    for target, params in zip(call.targets, dependences(call), strict=True)]
        rule, residuals, own = given_parts(call)
        found: list[Value | None] = [None] * len(call.targets)
        if any(tangents[k] is not None for k in rule.wrt):
            try:
                push = library().callee(push_of(call.func))
            except RuleError:                            # no forward mode: then it is as for a recursive function
                return [_all_of(tangents[:own], target) for target in call.targets]
            at_rest = [const(0, call.args[k].type) for k in rule.wrt]          # what tangents there are does not matter
            moving = [_or_nothing(tangents[k], call.args[k]) for k in rule.wrt]
            made = marking(push, [False] * len(residuals) + [True] * len(moving))
            marks = iter(inline(made, (*residuals, *at_rest, *moving)))
            found = [next(marks) if t.type.is_inexact else None for t in call.targets]
        others = [m for k, m in enumerate(tangents[:own]) if k not in rule.wrt and rule.code is not None]
        return [ops.union.of([mark, _all_of(others, target)]) for mark, target in zip(found, call.targets, strict=True)]


def _or_nothing(mark: Value | None, primal: Value) -> Value:
    return const(0, mark_type(primal.type)) if mark is None else mark


def _all_of(marks: Sequence[Value | None], target: Var) -> Value | None:
    """Everything of the target with all of these marks."""
    if all(m is None for m in marks) or not target.type.is_inexact:
        return None
    return ops.union.over(ops.union.of_all(marks), target.type.shape, ())


def unsteady_variables(func: Func) -> set[Var]:
    """Variables that follow from real or complex params, by values or by which way the function takes."""
    unsteady = {p for p in func.params if p.type.is_inexact}
    _flow(func.body.stmts, unsteady)
    return unsteady


def _flow(stmts: Sequence[Stmt], unsteady: set[Var]) -> None:
    for stmt in stmts:
        match stmt:
            case Let() | Call():
                if not unsteady.isdisjoint(stmt.args):
                    unsteady.update(stmt.targets)
            case Check():
                pass
            case If():
                for block in (stmt.then, stmt.orelse):
                    _flow(block.stmts, unsteady)
                    unsteady |= _beside(stmt.targets, block.results, unsteady)
                if stmt.pred in unsteady:
                    unsteady.update(stmt.targets)
            case For() | While():
                if isinstance(stmt, For) and not unsteady.isdisjoint((stmt.lo, stmt.hi, stmt.step)):
                    unsteady.update((stmt.index, *stmt.carries))
                unsteady |= _beside(stmt.carries, stmt.inits, unsteady)
                while True:                                    # a carry may become unsteady after a trip
                    before = len(unsteady)
                    if isinstance(stmt, While):
                        _flow(stmt.cond.stmts, unsteady)
                        if stmt.cond.results[0] in unsteady:
                            unsteady.update(stmt.carries)
                    _flow(stmt.body.stmts, unsteady)
                    unsteady |= _beside(stmt.carries, stmt.body.results, unsteady)
                    if len(unsteady) == before:
                        break
                unsteady |= _beside(stmt.targets, stmt.carries, unsteady)
            case _:
                assert_never(stmt)


def _beside(to: Sequence[Var], source: Iterable[Value], marked: set[Var]) -> set[Var]:
    return {t for t, s in zip(to, source, strict=True) if isinstance(s, Var) and s in marked}
