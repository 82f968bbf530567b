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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gast

from .. import ops
from ..errors import Location, TranspileError, error
from ..ir.build import Builder, building, const, current
from ..ir.dims import symbol, symbols_of
from ..ir.nodes import Block, Const, For, If, Let, Value, Var, While
from ..ir.types import BOOL, I64, Type
from ..ir.walk import all_statements
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .branches import (
    NUMBERED,
    Arm,
    Jump,
    Mixed,
    Outcome,
    both,
    branch,
    cell_name,
    either,
    emit_raise,
    flag_of,
    has_effects,
    negated,
    prune,
    put_array,
    run_arm,
    value_of,
)
from .environment import MISSING, Frame
from .interpreter import Probe
from .liveness import live_at_head, stores
from .merge import (
    Broken,
    Fixed,
    Group,
    Merger,
    Option,
    Slot,
    Template,
    depend_on,
    number_of,
    others_of,
    placeholder,
    same_template,
)
from .ranges import is_natural
from .state import State, capture, restore, resumed, same_contents
from .trips import Trips
from .values import ArrayRef, Instance, Maybe, Poison

if TYPE_CHECKING:
    from .interpreter import Interpreter

MAX_PASSES = 12
EXITS = ("break", "return")
NEED_UNROLLING = frozenset({"E110", "E117", "E121", "E122", "E123", "E126", "E311", "E313"})
Place = tuple[int, Any]                # a cell's identity, and a key in it (None: an array's contents)


@dataclass
class Loop:
    """A loop being made.  trips: what a `for` counts; test: of a `while`, gives its condition."""

    it: Interpreter
    node: Any
    frame: Frame
    trips: Trips | None = None
    test: Callable[[], bool | Value] | None = None
    test_in_body: bool = False


@dataclass
class Pass:
    """One interpretation of the body."""

    body: Builder
    index: Var | None
    carries: list[Var]
    head: Builder
    holds: bool | Value
    arm: Arm
    start: State
    merger: Merger
    found: dict[Place, Template] = field(default_factory=dict)
    shared: dict[int, list[ArrayRef]] = field(default_factory=dict)


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
    templates = _guess(loop, before)
    shared: dict[int, list[ArrayRef]] = {}
    frame.loops.append(live if live is not None else frozenset(frame.variables))
    try:
        for number in range(MAX_PASSES):
            it.steps = steps + 1
            it.forget_names(names)
            restore(before)
            it.at(where)
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
            if done.found.keys() == templates.keys() and _same_shared(done.shared, shared) and all(
                    same_template(t, templates[k]) for k, t in done.found.items()):
                break
            templates, shared = done.found, done.shared
        else:
            raise error("E122", "what this loop carries does not settle", where)
    finally:
        frame.loops.pop()
    it.loop_types[id(node), id(frame)] = {
        key: t for (cell, key), t in templates.items() if cell == id(frame) and isinstance(t, Slot) and t.pair is None}
    return _finish(loop, before, done, templates, outer, where)


# ---------------------------------------------------------------------------------------------------------------
# what is carried


def _guess(loop: Loop, before: State) -> dict[Place, Template]:
    """What the body assigns is probably carried, in the type that it has or had when this loop was seen before."""
    it, frame = loop.it, loop.frame
    known = it.loop_types.get((id(loop.node), id(frame)), {})
    names = {frame.mangled(name) for part in loop.node.body for name in stores(part)}
    found: dict[Place, Template] = {}
    for name, value in frame.variables.items():
        number = number_of(value)
        if name not in names or number is None or isinstance(value, ArrayRef):
            continue
        last = known.get(name)
        if last is not None:
            slot = number_of(last)
            if slot is not None and (number | slot) == slot:
                number = slot
        if isinstance(value, (Weak, Var)) or last is not None:
            found[id(frame), name] = Slot(number.like, Type(number.dtype))
    return found


def _install(loop: Loop, before: State, merger: Merger, templates: dict[Place, Template],
             shared: dict[int, list[ArrayRef]], values: Iterator[Value]) -> None:
    """Put values into everything that is carried.  shared: for arrays that have other names, what they may be."""
    for number in shared:
        merger.is_exact[number] = False
    for (cell_id, key), template in templates.items():
        cell = before.cells[cell_id][0]
        if key is None and isinstance(cell, ArrayRef):
            put_array(cell, next(values))
            continue
        value = merger.install(template, values, _label(loop.it, cell, key))
        if isinstance(value, Poison) and not isinstance(cell, Frame):
            raise value.problem
        target = cell.variables if isinstance(cell, Frame) else cell.fields if isinstance(cell, Instance) else cell
        if value is MISSING:
            target.pop(key, None)
        else:
            target[key] = value
    entry = _roots(before, before, templates)
    for number, made in merger.made.items():
        if isinstance(made, ArrayRef):
            if number in shared:
                depend_on(made, shared[number] or [made], merger.where)
            owners = [root.owner for root in entry.get(number, ()) if root.owner != "local"]
            made.owner = owners[0] if owners else "local"


def _label(it: Interpreter, cell: Any, key: Any) -> str:
    return cell_name(it, cell) if key is None else key if isinstance(key, str) else "t"


def _hints(before: State, merger: Merger, templates: dict[Place, Template]) -> list[tuple[Type, str]]:
    """Types of the carries, and what they are called after."""
    found = []
    done: set[int] = set()
    for (cell_id, key), template in templates.items():
        name = _label(merger.it, before.cells[cell_id][0], key)
        for type in merger.slots(template, done):
            found.append((type, NUMBERED.sub("", name) if name.isidentifier() and name.strip("_") else "t"))
    return found


def _interpret(loop: Loop, before: State, templates: dict[Place, Template], shared: dict[int, list[ArrayRef]],
               live: frozenset[str] | None, outer: Builder, where: Location) -> Pass | None:
    it, node, frame = loop.it, loop.node, loop.frame
    merger = Merger(it, "E122", where, (before, None))
    carries = [outer.var(type, name) for type, name in _hints(before, merger, templates)]
    with building() as body:
        _install(loop, before, merger, templates, shared, iter(carries))
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
        done.found = _changes(loop, before, done, templates)
        done.shared = _shared(before, done)
    return done


def _body(loop: Loop, index: Var | None) -> Outcome:
    """One trip."""
    from .statements import assign, execute_block
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


def _changes(loop: Loop, before: State, done: Pass, templates: dict[Place, Template]) -> dict[Place, Template]:
    """Templates for all that the trip changed or that was thought to change."""
    end, merger = done.arm.state, Merger(loop.it, "E122", done.merger.where, (before, done.arm.state))
    done.merger = merger
    inner = {t.name for stmt in all_statements(Block(tuple(done.body.stmts), ())) for t in stmt.targets}
    inner |= {v.name for v in (*done.carries, *(() if done.index is None else (done.index,)))}
    found: dict[Place, Template] = {}
    for cell_id, (cell, first) in before.cells.items():
        begin, last = done.start.contents(cell), end.contents(cell)
        if isinstance(cell, ArrayRef):
            place = (cell_id, None)
            if last["value"] is not begin["value"] or last["known"] is not begin["known"]:
                found[place] = Slot("array", cell.type, cell.layout)
            continue
        is_variable = isinstance(cell, Frame)
        if isinstance(cell, list):
            if len(first) != len(last):
                raise error("E122", "a list changes its length in a loop that runs when the function runs",
                            merger.where, kind=NotImplementedError,
                            help="write into an array: `a = np.zeros(n)`, then `a[i] = ...`")
            first, begin, last = (dict(enumerate(c)) for c in (first, begin, last))
        elif not is_variable and first.keys() != last.keys():
            raise error("E122", "a dict or an object gets new entries in a loop that runs when the function runs",
                        merger.where, kind=NotImplementedError, help="give it all its entries before the loop")
        for key in dict.fromkeys((*first, *last)):
            template = _change(merger, (cell_id, key), first.get(key, MISSING), begin.get(key, MISSING),
                               last.get(key, MISSING), templates, str(key), is_variable)
            if template is None:
                continue
            if any(name in inner for t in merger.slots(template) for d in t.shape for name in symbols_of(d)):
                template = Broken(error("E122", f"the shape of `{key}` is another one in every trip", merger.where,
                                        help="give it a shape that is known before the loop"))
            if isinstance(template, Broken) and not is_variable:
                raise template.problem
            found[cell_id, key] = template
    return found


def _change(merger: Merger, place: Place, first: Any, begin: Any, last: Any, templates: dict[Place, Template],
            name: str, is_variable: bool) -> Template | None:
    old = templates.get(place)
    if old is None:
        if last is begin:
            return None
        template = merger.join(first, last, name, is_variable)
        return None if isinstance(template, Fixed) else template
    if isinstance(old, Broken):
        return old
    return merger.join(old, last, name, is_variable)


def _roots(state: State, contents: State, templates: dict[Place, Template]) -> dict[int, list[ArrayRef]]:
    """The arrays (or containers) that meet at each pair's places in a state, one for each place."""
    found: dict[int, list[Any]] = {}

    def visit(template: Template, x: Any) -> None:
        match template:
            case Option():
                if x is not MISSING and x is not None:
                    visit(template.child, x.value if isinstance(x, Maybe) else x)
            case Slot() if template.pair is not None and isinstance(x, ArrayRef):
                found.setdefault(template.pair, []).append(x.root)
            case Group():
                if template.pair is not None:
                    found.setdefault(template.pair, []).append(x)
                parts = (list(x.fields.values()) if isinstance(x, Instance) else list(x.values())
                         if isinstance(x, dict) else list(x) if isinstance(x, (list, tuple)) else [])
                for child, part in zip(template.children, parts):
                    visit(child, part)

    for (cell_id, key), template in templates.items():
        if key is None and isinstance(state.cells[cell_id][0], ArrayRef):
            continue
        held = contents.cells[cell_id][1]
        visit(template, held[key] if isinstance(held, list) else held.get(key, MISSING))
    return found


def _same_shared(a: dict[int, list[ArrayRef]], b: dict[int, list[ArrayRef]]) -> bool:
    return a.keys() == b.keys() and all({id(x) for x in a[k]} == {id(x) for x in b[k]} for k in a)


def _shared(before: State, done: Pass) -> dict[int, list[ArrayRef]]:
    """Pairs whose arrays are also known by other names, before the first trip or after one: with the arrays from
    before the loop that they may be."""
    found: dict[int, list[ArrayRef]] = {}
    for state in (before, done.arm.state):
        for pair, things in _roots(before, state, done.found).items():
            counts = {id(x): sum(y is x for y in things) for x in things}
            is_exact = len(counts) <= 1 and all(state.references.get(k, 0) <= n for k, n in counts.items())
            others = [x for x in others_of(things, is_exact) if id(x) in before.cells]
            if others or not is_exact or any(isinstance(x, ArrayRef) and x.depends for x in things):
                found.setdefault(pair, []).extend(x for x in others if x not in found.get(pair, []))
    return found


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
    if done.index is None or not has_effects(done.arm.builder.stmts):
        return
    sizes = {done.index.name: lo.value if isinstance(lo, Const) else symbol(lo.name, 0)}
    copier = Copier({done.index: lo}, sizes)
    with building() as builder:
        for stmt in done.arm.builder.stmts:
            copier.statement(stmt)
    done.arm.builder.stmts[:] = builder.stmts


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
            _leaves(before, end, merger, templates), _hints(before, merger, templates), strict=True)]
        extra = [flag_of(outcome, kind) for kind in exits]
        returned = list(merger.extract(value_template, value_of(outcome), 1)) if value_template is not None else []
    restore(before)
    it.at(where)
    hints = _hints(before, merger, templates)
    inits = [v if v is not None else placeholder(t) for v, (t, _) in zip(
        _leaves(before, before, merger, templates), hints, strict=True)]
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
    _install(loop, before, final, templates, done.shared, after)
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


def _leaves(before: State, state: State, merger: Merger, templates: dict[Place, Template]) -> Iterator[Value | None]:
    """The carried values as they are in a state, which is the current one."""
    done: set[int] = set()
    for (cell_id, key), template in templates.items():
        cell = before.cells[cell_id][0]
        if key is None and isinstance(cell, ArrayRef):
            yield cell.read()
            continue
        held = state.cells[cell_id][1]
        x = held[key] if isinstance(held, list) else held.get(key, MISSING)
        yield from merger._extract(template, x, done)


def _emit(loop: Loop, done: Pass, outer: Builder, carries: list[Var], inits: list[Value], results: list[Value],
          targets: list[Var], flags: list[Var]) -> None:
    body = done.body
    if loop.trips is not None:
        lo, hi, step = loop.trips.bounds
        assert done.index is not None
        if not flags:
            outer.stmts.append(For(tuple(targets), done.index, lo, hi, const(step, I64), tuple(carries), tuple(inits),
                                   Block(tuple(body.stmts), tuple(results)), False, outer.loc))
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
                       unrolled: Callable[[], Outcome], may_unroll: Callable[[str], bool]) -> Outcome:
    """A loop with a known number of trips is run now if that emits nothing; else it stays a loop, unless its body
    needs something that changes from trip to trip while transpiling."""
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
        if problem.code not in NEED_UNROLLING or not may_unroll(problem.code):
            raise
    del builder.stmts[emitted:]
    it.forget_names(names)
    it.steps = steps
    restore(before)
    it.at(here)
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


__all__ = ["Group", "Loop", "after_trip", "rolled_or_unrolled", "run_loop"]
