"""Drop statements whose results nobody reads.

    before                  after
    a = exp(x)              b = sin(x)
    b = sin(x)              return b
    return b

Checks stay, and so does an int whose name is used as a size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ..ir.dims import symbols_of
from ..ir.nodes import Block, Call, Check, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import blocks, operands, reads, sizes_used, with_blocks, with_body, with_contents


def drop_dead_code(func: Func) -> Func:
    return with_body(func, live(func.body))


def live(block: Block) -> Block:
    """The block without what nobody reads."""
    needed: set[object] = {r for r in block.results if isinstance(r, Var)}
    for result in block.results:
        needed.update(_sizes(result))
    kept: list[Stmt] = []
    for stmt in reversed(block.stmts):
        if not _is_needed(stmt, needed):
            continue
        stmt = _without_unused_targets(stmt, needed)
        stmt = with_blocks(stmt, [live(b) for b in blocks(stmt)])
        kept.append(stmt)
        needed.update(v for v in operands(stmt) if isinstance(v, Var))
        needed.update(sizes_used(stmt))
        for inner in blocks(stmt):
            needed |= reads(inner)
    kept.reverse()
    return with_contents(block, kept)


def _sizes(value: Value) -> set[str]:
    return {name for d in value.type.shape for name in symbols_of(d)}


def _is_needed(stmt: Stmt, needed: set[object]) -> bool:
    if any(t in needed or t.name in needed for t in stmt.targets):
        return True
    match stmt:
        case Check():
            return True
        case Call():
            return stmt.needed
        case Let():
            return not stmt.op.is_pure
        case If() | For() | While():
            return any(_is_needed(s, set()) for b in blocks(stmt) for s in b.stmts)
        case _:
            assert_never(stmt)


def _without_unused_targets(stmt: Stmt, needed: set[object]) -> Stmt:
    """An If or a loop without the results that nobody reads (a carry only if no other one needs it), and
    an operation of several results as one that gives only those that are read, where there is such a one."""
    if isinstance(stmt, Let) and len(stmt.targets) > 1:
        used = [t in needed or t.name in needed for t in stmt.targets]
        lighter = None if all(used) else stmt.op.giving_only(used)
        return stmt if lighter is None else Let(tuple(t for t, u in zip(stmt.targets, used) if u), lighter, stmt.args,
                                                stmt.params, stmt.loc)
    if isinstance(stmt, If):
        keep = [k for k, t in enumerate(stmt.targets) if t in needed or t.name in needed]
        if len(keep) == len(stmt.targets):
            return stmt
        then, orelse = (Block(b.stmts, tuple(b.results[k] for k in keep)) for b in (stmt.then, stmt.orelse))
        return If(tuple(stmt.targets[k] for k in keep), stmt.pred, then, orelse, stmt.loc)
    if isinstance(stmt, For):
        keep = _carried(stmt, needed, set())
        if len(keep) == len(stmt.targets):
            return stmt
        body = Block(stmt.body.stmts, tuple(stmt.body.results[k] for k in keep))
        return replace(stmt, targets=tuple(stmt.targets[k] for k in keep), carries=tuple(stmt.carries[k] for k in keep),
                       inits=tuple(stmt.inits[k] for k in keep), body=body)
    if isinstance(stmt, While):
        keep = _carried(stmt, needed, reads(stmt.cond))
        if len(keep) in (0, len(stmt.targets)):
            return stmt
        body = Block(stmt.body.stmts, tuple(stmt.body.results[k] for k in keep))
        return While(tuple(stmt.targets[k] for k in keep), tuple(stmt.carries[k] for k in keep),
                     tuple(stmt.inits[k] for k in keep), stmt.cond, body, stmt.loc)
    return stmt


def _carried(stmt: For | While, needed: set[object], read: set[object]) -> list[int]:
    """The carries whose last value is needed, that `read` has, or that the body needs for another one of these."""
    keep = {k for k, (t, c) in enumerate(zip(stmt.targets, stmt.carries, strict=True))
            if t in needed or t.name in needed or c in read or c.name in read}
    while True:
        results = tuple(r for k, r in enumerate(stmt.body.results) if k in keep)
        inside = _needed_inside(Block(stmt.body.stmts, results))
        more = {k for k, c in enumerate(stmt.carries) if c in inside or c.name in inside} | keep
        if more == keep:
            return sorted(keep)
        keep = more


def _needed_inside(block: Block) -> set[object]:
    return reads(live(block))
