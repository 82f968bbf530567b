"""Steps of which a tape keeps each state are written straight into the tape's next row.

    before                                            after
    for t in 0 .. n carry (u, v, tape):               tape[0] = v; tape[1] = u
      for i in 0 .. m: tape[t, i] = u[i]              for t in 0 .. n carry (tape):
      for i in 1 .. m - 1:                              tape[t + 2, 0] = tape[t, 0]
        v[i] = f(u[i - 1], u[i], u[i + 1])              tape[t + 2, m - 1] = tape[t, m - 1]
      yield v, u, tape                                  for i in 1 .. m - 1:
                                                          tape[t + 2, i] = f(tape[t + 1, i - 1], ...)

A state is then written once instead of twice, and nothing is copied but what a step leaves as it was.  The states that
a loop hands from trip to trip are the tape's last rows: an array that is stepped in place is one of them, two that take
turns are two.  The step must be made by a nest that stores to a box of elements and reads none of those that it has
stored.  What is left of the states after the loop is copied out of the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .. import ops
from ..ir.build import Names, building, current, for_loop, int_const, located, plus, size_value
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Value, Var
from ..ir.types import Type
from ..ir.walk import (
    Copier,
    all_statements,
    blocks,
    operands,
    reads,
    used_names,
    with_blocks,
    with_body,
    with_contents,
)
from .apart import levels_of
from .ends import Ends
from .lay_out import is_element
from .tape_steps import Step, step_of_states


class UnfitError(Exception):
    """The loop does something with its states or its tape that rows of a tape cannot stand for."""


def write_ahead(func: Func) -> Func:
    if not any(isinstance(s, Let) and s.op.is_unset and s.target.type.rank > 1 for s in all_statements(func.body)):
        return func
    ints = Ints(func.body)
    with building(Names(used_names(func))):
        return with_body(func, _visit(func.body, ints))


def _visit(block: Block, ints: Ints) -> Block:
    block = with_contents(block, [with_blocks(s, [_visit(b, ints) for b in blocks(s)]) for s in block.stmts])
    for loop in block.stmts:
        for number, init in enumerate(loop.inits) if isinstance(loop, For) else ():
            assert isinstance(loop, For)
            made = _made(init, block)
            step = None if made is None else step_of_states(loop, number, ints)
            if made is None or step is None:
                continue
            try:
                with building() as b:
                    results = _Rewriting(loop, step, ints).block(block, made)
            except UnfitError:
                continue
            return Block(tuple(b.stmts), results)
    return block


def _made(init: Value, block: Block) -> Let | None:
    """The statement of the block that makes a tape for one loop alone."""
    if init.type.rank < 2 or not isinstance(init, Var):
        return None
    made = next((s for s in block.stmts if init in s.targets), None)
    uses = [v for s in all_statements(block) for v in (*operands(s), *(r for b in blocks(s) for r in b.results))]
    alone = uses.count(init) == 1 and init not in block.results
    return made if alone and isinstance(made, Let) and made.op.is_unset else None


class _Rewriting:
    """Emits a block in which the states of one loop are rows of its tape, at the current builder.

    now: the newest version of the tape.  row: of the trip.
    """

    def __init__(self, loop: For, step: Step, ints: Ints) -> None:
        self.loop, self.step, self.ints, self.ends = loop, step, ints, Ends(ints)
        self.ahead = len(step.states)               # in which row behind the trip's own its new state is
        self.old = loop.carries[step.tape]
        self.type = Type(self.old.type.dtype, (self.old.type.shape[0] + self.ahead, *self.old.type.shape[1:]))
        self.rows = {loop.carries[k]: self.ahead - 1 - n for n, k in enumerate(step.states)}
        self.versions: set[Value] = set()           # of the trip's new state
        self.newest: Value | None = step.base       # of them
        self.tapes: set[Value] = {self.old}         # versions of the old tape
        self.now: Var = self.old
        self.row: Value = loop.index
        self.levels: list[For] = []                 # of the nest, around what is rewritten
        self.is_filled = step.base is None          # whether all elements of the trip's new state are there

    def block(self, block: Block, made: Let) -> tuple[Value, ...]:
        """All of the loop's block; its results."""
        target = self.loop.targets[self.step.tape]
        if target in block.results:
            raise UnfitError
        is_over = False
        for stmt in block.stmts:
            if stmt is self.loop:
                with located(self.loop.loc):
                    self._loop(block, made.target)
                is_over = True
            elif stmt is made:
                pass
            elif is_over:
                current().stmts.append(self._behind(stmt, target))
            else:
                current().stmts.append(stmt)
        return block.results

    def _loop(self, block: Block, name: Var) -> None:
        loop, step = self.loop, self.step
        tape: Value = ops.empty(shape=self.type.shape, dtype=self.type.dtype)
        for k in step.states:
            tape = self._row_from(tape, loop.inits[k], self.rows[loop.carries[k]], block)
        assert isinstance(tape, Var)
        outer = current()
        carry = outer.var(self.type, name.name)
        self.now = carry
        with building() as b:
            self.row = loop.index if _is_zero(loop.lo) else loop.index - loop.lo     # type: ignore[operator]
            for stmt in loop.body.stmts:
                self._statement(stmt, b.stmts)
        kept = [k for k in range(len(loop.carries)) if k not in step.states]
        self._refuse_others([r for k, r in enumerate(loop.body.results) if k in kept and k != step.tape])
        if loop.body.results[step.states[0]] is not self.newest:
            raise UnfitError
        self.last = outer.var(self.type, name.name)

        def without(values: Sequence[Value], tape: Value) -> list[Value]:
            return [tape if k == step.tape else values[k] for k in kept]

        outer.stmts.append(replace(
            loop, targets=tuple(without(loop.targets, self.last)),                   # type: ignore[arg-type]
            carries=tuple(without(loop.carries, carry)), inits=tuple(without(loop.inits, tape)),   # type: ignore[arg-type]
            body=Block(tuple(b.stmts), tuple(without(loop.body.results, self.now)))))
        self._states_left(block)

    def _states_left(self, block: Block) -> None:
        """The states after the loop, where anybody reads them."""
        later = block.stmts[block.stmts.index(self.loop) + 1:]
        read = {*block.results, *(v for s in later for v in (*operands(s), *(r for b in blocks(s) for r in reads(b))))}
        trips: Value | None = None
        for n, k in enumerate(self.step.states):
            target = self.loop.targets[k]
            if target in read:
                if trips is None:
                    trips = ops.maximum(self.loop.hi - self.loop.lo, int_const(0))   # type: ignore[operator]
                row = plus(trips, self.ahead - 1 - n)
                new = ops.empty(shape=target.type.shape, dtype=target.type.dtype)
                copied = _over(target.type, new, lambda place, row=row: ops.load(    # type: ignore[misc]
                    self.last, row, *place, index=_at(len(place) + 1)), lambda place: place)
                made = current().stmts.pop()
                assert isinstance(made, For) and copied in made.targets
                current().stmts.append(replace(made, targets=(target,)))

    def _row_from(self, tape: Value, state: Value, row: int, block: Block) -> Value:
        """The tape with all of an array in a row; what the block has just put together is put there again."""
        made = {t: s for s in block.stmts for t in s.targets}
        stores: list[Let] = []
        stmt = made.get(state) if isinstance(state, Var) else None
        while isinstance(stmt, Let) and stmt.op.access == "store" and is_element(stmt):
            stores.insert(0, stmt)
            stmt = made.get(stmt.args[0])                                       # type: ignore[arg-type]
        if stores and isinstance(stmt, Let) and stmt.op.is_unset:
            for let in stores:
                place = (int_const(row), *let.args[2:])
                tape = ops.store(tape, let.args[1], *place, index=_at(len(place)))
            return tape
        value = self._each_of(made.get(state), made) if isinstance(state, Var) else None    # type: ignore[arg-type]
        return _over(state.type, tape, value or (lambda place: _element(state, place)),
                     lambda place: (int_const(row), *place))

    def _each_of(self, stmt: Stmt | None, made: dict[Var, Stmt]) -> Callable[[tuple[Value, ...]], Value] | None:
        """How a nest makes the element at a place, if it makes each of a new array by itself."""
        if not isinstance(stmt, For) or len(stmt.carries) != 1 or not (levels := levels_of(stmt, 0)):
            return None
        unset, store = made.get(stmt.inits[0]), levels[-1].writer               # type: ignore[arg-type]
        indices = tuple(level.loop.index for level in levels)
        lets = levels[-1].loop.body.stmts
        if not isinstance(unset, Let) or not unset.op.is_unset or not isinstance(store, Let) or (
                store.op.access != "store" or store.args[2:] != indices or not is_element(store)
                or any(len(level.loop.body.stmts) != 1 for level in levels[:-1])
                or not all(isinstance(s, Let) and s.op.is_pure and levels[-1].version not in s.args
                           for s in lets if s is not store)):
            return None

        def value(place: tuple[Value, ...]) -> Value:
            copier = Copier(dict(zip(indices, place)))
            for let in lets:
                if let is not store:
                    copier.statement(let)
            return copier.value(store.args[1])

        return value

    # --- what is in the loop

    def _statement(self, stmt: Stmt, into: list[Stmt]) -> None:
        if stmt is self.step.copy:
            self.tapes.update(stmt.targets)
            return
        if stmt is self.step.first:
            if isinstance(stmt, Let) and stmt.op.is_unset:
                self.versions.add(stmt.target)
                self.newest = stmt.target
                return
            if self.step.base is not None:
                self.versions.add(self.step.base)
                self._keep_outside()
        match stmt:
            case Let() if stmt.op.access is not None and self._is_own(stmt.args[0]):
                self._refuse_others(stmt.args[1:])
                into.append(self._access(stmt))
            case For():
                into.append(self._inner(stmt))
            case _:
                self._refuse_others(operands(stmt))
                into.append(with_blocks(stmt, [self._only_reading(b) for b in blocks(stmt)]))

    def _is_own(self, value: Value) -> bool:
        return value in self.rows or value in self.versions or value in self.tapes

    def _refuse_others(self, values: Sequence[Value]) -> None:
        if any(self._is_own(v) for v in values):
            raise UnfitError

    def _only_reading(self, block: Block) -> Block:
        """A branch or the like."""
        before = self.now
        with building() as b:
            for stmt in block.stmts:
                self._statement(stmt, b.stmts)
        self._refuse_others(block.results)
        if self.now is not before:
            raise UnfitError
        return Block(tuple(b.stmts), block.results)

    def _access(self, let: Let) -> Let:
        array, is_load = let.args[0], let.op.access == "load"
        if not is_element(let):
            raise UnfitError
        if array in self.tapes:
            if not is_load:
                raise UnfitError
            row, place = plus(let.args[1], self.ahead - 1), let.args[2:]
        elif array in self.versions and (array is not self.step.base or not is_load):
            if array is not self.newest:
                raise UnfitError
            place = let.args[1 if is_load else 2:]
            row = plus(self.row, 0 if is_load and self._is_old(let) else self.ahead)
        else:
            row, place = plus(self.row, self.rows[array]), let.args[1:]         # type: ignore[index]
        values = () if is_load else let.args[1:2]
        index = _at(len(place) + 1)
        changed = replace(let, args=(self.now, *values, row, *place), params={**let.params, "index": index})
        if is_load:
            return changed
        self.now = current().var(self.type, let.target.name)
        self.versions.add(let.target)
        self.newest = let.target
        return replace(changed, targets=(self.now,))

    def _is_old(self, load: Let) -> bool:
        """Whether it reads, in a trip of the nest, what the trip is about to store to."""
        if not self.levels:
            if not self.is_filled:
                raise UnfitError
            return False
        own = self.levels[-1].body.stmts
        store = self.step.store
        if len(self.levels) < len(self.step.nest) or load not in own or own.index(load) > own.index(store) or (
                self.step.base is None or isinstance(self.step.base, Const) or any(
                    self.ints.dim(a) != self.ints.dim(b) for a, b in zip(load.args[1:], store.args[2:], strict=True))):
            raise UnfitError
        return True

    def _inner(self, loop: For) -> For:
        numbers = [k for k, v in enumerate(loop.inits) if v in self.versions]
        self._refuse_others([v for k, v in enumerate(operands(loop)) if k - 3 not in numbers])
        if len(numbers) > 1:
            raise UnfitError
        outer = self.now
        inits, carries, targets = loop.inits, loop.carries, loop.targets
        number = numbers[0] if numbers else -1
        if numbers:
            if inits[number] is not self.newest:
                raise UnfitError
            self.newest = carries[number]
            inits = tuple(self.now if k == number else v for k, v in enumerate(inits))
            self.now = current().var(self.type, carries[number].name)
            self.versions.add(carries[number])
            carries = tuple(self.now if k == number else v for k, v in enumerate(carries))
        is_level = loop in self.step.nest
        self.levels += [loop] * is_level
        before = self.now
        with building() as b:
            for stmt in loop.body.stmts:
                self._statement(stmt, b.stmts)
        del self.levels[len(self.levels) - is_level:]
        self.is_filled = self.is_filled or loop is self.step.nest[0]
        results = loop.body.results
        self._refuse_others([r for k, r in enumerate(results) if k != number])
        if numbers:
            if results[number] is not self.newest:
                raise UnfitError
            self.newest = targets[number]
            results = tuple(self.now if k == number else r for k, r in enumerate(results))
            self.now = current().var(self.type, targets[number].name)
            self.versions.add(targets[number])
            targets = tuple(self.now if k == number else t for k, t in enumerate(targets))
        elif self.now is not before:
            raise UnfitError
        else:
            self.now = outer
        return replace(loop, inits=inits, carries=carries, targets=targets, body=Block(tuple(b.stmts), results))

    def _keep_outside(self) -> None:
        """Copy what the nest does not store to from the oldest state."""
        base = self.step.base

        def value(place: tuple[Value, ...]) -> Value:
            assert base is not None
            if isinstance(base, Const):
                return Const(base.value, base.type.scalar)
            return ops.load(self.now, self.row, *place, index=_at(len(place) + 1))

        sizes = [size_value(d) for d in self.type.shape[1:]]
        whole = [(int_const(0), size) for size in sizes]
        box = [(plus(*begin), plus(*end)) for begin, end in self.step.box]
        for axis, ((begin, end), size) in enumerate(zip(box, sizes)):
            for lo, hi in ((int_const(0), self.ends.least(begin, size)), (self.ends.most(end, int_const(0)), size)):
                if self.ends.apart(lo, hi) == 0:
                    continue
                inner = [self._inside(b, s) for b, s in zip(box[:axis], sizes)]
                self.now = self._copied([*inner, (lo, hi), *whole[axis + 1:]], value)

    def _copied(self, box: Sequence[tuple[Value, Value]], value: Callable[[tuple[Value, ...]], Value]) -> Var:
        """The tape with the values in a box of the trip's new state."""
        row = plus(self.row, self.ahead)

        def along(array: Value, place: tuple[Value, ...]) -> Value:
            self.now = array                                                    # type: ignore[assignment]
            if len(place) == len(box):
                return ops.store(array, value(place), row, *place, index=_at(len(place) + 1))
            lo, hi = box[len(place)]
            if self.ends.apart(lo, hi) == 1:
                return along(array, (*place, lo))
            return for_loop(lo, hi, [array], lambda i, now: [along(now, (*place, i))], index="i")[0]

        result = along(self.now, ())
        assert isinstance(result, Var)
        return result

    def _inside(self, box: tuple[Value, Value], size: Value) -> tuple[Value, Value]:
        return self.ends.most(box[0], int_const(0)), self.ends.least(box[1], size)

    # --- what is behind the loop

    def _behind(self, stmt: Stmt, target: Var) -> Stmt:
        """The statement with the reads of the tape where its rows are now."""
        if target in operands(stmt):
            if not isinstance(stmt, Let) or stmt.op.access != "load" or stmt.args[0] is not target or not (
                    is_element(stmt)):
                raise UnfitError
            return replace(stmt, args=(self.last, plus(stmt.args[1], self.ahead - 1), *stmt.args[2:]))
        if not any(target in reads(b) for b in blocks(stmt)):
            return stmt
        inner = []
        for block in blocks(stmt):
            if target in block.results:
                raise UnfitError
            with building() as b:
                for s in block.stmts:
                    current().stmts.append(self._behind(s, target))
            inner.append(Block(tuple(b.stmts), block.results))
        return with_blocks(stmt, inner)


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 0


def _at(count: int) -> tuple[At, ...]:
    return (At(),) * count


def _element(array: Value, place: Sequence[Value]) -> Value:
    return Const(array.value, array.type.scalar) if isinstance(array, Const) else ops.load(
        array, *place, index=_at(len(place)))


def _over(type: Type, array: Value, value: Callable[[tuple[Value, ...]], Value],
          where: Callable[[tuple[Value, ...]], tuple[Value, ...]]) -> Value:
    """The array with a value for each element of a type, at the place that it has there."""
    def along(array: Value, place: tuple[Value, ...]) -> Value:
        if len(place) == type.rank:
            target = where(place)
            return ops.store(array, value(place), *target, index=_at(len(target)))
        size = size_value(type.shape[len(place)])
        return for_loop(int_const(0), size, [array], lambda i, now: [along(now, (*place, i))], index="i")[0]

    return along(array, ())
