"""A branch that each element of a batch takes for itself, and whose arms have operations that gain from a batch.

    before                          after (x batched, m not)
    y = if p:                       taken, n, rest, k = the numbers of the lanes that take either arm, and how many
          yield m @ x               y_1 = if n > 0: the taken rows of x @ m.T, put where they belong
        else:                       y = if k > 0: the others
          yield x

So each arm is computed for the lanes that take it, as one batch, and not at all where there are none.

In loops and branches of which a derivative is taken, all that is saved has to have one size.  There the batch is filled
up with the first lane that takes the arm, again and again, and whoever does not take it has no use for what comes out:

    rows = the numbers of the lanes that take the arm, then the first of them; place = where among them each lane is
    y = where(p, (x[rows] @ m.T)[place], the others)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import ops
from ..ir.build import choose, const, for_loop, int_const, size_value
from ..ir.dims import symbol
from ..ir.index import At, Span
from ..ir.nodes import Block, If, Value, Var
from ..ir.types import Type

if TYPE_CHECKING:
    from .vmap import Batching


def parted(batching: Batching, stmt: If) -> None:
    """Emit the branch, each arm over its share of the lanes."""
    size = batching.size
    pred = batching.copier.value(stmt.pred)
    if not batching.depends.may_resize(stmt):
        return _filled_up(batching, stmt, pred)
    taken, taken_count, rest, rest_count = _shares(pred, size)
    found: Sequence[Value] = [ops.empty(shape=(size, *batching.copier.type(t.type).shape), dtype=t.type.dtype)
                              for t in stmt.targets]
    for block, lanes, count in ((stmt.then, taken, taken_count), (stmt.orelse, rest, rest_count)):
        if block.stmts or block.results:
            found = _arm(batching, block, lanes, count, found)
    for target, value in zip(stmt.targets, found, strict=True):
        batching.stands(target, value)


def _filled_up(batching: Batching, stmt: If, pred: Value) -> None:
    found: Sequence[Value] = [const(0, Type(t.dtype, (batching.size, *t.shape)))
                              for t in (batching.copier.type(t.type) for t in stmt.targets)]
    for block, takes in ((stmt.then, pred), (stmt.orelse, ops.logical_not(pred))):
        if block.stmts or block.results:
            found = _filled_arm(batching, block, takes, found)
    for target, value in zip(stmt.targets, found, strict=True):
        batching.stands(target, value)


def _filled_arm(batching: Batching, block: Block, takes: Value, found: Sequence[Value]) -> Sequence[Value]:
    size = batching.size
    lanes, place, count = _rows(takes, size)

    def run() -> list[Value]:
        first = ops.load(lanes, int_const(0), index=(At(),))
        (rows,) = for_loop(count, size_value(size), [lanes], lambda row, filled: [ops.store(filled, first, row, index=(
            At(),))], index="row", hints=("rows",))
        inner = batching.for_share(size, rows)
        for old in _read(batching, block):
            inner.stands(old, ops.gather(batching.copier.value(old), rows, axes=(0,)))
        inner.block(block)
        return [_chosen(takes, ops.gather(inner.with_lanes(r), place, axes=(0,)), whole)
                for whole, r in zip(found, block.results, strict=True)]

    return choose(count > 0, run, lambda: list(found))


def _chosen(takes: Value, mine: Value, others: Value) -> Value:
    return ops.select(ops.broadcast(takes, shape=mine.shape, axes=(0,)) if mine.rank > 1 else takes, mine, others)


def _rows(takes: Value, size: Any) -> tuple[Var, ...]:
    """The numbers of the lanes that take an arm, at the beginning of an array; where among them each lane stands, 0 for
    others; how many they are."""
    lanes = ops.empty(shape=(size,), dtype="int64")
    places = const(0, Type("int64", (size,)))

    def lane(index: Value, lanes: Value, places: Value, count: Value) -> Sequence[Value]:
        return choose(ops.load(takes, index, index=(At(),)), lambda: [
            ops.store(lanes, index, count, index=(At(),)), ops.store(places, count, index, index=(At(),)), count + 1],
            lambda: [lanes, places, count])

    return for_loop(int_const(0), size_value(size), [lanes, places, int_const(0)], lane, index="lane",
                    hints=("rows", "places", "rows_count"))


def _read(batching: Batching, block: Block) -> list[Var]:
    """What the block reads that has the batch axis."""
    read = {v for s in block.stmts for v in batching.depends.reads(s)} | batching.depends.results_of(block)
    return [old for old in sorted(read, key=lambda v: v.name) if batching.has_lanes(old)]


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
        inner = batching.for_share(share, mine)
        for old in _read(batching, block):
            inner.stands(old, ops.gather(batching.copier.value(old), mine, axes=(0,)))
        inner.block(block)
        return [ops.scatter(whole, inner.with_lanes(r), mine, axes=(0,))
                for whole, r in zip(found, block.results, strict=True)]

    return choose(count > 0, run, lambda: list(found))
