"""Rows of which each cell waits for the one before run a few at a time, each a cell behind the row above it.

    before                                        after
    for i in 1 .. n:                              for i in 1 .. n step 3:
      for j in 1 .. m:                              for t in 1 .. m + 2:
        r[i, j] = f(r[i - 1, j], r[i, j - 1])         if t < m:
                                                        r[i, t] = f(r[i - 1, t], r[i, t - 1])
                                                      if t - 1 >= 1 and t - 1 < m and i + 1 < n:
                                                        r[i + 1, t - 1] = f(r[i, t - 1], r[i + 1, t - 2])
                                                      if t - 2 >= 1 and ...: r[i + 2, t - 2] = ...

Neither loop can be vectorised, and a chain of exponentials or divisions leaves the processor idle most of the time.
The cells of one trip do not wait for each other, so that it works on all of them at once.  Every cell is computed as
before, bit for bit, from the same elements.

After L. Lamport, "The parallel execution of DO loops" (1974), and unroll-and-jam.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.build import choose, current, for_loop, located, plus
from ..ir.dependence import Order, position_of
from ..ir.nodes import For, Func, Let, Value, Var
from ..ir.walk import Copier
from ..ops.base import Lowering
from .dependence import Access, Dependences, step_of
from .nest_parts import Nest, Part
from .tables import Table, exchange_tables

ROWS = 3
BEHIND = 1          # cells that a row is behind the one above it
LONG = 4            # the least chain from cell to cell, in additions, that is worth the conditions,
SHARE = 5           # where the whole cell is not more than so many chains: it keeps the processor busy then


def stagger(func: Func) -> Func:
    return exchange_tables(func, _staggered)


def _staggered(table: Table) -> bool:
    if not _waits(table.nest, table.part, table.inner, table.dependences) or not table.keeps_order(BEHIND + 1):
        return False
    _emit(table.outer, table.inner)
    return True


def _waits(nest: Nest, part: Part, inner: For, dependences: Dependences) -> bool:
    """Whether the chain from a cell to the next one in its row is what takes the time."""
    order: list[Order] = [(nest.loop, nest.loop, "same", 0), (inner, inner, "before", 1)]
    written = [a for a in part.accesses if a.writes]

    def follows(let: Let) -> bool:
        """Whether this reads what the cell before has written."""
        root = nest.versions.get(let.args[0]) if isinstance(let.args[0], Var) else None
        writes = let.op.access != "load"
        if root is None or let.op.access == "store":
            return False
        place = tuple(map(dependences.ints.dim, position_of(let)))
        read = Access(root, place, writes, False, (nest.loop, inner))
        return any(a.root == root and dependences.may_meet(a, read, order) for a in written)

    chain: dict[Value, int] = {}
    longest = total = 0
    for let in inner.body.stmts:
        assert isinstance(let, Let)
        cost = let.op.cost if let.op.lowering is Lowering.ELEMENTWISE else 1
        total += cost
        if let.op.access is None:
            before = [chain[a] for a in let.args if a in chain]
            if before:
                chain[let.target] = max(before) + cost
        elif let.op.access == "load":
            if follows(let):
                chain[let.target] = 0
        else:
            if follows(let):
                longest = max(longest, 1)
            if let.args[1] in chain:
                longest = max(longest, chain[let.args[1]] + (let.op.access == "add_at"))
    return longest >= LONG and total <= SHARE * longest


# ---------------------------------------------------------------------------------------------------------------


def _emit(outer: For, inner: For) -> None:
    """The new loops, at the current builder."""
    down, along = step_of(outer), step_of(inner)
    before = [s for s in outer.body.stmts if isinstance(s, Let)]

    def row(first: Var, *arrays: Value) -> Sequence[Value]:
        copier = Copier(dict(zip(outer.carries, arrays)))
        inits = [copier.value(v) for v in inner.inits]
        ends = for_loop(inner.lo, plus(inner.hi, (ROWS - 1) * BEHIND * along), inits,
                        lambda t, *now: _trip(first, t, now), step=along, index=inner.index.name,
                        hints=[c.name for c in inner.carries])
        copier.values.update(zip(inner.targets, ends))
        return [copier.value(r) for r in outer.body.results]

    def _trip(first: Var, t: Var, now: Sequence[Value]) -> Sequence[Value]:
        for k in range(ROWS):
            i, j = plus(first, k * down), plus(t, -k * BEHIND * along)
            there = _is_in(j, inner, first=k == 0)
            if k:
                there = there & _goes_on(i, outer)
            now = choose(there, lambda i=i, j=j, now=now: _cell(i, j, now), lambda now=now: now)  # type: ignore[misc]
            for var, carry in zip(now, inner.carries):
                assert isinstance(var, Var)
                var.name = current().names.fresh(carry.name)
        return now

    def _cell(i: Value, j: Value, now: Sequence[Value]) -> Sequence[Value]:
        copier = Copier({outer.index: i, inner.index: j, **dict(zip(inner.carries, now))})
        for let in (*before, *inner.body.stmts):
            copier.statement(let)
        return [copier.value(r) for r in inner.body.results]

    with located(outer.loc):
        for_loop(outer.lo, outer.hi, outer.inits, row, step=ROWS * down, index=outer.index.name,
                 hints=[c.name for c in outer.carries])


def _goes_on(index: Value, loop: For) -> Value:
    """Whether the loop has not ended at this index."""
    return index < loop.hi if step_of(loop) > 0 else index > loop.hi    # type: ignore[operator, no-any-return]


def _is_in(index: Value, loop: For, first: bool) -> Value:
    """Whether the loop has a trip of this index.  first: none is before its first one."""
    inside = _goes_on(index, loop)
    if first:
        return inside
    begun = index >= loop.lo if step_of(loop) > 0 else index <= loop.lo    # type: ignore[operator]
    return begun & inside    # type: ignore[no-any-return]
