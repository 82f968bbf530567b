"""Rows of which each cell waits for the one before run eight at a time, as vectors of cells that do not wait.

    before                                        after
    for i in 1 .. n:                              for b in 1 .. n step 8:
      for j in 1 .. m:                              for t in 1 .. m + 7:
        r[i, j] = f(r[i - 1, j], r[i, j - 1])         for k in max(0, t - m + 1) .. min(8, n - b, t) abreast:
                                                        r[b + k, t - k] = f(r[b + k - 1, t - k], r[b + k, t - k - 1])

Neither loop can be vectorised, but cells of different rows, each so many cells behind the one above it, are computed
from older ones alone.  The innermost loop is one that LLVM vectorises, since it is told that its trips are apart.  The
elements that it reads are a stride apart, which a processor takes one by one: it is worth it for cells with
exponentials and logarithms.  Every cell is computed as before, bit for bit.

After L. Lamport, "The parallel execution of DO loops" (1974).
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..ir.build import for_loop, int_const, plus
from ..ir.dependence import Order
from ..ir.nodes import Func, Value, Var
from ..ir.walk import Copier
from ..ops.base import Lowering
from .dependence import step_of
from .tables import Table, cell_of, exchange_tables, matters

ROWS = 8            # at a time: enough for the vectors of float64 that there are
BEHIND = (1, 2)     # cells that a row may be behind the one above it
DEAR = 4            # additions in a cell for each element that it reads or writes, for which vectors pay


def run_in_waves(func: Func) -> Func:
    return exchange_tables(func, _in_waves)


def _in_waves(table: Table) -> bool:
    behind = next(filter(table.keeps_order, BEHIND), None) if _is_dear(table) and _waits(table) else None
    if behind is None:
        return False
    _emit(table, behind)
    return True


def _waits(table: Table) -> bool:
    """Whether the cells of a row wait for each other."""
    accesses, dependences = table.part.accesses, table.dependences
    in_row: list[Order] = [(table.outer, table.outer, "same", 0), (table.inner, table.inner, "before", 1)]
    return any(matters(a, b) and not b.writes and dependences.may_meet(a, b, in_row)
               for a in accesses for b in accesses)


def _is_dear(table: Table) -> bool:
    lets = [*table.before, *cell_of(table.inner)]
    cost = sum(let.op.cost for let in lets if let.op.lowering is Lowering.ELEMENTWISE and let.target.type.is_inexact)
    return cost >= DEAR * sum(let.op.access is not None for let in lets)


# ---------------------------------------------------------------------------------------------------------------


def _emit(table: Table, behind: int) -> None:
    """The new loops, at the current builder."""
    outer, inner = table.outer, table.inner
    down, along = step_of(outer), step_of(inner)

    def block(first: Var, *arrays: Value) -> Sequence[Value]:
        rows = ops.minimum(int_const(ROWS), _distance(first, outer.hi, down))
        copier = Copier(dict(zip(outer.carries, arrays)))
        ends = for_loop(inner.lo, plus(inner.hi, (ROWS - 1) * behind * along), [copier.value(v) for v in inner.inits],
                        lambda t, *now: wave(first, rows, t, now), step=along, index="wave",
                        hints=[c.name for c in inner.carries])
        copier.values.update(zip(inner.targets, ends))
        return [copier.value(r) for r in outer.body.results]

    def wave(first: Var, rows: Value, t: Var, now: Sequence[Value]) -> Sequence[Value]:
        begun = plus(_rows_for(_distance(inner.lo, t, along), behind), 1)
        ended = plus(_rows_for(_distance(inner.hi, t, along), behind), 1)
        return for_loop(ops.maximum(ended, int_const(0)), ops.minimum(rows, begun), now,
                        lambda k, *arrays: cell(first, t, k, arrays), index="row", abreast=True,
                        hints=[c.name for c in inner.carries])

    def cell(first: Var, t: Var, k: Var, arrays: Sequence[Value]) -> Sequence[Value]:
        behind_first = k if behind == 1 else k * int_const(behind)
        i = first + k if down > 0 else first - k
        j = t - behind_first if along > 0 else t + behind_first
        copier = Copier({outer.index: i, inner.index: j, **dict(zip(inner.carries, arrays))})
        for let in (*table.before, *cell_of(inner)):
            copier.statement(let)
        return [copier.value(r) for r in inner.body.results]

    for_loop(outer.lo, outer.hi, outer.inits, block, step=ROWS * down, index=outer.index.name,
             hints=[c.name for c in outer.carries])


def _distance(first: Value, last: Value, step: int) -> Value:
    return last - first if step > 0 else first - last    # type: ignore[operator, no-any-return]


def _rows_for(cells: Value, behind: int) -> Value:
    """How many rows are begun in as many cells, after the first."""
    return cells if behind == 1 else ops.floor_divide(cells, int_const(behind))    # type: ignore[no-any-return]
