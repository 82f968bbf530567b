"""Compute an array in the memory of one that is over then, where old elements are read in the places of new ones alone.

    before                                        after
    func scale(x) -> (f64[n]) writes (x):         func scale(x) -> (f64[n]) writes (x):
      e = empty()
      y = for i in 0 .. n carry (y_1 = e):          y = for i in 0 .. n carry (y_1 = x):
        x_i = load(x, i)                              x_i = load(y_1, i)
        t = multiply(x_i, 2.0)                        t = multiply(x_i, 2.0)
        yield store(y_1, t, i)                        yield store(y_1, t, i)
      return y                                      return y

Each iteration of the nest must store one element, at a place made of the loops' own indices; the argument may be read
in the nest at this very place and before the store, and not at all after the nest.  So it is with what a trip of a loop
makes of an array that the loop carries, such as a sum of matrices, and with an array that is made for the nest alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.index import At
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, blocks, operands, reads, with_blocks, with_body, with_contents, with_operands
from ..ops.base import Lowering


def settle(func: Func) -> Func:
    block = func.body
    own = len(func.returned)
    for k, param in enumerate(func.effects):
        block = _settled(block, param, own + k)
    return with_body(func, _visit(block, ()))


def _settled(block: Block, param: Var, k: int) -> Block:
    value = block.results[k]
    at = next((n for n, s in enumerate(block.stmts) if isinstance(s, For) and value in s.targets), None)
    if at is None:
        return block
    loop = block.stmts[at]
    assert isinstance(loop, For)
    return _in_memory_of(param, block, at, loop.targets.index(value)) or block  # type: ignore[arg-type]


def _visit(block: Block, mine: Sequence[Var]) -> Block:
    """mine: arrays from outside whose memory is the block's to use."""
    stmts = []
    for stmt in block.stmts:
        carries = stmt.carries if isinstance(stmt, While) or (isinstance(stmt, For) and not stmt.parallel) else ()
        inner = [_visit(b, carries if b is blocks(stmt)[-1] else ()) for b in blocks(stmt)]
        stmts.append(with_blocks(stmt, inner))
    block = with_contents(block, stmts)
    while (less := _with_one_less(block, mine)) is not None:
        block = less
    return block


def _with_one_less(block: Block, mine: Sequence[Var]) -> Block | None:
    """The block with a new array in the memory of another; None where there is none that could be."""
    owned = set(mine)
    for at, loop in enumerate(block.stmts):
        if isinstance(loop, For) and any(c.type.shape for c in loop.carries):
            read = dict.fromkeys(v for s in all_statements(loop.body) for v in operands(s) if v in owned)
            for number, init in enumerate(loop.inits):
                for array in read:
                    if isinstance(array, Var) and array.type.shape and array.type == init.type:
                        less = _in_memory_of(array, block, at, number)
                        if less is not None:
                            return less
        if not (isinstance(loop, Let) and loop.op.lowering is Lowering.REINDEX):       # may be a view
            owned.update(loop.targets)
    return None


def _in_memory_of(old: Var, block: Block, at: int, number: int) -> Block | None:
    """The block in which the loop there makes its result of that number, a new array, in the memory of `old`."""
    loop = block.stmts[at]
    assert isinstance(loop, For)
    init = loop.inits[number]
    made = next((n for n, s in enumerate(block.stmts) if init in s.targets), None)
    if (made is None or not _is_unset(block.stmts[made])
            or any(_reads(s, init) for s in (*block.stmts[:at], *block.stmts[at + 1:])) or init in block.results
            or any(r is old for r in block.results) or any(_reads(s, old) for s in block.stmts[at + 1:])
            or loop.inits.count(init) > 1 or old in (*loop.inits, loop.lo, loop.hi, loop.step)):
        return None
    nest = _in_place(loop, number, old, ())
    if nest is None:
        return None
    nest = replace(nest, inits=tuple(old if n == number else v for n, v in enumerate(nest.inits)))
    return Block(tuple(nest if s is loop else s for n, s in enumerate(block.stmts) if n != made), block.results)


def _is_unset(stmt: Stmt) -> bool:
    return isinstance(stmt, Let) and bool(stmt.op.is_unset)


def _reads(stmt: Stmt, value: Value) -> bool:
    return value in operands(stmt) or any(value in reads(b) for b in blocks(stmt))


def _in_place(loop: For, k: int, param: Var, indices: Sequence[Var]) -> For | None:
    """The loop whose carry k has the elements of `param` to begin with, which is read from there; None where this
    cannot be."""
    carry, indices = loop.carries[k], (*indices, loop.index)
    body = loop.body
    users = [s for s in body.stmts if _reads(s, carry)]
    if len(users) != 1 or body.results[k] not in users[0].targets or body.results.count(carry):
        return None
    user = users[0]
    if isinstance(user, For):
        numbers = [n for n, init in enumerate(user.inits) if init is carry]
        if len(numbers) != 1 or user.targets[numbers[0]] is not body.results[k] or any(
                _reads(s, param) for s in body.stmts if s is not user) or param in operands(user) or any(
                    r is param for r in body.results):
            return None
        inner = _in_place(user, numbers[0], param, indices)
        return None if inner is None else replace(loop, body=Block(tuple(inner if s is user else s for s in body.stmts),
                                                                   body.results))
    stmts = _read_there(body.stmts, user, carry, param, indices)
    if stmts is None or any(r is param for r in body.results):
        return None
    return replace(loop, body=Block(tuple(stmts), body.results))


def _read_there(stmts: Sequence[Stmt], store: Stmt, carry: Var, param: Var,
                indices: Sequence[Var]) -> list[Stmt] | None:
    """The statements with loads of the parameter from the carry."""
    if not isinstance(store, Let) or store.op.access != "store" or store.args[0] is not carry or not all(
            isinstance(item, At) for item in store.params["index"]):
        return None
    place = store.args[2:]
    if len(place) != len(indices) or {id(i) for i in place} != {id(i) for i in indices}:
        return None
    found: list[Stmt] = []
    is_over = False
    for stmt in stmts:
        is_over = is_over or stmt is store
        if not _reads(stmt, param):
            found.append(stmt)
            continue
        if is_over or not isinstance(stmt, Let) or stmt.op.access != "load" or stmt.args[0] is not param or any(
                a is not b for a, b in zip(stmt.args[1:], place)) or not all(
                    isinstance(item, At) for item in stmt.params["index"]):
            return None
        found.append(with_operands(stmt, {param: carry}))
    return found
