"""Tables whose cells wait for each other: a loop over rows, inside of it one over a row's cells, and nothing behind.

    for i in 1 .. n:
      b = load(x, i)                                    before: read once for the row
      for j in 1 .. m:
        r[i, j] = f(b, r[i - 1, j], r[i, j - 1])

`stagger` and `wavefront` run several rows of such tables at a time, each some cells behind the one above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..ir.build import current, located
from ..ir.dependence import Order
from ..ir.ints import Ints
from ..ir.nodes import For, Func, Let, Stmt
from ..ir.walk import all_statements, exchanged
from .dependence import Access, Dependences
from .nest_parts import Nest, Part, parts_of


@dataclass(frozen=True)
class Table:
    """outer: the loop over rows; inner: that over cells, with `part.accesses`; before: what each row reads first."""

    nest: Nest
    part: Part
    outer: For
    inner: For
    before: tuple[Let, ...]
    dependences: Dependences

    def keeps_order(self, behind: int) -> bool:
        """Whether no cell needs, or overwrites what is needed by, one of a row above that is further ahead if each row
        is so many cells behind the one above it."""
        order: list[Order] = [(self.outer, self.outer, "before", 1), (self.inner, self.inner, "after", behind)]
        return not any(matters(a, b) and self.dependences.may_meet(a, b, order)
                       for a in self.part.accesses for b in self.part.accesses)


def matters(a: Access, b: Access) -> bool:
    """Whether the order of the two matters if they touch one element.  Adds, too, keep their order."""
    return a.root == b.root and (a.writes or b.writes)


def table_of(outer: For, ints: Ints) -> Table | None:
    """None where the nest is not of this kind, a cell may raise, or a row reads what its cells may change."""
    if sum(isinstance(s, For) for s in outer.body.stmts) != 1:
        return None
    nest = parts_of(outer, ints)
    if nest is None or len(nest.parts) != 1:
        return None
    (part,) = nest.parts
    inner = part.loop
    if inner is None or nest.depends(inner.lo) or nest.depends(inner.hi) or any(
            len(access.loops) == 1 for access in part.accesses):        # of a row, read before its cells
        return None
    before = tuple(s for s in outer.body.stmts if isinstance(s, Let))
    if any(let.op.raises is not None for let in (*before, *cell_of(inner))):
        return None
    return Table(nest, part, outer, inner, before, Dependences(ints))


def cell_of(inner: For) -> list[Let]:
    """What is done for a cell."""
    return [s for s in inner.body.stmts if isinstance(s, Let)]


def exchange_tables(func: Func, emit_if_suited: Callable[[Table], bool]) -> Func:
    """The func with other loops for its tables.  emit_if_suited: emits the loops, the outermost last, for a table that
    it is for."""
    if not any(isinstance(s, For) and any(isinstance(x, For) for x in s.body.stmts) for s in all_statements(func.body)):
        return func
    ints = Ints(func.body)

    def change(stmt: Stmt, old: Stmt) -> list[Stmt]:
        table = table_of(stmt, ints) if isinstance(stmt, For) and stmt is old else None
        if table is None:
            return [stmt]
        with located(stmt.loc):
            if not emit_if_suited(table):
                return [stmt]
        loop = current().stmts.pop()
        assert isinstance(loop, For)
        return [replace(loop, targets=table.outer.targets)]     # others refer to these

    return exchanged(func, change)
