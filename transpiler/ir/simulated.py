"""How often a `while` loop runs whose condition follows from constants alone, by running what it follows from.

    n = while carry (n = 5, x = x0):   cond: n > 0    do: yield n // 2, f(x)          3 trips
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .nodes import Block, Const, Let, Value, While

MOST = 10_000           # trips that are run


def simulated_trips(loop: While) -> int | None:
    """None where the condition needs more than scalars that are known, or does not turn false soon."""
    needed = _needed(loop)
    if needed is None or not all(isinstance(loop.inits[k], Const) for k in needed):
        return None
    carried: dict[Value, Any] = {loop.carries[k]: _number(loop.inits[k]) for k in needed}
    with np.errstate(all="ignore"):
        for trips in range(MOST):
            (going,) = _run(loop.cond, loop.cond.results, carried)
            if not going:
                return trips
            following = _run(loop.body, [loop.body.results[k] for k in needed], carried)
            carried = dict(zip((loop.carries[k] for k in needed), following, strict=True))
    return None


def _needed(loop: While) -> list[int] | None:
    """The carries that the condition follows from, by number; None where anything else has a part in it."""
    places = {c: k for k, c in enumerate(loop.carries)}
    needed: set[int] = set()
    pending: list[tuple[Block, Value]] = [(loop.cond, loop.cond.results[0])]
    while pending:
        block, value = pending.pop()
        if isinstance(value, Const):
            continue
        if value in places:
            if places[value] not in needed:
                needed.add(places[value])
                pending.append((loop.body, loop.body.results[places[value]]))
            continue
        let = next((s for s in block.stmts if value in s.targets), None)
        if not isinstance(let, Let) or len(let.targets) != 1 or not let.op.is_pure or value.type.shape:
            return None
        pending += [(block, a) for a in let.args]
    return sorted(needed)


def _run(block: Block, wanted: Sequence[Value], carried: dict[Value, Any]) -> list[Any]:
    known = dict(carried)

    def value(of: Value) -> Any:
        if isinstance(of, Const):
            return _number(of)
        if of not in known:
            let = next(s for s in block.stmts if of in s.targets)
            assert isinstance(let, Let)
            known[of] = of.type.numpy.type(let.op.reference(*map(value, let.args), **let.params))
        return known[of]

    return [value(w) for w in wanted]


def _number(value: Value) -> Any:
    assert isinstance(value, Const) and not value.type.shape
    return value.type.numpy.type(value.value)
