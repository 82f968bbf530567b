"""The two ways through a branch: what they emitted, how they ended, and conditions that choose between them."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import ops
from ..errors import TranspileError, error, escaped
from ..ir import dims
from ..ir.build import Builder, Kept, building, const, current, kept_now, size_value
from ..ir.dims import DimExpr
from ..ir.nodes import Block, Call, Check, Const, For, If, Value, Var, While
from ..ir.types import BOOL, I64
from ..ir.walk import all_statements
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .errors import Unfinished, is_pythons_own, original_exception
from .operators import truth
from .state import State
from .templates import (
    DontCare,
)
from .texts import exception_with, parts_of, without_arrays
from .values import ArrayRef, OpaqueText, is_object

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
    """One way through: what it emitted, how it ended and what everything is afterwards.

    kept: where it raises, what the caller's arrays hold then.
    """

    builder: Builder
    outcome: Outcome = None
    problem: TranspileError | Unfinished | None = None        # raised on every run that comes here
    state: State = field(default_factory=State)
    kept: Kept = ()

    @property
    def leaves(self) -> bool:
        """Whether it never goes on to the next statement."""
        return isinstance(self.outcome, Jump) or (isinstance(self.outcome, Mixed) and not self.outcome.falls)


def run_arm(it: Interpreter, action: Callable[[], Outcome]) -> Arm:
    with building() as builder:
        return go_through(it, Arm(builder), action)


def go_through(it: Interpreter, arm: Arm, action: Callable[[], Outcome]) -> Arm:
    it.branching += 1
    it.assumptions.arms += 1
    try:
        arm.outcome = action()
    except Unfinished as problem:
        arm.problem = problem
    except (TranspileError, RuleError) as problem:
        located = problem.at(it.here) if isinstance(problem, RuleError) else problem
        if not is_pythons_own(located):
            raise located from None
        refuse_caught(it, located)
        arm.problem, arm.kept = located, kept_now()
    finally:
        it.branching -= 1
        it.assumptions.arms -= 1
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


def exception_text(problem: TranspileError) -> tuple[str, tuple[Value, ...], BaseException]:
    """Its message with places for the first of these values, and the exception that holds all of them."""
    cause = problem.__cause__
    if cause is None:
        return problem.message, (), problem
    parts = {id(part): without_arrays(part) for part in parts_of(cause)}
    if not parts:
        return (repr(cause.args[0]) if isinstance(cause, KeyError) and cause.args else str(cause)), (), cause
    made = exception_with(cause, parts)
    texts = [a.template if isinstance(a, OpaqueText) else escaped(repr(a)) for a in made.args]
    if len(texts) != 1:
        text = f"({', '.join(texts)})"
    else:
        text = texts[0] if isinstance(made.args[0], OpaqueText) else escaped(str(made.args[0]))
    return text, tuple(value for part in parts_of(made) for value in part.values), made


def must_run(arm: Arm, told: Sequence[Value] = ()) -> bool:
    """Whether what an arm does before it raises can be noticed.  told: the values in the exception's message."""
    inside = {target for stmt in arm.builder.stmts for target in stmt.targets}
    return has_effects(arm.builder.stmts) or any(v in inside for v in (*told, *(value for _, value in arm.kept)))


def emit_raise(it: Interpreter, pred: Value, arm: Arm) -> None:
    """`if pred: (the arm, which raises)`."""
    assert arm.problem is not None
    if isinstance(arm.problem, Unfinished):
        return
    kind, (text, values, exception) = exception_name(arm.problem), exception_text(arm.problem)
    builder = current()
    loc = arm.problem.location or builder.loc
    it.note_raise(text, exception, loc)
    if not must_run(arm, values):
        holds = negated(pred)
        if not (isinstance(holds, Const) and holds.value):
            builder.stmts.append(Check(holds, kind, text, loc, arm.kept, values))
        return
    last = Check(Const(False, BOOL), kind, text, loc, arm.kept, values)
    builder.stmts.append(If((), pred, Block((*arm.builder.stmts, last), ()), Block((), ()), builder.loc))


def kinds_of(outcome: Outcome) -> tuple[str, ...]:
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
