"""A parallel loop over the elements of a batch, around statements as they are for one of them.

    n = while carry (v = x): ...        out = for lane in 0 .. b carry (out_1 = empty) parallel:
                                          x_1 = load(x, lane)
                                          n_1 = while carry (v = x_1): ...
                                          yield store(out_1, n_1, lane)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import ops
from ..errors import error
from ..ir.build import current, for_loop, int_const, size_value
from ..ir.dims import symbol
from ..ir.index import At, Span
from ..ir.nodes import Check, Stmt, Value, Var
from ..ir.walk import Copier

if TYPE_CHECKING:
    from .vmap import Batching


class LaneCopier(Copier):
    """Copies statements for one element of a batch, or for all at once where `lane` is None.

    What is raised for an element tells its number.  What is raised for all comes from the first, which is told if they
    are a batch in a batch, so that each has its place.  is_told: whether the user knows of the batch.
    """

    def __init__(self, lane: Value | None, is_told: bool, values: Mapping[Var, Value],
                 sizes: Mapping[str, Any]) -> None:
        super().__init__(values, sizes)
        self.lane, self.is_told = lane, is_told

    def statement(self, stmt: Stmt) -> None:
        super().statement(stmt)
        if self.is_told and isinstance(stmt, Check) and not stmt.prints and (self.lane is not None or stmt.lanes):
            emitted = current().stmts
            lanes = self.lane if self.lane is not None else int_const(0), *emitted[-1].lanes   # type: ignore[union-attr]
            emitted[-1] = replace(emitted[-1], lanes=lanes)                # type: ignore[call-arg, arg-type]


def lane_of(whole: Value, index: Value) -> Value:
    """The part of one element."""
    return ops.load(whole, index, index=(At(), *(Span(0, d) for d in whole.shape[1:])))


def loop_over_lanes(batching: Batching, stmts: Sequence[Stmt], leaving: Sequence[Var]) -> None:
    """Emit the statements in a loop over lanes; `leaving` of what they make is read elsewhere."""
    copier, depends, size = batching.copier, batching.depends, batching.size
    for value in leaving:
        if depends.differs(value):
            raise error("E311", "a batched value decides the size of an array here", stmts[0].loc)
    made = {t for s in stmts for t in s.targets}
    read = dict.fromkeys(v for s in stmts for v in sorted(depends.reads(s) - made, key=lambda v: v.name))
    batched = [v for v in read if batching.has_lanes(v)]
    outs = [ops.empty(shape=(size, *copier.type(v.type).shape), dtype=v.type.dtype) for v in leaving]

    def lane(index: Value, *carried: Value) -> list[Value]:
        own = LaneCopier(batching.number(index), copier.is_told, copier.values, copier.sizes)
        for value in batched:
            mine = own.values[value] = lane_of(copier.value(value), index)
            if not mine.shape and mine.dtype == "int64" and isinstance(mine, Var):
                own.sizes[value.name] = symbol(mine.name, 0)
        for stmt in stmts:
            own.statement(stmt)
        return [ops.store(out, own.value(v), index, index=(At(), *(Span(0, d) for d in out.shape[1:])))
                for out, v in zip(carried, leaving, strict=True)]

    results = for_loop(int_const(0), size_value(size), outs, lane, index="lane", parallel=True,
                       hints=[v.name for v in leaving])
    for old, new in zip(leaving, results, strict=True):
        batching.stands(old, new)
