"""Cotangents that a trip clears are computed anew by the next trip, which then has nothing to add them to.

    before                                            after
    for t carry (e, d):                               z = d; d_1 = d outside of 1 .. m
      for k in 2 .. m - 1: d[k] += w(e, k)            for t carry (e, d_1):
      for k in 1 .. m: e[k] = 0.0                       d_1[1] = 0.0; d_1[m - 1] = 0.0
      yield d, e                                        for k in 2 .. m - 1: d_1[k] = w(e, k)
                                                        if t is the first trip: for k in 1 .. m: d_1[k] += z[k]
                                                        yield d_1, e

So it is where two arrays take turns, as in `for i: v[i] = f(u[i - 1], u[i + 1])` and then `u, v = v, u`: a step goes
through the cotangents twice instead of four times.  What is cleared and then added to in one trip is stored there, too.
The first trip adds to a sum last what the others have first, and a zero may change its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .. import ops
from ..ir.build import Names, building, choose, current, for_loop, int_const, located, plus, size_value
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var
from ..ir.walk import (
    all_statements,
    blocks,
    bound_inside,
    operands,
    reads,
    substituted,
    used_names,
    with_blocks,
    with_body,
    with_contents,
)
from .dependence import step_of
from .ends import Ends
from .lay_out import is_element


@dataclass(frozen=True)
class Clear:
    """A loop that sets elements lo .. hi of `array` to 0."""

    loop: For
    array: Value
    lo: Value
    hi: Value

    @property
    def target(self) -> Var:
        return self.loop.targets[0]


def clear_late(func: Func) -> Func:
    if not any(isinstance(s, For) and _clear(s) for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        return with_body(func, _Visitor(Ints(func.body)).block(func.body))


def _clear(stmt: Stmt) -> Clear | None:
    if not isinstance(stmt, For) or len(stmt.carries) != 1 or len(stmt.body.stmts) != 1 or (
            stmt.carries[0].type.rank != 1):
        return None
    (store,), step = stmt.body.stmts, stmt.step
    if not isinstance(store, Let) or store.op.access != "store" or store.args[0] is not stmt.carries[0] or (
            not isinstance(store.args[1], Const) or store.args[1].value != 0 or store.args[2:] != (stmt.index,)
            or not is_element(store) or store.target is not stmt.body.results[0]
            or not isinstance(step, Const) or step.value != 1):
        return None
    return Clear(stmt, stmt.inits[0], stmt.lo, stmt.hi)


class _Visitor:
    def __init__(self, ints: Ints) -> None:
        self.ints, self.ends = ints, Ends(ints)

    def block(self, block: Block) -> Block:
        stmts: list[Stmt] = []
        for old in block.stmts:
            turned = self._turned(old, block) if isinstance(old, For) else None
            for stmt in turned or [old]:
                stmts.append(with_blocks(stmt, [self.block(b) for b in blocks(stmt)]))
        block = with_contents(block, stmts)
        for stmt in block.stmts:
            clear = _clear(stmt)
            if clear is not None and (stored := self._stored(block, clear)) is not None:
                return self.block(stored)
        return block

    # --- a clearing that is left to the next trip

    def _turned(self, loop: For, block: Block) -> list[Stmt] | None:
        """The loop with a clearing at its beginning instead of its end, between what that takes."""
        if loop.parallel or loop.abreast or loop.checkpoint is not None or not isinstance(loop.step, Const):
            return None
        inside = {v for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s))} | {loop.index}
        made = {t: s for s in loop.body.stmts for t in s.targets}
        for number, (carry, result) in enumerate(zip(loop.carries, loop.body.results)):
            clear = _clear(made[result]) if isinstance(result, Var) and result in made else None
            if clear is None or clear.lo in inside or clear.hi in inside or not isinstance(clear.array, Var) or (
                    clear.array in loop.body.results or _uses(loop.body, result) != 1):
                continue
            end = self._sum_of(loop.body, carry)
            if end is not carry and (late := self._late(loop, number, clear, end, block)) is not None:
                return late
        return None

    def _sum_of(self, block: Block, version: Var) -> Var:
        """The version of an array up to which a block does nothing with it but to add."""
        while True:
            users = [s for s in block.stmts if _reads(s, version)]
            if len(users) != 1 or version in block.results:
                return version
            following = self._added(users[0], version)
            if following is None:
                return version
            version = following

    def _added(self, stmt: Stmt, version: Var) -> Var | None:
        """What a statement gives that only adds to an array."""
        match stmt:
            case Let() if stmt.op.access == "add_at" and stmt.args.count(version) == 1 and stmt.args[0] is version:
                return stmt.target
            case For() if operands(stmt).count(version) == 1 and version in stmt.inits and not _reads_in(stmt, version):
                k = stmt.inits.index(version)
                return stmt.targets[k] if self._sum_of(stmt.body, stmt.carries[k]) is stmt.body.results[k] and (
                    stmt.body.results.count(stmt.body.results[k]) == 1) else None
            case If() if stmt.pred is not version:
                ends = [_end if _uses(arm, _end) == 1 else None for arm in (stmt.then, stmt.orelse)
                        for _end in [self._sum_of(arm, version)]]
                for k, target in enumerate(stmt.targets):
                    if stmt.then.results[k] is ends[0] and stmt.orelse.results[k] is ends[1]:
                        return target
        return None

    def _is_outside_later(self, target: Var, block: Block, clear: Clear) -> bool:
        """Whether all that is read of the array after the loop is outside of what is cleared."""
        if target in block.results or any(_reads_in(s, target) for s in block.stmts):
            return False
        for stmt in block.stmts:
            if target not in operands(stmt):
                continue
            if not isinstance(stmt, Let) or stmt.op.access != "load" or stmt.args[0] is not target or not (
                    is_element(stmt) and self._is_outside(stmt.args[1], clear.lo, clear.hi)):
                return False
        return True

    def _is_outside(self, place: Value, lo: Value, hi: Value) -> bool:
        return self.ends.is_at_most(hi, place) or self.ends.is_at_most(plus(place, 1), lo)

    def _late(self, loop: For, number: int, clear: Clear, end: Var, block: Block) -> list[Stmt] | None:
        """The same for one array, whose sum of a trip is `end`; None if nothing would be gained."""
        carry, init, target = loop.carries[number], loop.inits[number], loop.targets[number]
        is_zero = isinstance(init, Const) and init.value == 0
        is_outside = self._is_outside_later(target, block, clear)
        with building() as b, located(loop.loc):
            begin = init if is_zero else self._copied(init, clear, whole=not is_outside)
            with building() as inner:
                cleared = self._all(carry, clear)
                first = inner.stmts[-1]
                summed: Value = end
                now: dict[Var, Value] = {carry: cleared}
                for stmt in loop.body.stmts:
                    if stmt is not clear.loop:
                        inner.stmts.append(substituted(stmt, now))
                    if end in stmt.targets and not is_zero:
                        summed = now[end] = self._plus_first(loop, end, init, clear)
            results = [clear.array if k == number else r for k, r in enumerate(loop.body.results)]
            body = Block(tuple(inner.stmts), tuple(summed if r is end else r for r in results))
            stored = self._stored(body, _clear(first))                             # type: ignore[arg-type]
            if stored is None:
                return None
            inits = tuple(begin if k == number else v for k, v in enumerate(loop.inits))
            last = target if is_outside else current().var(target.type, target.name)
            targets = tuple(last if k == number else t for k, t in enumerate(loop.targets))
            b.stmts.append(replace(loop, inits=inits, targets=targets, body=stored))
            if not is_outside:
                if is_zero:
                    self._all(last, clear)
                else:
                    choose(loop.lo < loop.hi if step_of(loop) > 0 else loop.lo > loop.hi,    # type: ignore[operator]
                           lambda: [self._all(last, clear)], lambda: [last])
                b.stmts.append(replace(b.stmts.pop(), targets=(target,)))               # type: ignore[arg-type]
        return b.stmts

    def _plus_first(self, loop: For, end: Var, init: Value, clear: Clear) -> Value:
        """The sum with what the loop has begun with, in the first trip."""
        is_first = loop.index.eq(loop.lo)

        def add() -> Sequence[Value]:
            return for_loop(clear.lo, clear.hi, [end], lambda k, now: [
                ops.add_at(now, ops.load(init, k, index=(At(),)), k, index=(At(),))], index=clear.loop.index.name)

        return choose(is_first, add, lambda: [end], hint=end.name)[0]

    def _copied(self, array: Value, clear: Clear, whole: bool) -> Value:
        """A new array with the elements of another, or with those that are not cleared."""
        new: Value = ops.empty(shape=array.type.shape, dtype=array.type.dtype)
        begin, end = int_const(0), size_value(array.type.shape[0])
        parts = [(begin, end)] if whole else [
            (begin, self.ends.least(clear.lo, end)), (self.ends.most(clear.hi, begin), end)]
        for lo, hi in parts:
            if self.ends.apart(lo, hi) != 0:
                new = self._each(new, lo, hi, lambda k: ops.load(array, k, index=(At(),)))
        return new

    def _all(self, array: Var, clear: Clear) -> Var:
        """Emit the clearing for an array."""
        zero = Const(array.type.numpy.type(0).item(), array.type.scalar)
        return for_loop(clear.lo, clear.hi, [array], lambda k, now: [ops.store(now, zero, k, index=(At(),))],
                        index=clear.loop.index.name)[0]

    def _each(self, array: Value, lo: Value, hi: Value, value: Callable[[Value], Value]) -> Value:
        def store(k: Value, now: Value) -> list[Value]:
            return [ops.store(now, value(k), k, index=(At(),))]

        if self.ends.apart(lo, hi) == 1:
            return store(lo, array)[0]
        return for_loop(lo, hi, [array], store, index="k")[0]

    # --- what is added to what was cleared

    def _stored(self, block: Block, clear: Clear) -> Block | None:
        """The block in which what is added first is stored, and less is cleared."""
        if clear.target in block.results:
            return None
        at = block.stmts.index(clear.loop)
        rest = self._without(Block(block.stmts[at + 1:], block.results), clear.target, clear)
        if rest is None:
            return None
        stmts, results = rest.stmts, rest.results
        before = tuple(block.stmts[:at])
        return Block((*before, *(substituted(s, {clear.target: clear.array}) if _reads(s, clear.target) else s
                                 for s in stmts)), results)

    def _without(self, block: Block, version: Var, clear: Clear) -> Block | None:
        """The block, which begins with the array not yet cleared and clears what it does not store to."""
        users = [s for s in block.stmts if _reads(s, version)]
        if len(users) != 1 or version in block.results:
            return None
        (first,) = users
        at = block.stmts.index(first)
        if isinstance(first, If):
            if first.pred is version:
                return None
            arms = [self._without(arm, version, clear) for arm in (first.then, first.orelse)]
            if arms == [None, None]:
                return None
            arms = [arm or self._all_cleared(old, version, clear) for arm, old in zip(arms, (first.then, first.orelse))]
            return Block((*block.stmts[:at], with_blocks(first, arms), *block.stmts[at + 1:]), block.results)  # type: ignore[arg-type]
        found = self._first_loop(block, version)
        if found is None:
            return None
        loop, places = found
        if not self.ends.is_at_most(clear.lo, loop.lo) or not self.ends.is_at_most(loop.hi, clear.hi) or any(
                not self._is_outside(place, loop.lo, loop.hi) for place in places):
            return None
        ends = self._ints_behind(block.stmts[at:], (loop.lo, loop.hi))
        if ends is None:
            return None
        (add,) = [s for s in loop.body.stmts if isinstance(s, Let) and s.op.access == "add_at"]
        store = replace(add, op=ops.store)
        stored = replace(loop, body=Block(tuple(store if s is add else s for s in loop.body.stmts), loop.body.results))
        with building() as b, located(loop.loc):
            now: Value = version
            zero = Const(version.type.numpy.type(0).item(), version.type.scalar)
            for lo, hi in ((clear.lo, self.ends.least(loop.lo, clear.hi)),
                           (self.ends.most(loop.hi, clear.lo), clear.hi)):
                if self.ends.apart(lo, hi) != 0:
                    now = self._each(now, lo, hi, lambda _: zero)
        stmts = [stored if s is loop else s for s in block.stmts]
        user = stored if first is loop else first
        changed = [substituted(s, {version: now}) if s is user and now is not version else s for s in stmts]
        return Block((*changed[:at], *ends, *b.stmts, *(s for s in changed[at:] if s not in ends)), block.results)

    @staticmethod
    def _ints_behind(stmts: Sequence[Stmt], values: Sequence[Value]) -> list[Stmt] | None:
        """Which of the statements compute the ints, if these can go before all others."""
        wanted, found = set(values), list[Stmt]()
        for stmt in reversed(stmts):
            if not wanted.isdisjoint(stmt.targets):
                if not isinstance(stmt, Let) or not stmt.op.is_pure or any(
                        v.type.shape or v.type.dtype != "int64" for v in (*stmt.targets, *stmt.args)):
                    return None
                found.insert(0, stmt)
                wanted.update(stmt.args)
        return found

    def _all_cleared(self, block: Block, version: Var, clear: Clear) -> Block:
        with building() as b, located(clear.loop.loc):
            now = self._all(version, clear)
        return Block((*b.stmts, *(substituted(s, {version: now}) for s in block.stmts)),
                     tuple(now if r is version else r for r in block.results))

    def _first_loop(self, block: Block, version: Var) -> tuple[For, list[Value]] | None:
        """The first loop that adds to each of its own elements, and to which others the block has added before."""
        places: list[Value] = []
        while True:
            users = [s for s in block.stmts if _reads(s, version)]
            if len(users) != 1 or version in block.results:
                return None
            (user,) = users
            if isinstance(user, For):
                return (user, places) if _adds_to_own(user, version) else None
            if not isinstance(user, Let) or self._added(user, version) is None or not is_element(user):
                return None
            places.append(user.args[2])
            version = user.target


def _adds_to_own(loop: For, version: Var) -> bool:
    """Whether all that the loop does with the array is to add to the element of its index."""
    if operands(loop).count(version) != 1 or version not in loop.inits or not isinstance(loop.step, Const) or (
            loop.step.value != 1) or _reads_in(loop, version):
        return False
    k = loop.inits.index(version)
    users = [s for s in loop.body.stmts if _reads(s, loop.carries[k])]
    return len(users) == 1 and isinstance(users[0], Let) and users[0].op.access == "add_at" and (
        users[0].args[0] is loop.carries[k] and loop.carries[k] not in users[0].args[1:] and is_element(users[0])
        and users[0].args[2:] == (loop.index,) and loop.body.results[k] is users[0].target
        and _uses(loop.body, users[0].target) == 1)


def _reads(stmt: Stmt, value: Value) -> bool:
    return value in operands(stmt) or _reads_in(stmt, value)


def _reads_in(stmt: Stmt, value: Value) -> bool:
    return any(value in reads(b) for b in blocks(stmt))


def _uses(block: Block, value: Value) -> int:
    """How often the block itself reads a value, its results included."""
    return block.results.count(value) + sum(
        operands(s).count(value) + sum(_uses(b, value) for b in blocks(s)) for s in block.stmts)
