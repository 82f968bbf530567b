"""What is added to a place that was just cleared is stored there; what was taken from it and is put back, stays.

    before                          after
    v = load(a, i)                  v = load(a, i)
    b = store(a, 0.0, i)            c = add_at(a, w, j)
    c = add_at(b, w, j)             return c
    d = add_at(c, v, i)
    return d

The adjoint of a write takes the cotangent of what was written, clears its place and adds what goes on to the old value:
for `x[i] -= w` that is all of it.  Sums change their order and a zero its sign, no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..ir.nodes import Block, Const, Func, Let, Stmt, Value, Var
from ..ir.walk import all_statements, blocks, operands, with_blocks, with_body, with_contents, with_operands


def put_back(func: Func) -> Func:
    uses = Counter(v for stmt in all_statements(func.body) for v in operands(stmt) if isinstance(v, Var))
    for block in [func.body, *(b for stmt in all_statements(func.body) for b in blocks(stmt))]:
        uses.update(r for r in block.results if isinstance(r, Var))
    replaced: dict[Var, Value] = {}
    return with_body(func, _visit(func.body, uses, replaced))


def _visit(block: Block, uses: Counter[Var], replaced: dict[Var, Value]) -> Block:
    """The block without such stores; `replaced` gets what is the same as something before it."""
    stmts: list[Stmt] = []
    for stmt in block.stmts:
        stmt = with_operands(stmt, replaced)
        stmts.append(with_blocks(stmt, [_visit(b, uses, replaced) for b in blocks(stmt)]))
        if chain := _chain(stmts, uses):
            del stmts[-1]
            gone = {id(let) for let in chain}
            stmts = [stmt for stmt in stmts if id(stmt) not in gone]
            stmts += _joined(chain, stmts, replaced)
    return with_contents(block, stmts, [replaced.get(r, r) if isinstance(r, Var) else r for r in block.results])


def _chain(stmts: Sequence[Stmt], uses: Counter[Var]) -> list[Let]:
    """From a store over additions that nothing else sees to an addition to the same place, the last of `stmts`: of
    zeros, or the addition is of what was there before.  Empty if the last of `stmts` is something else."""
    last = stmts[-1]
    if not isinstance(last, Let) or last.op.access != "add_at":
        return []
    chain = [last]
    for stmt in reversed(stmts[:-1]):
        if not isinstance(stmt, Let) or stmt.targets != (chain[0].args[0],):
            continue
        if uses[stmt.target] != 1 or stmt.op.access not in ("store", "add_at"):
            return []
        chain.insert(0, stmt)
        if stmt.op.access == "store":
            cleared = isinstance(stmt.args[1], Const) and stmt.args[1].value == 0
            fits = _place(stmt) == _place(last) and (cleared or _is_what_was_there(last.args[1], stmt, stmts))
            return chain if fits else []
    return []


def _joined(chain: Sequence[Let], before: Sequence[Stmt], replaced: dict[Var, Value]) -> list[Let]:
    """The chain without its last addition: its place is set to what that adds, or not cleared in the first place."""
    first, *between, last = chain
    array, value = first.args[0], last.args[1]
    links = list(between)
    if not _is_what_was_there(value, first, before):
        links.insert(0, Let(first.targets, first.op, (array, value, *first.args[2:]), first.params, last.loc))
    elif not isinstance(first.args[1], Const) or first.args[1].value != 0:
        links.insert(0, Let(first.targets, last.op, first.args, first.params, first.loc))
    if not links:
        replaced[last.target] = array
        return []
    made: list[Let] = []
    for let in links:
        target = last.target if let is links[-1] else let.target
        made.append(Let((target,), let.op, (array, *let.args[1:]), let.params, let.loc))
        array = target
    return made


def _is_what_was_there(value: Value, store: Let, before: Sequence[Stmt]) -> bool:
    return any(isinstance(let, Let) and let.targets == (value,) and let.op.access == "load"
               and let.args[0] is store.args[0] and _place(let) == _place(store) for let in before)


def _place(let: Let) -> Any:
    """Equal for accesses of the same elements."""
    scalars = let.args[1:] if let.op.access == "load" else let.args[2:]
    return let.params["index"], tuple((a.value, a.type) if isinstance(a, Const) else a for a in scalars)
