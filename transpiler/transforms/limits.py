"""Derivatives at points where an operation's rule is 0/0: equal eigenvalues and singular values.

The rule of such an operation, y = op(a), divides by differences of its results.  Where two coincide it leaves the
quotient out; here its limit is added.  `op.parting` gives a direction p in which coinciding results part.  The
numerator vanishes at y for every function that is smooth in a, so its quotient by the vanishing difference tends to

    (its derivative along p) / (the difference of p),

which is one more forward derivative, of what comes after the operation:

    reverse   of its cotangent:  moved = d ct(y + e p) / de, and `op.vjp_limit(moved, ...)` is added to its vjp
    forward   `op.jvp_limit` gives the turn r that is left out, divided by the difference of p instead; to the tangent
              of a result f(y) is added d^2 f(y + e p + h r) / de dh

Both are exact where results coincide, and as good as half the digits where they nearly do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.build import current
from ..ir.nodes import Let, Stmt, Value, Var
from ..ops.base import Zeros, cotangent_zeros

Push = Callable[[Stmt, dict[Var, Value]], None]     # emits the tangents of a statement's targets


def seeded(targets: Sequence[Var], directions: Sequence[Value | None]) -> dict[Var, Value]:
    return {target: d for target, d in zip(targets, directions, strict=True) if d is not None}


def add_vjp_limits(let: Let, cts: Sequence[Value | None], parts: Sequence[Value | None], after: Sequence[Stmt],
                   push: Push) -> Sequence[Value | None]:
    """The cotangents `parts` of the arguments with the limits added.  `after`: the statements behind `let` that its
    cotangents `cts` come from."""
    directions = let.op.parting(let.args, let.targets, **let.params)
    if directions is None or all(ct is None for ct, d in zip(cts, directions) if d is None):
        return parts        # of coinciding results only what does not part, but turns, has an undetermined derivative
    tangents = seeded(let.targets, directions)
    for stmt in after:
        push(stmt, tangents)
    moved = [tangents.get(ct) if isinstance(ct, Var) else None for ct in cts]
    if all(m is None for m in moved):
        return parts
    with cotangent_zeros(Zeros.MASKED):
        more = let.op.vjp_limit(moved, let.args, let.targets, **let.params)
    return [a if b is None else b if a is None else a + b for a, b in zip(parts, more, strict=True)]


def jvp_limits(let: Let, incoming: Sequence[Value | None], after: Sequence[Stmt], results: Sequence[Value],
               push: Push) -> list[Value | None]:
    """What is to be added to the tangents of `results`; `after`: the func's own statements behind `let`."""
    nothing: list[Value | None] = [None] * len(results)
    directions = let.op.parting(let.args, let.targets, **let.params)
    if directions is None:
        return nothing
    turned = seeded(let.targets, let.op.jvp_limit(incoming, let.args, let.targets, **let.params))
    start = len(current().stmts)
    for stmt in after:
        push(stmt, turned)
    moving = seeded(let.targets, directions)
    for stmt in (*after, *current().stmts[start:]):
        push(stmt, moving)
    along = [turned.get(r) if isinstance(r, Var) else None for r in results]
    return [moving.get(v) if isinstance(v, Var) else None for v in along]
