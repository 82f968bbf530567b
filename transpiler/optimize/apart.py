"""Where a loop overwrites places of an array, what it reads of the old array at other places is the same in the new
one: so the old array need not be kept.

    before                                            after
    b = for k in 0 .. n carry (c = a):                b = for k in 0 .. n carry (c = a):
      v = load(a, j - 1, k)                             v = load(c, j - 1, k)
      w = multiply(v, 2.0)                              w = multiply(v, 2.0)
      yield store(c, w, j, k)                           yield store(c, w, j, k)

No trip may have written before to a place that is read.  All reads of the old array in the nest must be such; where
the nest is over each element, a loop that it would make serial stays parallel instead and the array is copied, which
takes no longer than the nest does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..ir import dependence
from ..ir.dependence import Access, place_of
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var, While
from ..ir.walk import blocks, operands, reads, with_blocks, with_body, with_contents, with_operands
from .dependence import Dependences


@dataclass(frozen=True)
class Level:
    """A loop of a nest that hands an array on: its version there, and the statement that writes to it."""

    loop: For
    version: Var
    writer: Stmt


@dataclass(frozen=True)
class Read:
    """A load of the old array.  depth: the number of the level in whose trip it stands, before that level's writer.
    loops: those around it in the nest, the outermost first."""

    let: Let
    depth: int
    loops: tuple[For, ...]


def read_apart(func: Func) -> Func:
    return with_body(func, _Visitor(func).block(func.body, ()))


class _Visitor:
    def __init__(self, func: Func) -> None:
        self.ints = Ints(func.body)
        self.dependences = Dependences(self.ints)

    def block(self, block: Block, mine: Sequence[Var]) -> Block:
        """mine: arrays from outside that the block hands on or drops."""
        owned = set(mine)
        stmts: list[Stmt] = []
        later = _read_later(block)
        for stmt, after in zip(block.stmts, later):
            inner = blocks(stmt)
            carries = stmt.carries if isinstance(stmt, (For, While)) else ()
            stmt = with_blocks(stmt, [self.block(b, carries if b is inner[-1] else ()) for b in inner])
            if isinstance(stmt, For):
                for k, init in enumerate(stmt.inits):
                    if isinstance(init, Var) and init.type.shape and init in owned and init not in after and (
                            stmt.inits.count(init) == 1):
                        stmt = self._redirected(stmt, k, init)
            owned.update(stmt.targets)
            stmts.append(stmt)
        return with_contents(block, stmts)

    def _redirected(self, loop: For, k: int, old: Var) -> For:
        levels = levels_of(loop, k)
        found = list(_reads(levels, old)) if levels else []
        if not levels or not found or None in found:
            return loop
        serial: set[For] = set()
        for read in found:
            assert read is not None
            now = self._made_serial(levels, read)
            if now is None:
                return loop
            serial |= now
        if any(each.parallel for each in serial) and len(levels) >= old.type.rank:
            return loop
        versions = {read.let: levels[read.depth].version for read in found if read is not None}
        changed = _rewritten(loop, old, versions, serial)
        assert isinstance(changed, For)
        return changed

    def _made_serial(self, levels: Sequence[Level], read: Read) -> set[For] | None:
        """The loops whose trips must stay in order if the newest array is read, None where the place may be written
        before it is read."""
        write = levels[-1].writer
        assert isinstance(write, Let)
        loops = tuple(level.loop for level in levels)
        one, other = Access(place_of(write, self.ints), loops), Access(place_of(read.let, self.ints), read.loops)
        differs = self.dependences.names_inside(loops[0]).__contains__
        serial = set()
        same: list[dependence.Order] = []
        for loop in loops[:read.depth + 1]:
            if dependence.may_meet(one, other, [*same, (loop, loop, "before")], self.ints, differs):
                return None
            if dependence.may_meet(one, other, [*same, (loop, loop, "after")], self.ints, differs):
                serial.add(loop)
            same.append((loop, loop, "same"))
        return serial


def levels_of(loop: For, k: int) -> list[Level]:
    """The loops through which the array of carry k goes to the one write that it comes to; none where there are more.
    """
    found: list[Level] = []
    while True:
        carry, result = loop.carries[k], loop.body.results[k]
        writer = next((s for s in loop.body.stmts if result in s.targets), None)
        if writer is None:
            return []
        found.append(Level(loop, carry, writer))
        if isinstance(writer, Let):
            return found if writer.op.access in ("store", "add_at") and writer.args[0] is carry else []
        if not isinstance(writer, For) or writer.inits.count(carry) != 1:
            return []
        k = writer.inits.index(carry)
        if writer.targets[k] is not result:
            return []
        loop = writer


def _read_later(block: Block) -> list[set[Value]]:
    """For each statement, what is read after it."""
    now: set[Value] = set(block.results)
    found = []
    for stmt in reversed(block.stmts):
        found.append(set(now))
        now |= _all_reads(stmt)
    return found[::-1]


def _all_reads(stmt: Stmt) -> set[Value]:
    return {*operands(stmt), *(v for b in blocks(stmt) for v in reads(b))}


def _reads(levels: Sequence[Level], old: Var) -> Iterator[Read | None]:
    """All loads of the old array in the nest; None for each other use, and for a load behind the write."""
    for depth, level in enumerate(levels):
        if old in level.loop.body.results or (depth and old in operands(level.loop)):
            yield None
        around = tuple(each.loop for each in levels[:depth + 1])
        is_over = False
        for stmt in level.loop.body.stmts:
            if stmt is level.writer:
                is_over = True
                if isinstance(stmt, For):
                    continue
            for read in _in(stmt, old, depth, around):
                yield None if is_over else read


def _in(stmt: Stmt, old: Var, depth: int, around: tuple[For, ...]) -> Iterator[Read | None]:
    if old in operands(stmt):
        is_load = isinstance(stmt, Let) and stmt.op.access == "load" and stmt.args[0] is old
        yield Read(stmt, depth, around) if is_load else None     # type: ignore[arg-type]
    inside = (*around, stmt) if isinstance(stmt, For) else around
    for block in blocks(stmt):
        if old in block.results:
            yield None
        for inner in block.stmts:
            yield from _in(inner, old, depth, inside)


def _rewritten(stmt: Stmt, old: Var, versions: dict[Let, Var], serial: set[For]) -> Stmt:
    if isinstance(stmt, Let) and stmt in versions:
        return with_operands(stmt, {old: versions[stmt]})
    changed = with_blocks(stmt, [
        with_contents(b, [_rewritten(s, old, versions, serial) for s in b.stmts]) for b in blocks(stmt)])
    return replace(changed, parallel=False) if isinstance(changed, For) and stmt in serial else changed
