"""Loops around several inner loops, of which trips wait for the one before, become loops around one each.

    before                                        after
    for j in 0 .. n:                              for j in 0 .. n:
      for k in 1 .. m:                              for k in 1 .. m:
        a[j, k] += a[j, k - 1]                        a[j, k] += a[j, k - 1]
      b[j, 0] = a[j, m]                             b[j, 0] = a[j, m]
      for k in 1 .. m:                            for j in 0 .. n:
        b[j, k] += b[j, k - 1]                      for k in 1 .. m:
                                                      b[j, k] += b[j, k - 1]

Such rows are then made side by side (`jam`), which hides that each element waits for another.  `dependence` proves that
no trip of a later loop touches what later trips of an earlier one do.

Loop distribution: R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures" (2001), chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from ..ir.build import building
from ..ir.ints import Ints
from ..ir.nodes import For, Func, Stmt, Value
from ..ir.walk import exchanged
from .dependence import Dependences, any_meet
from .nest_emitter import NestEmitter
from .nest_parts import Nest, Part, parts_of
from .recurrences import recurs


def split_loops(func: Func) -> Func:
    ints = Ints(func.body)

    def change(stmt: Stmt, old: Stmt) -> list[Stmt]:
        new = _split(stmt, ints) if isinstance(stmt, For) and stmt is old else None
        return [stmt] if new is None else new

    return exchanged(func, change)


def _split(loop: For, ints: Ints) -> list[Stmt] | None:
    inner = [s for s in loop.body.stmts if isinstance(s, For)]
    if len(inner) < 2:
        return None
    nest = parts_of(loop, ints)
    if nest is None or not any(recurs(other, nest.versions, ints) for other in inner):
        return None
    groups = _groups(nest, ints)
    if len(groups) < 2:
        return None
    with building() as b:
        _Emitter(nest).emit(groups)
    return b.stmts


def _groups(nest: Nest, ints: Ints) -> list[tuple[Part, ...]]:
    """The parts of the loops that it can become, each with one inner loop if that is possible; writes between two inner
    loops go with either."""
    dependences = Dependences(ints)
    parts, groups, start = nest.parts, [], 0
    loops = [k for k, part in enumerate(parts) if part.loop is not None]
    for first, second in pairwise(loops):
        for cut in range(second, max(first, start), -1):
            earlier, later = ([a for part in some for a in part.accesses] for some in (parts[:cut], parts[cut:]))
            if not any_meet(dependences, later, earlier, [(nest.loop, nest.loop, "before")]):
                groups.append(parts[start:cut])
                start = cut
                break
    return [*groups, parts[start:]]


class _Emitter(NestEmitter):
    def emit(self, groups: Sequence[tuple[Part, ...]]) -> None:
        for parts in groups:
            roots = sorted({r for part in parts for r in part.roots})
            self.loop(self.nest.loop, roots, partial(self._trips, parts))
        self.finish()

    def _trips(self, parts: tuple[Part, ...], index: Value) -> None:
        for part in parts:
            self.trip(part, index)
