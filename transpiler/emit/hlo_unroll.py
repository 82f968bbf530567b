"""Loops in whose iterations arrays have sizes of their own, written out.

    for k in 0 .. 3:   a[k:]: f64[3 - k]          a[0:]: f64[3]   a[1:]: f64[2]   a[2:]: f64[1]
"""

from __future__ import annotations

from collections.abc import Set

from ..ir.build import Names, building
from ..ir.nodes import Block, For, Func, Value, Var
from ..ir.types import I64
from ..ir.unroll import known_indices, written_out
from ..ir.walk import (
    all_statements,
    blocks,
    bound_inside,
    replacement,
    substituted,
    used_names,
    with_blocks,
    with_body,
)

MOST = 20_000           # statements that a loop may become


def unroll_sized(func: Func, sizes: Set[str]) -> Func:
    """The outermost loops of known trips in which one of the sizes is defined, written out; `func` where there are
    none, or they are too long."""
    if not sizes:
        return func
    with building(Names(used_names(func))):
        body = _unrolled(func.body, sizes)
    return with_body(func, body)


def _unrolled(block: Block, sizes: Set[str]) -> Block:
    changed = False
    replaced: dict[Var, Value] = {}
    with building() as b:
        for old in block.stmts:
            stmt = substituted(old, replaced)
            indices = _has_to_be(stmt, sizes) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and indices is not None:
                replaced.update(zip(stmt.targets, written_out(stmt, indices), strict=True))
                changed = True
                continue
            inner = with_blocks(stmt, [_unrolled(x, sizes) for x in blocks(stmt)])
            b.stmts.append(inner)
            changed = changed or inner is not old
    if not changed:
        return block
    return Block(tuple(b.stmts), tuple(replacement(r, replaced) for r in block.results))


def _has_to_be(loop: For, sizes: Set[str]) -> range | None:
    """The indices of a loop that has to be written out."""
    indices = known_indices(loop)
    inside = {loop.index.name} | {v.name for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s))
                                  if v.type == I64}
    if indices is None or inside.isdisjoint(sizes) or len(indices) * sum(1 for _ in all_statements(loop.body)) > MOST:
        return None
    return indices
