"""Trips that a loop counts for a later loop alone are counted by that one.

    before                                      after
    e = empty (n,)                              for i in n-1 .. -1 step -1:
    t = for i in 0 .. n carry (c = e):            m = while ...: count the trips at i
      m = while ...: count the trips at i         ... m ...
      yield store(c, m, i)
    for i in n-1 .. -1 step -1:
      ... load(t, i) ...

The reverse mode counts the trips of an inner `while` in the forward sweep.  Where the iterations around it do not
depend on each other and nothing else of them is needed, that is all the forward sweep does, and it has no tape then.
The reverse sweep, which runs the loop again, now counts it right before: `grow_tapes` makes one loop of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .. import ops
from ..ir.build import Names, building
from ..ir.dims import symbol
from ..ir.ints import LOWEST, Ints
from ..ir.nodes import Block, Call, Check, For, Func, Let, Stmt, Value, Var, While
from ..ir.walk import (
    Copier,
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
from ..report import Report


def count_late(func: Func, report: Report | None = None) -> Func:
    if not any(isinstance(s, While) for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        return with_body(func, _visit(func.body, Ints(func.body), report))


def _visit(block: Block, ints: Ints, report: Report | None) -> Block:
    stmts = [with_blocks(s, [_visit(b, ints, report) for b in blocks(s)]) for s in block.stmts]
    for targets in [s.targets for s in stmts]:
        at = next((k for k, s in enumerate(stmts) if s.targets == targets), None)
        nest = _nest(stmts[at], stmts[:at], ints) if at is not None else None
        if at is None or nest is None:
            continue
        end = _reader(nest, stmts[at + 1:], block.results)
        if end is not None:
            reader = stmts[at + 1 + end]
            with building() as b:
                _Counting(nest).statement(reader)
            stmts[at + 1 + end] = replace(b.stmts[-1], targets=reader.targets)  # type: ignore[arg-type]
            del stmts[at]
            if report is not None:
                report.counted_late.update(s.loc for s in all_statements(nest.loops[-1].body) if isinstance(s, While))
    return with_contents(block, stmts)


@dataclass(frozen=True)
class Nest:
    """Loops, each one right inside the one before, that do nothing but to store numbers, each trip of all of them in a
    place of its own.  stores: what is stored, by the targets of the outermost.  whole: whether the places are the
    indices themselves, of each loop, and not counted from its first trip."""

    loops: tuple[For, ...]
    stores: dict[Value, Let]
    whole: tuple[bool, ...]

    @property
    def stmts(self) -> list[Stmt]:
        """What a trip of all loops does besides storing."""
        return [s for loop in self.loops for s in loop.body.stmts
                if s not in self.loops and s not in self.stores.values()]


def _nest(stmt: Stmt, before: Sequence[Stmt], ints: Ints) -> Nest | None:
    """The nest, if loops that nothing bounds run in its innermost one alone, and nothing there can be told from
    outside but what is stored."""
    if not isinstance(stmt, For) or not stmt.carries:
        return None
    inside = list(all_statements(stmt.body))
    if not any(isinstance(s, While) for s in inside) or any(
            isinstance(s, (Check, Call)) or (isinstance(s, Let) and not (s.op.is_pure and s.op.raises is None))
            for s in inside):
        return None
    unset = {t for s in before if isinstance(s, Let) and s.op.is_unset for t in s.targets}
    loops = [stmt]
    while isinstance(inner := _giving(loops[-1].body), For) and all(
            s is inner or isinstance(s, Let) for s in loops[-1].body.stmts):
        if inner.inits != loops[-1].carries or inner.targets != loops[-1].body.results:
            return None
        loops.append(inner)
    stores = [_store(loops, k) for k in range(len(stmt.carries))]
    if any(init not in unset for init in stmt.inits) or any(loop.parallel for loop in loops):
        return None
    found = {t: store for t, store in zip(stmt.targets, stores) if store is not None}
    read = [v for s in inside if s not in loops for v in (*operands(s), *(r for b in blocks(s) for r in b.results))]
    own = {v for loop in loops for v in (*loop.carries, *loop.targets)} | {s.target for s in found.values()}
    if len(found) < len(stores) or sum(v in own for v in read) != len(stores):
        return None
    places = {tuple(_is_whole(loop, at, ints) for loop, at in zip(loops, s.args[2:])) for s in found.values()}
    (whole, *others) = places
    return None if others or None in whole else Nest(tuple(loops), found, whole)  # type: ignore[arg-type]


def _giving(block: Block) -> Stmt | None:
    """The statement that the block's first result comes from."""
    return next((s for s in block.stmts if block.results[0] in s.targets), None)


def _store(loops: Sequence[For], k: int) -> Let | None:
    body = loops[-1].body
    made = next((s for s in body.stmts if body.results[k] in s.targets), None)
    if isinstance(made, Let) and made.op.access == "store" and made.args[0] is loops[-1].carries[k] and (
            not made.args[1].type.shape and len(made.args) == 2 + len(loops)):
        return made
    return None


def _is_whole(loop: For, at: Value, ints: Ints) -> bool | None:
    """Whether a place is the index of the loop; False: the number of its trip; None: something else."""
    place, index = ints.dim(at), symbol(loop.index.name, LOWEST)
    if place == index:
        return True
    distance = index - ints.dim(loop.lo)
    if any(ints.dim(loop.step) == sign and place == distance * sign for sign in (1, -1)):
        return False
    with building() as b:               # as the transforms write it
        ops.floor_divide(loop.index, loop.step)
    made, (counting,) = ints.definition.get(at) if isinstance(at, Var) else None, b.stmts
    counts = made is not None and isinstance(counting, Let) and made.op is counting.op and (
        ints.dim(made.args[0]) == distance and ints.dim(made.args[1]) == ints.dim(loop.step))
    return False if counts else None


def _reader(nest: Nest, rest: Sequence[Stmt], results: Sequence[Value]) -> int | None:
    """Where the loop stands that alone reads the numbers, those of one place in each trip of as many loops, and that
    reads all arrays in any case that they come from."""
    targets = nest.loops[0].targets
    names = {*targets, *(t.name for t in targets)}
    found = [k for k, s in enumerate(rest) if any(v in names for v in operands(s)) or any(
        not names.isdisjoint(reads(b)) for b in blocks(s))]
    if len(found) != 1 or any(r in names for r in results):
        return None
    (at,) = found
    reader = rest[at]
    uses = [s for s in all_statements(Block((reader,), ())) if any(v in names for v in operands(s))]
    readers = [[s for s in block.stmts if s in uses] for block in _bodies(reader, len(nest.loops))]
    loads = max(readers, key=len, default=[])
    if len(loads) != len(uses) or not all(map(_is_load, loads)) or len({operands(s)[1:] for s in loads}) != 1:
        return None
    inside = {v for loop in nest.loops for s in (loop, *all_statements(loop.body))
              for v in (*s.targets, *bound_inside(s))}
    arrays = {v for v in reads(Block(tuple(nest.stmts), ())) - inside if isinstance(v, Var) and v.type.shape}
    return at if arrays <= set().union(*map(reads, blocks(reader))) else None


def _is_load(stmt: Stmt) -> bool:
    return isinstance(stmt, Let) and stmt.op.access == "load" and not stmt.target.type.shape


def _bodies(stmt: Stmt, depth: int) -> Iterator[Block]:
    """What is inside of that many loops of the statement, and of nothing else."""
    if isinstance(stmt, For):
        if depth == 1:
            yield stmt.body
        for inner in stmt.body.stmts if depth > 1 else ():
            yield from _bodies(inner, depth - 1)


class _Counting(Copier):
    """Copies the reader, with what the nest does for a place where the reader asks for that."""

    def __init__(self, nest: Nest) -> None:
        super().__init__()
        self.nest = nest
        self.counted: Copier | None = None

    def statement(self, stmt: Stmt) -> None:
        if not isinstance(stmt, Let) or not stmt.args or stmt.args[0] not in self.nest.stores:
            super().statement(stmt)
            return
        if self.counted is None:
            self.counted = Copier()
            for loop, whole, at in zip(self.nest.loops, self.nest.whole, stmt.args[1:]):
                place = self.value(at)
                self.counted.stand_for(loop.index, place if whole else loop.lo + place * loop.step)
            for inner in self.nest.stmts:
                self.counted.statement(inner)
        self.stand_for(stmt.target, self.counted.value(self.nest.stores[stmt.args[0]].args[1]))
