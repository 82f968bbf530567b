"""Statements: one function per kind of node, `(interpreter, node, frame) -> how the block goes on`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from ..errors import TranspileError, error
from ..ir.build import building
from ..ops.base import RuleError
from .arms import (
    BREAK,
    CONTINUE,
    Jump,
    Mixed,
    Outcome,
    condition,
)
from .attributes import set_attribute
from .branches import (
    execute_if,
    run_rest,
)
from .carried import (
    Loop,
)
from .comprehensions import materialised
from .decided import check_own
from .environment import Frame
from .errors import raised
from .exceptions import execute_assert, execute_raise, execute_try
from .expressions import evaluate, evaluate_test, load_name, make_closure
from .growth import grow_lists, look_at_for, look_at_while, one_trip
from .guards import Access
from .iteration import ENDED, UNKNOWN, Checkpointed, Iterator, iterate, lazily
from .loops import (
    after_trip,
    rolled_or_unrolled,
    run_loop,
)
from .operators import BINARY, Operator, binary
from .state import capture, restore
from .trips import can_unroll, trips_of
from .values import ArrayRef, Instance, OuterDict, OuterList, to_python

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


# ---------------------------------------------------------------------------------------------------------------
# assignment


def _expression(it: Interpreter, node: gast.Expr, frame: Frame) -> None:
    evaluate(it, node.value, frame)


def _assign(it: Interpreter, node: gast.Assign, frame: Frame) -> None:
    value = evaluate(it, node.value, frame)
    for target in node.targets:
        assign(it, target, value, frame)


def _annotated(it: Interpreter, node: gast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        assign(it, node.target, evaluate(it, node.value, frame), frame)


def assign(it: Interpreter, target: Any, value: Any, frame: Frame) -> None:
    """Bind a target: a name, a part of something, or names to unpack into."""
    match target:
        case gast.Name():
            store_name(it, frame.mangled(target.id), value, target, frame)
        case gast.Tuple() | gast.List():
            _unpack(it, target, value, frame)
        case gast.Starred():
            assign(it, target.value, value, frame)
        case gast.Subscript():
            container = evaluate(it, target.value, frame)
            key = evaluate(it, target.slice, frame)
            it.at(frame.location(target))
            set_item(it, container, key, value)
        case gast.Attribute():
            receiver = evaluate(it, target.value, frame)
            it.at(frame.location(target))
            set_attribute(it, receiver, frame.mangled(target.attr), value)
        case _:
            raise error("E110", "this assignment is not supported", frame.location(target))


def store_name(it: Interpreter, name: str, value: Any, node: Any, frame: Frame) -> None:
    """Rebind a name where it lives."""
    owner = frame.owner_of(name)
    if owner is not None:
        owner.variables[name] = value
        it.name_after(name, value)
        return
    what = "a global" if frame.cells_of(name) is None else "a variable of an enclosing function that runs no more"
    raise error("E126", f"rebinding `{name}`, {what}, is not supported", frame.location(node),
                help="return the new value instead")


def _unpack(it: Interpreter, target: Any, value: Any, frame: Frame) -> None:
    it.at(frame.location(target))
    try:
        if isinstance(value, ArrayRef) and not any(isinstance(part, gast.Starred) for part in target.elts):
            _expect_length(it, value, len(target.elts))
        items = iterate(it, value)
    except RuleError as problem:
        if problem.code == "E312":
            text = str(problem).removesuffix("object is not iterable").strip()
            raise RuleError(f"cannot unpack non-iterable {text.strip(chr(39))} object", kind=TypeError,
                            code="E312") from None
        raise
    parts = target.elts
    star = next((k for k, part in enumerate(parts) if isinstance(part, gast.Starred)), None)
    if star is None:
        if len(items) < len(parts):
            raise RuleError(f"not enough values to unpack (expected {len(parts)}, got {len(items)})", code="E314")
        if len(items) > len(parts):
            raise RuleError(f"too many values to unpack (expected {len(parts)})", code="E314")
    else:
        if len(items) < len(parts) - 1:
            raise RuleError(f"not enough values to unpack (expected at least {len(parts) - 1}, got {len(items)})",
                            code="E314")
        after = len(parts) - star - 1
        items = [*items[:star], list(items[star:len(items) - after]), *items[len(items) - after:]]
    for part, item in zip(parts, items):
        assign(it, part, item, frame)


def _expect_length(it: Interpreter, value: ArrayRef, count: int) -> None:
    """An array whose length is not known, unpacked into so many names, has that length."""
    size = value.shape[0]
    if not isinstance(size, int):
        it.assumptions.are_equal(size, count)


def set_item(it: Interpreter, container: Any, key: Any, value: Any) -> None:
    """`container[key] = value`."""
    if isinstance(container, ArrayRef):
        from .writes import write_item
        if container.is_flat:
            from .in_place import set_flat
            set_flat(it, container, key, value)
            return
        write_item(it, container, key, value)
        return
    if isinstance(container, (OuterList, OuterDict)):
        raise RuleError("writing to a list or dict from outside of the function is not supported", code="E126",
                        kind=NotImplementedError, help="make a new one and return it")
    if isinstance(container, Instance):
        found = it.find_special(container, "__setitem__")
        if found is not None:
            it.call(found, (key, value), {})
            return
    if isinstance(container, list) and not isinstance(key, slice):
        key = it.static_int(key, "an index of a list")
    elif isinstance(container, dict):
        from .expressions import static_key
        key = static_key(it, key)
    elif isinstance(container, list):
        value = iterate(it, value)
        key = slice(*(None if k is None else it.static_int(k, "a bound of a slice")
                      for k in (key.start, key.stop, key.step)))
    else:
        it.native(_refuse_item, container)
    check_own(it, container)
    it.native(container.__setitem__, key, value)


def _refuse_item(container: Any) -> None:
    raise TypeError(f"{type(container).__name__!r} object does not support item assignment")


def _augmented(it: Interpreter, node: gast.AugAssign, frame: Frame) -> None:
    op = BINARY[type(node.op)]
    match node.target:
        case gast.Name():
            old = load_name(it, frame.mangled(node.target.id), node.target, frame)
            new = _in_place(it, op, old, evaluate(it, node.value, frame), node, frame)
            if new is not old:
                store_name(it, frame.mangled(node.target.id), new, node, frame)
        case gast.Subscript():
            from .indexing import get_item, masked_key
            container = evaluate(it, node.target.value, frame)
            key = evaluate(it, node.target.slice, frame)
            it.at(frame.location(node.target))
            masked = masked_key(container.rank, key) if isinstance(container, ArrayRef) else None
            if masked is not None:
                from .writes import update_masked
                operand = evaluate(it, node.value, frame)
                it.at(frame.location(node))
                update_masked(it, op, container, masked, operand)
                return
            old = get_item(it, container, key)
            new = _in_place(it, op, old, evaluate(it, node.value, frame), node, frame)
            if isinstance(container, (list, dict)) and new is old:
                return              # what changed in place stays where it is
            if not isinstance(old, ArrayRef) or new is not old or old.base is None:
                it.at(frame.location(node.target))
                set_item(it, container, key, new)
        case gast.Attribute():
            from .attributes import get_attribute
            receiver = evaluate(it, node.target.value, frame)
            it.at(frame.location(node.target))
            old = get_attribute(it, receiver, frame.mangled(node.target.attr))
            new = _in_place(it, op, old, evaluate(it, node.value, frame), node, frame)
            if new is not old:
                set_attribute(it, receiver, frame.mangled(node.target.attr), new)


def _in_place(it: Interpreter, op: Any, old: Any, operand: Any, node: Any, frame: Frame) -> Any:
    """`old op= operand`: arrays and lists change, everything else is computed anew."""
    it.at(frame.location(node))
    if isinstance(old, ArrayRef):
        from .writes import update
        update(it, op, old, operand)
        return old
    it.outside.check_number(old)
    if isinstance(old, (list, dict, set)) and hasattr(old, f"__i{op.name}__"):
        return _container_in_place(it, op, old, operand)
    if isinstance(old, Instance):
        found = it.find_special(old, f"__i{op.name}__")
        if found is not None:
            return it.call(found, (operand,), {})
    return binary(it, op, old, operand)


def _container_in_place(it: Interpreter, op: Operator, old: Any, operand: Any) -> Any:
    """`old op= operand` for a list, dict or set, which changes under all its names."""
    if isinstance(old, (OuterList, OuterDict)):
        kind = "list" if isinstance(old, OuterList) else "dict"
        raise RuleError(f"writing to a {kind} from outside of the function is not supported", code="E126",
                        kind=NotImplementedError, help=f"use `a = a {op.sign} ...`")
    check_own(it, old)
    if isinstance(old, list) and op.name == "add":
        from .standard_library import extend_list
        if it.watch is not None:
            old.extend(it.watch.note_all(it, old, operand))
        else:
            extend_list(it, old, operand)
        return old
    if isinstance(old, list):
        operand = iterate(it, operand) if op.name == "add" else it.static_int(operand, "the factor of a list")
    if it.native(getattr(old, f"__i{op.name}__"), operand) is NotImplemented:
        return binary(it, op, old, operand)              # an error like Python's
    return old


def _delete(it: Interpreter, node: gast.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, gast.Name):
            load_name(it, frame.mangled(target.id), target, frame)
            owner = frame.owner_of(frame.mangled(target.id))
            if owner is None:
                raise error("E126", f"deleting the global `{target.id}` is not supported", frame.location(target))
            del owner.variables[frame.mangled(target.id)]
        elif isinstance(target, gast.Subscript):
            container = evaluate(it, target.value, frame)
            key = evaluate(it, target.slice, frame)
            it.at(frame.location(target))
            if not isinstance(container, (list, dict)) or isinstance(container, (OuterList, OuterDict)):
                raise error("E110", "deleting a part of this is not supported", frame.location(target))
            check_own(it, container)
            it.native(container.__delitem__, to_python(key))
        else:
            raise error("E110", "deleting this is not supported", frame.location(target))


# ---------------------------------------------------------------------------------------------------------------
# control flow


FEW_TRIPS = 64                # of a loop that is unrolled if it appends to a list
MOST_TRIED = 1000             # trips of a loop that is tried while transpiling


def _return(it: Interpreter, node: gast.Return, frame: Frame) -> Jump:
    return Jump("return", None if node.value is None else evaluate(it, node.value, frame))


def _for(it: Interpreter, node: gast.For, frame: Frame) -> Outcome:
    values = materialised(it, evaluate(it, node.iter, frame))
    it.at(frame.location(node.iter))
    values, wish = (values.over, values.wish) if isinstance(values, Checkpointed) else (values, None)
    if wish is not None and may_leave(node):
        raise RuleError("a loop with checkpoints cannot be left by `break` or `return`", code="E110",
                        kind=NotImplementedError, help="go on with an `if` around what is left out")
    trips = trips_of(it, values)
    if trips is None:
        return _unrolled(it, node, frame, lazily(it, values))
    if trips.count == 0:
        return execute_block(it, node.orelse, frame)
    if it.watch is not None:
        look_at_for(it, node, frame, values, trips)
        return None

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
    gast.Expr: _expression, gast.Assign: _assign, gast.AnnAssign: _annotated, gast.AugAssign: _augmented,
    gast.Delete: _delete, gast.Return: _return, gast.If: execute_if, gast.For: _for, gast.While: _while,
    gast.Break: _break, gast.Continue: _continue, gast.Pass: _pass, gast.Global: _pass, gast.Nonlocal: _pass,
    gast.Assert: execute_assert, gast.Raise: execute_raise, gast.Try: execute_try, gast.With: _with,
    gast.FunctionDef: _function, gast.AsyncFunctionDef: _function, gast.Import: _import,
    gast.ImportFrom: _import_from, gast.Match: _match,
}
