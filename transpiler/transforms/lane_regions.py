"""Which statements of a block share one loop over lanes.

    before                      after
    n = while ... x ...         n, y, z = for lane in ...:      what lies between two loops comes along,
    y = add(n, 1.0)               while ..., add ..., if ...    and cheap arithmetic on scalars at both ends
    z = if y > x ...

So what goes from one to the next is a scalar of the lane, or an array of it alone.  An operation that gains from a
batch is between them only if it needs nothing of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.nodes import Block, Call, Check, Let, Stmt, Var
from ..ir.walk import all_statements, blocks
from ..ops.base import Lowering
from .batch_dependence import Dependence, Kind

CHEAP = 4           # as in lowering: what costs more is worth a loop of its own, which is vectorised


@dataclass(frozen=True)
class Region:
    """members: numbers of statements.  close: where the loop over lanes goes; none before it that is no member reads
    what members make.  leaving: what members make that is read elsewhere.  is_whole: it is all of the func, because of
    arrays of the lanes' own sizes."""

    members: tuple[int, ...]
    close: int
    leaving: tuple[Var, ...]
    is_whole: bool = False


def regions_of(block: Block, depends: Dependence) -> list[Region]:
    """The regions of a block, none of which reads from a later one."""
    stmts = block.stmts
    uses = _uses(block, depends)
    found: list[Region] = []
    cores = _cores(stmts, depends)
    taken = {k for core in cores for k in core}
    for core in cores:
        members = set(core)
        _absorb_before(stmts, members, taken, uses, depends)
        _absorb_behind(stmts, members, taken, core[-1], depends)
        taken |= members
        inside = tuple(sorted(members))
        leaving = tuple(t for k in inside for t in stmts[k].targets if not uses.get(t, set()) <= members)
        found.append(Region(inside, core[-1], leaving))
    return found


def _cores(stmts: Sequence[Stmt], depends: Dependence) -> list[list[int]]:
    cores: list[list[int]] = []
    core: list[int] = []
    tail: list[int] = []                # may be between two anchors of a region
    made: set[Var] = set()
    for k, stmt in enumerate(stmts):
        kind = depends.kind(stmt)
        if kind is Kind.ANCHOR:
            core += [*tail, k]
            tail = []
            made.update(stmt.targets)
        elif core:
            is_after = not made.isdisjoint(depends.reads(stmt)) or _may_raise(stmt)
            if is_after and kind is Kind.FREE:
                tail.append(k)
                made.update(stmt.targets)
            elif is_after:
                cores.append(core)
                core, tail, made = [], [], set()
    return [*cores, core] if core else cores


def _absorb_before(stmts: Sequence[Stmt], members: set[int], taken: set[int], uses: dict[Var, set[int]],
                   depends: Dependence) -> None:
    """Cheap arithmetic on scalars that the region alone reads."""
    for k in reversed(range(max(members))):
        if k not in members and k not in taken and _is_cheap(stmts[k], depends) and (
                all(uses.get(t, set()) <= members for t in stmts[k].targets)):
            members.add(k)


def _absorb_behind(stmts: Sequence[Stmt], members: set[int], taken: set[int], close: int,
                   depends: Dependence) -> None:
    """Cheap arithmetic on scalars of the region."""
    made = {t for k in members for t in stmts[k].targets}
    later = {t for k in range(close, len(stmts)) if k not in members for t in stmts[k].targets}
    for k in range(close + 1, len(stmts)):
        read = depends.reads(stmts[k])
        if k not in taken and _is_cheap(stmts[k], depends) and not made.isdisjoint(read) and later.isdisjoint(read):
            members.add(k)
            made.update(stmts[k].targets)
            later.difference_update(stmts[k].targets)


def _is_cheap(stmt: Stmt, depends: Dependence) -> bool:
    return (isinstance(stmt, Let) and stmt.op.lowering is Lowering.ELEMENTWISE and stmt.op.cost <= CHEAP
            and depends.kind(stmt) is Kind.FREE and not any(t.type.shape for t in stmt.targets))


def _may_raise(stmt: Stmt) -> bool:
    return any(isinstance(s, (Check, Call)) or (isinstance(s, Let) and s.op.raises is not None)
               for s in (stmt, *(s for block in blocks(stmt) for s in all_statements(block))))


def _uses(block: Block, depends: Dependence) -> dict[Var, set[int]]:
    """The statements that read each value; -1 for the block's results."""
    uses: dict[Var, set[int]] = {}
    for k, stmt in enumerate(block.stmts):
        for var in depends.reads(stmt):
            uses.setdefault(var, set()).add(k)
    for var in depends.results_of(block):
        uses.setdefault(var, set()).add(-1)
    return uses
