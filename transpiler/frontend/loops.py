"""Loops whose trips are counted, or ended, by the running function.

    s = 0.0                          s = For i in 0..n, carrying acc = 0.0:
    for i in range(n):                   t = load(x, i)
        s += x[i]                        yield acc + t

What a trip changes is found by interpreting the body: what differs afterwards is carried, and the body is interpreted
again with the carried values in place, until nothing new comes up.  Numbers are carried in the type that they have
after the first trip, too: an int that becomes a float is a float from the start.

`break` and `return` in some trips make the loop a While that carries bools for how it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gast

from .. import ops
from ..errors import Location, TranspileError, error
from ..ir.build import Builder, building, const, current
from ..ir.dims import symbol
from ..ir.nodes import Block, Const, For, If, Let, Value, Var, While
from ..ir.types import BOOL, I64
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .arms import (
    Jump,
    Mixed,
    Outcome,
    both,
    either,
    emit_raise,
    flag_of,
    must_run,
    negated,
    run_arm,
    value_of,
)
from .branches import (
    branch,
)
from .carried import (
    Loop,
    Pass,
    Place,
    changes_of,
    guessed,
    hints_of,
    put_in,
    same_shared,
    shared_by,
    taken_out,
)
from .differences import (
    prune,
)
from .environment import Frame
from .interpreter import Probe
from .liveness import live_at_head
from .merge import (
    Merger,
)
from .ranges import is_natural
from .state import State, capture, restore, resumed, same_contents
from .templates import (
    Broken,
    Slot,
    Template,
    placeholder,
    same_template,
)
from .values import ArrayRef

if TYPE_CHECKING:
    from .interpreter import Interpreter


MAX_PASSES = 12
EXITS = ("break", "return")
NEED_UNROLLING = frozenset({"E110", "E117", "E121", "E122", "E123", "E126", "E311", "E313"})


def run_loop(loop: Loop) -> Outcome:
    """Emit the loop; the state is then that after it.  Returns how it leaves the block that it stands in."""
    it, node, frame = loop.it, loop.node, loop.frame
    it.leave_probe()
    where = frame.location(node)
    outer = current()
    live = live_at_head(frame.node, node) if frame.node is not None else None
    prune(frame, live)
    before = capture(it, frame, () if loop.trips is None else loop.trips.held)
    names, steps = it.names.taken.copy(), it.steps
    decided, kept = it.decided.copy(), it.kept.copy()
    templates = guessed(loop, before)
    shared: dict[int, list[ArrayRef]] = {}
    frame.loops.append(live if live is not None else frozenset(frame.variables))
    try:
        for number in range(MAX_PASSES):
            it.steps = steps + 1
            it.forget_names(names)
            restore(before)
            it.at(where)
            it.decided, it.kept = decided.copy(), kept.copy()
            done = _interpret(loop, before, templates, shared, live, outer, where)
            if done is None:                 # the test has effects: it goes into the body
                loop.test_in_body = True
                templates, shared = {}, {}
                continue
            if done.arm.problem is not None:
                if not templates:
                    return _first_trip_raises(loop, before, done)
                if number:
                    raise done.arm.problem
                templates = {}               # without the guess, it is the first trip
                continue
            if done.found.keys() == templates.keys() and same_shared(done.shared, shared) and all(
                    same_template(t, templates[k]) for k, t in done.found.items()):
                break
            templates, shared = done.found, done.shared
        else:
            raise error("E122", "what this loop carries does not settle", where)
    except TranspileError:
        it.decided, it.kept = decided, kept      # it may be unrolled
        raise
    finally:
        frame.loops.pop()
    it.loop_types[id(node), id(frame)] = {
        key: t for (cell, key), t in templates.items() if cell == id(frame) and isinstance(t, Slot) and t.pair is None}
    return _finish(loop, before, done, templates, outer, where)


def _interpret(loop: Loop, before: State, templates: dict[Place, Template], shared: dict[int, list[ArrayRef]],
               live: frozenset[str] | None, outer: Builder, where: Location) -> Pass | None:
    it, node, frame = loop.it, loop.node, loop.frame
    merger = Merger(it, "E122", where, (before, None))
    carries = [outer.var(type, name) for type, name in hints_of(before, merger, templates)]
    with building() as body:
        put_in(loop, before, merger, templates, shared, iter(carries))
        start = capture(it, frame, known=before)
        index = None
        if loop.trips is not None:
            target = node.target.id if isinstance(node.target, gast.Name) else "i"
            index = outer.var(I64, target.strip("_") or "i")
            it.ranges[index.name] = loop.trips.range
            if is_natural(it, index.name):
                it.sizes[index] = symbol(index.name, 0)
        holds: bool | Value = True
        with building() as head:
            if loop.test is not None and not loop.test_in_body:
                holds = loop.test()
        if head.stmts or not isinstance(holds, bool):
            after = capture(it, frame, known=before)
            if any(not same_contents(c, after.contents(cell)) for cell, c in start.cells.values()):
                return None
    with resumed(body):
        arm = run_arm(it, lambda: _body(loop, index))
    body.stmts.extend(arm.builder.stmts)
    prune(frame, live)
    arm.state = capture(it, frame, known=before)
    done = Pass(body, index, carries, head, holds, arm, start, merger)
    if arm.problem is None:
        done.found = changes_of(loop, before, done, templates)
        done.shared = shared_by(before, done)
    return done


def _body(loop: Loop, index: Var | None) -> Outcome:
    """One trip."""
    from .assignments import assign
    from .statements import execute_block
    it, node, frame = loop.it, loop.node, loop.frame
    if loop.trips is not None and index is not None:
        it.at(frame.location(node.target))
        assign(it, node.target, loop.trips.item(Weak(index)), frame)
    if not loop.test_in_body:
        return execute_block(it, node.body, frame)
    assert loop.test is not None
    holds = loop.test()
    if isinstance(holds, bool):
        return execute_block(it, node.body, frame) if holds else Jump("break")
    outcome, _ = branch(it, frame, holds, lambda: execute_block(it, node.body, frame), lambda: Jump("break"))
    return outcome


# ---------------------------------------------------------------------------------------------------------------
# emission


def _first_trip_raises(loop: Loop, before: State, done: Pass) -> Outcome:
    """The body always raises: the loop is a check that there is no trip."""
    restore(before)
    loop.it.at(loop.frame.location(loop.node))
    if loop.trips is not None:
        lo, hi, step = loop.trips.bounds
        enters: Value = ops.less(lo, hi) if step > 0 else ops.greater(lo, hi)
        _start_at(done, lo)
    else:
        assert loop.test is not None
        holds = loop.test()
        enters = Const(holds, BOOL) if isinstance(holds, bool) else holds
    emit_raise(loop.it, enters, done.arm)
    return _otherwise(loop, None)


def _start_at(done: Pass, lo: Value) -> None:
    """The body is for the first trip: its index is where the loop starts."""
    from ..ir.walk import Copier
    if done.index is None or not must_run(done.arm):
        return
    sizes = {done.index.name: lo.value if isinstance(lo, Const) else symbol(lo.name, 0)}
    copier = Copier({done.index: lo}, sizes)
    with building() as builder:
        for stmt in done.arm.builder.stmts:
            copier.statement(stmt)
    done.arm.builder.stmts[:] = builder.stmts
    done.arm.kept = tuple((param, copier.value(value)) for param, value in done.arm.kept)


def _finish(loop: Loop, before: State, done: Pass, templates: dict[Place, Template], outer: Builder,
            where: Location) -> Outcome:
    it, merger = loop.it, done.merger
    outcome = done.arm.outcome
    end = done.arm.state
    exits = [kind for kind in EXITS if _may(outcome, kind)]
    value_template = merger.lift(value_of(outcome), "the result") if "return" in exits else None
    if isinstance(value_template, Broken):
        raise value_template.problem
    restore(end)
    with resumed(done.body):
        results = [r if r is not None else placeholder(t) for r, (t, _) in zip(
            taken_out(before, end, merger, templates), hints_of(before, merger, templates), strict=True)]
        extra = [flag_of(outcome, kind) for kind in exits]
        returned = list(merger.extract(value_template, value_of(outcome), 1)) if value_template is not None else []
    restore(before)
    it.at(where)
    hints = hints_of(before, merger, templates)
    inits = [v if v is not None else placeholder(t) for v, (t, _) in zip(
        taken_out(before, before, merger, templates), hints, strict=True)]
    carries = list(done.carries)
    if exits:
        types = [*((BOOL, {"break": "broke", "return": "returned"}[kind]) for kind in exits),
                 *((t, "result") for t in (merger.slots(value_template) if value_template is not None else ()))]
        more = [outer.var(type, name) for type, name in types]
        carries += more
        inits += [placeholder(type) for type, _ in types]
        results += [*extra, *(r if r is not None else c for r, c in zip(returned, more[len(exits):], strict=True))]
        hints = [*hints, *types]
    targets = [outer.var(type, name) for type, name in hints]
    flags = carries[len(done.carries):len(done.carries) + len(exits)]
    _emit(loop, done, outer, carries, inits, results, targets, flags)
    after = iter(targets)
    final = Merger(it, "E122", where, (before, None))
    put_in(loop, before, final, templates, done.shared, after)
    flags_after: dict[str, Value] = {kind: next(after) for kind in exits}
    result = None
    if value_template is not None:
        result = Merger(it, "E122", where, (None, None)).install(value_template, after, "the result")
        value = value_of(outcome)
        if isinstance(result, ArrayRef) and id(value.root) in before.cells:
            result.depends = ((value.root, value.root.version),)
            result.owner = value.root.owner
    return _ending(loop, done, flags_after, result)


def _may(outcome: Outcome, kind: str) -> bool:
    flag = flag_of(outcome, kind)
    return not isinstance(flag, Const) or bool(flag.value)


def _emit(loop: Loop, done: Pass, outer: Builder, carries: list[Var], inits: list[Value], results: list[Value],
          targets: list[Var], flags: list[Var]) -> None:
    body = done.body
    if loop.trips is not None:
        lo, hi, step = loop.trips.bounds
        assert done.index is not None
        if not flags:
            outer.stmts.append(For(tuple(targets), done.index, lo, hi, const(step, I64), tuple(carries), tuple(inits),
                                   Block(tuple(body.stmts), tuple(results)), False, outer.loc, loop.checkpoint))
            return
        with resumed(body):
            following = ops.add(done.index, const(step, I64))
        with building() as head:
            more = ops.less(done.index, hi) if step > 0 else ops.greater(done.index, hi)
            going = both(_none_of(flags), more)
        final = outer.var(I64, done.index.name)
        outer.stmts.append(While((final, *targets), (done.index, *carries), (lo, *inits),
                                 Block(tuple(head.stmts), (going,)),
                                 Block(tuple(body.stmts), (following, *results)), outer.loc))
        return
    holds = Const(done.holds, BOOL) if isinstance(done.holds, bool) else done.holds
    head_stmts = done.head.stmts
    with building() as head:
        going = _none_of(flags)
        if not flags:
            head.stmts.extend(head_stmts)
            pred = holds
        elif all(isinstance(s, Let) and s.op.is_pure and not s.target.rank for s in head_stmts):
            head.stmts.extend(head_stmts)
            pred = both(going, holds)
        else:
            chosen = head.var(BOOL)
            pred = chosen
            head.stmts.append(If((chosen,), going, Block(tuple(head_stmts), (holds,)),
                                 Block((), (Const(False, BOOL),)), head.loc))
    if isinstance(pred, Const) and pred.value:
        raise error("E125", "this loop never ends", loop.frame.location(loop.node),
                    help="leave it by `break` or `return`")
    outer.stmts.append(While(tuple(targets), tuple(carries), tuple(inits), Block(tuple(head.stmts), (pred,)),
                             Block(tuple(body.stmts), tuple(results)), outer.loc))


def _none_of(flags: list[Var]) -> Value:
    left: Value = Const(False, BOOL)
    for flag in flags:
        left = either(left, flag)
    return negated(left)


def _ending(loop: Loop, done: Pass, flags: dict[str, Value], result: Any) -> Outcome:
    """How the loop leaves its block, after `else` was run where it belongs."""
    endless = loop.trips is None and done.holds is True and not loop.test_in_body
    if "return" not in flags:
        gone: Outcome = None
    elif "break" not in flags and endless:
        return Jump("return", result)
    else:
        gone = Mixed({"return": flags["return"]}, result)
    if not loop.node.orelse or endless:
        return gone
    if not flags:
        return _otherwise(loop, None)
    left: Value = Const(False, BOOL)
    for flag in flags.values():
        left = either(left, flag)
    if loop.test_in_body:
        raise error("E110", "`else` of a `while` whose condition assigns variables is not supported",
                    loop.frame.location(loop.node), kind=NotImplementedError)
    outcome, _ = branch(loop.it, loop.frame, negated(left), lambda: _otherwise(loop, None),
                        lambda: gone if "break" in flags else Jump("return", result))
    return outcome


def _otherwise(loop: Loop, outcome: Outcome) -> Outcome:
    from .statements import execute_block
    return execute_block(loop.it, loop.node.orelse, loop.frame) if loop.node.orelse else outcome


# ---------------------------------------------------------------------------------------------------------------
# loops that may be gone through while transpiling


def rolled_or_unrolled(it: Interpreter, frame: Frame, is_known: bool, rolled: Callable[[], Outcome],
                       unrolled: Callable[[], Outcome], may_unroll: Callable[[str], bool],
                       grow: Callable[[], Callable[[], None] | None] | None = None) -> Outcome:
    """A loop with a known number of trips is run now if that emits nothing; else it stays a loop, unless its body
    needs something that changes from trip to trip while transpiling.

    grow: turns lists that the body changes into ones that a loop can carry; None where there are none, else what to do
    after the loop.
    """
    before, names, steps = capture(it, frame), it.names.taken.copy(), it.steps
    if is_known:
        known, outcome = _tried(it, unrolled, before)
        if known:
            return outcome
        it.steps = steps
        it.forget_names(names)
    builder = current()
    emitted, here = len(builder.stmts), it.here
    try:
        return rolled()
    except TranspileError as problem:
        failure = problem
        if problem.code not in NEED_UNROLLING:
            raise
    builder.take_back(emitted)
    it.forget_names(names)
    it.steps = steps
    restore(before)
    it.at(here)
    if grow is not None and failure.code in ("E121", "E122"):
        afterwards = grow()
        if afterwards is not None:
            outcome = rolled()
            afterwards()
            return outcome
    if not may_unroll(failure.code):
        raise failure
    return unrolled()


def _tried(it: Interpreter, unrolled: Callable[[], Outcome], before: State) -> tuple[bool, Outcome]:
    """Run the loop now; whether it emitted nothing, and how it ended."""
    with building() as builder:
        it.probes.append(builder)
        outcome = None
        try:
            outcome = unrolled()
            if not builder.stmts:
                return True, outcome
        except (Probe, TranspileError, RuleError):
            pass
        finally:
            it.probes.pop()
    restore(before)
    return False, None


def after_trip(it: Interpreter, outcome: Mixed, frame: Frame, more: Callable[[], Outcome]) -> Outcome:
    """The trips after one that left an unrolled loop in some cases, and how the loop ends."""
    left: Value = Const(False, BOOL)
    for kind in EXITS:
        left = either(left, flag_of(outcome, kind))
    if isinstance(left, Const) and not left.value:
        return more()
    gone: Outcome = None
    if "return" in outcome.flags:
        value = outcome.value
        gone = Mixed({"return": outcome.flags["return"]}, value) if "break" in outcome.flags else Jump("return", value)
    if not outcome.falls and "continue" not in outcome.flags:
        return gone
    result, _ = branch(it, frame, negated(left), more, lambda: gone)
    return result
