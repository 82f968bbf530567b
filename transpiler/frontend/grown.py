"""Lists whose length only the running function knows: arrays with room for all elements, and how many there are.

    out = []                     out_b = zeros(n), k = 0
    for v in x:                  For v in x, carrying out_b, k:
        if v > 0:                    If v > 0: out_b' = store(out_b, k, v), k' = k + 1
            out.append(v)

A list becomes such an Instance of `GrownList` before a loop that appends to it (`growth`), or after a branch that does
so in one arm.  Its elements are alike: numbers, arrays of one shape, or containers of such.  There is one array for
each number (or array) in an element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.index import At, Span
from ..ir.nodes import Const, Value
from ..ir.types import I64
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast
from .decided import mark_decided
from .operators import BY_FUNCTION, binary
from .ranges import surely_nonnegative
from .templates import (
    Element,
    Fixed,
    Group,
    Number,
    Slot,
    Template,
    held_number,
    kind_of,
    make_group,
    parts_of,
    same_static,
)
from .values import ArrayRef, Instance, type_of

if TYPE_CHECKING:
    from .interpreter import Interpreter

OUT_OF_RANGE = "list index out of range"
ZEROS: dict[str, Any] = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}


class GrownList:
    """The class of such Instances.  Their fields:

    element: the template of an element; buffers: a tuple of arrays, one for each slot of the template; length: how many
    elements there are; most: the most that there can be, None in a loop that has made room for all that it appends.
    """


class CountedList(GrownList):
    """A list of which only the length is of interest, and the latest elements (`window`): its loop is run ahead to see
    how much room the list needs."""


def is_grown(x: Any) -> bool:
    return isinstance(x, Instance) and issubclass(x.cls, GrownList)


def element_of(grown: Instance) -> Template:
    """What its elements are."""
    found = grown.fields["element"]
    assert isinstance(found, Element)
    return found.template


def slot_of(grown: Instance) -> Slot:
    """What its elements are, where they are numbers or arrays.  RuleError for others."""
    found = element_of(grown)
    if not isinstance(found, Slot):
        kind = found.kind if isinstance(found, Group) else "object"
        raise RuleError(f"numbers or arrays are needed, not a list of {kind}s", kind=TypeError, code="E309")
    return found


def is_counted(x: Any) -> bool:
    return isinstance(x, Instance) and x.cls is CountedList


# ---------------------------------------------------------------------------------------------------------------
# elements


def common(values: list[Any]) -> Template | None:
    """What all these elements are; None where they are not alike."""
    first = values[0]
    numbers = [held_number(v) for v in values]
    if all(n is not None for n in numbers):
        joined = numbers[0]
        for n in numbers[1:]:
            joined = joined | n                                  # type: ignore[operator]
        assert joined is not None
        from ..ir.types import Type
        return Slot(joined.like, Type(joined.dtype))
    if isinstance(first, ArrayRef):
        alike = all(isinstance(v, ArrayRef) and v.type == first.type for v in values)
        return Slot("array", first.type) if alike else None
    kind = kind_of(first)
    if kind is None or is_grown(first):
        return Fixed(first) if all(same_static(first, v) for v in values) else None
    keys = parts_of(first)[0]
    if any(kind_of(v) != kind or type_of(v) is not type_of(first) or parts_of(v)[0] != keys
           or len(parts_of(v)[1]) != len(parts_of(first)[1]) for v in values):
        return None
    children = [common(list(column)) for column in zip(*(parts_of(v)[1] for v in values))]
    if any(c is None for c in children):
        return None
    return Group(kind, type_of(first), keys, tuple(children))


def slots_of(template: Template) -> list[Slot]:
    if isinstance(template, Group):
        return [slot for child in template.children for slot in slots_of(child)]
    return [template] if isinstance(template, Slot) else []


def taken_apart(template: Template, x: Any) -> list[Any] | None:
    """What goes into the slots; None where x is not such an element."""
    match template:
        case Fixed():
            return [] if same_static(template.value, x) else None
        case Slot():
            if template.type.rank:
                return [x] if isinstance(x, ArrayRef) and x.type == template.type else None
            number = held_number(x)
            if number is None:
                return None
            return [x] if (number | Number(template.like, template.type.dtype)).dtype == template.type.dtype else None
        case Group():
            if kind_of(x) != template.kind or type_of(x) is not template.cls:
                return None
            keys, parts = parts_of(x)
            if keys != template.keys or len(parts) != len(template.children):
                return None
            found = [taken_apart(child, part) for child, part in zip(template.children, parts)]
            return None if any(f is None for f in found) else [v for f in found for v in f]      # type: ignore[union-attr]
    raise AssertionError(template)


def put_together(it: Interpreter, template: Template, values: Iterator[Any]) -> Any:
    """An element again.  What is changeable in it must not be written to: the list would not see it."""
    match template:
        case Fixed():
            return template.value
        case Slot():
            value = next(values)
            if template.type.rank:
                made: Any = ArrayRef(value.read(), layout="C")
                keep(it, made)
                return made
            if isinstance(value, ArrayRef):
                value = value.read()
            return Weak(value) if template.like == "weak" and not isinstance(value, Weak) else value
        case Group():
            made = make_group(template, [put_together(it, child, values) for child in template.children])
            if template.kind != "tuple":
                mark_decided(it, made, it.here)
            return made
    raise AssertionError(template)


def keep(it: Interpreter, x: Any) -> None:
    """x is in a grown list, which has a copy of it: whoever writes to it, or to what a branch has made it one of, gets
    an error from now on."""
    if isinstance(x, ArrayRef):
        it.kept[id(x.root)] = (x.root, it.here)
        for other, _ in x.root.depends:
            keep(it, other)
    elif isinstance(x, tuple):
        for part in x:
            keep(it, part)
    elif kind_of(x) is not None:
        it.kept[id(x)] = (x, it.here)
        mark_decided(it, x, it.here)
        for part in parts_of(x)[1]:
            keep(it, part)


# ---------------------------------------------------------------------------------------------------------------
# the list


def plus(it: Interpreter, a: Any, b: Any) -> Any:
    import operator
    return binary(it, BY_FUNCTION[operator.add], a, b)


def minus(it: Interpreter, a: Any, b: Any) -> Any:
    import operator
    return binary(it, BY_FUNCTION[operator.sub], a, b)


def make_grown(it: Interpreter, template: Template, room: Any, most: int | None, held: list[Any]) -> Instance:
    """A list with room for so many, and these elements in it."""
    buffers = tuple(empty_buffer(slot, room) for slot in slots_of(template))
    made = Instance(GrownList, {"element": Element(template), "buffers": buffers, "length": 0, "most": most})
    for value in held:
        append(it, made, value)
    if most is not None:
        made.fields["most"] = len(held)
    return made


def empty_buffer(slot: Slot, room: Any) -> ArrayRef:
    return ArrayRef(Const(ZEROS[slot.type.kind], slot.type.with_shape((room, *slot.type.shape))), layout="C")


def append(it: Interpreter, grown: Instance, value: Any) -> None:
    from .writes import write_item
    fields = grown.fields
    parts = taken_apart(element_of(grown), value)
    if parts is None:
        raise RuleError("an element of another kind is put into a list whose length is known only at run time",
                        code="E122", kind=TypeError, help="make all elements alike: numbers of one kind, arrays of one "
                        "shape, or tuples of such")
    if is_counted(grown):
        fields["window"] = (*fields["window"], value)[1:] if fields["window"] else ()
        fields["length"] = plus(it, fields["length"], 1)
        return
    keep(it, value)
    if fields["most"] is not None:
        make_room(it, grown, fields["most"] + 1)
    for buffer, part in zip(fields["buffers"], parts):
        write_item(it, buffer, fields["length"], part)
    fields["length"] = plus(it, fields["length"], 1)


def make_room(it: Interpreter, grown: Instance, count: Any) -> None:
    """Room for `count` elements, in steps that do not depend on how the list got there: arms of branches agree."""
    from .writes import write_item
    fields = grown.fields
    added = count - fields["most"]
    fields["most"] = larger(fields["most"], count)
    slots, buffers = slots_of(element_of(grown)), []
    for slot, buffer in zip(slots, fields["buffers"]):
        room = buffer.shape[0]
        lacking = count - room
        if isinstance(lacking, int) and lacking <= 0:
            return
        if isinstance(room, int) and isinstance(count, int):
            new = empty_buffer(slot, 1 << (count - 1).bit_length())
        else:
            new = empty_buffer(slot, room + 8 * -(-lacking // 8) if isinstance(lacking, int) else room + added)
        if room != 0:
            write_item(it, new, slice(0, room), buffer)
        buffers.append(new)
    fields["buffers"] = tuple(buffers)


def larger(a: Any, b: Any) -> Any:
    """The larger one of two numbers of elements; the second where that cannot be told."""
    return a if isinstance(a - b, int) and a - b > 0 else b


def filled(it: Interpreter, grown: Instance) -> list[ArrayRef]:
    """The parts of the buffers that are in use."""
    from .indexing import get_item
    length = grown.fields["length"]
    found = []
    for buffer in grown.fields["buffers"]:
        whole = not isinstance(length, Weak) and buffer.shape[0] == length
        found.append(buffer if whole else get_item(it, buffer, slice(None, length)))
    return found


def get_element(it: Interpreter, grown: Instance, key: Any) -> Any:
    """`grown[key]`."""
    from .indexing import get_item
    refuse_float_key(key)
    if is_counted(grown):
        return _from_window(it, grown, key)
    if isinstance(key, slice):
        parts = [get_item(it, part, key) for part in filled(it, grown)]
        return from_arrays(it, element_of(grown), parts)
    if not grown.fields["buffers"]:
        raise RuleError("a list of equal things, whose length is known only at run time, is indexed", code="E111",
                        kind=NotImplementedError)
    return element_at(it, grown, position(it, grown, key))


def element_at(it: Interpreter, grown: Instance, k: Value) -> Any:
    """The element at a place that is in range."""
    parts = []
    for buffer in grown.fields["buffers"]:
        part = ops.load(buffer.read(), k, index=(At(), *(Span(0, size) for size in buffer.shape[1:])))
        parts.append(ArrayRef(part) if part.rank else part)
    return put_together(it, element_of(grown), iter(parts))


def position(it: Interpreter, grown: Instance, key: Any) -> Value:
    """An index as a place in the buffers, checked where it may be out of range."""
    length = grown.fields["length"]
    size, dim = it.as_dim(length), it.as_dim(key)
    if isinstance(size, int) and isinstance(dim, int) and not -size <= dim < size:
        raise RuleError(OUT_OF_RANGE, code="E304", kind=IndexError)
    if size is not None and dim is not None:
        if surely_nonnegative(it, dim) and surely_nonnegative(it, size - 1 - dim):
            return size_value(dim)
        if surely_nonnegative(it, -1 - dim) and surely_nonnegative(it, dim + size):
            return size_value(dim + size)
    held = cast(as_value(key), "int64")
    count = cast(as_value(length), "int64")
    if isinstance(held, Const):
        below = int(held.value) < 0
        place = ops.add(count, held) if below else held
        check(ops.greater_equal(place, const(0, I64)) if below else ops.less(place, count), "IndexError", OUT_OF_RANGE)
        return place
    check(ops.logical_and(ops.greater_equal(held, ops.negative(count)), ops.less(held, count)), "IndexError",
          OUT_OF_RANGE)
    return ops.select(ops.less(held, const(0, I64)), ops.add(held, count), held)


def refuse_float_key(key: Any) -> None:
    if type_of(key) in (float, str, tuple, list) or key is None:
        raise RuleError(f"list indices must be integers or slices, not {type_of(key).__name__}", kind=TypeError,
                        code="E306")


def from_arrays(it: Interpreter, template: Template, parts: list[ArrayRef]) -> Instance:
    """A new list of the elements that these arrays have."""
    if not parts:
        raise RuleError("a list of equal things, whose length is known only at run time, is sliced", code="E111",
                        kind=NotImplementedError)
    copies = tuple(ArrayRef(part.read(), layout="C") for part in parts)
    return Instance(GrownList, {"element": Element(template), "buffers": copies, "length": copies[0].shape[0],
                                "most": copies[0].shape[0]})


def _from_window(it: Interpreter, grown: Instance, key: Any) -> Any:
    """One of the latest elements of a list whose loop is run ahead."""
    window = grown.fields["window"]
    if not isinstance(key, int) or isinstance(key, bool) or key >= 0:
        raise RuleError("elements of a list are read in a loop that appends to it, and how much that is follows only "
                        "from running it", code="E122", kind=NotImplementedError,
                        help="read the latest ones only (`values[-1]`), or write into an array that is large enough")
    if -key > len(window):
        raise NeedWindow(-key)
    check(_at_least(it, grown.fields["length"], -key), "IndexError", OUT_OF_RANGE)
    return window[key]


class NeedWindow(Exception):
    """A loop that is run ahead reads that many of the latest elements of a list."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def _at_least(it: Interpreter, length: Any, count: int) -> Value:
    return ops.greater_equal(as_value(length), const(count, I64))


def elements_of(it: Interpreter, grown: Instance) -> ArrayRef:
    """The array of all elements, as np.array makes it."""
    if is_counted(grown):
        raise RuleError("a list is read as a whole in a loop that appends to it, and how much that is follows only "
                        "from running it", code="E122", kind=NotImplementedError,
                        help="write into an array that is large enough")
    template, parts = element_of(grown), filled(it, grown)
    if isinstance(template, Slot):
        return parts[0]
    rows = isinstance(template, Group) and template.kind in ("tuple", "list") and all(
        isinstance(c, Slot) for c in template.children)
    shapes = {slot.type.shape for slot in slots_of(template)}
    if not rows or len(shapes) != 1:
        raise RuleError("these elements make no array", code="E303", kind=ValueError,
                        help="append numbers, arrays of one shape, or tuples of numbers")
    found = it.call_numpy(np.stack, (parts,), {"axis": 1})
    assert isinstance(found, ArrayRef)
    return found


def settle(it: Interpreter, x: Any) -> None:
    """x is given back: a list in it whose length follows from sizes has the length that it has in this call."""
    from .iteration import is_decidable, known_length
    if is_grown(x):
        if is_decidable(it, x.fields["length"]):
            known_length(it, x.fields["length"])
    elif isinstance(x, (list, tuple, dict)):
        for part in x.values() if isinstance(x, dict) else x:
            settle(it, part)
    elif isinstance(x, Instance):
        settle(it, list(x.fields.values()))


def holds_grown(x: Any) -> bool:
    return is_grown(x) or (type(x) in (list, tuple) and any(map(holds_grown, x)))


def without_grown(it: Interpreter, x: Any) -> Any:
    """An argument of a NumPy function: grown lists as arrays."""
    if is_grown(x):
        return elements_of(it, x)
    return type(x)(without_grown(it, v) for v in x) if type(x) in (list, tuple) else x
