"""What is dear in a loop whose trips wait for each other, but waits for nothing itself, is computed ahead in vectors.

    before                                        after
    s = for i in 0 .. n carry (t = 0.0):          s = for b in 0 .. n step 128 carry (t = 0.0):
      e = exp(load(x, i))                           for k in 0 .. min(128, n - b) abreast:
      yield t + e                                     ahead[k] = exp(load(x, b + k))
                                                    for k in 0 .. min(128, n - b) carry (t):
                                                      yield t + ahead[k]

A sum in the user's order cannot be vectorised, nor can a recurrence: LLVM leaves all of such a loop as it is.  Every
value is computed as before, bit for bit.  `abreast` comes before: it has more to gain where loops around are apart.

After the loop distribution of R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures" (2001), 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import ops
from ..ir.build import building, for_loop, int_const, located
from ..ir.index import At
from ..ir.nodes import Const, For, Func, Let, Stmt, Value, Var
from ..ir.walk import Copier, all_statements, exchanged, sizes_used
from ..ops.base import Lowering

TRIPS = 128         # at a time: what is computed ahead stays in the nearest cache
DEAR = 4            # what costs more, in additions, is computed ahead
WORTH = 8           # what all that must cost


def compute_ahead(func: Func) -> Func:
    if not any(isinstance(s, Let) and s.op.cost > DEAR for s in all_statements(func.body)):
        return func

    def change(stmt: Stmt, old: Stmt) -> list[Stmt]:
        found = _ahead_of(stmt) if isinstance(stmt, For) else []
        if not found or not isinstance(stmt, For):
            return [stmt]
        with building() as b, located(stmt.loc):
            _emit(stmt, found)
        (loop,) = b.stmts
        assert isinstance(loop, For)
        return [replace(loop, targets=stmt.targets)]        # others refer to these

    return exchanged(func, change)


def _ahead_of(loop: For) -> list[Let]:
    """The dear statements of the loop that wait for nothing, if it is worth it."""
    if loop.parallel or loop.abreast or loop.segment or not isinstance(loop.step, Const) or _is_short(loop) or not all(
            isinstance(s, Let) and s.op.is_pure and s.op.raises is None for s in loop.body.stmts):
        return []
    lets = [s for s in loop.body.stmts if isinstance(s, Let)]
    waiting: set[Value] = set(loop.carries)
    dear: list[Let] = []
    for let in lets:
        if any(a in waiting for a in let.args) or any(t.type.shape for t in let.targets):
            waiting.update(let.targets)
        elif let.op.lowering is Lowering.ELEMENTWISE and let.op.cost > DEAR and let.target.type.is_inexact:
            dear.append(let)
    bound = {v.name for s in lets for v in s.targets} | {loop.index.name}
    if sum(let.op.cost for let in dear) < WORTH or not _waits(loop, lets) or any(
            sizes_used(s) & bound for s in lets):
        return []
    return dear


def _is_short(loop: For) -> bool:
    return isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and (
        abs(loop.hi.value - loop.lo.value) < 8 * abs(loop.step.value))     # type: ignore[union-attr]


def _waits(loop: For, lets: Sequence[Let]) -> bool:
    """Whether a trip waits for the one before: it carries a scalar that is no sum in any order."""
    made = {let.targets[0]: let for let in lets}
    return any(not c.type.shape and not (isinstance(r, Var) and r in made and made[r].op.any_order)
               for c, r in zip(loop.carries, loop.body.results))


def _emit(loop: For, dear: Sequence[Let]) -> None:
    """The loops instead, at the current builder."""
    assert isinstance(loop.step, Const)
    step = int(loop.step.value)
    needed = _needed(loop, dear)

    def block(first: Var, *carries: Value) -> Sequence[Value]:
        left = loop.hi - first if step > 0 else first - loop.hi                                 # type: ignore[operator]
        size = abs(step)
        trips = left if size == 1 else ops.floor_divide(left + int_const(size - 1), int_const(size))
        count = ops.minimum(trips, int_const(TRIPS))

        def position(k: Value) -> Value:
            by = k if size == 1 else k * int_const(size)
            return first + by if step > 0 else first - by                                       # type: ignore[operator]

        def ahead(k: Var, *now: Value) -> Sequence[Value]:
            own = Copier({loop.index: position(k)})
            for let in needed:
                own.statement(let)
            return [ops.store(room, own.value(let.target), k, index=(At(),)) for room, let in zip(now, dear)]

        rooms = [ops.empty(shape=(TRIPS,), dtype=let.target.type.dtype) for let in dear]
        full = for_loop(int_const(0), count, rooms, ahead, index="trip", abreast=True,
                        hints=[let.target.name for let in dear])

        def trip(k: Var, *now: Value) -> Sequence[Value]:
            own = Copier({loop.index: position(k), **dict(zip(loop.carries, now))})
            for let, room in zip(dear, full):
                own.values[let.target] = ops.load(room, k, index=(At(),))
            for stmt in loop.body.stmts:
                if stmt not in dear:
                    own.statement(stmt)
            return [own.value(r) for r in loop.body.results]

        return for_loop(int_const(0), count, carries, trip, index="trip", hints=[c.name for c in loop.carries])

    for_loop(loop.lo, loop.hi, loop.inits, block, step=step * TRIPS, index=loop.index.name,
             hints=[c.name for c in loop.carries])


def _needed(loop: For, dear: Sequence[Let]) -> list[Let]:
    """What the dear values follow from, in order."""
    wanted = {let.target for let in dear}
    found: list[Let] = []
    for stmt in reversed(loop.body.stmts):
        if isinstance(stmt, Let) and not wanted.isdisjoint(stmt.targets):
            found.insert(0, stmt)
            wanted.update(a for a in stmt.args if isinstance(a, Var))
    return found
