"""The part of a statement that is the same for all elements of a batch, computed once.

    before (x batched, a not)                 its part
    p, q = for i in 0 .. n carry (u, v):      p = for i in 0 .. n carry (u):
      u_1 = sin(u)                              u_1 = sin(u)
      v_1 = multiply(v, u)                      yield u_1
      yield u_1, v_1

Nothing in it reads anything that depends on the batch.  The elements of the batch run their own copies of it, where
they need it, in the loop over lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from ..ir.build import building, current
from ..ir.nodes import Block, Call, Check, For, If, Let, Stmt, Value, Var, While
from ..ir.walk import operands
from .batch_dependence import Dependence
from .lane_loop import LaneCopier

if TYPE_CHECKING:
    from .vmap import Batching


def once(batching: Batching, stmt: Stmt) -> None:
    """Emit the part of the statement; its targets that do not depend on the batch stand for themselves then."""
    copier = batching.copier
    part = _Part(batching.depends, LaneCopier(None, copier.is_told, copier.values, copier.sizes))
    part.statement(stmt)
    for target in filter(part.is_same, stmt.targets):
        copier.values[target] = part.copier.values[target]
        if target.name in part.copier.sizes:
            copier.sizes[target.name] = part.copier.sizes[target.name]


class _Part:
    def __init__(self, depends: Dependence, copier: LaneCopier) -> None:
        self.depends, self.copier = depends, copier

    def is_same(self, value: Value) -> bool:
        return value not in self.depends

    def same(self, values: Sequence[Value], beside: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(self.copier.value(v) for v, other in zip(values, beside, strict=True) if self.is_same(other))

    def bound(self, olds: Sequence[Var]) -> tuple[Var, ...]:
        return self.copier.bind_all(list(filter(self.is_same, olds)))

    def block(self, block: Block, beside: Sequence[Value]) -> Block:
        with building() as inner:
            for stmt in block.stmts:
                self.statement(stmt)
        return Block(tuple(inner.stmts), self.same(block.results, beside))

    def statement(self, stmt: Stmt) -> None:
        copier, emitted = self.copier, current().stmts
        match stmt:
            case Let() | Call():
                if all(map(self.is_same, stmt.targets)):
                    copier.statement(stmt)
            case Check():
                if all(map(self.is_same, operands(stmt))) and not stmt.prints:      # what it guards is here, too
                    copier.statement(stmt)
            case If():
                if not self.depends.is_led(stmt) and (any(map(self.is_same, stmt.targets)) or not stmt.targets):
                    pred = copier.value(stmt.pred)
                    then, orelse = self.block(stmt.then, stmt.targets), self.block(stmt.orelse, stmt.targets)
                    emitted.append(If(self.bound(stmt.targets), pred, then, orelse, stmt.loc))
            case For():
                if any(map(self.is_same, stmt.targets)):
                    inits = self.same(stmt.inits, stmt.carries)
                    lo, hi, step = map(copier.value, (stmt.lo, stmt.hi, stmt.step))
                    index, carries = copier.bind(stmt.index), self.bound(stmt.carries)
                    body = self.block(stmt.body, stmt.carries)
                    emitted.append(replace(stmt, targets=self.bound(stmt.targets), index=index, lo=lo, hi=hi,
                                           step=step, carries=carries, inits=inits, body=body))
            case While():
                if any(map(self.is_same, stmt.targets)):
                    inits = self.same(stmt.inits, stmt.carries)
                    carries = self.bound(stmt.carries)
                    cond = self.block(stmt.cond, stmt.cond.results)
                    body = self.block(stmt.body, stmt.carries)
                    emitted.append(While(self.bound(stmt.targets), carries, inits, cond, body, stmt.loc))
            case _:
                assert_never(stmt)
