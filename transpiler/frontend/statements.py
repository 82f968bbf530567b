"""Statements: one function per kind of node, `(interpreter, node, frame) -> how the block goes on`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from ..errors import TranspileError, error
from ..ir.build import building
from ..ir.nodes import Checkpoint
from ..ops.base import RuleError
from .arms import BREAK, CONTINUE, Jump, Mixed, Outcome, condition
from .assignments import assign, execute_annotated, execute_assign, execute_augmented, execute_delete, store_name
from .branches import execute_if, run_rest
from .carried import Loop
from .comprehensions import materialised, refuse_changes, streamed
from .environment import Frame
from .errors import raised
from .exceptions import execute_assert, execute_raise, execute_try
from .expressions import evaluate, evaluate_test, make_closure
from .growth import grow_lists, look_at_for, look_at_while, one_trip
from .guards import Access
from .iteration import ENDED, UNKNOWN, Checkpointed, Iterator, lazily
from .liveness import loads
from .loops import after_trip, rolled_or_unrolled, run_loop
from .masked import lay_out
from .state import capture, restore
from .trips import can_unroll, trips_of

if TYPE_CHECKING:
    from .interpreter import Interpreter


def execute_block(it: Interpreter, nodes: list[Any], frame: Frame) -> Outcome:
    """Run statements in order until one jumps."""
    for k, node in enumerate(nodes):
        rest = nodes[k + 1:]
        if isinstance(node, gast.If):
            outcome, is_whole = execute(it, node, frame, rest)      # type: ignore[misc]
            if is_whole:
                return outcome
        else:
            outcome = execute(it, node, frame)
        if isinstance(outcome, Mixed) and outcome.falls and rest:
            return run_rest(it, outcome, rest, frame)
        if outcome is not None:
            return outcome
    return None


def execute(it: Interpreter, node: Any, frame: Frame, *rest: list[Any]) -> Outcome:
    """Run one statement; an `if` is given the statements after it."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise error("E110", f"`{_word(node)}` is not supported inside a transpiled function", frame.location(node),
                    help="move it out of the function and pass in what it made")
    it.step(frame, node)
    if it.probes and it.probes[-1].stmts:
        it.leave_probe()
    try:
        return handler(it, node, frame, *rest)
    except RuleError as problem:
        raise problem.at(it.here) from None
    except RecursionError as problem:
        if isinstance(problem, TranspileError):
            raise
        raise error("E125", "the calls are nested too deeply", frame.location(node), kind=RecursionError) from None


def _word(node: Any) -> str:
    return {"ClassDef": "class", "AsyncFunctionDef": "async def", "AsyncFor": "async for", "AsyncWith": "async with",
            "TryStar": "except*"}.get(type(node).__name__, type(node).__name__.lower())


def _expression(it: Interpreter, node: gast.Expr, frame: Frame) -> None:
    evaluate(it, node.value, frame)


# ---------------------------------------------------------------------------------------------------------------
# control flow


FEW_TRIPS = 64                # of a loop that is unrolled if it appends to a list
MOST_TRIED = 1000             # trips of a loop that is tried while transpiling


def _return(it: Interpreter, node: gast.Return, frame: Frame) -> Jump:
    return Jump("return", None if node.value is None else evaluate(it, node.value, frame))


def _for(it: Interpreter, node: gast.For, frame: Frame) -> Outcome:
    values = streamed(it, evaluate(it, node.iter, frame))
    refuse_changes(values, node, frame)
    values = materialised(it, values)
    it.at(frame.location(node.iter))
    values, wish = (values.over, values.wish) if isinstance(values, Checkpointed) else (values, None)
    if wish is not None and may_leave(node):
        raise RuleError("a loop with checkpoints cannot be left by `break` or `return`", code="E110",
                        kind=NotImplementedError, help="go on with an `if` around what is left out")
    it.outside.held.append(values)          # a write to what the loop goes over is seen by its later trips
    try:
        return _trips(it, node, frame, values, wish)
    finally:
        it.outside.held.pop()


def _trips(it: Interpreter, node: gast.For, frame: Frame, values: Any, wish: Checkpoint | None) -> Outcome:
    trips = trips_of(it, values)
    if trips is None:
        return _unrolled(it, node, frame, lazily(it, values))
    if trips.count == 0:
        return execute_block(it, node.orelse, frame)
    if it.watch is not None:
        look_at_for(it, node, frame, values, trips)
        return None

    lay_out(frame, loads(node))

    def rolled() -> Outcome:
        if isinstance(values, Iterator):
            values.position = UNKNOWN
        outcome = run_loop(Loop(it, node, frame, trips, checkpoint=wish))
        if isinstance(values, Iterator) and not may_leave(node):
            values.position = ENDED
        return outcome

    def unrolled() -> Outcome:
        if isinstance(values, Iterator):
            values.position = 0
        return _unrolled(it, node, frame, lazily(it, values))

    return rolled_or_unrolled(
        it, frame, trips.count is not None and trips.count <= MOST_TRIED, rolled, unrolled,
        lambda code: can_unroll(it, trips, code),
        lambda: grow_lists(it, frame, trips, lambda: one_trip(it, node, frame, trips), rolled,
                           trips.count is not None and trips.count <= FEW_TRIPS, may_leave(node)))


def may_leave(loop: Any) -> bool:
    """Whether a loop may end before its last trip."""
    return any(isinstance(part, (gast.Break, gast.Return)) for stmt in loop.body for part in gast.walk(stmt))


def _unrolled(it: Interpreter, node: gast.For, frame: Frame, values: Any) -> Outcome:
    """One trip after the other, while transpiling."""
    values = iter(values)
    for value in values:
        assign(it, node.target, value, frame)
        outcome = execute_block(it, node.body, frame)
        if outcome is BREAK:
            return None
        if isinstance(outcome, Mixed):
            return after_trip(it, outcome, frame, lambda: _unrolled(it, node, frame, values))
        if outcome is not None and outcome is not CONTINUE:
            return outcome
    return execute_block(it, node.orelse, frame)


def _while(it: Interpreter, node: gast.While, frame: Frame) -> Outcome:
    def test() -> Any:
        value = evaluate_test(it, node.test, frame)
        it.at(frame.location(node.test))
        return condition(it, value, "the condition of this `while`")

    if it.watch is not None:
        look_at_while(it, node, frame, test)
        return None
    lay_out(frame, loads(node))
    before, names = capture(it, frame), it.names.taken.copy()
    with building():
        first = test()
    restore(before)
    it.forget_names(names)
    if first is False:
        test()
        return execute_block(it, node.orelse, frame)
    is_static = isinstance(first, bool)

    def rolled() -> Outcome:
        return run_loop(Loop(it, node, frame, test=test))

    def once() -> None:
        test()
        execute_block(it, node.body, frame)

    return rolled_or_unrolled(it, frame, is_static, rolled, lambda: _unrolled_while(it, node, frame, test),
                              lambda code: is_static, lambda: grow_lists(it, frame, None, once, rolled, False, True))


def _unrolled_while(it: Interpreter, node: gast.While, frame: Frame, test: Callable[[], Any]) -> Outcome:
    """One trip after the other, while transpiling."""
    while True:
        holds = test()
        it.step(frame, node)
        if not isinstance(holds, bool):
            return run_loop(Loop(it, node, frame, test=test))
        if not holds:
            return execute_block(it, node.orelse, frame)
        outcome = execute_block(it, node.body, frame)
        if outcome is BREAK:
            return None
        if isinstance(outcome, Mixed):
            return after_trip(it, outcome, frame, lambda: _unrolled_while(it, node, frame, test))
        if outcome is not None and outcome is not CONTINUE:
            return outcome


def _match(it: Interpreter, node: gast.Match, frame: Frame) -> Outcome:
    from .patterns import execute_match
    return execute_match(it, node, frame)


def _break(it: Interpreter, node: gast.Break, frame: Frame) -> Jump:
    return BREAK


def _continue(it: Interpreter, node: gast.Continue, frame: Frame) -> Jump:
    return CONTINUE


def _pass(it: Interpreter, node: Any, frame: Frame) -> None:
    return None


def _with(it: Interpreter, node: gast.With, frame: Frame) -> Outcome:
    for item in node.items:
        manager = evaluate(it, item.context_expr, frame)
        if not isinstance(manager, np.errstate):
            raise error("E110", "`with` is supported for np.errstate only", frame.location(item.context_expr),
                        help="move it out of the function")
        if item.optional_vars is not None:
            assign(it, item.optional_vars, None, frame)
    return execute_block(it, node.body, frame)


# ---------------------------------------------------------------------------------------------------------------
# definitions and imports


def _function(it: Interpreter, node: gast.FunctionDef, frame: Frame) -> None:
    decorators = [evaluate(it, d, frame) for d in node.decorator_list]
    value: Any = make_closure(it, node, node.name, frame)
    for decorator, place in zip(reversed(decorators), reversed(node.decorator_list)):
        value = it.call(decorator, (value,), {}, frame.location(place))
    store_name(it, frame.mangled(node.name), value, node, frame)


def _import(it: Interpreter, node: gast.Import, frame: Frame) -> None:
    it.at(frame.location(node))
    for alias in node.names:
        module = it.native(importlib.import_module, alias.name)
        if alias.asname is None:
            name = alias.name.partition(".")[0]
            module = it.native(importlib.import_module, name)
        store_name(it, alias.asname or alias.name.partition(".")[0], module, node, frame)


def _import_from(it: Interpreter, node: gast.ImportFrom, frame: Frame) -> None:
    it.at(frame.location(node))
    package = frame.globals.get("__package__") or frame.globals.get("__name__")
    name = "." * (node.level or 0) + (node.module or "")
    module = it.native(importlib.import_module, name, package)
    for alias in node.names:
        if alias.name == "*":
            raise error("E110", "`import *` is not supported inside a function", frame.location(node))
        if not hasattr(module, alias.name):
            try:
                importlib.import_module(f"{module.__name__}.{alias.name}")
            except ImportError:
                raise raised(ImportError(f"cannot import name {alias.name!r} from {module.__name__!r}"),
                             it.here) from None
        value = getattr(module, alias.name)
        value = it.captures.take(value, Access(module.__dict__, (("key", alias.name),)))
        store_name(it, alias.asname or alias.name, value, node, frame)


HANDLERS: dict[type, Callable[..., Any]] = {
    gast.Expr: _expression, gast.Assign: execute_assign, gast.AnnAssign: execute_annotated,
    gast.AugAssign: execute_augmented, gast.Delete: execute_delete, gast.Return: _return, gast.If: execute_if,
    gast.For: _for, gast.While: _while, gast.Break: _break, gast.Continue: _continue, gast.Pass: _pass,
    gast.Global: _pass, gast.Nonlocal: _pass, gast.Assert: execute_assert, gast.Raise: execute_raise,
    gast.Try: execute_try, gast.With: _with, gast.FunctionDef: _function, gast.AsyncFunctionDef: _function,
    gast.Import: _import, gast.ImportFrom: _import_from, gast.Match: _match,
}
