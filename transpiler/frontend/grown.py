"""Lists that a loop of the running function appends to: an array with room for all, and how much of it is used.

`GrownList` is what such a list becomes before the loop; its methods are interpreted like the user's own code, so they
keep to plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gast

from .. import ops
from ..errors import TranspileError
from ..ir.build import building, const
from ..ir.dims import slice_length, symbol, symbols_of
from ..ir.nodes import Const, Value
from ..ir.types import I64, Type
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .ranges import is_size
from .state import capture, restore
from .templates import Slot, number_of
from .trips import Trips
from .values import ArrayRef, Instance, OuterList

if TYPE_CHECKING:
    from .environment import Frame
    from .interpreter import Interpreter


class GrownList:
    """A list of equal things.  kind: the Python type of its elements, None for arrays and NumPy's numbers."""

    def __init__(self, buffer: Any, length: Any, kind: Any) -> None:
        self.buffer, self.length, self.kind = buffer, length, kind

    def append(self, value: Any) -> None:
        self.buffer[self.length] = value
        self.length = self.length + 1

    def elements(self) -> Any:
        return self.buffer[:self.length]

    def __len__(self) -> Any:
        return self.length

    def __getitem__(self, key: Any) -> Any:
        found = self.buffer[:self.length][key]
        return found if self.kind is None or isinstance(key, slice) else self.kind(found)


def is_grown(x: Any) -> bool:
    return isinstance(x, Instance) and x.cls is GrownList


def elements_of(it: Interpreter, x: Any) -> Any:
    """The array of what is in the list."""
    from .calls import call_value
    return call_value(it, GrownList.elements, (x,), {})


def without_grown(it: Interpreter, x: Any) -> Any:
    """An argument of a NumPy function: grown lists as arrays."""
    if is_grown(x):
        return elements_of(it, x)
    return type(x)(without_grown(it, v) for v in x) if type(x) in (list, tuple) else x


def grow_lists(it: Interpreter, frame: Frame, node: Any, trips: Trips) -> bool:
    """Turn the lists that a loop appends to into grown ones, if that can be done; whether there were any."""
    names = {frame.mangled(part.func.value.id) for stmt in node.body for part in gast.walk(stmt)
             if isinstance(part, gast.Call) and isinstance(part.func, gast.Attribute) and part.func.attr == "append"
             and isinstance(part.func.value, gast.Name)}
    before = capture(it, frame)
    lists = {name: v for name in sorted(names) if type(v := frame.variables.get(name)) is list
             and before.references.get(id(v)) == 1 and not isinstance(v, OuterList)}
    if not lists:
        return False
    appended = _appended(it, frame, node, trips, lists)
    if appended is None:
        return False
    made = {}
    for name, held in lists.items():
        found = [*held, *appended[name]]
        slot = _element(found) if appended[name] else None
        if slot is None:
            return False
        room = _room(it, trips, len(appended[name]), len(held))
        buffer = ArrayRef(Const({"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}[slot.type.kind],
                                slot.type.with_shape((room, *slot.type.shape))), layout="C")
        kind = {"bool": bool, "int64": int, "float64": float, "complex128": complex}[slot.type.dtype] if (
            slot.like == "weak") else None
        grown = Instance(GrownList, {"buffer": buffer, "length": 0, "kind": kind})
        made[name] = (grown, held)
    for name, (grown, held) in made.items():
        for value in held:
            it.call(GrownList.append, (grown, value), {})
        frame.variables[name] = grown
    return True


def _appended(it: Interpreter, frame: Frame, node: Any, trips: Trips, lists: dict[str, Any]) -> dict[str, Any] | None:
    """What one trip appends to each list, whichever way it goes; None where that cannot be told."""
    from .statements import assign, execute_block
    before, names, steps, here = capture(it, frame), it.names.taken.copy(), it.steps, it.here
    outer, it.appended = it.appended, {id(v): [] for v in lists.values()}
    depth, it.appending_depth = it.appending_depth, len(frame.loops)
    frame.loops.append(frozenset(frame.variables))
    try:
        with building() as builder:
            index = builder.var(I64, "i")
            assign(it, node.target, trips.item(Weak(index)), frame)
            execute_block(it, node.body, frame)
        found = {name: it.appended[id(v)] for name, v in lists.items()}
    except (TranspileError, RuleError):
        found = None
    finally:
        it.appended, it.appending_depth = outer, depth
        frame.loops.pop()
    restore(before)
    it.forget_names(names)
    it.steps = steps
    it.at(here)
    return found


def note_append(it: Interpreter, owner: Any, args: tuple[Any, ...]) -> bool:
    """While a trip is looked at: `owner.append(...)`.  Whether that is all there is to do."""
    found = it.appended.get(id(owner))
    if found is None or len(args) != 1:
        return False
    if len(it.frames[-1].loops) > it.appending_depth + 1:
        raise RuleError("a list grows in a loop inside a loop", code="E122", kind=NotImplementedError)
    found.append(args[0])
    return True


def _element(values: list[Any]) -> Slot | None:
    """The type that all have."""
    numbers = [number_of(v) for v in values]
    if all(n is not None for n in numbers):
        joined = numbers[0]
        for n in numbers[1:]:
            joined = joined | n                                  # type: ignore[operator]
        assert joined is not None
        return Slot(joined.like, Type(joined.dtype))
    arrays = [v.type for v in values if isinstance(v, ArrayRef)]
    if len(arrays) < len(values) or any(t != arrays[0] for t in arrays):
        return None
    return Slot("array", arrays[0])


def _room(it: Interpreter, trips: Trips, each: int, before: int) -> Any:
    """The most elements that there can be."""
    if trips.count is not None:
        return trips.count * each + before
    lo, hi, step = trips.bounds
    first, last = trips.range
    if abs(step) == 1 and first is not None and last is not None and all(
            is_size(it, name) for d in (first, last) for name in symbols_of(d)):
        return slice_length(first, last + 1, 1) * each + before
    return _counted(lo, hi, step, each, before)


def _counted(lo: Value, hi: Value, step: int, each: int, before: int) -> Any:
    first, last = (lo, hi) if step > 0 else (hi, lo)
    trips = last if isinstance(first, Const) and first.value == 0 else ops.subtract(last, first)
    if abs(step) > 1:
        trips = ops.floor_divide(ops.add(trips, const(abs(step) - 1, I64)), const(abs(step), I64))
    room = ops.maximum(trips, const(0, I64))
    if each > 1:
        room = ops.multiply(room, const(each, I64))
    if before:
        room = ops.add(room, const(before, I64))
    return int(room.value) if isinstance(room, Const) else symbol(room.name, 0)
