"""Where a loop overwrites places of an array, what it reads of the old array at other places is the same in the new
one: so the old array need not be kept.

    before                                            after
    b = for k in 0 .. n carry (c = a):                b = for k in 0 .. n carry (c = a):
      v = load(a, j - 1, k)                             v = load(c, j - 1, k)
      w = multiply(v, 2.0)                              w = multiply(v, 2.0)
      yield store(c, w, j, k)                           yield store(c, w, j, k)

No trip may have written before to a place that is read.  All reads of the old array in the nest must be such; where
the nest is over each element, a loop that it would make serial stays parallel instead and the array is copied, which
takes no longer than the nest does.  Where an earlier nest has put all of the array somewhere else, as on a tape, it is
read from there, whatever the places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..ir import dependence
from ..ir.build import int_const
from ..ir.dependence import Access, place_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, Let, Stmt, Value, Var, While
from ..ir.walk import blocks, operands, reads, same_value, with_blocks, with_body, with_contents
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


@dataclass(frozen=True)
class Saved:
    """Where elements of an array are, too: in `array`, behind the position `prefix`."""

    array: Var
    prefix: tuple[Value, ...]


def read_apart(func: Func) -> Func:
    return with_body(func, _Visitor(func).block(func.body, ()))


class _Visitor:
    def __init__(self, func: Func) -> None:
        self.ints = Ints(func.body)
        self.dependences = Dependences(self.ints)

    def block(self, block: Block, mine: Sequence[Var]) -> Block:
        """mine: arrays from outside that the block hands on or drops."""
        owned = set(mine)
        saved: dict[Var, Saved] = {}
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
                        stmt = self._redirected(stmt, k, init, saved.get(init))
                found = self._copied(stmt, block)
                if found is not None:
                    saved[found[0]] = found[1]
            owned.update(stmt.targets)
            stmts.append(stmt)
        return with_contents(block, stmts)

    def _redirected(self, loop: For, k: int, old: Var, saved: Saved | None) -> For:
        levels = levels_of(loop, k)
        found = list(_reads(levels, old)) if levels else []
        reads = [read for read in found if read is not None]
        if not reads or len(reads) < len(found):
            return loop
        serial = self._all_made_serial(levels, reads, old)
        if serial is not None:
            changed = _rewritten(loop, {
                read.let: _read_from(Saved(levels[read.depth].version, ()), read.let) for read in reads}, serial)
        elif saved is not None:
            changed = _rewritten(loop, {read.let: _read_from(saved, read.let) for read in reads}, set())
        else:
            return loop
        assert isinstance(changed, For)
        return changed

    def _all_made_serial(self, levels: Sequence[Level], reads: Sequence[Read], old: Var) -> set[For] | None:
        """The loops whose trips must stay in order if all reads are of the newest array, None where that cannot be or
        does not pay."""
        serial: set[For] = set()
        for read in reads:
            now = self._made_serial(levels, read)
            if now is None:
                return None
            serial |= now
        return None if any(each.parallel for each in serial) and len(levels) >= old.type.rank else serial

    def _copied(self, loop: For, block: Block) -> tuple[Var, Saved] | None:
        """The array that a nest puts into another, which the block only reads afterwards."""
        found = copied_by(loop, self.ints)
        if found is None or any(_writes_to(found[1].array, stmt) for stmt in block.stmts):
            return None
        return found

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


def copied_by(loop: For, ints: Ints) -> tuple[Var, Saved] | None:
    """The array of which a nest does nothing but to put all elements in order into another, and where they are."""
    if len(loop.carries) != 1:
        return None
    levels = levels_of(loop, 0)
    if not levels or any(len(level.loop.body.stmts) != 1 for level in levels[:-1]):
        return None
    load, store = (*levels[-1].loop.body.stmts, None, None)[:2]
    indices = tuple(level.loop.index for level in levels)
    if not isinstance(load, Let) or not isinstance(store, Let) or len(levels[-1].loop.body.stmts) != 2 or (
            store is not levels[-1].writer or load.op.access != "load" or store.op.access != "store"
            or store.args[1] is not load.targets[0] or load.args[1:] != indices
            or store.args[-len(indices):] != indices or not _is_element(load) or not _is_element(store)):
        return None
    old, (target,) = load.args[0], loop.targets
    if not isinstance(old, Var) or len(indices) != old.type.rank or any(
            not _counts(level.loop, ints.dim(level.loop.hi) - ints.resolved(size))
            for level, size in zip(levels, old.type.shape)):
        return None
    return old, Saved(target, store.args[2:-len(indices)])


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


def _is_element(let: Let) -> bool:
    return all(isinstance(item, At) for item in let.params["index"])


def _counts(loop: For, excess: object) -> bool:
    """Whether the loop goes over 0, 1, 2 and so on to its end, which exceeds an axis by nothing."""
    return excess == 0 and same_value(loop.lo, int_const(0)) and same_value(loop.step, int_const(1))


def _writes_to(array: Var, stmt: Stmt) -> bool:
    """Whether the statement, or one inside, does more with an array than to read elements."""
    if array in operands(stmt) and not (isinstance(stmt, Let) and stmt.op.access == "load" and stmt.args[0] is array):
        return True
    return any(array in b.results or any(_writes_to(array, s) for s in b.stmts) for b in blocks(stmt))


def _read_from(saved: Saved, load: Let) -> Let:
    index = (*(At() for _ in saved.prefix), *load.params["index"])
    return Let(load.targets, load.op, (saved.array, *saved.prefix, *load.args[1:]), {**load.params, "index": index},
               load.loc)


def _rewritten(stmt: Stmt, changed_reads: dict[Let, Let], serial: set[For]) -> Stmt:
    if isinstance(stmt, Let):
        return changed_reads.get(stmt, stmt)
    changed = with_blocks(stmt, [
        with_contents(b, [_rewritten(s, changed_reads, serial) for s in b.stmts]) for b in blocks(stmt)])
    return replace(changed, parallel=False) if isinstance(changed, For) and stmt in serial else changed
