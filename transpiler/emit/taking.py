"""Which arrays the functions of a module take over from their callers, to write to them in place.

    func walk(a: f64[n], i: i64) -> (f64[n]):       takes a: it stores to it
      b = store(a, 1.0, i)
      c = call walk(b, i + 1)                       b is nobody's then, and needs no copy
      return c

The caller copies what it needs afterwards, or what is not its own (see `storage`).  A function that calls itself then
works in one array, rather than in a copy for each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.nodes import Call, For, Let, Value, While
from .access import WRITES
from .plan import Plan


def taken_params(plans: Sequence[Plan]) -> dict[str, frozenset[int]]:
    """By function, the numbers of the parameters that it takes: the least answer that agrees with itself."""
    taken: dict[str, frozenset[int]] = {plan.func.name: frozenset() for plan in plans}
    while True:
        found = {plan.func.name: _taken(plan, taken) for plan in plans}
        if found == taken:
            return taken
        taken = found


def _taken(plan: Plan, taken: Mapping[str, frozenset[int]]) -> frozenset[int]:
    written: set[Value] = set()
    for stmt in plan.statements():
        match stmt:
            case Let() if plan.roles[stmt] in WRITES:
                written.add(plan.root(stmt.args[0]))
            case Call():
                written.update(plan.root(stmt.args[k]) for k in taken[stmt.func])
            case For() | While():
                written.update(plan.root(stmt.inits[k]) for k in plan.carried[stmt])
            case _:
                pass
    return frozenset(k for k, param in enumerate(plan.func.params) if param.type.shape and param in written)
