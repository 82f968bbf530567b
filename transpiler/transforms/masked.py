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

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, assert_never

from .. import ops
from ..ir.build import Names, building, const, current, located
from ..ir.index import At, Span, argument_count
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import I64, Type
from ..ir.walk import all_statements, blocks, replacement, sizes_used, substituted, used_names, with_blocks, with_body
from .additive import is_sum

NAMELESS = re.compile(r"t(_\d+)*")


class _Unfit(Exception):
    """The loop stays as it is."""


def mask_lanes(func: Func) -> Func:
    """Every loop over lanes of the func, inner ones first; `func` itself where there is none.  Sizes are numbers."""
    sizes = {name for s in all_statements(func.body) for name in sizes_used(s)}
    with building(Names(used_names(func))):
        body = _visited(func.body, sizes)
    return with_body(func, body)


def _visited(block: Block, sizes: Set[str]) -> Block:
    changed = False
    replaced: dict[Var, Value] = {}
    with building() as b:
        for old in block.stmts:
            stmt = substituted(old, replaced)
            stmt = with_blocks(stmt, [_visited(inner, sizes) for inner in blocks(stmt)])
            fits = isinstance(stmt, For) and _is_over_lanes(stmt) and sizes.isdisjoint(t.name for t in stmt.targets)
            found = _whole(stmt) if fits and isinstance(stmt, For) else None
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
    return any(isinstance(s, (If, While)) or (isinstance(s, For) and not (
        isinstance(s.lo, Const) and isinstance(s.hi, Const))) for s in all_statements(loop.body))


def _whole(loop: For) -> tuple[list[Stmt], list[Value]] | None:
    """The statements that do what the loop does, and its results; None where it does not fit."""
    size = len(range(loop.lo.value, loop.hi.value, loop.step.value))            # type: ignore[union-attr]
    with building() as b, located(loop.loc):
        try:
            results = _Lanes(size).loop(loop)
        except _Unfit:
            return None
    return b.stmts, results


@dataclass(frozen=True, slots=True)
class _All:
    """What stands for a variable of the loop's body: of all lanes, with these first, if `batched`; else of each."""

    value: Value
    batched: bool


class _Lanes:
    """The body of one loop.  found: what stands for each variable; rows: variables that are arrays with a row for each
    lane, of which each lane uses its own, as whole arrays."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.found: dict[Var, _All] = {}
        self.rows: dict[Var, Value] = {}
        self.index: Var | None = None
        self.implied: dict[Value, frozenset[Value]] = {}        # by mask: what holds wherever it does
        self.negated: dict[Value, Value] = {}
        self.differs: dict[Value, dict[Value, frozenset[Value]]] = {}   # from another value: only where these hold

    # --- the loop itself -----------------------------------------------------------------------------------------

    def loop(self, loop: For) -> list[Value]:
        self.index = loop.index
        self.found[loop.index] = _All(ops.iota(shape=(self.size,), axis=0, dtype="int64"), True)
        sums = [carry.type.kind != "b" and is_sum(loop, k) for k, carry in enumerate(loop.carries)]
        for carry, init, is_total in zip(loop.carries, loop.inits, sums, strict=True):
            if is_total:
                self.found[carry] = _All(const(0, Type(carry.dtype, (self.size, *carry.shape))), True)
            elif carry.rank and carry.shape[0] == self.size:
                self.rows[carry] = init
            else:
                raise _Unfit
        self.statements(loop.body.stmts, None)
        return [self._summed(init, result) if is_total else self._row_result(result)
                for init, result, is_total in zip(loop.inits, loop.body.results, sums, strict=True)]

    def _summed(self, init: Value, result: Value) -> Value:
        return ops.add(init, ops.sum(self.lifted(result), axes=(0,)))

    def _row_result(self, result: Value) -> Value:
        if not self.is_row(result):
            raise _Unfit
        return self.rows[result]                        # type: ignore[index]

    # --- values --------------------------------------------------------------------------------------------------

    def all(self, value: Value) -> _All:
        if isinstance(value, Const):
            return _All(value, False)
        if value in self.rows:
            raise _Unfit                                # used as a whole
        return self.found.get(value, _All(value, False))

    def is_row(self, value: Value) -> bool:
        return isinstance(value, Var) and value in self.rows

    def are_rows(self, values: Sequence[Value]) -> list[bool]:
        return [self.is_row(v) for v in values]

    def depends(self, value: Value) -> bool:
        """Whether lanes differ in it."""
        return self.is_row(value) or self.all(value).batched

    def lifted(self, value: Value) -> Value:
        """With the lanes first."""
        return self.along(self.all(value))

    def along(self, found: _All) -> Value:
        value = found.value
        if found.batched:
            return value
        if isinstance(value, Const):
            return Const(value.value, Type(value.dtype, (self.size, *value.shape)))
        made: Value = ops.broadcast(value, shape=(self.size, *value.shape), axes=tuple(range(1, value.rank + 1)))
        return made

    def formed(self, value: Value, batched: bool, row: bool) -> Value:
        """As a result of a block: a row array, a batched value, or one for all."""
        if row:
            return self.rows[value]                     # type: ignore[index]
        return self.lifted(value) if batched else self.all(value).value

    def bind(self, target: Var, value: Value, batched: bool, row: bool = False) -> None:
        if row:
            self.rows[target] = value
        else:
            self.found[target] = _All(value, batched)
        if (row or batched) and isinstance(value, Var) and NAMELESS.fullmatch(value.name) and (
                not NAMELESS.fullmatch(target.name)):
            value.name = current().names.fresh(target.name)

    def bind_all(self, targets: Sequence[Var], values: Sequence[Value], batched: Sequence[bool],
                 rows: Sequence[bool]) -> None:
        for target, value, is_batched, is_row in zip(targets, values, batched, rows, strict=True):
            self.bind(target, value, is_batched, is_row)

    # --- statements ----------------------------------------------------------------------------------------------

    def statements(self, stmts: Sequence[Stmt], mask: Value | None) -> None:
        """mask: (size,) bools, the lanes that come here; None: all."""
        for stmt in stmts:
            if sizes_used(stmt):
                raise _Unfit                            # a size of the lane's own
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
        if let.op.access is not None and self._own_row(let, mask):
            return
        args = [self.all(a) for a in let.args]
        batched = any(a.batched for a in args)
        if batched and let.op.access is not None:
            args = self._guarded(let, args, let.params["index"], mask)
        if let.op.raises is not None and mask is not None:
            args = [self._harmless(let, args[0], mask), *args[1:]]
        if batched:
            results = let.op.batch([a.value for a in args], [a.batched for a in args], **let.params)
        else:
            results = let.op(*(a.value for a in args), **let.params)
        for target, result in zip(let.targets, results if let.op.result_count > 1 else (results,), strict=True):
            self.bind(target, result, batched)
        if let.op.access not in (None, "load") and mask is not None and args[0].batched:
            self._differs_where(results, args[0].value, mask)

    # --- reads and writes ----------------------------------------------------------------------------------------

    def _own_row(self, let: Let, mask: Value | None) -> bool:
        """Read or write the lane's own row, where that is what the statement does."""
        array, index = let.args[0], let.params["index"]
        first = len(let.args) - argument_count(index)
        if not index or not isinstance(index[0], At) or let.args[first:first + 1] != (self.index,):
            return False
        if not array.rank or array.shape[0] != self.size:
            return False
        row = self.is_row(array)
        if not row and (let.op.access != "load" or self.all(array).batched):
            return False
        whole = _All(self.rows[array] if row else self.all(array).value, True)     # type: ignore[index]
        rest = [whole, *(_All(self.lifted(v), True) for v in let.args[1:first]),
                *(self.all(s) for s in let.args[first + 1:])]
        rest = self._guarded(let, rest, index[1:], mask)
        if index[1:]:
            made = let.op.batch([a.value for a in rest], [a.batched for a in rest], index=index[1:])
        elif let.op.access == "load":
            made = whole.value
        else:
            made = ops.add(whole.value, rest[1].value) if let.op.adds else rest[1].value
        self.bind(let.target, made, True, row=let.op.access != "load")
        if let.op.access != "load" and mask is not None:
            self._differs_where(made, whole.value, mask)
        return True

    def _guarded(self, let: Let, args: Sequence[_All], index: Any, mask: Value | None) -> list[_All]:
        """The arguments such that lanes that do not come here use positions that are in range, and write what is there
        already."""
        if mask is None:
            return list(args)
        first = len(args) - argument_count(index)
        taking = [i for i in index if isinstance(i, At) or (isinstance(i, Span) and i.start is None)]
        places = [self._in_range(a, item, mask) for a, item in zip(args[first:], taking, strict=True)]
        if let.op.access == "load" or not args[0].batched:
            return [*args[:first], *places]
        value = self.along(args[1])
        if let.op.adds:
            old: Value = const(0, value.type)
        else:
            read = [args[0], *places]
            old = ops.load.batch([a.value for a in read], [a.batched for a in read], index=index) if index else (
                args[0].value)
        return [args[0], _All(self.select(mask, value, old), True), *places]

    @staticmethod
    def _in_range(found: _All, item: At | Span, mask: Value) -> _All:
        if not found.batched:
            return found
        back = 0 if isinstance(item, At) or item.step > 0 else max(0, item.size - 1) * -item.step
        return _All(ops.select(mask, found.value, const(back, found.value.type)), True)

    def _harmless(self, let: Let, found: _All, mask: Value) -> _All:
        """The argument, with one that does not raise for lanes that do not come here (all, if it is one for all)."""
        value = found.value
        reached = mask if found.batched else ops.any(mask, axes=(0,))
        if value.rank > reached.rank:
            reached = ops.broadcast(reached, shape=value.shape, axes=tuple(range(reached.rank)))
        return _All(ops.select(reached, value, let.op.harmless(value.type)), found.batched)

    def _differs_where(self, new: Value, base: Value, mask: Value) -> None:
        """`new` is `base` but where the mask holds."""
        where = self.implied.get(mask, frozenset((mask,)))
        known = {other: conditions & where for other, conditions in self.differs.get(base, {}).items()}
        self.differs[new] = {**known, base: where}

    def _check(self, check: Check, mask: Value | None) -> None:
        """Of all lanes that come here.  What is printed is not, as everywhere on machines that cannot."""
        if check.prints:
            return
        pred = self.all(check.pred)
        if mask is not None:
            pred = _All(ops.logical_or(self.along(pred), ops.logical_not(mask)), True)
        made = ops.all(pred.value, axes=(0,)) if pred.batched else pred.value
        current().stmts.append(Check(made, check.kind, check.message, check.loc))

    # --- branches ------------------------------------------------------------------------------------------------

    def _if(self, stmt: If, mask: Value | None) -> None:
        found = self.all(stmt.pred)
        if not found.batched:
            self._common_if(stmt, mask)
            return
        pred = found.value
        self.statements(stmt.then.stmts, self.both(mask, pred))
        self.negated[pred] = ops.logical_not(pred)
        self.statements(stmt.orelse.stmts, self.both(mask, self.negated[pred]))
        rows = self.are_rows(stmt.then.results)
        if rows != self.are_rows(stmt.orelse.results):
            raise _Unfit
        for target, a, b, row in zip(stmt.targets, stmt.then.results, stmt.orelse.results, rows, strict=True):
            self.bind(target, self.select(pred, self.formed(a, True, row), self.formed(b, True, row)), True, row)

    def select(self, pred: Value, a: Value, b: Value) -> Value:
        """a where the condition holds, else b; nothing is selected where one of them is that already."""
        if a is b or pred in self.differs.get(a, {}).get(b, ()):
            return a
        if self.negated.get(pred) in self.differs.get(b, {}).get(a, ()):
            return b
        if a.rank > 1:
            pred = ops.broadcast(pred, shape=a.shape, axes=(0,))
        made: Value = ops.select(pred, a, b)
        return made

    def both(self, mask: Value | None, pred: Value) -> Value:
        both: Value = pred if mask is None else ops.logical_and(mask, pred)
        above = frozenset() if mask is None else self.implied.get(mask, frozenset((mask,)))
        self.implied[both] = above | {pred, both}
        return both

    def _common_if(self, stmt: If, mask: Value | None) -> None:
        """A branch that is one for all lanes."""
        arms = (stmt.then, stmt.orelse)
        flags, rows = [], []
        for arm in arms:                                # a rehearsal, which tells what comes to depend on the lane
            with building():
                self.statements(arm.stmts, mask)
            flags.append([self.depends(r) for r in arm.results])
            rows.append(self.are_rows(arm.results))
        if rows[0] != rows[1]:
            raise _Unfit
        batched = [a or b for a, b in zip(*flags, strict=True)]
        made = []
        for arm in arms:
            with building() as inner:
                self.statements(arm.stmts, mask)
                results = [self.formed(r, b, row) for r, b, row in zip(arm.results, batched, rows[0], strict=True)]
            made.append(Block(tuple(inner.stmts), tuple(results)))
        outer = current()
        targets = tuple(outer.var(r.type, t.name) for r, t in zip(made[0].results, stmt.targets, strict=True))
        outer.stmts.append(If(targets, self.all(stmt.pred).value, made[0], made[1], stmt.loc))
        self.bind_all(stmt.targets, targets, batched, rows[0])

    # --- loops ---------------------------------------------------------------------------------------------------

    def _for(self, stmt: For, mask: Value | None) -> None:
        lo, hi, step = (self.all(v) for v in (stmt.lo, stmt.hi, stmt.step))
        if not isinstance(step.value, Const) or (lo.batched and abs(step.value.value) != 1):
            raise _Unfit
        if not lo.batched and not hi.batched:
            self._carried(stmt, lo.value, hi.value, lambda index: None, mask)
            return
        up = step.value.value > 0
        if mask is not None:                            # a lane that does not come here has no trips
            hi = _All(self.select(mask, self.along(hi), self.along(lo)), True)
        least, most = (ops.min, ops.max) if up else (ops.max, ops.min)
        first = least(lo.value, axes=(0,)) if lo.batched else lo.value
        last = most(hi.value, axes=(0,)) if hi.batched else hi.value
        lows, highs = self.along(lo), self.along(hi)

        def going(index: Value) -> Value:
            here = ops.broadcast(index, shape=(self.size,), axes=())
            if up:
                return ops.logical_and(ops.less_equal(lows, here), ops.less(here, highs))
            return ops.logical_and(ops.greater_equal(lows, here), ops.greater(here, highs))

        self._carried(stmt, first, last, going, mask)

    def _carried(self, stmt: For, lo: Value, hi: Value, going: Callable[[Value], Value | None],
                 mask: Value | None) -> None:
        """The loop with what it carries, batched as far as it comes to be.  going: the lanes that have this trip; None
        where all have."""
        outer, rows = current(), self.are_rows(stmt.inits)
        batched = [self.depends(v) for v in stmt.inits]
        while True:
            index = outer.var(I64, stmt.index.name)
            inits = [self.formed(v, b, r) for v, b, r in zip(stmt.inits, batched, rows, strict=True)]
            carries = [outer.var(i.type, c.name) for i, c in zip(inits, stmt.carries, strict=True)]
            self.bind(stmt.index, index, False)
            self.bind_all(stmt.carries, carries, batched, rows)
            with building() as inner:
                active = going(index)
                own = mask if active is None else self.both(mask, active)
                self.statements(stmt.body.stmts, own)
                results = stmt.body.results
                if self.are_rows(results) != rows:
                    raise _Unfit
                wider = [b or self.depends(r) or (active is not None and r is not c)
                         for b, r, c in zip(batched, results, stmt.carries, strict=True)]
                if wider == batched:
                    made = [self.formed(r, b, row) for r, b, row in zip(results, batched, rows, strict=True)]
                    if active is not None and own is not None:
                        made = [self.select(own, r, c) if b else r
                                for r, c, b in zip(made, carries, batched, strict=True)]
                    break
                batched = wider
        targets = tuple(outer.var(c.type, t.name) for c, t in zip(carries, stmt.targets, strict=True))
        outer.stmts.append(For(targets, index, lo, hi, stmt.step, tuple(carries), tuple(inits),
                               Block(tuple(inner.stmts), tuple(made)), False, stmt.loc))
        self.bind_all(stmt.targets, targets, batched, rows)
        self._differ_like(targets, inits, made, carries)

    def _differ_like(self, targets: Sequence[Value], inits: Sequence[Value], made: Sequence[Value],
                     carries: Sequence[Value]) -> None:
        """After a loop an array differs from what it was before where a trip makes it differ."""
        for target, init, result, carry in zip(targets, inits, made, carries, strict=True):
            where = self.differs.get(result, {}).get(carry)
            if where is not None:
                known = {other: c & where for other, c in self.differs.get(init, {}).items()}
                self.differs[target] = {**known, init: where}

    def _while(self, stmt: While, mask: Value | None) -> None:
        """All lanes go on until none has a trip left; those that have ended keep what they carry."""
        outer, rows = current(), self.are_rows(stmt.inits)
        every = [True] * len(rows)
        inits = [self.formed(v, True, r) for v, r in zip(stmt.inits, rows, strict=True)]
        self.bind_all(stmt.carries, inits, every, rows)
        start = self._condition(stmt, mask)
        carries = [outer.var(i.type, c.name) for i, c in zip(inits, stmt.carries, strict=True)]
        going = outer.var(Type("bool", (self.size,)), "going")
        with building() as cond:
            any_left = ops.any(going, axes=(0,))
        self.bind_all(stmt.carries, carries, every, rows)
        with building() as inner:
            self.statements(stmt.body.stmts, going)
            if self.are_rows(stmt.body.results) != rows:
                raise _Unfit
            results = [self.select(going, self.formed(r, True, row), c)
                       for r, c, row in zip(stmt.body.results, carries, rows, strict=True)]
            self.bind_all(stmt.carries, results, every, rows)
            following = self._condition(stmt, going)
        targets = tuple(outer.var(c.type, t.name) for c, t in zip(carries, stmt.targets, strict=True))
        ended = outer.var(going.type, "going")
        outer.stmts.append(While((*targets, ended), (*carries, going), (*inits, start), Block(
            tuple(cond.stmts), (any_left,)), Block(tuple(inner.stmts), (*results, following)), stmt.loc))
        self.bind_all(stmt.targets, targets, every, rows)
        if mask is not None:                            # lanes that do not come here have kept all
            where = self.implied.get(mask, frozenset((mask,)))
            for target, init in zip(targets, inits, strict=True):
                self.differs[target] = {init: where}

    def _condition(self, stmt: While, mask: Value | None) -> Value:
        self.statements(stmt.cond.stmts, mask)
        found = self.lifted(stmt.cond.results[0])
        return found if mask is None else ops.logical_and(mask, found)
