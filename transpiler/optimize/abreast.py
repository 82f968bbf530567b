"""Lanes whose trips are dear run abreast, a block of them at a time.

    before                                  after
    for lane in 0 .. n parallel:            for block in 0 .. (n + 63) // 64 parallel:
      x = while carry (x_1 = load(a, lane)):  xs, going = for lane in the block: store(xs, load(a, ...)), ...
        cond: ...                             while going:
        do: f(x_1)                              for lane in the block:
      store(out, x, lane)                         if (the condition of the lane): x = f(x)
                                              for lane in the block: store(out, ...)

A lane whose loop has ended stands still until the others of its block have ended theirs, so what each lane computes
is as before, bit for bit.  The inner loop is one that LLVM vectorises.  It is worth it for a body with exponentials,
sines and the like, of which a vector of lanes costs hardly more than one; with a cheap body, lanes that wait for
others would cost more.  A loop whose number of trips is the same for all lanes has none that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from .. import ops
from ..ir.build import Names, building, choose, const, current, for_loop, int_const, while_loop
from ..ir.index import At
from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Value, Var, While
from ..ir.types import BOOL
from ..ir.walk import Copier, all_statements, blocks, bound_inside, operands, reads, sizes_used, used_names, with_blocks
from ..ops.base import Lowering

LANES = 64          # in a block: enough for any vector unit, few enough for the nearest cache
DEAR = 16           # what a trip must cost, in additions


def run_abreast(func: Func) -> Func:
    """Parallel loops around one loop on scalars, turned inside out block by block."""
    if not any(isinstance(s, For) and s.parallel for s in all_statements(func.body)):
        return func
    changed = False

    def visit(block: Block, outside: frozenset[Var]) -> Block:
        nonlocal changed
        with building() as b:
            for stmt in block.stmts:
                lanes = _lanes_of(stmt, outside) if isinstance(stmt, For) else None
                if lanes is not None:
                    changed = True
                    b.loc = stmt.loc
                    _Blocks(lanes).emit()
                else:
                    inside = outside | frozenset(bound_inside(stmt))
                    b.stmts.append(with_blocks(stmt, [visit(x, inside) for x in blocks(stmt)]))
                outside |= frozenset(stmt.targets)
        return Block(tuple(b.stmts), block.results)

    with building(Names(used_names(func))):
        body = visit(func.body, frozenset(func.params))
    return replace(func, body=body) if changed else func


@dataclass(frozen=True)
class Lanes:
    """loop: over the lanes.  before, inner, behind: its statements.  again: what is read from arrays anew wherever it
    is needed.  kept: other scalars made before the inner loop and read in it or behind it."""

    loop: For
    before: tuple[Stmt, ...]
    inner: For | While
    behind: tuple[Stmt, ...]
    again: tuple[Let, ...]
    kept: tuple[Var, ...]


def _lanes_of(loop: For, outside: frozenset[Var]) -> Lanes | None:
    """The loop taken apart; None where it is not of this kind, or not worth it."""
    if not (loop.parallel and _is(loop.lo, 0) and _is(loop.step, 1) and all(c.type.shape for c in loop.carries)):
        return None
    if isinstance(loop.hi, Const) and loop.hi.value < LANES:
        return None
    places = [k for k, s in enumerate(loop.body.stmts) if not isinstance(s, Let)]
    if len(places) != 1 or not all(isinstance(s, Let) and s.op.is_pure and s.op.raises is None
                                   for k, s in enumerate(loop.body.stmts) if k not in places):
        return None
    (at,) = places
    before, inner, behind = loop.body.stmts[:at], loop.body.stmts[at], loop.body.stmts[at + 1:]
    if not isinstance(inner, (For, While)) or not _is_plain(inner, outside):
        return None
    read = {v for stmt in (inner, *behind) for v in _all_read(stmt)} | set(loop.body.results)
    crossing = [(stmt, t) for stmt in before for t in stmt.targets if t in read]
    sized = {name for stmt in all_statements(loop.body) for name in sizes_used(stmt)}
    bound = {v.name for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s))} | {loop.index.name}
    if any(t.type.shape for _, t in crossing) or sized & bound:
        return None
    again = tuple(stmt for stmt, _ in crossing if isinstance(stmt, Let) and stmt.op.access == "load"
                  and all(isinstance(a, Const) or a is loop.index or a in outside for a in stmt.args))
    kept = tuple(t for stmt, t in crossing if stmt not in again)
    return Lanes(loop, before, inner, behind, again, kept)


def _is_plain(inner: For | While, outside: frozenset[Var]) -> bool:
    """Whether a trip is dear arithmetic on scalars, and no sum or product over an array, which is vectorised as it is.

    Nothing is in it that may not be done for a lane that stands still.
    """
    if any(c.type.shape for c in inner.carries) or (
            isinstance(inner, For) and not all(isinstance(v, Const) or v in outside for v in (
                inner.lo, inner.hi, inner.step))):
        return False
    cost = 0
    same = {inner.index} if isinstance(inner, For) else set()       # scalars that are the same for all lanes
    for block in blocks(inner):
        for stmt in block.stmts:
            if not isinstance(stmt, Let) or not stmt.op.is_pure or stmt.op.raises is not None or stmt.op.any_order or (
                    any(t.type.shape for t in stmt.targets)):
                return False
            is_same = all(isinstance(a, Const) or a in outside or a in same for a in stmt.args)
            if is_same:
                same.update(stmt.targets)
            if stmt.op.lowering is Lowering.ELEMENTWISE:
                cost += stmt.op.cost
            elif not (isinstance(inner, For) and stmt.op.access == "load" and is_same):
                return False
    return cost >= DEAR


def _all_read(stmt: Stmt) -> Iterator[Value]:
    yield from operands(stmt)
    for block in blocks(stmt):
        yield from (v for v in reads(block) if isinstance(v, Var))


def _is(value: Value, number: int) -> bool:
    return isinstance(value, Const) and bool(value.value == number)


class _Blocks:
    """Emits the loop over blocks of lanes."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.held = [*lanes.inner.carries, *lanes.kept]         # what is an array of the block's lanes

    def emit(self) -> None:
        loop = self.lanes.loop
        count = ops.floor_divide(loop.hi + int_const(LANES - 1), int_const(LANES))
        for_loop(int_const(0), count, loop.inits, self._block, parallel=True, index="block")
        stmts = current().stmts
        stmts[-1] = replace(stmts[-1], targets=loop.targets)    # type: ignore[call-arg, arg-type]

    def _block(self, block: Value, *outs: Value) -> Sequence[Value]:
        inner = self.lanes.inner
        self.first = _named(block * int_const(LANES), "first")
        self.count = _named(ops.minimum(int_const(LANES), self.lanes.loop.hi - self.first), "count")
        empty = [_named(ops.empty(shape=(LANES,), dtype=v.type.dtype), v.name) for v in self.held]
        state = self._each(empty, self._begin)
        first, kept = state[:len(inner.carries)], state[len(inner.carries):]
        carried = self._while(inner, first, kept) if isinstance(inner, While) else self._for(inner, first, kept)

        def end(own: Copier, lane: Value, *now: Value) -> Sequence[Value]:
            self._read(own, lane, [*inner.targets, *self.lanes.kept], [*carried, *kept])
            own.values.update(zip(self.lanes.loop.carries, now))
            return self._run(own, self.lanes.behind, self.lanes.loop.body.results)

        return self._each(outs, end)

    def _each(self, inits: Sequence[Value], body: Callable[..., Sequence[Value]],
              hints: Sequence[str] = ()) -> tuple[Var, ...]:
        """A loop over the lanes of the block; `body(copier, lane, *carries)` with what may be read of the lane."""
        def lane(index: Value, *carries: Value) -> Sequence[Value]:
            own = Copier({self.lanes.loop.index: self.first + index})
            return body(own, index, *carries)

        return for_loop(int_const(0), self.count, inits, lane, index="lane", hints=hints)

    def _begin(self, own: Copier, lane: Value, *arrays: Value) -> Sequence[Value]:
        return _stored(arrays, self._run(own, self.lanes.before, [*self.lanes.inner.inits, *self.lanes.kept]), lane)

    def _for(self, inner: For, carried: Sequence[Var], kept: Sequence[Var]) -> Sequence[Var]:
        """All lanes make the same trips."""
        def trip(index: Value, *now: Value) -> Sequence[Value]:
            def step(own: Copier, lane: Value, *arrays: Value) -> Sequence[Value]:
                own.values[inner.index] = index
                self._read(own, lane, self.held, [*arrays, *kept])
                return _stored(arrays, self._run(own, inner.body.stmts, inner.body.results), lane)

            return self._each(now, step)

        return for_loop(inner.lo, inner.hi, carried, trip, step=inner.step, index=inner.index.name)

    def _while(self, inner: While, carried: Sequence[Var], kept: Sequence[Var]) -> Sequence[Var]:
        """Trips until no lane of the block goes on."""
        def trip(*now: Value) -> Sequence[Value]:
            def step(own: Copier, lane: Value, *arrays: Value) -> Sequence[Value]:
                *arrays, going = arrays                                             # type: ignore[assignment]
                self._read(own, lane, self.held, [*arrays, *kept])
                old = [own.value(c) for c in inner.carries]
                goes_on = _named(self._run(own, inner.cond.stmts, inner.cond.results)[0], "goes_on")
                new = choose(goes_on, lambda: self._run(own, inner.body.stmts, inner.body.results), lambda: old)
                return [*_stored(arrays, new, lane), going | goes_on]

            return self._each([*now[:-1], const(False, BOOL)], step, hints)

        hints = [*(c.name for c in inner.carries), "going"]
        return while_loop([*carried, const(True, BOOL)], lambda *now: now[-1], trip, hints)[:-1]

    def _read(self, own: Copier, lane: Value, olds: Sequence[Var], arrays: Sequence[Value]) -> None:
        """What the lane has in the arrays, and what is read again."""
        for old, array in zip(olds, arrays, strict=True):
            own.values[old] = _named(ops.load(array, lane, index=(At(),)), old.name)
        self._run(own, self.lanes.again, ())

    @staticmethod
    def _run(own: Copier, stmts: Sequence[Stmt], results: Sequence[Value]) -> list[Value]:
        for stmt in stmts:
            own.statement(stmt)
        return [own.value(r) for r in results]


def _stored(arrays: Sequence[Value], values: Sequence[Value], lane: Value) -> list[Value]:
    return [ops.store(array, value, lane, index=(At(),)) for array, value in zip(arrays, values, strict=True)]


def _named(value: Value, name: str) -> Value:
    """Give what an operation has just made a name for people."""
    if isinstance(value, Var):
        value.name = current().names.fresh(name)
    return value
