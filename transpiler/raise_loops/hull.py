"""A loop whose bounds differ from trip to trip of the loops around, with the same bounds in each of them.

    before                        after, where i counts 0 .. n
    for j in 0 .. i carry (c):    for j in 0 .. n - 1 carry (c):
      ...                           b = less(j, i)
      yield d                       d_1 = if b:
                                      ...
                                      yield d
                                    else:
                                      yield c
                                    yield d_1
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import ops
from ..ir.build import building, current
from ..ir.dims import slice_length
from ..ir.nodes import Block, Const, For, If, Value
from .facts import Facts
from .findings import Refused


def trips_of(loop: For, facts: Facts) -> Any | None:
    """How many trips the loop makes, as a dimension made of sizes; None where that is not known."""
    if not isinstance(loop.step, Const):
        return None
    trips = slice_length(facts.dim(loop.lo), facts.dim(loop.hi), int(loop.step.value))
    return trips if facts.is_known(trips) else None


def with_known_bounds(loop: For, facts: Facts) -> For:
    """The loop itself, or one that makes all trips that it makes in any trip of the loops around; Refused where these
    are not known."""
    if trips_of(loop, facts) is not None:
        return loop
    if not isinstance(loop.step, Const):
        raise Refused("its step is known at run time only")
    up = loop.step.value > 0
    first, last = facts.extremes(facts.dim(loop.lo)), facts.extremes(facts.dim(loop.hi))
    if first is None or last is None:
        raise Refused("how many trips it makes is known at run time only")
    lo, hi = (first[0], last[1]) if up else (first[1], last[0])
    if abs(loop.step.value) != 1 and first[0] != first[1]:
        raise Refused("it starts at another place in each trip of the loop around, with a step other than 1")
    with building(current().names, loop.loc) as b:
        tests = []
        if first[0] != first[1]:
            tests.append(ops.greater_equal(loop.index, loop.lo) if up else ops.less_equal(loop.index, loop.lo))
        if last[0] != last[1]:
            tests.append(ops.less(loop.index, loop.hi) if up else ops.greater(loop.index, loop.hi))
        results: list[Value] = [] if not tests else _guarded(loop, tests)
    with building(current().names, loop.loc) as around:
        low, high = facts.emitted(lo), facts.emitted(hi)
    current().stmts.extend(around.stmts)
    facts.learn((*around.stmts, *b.stmts))
    body = Block(tuple(b.stmts), tuple(results)) if tests else loop.body
    hull = replace(loop, lo=low, hi=high, body=body, parallel=False)
    facts.ints.loop[loop.index.name] = hull
    return hull


def _guarded(loop: For, tests: list[Value]) -> list[Value]:
    """Emit the body as a branch; what the loop then carries."""
    inside: Value = tests[0] if len(tests) == 1 else ops.logical_and(*tests)
    b = current()
    changing = [k for k, c in enumerate(loop.carries) if loop.body.results[k] is not c]
    targets = tuple(b.var(loop.carries[k].type, loop.carries[k].name) for k in changing)
    b.stmts.append(If(targets, inside, Block(loop.body.stmts, tuple(loop.body.results[k] for k in changing)),
                      Block((), tuple(loop.carries[k] for k in changing)), loop.loc))
    results: list[Value] = list(loop.carries)
    for k, target in zip(changing, targets):
        results[k] = target
    return results
