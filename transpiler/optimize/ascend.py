"""Count up in a loop that counts down where its trips may come in any order.

    before                                            after
    for k in j - 1 .. -1 step -1:                     for k in 0 .. j:
      d[j, k] += e * a[i, k]                            d[j, k] += e * a[i, k]
      d[i, k] += e * a[j, k]                            d[i, k] += e * a[j, k]

The adjoint of a loop runs backwards.  Vectors that are read from the end of a row are turned around in registers, and
begin elsewhere in each trip of the loop around: a vector that was just written is then read with parts of its
neighbours, for which a processor waits until both are in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.build import building, int_const, plus
from ..ir.dependence import position_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Const, For, Func, Let, Stmt, Value, Var
from ..ir.walk import exchanged, operands
from .dependence import Access, Dependences, any_meet


def ascend(func: Func) -> Func:
    ints = Ints(func.body)
    return exchanged(func, lambda stmt, _: upwards(stmt, ints) if isinstance(stmt, For) and _is_free(stmt, ints)
                     else [stmt])


def upwards(loop: For, ints: Ints) -> list[Stmt]:
    """The loop counting up, with what goes before it."""
    with building() as b:
        b.loc = loop.loc
        lo, hi = _after(loop.hi, ints), _after(loop.lo, ints)
    return [*b.stmts, replace(loop, lo=lo, hi=hi, step=int_const(1))]


def _after(value: Value, ints: Ints) -> Value:
    """value + 1."""
    if isinstance(value, Const):
        return int_const(value.value + 1)
    let = ints.definition.get(value)
    after = ints.dim(value) + 1
    known = [a for a in (let.args if let is not None else ()) if a.type == value.type and ints.dim(a) == after]
    return known[0] if known else plus(value, 1)


def _is_free(loop: For, ints: Ints) -> bool:
    """Whether the loop counts down by 1 and no trip needs what another one leaves."""
    if (not isinstance(loop.step, Const) or loop.step.value != -1 or loop.parallel or loop.checkpoint is not None
            or loop.segment or not all(isinstance(s, Let) and s.op.is_pure and s.op.raises is None
                                       for s in loop.body.stmts)):
        return False
    lets = [s for s in loop.body.stmts if isinstance(s, Let)]
    accesses: list[Access] = []
    for number, (carry, result) in enumerate(zip(loop.carries, loop.body.results)):
        if not carry.type.shape:
            if not _is_total(lets, carry, result):
                return False
            continue
        found = _accesses(loop, number, lets, ints)
        if found is None:
            return False
        accesses += found
    return not any_meet(Dependences(ints), accesses, accesses, [(loop, loop, "before")])


def _is_total(lets: Sequence[Let], carry: Var, result: Value) -> bool:
    """Whether the loop only adds to the carry, in any order."""
    links: list[Value] = [carry]
    for let in lets:
        if let.op.any_order and let.args[0] is links[-1]:
            links.append(let.target)
    uses = [v for let in lets for v in let.args]
    return result is links[-1] and all(sum(v is link for v in uses) == (link is not result) for link in links)


def _accesses(loop: For, number: int, lets: Sequence[Let], ints: Ints) -> list[Access] | None:
    """What the loop does with an array that it carries; None where that is more than reading and writing elements."""
    versions: set[Value] = {loop.carries[number]}
    newest: Value = loop.carries[number]
    found = []
    for let in lets:
        used = [v for v in operands(let) if v in versions]
        if not used:
            continue
        if let.op.access is None or used != [let.args[0]] or newest is not let.args[0] or not all(
                isinstance(i, At) for i in let.params["index"]):
            return None
        writes = let.op.access != "load"
        place = tuple(map(ints.dim, position_of(let)))
        found.append(Access(number, place, writes, let.op.access == "add_at", (loop,)))
        if writes:
            newest = let.target
            versions.add(newest)
    return found if loop.body.results[number] is newest else None
