"""Innermost loops of which LLVM would not make the most are marked where no trip touches what another one writes.

    for k in 0 .. n:                                  for k in 0 .. n abreast:
      a[j, k] += q * r[k]                               ...
      a[j + 1, k] += p * r[k]

LLVM compares the addresses of several rows of one array before it runs such a loop in vectors, each time that it comes
to it: that takes longer than short rows do, so that it leaves them as they are.  Here it is known that they are apart.
And it works on one vector at a time where a trip is more than a few operations, which keeps the processor waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Value
from ..ir.walk import blocks, with_blocks, with_body, with_contents
from .independent import is_independent
from .lay_out import Arrays
from .touches import touches_of

MOST = 64           # statements of a loop that is looked at
SEVERAL = 10        # operations of a trip from which on LLVM works on one vector at a time
DEAR = 4            # what costs more keeps the processor busy by itself


def mark_apart(func: Func) -> Func:
    ints = Ints(func.body)
    foreign = _memory_of_the_caller(func)

    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, For) and _gains(stmt, ints) and not any(map(foreign, stmt.carries)) and (
                    is_independent(stmt, ints)):
                stmts.append(replace(stmt, abreast=True))
            else:
                stmts.append(with_blocks(stmt, [visit(b) for b in blocks(stmt)]))
        return with_contents(block, stmts)

    return with_body(func, visit(func.body))


def _memory_of_the_caller(func: Func) -> Callable[[Value], bool]:
    """Whether an array may be an argument that the function writes to: its elements may share memory."""
    if not func.effects:
        return lambda _: False
    arrays = Arrays(func)
    roots = {arrays.root(param) for param in func.effects}
    return lambda array: bool(array.type.shape) and arrays.root(array) in roots      # type: ignore[arg-type]


def _gains(loop: For, ints: Ints) -> bool:
    """Whether it is an innermost loop that does much to elements of an array, or touches several rows of one."""
    if loop.parallel or loop.abreast or not isinstance(loop.step, Const) or not loop.step.value or not (
            len(loop.body.stmts) <= MOST) or not all(isinstance(s, Let) and s.op.is_pure and len(s.targets) == 1
                                                        for s in loop.body.stmts):
        return False
    touches = touches_of(loop, ints)
    if touches is None or not any(t.writes for t in touches):
        return False
    costs = [s.op.cost for s in loop.body.stmts if isinstance(s, Let) and s.target.type.is_inexact and (
        s.op.access is None)]
    if len(costs) >= SEVERAL and max(costs) <= DEAR:
        return True
    places = {t.root: {other.place for other in touches if other.root == t.root} for t in touches if t.writes}
    return any(len(found) > 1 for found in places.values())
