"""Branches on values known only at run time: both arms are interpreted from one state, then the two states become one.

    if c: y = a          t = If(c, then: a, else: b)
    else: y = b          y is t

An arm that surely leaves the block hands the rest of the block to the other one; where a block leaves in some cases
only, bools say how (`Mixed`), and what follows runs where none of them is true.  So the IR stays as long as the source.
An arm that surely raises is a `Check`.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import Location, TranspileError, error
from ..ir import dims
from ..ir.build import Builder, building, const, current, size_value
from ..ir.dims import DimExpr, symbols_of
from ..ir.nodes import Block, Call, Check, Const, For, If, Value, Var, While
from ..ir.types import BOOL, I64, Type
from ..ir.walk import all_statements
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .environment import MISSING, Frame
from .errors import is_pythons_own, original_exception
from .liveness import live_after
from .merge import DEAD, Broken, DontCare, Merger, Slot, Template, placeholder
from .operators import truth
from .state import State, capture, next_version, put, restore, resumed, same_contents
from .values import ArrayRef, Instance, Poison, is_object

if TYPE_CHECKING:
    from .interpreter import Interpreter


@dataclass(frozen=True, slots=True)
class Jump:
    """The block ends here: "break", "continue" or "return" with its value.  ("value": of an expression.)"""

    kind: str
    value: Any = None


@dataclass(frozen=True)
class Mixed:
    """How the block ends is known at run time: `flags` tell, one for each way that it may be left; `value`: what is
    returned, if it is.  falls: whether it may also go on."""

    flags: dict[str, Value]
    value: Any = None
    falls: bool = True


Outcome = Jump | Mixed | None
BREAK, CONTINUE = Jump("break"), Jump("continue")
NUMBERED = re.compile(r"(_\d+)+$")
STATIC_WOULD_HELP = frozenset({"E117", "E121", "E122", "E123", "E311", "E313"})


# ---------------------------------------------------------------------------------------------------------------
# conditions


def condition(it: Interpreter, x: Any, what: str) -> bool | Value:
    """`bool(x)`: a bool where it is known while transpiling, else a bool scalar."""
    if isinstance(x, (bool, int, float, str)) or x is None:
        return bool(x)
    if is_object(x):
        for name in ("__bool__", "__len__"):
            found = it.find_special(x, name)
            if found is not None:
                return condition(it, it.call(found, (), {}), what)
    if isinstance(x, DimExpr):
        zero = it.assumptions.is_zero(x)
        return not zero if zero is not None else ops.not_equal(size_value(x), const(0, I64))
    if isinstance(x, ArrayRef) and x.current_known() is None and dims.product(x.shape) == 1:
        x = ops.reshape(x.read(), shape=()) if x.rank else x.read()
    if isinstance(x, Weak):
        x = x.value
    if isinstance(x, Var):
        return x if x.type == BOOL else ops.not_equal(x, const(0, x.type))
    return truth(it, x, what)


def negated(pred: Value) -> Value:
    return Const(not pred.value, BOOL) if isinstance(pred, Const) else ops.logical_not(pred)


def both(a: Value, b: Value) -> Value:
    if isinstance(a, Const):
        return b if a.value else a
    if isinstance(b, Const):
        return a if b.value else b
    return ops.logical_and(a, b)


def either(a: Value, b: Value) -> Value:
    if isinstance(a, Const):
        return a if a.value else b
    if isinstance(b, Const):
        return b if b.value else a
    return ops.logical_or(a, b)


# ---------------------------------------------------------------------------------------------------------------
# arms


@dataclass
class Arm:
    """One way through: what it emitted, how it ended and what everything is afterwards."""

    builder: Builder
    outcome: Outcome = None
    problem: TranspileError | None = None        # raised on every run that comes here
    state: State = field(default_factory=State)

    @property
    def leaves(self) -> bool:
        """Whether it never goes on to the next statement."""
        return isinstance(self.outcome, Jump) or (isinstance(self.outcome, Mixed) and not self.outcome.falls)


def run_arm(it: Interpreter, action: Callable[[], Outcome]) -> Arm:
    with building() as builder:
        return _run(it, Arm(builder), action)


def _run(it: Interpreter, arm: Arm, action: Callable[[], Outcome]) -> Arm:
    try:
        arm.outcome = action()
    except (TranspileError, RuleError) as problem:
        located = problem.at(it.here) if isinstance(problem, RuleError) else problem
        if not is_pythons_own(located):
            raise located from None
        refuse_caught(it, located)
        arm.problem = located
    return arm


def refuse_caught(it: Interpreter, problem: TranspileError) -> None:
    """An exception raised in some runs only cannot be caught by the function itself."""
    for handles in it.catching:
        if handles(problem):
            raise error("E110", "an exception that is raised in some runs only is caught inside the function",
                        problem.location, kind=NotImplementedError, help="test for it with `if` instead of `try`")


def has_effects(statements: Sequence[Any]) -> bool:
    """Whether running them can be noticed other than by their results."""
    return any(isinstance(s, (Check, Call, While)) or (not isinstance(s, (For, If)) and not s.op.is_pure)
               for s in all_statements(Block(tuple(statements), ())))


def exception_name(problem: TranspileError) -> str:
    """The built-in exception that a run raises for this."""
    for cls in (*type(original_exception(problem)).__mro__, *type(problem).__mro__):
        if getattr(builtins, cls.__name__, None) is cls and issubclass(cls, Exception):
            return cls.__name__
    return "Exception"


def exception_text(problem: TranspileError) -> str:
    cause = problem.__cause__
    if cause is None:
        return problem.message
    return repr(cause.args[0]) if isinstance(cause, KeyError) and cause.args else str(cause)


def emit_raise(it: Interpreter, pred: Value, arm: Arm) -> None:
    """`if pred: (the arm, which raises)`."""
    assert arm.problem is not None
    kind, text = exception_name(arm.problem), exception_text(arm.problem)
    builder = current()
    loc = arm.problem.location or builder.loc
    if not has_effects(arm.builder.stmts):
        holds = negated(pred)
        if not (isinstance(holds, Const) and holds.value):
            builder.stmts.append(Check(holds, kind, text, loc))
        return
    last = Check(Const(False, BOOL), kind, text, loc)
    builder.stmts.append(If((), pred, Block((*arm.builder.stmts, last), ()), Block((), ()), builder.loc))


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
    a = run_arm(it, then)
    a.state = capture(it, frame, known=before)
    restore(before)
    it.at(where)
    b = run_arm(it, orelse)
    consumed = False
    if rest is not None and a.problem is None and b.problem is None:
        if a.leaves and b.outcome is None:
            with resumed(b.builder):
                _run(it, b, rest)
            consumed = True
        elif b.leaves and a.outcome is None:
            b.state = capture(it, frame, known=before)
            restore(a.state)
            with resumed(a.builder):
                _run(it, a, rest)
            a.state = capture(it, frame, known=before)
            restore(b.state)
            consumed = True
    b.state = capture(it, frame, known=before)
    it.at(where)
    if a.problem is not None or b.problem is not None:
        return _one_raises(it, pred, a, b), consumed
    kinds = {k for arm in (a, b) for k in _kinds(arm.outcome)}
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


def _kinds(outcome: Outcome) -> tuple[str, ...]:
    return () if outcome is None else (outcome.kind,) if isinstance(outcome, Jump) else tuple(outcome.flags)


def flag_of(outcome: Outcome, kind: str) -> Value:
    """Whether the block is left in this way."""
    if isinstance(outcome, Mixed):
        return outcome.flags.get(kind, Const(False, BOOL))
    return Const(isinstance(outcome, Jump) and outcome.kind == kind, BOOL)


def value_of(outcome: Outcome) -> Any:
    if isinstance(outcome, Jump) and outcome.kind in ("return", "value"):
        return outcome.value
    if isinstance(outcome, Mixed) and "return" in outcome.flags:
        return outcome.value
    return DontCare()


def falls_of(outcome: Outcome) -> bool:
    return outcome is None or (isinstance(outcome, Mixed) and outcome.falls)


@dataclass
class Part:
    """One thing to merge: its template, what it is in both arms, and how to set it.

    strict: it must have a value, unlike a variable that may never be read.
    """

    name: str
    template: Template
    values: tuple[Any, Any]
    put: Callable[[Any], None]
    strict: bool = True
    cell: ArrayRef | None = None          # the array whose contents this is

    def __post_init__(self) -> None:
        if self.strict and isinstance(self.template, Broken):
            raise self.template.problem


def prune(frame: Frame, live: frozenset[str] | None) -> None:
    """Forget the values of variables that nothing reads any more, lest they stand for aliases."""
    if live is None or frame.is_comprehension:
        return
    names = {frame.mangled(name) for name in live}
    for name in frame.variables:
        if name not in names:
            frame.variables[name] = DEAD


def _merge(it: Interpreter, frame: Frame | None, before: State, a: Arm, b: Arm, pred: Value,
           live: frozenset[str] | None, source: Any, where: Location | None) -> Outcome:
    outer = current()
    for arm in (a, b):
        restore(arm.state)
        if frame is not None:
            prune(frame, live)
        is_over = isinstance(arm.outcome, Jump) and arm.outcome.kind == "return"
        arm.state = capture(it, frame, (value_of(arm.outcome),), known=before, without=frame if is_over else None)
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
    gone = [part.cell for part in parts if part.cell is not None and _has_moved(merger, part.cell)]
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


def state_parts(merger: Merger, frame: Frame | None, before: State, arms: tuple[Arm, Arm]) -> tuple[
        list[Part], list[tuple[Any, Any]]]:
    """What differs between the states, in an order that depends on the program alone; and contents of cells that one
    arm alone, or none, can still reach."""
    parts: list[Part] = []
    replaced: list[tuple[Any, Any]] = []
    for cell, first in before.cells.values():
        ca, cb = (arm.state.contents(cell) for arm in arms)
        reached = [isinstance(cell, Frame) or id(cell) in arm.state.references for arm in arms]
        if not any(reached):
            replaced.append((cell, first))
            continue
        if not all(reached) and not isinstance(cell, ArrayRef):
            replaced.append((cell, ca if reached[0] else cb))
            ca, cb = (c if r else _nobody(cb if reached[1] else ca) for c, r in zip((ca, cb), reached))
        if same_contents(ca, cb):
            if isinstance(cell, ArrayRef):
                cell.version = max(ca["version"], cb["version"])
            continue
        parts += cell_parts(merger, cell, (ca, cb), [
            not r or (cell is frame and isinstance(arm.outcome, Jump) and arm.outcome.kind == "return")
            for arm, r in zip(arms, reached)])
    return parts, replaced


def _nobody(contents: Any) -> Any:
    """Contents like these, of a cell that nobody looks at."""
    return [DontCare()] * len(contents) if isinstance(contents, list) else {k: DontCare() for k in contents}


def cell_parts(merger: Merger, cell: Any, contents: tuple[Any, Any], leaving: Sequence[bool]) -> Iterator[Part]:
    """The parts of one cell that differ.  leaving: whether nobody sees this side any more."""
    ca, cb = contents
    name = cell_name(merger.it, cell)
    if isinstance(cell, ArrayRef):
        known = [c["known"] for c in contents]
        if all(k is not None for k in known) and np.array_equal(
                known[0], known[1], equal_nan=cell.type.is_inexact):
            put(cell, {**ca, "version": next_version()})
            return
        values = tuple(DontCare() if hidden else cell for hidden in leaving)
        yield Part(name, Slot("array", cell.type, cell.layout), values, lambda v: put_array(cell, v),  # type: ignore
                   cell=cell)
        return
    if isinstance(cell, list):
        if len(ca) != len(cb):
            raise _differs(merger, "a list has as many elements", merger.where)
        for k, (x, y) in enumerate(zip(ca, cb)):
            if x is not y:
                yield Part(name, merger.join(x, y, f"{name}[{k}]"), (x, y), _setter(cell, k))
        return
    if not isinstance(cell, Frame) and ca.keys() != cb.keys():
        raise _differs(merger, "a dict or an object has the same entries", merger.where)
    for key in dict.fromkeys((*ca, *cb)):
        x, y = ca.get(key, MISSING), cb.get(key, MISSING)
        if x is y:
            continue
        if isinstance(cell, Frame):
            x, y = (DontCare(v) if gone else v for v, gone in zip((x, y), leaving))
            if isinstance(x, DontCare) and isinstance(y, DontCare):
                continue
            yield Part(str(key), merger.join(x, y, str(key), may_lack=True), (x, y), _variable_setter(cell, key),
                       strict=False)
        else:
            yield Part(str(key), merger.join(x, y, str(key)), (x, y), _setter(cell, key))


def _differs(merger: Merger, what: str, where: Location | None) -> TranspileError:
    return error(merger.code, f"{what} whichever way the function runs", where, help="build it before, with all "
                 "entries, and change them")


def put_array(cell: ArrayRef, value: Any) -> None:
    cell.value, cell.known, cell.recipe, cell.version = value, None, None, next_version()


def cell_name(it: Interpreter, cell: Any) -> str:
    """What generated code calls a changed array: as the variable that holds it, where there is one."""
    if not isinstance(cell, ArrayRef):
        return "t"
    for frame in reversed(it.frames):
        for name, held in frame.variables.items():
            if isinstance(held, ArrayRef) and held.root is cell:
                return name
    value = cell.current_value
    return NUMBERED.sub("", value.name) if isinstance(value, Var) else "x"


def _has_moved(merger: Merger, cell: ArrayRef) -> bool:
    """Whether all that referred to this array refers to a merged one now."""
    moved = [sum(merger.sites[n] for n, things in merger.roots.items() if merger.is_exact[n]
                 and isinstance(things[side], ArrayRef) and things[side].root is cell) for side in (0, 1)]
    return any(moved) and all(side is not None and side.references.get(id(cell), 0) <= count
                              for side, count in zip(merger.sides, moved))


def _setter(target: Any, key: Any) -> Callable[[Any], None]:
    def set_it(value: Any) -> None:
        (target.fields if isinstance(target, Instance) else target)[key] = value

    return set_it


def _variable_setter(frame: Frame, name: str) -> Callable[[Any], None]:
    def set_it(value: Any) -> None:
        if value is MISSING:
            frame.variables.pop(name, None)
        else:
            frame.variables[name] = value

    return set_it


def _outcome_parts(merger: Merger, a: Arm, b: Arm, parts: list[Part]) -> tuple[Callable[[dict[str, Any]], Outcome],
                                                                                dict[str, Any]]:
    """Add flags and results to what is merged; returns how to make the outcome of what becomes of them."""
    found: dict[str, Any] = {}
    oa, ob = a.outcome, b.outcome
    kinds = list(dict.fromkeys((*_kinds(oa), *_kinds(ob))))
    if not kinds:
        return lambda found: None, found

    def add(key: str, name: str, template: Template, values: tuple[Any, Any]) -> None:
        parts.append(Part(name, template, values, _setter(found, key)))

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
    from .expressions import evaluate
    from .statements import execute_block
    test = evaluate(it, node.test, frame)
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
