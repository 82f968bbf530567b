"""What of a func depends on its batch, and what of that is worth computing for the whole batch at once.

A value depends on the batch if it is computed from a batched param, or by control flow that follows one.  A statement
then is of one `Kind`: it stays outside of lanes (FIXED), it runs lane by lane (ANCHOR), or it may do either (FREE).

    FIXED    operations that gain from a batch (a matrix times many vectors is a matrix product), and control flow
             around them; a branch on a batched value too: its lanes are parted
    ANCHOR   other branches and loops on batched values, loops without such operations, calls, and all that handles
             arrays whose sizes differ from lane to lane

What does not depend on the batch is computed once.  A loop that all elements of the batch share also stays outside if
most of its work is the same for all of them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, assert_never

from ..ir.dims import symbols_of
from ..ir.nodes import Block, Call, Check, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, blocks, bound_inside, operands, reads, sizes_used
from .batched_rules import has_rule

TRIPS = 16          # what an axis or a loop of unknown length counts for
SHARED_WORK = 64    # work that is the same for all lanes of an arm, from which on it is worth parting the lanes


class Parts(enum.Enum):
    """Where an arm may have just its share of the lanes as a batch: AT_THE_TOP, elsewhere the batch is filled up to its
    whole size.  NOWHERE: such branches are in loops over lanes."""

    EVERYWHERE = enum.auto()
    AT_THE_TOP = enum.auto()
    NOWHERE = enum.auto()


_parts: ContextVar[Parts] = ContextVar("parts", default=Parts.EVERYWHERE)


@contextmanager
def parting(where: Parts) -> Iterator[None]:
    """At the top where a derivative follows, since tapes have slots of one size, made beforehand.  Nowhere where all
    sizes are to be known beforehand."""
    token = _parts.set(where if _parts.get() is not Parts.NOWHERE else Parts.NOWHERE)
    try:
        yield
    finally:
        _parts.reset(token)


class Kind(enum.Enum):
    ONCE = enum.auto()
    FREE = enum.auto()
    FIXED = enum.auto()
    ANCHOR = enum.auto()


class Dependence:
    """vars: those of all blocks that depend on the batch."""

    def __init__(self, func: Func, batched: Sequence[bool]) -> None:
        self.vars: set[Var] = {p for p, is_batched in zip(func.params, batched, strict=True) if is_batched}
        self._named = {v.name: v for v in _all_vars(func) if not v.type.shape and v.type.dtype == "int64"}
        self._reads: dict[Stmt, set[Var]] = {}
        self._kinds: dict[Stmt, Kind] = {}
        self._top = set(func.body.stmts)
        self._visit(func.body.stmts)

    def __contains__(self, value: Value) -> bool:
        return value in self.vars

    def reads(self, stmt: Stmt) -> set[Var]:
        """Vars that the statement reads, blocks included, also as sizes."""
        if stmt not in self._reads:
            found: set[Any] = {*operands(stmt), *sizes_used(stmt)}.union(*(reads(x) for x in blocks(stmt)))
            named = (self._named.get(x) if isinstance(x, str) else x for x in found)
            self._reads[stmt] = {x for x in named if isinstance(x, Var)}
        return self._reads[stmt]

    def results_of(self, block: Block) -> set[Var]:
        """Vars that a block's results read, also as sizes."""
        sizes = {name for r in block.results for d in r.type.shape for name in symbols_of(d)}
        return {v for v in (*block.results, *map(self._named.get, sizes)) if isinstance(v, Var)}

    def differs(self, value: Value) -> bool:
        """Whether the batch decides the size of the array."""
        return any(self._named.get(name) in self.vars for d in value.type.shape for name in symbols_of(d))

    # --- what depends ----------------------------------------------------------------------------------------------

    def _visit(self, stmts: Sequence[Stmt]) -> None:
        for stmt in stmts:
            match stmt:
                case Let() | Call():
                    if not self.vars.isdisjoint(self.reads(stmt)):
                        self.vars.update(stmt.targets)
                case Check():
                    pass
                case If():
                    self._visit(stmt.then.stmts)
                    self._visit(stmt.orelse.stmts)
                    for target, *results in zip(stmt.targets, stmt.then.results, stmt.orelse.results, strict=True):
                        if stmt.pred in self or any(r in self for r in results):
                            self.vars.add(target)
                case For() | While():
                    self._visit_loop(stmt)
                case _:
                    assert_never(stmt)

    def _visit_loop(self, loop: For | While) -> None:
        before = -1
        while before != len(self.vars):                 # a carry may depend on the batch after a trip
            before = len(self.vars)
            every = self.is_led(loop)
            for carry, init, result in zip(loop.carries, loop.inits, loop.body.results, strict=True):
                if every or init in self or result in self:
                    self.vars.add(carry)
            for block in blocks(loop):
                self._visit(block.stmts)
        self.vars.update(t for t, c in zip(loop.targets, loop.carries, strict=True) if c in self)

    def is_led(self, stmt: Stmt) -> bool:
        """Whether the batch decides which way a branch or loop goes."""
        match stmt:
            case If():
                return stmt.pred in self
            case For():
                return any(v in self for v in (stmt.lo, stmt.hi, stmt.step))
            case While():
                return stmt.cond.results[0] in self
            case _:
                return False

    # --- kinds -----------------------------------------------------------------------------------------------------

    def kind(self, stmt: Stmt) -> Kind:
        if stmt not in self._kinds:
            self._kinds[stmt] = self._find_kind(stmt)
        return self._kinds[stmt]

    def _find_kind(self, stmt: Stmt) -> Kind:
        if self.vars.isdisjoint(self.reads(stmt)):
            return Kind.ONCE
        if any(map(self.has_own_sizes, _with_inner(stmt))):
            return Kind.ANCHOR
        match stmt:
            case Let():
                return Kind.FIXED if self.gains(stmt) else Kind.FREE
            case Check():
                return Kind.ANCHOR if stmt.prints else Kind.FREE
            case Call():
                return Kind.FIXED if has_rule(stmt) else Kind.ANCHOR
            case If():
                if self.gains(stmt):
                    return Kind.FIXED
                return Kind.ANCHOR if self.is_led(stmt) else Kind.FREE
            case For() | While():
                return Kind.FIXED if self.gains(stmt) else Kind.ANCHOR
            case _:
                assert_never(stmt)

    def has_own_sizes(self, stmt: Stmt) -> bool:
        """Whether the batch decides the size of an array that comes from outside of the statement or leaves it."""
        sizes = {name for inner in _with_inner(stmt) for name in sizes_used(inner)}
        inside = {v for block in blocks(stmt) for s in all_statements(block) for v in (*s.targets, *bound_inside(s))}
        inside.update(bound_inside(stmt))
        return any(self._named.get(name) in self.vars - inside for name in sizes)

    def gains(self, stmt: Stmt) -> bool:
        """Whether it has operations for which one call for the batch is worth more than a call for each lane."""
        match stmt:
            case Let():
                flags = [a in self for a in stmt.args]
                return any(flags) and stmt.op.gains_from_batch([a.type for a in stmt.args], flags, **stmt.params)
            case If():
                if self.is_led(stmt) and _parts.get() is Parts.NOWHERE:
                    return False
                if any(self.gains(s) for block in blocks(stmt) for s in block.stmts):
                    return True
                once, each = self._work(stmt)
                return self.is_led(stmt) and once >= SHARED_WORK and once > each
            case For() | While():
                if self.is_led(stmt):
                    return False
                if any(self.gains(s) for block in blocks(stmt) for s in block.stmts):
                    return True
                once, each = self._work(stmt)
                return once > each
            case Call() | Check():
                return False
            case _:
                assert_never(stmt)

    def may_resize(self, stmt: If) -> bool:
        """Whether arms may have batches of other sizes."""
        return _parts.get() is Parts.EVERYWHERE or (_parts.get() is Parts.AT_THE_TOP and stmt in self._top)

    def _work(self, stmt: Stmt) -> tuple[int, int]:
        """About how much is computed once for all lanes, and how much for each."""
        once = each = 0
        for block in blocks(stmt):
            for inner in block.stmts:
                if isinstance(inner, Let):
                    amount = _amount(inner)
                    if self.kind(inner) is Kind.ONCE:
                        once += amount
                    else:
                        each += amount
                    continue
                shared, own = self._work(inner)
                trips = TRIPS if isinstance(inner, (For, While)) else 1
                once, each = once + trips * shared, each + trips * own
        return once, each


def _amount(let: Let) -> int:
    """The work of an operation; reading and arranging is none."""
    if let.op.access is not None or not let.args:
        return 0
    rank = max((v.type.rank for v in (*let.args, *let.targets)), default=0)
    return int(let.op.cost) * TRIPS ** rank


def _all_vars(func: Func) -> Iterable[Var]:
    yield from func.params
    for stmt in all_statements(func.body):
        yield from (*stmt.targets, *bound_inside(stmt))


def _with_inner(stmt: Stmt) -> Iterable[Stmt]:
    yield stmt
    for block in blocks(stmt):
        yield from all_statements(block)
