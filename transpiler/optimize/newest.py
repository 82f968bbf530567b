"""Where a loop overwrites an array element by element, what it reads of the old array at the place that it is about to
write is the same in the new one: so the old array need not be kept.

    before                                            after
    b = for i in 0 .. n carry (c = a):                b = for i in 0 .. n carry (c = a):
      v = load(a, i)                                    v = load(c, i)
      w = multiply(v, 2.0)                              w = multiply(v, 2.0)
      yield store(c, w, i)                              yield store(c, w, i)

The loops write each element once at most: each of their indices is, but for a constant, the position along an axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir import dims
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var
from ..ir.walk import blocks, operands, same_value, with_blocks, with_body, with_contents


@dataclass(frozen=True)
class Written:
    """An array that loops around are overwriting: its version now, and their indices."""

    version: Value
    indices: tuple[Var, ...]


def read_newest(func: Func) -> Func:
    ints = Ints(func.body)
    return with_body(func, _visit(func.body, {}, ints))


def _visit(block: Block, written: Mapping[Value, Written], ints: Ints) -> Block:
    """written: for each array as it was, what is being made of it in this block."""
    stmts: list[Stmt] = []
    for stmt in block.stmts:
        if isinstance(stmt, For):
            inner = {old: now for old, now in _inside(stmt, written).items() if _only_written(stmt, now.version)}
            stmts.append(with_blocks(stmt, [_visit(stmt.body, inner, ints)]))
        elif isinstance(stmt, Let):
            stmts.append(stmt)
            for old, now in written.items():
                if stmt.op.access in ("store", "add_at") and stmt.args[0] is now.version and _is_once(
                        stmt, now.indices, ints):
                    _redirect(stmts, old, stmt)
        else:
            stmts.append(with_blocks(stmt, [_visit(b, {}, ints) for b in blocks(stmt)]))
    return with_contents(block, stmts)


def _inside(loop: For, written: Mapping[Value, Written]) -> dict[Value, Written]:
    """What is being overwritten inside the loop: what was already, and the arrays that it begins with."""
    found: dict[Value, Written] = {}
    for init, carry in zip(loop.inits, loop.carries):
        if carry.type.shape and isinstance(init, Var):
            found |= {old: Written(carry, (*now.indices, loop.index)) for old, now in written.items()
                      if now.version is init}
            found[init] = Written(carry, (loop.index,))
    return found


def _only_written(loop: For, carry: Value) -> bool:
    """Whether the carry goes through one write, or one loop, to the next trip."""
    (k,) = [k for k, c in enumerate(loop.carries) if c is carry]
    result = loop.body.results[k]
    users = [stmt for stmt in loop.body.stmts if any(v is carry for v in operands(stmt))]
    writers = [stmt for stmt in users if result in stmt.targets]
    return len(writers) == 1 and all(
        stmt is writers[0] or (isinstance(stmt, Let) and stmt.op.access == "load") for stmt in users)


def _is_once(write: Let, indices: tuple[Var, ...], ints: Ints) -> bool:
    """Whether different trips of the loops write different elements."""
    places = write.args[2:]
    if not all(isinstance(item, At) for item in write.params["index"]):
        return False
    return all(any(isinstance(ints.dim(place) - dims.symbol(index.name, 0), int) for place in places)
               for index in indices)


def _redirect(stmts: list[Stmt], old: Value, write: Let) -> None:
    """Loads of the old array at the place of the write, which stand before it, read what is written to."""
    for k, stmt in enumerate(stmts):
        if isinstance(stmt, Let) and stmt.op.access == "load" and stmt.args[0] is old and (
                stmt.params["index"] == write.params["index"]) and _same(stmt.args[1:], write.args[2:]):
            stmts[k] = Let(stmt.targets, stmt.op, (write.args[0], *stmt.args[1:]), stmt.params, stmt.loc)


def _same(a: tuple[Value, ...], b: tuple[Value, ...]) -> bool:
    return len(a) == len(b) and all(map(same_value, a, b))
