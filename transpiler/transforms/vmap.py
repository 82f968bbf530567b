"""Batching: each statement on a leading batch axis of the arguments that have one.

    before                         after (x batched, w not)
    func f(w: f64[n], x: f64[n]):  func f_vmap(w: f64[n], x: f64[b,n]):
      y = multiply(w, x)             w_1 = broadcast(w) {shape=(b,n), axes=(1,)}
      return y                       y = multiply(w_1, x)
                                     return y

A branch or loop that goes the same way for all elements of the batch stays one, around batched statements.  What goes
its own way for each is put into a loop over lanes (`lane_regions`, `lane_loop`); where its arms have operations that
gain from a batch, the lanes are parted and each arm has its share of them as a batch (`parted_lanes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never

from .. import ops
from ..errors import error
from ..ir.build import Names, building, choose, current, for_loop, int_const, located, size_value
from ..ir.dims import symbols_of
from ..ir.index import At
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import all_statements, used_names
from ..report import Batch, Report
from .batch_dependence import Dependence, Kind
from .batched_rules import call_ruled
from .lane_loop import LaneCopier, lane_of, loop_over_lanes
from .lane_regions import Region, regions_of
from .once import once
from .parted_lanes import parted


def vmap(func: Func, batched: Sequence[bool], size: Any, *, name: str | None = None,
         report: Report | None = None, is_told: bool = False, has_axis: Sequence[bool] | None = None,
         spread: int | None = None) -> Func:
    """The func over a batch axis 0 of length `size` (a dimension) of each param that is `batched`.

    Every result has the batch axis first, also those that do not depend on the batch, unless `has_axis` says which do.
    With `spread`, only so many results do, and others where they depend on the batch.  `report` is told what does so.
    is_told: exceptions say in which lane they were raised.
    """
    depends = Dependence(func, batched)
    with building(Names(used_names(func))) as b:
        batching = Batching(depends, LaneCopier(None, is_told, {}, {}), set(), size)
        params = tuple(batching.widened(p) if is_batched else p
                       for p, is_batched in zip(func.params, batched, strict=True))
        regions = regions_of(func.body, depends)
        if any(depends.differs(v) for region in regions for v in region.leaving):
            regions = [_everything(func, depends)]
        if report is not None:
            report.sweeps.append(_batch_of(func, depends, regions))
        batching.block(func.body, regions)
        results = tuple(batching.copier.value(r) if spread is not None and k >= spread else
                        batching.with_lanes(r) if has_axis is None or has_axis[k] else batching.without_lanes(r)
                        for k, r in enumerate(func.results))
    return Func(name or f"{func.name}_vmap", params, Block(tuple(b.stmts), results), func.result_names)


def along(value: Value, size: Any) -> Value:
    """The value repeated along a new leading axis."""
    if isinstance(value, Const):
        return Const(value.value, Type(value.dtype, (size, *value.shape)))
    return ops.broadcast(value, shape=(size, *value.shape), axes=tuple(range(1, value.rank + 1)))


def own_sizes(func: Func, batched: Sequence[bool]) -> list[tuple[int, int]]:
    """Results, by number and axis, whose size each lane decides for itself."""
    depends = Dependence(func, batched)
    regions = regions_of(func.body, depends)
    if not any(depends.differs(v) for v in func.results) and not any(
            depends.differs(v) for region in regions for v in region.leaving):
        return []
    return _sizes_made(func, depends)


def _sizes_made(func: Func, depends: Dependence) -> list[tuple[int, int]]:
    """Results, by number and axis, whose size is found inside of the func, if all of it is done lane by lane."""
    bound = {name for p in func.params for d in p.type.shape for name in symbols_of(d)}
    bound |= {p.name for p in func.params if not p.type.shape and p not in depends.vars}
    made = set(used_names(func)) - bound
    return [(k, axis) for k, result in enumerate(func.results) for axis, d in enumerate(result.type.shape)
            if symbols_of(d).keys() & made]


def _everything(func: Func, depends: Dependence) -> Region:
    """One region of all statements: arrays of the lanes' own sizes go through the func."""
    if _sizes_made(func, depends):
        raise error("E311", "a batched value decides the size of a result", None)
    count = len(func.body.stmts)
    made = {t for s in func.body.stmts for t in s.targets}
    return Region(tuple(range(count)), count - 1, tuple(dict.fromkeys(r for r in func.results if r in made)), True)  # type: ignore[misc]


def _batch_of(func: Func, depends: Dependence, regions: Sequence[Region]) -> Batch:
    """What depends on the batch, and which statements run lane by lane."""
    whole = any(len(region.members) == len(func.body.stmts) for region in regions)
    looped = frozenset(s for s in all_statements(func.body) if whole or (
        isinstance(s, (If, For, While)) and depends.kind(s) is Kind.ANCHOR))
    return Batch(func, None if whole else frozenset(depends.vars), looped)


class Batching:
    """Emits statements over a batch of `size` elements.  lanes: which of the new values have the batch axis; numbers:
    which lanes these elements are; all in order, without."""

    def __init__(self, depends: Dependence, copier: LaneCopier, lanes: set[Var], size: Any,
                 numbers: Value | None = None) -> None:
        self.depends, self.copier, self.lanes, self.size, self.numbers = depends, copier, lanes, size, numbers

    # --- values ----------------------------------------------------------------------------------------------------

    def widened(self, old: Var, name: str | None = None) -> Var:
        """The var that stands for `old` of all elements."""
        type = self.copier.type(old.type)
        return self.stands(old, Var(name or old.name, Type(type.dtype, (self.size, *type.shape))))

    def stands(self, old: Var, new: Any) -> Any:
        """`new`, which has the batch axis, as what stands for `old`.  A constant is the same for all elements."""
        if isinstance(new, Const) and new.type.rank > old.type.rank:
            new = Const(new.value, new.type.with_shape(new.type.shape[1:]))
        self.copier.values[old] = new
        if isinstance(new, Var):
            self.lanes.add(new)
        return new

    def has_lanes(self, old: Value) -> bool:
        return self.copier.value(old) in self.lanes

    def with_lanes(self, old: Value) -> Value:
        """What stands for the value, with the batch axis."""
        value = self.copier.value(old)
        return value if value in self.lanes else along(value, self.size)

    def without_lanes(self, old: Value) -> Value:
        """What stands for a value that is the same for all elements."""
        value = self.copier.value(old)
        return lane_of(value, int_const(0)) if value in self.lanes else value

    # --- statements ------------------------------------------------------------------------------------------------

    def for_share(self, size: Any, rows: Value) -> Batching:
        """The same for a batch of the elements in some rows: nothing is known yet that has its batch axis."""
        numbers = rows if self.numbers is None else ops.gather(self.numbers, rows, axes=(0,))
        return Batching(self.depends, LaneCopier(None, self.copier.is_told, self.copier.values, self.copier.sizes),
                        set(), size, numbers)

    def number(self, row: Value) -> Value:
        """The number of the lane in a row of the batch."""
        return row if self.numbers is None else ops.load(self.numbers, row, index=(At(),))

    def block(self, block: Block, regions: Sequence[Region] | None = None) -> None:
        """Emit the statements of a block."""
        if regions is None:
            regions = regions_of(block, self.depends)
        members = {k for region in regions for k in region.members}
        closing = {region.close: region for region in regions}
        for k, stmt in enumerate(block.stmts):
            if k not in members:
                with located(stmt.loc):
                    self.statement(stmt)
            if k in closing:
                with located(stmt.loc):
                    self._region(closing[k], block)

    def _region(self, region: Region, block: Block) -> None:
        """A loop over lanes; what its statements make that is the same for all lanes is made once, before it."""
        inside = [block.stmts[j] for j in region.members]
        leaving = region.leaving
        if not region.is_whole:
            if any(v not in self.depends for v in leaving):
                for stmt in inside:         # also what only later parts read; dead code goes later
                    once(self, stmt)
            leaving = tuple(v for v in leaving if v in self.depends)
        if leaving or not all(isinstance(s, Let) for s in inside):
            loop_over_lanes(self, inside, leaving)

    def nested(self, block: Block, moving: Sequence[bool]) -> Block:
        """A block inside of control flow that all elements share; moving: which of its results have the batch axis."""
        with building() as inner:
            self.block(block)
            results = tuple(self.with_lanes(r) if moves else self.copier.value(r)
                            for r, moves in zip(block.results, moving, strict=True))
        return Block(tuple(inner.stmts), results)

    def statement(self, stmt: Stmt) -> None:
        """Emit a statement that is in no loop over lanes."""
        if self.depends.kind(stmt) is Kind.ONCE:
            if not (isinstance(stmt, Check) and self.size == 0):        # a check of no element holds
                self.copier.statement(stmt)
            return
        match stmt:
            case Let():
                self._let(stmt)
            case Check():
                self._check(stmt)
            case If():
                if self.depends.is_led(stmt):
                    parted(self, stmt)
                else:
                    self._branch(stmt)
            case For() | While():
                self._loop(stmt)
            case Call():
                call_ruled(self, stmt)          # others are made in loops over lanes
            case _:
                assert_never(stmt)

    def _let(self, let: Let) -> None:
        args = tuple(map(self.copier.value, let.args))
        flags = [a in self.lanes for a in args]
        if not any(flags):
            self.copier.statement(let)
            return
        results = let.op.batch(args, flags, **self.copier.params(let.params))
        for target, value in zip(let.targets, results if let.op.result_count > 1 else (results,), strict=True):
            self.stands(target, value)

    def _check(self, check: Check) -> None:
        """It raises for the first element for which it does not hold; which one that is, is looked for then."""
        holds = self.copier.value(check.pred)
        if holds not in self.lanes:
            holds = along(holds, self.size)
        numbers = [v for v in (*check.values, *check.lanes) if self.has_lanes(v)]

        def look() -> list[Value]:
            def lane(index: Value) -> list[Value]:
                own = LaneCopier(self.number(index), self.copier.is_told, self.copier.values, self.copier.sizes)
                for v in (check.pred, *numbers):
                    if isinstance(v, Var) and self.has_lanes(v):
                        own.values[v] = lane_of(self.copier.value(v), index)
                own.statement(check)
                return []

            for_loop(int_const(0), size_value(self.size), (), lane, index="lane")
            return []

        choose(ops.all(holds, axes=(0,)), list, look)

    def _branch(self, stmt: If) -> None:
        moving = [t in self.depends for t in stmt.targets]
        pred = self.copier.value(stmt.pred)
        then, orelse = (self.nested(x, moving) for x in (stmt.then, stmt.orelse))
        current().stmts.append(If(self._targets(stmt.targets, moving), pred, then, orelse, stmt.loc))

    def _loop(self, loop: For | While) -> None:
        """What a trip changes has the batch axis from the first trip on."""
        moving = [c in self.depends for c in loop.carries]
        inits = tuple(self.with_lanes(v) if moves else self.copier.value(v)
                      for v, moves in zip(loop.inits, moving, strict=True))
        if isinstance(loop, For):
            lo, hi, step = map(self.copier.value, (loop.lo, loop.hi, loop.step))
            index, carries = self.copier.bind(loop.index), self._targets(loop.carries, moving)
            body = self.nested(loop.body, moving)
            is_parallel = loop.parallel and all(c.type.shape for c, moves in zip(loop.carries, moving) if moves)
            current().stmts.append(replace(loop, targets=self._targets(loop.targets, moving), index=index, lo=lo, hi=hi,
                                 step=step, carries=carries, inits=inits, body=body, parallel=is_parallel))
        else:
            carries = self._targets(loop.carries, moving)
            cond, body = self.nested(loop.cond, [False]), self.nested(loop.body, moving)
            current().stmts.append(While(self._targets(loop.targets, moving), carries, inits, cond, body, loop.loc))

    def _targets(self, olds: Sequence[Var], moving: Sequence[bool]) -> tuple[Var, ...]:
        """New vars for names that a statement binds; ints first, since the others' types may be sized by them."""
        self.copier.bind_all([v for v, moves in zip(olds, moving, strict=True) if not moves])
        return tuple(self.widened(v, current().names.fresh(v.name)) if moves else self.copier.values[v]  # type: ignore[misc]
                     for v, moves in zip(olds, moving, strict=True))
