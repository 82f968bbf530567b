"""Which block of a func each variable is defined in, and what stands around that block.

Blocks nest: the func's own (the root), the body of a loop, an arm of a branch.  A While counts as one opaque
statement: the reverse mode has made those that matter into counted loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..ir.nodes import Block, For, Func, If, Stmt, Var


@dataclass(eq=False)
class Scope:
    """owner: the For or If that the block belongs to (None at the root); arm: 0 or 1 of an If."""

    block: Block
    owner: For | If | None = None
    arm: int = 0
    parent: Scope | None = None
    defined: dict[Var, Stmt | None] = field(default_factory=dict)     # carries and the index have no statement

    @property
    def is_loop(self) -> bool:
        return isinstance(self.owner, For)

    def around(self) -> Iterator[Scope]:
        """This scope and those around it, up to the root."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def loops(self) -> list[For]:
        """The loops around, outermost first, this one included."""
        return [s.owner for s in self.around() if isinstance(s.owner, For)][::-1]


class Scopes:
    """All scopes of a func."""

    def __init__(self, func: Func) -> None:
        self.root = Scope(func.body)
        self.root.defined.update((p, None) for p in func.params)
        self.of: dict[Var, Scope] = dict.fromkeys(func.params, self.root)
        self.inside: dict[tuple[Stmt, int], Scope] = {}
        self._visit(func.body.stmts, self.root)

    def _visit(self, stmts: Sequence[Stmt], scope: Scope) -> None:
        for stmt in stmts:
            for target in stmt.targets:
                self._define(target, scope, stmt)
            if isinstance(stmt, For):
                inner = Scope(stmt.body, stmt, 0, scope)
                self.inside[(stmt, 0)] = inner
                for var in (stmt.index, *stmt.carries):
                    self._define(var, inner, None)
                self._visit(stmt.body.stmts, inner)
            elif isinstance(stmt, If):
                for arm, block in enumerate((stmt.then, stmt.orelse)):
                    inner = Scope(block, stmt, arm, scope)
                    self.inside[(stmt, arm)] = inner
                    self._visit(block.stmts, inner)

    def _define(self, var: Var, scope: Scope, stmt: Stmt | None) -> None:
        scope.defined[var] = stmt
        self.of[var] = scope

    def by_name(self) -> dict[str, Var]:
        """Int scalars that sizes may be named after."""
        return {v.name: v for v in self.of if not v.type.shape and v.type.dtype == "int64"}


