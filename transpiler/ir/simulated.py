"""What follows from constants alone in a loop, by running that part of it: how often a `while` loop runs, and what an
int is after a `for` loop.

    n = while carry (n = 5, x = x0):   cond: n > 0    do: yield n // 2, f(x)          3 trips
    n = for i in 0 .. 6 carry (n = 0, x = x0): ... if i % 2 == 0: n + 1 else: n       n is 3
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .nodes import Const, For, If, Let, Stmt, Value, Var, While
from .walk import definitions

MOST = 10_000           # trips of a `while` loop that are run
MOST_OF_FOR = 2_000     # of a `for` loop, whose trips are known anyway


def simulated_trips(loop: While) -> int | None:
    """None where the condition needs more than scalars that are known, or does not turn false soon."""
    defined = {**definitions(loop.cond), **definitions(loop.body)}
    needed = _needed(loop, loop.cond.results[0], defined)
    if needed is None or not all(isinstance(loop.inits[k], Const) for k in needed):
        return None
    carried = {loop.carries[k]: _number(loop.inits[k]) for k in needed}
    with np.errstate(all="ignore"):
        for trips in range(MOST):
            if not _Trip(defined, carried).value(loop.cond.results[0]):
                return trips
            carried = _following(loop, needed, defined, carried)
    return None


def simulated_target(loop: For, k: int) -> int | None:
    """A scalar after the loop; None where it needs more than scalars that are known."""
    if not all(isinstance(v, Const) for v in (loop.lo, loop.hi, loop.step)):
        return None
    defined = definitions(loop.body)
    needed = _needed(loop, loop.carries[k], defined)
    indices = range(loop.lo.value, loop.hi.value, loop.step.value)              # type: ignore[union-attr]
    if needed is None or len(indices) > MOST_OF_FOR or not all(isinstance(loop.inits[n], Const) for n in needed):
        return None
    carried = {loop.carries[n]: _number(loop.inits[n]) for n in needed}
    with np.errstate(all="ignore"):
        for index in indices:
            carried = _following(loop, needed, defined, {**carried, loop.index: np.int64(index)})
    return int(carried[loop.carries[k]])


def _following(loop: For | While, needed: list[int], defined: Mapping[Var, Stmt],
               known: Mapping[Var, Any]) -> dict[Var, Any]:
    trip = _Trip(defined, known)
    return {loop.carries[k]: trip.value(loop.body.results[k]) for k in needed}


def _needed(loop: For | While, wanted: Value, defined: Mapping[Var, Stmt]) -> list[int] | None:
    """The carries that the value follows from, by number; None where anything else has a part in it."""
    places = {c: k for k, c in enumerate(loop.carries)}
    needed: set[int] = set()
    seen: set[Value] = set()
    pending: list[Value] = [wanted]
    while pending:
        value = pending.pop()
        if isinstance(value, Const) or value in seen:
            continue
        seen.add(value)
        if isinstance(loop, For) and value is loop.index:
            continue
        if value in places:
            needed.add(places[value])
            pending.append(loop.body.results[places[value]])
            continue
        stmt = defined.get(value)
        if value.type.shape or not isinstance(stmt, (Let, If)):
            return None
        if isinstance(stmt, If):
            k = stmt.targets.index(value)
            pending += [stmt.pred, stmt.then.results[k], stmt.orelse.results[k]]
        elif len(stmt.targets) == 1 and stmt.op.is_pure:
            pending += stmt.args
        else:
            return None
    return sorted(needed)


class _Trip:
    """The values of one trip, each when it is asked for."""

    def __init__(self, defined: Mapping[Var, Stmt], known: Mapping[Var, Any]) -> None:
        self.defined, self.known = defined, dict(known)

    def value(self, of: Value) -> Any:
        if isinstance(of, Const):
            return _number(of)
        if of not in self.known:
            self.known[of] = self._made(of)
        return self.known[of]

    def _made(self, of: Var) -> Any:
        stmt = self.defined[of]
        if isinstance(stmt, If):
            arm = stmt.then if self.value(stmt.pred) else stmt.orelse
            return self.value(arm.results[stmt.targets.index(of)])
        assert isinstance(stmt, Let)
        return of.type.numpy.type(stmt.op.reference(*map(self.value, stmt.args), **stmt.params))


def _number(value: Value) -> Any:
    assert isinstance(value, Const) and not value.type.shape
    return value.type.numpy.type(value.value)
