"""Move what does not change out of loops.

    before                          after
    for i in 0 .. n:                e = exp(c)
      e = exp(c)                    for i in 0 .. n:
      ...                             ...

Only scalar statements without effects move, and they are harmless where the loop makes no trip.  A load moves only
if an index of a loop around stands in it: at a constant place, an array might be empty.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Var
from ..ir.walk import blocks, sizes_used, with_blocks, with_body
from ..ops.base import Lowering
from .common import share_common


def hoist_invariants(func: Func) -> Func:
    body = _visit(func.body)
    return with_body(func, body)


def hoist_all(func: Func) -> Func:
    """As far out as possible; invariants that meet outside are shared."""
    while True:
        moved = share_common(hoist_invariants(func))
        if moved is func:
            return func
        func = moved


def _visit(block: Block) -> Block:
    stmts: list[Stmt] = []
    changed = False
    for old in block.stmts:
        stmt = with_blocks(old, [_visit(b) for b in blocks(old)])
        if isinstance(stmt, For):
            moved, stmt = _out_of(stmt)
            stmts += moved
            changed |= bool(moved)
        changed |= stmt is not old
        stmts.append(stmt)
    return Block(tuple(stmts), block.results) if changed else block


def _out_of(loop: For) -> tuple[list[Stmt], For]:
    inside: set[Var] = {loop.index, *loop.carries}
    moved: list[Stmt] = []
    kept: list[Stmt] = []
    for stmt in loop.body.stmts:
        if isinstance(stmt, Let) and _may_move(stmt) and inside.isdisjoint(stmt.args) and (
                sizes_used(stmt).isdisjoint(v.name for v in inside)):
            moved.append(stmt)
        else:
            kept.append(stmt)
            inside.update(stmt.targets)
    if not moved:
        return [], loop
    body = Block(tuple(kept), loop.body.results)
    return moved, replace(loop, body=body)


def _may_move(let: Let) -> bool:
    if not let.op.is_pure or len(let.targets) != 1 or let.target.type.shape:
        return False
    if let.op.lowering is Lowering.ELEMENTWISE or not let.args:
        return let.op.is_shareable
    return bool(let.args[0].type.shape) and len(let.args) > 1 and not any(isinstance(a, Const) for a in let.args[1:])
