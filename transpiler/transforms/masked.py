"""Loops over lanes as operations on all lanes at once: what a machine without threads of its own makes of a batch.

    before                                        after
    y = for lane in 0 .. 4 carry (out):           going = x < 10.0
      a = load(x, lane)                           y = while carry (v = x, going):
      b = while carry (v = a):                      cond: any(going)
        cond: v < 10.0                              do:
        do: yield v * 2.0                             w = select(going, v * 2.0, v)
      yield store(out, b, lane)                       yield w, going & (w < 10.0)

A branch on a value of the lane runs both sides and selects; a loop runs until all lanes have ended, and a lane that
has ended keeps what it had.  So the side that is not taken decides nothing, be it NaN, and its indices are made 0,
which is in range.  Loops are changed whose iterations are independent: each reads and writes its own row of the arrays
that the loop carries, or only adds to a carry (`additive`), and whose body branches on values of the lane (others are
for `raise_loops`).  A loop that does not fit is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, assert_never

from .. import ops
from ..ir.build import Names, building, const, current, located
from ..ir.index import At, Span
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import I64, Type
from ..ir.walk import all_statements, blocks, replacement, substituted, used_names, with_blocks
from .additive import is_sum


class _Unfit(Exception):
    """The loop stays as it is."""


def mask_lanes(func: Func) -> Func:
    """Every loop over lanes of the func, inner ones first; `func` itself where there is none.  Sizes are numbers."""
    with building(Names(used_names(func))):
        body = _visited(func.body)
    return func if body is func.body else replace(func, body=body)


def _visited(block: Block) -> Block:
    changed = False
    replaced: dict[Var, Value] = {}
    with building() as b:
        for old in block.stmts:
            stmt = substituted(old, replaced)
            stmt = with_blocks(stmt, [_visited(inner) for inner in blocks(stmt)])
            found = _whole(stmt) if isinstance(stmt, For) and _is_over_lanes(stmt) else None
            if found is None:
                b.stmts.append(stmt)
            else:
                b.stmts += found[0]
                replaced.update(zip(stmt.targets, found[1], strict=True))
            changed = changed or found is not None or stmt is not old
    if not changed:
        return block
    return Block(tuple(b.stmts), tuple(replacement(r, replaced) for r in block.results))


def _is_over_lanes(loop: For) -> bool:
    """All indices of an axis, up or down, with branches or loops of its own inside."""
    if not all(isinstance(v, Const) for v in (loop.lo, loop.hi, loop.step)):
        return False
    indices = range(loop.lo.value, loop.hi.value, loop.step.value)              # type: ignore[union-attr]
    if len(indices) < 2 or sorted(indices) != list(range(len(indices))):
        return False
    return any(isinstance(s, (If, While)) or (isinstance(s, For) and not isinstance(s.hi, Const))
               for s in all_statements(loop.body))


def _whole(loop: For) -> tuple[list[Stmt], list[Value]] | None:
    """The statements that do what the loop does, and its results; None where it does not fit."""
    size = len(range(loop.lo.value, loop.hi.value, loop.step.value))            # type: ignore[union-attr]
    with building() as b, located(loop.loc):
        try:
            results = _Lanes(size).loop(loop)
        except _Unfit:
            return None
    return b.stmts, results


class _Lanes:
    """The body of one loop.  values: what stands for a variable; batched: those of its values that have the lanes
    first; rows: variables that are arrays with a row for each lane, of which each lane uses its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[Var, Value] = {}
        self.batched: set[Value] = set()
        self.rows: set[Var] = set()
        self.index: Var | None = None

    # --- the loop itself -----------------------------------------------------------------------------------------

    def loop(self, loop: For) -> list[Value]:
        self.index = loop.index
        lanes = ops.iota(shape=(self.size,), axis=0, dtype="int64")
        self.values[loop.index] = lanes
        self.batched.add(lanes)
        sums = []
        for k, (carry, init) in enumerate(zip(loop.carries, loop.inits, strict=True)):
            if carry.type.kind != "b" and is_sum(loop, k):
                start = Const(0, Type(carry.dtype, (self.size, *carry.shape)))
                self.values[carry] = start
                self.batched.add(start)
                sums.append(True)
            elif carry.rank and carry.shape[0] == self.size:
                self.values[carry] = init
                self.rows.add(carry)
                sums.append(False)
            else:
                raise _Unfit
        self.statements(loop.body.stmts, None)
        return [self._summed(init, result) if is_total else self._row_result(result)
                for init, result, is_total in zip(loop.inits, loop.body.results, sums, strict=True)]

    def _summed(self, init: Value, result: Value) -> Value:
        return ops.add(init, ops.sum(self._lifted(result), axes=(0,)))

    def _row_result(self, result: Value) -> Value:
        if not isinstance(result, Var) or result not in self.rows:
            raise _Unfit
        return self.values[result]

    # --- values --------------------------------------------------------------------------------------------------

    def value(self, value: Value) -> Value:
        if isinstance(value, Const):
            return value
        if value in self.rows:
            raise _Unfit                                # used as a whole
        return self.values.get(value, value)

    def is_batched(self, value: Value) -> bool:
        return self.value(value) in self.batched

    def _lifted(self, value: Value) -> Value:
        """With the lanes first."""
        found = self.value(value)
        return found if found in self.batched else self._along(found)

    def _along(self, value: Value) -> Value:
        if isinstance(value, Const):
            made: Value = Const(value.value, Type(value.dtype, (self.size, *value.shape)))
        else:
            made = ops.broadcast(value, shape=(self.size, *value.shape), axes=tuple(range(1, value.rank + 1)))
        self.batched.add(made)
        return made

    def _bind(self, target: Var, value: Value, batched: bool) -> None:
        self.values[target] = value
        if batched:
            self.batched.add(value)

    # --- statements ----------------------------------------------------------------------------------------------

    def statements(self, stmts: Sequence[Stmt], mask: Value | None) -> None:
        """mask: (size,) bools, the lanes that come here; None: all."""
        for stmt in stmts:
            with located(stmt.loc):
                self._statement(stmt, mask)

    def _statement(self, stmt: Stmt, mask: Value | None) -> None:
        match stmt:
            case Let():
                self._let(stmt, mask)
            case If():
                self._if(stmt, mask)
            case For():
                self._for(stmt, mask)
            case While():
                self._while(stmt, mask)
            case Check():
                self._check(stmt, mask)
            case Call():
                raise _Unfit
            case _:
                assert_never(stmt)

    def _let(self, let: Let, mask: Value | None) -> None:
        if let.op.access is not None and self._row(let, mask):
            return
        args = [self.value(a) for a in let.args]
        flags = [a in self.batched for a in args]
        if not any(flags):
            results = let.op(*args, **let.params)
            for target, result in zip(let.targets, results if let.op.result_count > 1 else (results,), strict=True):
                self._bind(target, result, False)
            return
        if let.op.access is not None:
            first = len(args) - self._scalars(let)
            args[first:] = self._safe(args[first:], let.params["index"], mask)
        results = let.op.batch(args, flags, **let.params)
        for target, result in zip(let.targets, results if let.op.result_count > 1 else (results,), strict=True):
            self._bind(target, result, True)

    def _row(self, let: Let, mask: Value | None) -> bool:
        """Read or write the lane's own row, where that is what the statement does."""
        array, index = let.args[0], let.params["index"]
        first = len(let.args) - self._scalars(let)
        own = bool(index) and isinstance(index[0], At) and let.args[first:first + 1] == (self.index,)
        is_row = isinstance(array, Var) and array in self.rows
        if not own or not array.rank or array.shape[0] != self.size or not (is_row or let.op.access == "load"):
            return False
        whole = self.values[array] if is_row else self.value(array)     # type: ignore[index]
        if whole in self.batched:
            return False
        rest = self._safe([self.value(s) for s in let.args[first + 1:]], index[1:], mask)
        values = [self._lifted(v) for v in let.args[1:first]]
        args = [whole, *values, *rest]
        flags = [True, *(True for _ in values), *(r in self.batched for r in rest)]
        if not index[1:] and values:
            made = ops.add(whole, values[0]) if let.op.adds else values[0]
        else:
            made = whole if not index[1:] else let.op.batch(args, flags, index=index[1:])
        if let.op.access == "load":
            self._bind(let.target, made, True)
        else:
            self.values[let.target] = made
            self.rows.add(let.target)
        return True

    @staticmethod
    def _scalars(let: Let) -> int:
        return sum(isinstance(i, At) or (isinstance(i, Span) and i.start is None) for i in let.params["index"])

    def _safe(self, scalars: Sequence[Value], index: Sequence[Any], mask: Value | None) -> list[Value]:
        """Positions of lanes that do not come here are ones that are in range."""
        if mask is None:
            return list(scalars)
        taking = [i for i in index if isinstance(i, At) or (isinstance(i, Span) and i.start is None)]
        found = []
        for scalar, item in zip(scalars, taking, strict=True):
            back = 0 if isinstance(item, At) or item.step > 0 else max(0, item.size - 1) * -item.step
            if scalar in self.batched:
                scalar = ops.select(mask, scalar, const(back, scalar.type))
                self.batched.add(scalar)
            found.append(scalar)
        return found

    def _check(self, check: Check, mask: Value | None) -> None:
        """Of all lanes that come here.  What is printed is not, as everywhere on machines that cannot."""
        if check.prints:
            return
        pred = self.value(check.pred)
        if mask is not None:
            lanes = pred if pred in self.batched else self._along(pred)
            pred = ops.all(ops.logical_or(lanes, ops.logical_not(mask)), axes=(0,))
        elif pred in self.batched:
            pred = ops.all(pred, axes=(0,))
        current().stmts.append(Check(pred, check.kind, check.message, check.loc))

    # --- branches ------------------------------------------------------------------------------------------------

    def _if(self, stmt: If, mask: Value | None) -> None:
        if not self.is_batched(stmt.pred):
            self._common_if(stmt, mask)
            return
        pred = self.value(stmt.pred)
        self.statements(stmt.then.stmts, self._both(mask, pred))
        self.statements(stmt.orelse.stmts, self._both(mask, ops.logical_not(pred)))
        for target, a, b in zip(stmt.targets, stmt.then.results, stmt.orelse.results, strict=True):
            self._chosen(target, pred, a, b)

    def _chosen(self, target: Var, pred: Value, a: Value, b: Value) -> None:
        if self._are_rows(a, b):
            self.values[target] = self._select(pred, self.values[a], self.values[b])    # type: ignore[index]
            self.rows.add(target)
        else:
            self._bind(target, self._select(pred, self._lifted(a), self._lifted(b)), True)

    def _are_rows(self, *values: Value) -> bool:
        found = [isinstance(v, Var) and v in self.rows for v in values]
        if any(found) and not all(found):
            raise _Unfit
        return all(found)

    def _select(self, pred: Value, a: Value, b: Value) -> Value:
        if a is b:
            return a
        if a.rank > 1:
            pred = ops.broadcast(pred, shape=a.shape, axes=(0,))
        return ops.select(pred, a, b)

    def _both(self, mask: Value | None, pred: Value) -> Value:
        both = pred if mask is None else ops.logical_and(mask, pred)
        self.batched.add(both)
        return both

    def _common_if(self, stmt: If, mask: Value | None) -> None:
        """A branch that is one for all lanes."""
        arms = (stmt.then, stmt.orelse)
        flags = [self._rehearsed(arm, mask) for arm in arms]
        rows = [[isinstance(r, Var) and r in self.rows for r in arm.results] for arm in arms]
        if rows[0] != rows[1]:
            raise _Unfit
        batched = [a or b for a, b in zip(*flags, strict=True)]
        made = []
        for arm in arms:
            with building() as inner:
                self.statements(arm.stmts, mask)
                results = [self._as(r, b, row) for r, b, row in zip(arm.results, batched, rows[0], strict=True)]
            made.append(Block(tuple(inner.stmts), tuple(results)))
        outer = current()
        targets = tuple(outer.var(r.type, t.name) for r, t in zip(made[0].results, stmt.targets, strict=True))
        outer.stmts.append(If(targets, self.value(stmt.pred), made[0], made[1], stmt.loc))
        self._bind_all(stmt.targets, targets, batched, rows[0])

    # --- rehearsals: which values come to depend on the lane -----------------------------------------------------

    def _rehearsed(self, block: Block, mask: Value | None) -> list[bool]:
        """Whether each result is batched or has rows; what is emitted is dropped."""
        with building():
            self.statements(block.stmts, mask)
            return [self._depends(r) for r in block.results]

    def _depends(self, value: Value) -> bool:
        return isinstance(value, Var) and (value in self.rows or self.values.get(value, value) in self.batched)

    def _as(self, value: Value, batched: bool, row: bool) -> Value:
        if row:
            return self.values[value]                   # type: ignore[index]
        return self._lifted(value) if batched else self.value(value)

    def _bind_all(self, targets: Sequence[Var], values: Sequence[Value], batched: Sequence[bool],
                  rows: Sequence[bool]) -> None:
        for target, value, is_batched, is_row in zip(targets, values, batched, rows, strict=True):
            if is_row:
                self.values[target] = value
                self.rows.add(target)
            else:
                self._bind(target, value, is_batched)

    # --- loops ---------------------------------------------------------------------------------------------------

    def _for(self, stmt: For, mask: Value | None) -> None:
        lo, hi, step = (self.value(v) for v in (stmt.lo, stmt.hi, stmt.step))
        if step in self.batched or not isinstance(step, Const):
            raise _Unfit
        if lo in self.batched and abs(step.value) != 1:
            raise _Unfit
        if lo not in self.batched and hi not in self.batched:
            self._carried(stmt, lo, hi, step, lambda index: None, mask)
            return
        up = step.value > 0
        if mask is not None:                            # a lane that does not come here has no trips
            hi = self._select(mask, self._lift(hi), self._lift(lo))
            self.batched.add(hi)
        first, last = lo, hi
        if lo in self.batched:
            first = ops.min(lo, axes=(0,)) if up else ops.max(lo, axes=(0,))
        if hi in self.batched:
            last = ops.max(hi, axes=(0,)) if up else ops.min(hi, axes=(0,))

        def going(index: Value) -> Value:
            every = ops.broadcast(index, shape=(self.size,), axes=())
            return ops.logical_and(self._is_before(self._lift(lo), every, up, True),
                                   self._is_before(every, self._lift(hi), up, False))

        self._carried(stmt, first, last, step, going, mask)

    @staticmethod
    def _is_before(a: Value, b: Value, up: bool, or_equal: bool) -> Value:
        if or_equal:
            return ops.less_equal(a, b) if up else ops.greater_equal(a, b)
        return ops.less(a, b) if up else ops.greater(a, b)

    def _lift(self, value: Value) -> Value:
        return value if value in self.batched else self._along(value)

    def _carried(self, stmt: For, lo: Value, hi: Value, step: Const, going: Callable[[Value], Value | None],
                 mask: Value | None) -> None:
        """The loop with what it carries, batched as far as it comes to be.  going: the lanes that have this trip."""
        partly = lo in self.batched or hi in self.batched or (
            self.value(stmt.lo) in self.batched or self.value(stmt.hi) in self.batched)
        outer, rows = current(), [isinstance(v, Var) and v in self.rows for v in stmt.inits]
        batched = [self._depends(v) for v in stmt.inits]
        while True:
            index = outer.var(I64, stmt.index.name)
            inits = [self._as(v, b, r) for v, b, r in zip(stmt.inits, batched, rows, strict=True)]
            carries = [outer.var(i.type, c.name) for i, c in zip(inits, stmt.carries, strict=True)]
            self.values[stmt.index] = index
            self._bind_all(stmt.carries, carries, batched, rows)
            with building() as inner:
                active = going(index)
                own = mask
                if active is not None:
                    own = active if mask is None else ops.logical_and(mask, active)
                    self.batched.add(own)
                self.statements(stmt.body.stmts, own)
                depends = [self._depends(r) or (partly and r is not c)
                           for r, c in zip(stmt.body.results, stmt.carries, strict=True)]
                wider = [a or b for a, b in zip(batched, depends, strict=True)]
                if [isinstance(r, Var) and r in self.rows for r in stmt.body.results] != rows:
                    raise _Unfit
                if wider == batched:
                    results = [self._as(r, b, row) for r, b, row in zip(stmt.body.results, batched, rows, strict=True)]
                    if active is not None:
                        results = [self._select(own, r, c) if b or row else r for r, c, b, row in zip(  # type: ignore[arg-type]
                            results, carries, batched, rows, strict=True)]
                    break
                batched = wider
        targets = tuple(outer.var(c.type, t.name) for c, t in zip(carries, stmt.targets, strict=True))
        outer.stmts.append(For(targets, index, lo, hi, step, tuple(carries), tuple(inits),
                               Block(tuple(inner.stmts), tuple(results)), False, stmt.loc))
        self._bind_all(stmt.targets, targets, batched, rows)

    def _while(self, stmt: While, mask: Value | None) -> None:
        """All lanes go on until none has a trip left; those that have ended keep what they carry."""
        outer = current()
        rows = [isinstance(v, Var) and v in self.rows for v in stmt.inits]
        inits = [self._as(v, True, r) for v, r in zip(stmt.inits, rows, strict=True)]
        every = [True] * len(inits)
        self._bind_all(stmt.carries, inits, every, rows)
        start = self._condition(stmt, mask)
        carries = [outer.var(i.type, c.name) for i, c in zip(inits, stmt.carries, strict=True)]
        going = outer.var(Type("bool", (self.size,)), "going")
        self.batched.add(going)
        with building() as cond:
            any_left = ops.any(going, axes=(0,))
        self._bind_all(stmt.carries, carries, every, rows)
        with building() as inner:
            self.statements(stmt.body.stmts, going)
            if [isinstance(r, Var) and r in self.rows for r in stmt.body.results] != rows:
                raise _Unfit
            results = [self._select(going, self._as(r, True, row), c)
                       for r, c, row in zip(stmt.body.results, carries, rows, strict=True)]
            self._bind_all(stmt.carries, results, every, rows)
            following = ops.logical_and(going, self._condition(stmt, going))
        targets = tuple(outer.var(c.type, t.name) for c, t in zip(carries, stmt.targets, strict=True))
        ended = outer.var(going.type, "going")
        outer.stmts.append(While((*targets, ended), (*carries, going), (*inits, start), Block(
            tuple(cond.stmts), (any_left,)), Block(tuple(inner.stmts), (*results, following)), stmt.loc))
        self._bind_all(stmt.targets, targets, every, rows)

    def _condition(self, stmt: While, mask: Value | None) -> Value:
        self.statements(stmt.cond.stmts, mask)
        found = self._lifted(stmt.cond.results[0])
        return found if mask is None else ops.logical_and(mask, found)

