"""Which carries of a loop are sums: to which iterations only add, so that their order does not matter.

    d_w = for lane ... carry (s = 0):   t = add(s, x);  u = if p: yield t else: yield s;  yield u         a sum
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.nodes import Block, Call, Check, For, If, Let, Stmt, Value, While
from ..ir.walk import operands


def is_sum(loop: For, k: int) -> bool:
    """Whether the loop does nothing with its carry number k but add to it and carry it on."""
    totals: set[Value] = {loop.carries[k]}
    if not _only_adds(loop.body.stmts, totals):
        return False
    return all((r in totals) == (j == k) for j, r in enumerate(loop.body.results))


def _only_adds(stmts: Sequence[Stmt], totals: set[Value]) -> bool:
    """Follow the totals through the statements; False where one is used otherwise."""
    return all(_follows(stmt, totals) for stmt in stmts)


def _follows(stmt: Stmt, totals: set[Value]) -> bool:
    match stmt:
        case Let():
            places = [k for k, a in enumerate(stmt.args) if a in totals]
            if not places:
                return True
            if len(places) > 1 or places[0] not in stmt.op.additive:
                return False
            totals.add(stmt.target)
            return True
        case If():
            if stmt.pred in totals:
                return False
            return all(_only_adds(b.stmts, totals) for b in (stmt.then, stmt.orelse)) and _joined(stmt, totals)
        case For() | While():
            return _through_loop(stmt, totals)
        case Check() | Call():
            return totals.isdisjoint(operands(stmt))


def _joined(stmt: If, totals: set[Value]) -> bool:
    for target, a, b in zip(stmt.targets, stmt.then.results, stmt.orelse.results, strict=True):
        if (a in totals) != (b in totals):
            return False
        if a in totals:
            totals.add(target)
    return True


def _through_loop(stmt: For | While, totals: set[Value]) -> bool:
    count = len(stmt.inits)
    if not totals.isdisjoint(operands(stmt)[:len(operands(stmt)) - count]):
        return False                                    # as a bound
    carried = [init in totals for init in stmt.inits]
    totals.update(c for c, is_total in zip(stmt.carries, carried) if is_total)
    parts: list[Block] = [stmt.body] if isinstance(stmt, For) else [stmt.cond, stmt.body]
    if not all(_only_adds(part.stmts, totals) for part in parts):
        return False
    if isinstance(stmt, While) and stmt.cond.results[0] in totals:
        return False
    if any((r in totals) != is_total for r, is_total in zip(stmt.body.results, carried)):
        return False
    totals.update(t for t, is_total in zip(stmt.targets, carried) if is_total)
    return True

