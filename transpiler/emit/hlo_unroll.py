"""Loops in whose iterations arrays have sizes of their own, written out.

    for k in 0 .. 3:   a[k:]: f64[3 - k]          a[0:]: f64[3]   a[1:]: f64[2]   a[2:]: f64[1]
"""

from __future__ import annotations

from collections.abc import Set

from ..ir.build import Names, building, int_const
from ..ir.nodes import Block, Const, For, Func, Value, Var
from ..ir.types import I64
from ..ir.walk import (
    Copier,
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
            if isinstance(stmt, For) and _has_to_be(stmt, sizes):
                replaced.update(zip(stmt.targets, _written_out(stmt), strict=True))
                changed = True
                continue
            inner = with_blocks(stmt, [_unrolled(x, sizes) for x in blocks(stmt)])
            b.stmts.append(inner)
            changed = changed or inner is not old
    if not changed:
        return block
    return Block(tuple(b.stmts), tuple(replacement(r, replaced) for r in block.results))


def _has_to_be(loop: For, sizes: Set[str]) -> bool:
    if not all(isinstance(v, Const) for v in (loop.lo, loop.hi, loop.step)):
        return False
    inside = {loop.index.name} | {v.name for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s))
                                  if v.type == I64}
    count = len(_indices(loop)) * sum(1 for _ in all_statements(loop.body))
    return not inside.isdisjoint(sizes) and count <= MOST


def _indices(loop: For) -> range:
    return range(loop.lo.value, loop.hi.value, loop.step.value)                 # type: ignore[union-attr]


def _written_out(loop: For) -> list[Value]:
    carried: list[Value] = list(loop.inits)
    for index in _indices(loop):
        copier = Copier({loop.index: int_const(index), **dict(zip(loop.carries, carried, strict=True))},
                        {loop.index.name: index})
        for stmt in loop.body.stmts:
            copier.statement(stmt)
        carried = [copier.value(r) for r in loop.body.results]
    return carried

