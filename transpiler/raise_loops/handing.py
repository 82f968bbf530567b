"""An element that the trip before has stored, as a carry of its own.

    before                                  after
    for i in 1 .. n carry (y = a):          s = load(a, 0)
      v = load(y, i - 1)                    for i in 1 .. n carry (y = a, v = s):
      w = add(v, x)                           w = add(v, x)
      z = store(y, w, i)                      z = store(y, w, i)
      yield z                                 yield z, w

What is folded into one element after the other is then seen as such: here it is a running sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import ops
from ..ir.build import current, located
from ..ir.dependence import axis_items, axis_of
from ..ir.dims import substitute, symbol, symbols_of
from ..ir.nodes import Block, For, Let, Value, Var
from ..ir.walk import substituted
from .facts import Facts
from .hull import trips_of
from .lane import is_positive
from .versions import versions_of


def handing_on(loop: For, facts: Facts, local: set[str]) -> For:
    """The loop with more carries behind its own.  local: the ints that the body computes."""
    trips = trips_of(loop, facts)
    if trips is None or not is_positive(trips):
        return loop
    for number in range(len(loop.carries)):
        loop = _with_handed(loop, number, facts, local)
    return loop


def _with_handed(loop: For, number: int, facts: Facts, local: set[str]) -> For:
    versions = versions_of(loop, number) if loop.carries[number].type.shape else None
    if versions is None or not versions.pure or len(versions.writes) != 1:
        return loop
    (store, inner, always), = versions.writes
    if inner or not always or store.op.adds or loop.body.results[number] is not store.target:
        return loop
    loads = [load for load, _, _ in versions.loads if load.args[0] is loop.carries[number]
             and load.target.type == store.args[1].type and _is_next(loop, store, load, facts, local)]
    if not loads:
        return loop
    with located(loads[0].loc):
        first = _before_the_loop(loop, number, loads[0], facts)
    b = current()
    handed = b.var(first.type, loop.carries[number].name)
    replaced: dict[Var, Value] = {load.target: handed for load in loads}
    stmts = [substituted(s, replaced) for s in loop.body.stmts if s not in loads]
    value = store.args[1]
    result = replaced.get(value, value) if isinstance(value, Var) else value
    results = tuple(replaced.get(r, r) if isinstance(r, Var) else r for r in loop.body.results)
    return replace(loop, targets=(*loop.targets, b.var(first.type, handed.name)), carries=(*loop.carries, handed),
                   inits=(*loop.inits, first), body=Block(tuple(stmts), (*results, result)), parallel=False)


def _is_next(loop: For, store: Let, load: Let, facts: Facts, local: set[str]) -> bool:
    """Whether a trip reads, surely from an element, where the trip before has stored, and that is another place in each
    trip: what all work on is seen as such elsewhere."""
    if store.params["index"] != load.params["index"] or len(store.args) != len(load.args) + 1:
        return False
    if not any(loop.index.name in symbols_of(facts.dim(s)) for s in store.args[2:]):
        return False
    own = local - {loop.index.name}
    for written, read in zip(store.args[2:], load.args[1:], strict=True):
        there, here = facts.dim(written), facts.dim(read)
        if any(symbols_of(d).keys() & own for d in (there, here)) or _in_trip(loop, here, 1) != there:
            return False
    return all(scalar is None or facts.is_inside(axis_of(item, scalar, facts.ints), dim)
               for (item, scalar), dim in zip(axis_items(load), load.args[0].shape, strict=True))


def _in_trip(loop: For, dim: Any, later: int) -> Any:
    """An int of one trip so many trips later."""
    index = loop.index.name
    return substitute(dim, {index: symbol(index, 0) + later * int(loop.step.value)})  # type: ignore[union-attr]


def _before_the_loop(loop: For, number: int, load: Let, facts: Facts) -> Value:
    """What the first trip reads."""
    start = facts.dim(loop.lo)
    scalars: Sequence[Value] = [facts.emitted(substitute(facts.dim(s), {loop.index.name: start}))
                                for s in load.args[1:]]
    found: Value = ops.load(loop.inits[number], *scalars, index=load.params["index"])
    return found
