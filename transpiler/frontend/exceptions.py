"""Exceptions: `assert`, `raise` and `try`.

What is surely raised is an exception of the transpiler's own, which a `try` of the user's may catch; what some runs
raise is a `Check`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gast

from ..errors import TranspileError
from .arms import Mixed, Outcome, condition, emit_raise, negated, run_arm
from .branches import run_rest
from .environment import Frame
from .errors import is_pythons_own, original_exception, raised
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
    from .statements import execute_block
    try:
        jump = _try_body(it, node, frame)
    except TranspileError:
        ended = execute_block(it, node.finalbody, frame)
        if ended is not None:
            return ended
        raise
    ended = execute_block(it, node.finalbody, frame)
    return ended if ended is not None else jump


def _try_body(it: Interpreter, node: gast.Try, frame: Frame) -> Outcome:
    """An exception that surely happens is caught; one that depends on run-time values leaves the function."""
    from .statements import execute_block, store_name
    it.catching.append(lambda problem: _handler_of(it, node, problem, frame) is not None)
    try:
        jump = execute_block(it, node.body, frame)
    except TranspileError as problem:
        it.catching.pop()
        handler = _handler_of(it, node, problem, frame) if is_pythons_own(problem) else None
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
    it.catching.pop()
    if isinstance(jump, Mixed) and jump.falls and node.orelse:
        return run_rest(it, jump, node.orelse, frame)
    return jump if jump is not None else execute_block(it, node.orelse, frame)


def _handler_of(it: Interpreter, node: gast.Try, problem: TranspileError, frame: Frame) -> Any | None:
    exception = original_exception(problem)
    for handler in node.handlers:
        kinds = evaluate(it, handler.type, frame) if handler.type is not None else BaseException
        if isinstance(exception, kinds) or isinstance(problem, kinds):
            return handler
    return None
