"""What Python's list methods and operators, and NumPy's joining functions, mean for lists that grow at run time."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.build import check, const
from ..ir.types import I64, Type
from ..ops.base import RuleError
from ..ops.spelling import as_value
from .grown import (
    append,
    common,
    element_at,
    element_of,
    elements_of,
    filled,
    from_arrays,
    get_element,
    is_counted,
    is_grown,
    make_grown,
    make_room,
    minus,
    plus,
    position,
    refuse_float_key,
    slot_of,
    slots_of,
    taken_apart,
)
from .iteration import iterate
from .operators import BY_FUNCTION, compare
from .templates import Slot
from .values import ArrayRef, Instance, Native, type_of

if TYPE_CHECKING:
    from .interpreter import Interpreter

METHODS: dict[str, Callable[..., Any]] = {}


def method(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def put(meaning: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            METHODS[name] = meaning
        return meaning

    return put


def method_of(name: str) -> Native | None:
    """The meaning of a list's method, or None."""
    found = METHODS.get(name)
    return None if found is None else Native(found)


@method("append")
def _append(it: Interpreter, grown: Instance, value: Any) -> None:
    if it.watch is not None:
        it.watch.note(it, grown, [value])
        return
    append(it, grown, value)


@method("extend", "__iadd__")
def _extend(it: Interpreter, grown: Instance, values: Any) -> Any:
    from .growth import length_and_elements
    if it.watch is not None:
        it.watch.note_all(it, grown, values)
        return grown
    many = length_and_elements(it, values, element_of(grown))
    if many is None or is_counted(grown):
        if many is not None and is_counted(grown):
            if grown.fields["window"]:
                raise _not_ahead("extended")
            grown.fields["length"] = plus(it, grown.fields["length"], many[0])
            return grown
        for value in iterate(it, values):
            append(it, grown, value)
        return grown
    from .writes import write_item
    count, parts = many
    if grown.fields["most"] is not None:
        make_room(it, grown, grown.fields["most"] + it.dimension(count, "a length"))
    start = grown.fields["length"]
    stop = plus(it, start, count)
    for buffer, part in zip(grown.fields["buffers"], parts):
        write_item(it, buffer, slice(start, stop), part)
    grown.fields["length"] = stop
    return grown


@method("__len__")
def _len(it: Interpreter, grown: Instance) -> Any:
    return grown.fields["length"]


@method("__getitem__")
def _getitem(it: Interpreter, grown: Instance, key: Any) -> Any:
    return get_element(it, grown, key)


@method("__setitem__")
def _setitem(it: Interpreter, grown: Instance, key: Any, value: Any) -> None:
    from .grown import keep
    from .writes import write_item
    refuse_float_key(key)
    if it.watch is not None:
        it.watch.note(it, grown, [])
        return
    if is_counted(grown):
        raise _not_ahead("written to")
    parts = taken_apart(element_of(grown), value)
    if parts is None or isinstance(key, slice):
        raise RuleError("this cannot be written into a list whose length is known only at run time", code="E122",
                        kind=NotImplementedError, help="write elements of the kind that the list has, one by one")
    keep(it, value)
    place = position(it, grown, key)
    for buffer, part in zip(grown.fields["buffers"], parts):
        write_item(it, buffer, place, part)


@method("pop")
def _pop(it: Interpreter, grown: Instance, key: Any = -1) -> Any:
    if key != -1 if isinstance(key, int) else True:
        raise RuleError("`.pop` of another than the last element is not supported for a list whose length is known "
                        "only at run time", code="E111", kind=NotImplementedError)
    if it.watch is not None:
        it.watch.note(it, grown, [])
    elif is_counted(grown):
        raise _not_ahead("popped from")
    length = grown.fields["length"]
    if isinstance(length, int) and not length:
        raise RuleError("pop from empty list", code="E304", kind=IndexError)
    from .. import ops
    check(ops.greater(as_value(length), const(0, I64)), "IndexError", "pop from empty list")
    last = minus(it, length, 1)
    found = element_at(it, grown, as_value(last))
    if it.watch is None:
        grown.fields["length"] = last
    return found


@method("clear")
def _clear(it: Interpreter, grown: Instance) -> None:
    if it.watch is not None:
        it.watch.note(it, grown, [])
        return
    if is_counted(grown):
        raise _not_ahead("cleared")
    grown.fields["length"] = 0


@method("copy")
def _copy(it: Interpreter, grown: Instance) -> Instance:
    return from_arrays(it, element_of(grown), _all(it, grown))


@method("sort")
def _sort(it: Interpreter, grown: Instance, *, key: Any = None, reverse: Any = False) -> None:
    _replace_all(it, grown, [ordered(it, grown, key, reverse)])


@method("reverse")
def _reverse(it: Interpreter, grown: Instance) -> None:
    from .indexing import get_item
    _replace_all(it, grown, [ArrayRef(get_item(it, part, slice(None, None, -1)).read()) for part in _all(it, grown)])


@method("__contains__")
def has_element(it: Interpreter, grown: Instance, item: Any) -> Any:
    equal = compare(it, BY_FUNCTION[operator.eq], elements_of(it, grown), item)
    return it.call(bool, (it.call_numpy(np.any, (equal,), {}),), {})


@method("__add__")
def _add(it: Interpreter, grown: Instance, other: Any) -> Any:
    return joined_lists(it, grown, other)


@method("__radd__")
def _radd(it: Interpreter, grown: Instance, other: Any) -> Any:
    return joined_lists(it, other, grown)


@method("index", "count", "remove", "insert", "__mul__", "__rmul__", "__eq__", "__ne__", "__lt__", "__gt__",
        "__delitem__")
def _refused(it: Interpreter, grown: Instance, *args: Any) -> Any:
    raise RuleError("this is not supported for a list whose length is known only at run time", code="E111",
                    kind=NotImplementedError, help="make it an array: `np.array(values)`")


def _not_ahead(what: str) -> RuleError:
    return RuleError(f"a list is {what} in a loop that appends to it, and how much that is follows only from running "
                     "it", code="E122", kind=NotImplementedError, help="write into an array that is large enough")


def _all(it: Interpreter, grown: Instance) -> list[ArrayRef]:
    if is_counted(grown):
        raise _not_ahead("read as a whole")
    return filled(it, grown)


def _replace_all(it: Interpreter, grown: Instance, parts: list[ArrayRef]) -> None:
    from .writes import write_item
    for target, part in zip(_all(it, grown), parts, strict=True):
        write_item(it, target, slice(None), part)


def ordered(it: Interpreter, values: Any, key: Any, reverse: Any) -> ArrayRef:
    """The sorted numbers of a list or an array."""
    from .indexing import get_item
    array = elements_of(it, values) if is_grown(values) else values
    if key is not None or array.rank != 1:
        raise RuleError("`sorted` of run-time values with a key, or of rows, is not supported", code="E111",
                        kind=NotImplementedError, help="use np.argsort")
    found = it.call_numpy(np.sort, (array,), {})
    return ArrayRef(get_item(it, found, slice(None, None, -1)).read()) if reverse else found


def sorted_list(it: Interpreter, values: Any, reverse: Any) -> Instance:
    """`sorted(values)`."""
    numbers = ordered(it, values, None, reverse)
    template = element_of(values) if is_grown(values) else Slot("scalar", Type(numbers.dtype))
    return from_arrays(it, template, [numbers])


def joined_lists(it: Interpreter, a: Any, b: Any) -> Any:
    """`a + b` of lists of which one or both have a length known only at run time."""
    for x in (a, b):
        if not (is_grown(x) or isinstance(x, list)):
            raise RuleError(f'can only concatenate list (not "{type_of(x).__name__}") to list', kind=TypeError,
                            code="E208")
    if not all(map(is_grown, (a, b))):
        grown, plain = (a, b) if is_grown(a) else (b, a)
        if not plain:
            return _copy(it, grown)
        template = common(list(plain))
        if template is None or [s.type for s in slots_of(template)] != [s.type for s in slots_of(
                element_of(grown))]:
            raise RuleError("these lists have elements of different kinds", code="E122", kind=TypeError)
        made = make_grown(it, element_of(grown), len(plain), None, list(plain))
        a, b = (grown, made) if grown is a else (made, grown)
    parts = [it.call_numpy(np.concatenate, ([x, y],), {}) for x, y in zip(_all(it, a), _all(it, b), strict=True)]
    return from_arrays(it, element_of(a), parts)


# ---------------------------------------------------------------------------------------------------------------
# NumPy's functions of a sequence of arrays


def join_rows(it: Interpreter, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
    """np.stack(rows), np.concatenate(rows) and the like; None for other functions."""
    if not args or not is_grown(args[0]) or not isinstance(element_of(args[0]), Slot):
        return None
    rank = slot_of(args[0]).type.rank
    axis = args[1] if len(args) > 1 else kwargs.get("axis", 0)
    if function not in (np.stack, np.vstack, np.hstack, np.concatenate, np.column_stack) or not isinstance(axis, int):
        return None
    if rank == 0 and function is np.concatenate:
        raise RuleError("zero-dimensional arrays cannot be concatenated", kind=ValueError, code="E302")
    rows = ArrayRef(elements_of(it, args[0]).read(), layout="C")
    match function:
        case np.stack:
            return rows if axis == 0 else it.call_numpy(np.moveaxis, (rows, 0, axis), {})
        case np.vstack if rank == 1:
            return rows
        case np.vstack if rank == 0:
            return it.call_numpy(np.reshape, (rows, (-1, 1)), {})
        case np.hstack if rank == 0:
            return rows
        case np.column_stack if rank == 1:
            return it.call_numpy(np.transpose, (rows,), {})
        case np.concatenate | np.vstack | np.hstack:
            along = 0 if function is np.vstack else axis if function is np.concatenate else min(rank - 1, 1)
            along += rank if along < 0 else 0
            moved = it.call_numpy(np.moveaxis, (rows, 0, along), {})
            shape = list(moved.shape)
            shape[along:along + 2] = [shape[along] * shape[along + 1]]
            return it.call_numpy(np.reshape, (moved, tuple(shape)), {})
    return None


__all__ = ["has_element", "join_rows", "joined_lists", "method_of", "ordered", "sorted_list"]
