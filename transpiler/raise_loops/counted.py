"""`while` loops that count as `for` loops do.

    i, s = while carry (i = a, s = b):          i, s = for j in a .. n step 2 carry (i = a, s = b):
      cond: less(i, n)                            ...
      do: ...                                     yield add(i, 2), f(s, j)
          yield add(i, 2), f(s, i)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .. import ops
from ..ir.build import Names, building, const, current, located, plus
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, Let, Value, Var, While
from ..ir.types import I64
from ..ir.walk import all_statements, blocks, bound_inside, substituted, used_names, with_blocks

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Count:
    """Carry `number` goes by `step` up to `end`, or beyond by one step less than that."""

    number: int
    step: int
    end: Value
    closed: bool


def with_counted(func: Func) -> Func:
    """The func with such loops as `for` loops."""
    if not any(isinstance(s, While) for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        body = _visit(func.body, Ints(func.body))
    return func if body is func.body else replace(func, body=body)


def _visit(block: Block, ints: Ints) -> Block:
    with building() as b:
        for old in block.stmts:
            stmt = with_blocks(old, [_visit(inner, ints) for inner in blocks(old)])
            count = _count_of(stmt, ints) if isinstance(stmt, While) else None
            b.stmts.append(stmt if count is None else _as_for(stmt, count))     # type: ignore[arg-type]
        if all(x is y for x, y in zip(b.stmts, block.stmts)) and len(b.stmts) == len(block.stmts):
            return block
        return Block(tuple(b.stmts), block.results)


def _count_of(loop: While, ints: Ints) -> Count | None:
    if len(loop.cond.stmts) != 1 or not isinstance(loop.cond.stmts[0], Let):
        return None
    test = loop.cond.stmts[0]
    sign: Any = test.op.relates
    if sign not in _MIRRORED or loop.cond.results[0] is not test.target or test.args[0].type != I64:
        return None
    inside = {t for s in all_statements(loop.body) for t in (*s.targets, *bound_inside(s))} | {*loop.carries}
    a, b = test.args
    for counter, end, relation in ((a, b, sign), (b, a, _MIRRORED[sign])):
        if counter not in loop.carries or end in inside:
            continue
        number = loop.carries.index(counter)                    # type: ignore[arg-type]
        step: Any = ints.dim(loop.body.results[number]) - ints.dim(counter)
        if isinstance(step, int) and step and (step > 0) is relation.startswith("<"):
            return Count(number, step, end, relation.endswith("="))
    return None


def _as_for(loop: While, count: Count) -> For:
    """The counter stays a carry, for what it is in the end."""
    b, counter, sign = current(), loop.carries[count.number], 1 if count.step > 0 else -1
    with located(loop.loc):
        end = plus(count.end, sign) if count.closed else count.end
    index = b.var(I64, counter.name)
    replaced: dict[Var, Value] = {counter: index}
    with building(b.names, loop.loc) as inside:
        inside.stmts.extend(substituted(s, replaced) for s in loop.body.stmts)
        results = [replaced.get(r, r) if isinstance(r, Var) else r for r in loop.body.results]
        results[count.number] = ops.add(counter, const(count.step, I64))
    return For(loop.targets, index, loop.inits[count.number], end, const(count.step, I64), loop.carries, loop.inits,
               Block(tuple(inside.stmts), tuple(results)), loc=loop.loc)
