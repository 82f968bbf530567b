"""Tapes that grow are kept from trip to trip of the loops around, with the room that they have come to have.

    before                                                after
                                                          e = empty (64,)
    for i in 0 .. n:                                      for i in 0 .. n carry (r = 64, e_1 = e):
      e = empty (64,)                                       m, r_1, t = while carry (c = 0, room = r, s = e_1):
      m, r_1, t = while carry (c = 0, room = 64, s = e):      ... as before ...
        ... if c == room: twice the room ...                yield r_1, t

What `grow_tapes` has made of an inner loop asks for memory in each trip of the loop around it, which takes longer than
a few iterations of Newton's method do.  How much room there is changes nothing else, and elements that are not set may
be whatever the trip before has left.  Trips that run at the same time have tapes of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.build import Names, building, current
from ..ir.dims import symbol, symbols_of
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import I64, Type
from ..ir.walk import (
    all_statements,
    blocks,
    bound_inside,
    operands,
    reads,
    used_names,
    with_blocks,
    with_body,
    with_contents,
)


@dataclass(frozen=True)
class Room:
    """room: which carry of a loop is the room of its tapes, tapes: which carries are these."""

    room: int
    tapes: tuple[int, ...]


Rooms = dict[tuple[Var, ...], Room]         # by a loop's targets


def keep_room(func: Func) -> Func:
    if not any(isinstance(s, While) for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        return with_body(func, _visit(func.body, {}))


def _visit(block: Block, rooms: Rooms) -> Block:
    """The block, and in `rooms` the loops in it whose room may begin as any."""
    with building() as b:
        for old in block.stmts:
            stmt = with_blocks(old, [_visit(inner, rooms) for inner in blocks(old)])
            if isinstance(stmt, While) and (found := _growing(stmt)):
                rooms[stmt.targets] = found
            b.stmts.append(_keeping(stmt, rooms) if isinstance(stmt, (For, While)) else stmt)
    return with_contents(block, b.stmts)


def _growing(loop: While) -> Room | None:
    """The tapes of a loop that `grow_tapes` has made: room is asked for only where a count comes to it."""
    for k, carry in enumerate(loop.carries):
        if carry.type != I64 or not isinstance(loop.inits[k], Const):
            continue
        tests = [s for s in loop.body.stmts if carry in operands(s)]
        branches = [s for s in loop.body.stmts if isinstance(s, If) and tests and s.pred in tests[0].targets]
        if len(tests) != 1 or len(branches) != 1 or not _is_test(tests[0], loop) or carry in reads(loop.cond):
            continue
        readers = [s for s in loop.body.stmts if any(carry in reads(b) for b in blocks(s))]
        tapes = tuple(j for j, c in enumerate(loop.carries) if _rows(c.type) == carry.name)
        sized = [c for c in loop.carries if any(carry.name in symbols_of(d) for d in c.type.shape)]
        if readers == branches and tapes and len(sized) == len(tapes) and loop.body.results[k] in branches[0].targets:
            return Room(k, tapes)
    return None


def _is_test(stmt: Stmt, loop: While) -> bool:
    """Whether it asks if a count from 0 has come to the room."""
    if not isinstance(stmt, Let) or stmt.op.relates != "==" or stmt.args[0] not in loop.carries:
        return False
    begin = loop.inits[loop.carries.index(stmt.args[0])]  # type: ignore[arg-type]
    return isinstance(begin, Const) and begin.value == 0


def _rows(type: Type) -> str | None:
    return str(type.shape[0]) if type.shape and not isinstance(type.shape[0], int) else None


def _keeping(loop: For | While, rooms: Rooms) -> For | While:
    """Emit the tapes that the loop's trips begin with; the loop that carries them, which `rooms` is told."""
    if isinstance(loop, For) and loop.parallel:
        return loop
    for inner in loop.body.stmts:
        if isinstance(inner, (For, While)) and (found := rooms.get(inner.targets)) and _may_stay(loop, inner, found):
            loop = _carrying(loop, inner, found, rooms)
    return loop


def _may_stay(loop: For | While, inner: For | While, found: Room) -> bool:
    """Whether the tapes begin with nothing in them, in every trip, and are gone when it ends."""
    body = loop.body
    made = {s.target: s for s in body.stmts if isinstance(s, Let) and s.op.is_unset}
    inits = [inner.inits[j] for j in found.tapes]
    own = {v.name for v in (*bound_inside(loop), *(t for s in all_statements(body) for t in s.targets))}
    read = [v for s in all_statements(body) for v in (*operands(s), *(r for b in blocks(s) for r in b.results))]
    if not isinstance(inner.inits[found.room], Const) or any(
            init not in made or read.count(init) != 1 or init in body.results for init in inits):
        return False
    if any(name in own for init in inits for d in init.type.shape[1:] for name in symbols_of(d)):
        return False
    ends = {inner.targets[found.room], *(inner.targets[j] for j in found.tapes)}
    users = [s for s in all_statements(body) if not ends.isdisjoint(operands(s))]
    return all(isinstance(s, Let) and s.op.access == "load" and not s.target.type.shape for s in users) and not any(
        r in ends for s in (loop, *all_statements(body)) if s is not inner for b in blocks(s) for r in b.results)


def _carrying(loop: For | While, inner: For | While, found: Room, rooms: Rooms) -> For | While:
    outer = current()
    begin = inner.inits[found.room]
    makers = [next(s for s in loop.body.stmts if inner.inits[j] in s.targets) for j in found.tapes]

    def bound() -> tuple[Var, ...]:
        room = outer.var(I64, inner.targets[found.room].name)
        rows = symbol(room.name, 0)
        return room, *(outer.var(m.targets[0].type.with_shape((rows, *m.targets[0].type.shape[1:])),
                                 m.targets[0].name) for m in makers)

    inits: list[Value] = [begin]
    for maker in makers:
        inits.append(outer.var(maker.targets[0].type, maker.targets[0].name))
        outer.stmts.append(replace(maker, targets=(inits[-1],)))  # type: ignore[arg-type]
    carries, targets = bound(), bound()
    places = (found.room, *found.tapes)
    given = dict(zip(places, carries))
    begun = replace(inner, inits=tuple(given.get(k, v) for k, v in enumerate(inner.inits)))
    stmts = [begun if s is inner else s for s in loop.body.stmts if s not in makers]
    ends = tuple(inner.targets[k] for k in places)
    first = len(loop.carries)
    made = replace(loop, targets=(*loop.targets, *targets), carries=(*loop.carries, *carries),
                   inits=(*loop.inits, *inits), body=Block(tuple(stmts), (*loop.body.results, *ends)))
    rooms[made.targets] = Room(first, tuple(range(first + 1, first + len(places))))
    return made
