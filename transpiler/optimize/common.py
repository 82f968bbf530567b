"""Compute equal things once.

    before                  after
    a = exp(x)              a = exp(x)
    b = exp(x)              c = add(a, a)
    c = add(a, b)           return c
    return c

A nested block sees what the blocks around it have computed.  What was checked once holds.
"""

from __future__ import annotations

from typing import Any

from ..ir.build import expression_key
from ..ir.nodes import Block, Call, Check, Const, Func, Let, Value, Var
from ..ir.walk import all_statements, blocks, sizes_used, with_blocks, with_body, with_contents, with_operands


def share_common(func: Func) -> Func:
    sizes = {name for stmt in all_statements(func.body) for name in sizes_used(stmt)}
    return with_body(func, _share(func.body, {}, {}, sizes))


def _share(block: Block, seen: dict[Any, tuple[Var, ...]], replaced: dict[Var, Value], sizes: set[str]) -> Block:
    seen = dict(seen)
    stmts = []
    for old in block.stmts:
        stmt = with_operands(old, replaced)
        if isinstance(stmt, Let):
            if stmt.op.is_pure and stmt.op.is_shareable:
                key = expression_key(stmt.op, stmt.args, stmt.params, [t.type for t in stmt.targets])
                known = seen.get(key)
                if known is not None and not any(t.name in sizes for t in stmt.targets):
                    replaced.update(zip(stmt.targets, known, strict=True))
                    continue
                seen[key] = stmt.targets
        elif isinstance(stmt, Call):
            key = ("call", stmt.func, *((repr(a.value), a.type) if isinstance(a, Const) else a for a in stmt.args))
            known = seen.get(key)
            if known is not None and not any(t.name in sizes for t in stmt.targets):
                replaced.update(zip(stmt.targets, known, strict=True))
                continue
            if stmt.needed:
                seen[key] = stmt.targets
        elif isinstance(stmt, Check) and not stmt.prints:
            if ("held", stmt.pred) in seen:
                continue
            seen["held", stmt.pred] = ()
        else:
            stmt = with_blocks(stmt, [_share(b, seen, replaced, sizes) for b in blocks(stmt)])
        stmts.append(stmt)
    return with_contents(block, stmts, [replaced.get(r, r) if isinstance(r, Var) else r for r in block.results])
