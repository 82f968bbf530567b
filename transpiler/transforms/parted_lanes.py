"""A branch that each element of a batch takes for itself, and whose arms have operations that gain from a batch.

    before                          after (x batched, m not)
    y = if p:                       taken, n, rest, k = the numbers of the lanes that take either arm, and how many
          yield m @ x               y_1 = if n > 0: the taken rows of x @ m.T, put where they belong
        else:                       y = if k > 0: the others
          yield x

So each arm is computed for the lanes that take it, as one batch, and not at all where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import ops
from ..ir.build import choose, for_loop, int_const, size_value
from ..ir.dims import symbol
from ..ir.index import At, Span
from ..ir.nodes import Block, If, Value, Var

if TYPE_CHECKING:
    from .vmap import Batching


def parted(batching: Batching, stmt: If) -> None:
    """Emit the branch, each arm over its share of the lanes."""
    size = batching.size
    pred = batching.copier.value(stmt.pred)
    taken, taken_count, rest, rest_count = _shares(pred, size)
    found: Sequence[Value] = [ops.empty(shape=(size, *batching.copier.type(t.type).shape), dtype=t.type.dtype)
                              for t in stmt.targets]
    for block, lanes, count in ((stmt.then, taken, taken_count), (stmt.orelse, rest, rest_count)):
        if block.stmts or block.results:
            found = _arm(batching, block, lanes, count, found)
    for target, value in zip(stmt.targets, found, strict=True):
        batching.stands(target, value)


def _shares(pred: Value, size: object) -> tuple[Var, ...]:
    """The numbers of the lanes where it holds, in order, at the beginning of an array; how many; likewise the rest."""
    empty = [ops.empty(shape=(size,), dtype="int64") for _ in range(2)]

    def lane(index: Value, taken: Value, taken_count: Value, rest: Value, rest_count: Value) -> Sequence[Value]:
        def noted(lanes: Value, count: Value) -> list[Value]:
            return [ops.store(lanes, index, count, index=(At(),)), count + 1]

        return choose(ops.load(pred, index, index=(At(),)), lambda: [*noted(taken, taken_count), rest, rest_count],
                      lambda: [taken, taken_count, *noted(rest, rest_count)])

    inits = [empty[0], int_const(0), empty[1], int_const(0)]
    return for_loop(int_const(0), size_value(size), inits, lane, index="lane",
                    hints=("taken", "taken_count", "rest", "rest_count"))


def _arm(batching: Batching, block: Block, lanes: Var, count: Var, found: Sequence[Value]) -> Sequence[Value]:
    """`found` with the results of an arm at the places of the lanes that take it."""
    share = symbol(count.name, 0)

    def run() -> list[Value]:
        mine = ops.load(lanes, index=(Span(0, share),))
        inner = batching.for_share(share)
        read = {v for s in block.stmts for v in batching.depends.reads(s)} | batching.depends.results_of(block)
        for old in sorted(read, key=lambda v: v.name):
            if batching.has_lanes(old):
                inner.stands(old, ops.gather(batching.copier.value(old), mine, axes=(0,)))
        inner.block(block)
        return [ops.scatter(whole, inner.with_lanes(r), mine, axes=(0,))
                for whole, r in zip(found, block.results, strict=True)]

    return choose(count > 0, run, lambda: list(found))
