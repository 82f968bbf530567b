"""Compute equal things once.

    before                  after
    a = exp(x)              a = exp(x)
    b = exp(x)              c = add(a, a)
    c = add(a, b)           return c
    return c

A nested block sees what the blocks around it have computed.
"""

from __future__ import annotations

from typing import Any

from ..ir.nodes import Block, Const, Func, Let, Value, Var
from ..ir.walk import blocks, with_blocks, with_operands


def share_common(func: Func) -> Func:
    body = _share(func.body, {}, {})
    return func if body is func.body else Func(func.name, func.params, body, func.result_names)


def _share(block: Block, seen: dict[Any, tuple[Var, ...]], replaced: dict[Var, Value]) -> Block:
    seen = dict(seen)
    stmts = []
    for old in block.stmts:
        stmt = with_operands(old, replaced)
        if isinstance(stmt, Let):
            if stmt.op.is_pure:
                key = expression_key(stmt)
                known = seen.get(key)
                if known is not None:
                    replaced.update(zip(stmt.targets, known, strict=True))
                    continue
                seen[key] = stmt.targets
        else:
            stmt = with_blocks(stmt, [_share(b, seen, replaced) for b in blocks(stmt)])
        stmts.append(stmt)
    results = tuple(replaced.get(r, r) if isinstance(r, Var) else r for r in block.results)
    if len(stmts) == len(block.stmts) and all(a is b for a, b in zip(stmts, block.stmts)) and all(
            a is b for a, b in zip(results, block.results)):
        return block
    return Block(tuple(stmts), results)


def expression_key(let: Let) -> Any:
    """Equal for Lets that compute the same; constants by value and sign of zero."""
    return (let.op.name, tuple((repr(a.value), a.type) if isinstance(a, Const) else a for a in let.args),
            tuple(sorted(let.params.items(), key=lambda item: item[0])), tuple(t.type for t in let.targets))
