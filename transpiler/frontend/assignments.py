"""Assignments: names, parts of things, unpacking, `op=` and `del`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gast

from ..errors import error
from ..ops.base import RuleError
from .attributes import get_attribute, set_attribute
from .decided import check_own
from .either import updated
from .environment import Frame
from .expressions import evaluate, load_name, static_key
from .indexing import get_item, masked_key
from .iteration import iterate
from .masked import written_selection
from .operators import BINARY, Operator, binary
from .values import ArrayRef, Instance, Masked, OuterDict, OuterList, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter


def execute_assign(it: Interpreter, node: gast.Assign, frame: Frame) -> None:
    value = evaluate(it, node.value, frame)
    for target in node.targets:
        assign(it, target, value, frame)


def execute_annotated(it: Interpreter, node: gast.AnnAssign, frame: Frame) -> None:
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
    if isinstance(container, Masked):
        raise written_selection()
    if isinstance(container, list) and not isinstance(key, slice):
        key = it.static_int(key, "an index of a list")
    elif isinstance(container, dict):
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


def execute_augmented(it: Interpreter, node: gast.AugAssign, frame: Frame) -> None:
    op = BINARY[type(node.op)]
    match node.target:
        case gast.Name():
            old = load_name(it, frame.mangled(node.target.id), node.target, frame)
            new = _in_place(it, op, old, evaluate(it, node.value, frame), node, frame)
            if new is not old:
                store_name(it, frame.mangled(node.target.id), new, node, frame)
        case gast.Subscript():
            container = evaluate(it, node.target.value, frame)
            key = evaluate(it, node.target.slice, frame)
            it.at(frame.location(node.target))
            masked = masked_key(container.rank, key) if isinstance(container, ArrayRef) else None
            if masked is not None:
                from .writes import selected_by, update_masked
                ref, old = selected_by(it, container, masked)
                operand = evaluate(it, node.value, frame)
                it.at(frame.location(node))
                update_masked(it, op, ref, old, masked, operand)
                return
            old = get_item(it, container, key)
            new = _in_place(it, op, old, evaluate(it, node.value, frame), node, frame)
            if isinstance(container, (list, dict)) and new is old:
                return              # what changed in place stays where it is
            if not isinstance(old, ArrayRef) or new is not old or old.base is None:
                it.at(frame.location(node.target))
                set_item(it, container, key, new)
        case gast.Attribute():
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
        if old.may_be_number:
            return updated(it, op, old, operand, frame)
        from .writes import update
        update(it, op, old, operand)
        return old
    if isinstance(old, Masked):
        raise written_selection()
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


def execute_delete(it: Interpreter, node: gast.Delete, frame: Frame) -> None:
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
