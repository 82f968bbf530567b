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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .. import ops
from ..ir.build import current, for_loop, int_const, located, plus
from ..ir.dependence import Order
from ..ir.ints import Ints
from ..ir.nodes import For, Func, Let, Stmt, Value, Var
from ..ir.walk import Copier, all_statements, exchanged
from ..ops.base import Lowering
from .dependence import Access, Dependences, step_of
from .nest_parts import parts_of

ROWS = 8            # at a time: enough for the vectors of float64 that there are
BEHIND = (1, 2)     # cells that a row may be behind the one above it
DEAR = 4            # additions in a cell for each element that it reads or writes, for which vectors pay


def run_in_waves(func: Func) -> Func:
    if not any(isinstance(s, For) and any(isinstance(x, For) for x in s.body.stmts) for s in all_statements(func.body)):
        return func
    ints = Ints(func.body)

    def change(stmt: Stmt, old: Stmt) -> list[Stmt]:
        found = _table_of(stmt, ints) if isinstance(stmt, For) and stmt is old else None
        if found is None:
            return [stmt]
        with located(stmt.loc):
            _emit(found)
        loop = current().stmts.pop()
        assert isinstance(loop, For)
        return [replace(loop, targets=found.outer.targets)]     # others refer to these

    return exchanged(func, change)


@dataclass(frozen=True)
class _Table:
    """A loop over rows, that over a row's cells, and what is read before it.  behind: how many cells each row is to be
    behind the one above."""

    outer: For
    inner: For
    before: tuple[Let, ...]
    behind: int


def _table_of(loop: For, ints: Ints) -> _Table | None:
    """None where the nest is not of this kind, the order of cells may not be changed, or it would not pay."""
    if sum(isinstance(s, For) for s in loop.body.stmts) != 1:
        return None
    nest = parts_of(loop, ints)
    if nest is None or len(nest.parts) != 1:
        return None
    (part,) = nest.parts
    inner = part.loop
    if inner is None or nest.depends(inner.lo) or nest.depends(inner.hi) or any(
            len(access.loops) == 1 for access in part.accesses):        # of a row, read before its cells
        return None
    before = tuple(s for s in loop.body.stmts if isinstance(s, Let))
    if any(let.op.raises is not None for let in (*before, *_lets(inner))) or not _is_dear([*before, *_lets(inner)]):
        return None
    dependences = Dependences(ints)
    pairs = [(a, b) for a in part.accesses for b in part.accesses if _matters(a, b)]
    in_row: list[Order] = [(loop, loop, "same", 0), (inner, inner, "before", 1)]
    if not any(not b.writes and dependences.may_meet(a, b, in_row) for a, b in pairs):
        return None                                                     # the row's cells do not wait
    for behind in BEHIND:
        ahead: list[Order] = [(loop, loop, "before", 1), (inner, inner, "after", behind)]
        if not any(dependences.may_meet(a, b, ahead) for a, b in pairs):
            return _Table(loop, inner, before, behind)
    return None


def _matters(a: Access, b: Access) -> bool:
    """Adds, too, keep their order."""
    return a.root == b.root and (a.writes or b.writes)


def _is_dear(lets: Iterable[Let]) -> bool:
    cost = sum(let.op.cost for let in lets if let.op.lowering is Lowering.ELEMENTWISE and let.target.type.is_inexact)
    return cost >= DEAR * sum(let.op.access is not None for let in lets)


def _lets(loop: For) -> list[Let]:
    return [s for s in loop.body.stmts if isinstance(s, Let)]


# ---------------------------------------------------------------------------------------------------------------


def _emit(table: _Table) -> None:
    """The new loops, at the current builder."""
    outer, inner, behind = table.outer, table.inner, table.behind
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
        for let in (*table.before, *_lets(inner)):
            copier.statement(let)
        return [copier.value(r) for r in inner.body.results]

    for_loop(outer.lo, outer.hi, outer.inits, block, step=ROWS * down, index=outer.index.name,
             hints=[c.name for c in outer.carries])


def _distance(first: Value, last: Value, step: int) -> Value:
    return last - first if step > 0 else first - last    # type: ignore[operator, no-any-return]


def _rows_for(cells: Value, behind: int) -> Value:
    """How many rows are begun in as many cells, after the first."""
    return cells if behind == 1 else ops.floor_divide(cells, int_const(behind))    # type: ignore[no-any-return]
