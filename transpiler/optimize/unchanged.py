"""What a loop carries without changing it is no carry.

    before                                            after
    b, s = for i in 0 .. n carry (c = a, t = 0.0):    s = for i in 0 .. n carry (t = 0.0):
      v = load(c, i)                                    v = load(a, i)
      w = add(t, v)                                     w = add(t, v)
      yield c, w                                        yield w
    return b, s                                       return a, s
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Block, For, Func, Stmt, Value, Var, While
from ..ir.walk import (
    all_statements,
    blocks,
    replacement,
    sizes_used,
    with_blocks,
    with_body,
    with_contents,
    with_operands,
)


def drop_unchanged(func: Func) -> Func:
    sizes = {name for stmt in all_statements(func.body) for name in sizes_used(stmt)}
    return with_body(func, _visit(func.body, {}, sizes))


def _visit(block: Block, replaced: dict[Var, Value], sizes: set[str]) -> Block:
    """The block, in which `replaced` stand for the carries dropped so far; inner loops first."""
    stmts: list[Stmt] = []
    for old in block.stmts:
        stmt = with_operands(old, replaced)
        stmt = with_blocks(stmt, [_visit(b, replaced, sizes) for b in blocks(stmt)])
        if isinstance(stmt, (For, While)) and (still := _unchanged(stmt, sizes)):
            for k in still:
                replaced[stmt.carries[k]] = replaced[stmt.targets[k]] = stmt.inits[k]
            stmt = _without(stmt, still)
            stmt = with_blocks(stmt, [_visit(b, replaced, sizes) for b in blocks(stmt)])
        stmts.append(stmt)
    return with_contents(block, stmts, [replacement(r, replaced) for r in block.results])


def _unchanged(loop: For | While, sizes: set[str]) -> list[int]:
    """The numbers of the carries that do not change, and after which no size is named."""
    return [k for k, (carry, target) in enumerate(zip(loop.carries, loop.targets))
            if loop.body.results[k] is carry and carry.name not in sizes and target.name not in sizes]


def _without(loop: For | While, dropped: list[int]) -> For | While:
    def kept(values: tuple) -> tuple:  # type: ignore[type-arg]
        return tuple(v for k, v in enumerate(values) if k not in dropped)

    return replace(loop, targets=kept(loop.targets), carries=kept(loop.carries), inits=kept(loop.inits),
                   body=Block(loop.body.stmts, kept(loop.body.results)))
