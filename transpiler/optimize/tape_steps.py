"""Loops of which a tape keeps each state, and whose steps store to a box of elements: what `write_ahead` asks of them.

    for t in 0 .. n carry (u, v, tape):               tape: 2, states: 0 and 1, base: v, box: 1 .. m - 1
      for i in 0 .. m: tape[t, i] = u[i]
      for i in 1 .. m - 1: v[i] = f(u, i)
      yield v, u, tape
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.ints import Ints
from ..ir.nodes import Const, For, Let, Stmt, Value, Var
from ..ir.walk import all_statements, bound_inside
from .apart import copied_by, levels_of
from .lay_out import is_element

FEWEST = 4          # trips: the first states are copied to the tape, and the last ones from it


End = tuple[Value, int]         # an int and what is to be added to it


@dataclass(frozen=True)
class Step:
    """tape: the number of the carry.  copy: the nest that saves the state.  states: the numbers of the states, the
    newest first.  base: what the trip's new state has where it stores nothing; None: a new array.  nest: the loops
    that store to a box, outermost first.  store: their store.  box: begin and end along each axis."""

    tape: int
    copy: For
    states: tuple[int, ...]
    base: Value | None
    first: Stmt
    nest: tuple[For, ...]
    store: Let
    box: tuple[tuple[End, End], ...]


def step_of_states(loop: For, number: int, ints: Ints) -> Step | None:
    if loop.parallel or loop.abreast or loop.checkpoint is not None or not (
            isinstance(loop.step, Const) and loop.step.value == 1) or _has_few_trips(loop):
        return None
    tape = loop.carries[number]
    copy, state = _saved(loop, tape, ints)
    if copy is None or state is None or loop.body.results[number] not in copy.targets:
        return None
    states, newest = [state], loop.body.results[loop.carries.index(state)]
    while states[-1] in loop.body.results:
        number_of_older = loop.body.results.index(states[-1])
        if loop.body.results.count(states[-1]) > 1 or loop.carries[number_of_older] in states:
            return None
        states.append(loop.carries[number_of_older])
    if newest in loop.carries or loop.body.results.count(newest) > 1:
        return None
    return _with_nest(loop, number, copy, states, newest, ints)


def _has_few_trips(loop: For) -> bool:
    return isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and loop.hi.value - loop.lo.value < FEWEST


def _saved(loop: For, tape: Var, ints: Ints) -> tuple[For | None, Var | None]:
    """The nest that puts a state into the trip's row of the tape, and the state."""
    for stmt in loop.body.stmts:
        if isinstance(stmt, For) and tape in stmt.inits:
            found = copied_by(stmt, ints)
            if found is None:
                return None, None
            state, where = found
            trip = ints.dim(loop.index) - ints.dim(loop.lo)
            fits = state in loop.carries and len(where.prefix) == 1 and ints.dim(where.prefix[0]) == trip
            return (stmt, state) if fits and state.type.shape == tape.type.shape[1:] else (None, None)
    return None, None


def _with_nest(loop: For, number: int, copy: For, states: Sequence[Var], newest: Value, ints: Ints) -> Step | None:
    """The step, if the newest state comes from the oldest or from a new array, through a nest over a box."""
    made = {t: s for s in loop.body.stmts for t in s.targets}
    writers: list[Stmt] = []
    version = newest
    while isinstance(version, Var) and version in made:
        stmt = made[version]
        if isinstance(stmt, For):
            version = stmt.inits[stmt.targets.index(version)]
        elif isinstance(stmt, Let) and stmt.op.access in ("store", "add_at"):
            version = stmt.args[0]
        elif isinstance(stmt, Let) and stmt.op.is_unset:
            break
        else:
            return None
        writers.insert(0, stmt)
    is_new = version in made
    if not writers or not (is_new or isinstance(version, Const) or version is states[-1]):
        return None
    base = None if is_new else version
    numbers = tuple(loop.carries.index(s) for s in states)
    version = writers[0].args[0] if isinstance(writers[0], Let) else version
    for stmt in writers:
        if isinstance(stmt, For):
            levels = levels_of(stmt, stmt.inits.index(version))
            box = _box(levels[-1].writer, [level.loop for level in levels], ints) if levels else None
            if box is None:
                return None
            store = levels[-1].writer
            assert isinstance(store, Let)
            return Step(number, copy, numbers, base, writers[0], tuple(level.loop for level in levels), store, box)
        version = stmt.targets[0]
    return None


def _box(store: Stmt, nest: Sequence[For], ints: Ints) -> tuple[tuple[End, End], ...] | None:
    """Begin and end along each axis of all that a nest stores to, if each trip stores to one element of it."""
    if not isinstance(store, Let) or store.op.access != "store" or not is_element(store) or (
            len(store.args) - 2 != len(nest)):
        return None
    inside = {v for s in all_statements(nest[0].body) for v in (*s.targets, *bound_inside(s))} | {nest[0].index}
    box = []
    left = list(nest)
    for place in store.args[2:]:
        for level in left:
            apart = ints.dim(place) - ints.dim(level.index)
            if isinstance(apart, int):
                break
        else:
            return None
        if not isinstance(level.step, Const) or abs(level.step.value) != 1 or level.lo in inside or level.hi in inside:
            return None
        left.remove(level)
        up = level.step.value > 0
        box.append(((level.lo, apart), (level.hi, apart)) if up else ((level.hi, apart + 1), (level.lo, apart + 1)))
    return tuple(box)
