"""Forward mode: each statement beside its tangent.

    before                         after
    func f(x: f64):                func f_jvp(x: f64, t_x: f64):
      y = sin(x)                     y = sin(x)
      return y                       t = cos(x)
                                     t_y = multiply(t_x, t)
                                     return y, t_y

Branches and loops give and carry the tangents of what they give and carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ..ir.build import Names, building, const, current, located
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import reads, used_names
from ..report import Forward, Report, part_of
from .activity import varied_variables
from .calls import call_jvp
from .common import name_like
from .limits import add_jvp_limits, check_apart, joined
from .rules import with_rules, without_given


def jvp(func: Func, wrt: Sequence[bool], *, name: str | None = None, report: Report | None = None,
        is_whole: bool = True) -> Func:
    """Params: those of `func`, then a tangent for each param in `wrt`.  Results: those of `func`, then the tangent
    of each result that is real or complex (zeros where it does not depend on `wrt`).

    is_whole: nothing comes after the func, since no other one calls it.  `report` is told what has a tangent; places
    of tangents then say that they are.
    """
    func = joined(with_rules(func, wrt, "push"))
    forward = ForwardMode(func, varied_variables(func, wrt), report is not None, is_whole)
    if report is not None:
        report.sweeps.append(Forward(func, frozenset(forward.varied)))
    with building(Names(used_names(func))) as b:
        extra = []
        for param, moving in zip(func.params, wrt, strict=True):
            if moving:
                tangent = b.var(param.type, f"t_{param.name}")
                forward.tangents[param] = tangent
                extra.append(tangent)
        forward.statements(func.body.stmts)
        inexact = [r for r in func.results if r.type.is_inexact]
        moved: Sequence[Value] = [forward.tangent(r) for r in inexact]
        if is_whole:
            moved = add_jvp_limits(func, forward.tangents, inexact, moved, jvp)
    return without_given(Func(name or f"{func.name}_jvp", (*func.params, *extra),
                              Block(tuple(b.stmts), (*func.results, *moved))))


def _push(let: Let, tangents: dict[Var, Value]) -> None:
    incoming = [None if isinstance(a, Const) else tangents.get(a) for a in let.args]
    if all(t is None for t in incoming):
        return
    several = let.op.result_count > 1
    outgoing = let.op.jvp(incoming, let.args, let.targets if several else let.target, **let.params)
    for target, tangent in zip(let.targets, outgoing if several else (outgoing,), strict=True):
        if tangent is not None and target.type.is_inexact:
            tangents[target] = name_like(tangent, "t_", target)


class ForwardMode:
    """Emits statements with what goes beside their values: `tangents` has those that are not zero.

    `push`, `call` and `type_beside` say what goes beside values: tangents here, other things in subclasses.
    """

    prefix = "t_"

    def __init__(self, func: Func, varied: set[Var], marked: bool, is_whole: bool) -> None:
        self.varied = varied
        self.with_limits = frozenset(func.body.stmts) if is_whole else frozenset()      # see `limits`
        self.read = reads(func.body)
        self.marked = marked            # whether places of tangents say so
        self.tangents: dict[Var, Value] = {}

    def type_beside(self, value: Value) -> Type:
        return value.type

    def push(self, let: Let) -> None:
        """Emit what goes beside the statement's results."""
        _push(let, self.tangents)
        self._check_limits(let)

    def call(self, call: Call, tangents: Sequence[Value | None]) -> Sequence[Value | None]:
        """Emit the call with what goes beside its results, given that of its arguments."""
        return call_jvp(call, tangents)

    def tangent(self, value: Value) -> Value:
        found = None if isinstance(value, Const) else self.tangents.get(value)
        return const(0, self.type_beside(value)) if found is None else found

    def statements(self, stmts: Sequence[Stmt]) -> None:
        b = current()
        for stmt in stmts:
            match stmt:
                case Let():
                    b.stmts.append(stmt)
                    with located(part_of(stmt.loc, "tangent") if self.marked else stmt.loc):
                        self.push(stmt)
                case Check():
                    b.stmts.append(stmt)
                case If():
                    self._branch(stmt)
                case For() | While():
                    self._loop(stmt)
                case Call():
                    tangents = self.call(stmt, [self.tangents.get(a) if isinstance(a, Var) else None
                                                for a in stmt.args])
                    self.tangents.update((t, tangent) for t, tangent in zip(stmt.targets, tangents, strict=True)
                                         if tangent is not None)
                case _:
                    assert_never(stmt)

    def _check_limits(self, let: Let) -> None:
        """Of several results, where those that others read may have another derivative as they coincide."""
        incoming = [self.tangents.get(a) for a in let.args if isinstance(a, Var)]
        if let.op.result_count > 1 and let not in self.with_limits and any(t is not None for t in incoming):
            check_apart(let, let.args, let.targets, [t in self.read for t in let.targets], incoming)

    def block(self, block: Block, moving: Sequence[int]) -> Block:
        """The block with the tangents of results number `moving` as further results."""
        with building() as inner:
            self.statements(block.stmts)
            tangents = [self.tangent(block.results[k]) for k in moving]
        return Block(tuple(inner.stmts), (*block.results, *tangents))

    def _moving(self, variables: Sequence[Var]) -> tuple[list[int], tuple[Var, ...]]:
        """Which of the variables carry a tangent, and new variables for those."""
        moving = [k for k, v in enumerate(variables) if v in self.varied]
        return moving, tuple(self._beside(variables[k]) for k in moving)

    def _beside(self, variable: Var) -> Var:
        return current().var(self.type_beside(variable), f"{self.prefix}{variable.name}")

    def _note(self, variables: Sequence[Var], moving: Sequence[int], tangents: Sequence[Var]) -> None:
        self.tangents.update((variables[k], t) for k, t in zip(moving, tangents, strict=True))

    def _branch(self, stmt: If) -> None:
        moving, tangents = self._moving(stmt.targets)
        then, orelse = self.block(stmt.then, moving), self.block(stmt.orelse, moving)
        current().stmts.append(If((*stmt.targets, *tangents), stmt.pred, then, orelse, stmt.loc))
        self._note(stmt.targets, moving, tangents)

    def _loop(self, stmt: For | While) -> None:
        moving, carried = self._moving(stmt.carries)
        inits = (*stmt.inits, *(self.tangent(stmt.inits[k]) for k in moving))
        self._note(stmt.carries, moving, carried)
        body = self.block(stmt.body, moving)
        tangents = tuple(self._beside(stmt.targets[k]) for k in moving)
        targets, carries = (*stmt.targets, *tangents), (*stmt.carries, *carried)
        current().stmts.append(
            replace(stmt, targets=targets, carries=carries, inits=inits, body=body)
            if isinstance(stmt, For) else While(targets, carries, inits, stmt.cond, body, stmt.loc))
        self._note(stmt.targets, moving, tangents)
