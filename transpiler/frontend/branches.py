"""Branches on values known only at run time: both arms are interpreted from one state, then the two states become one.

    if c: y = a          t = If(c, then: a, else: b)
    else: y = b          y is t

An arm that surely leaves the block hands the rest of the block to the other one; where a block leaves in some cases
only, bools say how (`Mixed`), and what follows runs where none of them is true.  So the IR stays as long as the source.
An arm that surely raises is a `Check`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import Location, TranspileError, error
from ..ir.build import Builder, current
from ..ir.dims import symbols_of
from ..ir.nodes import Block, Const, If, Value, Var
from ..ir.types import BOOL, I64, Type
from .arms import (
    STATIC_WOULD_HELP,
    Arm,
    Jump,
    Mixed,
    Outcome,
    condition,
    either,
    emit_raise,
    falls_of,
    flag_of,
    go_through,
    has_effects,
    kinds_of,
    negated,
    run_arm,
    value_of,
)
from .differences import (
    Part,
    has_moved,
    prune,
    setter,
    state_parts,
)
from .environment import Frame
from .growth import equal_lists
from .liveness import live_after
from .merge import (
    Merger,
)
from .state import State, capture, put, restore, resumed
from .templates import (
    Broken,
    Slot,
    Template,
    placeholder,
)
from .values import Poison

if TYPE_CHECKING:
    from .interpreter import Interpreter



# ---------------------------------------------------------------------------------------------------------------
# a branch


def branch(it: Interpreter, frame: Frame | None, pred: Value, then: Callable[[], Outcome],
           orelse: Callable[[], Outcome], *, rest: Callable[[], Outcome] | None = None,
           live: Callable[[bool, set[str]], frozenset[str] | None] | None = None,
           source: Any = None) -> tuple[Outcome, bool]:
    """Run both arms and merge them.  Returns how the branch ended, and whether `rest` was run as part of it.

    live: names of the frame's variables that are needed afterwards, given whether the rest was run and how blocks may
    be left; source: what the condition was made of.
    """
    where = it.here
    it.leave_probe()
    try:
        return _branch(it, frame, pred, then, orelse, rest, live, source, where)
    except TranspileError as problem:
        if problem.code in STATIC_WOULD_HELP and source is not None:
            it.demand(source)
        raise


def _branch(it: Interpreter, frame: Frame | None, pred: Value, then: Callable[[], Outcome],
            orelse: Callable[[], Outcome], rest: Callable[[], Outcome] | None, live: Any, source: Any,
            where: Location | None) -> tuple[Outcome, bool]:
    before = capture(it, frame)
    if it.watch is not None:
        it.watch.arms += 1
    try:
        return _both_arms(it, frame, pred, then, orelse, rest, live, source, where, before)
    finally:
        if it.watch is not None:
            it.watch.arms -= 1


def _both_arms(it: Interpreter, frame: Frame | None, pred: Value, then: Callable[[], Outcome],
               orelse: Callable[[], Outcome], rest: Callable[[], Outcome] | None, live: Any, source: Any,
               where: Location | None, before: State) -> tuple[Outcome, bool]:
    a = run_arm(it, then)
    a.state = capture(it, frame, known=before)
    restore(before)
    it.at(where)
    b = run_arm(it, orelse)
    consumed = False
    if rest is not None and a.problem is None and b.problem is None:
        if a.leaves and b.outcome is None:
            with resumed(b.builder):
                go_through(it, b, rest)
            consumed = True
        elif b.leaves and a.outcome is None:
            b.state = capture(it, frame, known=before)
            restore(a.state)
            with resumed(a.builder):
                go_through(it, a, rest)
            a.state = capture(it, frame, known=before)
            restore(b.state)
            consumed = True
    b.state = capture(it, frame, known=before)
    it.at(where)
    if a.problem is not None or b.problem is not None:
        return _one_raises(it, pred, a, b), consumed
    kinds = {k for arm in (a, b) for k in kinds_of(arm.outcome)}
    needed = None if live is None or frame is None else live(consumed, kinds)
    return _merge(it, frame, before, a, b, pred, needed, source, where), consumed


def _one_raises(it: Interpreter, pred: Value, a: Arm, b: Arm) -> Outcome:
    """The other arm is what goes on, without a branch."""
    raising, other, when = (a, b, pred) if a.problem is not None else (b, a, negated(pred))
    emit_raise(it, when, raising)
    current().stmts.extend(other.builder.stmts)
    restore(other.state)
    if other.problem is not None:
        raise other.problem
    return other.outcome


def _merge(it: Interpreter, frame: Frame | None, before: State, a: Arm, b: Arm, pred: Value,
           live: frozenset[str] | None, source: Any, where: Location | None) -> Outcome:
    outer = current()
    for arm in (a, b):
        restore(arm.state)
        if frame is not None:
            prune(frame, live)
        is_over = isinstance(arm.outcome, Jump) and arm.outcome.kind == "return"
        arm.state = capture(it, frame, (value_of(arm.outcome),), known=before, without=frame if is_over else None)
    equal_lists(it, frame, before, (a, b))
    sources = () if source is None else (source,)
    merger = Merger(it, "E121", where, (a.state, b.state), sources)
    parts, replaced = state_parts(merger, frame, before, (a, b))
    outcome, result = _outcome_parts(merger, a, b, parts)
    inner = _inner_sizes(a.builder) | _inner_sizes(b.builder)
    for part in parts:
        part.template = _escaping(merger, part, inner, where)
        if isinstance(part.template, Broken) and part.strict:
            raise part.template.problem
    merger.decide_aliases()
    gone = [part.cell for part in parts if part.cell is not None and has_moved(merger, part.cell)]
    replaced += [(cell, before.contents(cell)) for cell in gone]
    parts = [part for part in parts if part.cell is None or part.cell not in gone]
    columns = []
    for side, arm in enumerate((a, b)):
        restore(arm.state)
        with resumed(arm.builder):
            columns.append([v for part in parts for v in merger.extract(part.template, part.values[side], side)])
    types = [(t, part.name) for part in parts for t in merger.slots(part.template)]
    made = _emit(outer, pred, a, b, columns, types)
    values = iter(made)
    installed = [(part, merger.install(part.template, values, part.name)) for part in parts]
    for cell, contents in replaced:
        put(cell, contents)
    for part, value in installed:
        if part.strict and isinstance(value, Poison):
            raise value.problem
        part.put(value)
    merger.finish()
    return outcome(result)


def _outcome_parts(merger: Merger, a: Arm, b: Arm, parts: list[Part]) -> tuple[Callable[[dict[str, Any]], Outcome],
                                                                                dict[str, Any]]:
    """Add flags and results to what is merged; returns how to make the outcome of what becomes of them."""
    found: dict[str, Any] = {}
    oa, ob = a.outcome, b.outcome
    kinds = list(dict.fromkeys((*kinds_of(oa), *kinds_of(ob))))
    if not kinds:
        return lambda found: None, found

    def add(key: str, name: str, template: Template, values: tuple[Any, Any]) -> None:
        parts.append(Part(name, template, values, setter(found, key)))

    has_value = any(k in ("return", "value") for k in kinds)
    if has_value:
        values = (value_of(oa), value_of(ob))
        name = "the result" if "return" in kinds else "this expression"
        add("value", "result", merger.join(*values, name), values)
    if isinstance(oa, Jump) and isinstance(ob, Jump) and oa.kind == ob.kind:
        return lambda found: Jump(oa.kind, found.get("value")), found
    for kind in kinds:
        add(kind, {"return": "returned", "break": "broke", "continue": "skipped"}.get(kind, kind), Slot("scalar", BOOL),
            (flag_of(oa, kind), flag_of(ob, kind)))
    falls = falls_of(oa) or falls_of(ob)
    return lambda found: Mixed({k: found[k] for k in kinds}, found.get("value"), falls), found


def _inner_sizes(builder: Builder) -> set[str]:
    """Names of ints that only the arm has."""
    return {t.name for stmt in builder.stmts for t in stmt.targets if t.type == I64}


def _escaping(merger: Merger, part: Part, inner: set[str], where: Location | None) -> Template:
    """A template; broken where its shape depends on what only one arm computes."""
    if inner and any(name in inner for t in merger.slots(part.template) for d in t.shape for name in symbols_of(d)):
        return Broken(error("E311", f"the shape of `{part.name}` is decided inside a branch or loop at run time", where,
                            help="give it a shape that is known before"))
    return part.template


def _emit(outer: Builder, pred: Value, a: Arm, b: Arm, columns: list[list[Value | None]],
          types: list[tuple[Type, str]]) -> list[Value]:
    """The If, with a target for each value that differs."""
    inside = [{t for stmt in arm.builder.stmts for t in stmt.targets} for arm in (a, b)]
    made: list[Value | None] = []
    targets: list[Var] = []
    results: tuple[list[Value], list[Value]] = ([], [])
    for x, y, (type, name) in zip(*columns, types, strict=True):
        single = _one_value(pred, x, y, type, inside)
        made.append(single)
        if single is not None:
            continue
        target = outer.var(type, name.strip("_") if name.isidentifier() and name.strip("_") else "t")
        targets.append(target)
        made[-1] = target
        results[0].append(x if x is not None else placeholder(type))
        results[1].append(y if y is not None else placeholder(type))
    if targets or has_effects(a.builder.stmts) or has_effects(b.builder.stmts):
        outer.stmts.append(If(tuple(targets), pred, Block(tuple(a.builder.stmts), tuple(results[0])),
                              Block(tuple(b.builder.stmts), tuple(results[1])), outer.loc))
    return made  # type: ignore[return-value]


def _one_value(pred: Value, x: Value | None, y: Value | None, type: Type, inside: list[set[Var]]) -> Value | None:
    """What stands for both without a choice at run time, or None."""
    if x is None and y is None:
        return placeholder(type)
    if x is None:
        return y if y not in inside[1] else None
    if y is None:
        return x if x not in inside[0] else None
    if x is y:
        return x
    if isinstance(x, Const) and isinstance(y, Const):
        if repr(x.value) == repr(y.value) and x.type == y.type:
            return x
        if type == BOOL:
            return pred if x.value else negated(pred)
    return None


# ---------------------------------------------------------------------------------------------------------------
# blocks


def run_rest(it: Interpreter, outcome: Mixed, rest: Sequence[Any], frame: Frame) -> Outcome:
    """The statements after one that left the block in some cases."""
    from .statements import execute_block
    left: Value = Const(False, BOOL)
    for flag in outcome.flags.values():
        left = either(left, flag)
    gone = Mixed(outcome.flags, outcome.value, falls=False)
    result, _ = branch(it, frame, negated(left), lambda: execute_block(it, list(rest), frame), lambda: gone,
                       live=live_names(frame, rest[-1], rest[-1]))
    return result


def live_names(frame: Frame, node: Any, last: Any) -> Callable[[bool, set[str]], frozenset[str] | None]:
    """Names needed after `node`, or after `last` where the rest of the block was run."""

    def live(consumed: bool, kinds: set[str]) -> frozenset[str] | None:
        if frame.node is None:
            return None
        names = live_after(frame.node, last if consumed else node)
        if names is None or (kinds & {"break", "continue"} and not frame.loops):
            return None
        if kinds & {"break", "continue"}:
            names = names | frame.loops[-1]
        return names

    return live


def execute_if(it: Interpreter, node: Any, frame: Frame, rest: Sequence[Any]) -> tuple[Outcome, bool]:
    """An `if` statement; whether it ran the rest of its block, too."""
    from .expressions import evaluate_test
    from .statements import execute_block
    test = evaluate_test(it, node.test, frame)
    it.at(frame.location(node.test))
    pred = condition(it, test, "this `if`")
    if isinstance(pred, Const):
        pred = bool(pred.value)
    if isinstance(pred, bool):
        return execute_block(it, node.body if pred else node.orelse, frame), False
    return branch(it, frame, pred, lambda: execute_block(it, node.body, frame),
                  lambda: execute_block(it, node.orelse, frame),
                  rest=(lambda: execute_block(it, list(rest), frame)) if rest else None,
                  live=live_names(frame, node, rest[-1] if rest else node), source=test)


def choose_value(it: Interpreter, frame: Frame | None, pred: Value, then: Callable[[], Any],
                 orelse: Callable[[], Any], source: Any = None) -> Any:
    """`then() if pred else orelse()`."""
    outcome, _ = branch(it, frame, pred, lambda: Jump("value", then()), lambda: Jump("value", orelse()), source=source)
    assert isinstance(outcome, Jump)
    return outcome.value


def returned_value(it: Interpreter, outcome: Outcome, node: Any, frame: Frame) -> Any:
    """What a call gives, by how the function's body ended."""
    if not isinstance(outcome, Mixed):
        return outcome.value if isinstance(outcome, Jump) else None
    if not outcome.falls or outcome.value is None:
        return outcome.value
    it.at(frame.location(node))
    return choose_value(it, None, outcome.flags["return"], lambda: outcome.value, lambda: None)
