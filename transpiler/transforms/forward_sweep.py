"""The forward sweep of the reverse mode: the func's own statements, saving what is needed later.

    before                                after
    y = for i in 0 .. n carry (x = x0):   x_tape_0 = empty (n,)
      x_1 = f(x)                          y, x_tape = for i in 0 .. n carry (x = x0, t = x_tape_0):
      yield x_1                             t_1 = store(t, x, i)
                                            x_1 = f(x)
                                            yield x_1, t_1

A tape of a nested loop has an axis for each loop around.  Where the trips of an inner loop follow from the outer
iteration, its axis is as long as the most trips: those at the end of the outer loop's range where they grow or fall
with its index, else found by running the loops once for that alone.  A value whose size follows from indices has room
for its greatest size in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from .. import ops
from ..errors import error
from ..ir.build import Builder, building, const, current, int_const, size_value
from ..ir.dims import maximum, symbol, symbols_of
from ..ir.index import At, Span
from ..ir.nodes import Block, Check, Const, For, If, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import Copier
from .counted import counting_alone
from .overlap import Places
from .residuals import Residuals
from .scopes import Scope, Scopes


@dataclass(eq=False)
class Thread:
    """A value that goes through the statements `path` (outermost first) and is changed by `update` at the end of the
    body of the last loop on it, or before the loop `before`."""

    start: Value
    name: str
    path: tuple[Stmt, ...]
    update: Callable[[Value, Sequence[Value]], Value]
    before: For | None = None
    saves: Var | None = None


@dataclass
class Saved:
    """Where saved values are: tapes by variable, exported arm values by variable."""

    tapes: dict[Var, Value] = field(default_factory=dict)
    exports: dict[Var, Var] = field(default_factory=dict)


class ForwardSweep:
    """Emits statements of the root with everything in `residuals` saved; the result is in `saved`."""

    def __init__(self, scopes: Scopes, residuals: Residuals, pairs: Mapping[For, While] | None = None,
                 places: Places | None = None) -> None:
        self.scopes, self.residuals = scopes, residuals
        self.places = places or Places(scopes)
        self.saved = Saved()
        self._counting = {count: loop for loop, count in (pairs or {}).items()}
        self._trips: dict[For, Value] = {}
        self._state: dict[Thread, Value] = {}
        self._counters: list[Value] = []
        self._without_checks = False
        self._saving = {loop for scope, found in residuals.saved.items() if any(v not in residuals.own for v in found)
                        for loop in scope.loops()}

    def statement(self, stmt: Stmt) -> None:
        """Emit a statement of the root."""
        if isinstance(stmt, (For, If)):
            kept = [(v, scope) for scope, found in self.residuals.saved.items() for v in found
                    if v not in self.residuals.own and _owners(scope)[0] is stmt]
            homes = [(v, home) for v, scope in kept if (home := self._home(scope)) is not None]
            self._prepare_trips(stmt, [home for _, home in homes])
            threads = [self._tape(v, home) for v, home in homes]
            self._through(stmt, threads)
            for (var, _), thread in zip(homes, threads, strict=True):
                self.saved.tapes[var] = self._state[thread]
            return
        self._emit(stmt, ())

    def again(self, loop: For, copier: Copier) -> dict[Var, Value]:
        """Emit an inner loop once more, for values that it saves for its own iterations; gives their tapes.

        `copier` knows all that it reads, and then its results.
        """
        own = [v for v, home in self.residuals.own.items() if home is loop]
        trips = self._room(loop, copier) if own else None
        threads = []
        for var in own:
            assert trips is not None
            home = self._home(self.scopes.of[var])
            assert home is not None
            loops, path = home.loops(), _owners(home)
            inner = [self._most_trips_inside(each) for each in loops[loops.index(loop) + 1:]]
            shape = [self._most_elements(var, dim, home) if self._changes_in(loop, dim) else now
                     for dim, now in zip(var.type.shape, copier.type(var.type).shape)]
            threads.append(self._thread(var, Type(var.type.dtype, (as_dim(trips), *inner, *shape)),
                                        tuple(path[path.index(loop):])))
        self._without_checks = True
        with building() as scratch:
            self._begin(threads)
            self._loop(loop, threads)
        for made in scratch.stmts:
            copier.statement(made)
        return {var: copier.value(self._state[t]) for var, t in zip(own, threads, strict=True)}

    def _most_trips_inside(self, loop: For) -> Any:
        most = self.places.most_trips(loop)
        assert most is not None         # or nothing of its iterations would be saved on a tape of a loop around
        return as_dim(size_value(most))

    def _room(self, loop: For, copier: Copier) -> Value:
        """The length of tapes of one run of an inner loop; the same for all runs where that is known, so that they can
        share memory."""
        most = self.places.most_trips(loop)
        if most is not None:
            return size_value(most)
        return trip_count(*(copier.value(v) for v in (loop.lo, loop.hi, loop.step)))

    def _home(self, scope: Scope) -> Scope | None:
        """The innermost loop whose iterations a value of the scope belongs to; None outside of loops."""
        return next((s for s in scope.around() if s.is_loop), None)

    # --- threads -----------------------------------------------------------------------------------------------

    def _tape(self, var: Var, home: Scope) -> Thread:
        dims = [as_dim(self._trips[loop]) for loop in home.loops()]
        shape = [self._most_elements(var, dim, home) for dim in var.type.shape]
        return self._thread(var, Type(var.type.dtype, (*dims, *shape)), tuple(_owners(home)))

    def _thread(self, var: Var, type: Type, path: tuple[Stmt, ...]) -> Thread:
        start = ops.empty(shape=type.shape, dtype=type.dtype)
        start.name = current().names.fresh(f"{var.name}_tape")

        def update(tape: Value, counters: Sequence[Value]) -> Value:
            value = self.saved.exports.get(var, var)
            rest = tuple(Span(0, d) for d in var.type.shape)
            return ops.store(tape, value, *counters, index=(*[At()] * len(counters), *rest))

        return Thread(start, start.name, path, update, saves=var)

    def _most_elements(self, var: Var, dim: Any, home: Scope) -> Any:
        """How long a variable is along an axis in any iteration."""
        most = self.places.most(dim, home.loops())
        if most is None:
            raise error("E204", f"the derivative needs `{var.name}` of every iteration, and its size changes "
                        "from one to the next", home.owner.loc if home.owner else None, kind=NotImplementedError)
        return most if most == dim else as_dim(size_value(maximum(most, 0)))

    def _changes_in(self, loop: For, dim: Any) -> bool:
        """Whether a size may be another one in each iteration of a loop."""
        names, inside = self.scopes.by_name(), self.scopes.inside[(loop, 0)]
        return any(inside in self.scopes.of[names[s]].around() for s in symbols_of(dim) if s in names)

    def _through(self, stmt: Stmt, threads: Sequence[Thread]) -> None:
        self._begin(threads)
        self._emit(stmt, threads)

    def _begin(self, threads: Sequence[Thread]) -> None:
        self._state = {thread: thread.start for thread in threads}
        self._counters = []

    def _emit(self, stmt: Stmt, threads: Sequence[Thread]) -> None:
        for thread in threads:
            if thread.before is stmt:
                self._state[thread] = thread.update(self._state[thread], [self._trips_of(stmt)])  # type: ignore
        mine = [t for t in threads if stmt in t.path]
        counted = self._counting.get(stmt) if isinstance(stmt, While) else None
        if counted is not None and not self._saves_in(counted, threads):
            assert isinstance(stmt, While)
            current().stmts.append(counting_alone(stmt, counted))
        elif isinstance(stmt, For) and not mine and stmt in self._counting.values():
            pass                                          # the loop that counts it has given its results
        elif isinstance(stmt, For):
            self._loop(stmt, mine)
        elif isinstance(stmt, If):
            self._branch(stmt, mine)
        elif not (self._without_checks and isinstance(stmt, Check)):
            current().stmts.append(stmt)

    def _saves_in(self, loop: For, threads: Sequence[Thread]) -> bool:
        return any(loop in t.path for t in threads) if self._without_checks else loop in self._saving

    def _loop(self, stmt: For, threads: Sequence[Thread]) -> None:
        outer = current()
        carries = tuple(outer.var(self._state[t].type, t.name) for t in threads)
        inits = tuple(self._state[t] for t in threads)
        with building() as b:
            self._state.update(zip(threads, carries, strict=True))
            self._counters.append(counter_of(stmt))
            mine = [t for t in threads if t.path[-1] is stmt and t.before is None]
            self._save(mine, None, stmt)
            for inner in stmt.body.stmts:
                self._emit(inner, threads)
                self._save(mine, inner, stmt)
            self._counters.pop()
            results = tuple(self._state[t] for t in threads)
        targets = tuple(outer.var(v.type, t.name) for t, v in zip(threads, inits, strict=True))
        outer.stmts.append(replace(stmt, targets=(*stmt.targets, *targets), carries=(*stmt.carries, *carries),
                                   inits=(*stmt.inits, *inits), parallel=False,
                                   body=Block(tuple(b.stmts), (*stmt.body.results, *results))))
        self._state.update(zip(threads, targets, strict=True))

    def _save(self, threads: Sequence[Thread], made: Stmt | None, loop: For) -> None:
        """Put what the statement has made on its tapes (None: what the iteration begins with), before it is written
        over."""
        scope = self.scopes.inside[(loop, 0)]
        for thread in threads:
            var = thread.saves
            assert var is not None
            at: Stmt | None = scope.defined[var] if var in scope.defined else self._branch_around(var, scope)
            if at is made:
                self._state[thread] = thread.update(self._state[thread], self._counters)

    def _branch_around(self, var: Var, scope: Scope) -> Stmt:
        """The statement of the scope in whose arms the variable is."""
        inner = self.scopes.of[var]
        while inner.parent is not scope:
            assert inner.parent is not None
            inner = inner.parent
        assert inner.owner is not None
        return inner.owner

    def _branch(self, stmt: If, threads: Sequence[Thread]) -> None:
        outer = current()
        before = {t: self._state[t] for t in threads}
        arms: list[Builder] = []
        found: list[list[Value]] = []
        exports = [v for arm in (0, 1) for v in self._shown_by(self.scopes.inside[(stmt, arm)]) if self._exports(v)]
        for arm, block in enumerate((stmt.then, stmt.orelse)):
            own = self.scopes.inside[(stmt, arm)]
            with building() as b:
                self._state.update(before)
                for inner in block.stmts:
                    self._emit(inner, threads)
                here = [self.saved.exports.get(v, v) if own in arms_around(self.scopes.of[v]) else const(0, v.type)
                        for v in exports]
                found.append([*block.results, *here, *(self._state[t] for t in threads)])
            arms.append(b)
        shown = tuple(outer.var(v.type, v.name) for v in exports)
        targets = tuple(outer.var(before[t].type, t.name) for t in threads)
        then, orelse = (Block(tuple(b.stmts), tuple(r)) for b, r in zip(arms, found, strict=True))
        outer.stmts.append(If((*stmt.targets, *shown, *targets), stmt.pred, then, orelse, stmt.loc))
        self.saved.exports.update(zip(exports, shown, strict=True))
        self._state.update(zip(threads, targets, strict=True))

    def _exports(self, var: Var) -> bool:
        """Whether a value of an arm is saved here: on a tape of a loop around, or where there is none by itself."""
        if var in self.residuals.own:
            return any(thread.saves is var for thread in self._state)
        return not self._without_checks

    def _shown_by(self, arm: Scope) -> list[Var]:
        """Saved values of an arm and of the branches in it: results of each of these, they reach what comes after."""
        return [v for scope, found in self.residuals.saved.items() if arm in arms_around(scope) for v in found]

    # --- trips -------------------------------------------------------------------------------------------------

    def _trips_of(self, loop: For) -> Value:
        """Emit how many iterations a loop has; its bounds are in scope."""
        return trip_count(loop.lo, loop.hi, loop.step)

    def _prepare_trips(self, stmt: For | If, homes: Sequence[Scope]) -> None:
        """Find the trips of all loops that have tapes, before the statement."""
        loops = list(dict.fromkeys(loop for home in homes for loop in home.loops()))
        uneven: list[For] = []
        for loop in loops:
            if loop in self._trips:
                continue
            if all(self._at_root(v) for v in (loop.lo, loop.hi, loop.step)):
                self._trips[loop] = self._trips_of(loop)
                continue
            most = self.places.most_trips(loop)
            if most is None:
                uneven.append(loop)
            else:
                self._trips[loop] = size_value(most)
        for loop in uneven:
            self._trips[loop] = self._most_trips(stmt, loop)

    def _at_root(self, value: Value) -> bool:
        return isinstance(value, Const) or self.scopes.of.get(value) in (None, self.scopes.root)

    def _most_trips(self, stmt: For | If, loop: For) -> Value:
        """Run a copy of the statement that only finds the most trips of a loop in it."""
        path = tuple(_owners(self.scopes.inside[(loop, 0)]))[:-1]

        def update(most: Value, trips: Sequence[Value]) -> Value:
            return ops.maximum(most, trips[0])

        thread = Thread(int_const(0), "most", path, update, before=loop)
        sweep = ForwardSweep(self.scopes, Residuals())
        with building() as scratch:
            sweep._through(stmt, [thread])
        copier = Copier()
        for made in scratch.stmts:
            copier.statement(made)
        return copier.value(sweep._state[thread])


def as_dim(trips: Value) -> Any:
    return int(trips.value) if isinstance(trips, Const) else symbol(trips.name, 0)


def arms_around(scope: Scope) -> list[Scope]:
    """The arms of branches that the scope is or stands in, up to the next loop."""
    return list(takewhile(lambda s: isinstance(s.owner, If), scope.around()))


def _owners(scope: Scope) -> list[For | If]:
    """The statements around a scope's code, outermost first, its own owner last."""
    return [s.owner for s in scope.around() if s.owner is not None][::-1]


def counter_of(loop: For, index: Value | None = None) -> Value:
    """Emit the number of the iteration, counted from 0."""
    at = loop.index if index is None else index
    if isinstance(loop.lo, Const) and loop.lo.value == 0 and isinstance(loop.step, Const) and loop.step.value == 1:
        return at
    distance = at - loop.lo
    return distance if isinstance(loop.step, Const) and loop.step.value == 1 else ops.floor_divide(distance, loop.step)


def trip_count(lo: Value, hi: Value, step: Value) -> Value:
    """Emit how many iterations `range(lo, hi, step)` has."""
    if isinstance(step, Const) and step.value in (1, -1):
        count = hi - lo if step.value == 1 else lo - hi
        if isinstance(lo, Const) and lo.value == 0 and step.value == 1:
            count = hi
    elif isinstance(step, Const):
        size = abs(step.value)
        count = ops.floor_divide((hi - lo if step.value > 0 else lo - hi) + (size - 1), const(size, step.type))
    else:
        forward = ops.floor_divide(hi - lo + step - 1, step)
        backward = ops.floor_divide(lo - hi - step - 1, ops.negative(step))
        count = ops.select(step > 0, forward, backward)
    return ops.maximum(count, const(0, hi.type))
