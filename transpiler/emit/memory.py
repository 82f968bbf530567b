"""Which values lie in the memory of a parameter that the function leaves its effect in (`Func.effects`).

    func f(a: f64[n]) -> (f64[n]) writes (a):           a     in a's memory, it is a
      a_1 = store(a, 1.0, 0)                            a_1   too: written in place
      b = if p: a_1 else: c                             b     nowhere: where ways differ, that in a is copied
      return b                                          so b is written back into a at the end

A value lies in one parameter's memory in every run, or in none: where the two ways of a branch, or the first and the
later trips of a loop, would differ, a copy is made (its edge is added to the `copies` of `storage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir.nodes import Block, For, Func, If, Let, Stmt, Value, Var, While
from .access import WRITES

if TYPE_CHECKING:
    from .plan import Plan
    from .storage import Edge


Home = tuple[Var, bool]         # a parameter, and whether the value is all of it as it is, rather than a view


class Memory:
    """`home(value)`: the parameter whose memory it lies in, and how; None for most values.  `holds(param, value)`:
    nothing is to be done to have the value there."""

    def __init__(self, plan: Plan, copies: set[Edge]) -> None:
        self.plan, self.copies = plan, copies
        self._homes: dict[Var, Home] = {param: (param, True) for param in plan.func.effects}
        if plan.func.effects:
            self._block(plan.func.body)

    def home(self, value: Value) -> Home | None:
        if not self._homes:
            return None
        value = self.plan.value(value)
        root = self.plan.root(value)
        found = self._homes.get(root) if isinstance(root, Var) else None
        return found if found is None or root is value else (found[0], False)

    def holds(self, param: Var, value: Value) -> bool:
        return self.home(value) == (param, True)

    def kept(self, pairs: Sequence[tuple[Var, Value]]) -> list[tuple[Var, Value]]:
        """Of params with what they are to hold, those that must be written to."""
        return [(param, value) for param, value in pairs if not self.holds(param, value)]

    # --- the way forward through the program -------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for stmt in block.stmts:
            if stmt not in self.plan.dead:
                self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let() if self.plan.roles[stmt] in WRITES and (stmt, "operand", 0) not in self.copies:
                self._put(stmt.target, self.home(stmt.args[0]))
            case If():
                self._block(stmt.then)
                self._block(stmt.orelse)
                for k, target in enumerate(stmt.targets):
                    ways = [("then", stmt.then.results[k]), ("orelse", stmt.orelse.results[k])]
                    self._put(target, self._one(stmt, k, ways))
            case For() | While():
                self._loop(stmt)
            case _:
                pass

    def _put(self, target: Var, home: Home | None) -> None:
        if home is None:
            self._homes.pop(target, None)
        else:
            self._homes[target] = home

    def _taken(self, stmt: Stmt, which: str, k: int, value: Value) -> Home | None:
        return None if not value.type.shape or (stmt, which, k) in self.copies else self.home(value)

    def _one(self, stmt: Stmt, k: int, ways: Sequence[tuple[str, Value]]) -> Home | None:
        """Where a value lies that comes on several edges; copies are made where they differ."""
        found = {self._taken(stmt, which, k, value) for which, value in ways}
        if len(found) == 1:
            return found.pop()
        self.copies.update((stmt, which, k) for which, value in ways if self._taken(stmt, which, k, value) is not None)
        return None

    def _loop(self, loop: For | While) -> None:
        changing = [k for k in self.plan.carried[loop] if loop.carries[k].type.shape]
        for k in changing:
            self._put(loop.carries[k], self._taken(loop, "init", k, loop.inits[k]))
        while True:
            if isinstance(loop, While):
                self._block(loop.cond)
            self._block(loop.body)
            wrong = [k for k in changing if self._homes.get(loop.carries[k]) != self._taken(
                loop, "body", k, loop.body.results[k])]
            for k in wrong:
                self._one(loop, k, [("init", loop.inits[k]), ("body", loop.body.results[k])])
                self._put(loop.carries[k], None)
            if not wrong:
                break
        for k in changing:
            self._put(loop.targets[k], self._homes.get(loop.carries[k]))


def left_over(func: Func) -> list[tuple[Var, Value]]:
    """The params with effects, each with what it is to hold in the end."""
    return list(zip(func.effects, func.results[len(func.returned):], strict=True))
