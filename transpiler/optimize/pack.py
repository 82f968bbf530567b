"""Tapes of loops whose inner loops get shorter or longer lie without gaps in memory.

    before                                        after
    t = empty (n, m, m)                           t = empty (n, m * m)
    for i in 0 .. n:                              for i in 0 .. n:
      for j in 0 .. m:                              for j in 0 .. m:
        for k in i + 1 .. m:                          for k in i + 1 .. m:
          t[i, j, k - (i + 1)] = x[j, k]                t[i, j * (m - (i + 1)) + k - (i + 1)] = x[j, k]

Each row has room for the longest.  What is used of them in one trip of the outer loop comes together at the beginning
of that trip's share, so that fewer pages and lines of memory are gone through.  The length of rows must follow from the
first index in the same way wherever an element is written or read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir import dims
from ..ir.build import Names, building
from ..ir.dependence import position_of
from ..ir.index import At
from ..ir.ints import LOWEST, Ints
from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import all_statements, blocks, bound_inside, used_names
from .lay_out import Arrays, Rewriting, is_element

TRIP = "trip of the outermost loop"         # stands for the first index in the length of a row


@dataclass(frozen=True)
class Row:
    """How the row goes on in an access: the loop along it, and its length as a dimension."""

    loop: For
    length: Any


def pack_tapes(func: Func) -> Func:
    if not any(isinstance(s, Let) and s.op.is_unset and s.target.type.rank > 2 for s in all_statements(func.body)):
        return func
    arrays = Arrays(func)
    rows, others = _rows_of(func, arrays)
    packed: dict[Var, tuple[int, ...]] = {
        root: () for root, lengths in others.items() if len(lengths) == 1 and None not in lengths}
    if not packed:
        return func
    with building(Names(used_names(func))) as b:
        b.stmts += _Packing(arrays, packed, rows).block(func.body).stmts
    return replace(func, body=Block(tuple(b.stmts), func.body.results))


def _rows_of(func: Func, arrays: Arrays) -> tuple[dict[Let, Row], dict[Var, set[Any]]]:
    """The row of each access, and the lengths that there are of each array that may be packed; None: another access."""
    ints = arrays.ints
    fixed = {arrays.root(v) for v in (*arrays.fixed, *(v for v in (*func.params, *func.results) if isinstance(v, Var)))}
    changing = {name for s in all_statements(func.body) if isinstance(s, (For, While)) for name in _names_in(s)}
    rows: dict[Let, Row] = {}
    lengths: dict[Var, set[Any]] = {}
    for let, loops in _accesses(func.body, ()):
        array = let.args[0] if let.op.access == "load" else let.target
        if not isinstance(array, Var) or array.type.rank < 3 or (root := arrays.root(array)) in fixed:
            continue
        row = _row(let, loops, ints, changing)
        if row is not None:
            rows[let] = row
        lengths.setdefault(root, set()).add(None if row is None else row.length)
    for stmt in all_statements(func.body):          # arrays of equal elements stay
        if isinstance(stmt, (For, While)):
            for target, init in zip(stmt.targets, stmt.inits):
                if isinstance(init, Const) and target.type.shape:
                    lengths.setdefault(arrays.root(target), set()).add(None)
    return rows, lengths


def _names_in(loop: For | While) -> Iterator[str]:
    yield from (v.name for v in bound_inside(loop))
    for block in blocks(loop):
        for stmt in all_statements(block):
            yield from (v.name for v in (*stmt.targets, *bound_inside(stmt)))   # type: ignore[union-attr]


def _accesses(block: Block, loops: tuple[For, ...]) -> Iterator[tuple[Let, tuple[For, ...]]]:
    for stmt in block.stmts:
        if isinstance(stmt, Let) and is_element(stmt):
            yield stmt, loops
        for inner in blocks(stmt):
            yield from _accesses(inner, (*loops, stmt) if isinstance(stmt, For) else loops)


def _row(let: Let, loops: Sequence[For], ints: Ints, changing: set[str]) -> Row | None:
    first, *_, last = map(ints.dim, position_of(let))
    trip = next((loop for loop in loops if first == dims.symbol(loop.index.name, LOWEST)), None)
    for loop in reversed(loops):
        if loop.index.name not in dims.symbols_of(last) or trip is None:
            continue
        if not isinstance(loop.step, Const) or abs(loop.step.value) != 1:
            return None
        lo, hi = ints.dim(loop.lo), ints.dim(loop.hi)
        low, length = (lo, hi - lo) if loop.step.value > 0 else (hi + 1, lo - hi)
        length = dims.substitute(length, {trip.index.name: dims.symbol(TRIP, LOWEST)})
        names = dims.symbols_of(length).keys()
        begins = dims.substitute(last, {loop.index.name: low})
        return Row(loop, length) if begins == 0 and TRIP in names and names.isdisjoint(changing) else None
    return None


class _Packing(Rewriting):
    """The last two axes of the packed arrays become one."""

    def __init__(self, arrays: Arrays, packed: dict[Var, tuple[int, ...]], rows: dict[Let, Row]) -> None:
        super().__init__(arrays, packed)
        self.rows = rows

    def turned(self, type: Type, order: tuple[int, ...]) -> Type:
        *others, rows, longest = type.shape
        return Type(type.dtype, (*others, rows * longest))

    def block(self, block: Block, targets: Sequence[Var] | None = None) -> Block:
        results = block.results if targets is None else self._beside(block.results, targets)
        stmts: list[Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, Let) and stmt in self.rows and self._order(self._array(stmt)) is not None:
                stmts += self._access(stmt)
            else:
                stmts.append(self._statement(stmt))
        return Block(tuple(stmts), results)

    @staticmethod
    def _array(let: Let) -> Value:
        return let.args[0] if let.op.access == "load" else let.target

    def _access(self, let: Let) -> list[Stmt]:
        loop = self.rows[let].loop
        up = isinstance(loop.step, Const) and loop.step.value > 0
        *others, row, along = position_of(let)
        with building() as b:
            b.loc = let.loc
            length = loop.hi - loop.lo if up else loop.lo - loop.hi             # type: ignore[operator]
            place = (*others, row * length + along)                             # type: ignore[operator]
        values = let.args[1:1 if let.op.access == "load" else 2]
        changed = replace(let, targets=self._vars(let.targets), params={**let.params, "index": (At(),) * len(place)},
                          args=(self.value(let.args[0], self._array(let)), *values, *place))
        return [*b.stmts, changed]
