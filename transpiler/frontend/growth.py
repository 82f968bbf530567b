"""Which lists a loop grows, and how much room they need: found by looking at one trip of it, and if that does not tell,
by running the loop ahead for the sake of the lengths alone.

A trip that is looked at is interpreted once, loops in it too; what it emits is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gast

from .. import ops
from ..errors import TranspileError, error
from ..ir.build import building, const, current, size_value
from ..ir.dims import slice_length, symbol, symbols_of
from ..ir.nodes import Const, Value
from ..ir.types import I64
from ..ops.base import RuleError
from .environment import Frame
from .grown import (
    CountedList,
    GrownList,
    NeedWindow,
    append,
    common,
    element_of,
    empty_buffer,
    filled,
    is_grown,
    larger,
    make_grown,
    make_room,
    put_together,
    slots_of,
    taken_apart,
)
from .iteration import DimRange, Iterator, Sequence
from .ranges import is_size
from .state import State, capture, restore
from .templates import Element, Template
from .values import ArrayRef, Instance, OuterList

if TYPE_CHECKING:
    from .interpreter import Interpreter
    from .trips import Trips

GROWING = frozenset({"append", "extend", "insert", "pop", "clear", "remove"})
WIDEST = 8                    # elements of a list that a loop which is run ahead looks back


@dataclass
class Touched:
    """A list that a trip changes.  appended: what it gets.  sure: all of that in every trip; bounded: no more."""

    cell: Any
    appended: list[Any] = field(default_factory=list)
    sure: bool = True
    bounded: bool = True


@dataclass
class Watch:
    """Looks at one trip.  loops, arms: how many loops and branches inside the trip are being interpreted."""

    touched: dict[int, Touched] = field(default_factory=dict)
    loops: int = 0
    arms: int = 0

    def note(self, it: Interpreter, cell: Any, values: list[Any]) -> None:
        found = self.touched.setdefault(id(cell), Touched(cell))
        found.appended += values
        found.sure = found.sure and not self.loops and not self.arms and bool(values)
        found.bounded = found.bounded and not self.loops

    def note_all(self, it: Interpreter, cell: Any, values: Any) -> list[Any]:
        """The elements of something that is added: one for all, where there are many."""
        if isinstance(values, (list, tuple)):
            items = list(values)
        else:
            items = one_of(it, values)
        self.note(it, cell, items)
        if not isinstance(values, (list, tuple)):
            self.touched[id(cell)].sure = self.touched[id(cell)].bounded = False
        return items


def one_of(it: Interpreter, values: Any) -> list[Any]:
    """An element of something that has run-time many."""
    from .indexing import get_item
    from .iteration import iterate
    if is_grown(values):
        parts = iter([get_item(it, b, 0) for b in values.fields["buffers"]])
        return [put_together(it, element_of(values), parts)]
    if isinstance(values, ArrayRef) and values.rank and not isinstance(values.shape[0], int):
        return [get_item(it, values, 0)]
    if isinstance(values, Sequence) and values.is_fresh:
        return [values.item(0)]
    if isinstance(values, DimRange):
        return [values.start]
    return list(iterate(it, values))


def length_and_elements(it: Interpreter, values: Any, template: Template) -> tuple[Any, list[Any]] | None:
    """How many elements there are, and an array of them for each slot; None where they are to be taken one by one."""
    if is_grown(values):
        if [s.type for s in slots_of(element_of(values))] != [s.type for s in slots_of(template)]:
            return None
        return values.fields["length"], list(filled(it, values))
    if isinstance(values, ArrayRef) and values.rank and not isinstance(values.shape[0], int):
        slots = slots_of(template)
        if len(slots) == 1 and slots[0].type.rank == values.rank - 1:
            return values.shape[0], [values]
    return None


# ---------------------------------------------------------------------------------------------------------------
# looking at a trip


def watched(it: Interpreter, frame: Frame, once: Callable[[], Any]) -> dict[int, Touched]:
    """Lists from before the loop that a trip changes; {} where there are none, or that cannot be told."""
    before, names, steps, here = capture(it, frame), it.names.taken.copy(), it.steps, it.here
    outer, it.watch = it.watch, Watch()
    decided, kept = it.decided.copy(), it.kept.copy()
    frame.loops.append(frozenset(frame.variables))
    try:
        with building() as builder:
            once()
        found = {k: t for k, t in it.watch.touched.items() if k in before.cells}
        inner = {t.name for stmt in builder.stmts for t in stmt.targets} | it.names.taken - names
        for touched in found.values():
            if any(name in inner for v in touched.appended if isinstance(v, ArrayRef) for d in v.shape
                   for name in symbols_of(d)):
                found = {}
                break
    except (TranspileError, RuleError, NeedWindow):
        found = {}
    finally:
        it.watch, it.decided, it.kept = outer, decided, kept
        frame.loops.pop()
    restore(before)
    it.forget_names(names)
    it.steps = steps
    it.at(here)
    return found


def look_at_for(it: Interpreter, node: Any, frame: Frame, values: Any, trips: Trips) -> None:
    """A `for` inside a trip that is looked at: one trip of it; all, where there are few and lists grow."""
    from .iteration import lazily
    from .statements import FEW_TRIPS, _unrolled, execute_block
    watch = it.watch
    assert watch is not None
    if trips.count == 0:
        execute_block(it, node.orelse, frame)
        return
    if trips.count is not None and trips.count <= FEW_TRIPS and grows_lists(node):
        _unrolled(it, node, frame, lazily(it, values))
        return
    watch.loops += 1
    try:
        one_trip(it, node, frame, trips)
    finally:
        watch.loops -= 1
    execute_block(it, node.orelse, frame)


def look_at_while(it: Interpreter, node: Any, frame: Frame, test: Callable[[], Any]) -> None:
    """The same for a `while`."""
    from .statements import execute_block
    watch = it.watch
    assert watch is not None
    if test() is not False:
        watch.loops += 1
        try:
            frame.loops.append(frozenset(frame.variables))
            execute_block(it, node.body, frame)
        finally:
            frame.loops.pop()
            watch.loops -= 1
    execute_block(it, node.orelse, frame)


def one_trip(it: Interpreter, node: Any, frame: Frame, trips: Trips) -> None:
    from ..ops.spelling import Weak
    from .assignments import assign
    from .statements import execute_block
    index = current().var(I64, "i")
    it.ranges[index.name] = (None, None)
    assign(it, node.target, trips.item(Weak(index)), frame)
    frame.loops.append(frozenset(frame.variables))
    try:
        execute_block(it, node.body, frame)
    finally:
        frame.loops.pop()


def grows_lists(loop: Any) -> bool:
    """Whether the loop's text looks as if it changed the lengths of lists."""
    for stmt in loop.body:
        for part in gast.walk(stmt):
            if isinstance(part, gast.Call) and isinstance(part.func, gast.Attribute) and part.func.attr in GROWING:
                return True
            if isinstance(part, gast.AugAssign):
                return True
    return False


# ---------------------------------------------------------------------------------------------------------------
# making room


@dataclass
class Plan:
    """What becomes of a list."""

    cell: Any
    element: Template
    held: list[Any]
    each: int
    sure: bool
    bounded: bool
    exact: Any = None


def grow_lists(it: Interpreter, frame: Frame, trips: Trips | None, once: Callable[[], Any],
               rolled: Callable[[], Any], is_small: bool, may_leave: bool) -> Callable[[], None] | None:
    """Turn the lists that a loop changes into ones that it can carry.  Returns what to do after the loop, or None where
    there are none (or the loop had better be unrolled).

    rolled: emits the loop; is_small: it has so few trips that it may be unrolled.
    """
    touched = watched(it, frame, once)
    if not touched or (is_small and all(t.sure and type(t.cell) is list for t in touched.values())):
        return None
    before = capture(it, frame)
    plans = [_plan(t) for t in touched.values()]
    if any(p is None for p in plans) or not _replaceable(before, [t.cell for t in touched.values()]):
        return None
    made: list[tuple[Plan, Instance]] = []
    rooms: list[Any] = []
    ahead = [p for p in plans if p is not None and (trips is None or not p.bounded)]
    lengths = iter(_run_ahead(it, frame, before, ahead, rolled)) if ahead else iter(())
    for plan in plans:
        assert plan is not None
        if plan in ahead:
            rooms.append(it.dimension(next(lengths), "the length of a list"))
        else:
            assert trips is not None
            rooms.append(_room(it, trips, plan.each, len(plan.held) if isinstance(plan.cell, list) else
                               plan.cell.fields["most"]))
    for plan, room in zip(plans, rooms):
        assert plan is not None
        made.append((plan, _grown(it, plan, room)))
    _replace(it, frame, {id(p.cell): g for p, g in made})
    def afterwards() -> None:
        for (plan, grown), room in zip(made, rooms):
            grown.fields["most"] = room
            if plan.sure and plan not in ahead and not may_leave:
                grown.fields["length"] = room

    return afterwards


def _plan(touched: Touched) -> Plan | None:
    cell = touched.cell
    held = list(cell) if isinstance(cell, list) else []
    values = [*held, *touched.appended]
    if is_grown(cell):
        if cell.fields.get("most") is None:
            return None                            # it is one that loops carry already
        element: Template | None = element_of(cell)
        assert element is not None
        if any(taken_apart(element, v) is None for v in values):
            return None
    elif isinstance(cell, list) and not isinstance(cell, OuterList) and values:
        element = common(values)
    else:
        return None
    if element is None:
        return None
    return Plan(cell, element, held, len(touched.appended), touched.sure and not is_grown(cell), touched.bounded)


def _grown(it: Interpreter, plan: Plan, room: Any) -> Instance:
    if not is_grown(plan.cell):
        return make_grown(it, plan.element, room, None, plan.held)
    from .writes import write_item
    fields = plan.cell.fields
    buffers: list[ArrayRef] = []
    for slot in slots_of(plan.element):
        new = empty_buffer(slot, room)
        write_item(it, new, slice(0, fields["length"]), filled(it, plan.cell)[len(buffers)])
        buffers.append(new)
    return Instance(plan.cell.cls, {**fields, "buffers": tuple(buffers), "most": None})


def _run_ahead(it: Interpreter, frame: Frame, before: State, plans: list[Plan], rolled: Callable[[], Any]) -> list[Any]:
    """The lengths of the lists after the loop: it is run for these alone."""
    builder, here, names = current(), it.here, it.names.taken.copy()
    emitted, sizes = len(builder.stmts), dict.fromkeys((id(p.cell) for p in plans), 0)
    while True:
        counted = {id(p.cell): _counted_list(it, p, sizes[id(p.cell)]) for p in plans}
        _replace(it, frame, counted)
        it.ahead += 1
        try:
            rolled()
            lengths = [counted[id(p.cell)].fields["length"] for p in plans]
            restore(before)
            it.at(here)
            return lengths
        except NeedWindow as need:
            if need.size > WIDEST:
                raise error("E122", f"an element that was appended more than {WIDEST} elements ago is read in a loop "
                            "that appends to the list, and how much that is follows only from running it", it.here,
                            kind=NotImplementedError, help="write into an array that is large enough") from None
            sizes = dict.fromkeys(sizes, need.size)
        finally:
            it.ahead -= 1
        builder.take_back(emitted)
        it.forget_names(names)
        restore(before)
        it.at(here)


def _counted_list(it: Interpreter, plan: Plan, window: int) -> Instance:
    nothing = [_nothing(slot) for slot in slots_of(plan.element)]
    empty = [put_together(it, plan.element, iter(nothing)) for _ in range(window)]
    length = len(plan.held) if isinstance(plan.cell, list) else plan.cell.fields["length"]
    found = Instance(CountedList, {"element": Element(plan.element), "window": tuple(empty), "length": 0, "most": None,
                                   "buffers": ()})
    for value in plan.held:
        append(it, found, value)
    found.fields["length"] = length
    return found


def _nothing(slot: Any) -> Any:
    from .grown import ZEROS
    zero = const(ZEROS[slot.type.kind], slot.type)
    return ArrayRef(zero, layout="C") if slot.type.rank else zero


def _replaceable(state: State, lists: list[Any]) -> bool:
    """Whether all that refers to these lists is a variable, or a place in a list, dict or object."""
    wanted = {id(x) for x in lists}
    if any(isinstance(x, OuterList) for x in lists):
        return False
    found = dict.fromkeys(wanted, 0)
    for _, contents in state.cells.values():
        for x in contents if isinstance(contents, list) else contents.values():
            if id(x) in wanted:
                found[id(x)] += 1
    return all(state.references.get(k, 0) <= n for k, n in found.items())


def _replace(it: Interpreter, frame: Frame, new: dict[int, Any]) -> None:
    """Put other things in the places of lists, wherever they are referred to."""
    for cell, contents in capture(it, frame).cells.values():
        put_new(cell, contents, new)


def put_new(cell: Any, contents: Any, new: dict[int, Any]) -> None:
    if isinstance(cell, (ArrayRef, set, Iterator)):
        return
    if isinstance(cell, list):
        cell[:] = [new.get(id(x), x) for x in contents]
        return
    target = cell.variables if isinstance(cell, Frame) else cell.fields if isinstance(cell, Instance) else cell
    for key, x in contents.items():
        if id(x) in new:
            target[key] = new[id(x)]


def _room(it: Interpreter, trips: Trips, each: int, before: Any) -> Any:
    """The most elements that there can be."""
    if trips.count is not None:
        return trips.count * each + before
    lo, hi, step = trips.bounds
    first, last = trips.range
    if abs(step) == 1 and first is not None and last is not None and all(
            is_size(it, name) for d in (first, last) for name in symbols_of(d)):
        return slice_length(first, last + 1, 1) * each + before
    return _counted(lo, hi, step, each, before)


def _counted(lo: Value, hi: Value, step: int, each: int, before: Any) -> Any:
    first, last = (lo, hi) if step > 0 else (hi, lo)
    trips = last if isinstance(first, Const) and first.value == 0 else ops.subtract(last, first)
    if abs(step) > 1:
        trips = ops.floor_divide(ops.add(trips, const(abs(step) - 1, I64)), const(abs(step), I64))
    room = ops.maximum(trips, const(0, I64))
    if each != 1:
        room = ops.multiply(room, const(each, I64))
    if before != 0:
        room = ops.add(room, size_value(before))
    return int(room.value) if isinstance(room, Const) else symbol(room.name, 0)


# ---------------------------------------------------------------------------------------------------------------
# branches


def equal_lists(it: Interpreter, frame: Frame | None, before: State, arms: tuple[Any, Any]) -> None:
    """Lists that the arms of a branch leave with different lengths become ones whose length the run decides."""
    from .decided import is_decided
    from .state import resumed
    for cell, _ in list(before.cells.values()):
        if any(id(cell) not in arm.state.references for arm in arms):
            continue
        contents = [arm.state.contents(cell) for arm in arms]
        if is_grown(cell):
            if contents[0]["most"] is None or contents[0]["most"] == contents[1]["most"]:
                continue
            most = larger(*(c["most"] for c in contents))
            for arm in arms:
                restore(arm.state)
                with resumed(arm.builder):
                    make_room(it, cell, most)
                arm.state = capture(it, frame, known=before)
            continue
        if type(cell) is not list or len(contents[0]) == len(contents[1]) or is_decided(it, cell):
            continue
        if it.watch is not None:
            longer = max(contents, key=len)
            for arm in arms:
                arm.state.cells[id(cell)] = (cell, longer)
            continue
        element = common([*contents[0], *contents[1]])
        if element is None or not all(_replaceable(arm.state, [cell]) for arm in arms):
            continue
        room = max(map(len, contents))
        made = Instance(GrownList, {})
        for arm, held in zip(arms, contents):
            restore(arm.state)
            with resumed(arm.builder):
                fresh = make_grown(it, element, room, 0, held)
            made.fields = {**fresh.fields, "most": room}
            for other, inside in capture(it, frame, known=before).cells.values():
                put_new(other, inside, {id(cell): made})
            arm.state = capture(it, frame, (made,), known=before)
        before.cells[id(made)] = (made, dict(made.fields))
        before.references[id(made)] = before.references.get(id(cell), 0)




__all__ = ["Watch", "equal_lists", "grow_lists", "look_at_for", "look_at_while", "one_trip"]
