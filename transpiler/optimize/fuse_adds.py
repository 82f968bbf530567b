"""Loops side by side that do nothing but add to one array become one.

    before                                            after
    b = for i in 0 .. n carry (c = a):                b = for i in 0 .. n carry (c = a):
      yield add_at(c, v(i), i)                          d = add_at(c, v(i), i)
    d = for j in 0 .. n carry (e = b):                  yield add_at(d, w(i), i + 1)
      yield add_at(e, w(j), j + 1)

So are the loops inside of them, the innermost only where they add to neighbours, which `gather` then finds in one
loop: others are vectorised as they are.  The array passes through the cache once.  Sums change their order.
"""

from __future__ import annotations

from collections import Counter

from ..ir import dims
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var
from ..ir.walk import (
    blocks,
    operands,
    reads,
    replacement,
    same_value,
    substituted,
    with_blocks,
    with_body,
    with_contents,
)


def fuse_adds(func: Func) -> Func:
    return with_body(func, _visit(func.body, Ints(func.body)))


def _visit(block: Block, ints: Ints) -> Block:
    stmts: list[Stmt] = []
    seen: Counter[Var] = Counter(v for v in block.results if isinstance(v, Var))
    for stmt in block.stmts:
        seen.update({v for v in (*operands(stmt), *(v for b in blocks(stmt) for v in reads(b))) if isinstance(v, Var)})
    for old in block.stmts:
        stmt = with_blocks(old, [_visit(b, ints) for b in blocks(old)])
        at = _partner(stmts, stmt, seen, ints)
        if at is not None and isinstance(stmt, For):
            first = stmts[at]
            assert isinstance(first, For)
            stmts[at:] = [*stmts[at + 1:], _fused(first, stmt)]
        else:
            stmts.append(stmt)
    return with_contents(block, stmts)


def _partner(stmts: list[Stmt], loop: Stmt, seen: Counter[Var], ints: Ints) -> int | None:
    """Where the loop stands that this one goes on adding behind, if nobody sees what is between them.  seen: by how
    many statements of the block each value is, and as how many of its results."""
    if not isinstance(loop, For) or not _only_adds(loop):
        return None
    for at in range(len(stmts) - 1, -1, -1):
        stmt = stmts[at]
        if isinstance(stmt, For) and stmt.targets == loop.inits:
            (array,) = stmt.targets
            alike = all(same_value(x, y) for x, y in zip((stmt.lo, stmt.hi, stmt.step), (loop.lo, loop.hi, loop.step)))
            alone = seen[array] == 1 and array not in reads(loop.body)
            return at if alike and alone and _only_adds(stmt) and _are_neighbours(stmt, loop, ints) else None
        if not (isinstance(stmt, Let) and stmt.op.is_pure and stmt.op.access is None):
            return None
    return None


def _are_neighbours(first: For, second: For, ints: Ints) -> bool:
    """Whether two innermost loops add to elements that are always equally far apart; loops around others are free."""
    if any(isinstance(stmt, For) for stmt in (*first.body.stmts, *second.body.stmts)):
        return True
    index = dims.symbol(first.index.name, 0)
    return all(isinstance(dims.substitute(ints.dim(q), {second.index.name: index}) - ints.dim(p), int)
               for a in _adds(first) for b in _adds(second) for p, q in zip(a.args[2:], b.args[2:]))


def _adds(loop: For) -> list[Let]:
    return [stmt for stmt in loop.body.stmts if isinstance(stmt, Let) and stmt.op.access == "add_at"]


def _only_adds(loop: For) -> bool:
    """Whether the loop has one carry, an array, and all it does is to add to elements of it."""
    if len(loop.carries) != 1 or not loop.carries[0].type.shape:
        return False
    version: Value = loop.carries[0]
    for stmt in loop.body.stmts:
        if isinstance(stmt, Let) and version not in operands(stmt):
            if stmt.op.access in ("store", "add_at") or not stmt.op.is_pure:
                return False
        elif isinstance(stmt, Let):
            if stmt.op.access != "add_at" or stmt.args[0] is not version or version in stmt.args[1:]:
                return False
            version = stmt.target
        elif isinstance(stmt, For) and stmt.inits == (version,) and version not in reads(stmt.body) and _only_adds(
                stmt):
            version = stmt.targets[0]
        else:
            return False
    return loop.body.results == (version,)


def _fused(first: For, second: For) -> For:
    """One loop, which does what both do in each trip; loops inside it are for the next round."""
    replaced: dict[Var, Value] = {second.index: first.index, second.carries[0]: first.body.results[0]}
    behind = [substituted(stmt, replaced) for stmt in second.body.stmts]
    (result,) = second.body.results
    last = replacement(result, replaced)
    body = Block((*first.body.stmts, *behind), (last,))
    return For(second.targets, first.index, first.lo, first.hi, first.step, first.carries, first.inits, body,
               first.parallel and second.parallel, second.loc)
