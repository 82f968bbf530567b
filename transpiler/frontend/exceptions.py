"""Exceptions: `assert`, `raise` and `try`.

What is surely raised is an exception of the transpiler's own, which a `try` of the user's may catch; what some runs
raise is a `Check`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import gast

from ..errors import Location, TranspileError, error, placed
from ..ir.build import Kept, current, kept_now
from ..ir.nodes import Block, Call, Check, Let, Stmt, Value
from ..ir.walk import all_statements
from .arms import Mixed, Outcome, condition, emit_raise, has_effects, negated, run_arm
from .branches import run_rest
from .environment import Frame
from .errors import Unfinished, is_pythons_own, original_exception, raised
from .expressions import evaluate, evaluate_test
from .texts import argument
from .values import Instance, is_static

if TYPE_CHECKING:
    from .interpreter import Interpreter


def execute_assert(it: Interpreter, node: gast.Assert, frame: Frame) -> None:
    """An `assert` statement."""
    test = evaluate_test(it, node.test, frame)
    it.at(frame.location(node.test))
    holds = condition(it, test, "this `assert`")
    if holds is True:
        return
    at = frame.location(node)

    def fail() -> Outcome:
        message = evaluate(it, node.msg, frame) if node.msg is not None else None
        raise raised(AssertionError(*([] if message is None else [argument(it, message)])), at)

    if isinstance(holds, bool):
        fail()
    else:
        arm = run_arm(it, fail)
        it.at(at)
        emit_raise(it, negated(holds), arm)


def execute_raise(it: Interpreter, node: gast.Raise, frame: Frame) -> None:
    """A `raise` statement."""
    at = frame.location(node)
    if node.exc is None:
        if it.handling:
            raise it.handling[-1]
        raise raised(RuntimeError("No active exception to reraise"), at)
    value = evaluate(it, node.exc, frame)
    it.at(at)
    if isinstance(value, type) and issubclass(value, BaseException):
        value = it.native(value)
    if isinstance(value, Instance) and issubclass(value.cls, BaseException):
        value = it.native(value.cls, *(a for a in value.fields.get("args", ()) if is_static(a)))
    if not isinstance(value, BaseException):
        value = TypeError("exceptions must derive from BaseException")
    if isinstance(value, TranspileError):
        raise value
    raise raised(value, at)


def execute_try(it: Interpreter, node: gast.Try, frame: Frame) -> Outcome:
    """A `try` statement."""
    emitted = len(current().stmts)
    try:
        jump = _try_body(it, node, frame)
    except TranspileError as problem:
        ended = _finally(it, node, frame, emitted if is_pythons_own(problem) else None)
        if ended is not None:
            return ended
        raise
    ended = _finally(it, node, frame, emitted)
    return ended if ended is not None else jump


def _finally(it: Interpreter, node: gast.Try, frame: Frame, emitted: int | None) -> Outcome:
    """What is done at last, in every run: where some raise before it, it may have no effect.

    emitted: how much was emitted before the `try`; None where the transpiler cannot go on.
    """
    from .statements import execute_block
    if not node.finalbody:
        return None
    may_raise = [] if emitted is None else list(_exceptions(it, current().stmts[emitted:]))
    before, start = kept_now(), len(current().stmts)
    ended = execute_block(it, node.finalbody, frame)
    if may_raise and (ended is not None or has_effects(current().stmts[start:]) or any(
            old is not new for old, new in zip_longest(_held(before), _held(kept_now())))):
        loc, _, _ = may_raise[0]
        raise error("E110", "an exception that is raised in some runs only comes before a `finally` with effects", loc,
                    kind=NotImplementedError, help="test for it with `if` instead, or do the effect before the `try`")
    return ended


def _held(kept: Kept) -> list[Value]:
    return [value for _, value in kept]


def _try_body(it: Interpreter, node: gast.Try, frame: Frame) -> Outcome:
    """An exception that surely happens is caught; one that depends on run-time values leaves the function."""
    from .assignments import store_name
    from .statements import execute_block
    emitted = len(current().stmts)
    it.catching.append(lambda problem: _handler_of(it, node, problem, frame) is not None)
    try:
        jump = execute_block(it, node.body, frame)
    except TranspileError as problem:
        it.catching.pop()
        if not is_pythons_own(problem):
            raise
        _refuse_caught_checks(it, node, frame, emitted)
        handler = _handler_of(it, node, problem, frame)
        if handler is None:
            raise
        name = handler.name.id if handler.name is not None else None
        if name is not None:
            store_name(it, name, original_exception(problem), handler, frame)
        it.handling.append(problem)
        try:
            return execute_block(it, handler.body, frame)
        finally:
            it.handling.pop()
            owner = frame.owner_of(name) if name is not None else None
            if owner is not None and name is not None:
                owner.variables.pop(name, None)
    except Unfinished:
        it.catching.pop()
        raise
    it.catching.pop()
    _refuse_caught_checks(it, node, frame, emitted)
    if isinstance(jump, Mixed) and jump.falls and node.orelse:
        return run_rest(it, jump, node.orelse, frame)
    return jump if jump is not None else execute_block(it, node.orelse, frame)


def _refuse_caught_checks(it: Interpreter, node: gast.Try, frame: Frame, emitted: int) -> None:
    """What the body emitted may raise in some runs: no handler may be one for that."""
    if not node.handlers:
        return
    raising = list(_exceptions(it, current().stmts[emitted:]))
    if not raising:
        return
    kinds = [kind for handler in node.handlers for kind in _kinds(it, handler, frame)]
    for loc, exception, is_exact in raising:
        if any(issubclass(exception, kind) or (issubclass(kind, exception) and not is_exact) for kind in kinds):
            raise error("E110", "an exception that is raised in some runs only is caught inside the function", loc,
                        kind=NotImplementedError, label=f"may raise {exception.__name__}",
                        help="test for it with `if` instead of `try`, or catch it outside of the function")


def _exceptions(it: Interpreter, statements: Sequence[Stmt]) -> Iterator[tuple[Location | None, type, bool]]:
    """Where statements may raise when they run, what, and whether it is of that very class."""
    for stmt in all_statements(Block(tuple(statements), ())):
        match stmt:
            case Check() if not stmt.prints:
                noted = it.raises.get(placed(stmt.message, stmt.loc))
                kind = getattr(builtins, stmt.kind) if noted is None else type(noted.exception)
                yield stmt.loc, kind, noted is not None
            case Call():
                yield stmt.loc, Exception, False
            case Let() if getattr(stmt.op, "raises", None) is not None:
                yield stmt.loc, stmt.op.raises, True        # type: ignore[attr-defined]


def _kinds(it: Interpreter, handler: Any, frame: Frame) -> Iterator[type]:
    """The classes that a handler is for."""
    pending = [evaluate(it, handler.type, frame) if handler.type is not None else BaseException]
    while pending:
        found = pending.pop()
        if isinstance(found, tuple):
            pending.extend(found)
        elif isinstance(found, type):
            yield found


def _handler_of(it: Interpreter, node: gast.Try, problem: TranspileError, frame: Frame) -> Any | None:
    exception = original_exception(problem)
    for handler in node.handlers:
        kinds = evaluate(it, handler.type, frame) if handler.type is not None else BaseException
        if isinstance(exception, kinds) or isinstance(problem, kinds):
            return handler
    return None
