"""While loops whose trips the reverse mode must know, as counted loops.

    before                                   after
    x = while carry (v = x0):                x_1, n = while carry (v_1 = x0, k = 0):
      cond: c(v)                               cond: c(v_1)
      do: yield f(v)                           do: yield f(v_1), k + 1
                                             x = for i in 0 .. n carry (v = x0):
                                               yield f(v)

Tapes then have their size before they are written, and the result is again loops over plain arrays, to be
differentiated again.  Where nothing is saved, the first loop alone gives the values (`counting_alone`); else, what it
computes besides is dropped where the condition does not need it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.build import Names, building, current, int_const
from ..ir.nodes import Block, For, Func, If, Stmt, Var, While
from ..ir.types import I64
from ..ir.walk import Copier, blocks, used_names, with_blocks


def count_trips(func: Func, wanted: Callable[[While], bool]) -> tuple[Func, set[Var]]:
    """Every While that is `wanted` counted first, then run as a For, and the counts; `func` itself where there is none.
    """
    counts: set[Var] = set()
    with building(Names(used_names(func))):
        body = _block(func.body, wanted, counts)
    return func if body is func.body else Func(func.name, func.params, body, func.result_names), counts


def counting_pairs(func: Func, counts: set[Var]) -> dict[For, While]:
    """Counted loops of the func with the loop that counts each, which stands right before it.  Those of an earlier
    derivative, whose count is not in `counts`, are no pairs: they may have got more results since, or lost some."""
    found: dict[For, While] = {}

    def visit(block: Block) -> None:
        for before, stmt in zip((None, *block.stmts), block.stmts, strict=False):
            if isinstance(stmt, For) and stmt.hi in counts and isinstance(before, While) and (
                    stmt.hi is before.targets[-1]):
                found[stmt] = before
            for inner in blocks(stmt):
                visit(inner)

    visit(func.body)
    return found


def counting_alone(count: While, loop: For) -> While:
    """The counting loop with the targets of the counted one, which it is as good as."""
    return While((*loop.targets, count.targets[-1]), count.carries, count.inits, count.cond, count.body, count.loc)


def _block(block: Block, wanted: Callable[[While], bool], counts: set[Var]) -> Block:
    with building() as b:
        for stmt in block.stmts:
            b.stmts += _statement(stmt, wanted, counts)
    if len(b.stmts) == len(block.stmts) and all(x is y for x, y in zip(b.stmts, block.stmts)):
        return block
    return Block(tuple(b.stmts), block.results)


def _statement(stmt: Stmt, wanted: Callable[[While], bool], counts: set[Var]) -> list[Stmt]:
    if isinstance(stmt, (If, For)):
        return [with_blocks(stmt, [_block(inner, wanted, counts) for inner in blocks(stmt)])]
    if not isinstance(stmt, While) or not wanted(stmt):
        return [stmt]
    with building() as b:
        count = _counting(stmt)
    counts.add(count)
    index = current().var(I64, "k")
    loop = For(stmt.targets, index, int_const(0), count, int_const(1), stmt.carries, stmt.inits,
               _block(stmt.body, wanted, counts), False, stmt.loc)
    return [*b.stmts, loop]


def _counting(stmt: While) -> Var:
    """Emit a copy of the loop that counts its trips."""
    outer = current()
    copier = Copier()
    carries = copier.bind_all(stmt.carries)
    count = outer.var(I64, "count")
    cond = copier.block(stmt.cond)
    with building() as inner:
        for part in stmt.body.stmts:
            copier.statement(part)
        results = [*(copier.value(r) for r in stmt.body.results), count + 1]
    targets = tuple(outer.var(copier.type(t.type), t.name) for t in stmt.targets)
    trips = outer.var(I64, "trips")
    outer.stmts.append(While((*targets, trips), (*carries, count), (*stmt.inits, int_const(0)), cond,
                             Block(tuple(inner.stmts), tuple(results)), stmt.loc))
    return trips
