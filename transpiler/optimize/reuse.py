"""Memory that each trip of a loop allocates anew is allocated once, before the loop.

    before                                          after
                                                    e = empty (m, n)
    x = for i in 0 .. k carry (x_1 = x0):           x = for i in 0 .. k carry (x_1 = x0, a = e):
      a = empty (m, n)
      b = for j in 0 .. m carry (b_1 = a): ...        b = for j in 0 .. m carry (b_1 = a): ...
      ...                                             ...
      yield x_2                                       yield x_2, b

An array has no elements that anybody may read before they are stored, so what the trip before has left there does no
harm.  Its size must be the same in all trips, and the trip's last version of it must be nothing that the loop gives.
Large arrays are mapped and cleared page by page by the system each time, which may take longer than the trip itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..ir.build import Names, building, current
from ..ir.dims import bounds
from ..ir.nodes import Block, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, blocks, bound_inside, operands, sizes_used, used_names, with_blocks
from ..ops.base import Lowering


def reuse_memory(func: Func) -> Func:
    if not any(_is_unset(s) for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        body = _visit(func.body)
    return func if body is func.body else replace(func, body=body)


def _visit(block: Block) -> Block:
    """The block with what its loops can share allocated before them; inner loops first."""
    with building() as b:
        for old in block.stmts:
            stmt = with_blocks(old, [_visit(inner) for inner in blocks(old)])
            b.stmts.append(_sharing(stmt) if isinstance(stmt, (For, While)) else stmt)
    if len(b.stmts) == len(block.stmts) and all(x is y for x, y in zip(b.stmts, block.stmts)):
        return block
    return Block(tuple(b.stmts), block.results)


@dataclass(frozen=True)
class Scratch:
    """An array that a trip makes, and its version at the trip's end."""

    made: Let
    last: Var


def _sharing(loop: For | While) -> For | While:
    """Emit the allocations; the loop that carries them."""
    if isinstance(loop, For) and loop.parallel:
        return loop             # trips that run at the same time need memory of their own
    found = _scratch(loop)
    if not found:
        return loop
    outer = current()
    names = [s.made.target.name for s in found]
    inits = tuple(outer.var(s.made.target.type, name) for s, name in zip(found, names))
    targets = tuple(outer.var(s.made.target.type, name) for s, name in zip(found, names))
    for s, init in zip(found, inits):
        outer.stmts.append(replace(s.made, targets=(init,)))
    moved = {s.made for s in found}
    body = Block(tuple(s for s in loop.body.stmts if s not in moved), (*loop.body.results, *(s.last for s in found)))
    return replace(loop, targets=(*loop.targets, *targets), inits=(*loop.inits, *inits), body=body,
                   carries=(*loop.carries, *(s.made.target for s in found)))


def _scratch(loop: For | While) -> list[Scratch]:
    makes = [s for s in loop.body.stmts if isinstance(s, Let) and _is_unset(s) and s.target.type.shape]
    if not makes:
        return []
    inside = {v.name for v in bound_inside(loop)} | {
        v.name for b in blocks(loop) for s in all_statements(b) for v in (*s.targets, *bound_inside(s))}
    taken: dict[Value, list[Stmt]] = {}
    for stmt in all_statements(loop.body):
        for value in operands(stmt):
            taken.setdefault(value, []).append(stmt)
    found = []
    for made in makes:
        if sizes_used(made).isdisjoint(inside) and all(_is_length(d) for d in made.target.type.shape):
            last = _last_version(made.target, taken, loop.body)
            if last is not None:
                found.append(Scratch(made, last))
    return found


def _last_version(made: Var, taken: Mapping[Value, list[Stmt]], body: Block) -> Var | None:
    """What the trip has made of the array in the end; None where that is not one thing, or leaves the trip."""
    version = made
    while True:
        if version in body.results or _is_result(version, body):
            return None
        heirs = [heir if stmt in body.stmts else None for stmt in taken.get(version, ())
                 for heir in _heirs(version, stmt)]
        if not heirs:
            return version
        if len(heirs) > 1 or heirs[0] is None:
            return None
        version = heirs[0]


def _heirs(version: Var, stmt: Stmt) -> list[Var | None]:
    """The values that take the memory of an operand of the statement; None for one that is hard to tell."""
    match stmt:
        case Let():
            if stmt.op.access in ("store", "add_at") and stmt.args[0] is version:
                return [stmt.target]
            makes_new = stmt.op.access == "load" or stmt.op.lowering is Lowering.KERNEL
            return [] if makes_new or not any(t.type.shape for t in stmt.targets) else [None]
        case For():
            return [stmt.targets[k] for k, init in enumerate(stmt.inits) if init is version]
        case _:
            return [None]


def _is_result(version: Var, body: Block) -> bool:
    """Whether a block inside gives the array as it is."""
    return any(version in inner.results for s in all_statements(body) if isinstance(s, (If, For, While))
               for inner in blocks(s))


def _is_unset(stmt: Stmt) -> bool:
    return isinstance(stmt, Let) and bool(stmt.op.is_unset)


def _is_length(dim: object) -> bool:
    """Whether the size is none below zero, which the array's own statement would refuse in a trip alone."""
    low, _ = bounds(dim)
    return low is not None and low >= 0
