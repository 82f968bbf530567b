"""Elements of a row are read where the row is, rather than from a copy of it.

    before                                          after
    row = load(a, k) {a whole row}
    for i in 0 .. n:                                for i in 0 .. n:
      x = load(row, i)                                x = load(a, k, i)

Lowering does so for statements on whole arrays; this is about what loops and branches of the user's, and their
adjoints, read.  A row lies in one piece; what does not is better copied once than read in strides again and again.
An array that is written over later is left alone, since the row would keep all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import ops
from ..ir.index import At, Span
from ..ir.nodes import Block, Call, Check, For, Func, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, blocks, operands, rewrite
from ..ops.base import Lowering
from ..ops.indexing import positions


def read_rows(func: Func) -> Func:
    rows = _rows(func)
    if not rows:
        return func

    def change(let: Let) -> Let | Value:
        if let.targets[0] in rows:
            rows[let.targets[0]] = let          # its position may be an element of a row itself
        row = rows.get(let.args[0]) if let.op.access == "load" else None
        if row is None or (let.targets[0].type.shape and not _is_beginning(row)):
            return let
        array, *scalars = row.args
        if _is_beginning(row):
            found: Value = ops.load(array, *let.args[1:], index=let.params["index"])
            return found
        place = positions(row.params["index"], scalars, let.args[1:])
        value: Value = ops.load(array, *place, index=(At(),) * len(place))
        return value

    return rewrite(func, change)


def _rows(func: Func) -> dict[Value, Let]:
    """The rows that nested blocks read by elements alone, and nothing needs whole."""
    if not any(blocks(s) for s in func.body.stmts):
        return {}
    kept = _made_or_written(func)
    rows: dict[Value, Let] = {}
    for stmt in all_statements(func.body):
        if isinstance(stmt, Let) and stmt.op.access == "load" and _is_row(stmt) and stmt.args[0] not in kept:
            rows[stmt.target] = stmt
    nested: set[Value] = set()
    for block in _all_blocks(func.body):
        own = {t for s in block.stmts for t in s.targets}
        for value in block.results:
            rows.pop(value, None)
        for stmt in block.stmts:
            for value in operands(stmt):
                if value not in rows:
                    continue
                if isinstance(stmt, Let) and stmt.op.access == "load" and (
                        not stmt.target.type.shape or _is_beginning(rows[value])):
                    nested.update({value} - own)
                elif value not in own or not _fuses(stmt, value):
                    rows.pop(value)
    return {row: let for row, let in rows.items() if row in nested}


def _all_blocks(block: Block) -> Iterator[Block]:
    yield block
    for stmt in all_statements(block):
        yield from blocks(stmt)


def _made_or_written(func: Func) -> set[Value]:
    """Arrays that need no memory of their own, and those whose memory something else takes."""
    found: set[Value] = set()
    for stmt in all_statements(func.body):
        match stmt:
            case Let() if stmt.op.lowering in (Lowering.ELEMENTWISE, Lowering.REINDEX):
                found.update(stmt.targets)
            case Let() if stmt.op.lowering is Lowering.SCATTER:
                found.add(stmt.args[0])
            case For() | While():
                found.update(stmt.inits)
            case Call() | Check():
                found.update(operands(stmt))
            case _:
                pass
        for block in blocks(stmt):
            found.update(block.results)
    return found


def _is_row(let: Let) -> bool:
    """Whether the elements lie next to each other, in a larger array, or are its first ones along each axis."""
    index = let.params["index"]
    last = index[-1] if index else None
    return isinstance(let.args[0], Var) and bool(let.target.type.shape) and (_is_beginning(let) or (
        isinstance(last, Span) and last.step in (1, -1) and any(isinstance(item, At) for item in index)))


def _is_beginning(let: Let) -> bool:
    """Whether each element has the indices that it has in the array."""
    return all(isinstance(item, Span) and item.start == 0 and item.step == 1 for item in let.params["index"])


def _fuses(stmt: Stmt, value: Value) -> bool:
    """Whether lowering makes loops of the statement, in which the elements are read one by one."""
    if not isinstance(stmt, Let):
        return False
    return stmt.op.lowering in (Lowering.ELEMENTWISE, Lowering.REINDEX, Lowering.REDUCTION) or (
        stmt.op.lowering is Lowering.SCATTER and stmt.args[0] is not value)
