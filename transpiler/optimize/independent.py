"""Mark loops as parallel whose trips touch places of their own.

    before                                            after
    for t in 0 .. steps:                              for t in 0 .. steps:
      for i in n - 2 .. 0 step -1:                      for i in 1 .. n - 1 parallel:
        for j: b[i, j] = a[i - 1, j] + a[i + 1, j]        for j: b[i, j] = a[i - 1, j] + a[i + 1, j]
      for i: for j: a[i, j] = b[i, j]                   for i parallel: for j: a[i, j] = b[i, j]

Lowering knows it of the loops that it makes; here it is proved of all others, those of the user and of the reverse
mode, wherever they stand.  No place of an array that a trip writes to is one that another trip reads or writes; from
trip to trip go only sums whose order is free.  The outermost such loops are taken.  In another loop that runs again
and again, a loop is worth it only if its trips have loops of their own.

Parallel loops count up by 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from .. import ops
from ..ir.build import Names, building, int_const, plus
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, blocks, operands, used_names, with_blocks
from .ascend import upwards
from .dependence import Dependences, step_of
from .touches import touches_of

FEW = 8             # trips: a loop that is known to make fewer is not divided


def mark_independent(func: Func) -> Func:
    if not any(isinstance(s, For) for s in func.body.stmts):
        return func
    with building(Names(used_names(func))):
        body = _visit(func.body, Ints(func.body), False)
    return func if body is func.body else replace(func, body=body)


def _visit(block: Block, ints: Ints, again: bool) -> Block:
    """again: whether the block is in a loop."""
    stmts: list[Stmt] = []
    for old in block.stmts:
        if isinstance(old, For) and old.parallel:
            stmts.append(old)
        elif isinstance(old, For) and is_worth_it(old, again) and is_independent(old, ints):
            stmts += _parallel(old, ints)
        else:
            inner = again or isinstance(old, (For, While))
            stmts.append(with_blocks(old, [_visit(b, ints, inner) for b in blocks(old)]))
    if len(stmts) == len(block.stmts) and all(x is y for x, y in zip(stmts, block.stmts)):
        return block
    return Block(tuple(stmts), block.results)


def is_worth_it(loop: For, again: bool) -> bool:
    if not isinstance(loop.step, Const) or not loop.step.value or loop.checkpoint is not None or loop.segment:
        return False
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and len(
            range(loop.lo.value, loop.hi.value, step_of(loop))) < FEW:
        return False
    return not again or any(isinstance(s, (For, While)) for s in all_statements(loop.body))


def is_independent(loop: For, ints: Ints) -> bool:
    """Whether its trips may run at the same time."""
    sums = [(c, r) for c, r in zip(loop.carries, loop.body.results) if not c.type.shape]
    if sums:
        uses = Counter(v for s in all_statements(loop.body) for v in (
            *operands(s), *(r for b in blocks(s) for r in b.results)) if isinstance(v, Var))
        uses.update(r for r in loop.body.results if isinstance(r, Var))
        if not all(_adds_up(loop.body, c, r, uses) for c, r in sums):
            return False
    touches = touches_of(loop, ints)
    if touches is None:
        return False
    differs = Dependences(ints).names_inside(loop).__contains__
    writes = [t for t in touches if t.writes]
    return not any(w.may_meet(t, [(loop, loop, relation)], ints, differs)
                   for w in writes for t in touches for relation in ("before", "after"))


def _adds_up(block: Block, start: Value, result: Value, uses: Counter[Var]) -> bool:
    """Whether the block only adds to a value, in any order, and reads it nowhere else."""
    link = start
    for stmt in block.stmts:
        reads = [v for v in (*operands(stmt), *(r for b in blocks(stmt) for r in b.results)) if v is link]
        if not reads:
            continue
        if not isinstance(link, Var) or uses[link] != len(reads):
            return False
        match stmt:
            case Let() if stmt.op.any_order and stmt.args[0] is link and len(reads) == 1:
                link = stmt.target
            case For() if len(reads) == 1 and link in stmt.inits:
                k = stmt.inits.index(link)
                if not _adds_up(stmt.body, stmt.carries[k], stmt.body.results[k], uses):
                    return False
                link = stmt.targets[k]
            case _:
                return False
    return link is result and isinstance(link, Var) and uses[link] == 1


def _parallel(loop: For, ints: Ints) -> list[Stmt]:
    """The loop, parallel, with what goes before it."""
    step = step_of(loop)
    if step == 1:
        return [replace(loop, parallel=True)]
    if step == -1:
        *before, up = upwards(loop, ints)
        assert isinstance(up, For)
        return [*before, replace(up, parallel=True)]
    with building() as b:
        b.loc = loop.loc
        first, last = (loop.lo, loop.hi) if step > 0 else (loop.hi, loop.lo)
        rest = abs(step) - 1
        ahead = plus(last, rest - first.value) if isinstance(first, Const) else plus(last - first, rest)
        trips = ops.floor_divide(ahead, int_const(abs(step)))
        number = b.var(loop.index.type, "trip")
    with building() as inside:
        inside.loc = loop.loc
        distance = number * int_const(step)
        if not (isinstance(loop.lo, Const) and loop.lo.value == 0):
            _ = loop.lo + distance
    *steps, let = inside.stmts
    assert isinstance(let, Let)
    body = Block((*steps, replace(let, targets=(loop.index,)), *loop.body.stmts), loop.body.results)
    return [*b.stmts, replace(loop, index=number, lo=int_const(0), hi=trips, step=int_const(1), body=body,
                              parallel=True)]
