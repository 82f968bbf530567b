"""What a loop carries from trip to trip: everything that the body changes, put in and taken out again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import error
from ..ir.build import Builder
from ..ir.dims import symbols_of
from ..ir.nodes import Block, Checkpoint, Value, Var
from ..ir.types import Type
from ..ir.walk import all_statements
from ..ops.spelling import Weak
from .arms import (
    NUMBERED,
    Arm,
)
from .decided import check_not_kept, is_decided, mark_decided
from .differences import (
    cell_name,
    put_array,
)
from .environment import MISSING, Frame
from .grown import is_grown
from .iteration import Iterator as Items
from .liveness import stores
from .merge import (
    Merger,
    depend_on,
    others_of,
)
from .state import State, same_contents
from .templates import (
    Broken,
    Fixed,
    Group,
    Option,
    Slot,
    Template,
    number_of,
)
from .trips import Trips
from .values import ArrayRef, Instance, Maybe, Poison

if TYPE_CHECKING:
    from .interpreter import Interpreter

Place = tuple[int, Any]                # a cell's identity, and a key in it (None: an array's contents)


@dataclass
class Loop:
    """A loop being made.  trips: what a `for` counts; test: of a `while`, gives its condition.  checkpoint: what its
    reverse mode is asked for."""

    it: Interpreter
    node: Any
    frame: Frame
    trips: Trips | None = None
    test: Callable[[], bool | Value] | None = None
    test_in_body: bool = False
    checkpoint: Checkpoint | None = None


@dataclass
class Pass:
    """One interpretation of the body."""

    body: Builder
    index: Var | None
    carries: list[Var]
    head: Builder
    holds: bool | Value
    arm: Arm
    start: State
    merger: Merger
    found: dict[Place, Template] = field(default_factory=dict)
    shared: dict[int, list[Any]] = field(default_factory=dict)


def guessed(loop: Loop, before: State) -> dict[Place, Template]:
    """What the body assigns is probably carried, in the type that it has or had when this loop was seen before."""
    it, frame = loop.it, loop.frame
    known = it.loop_types.get((id(loop.node), id(frame)), {})
    names = {frame.mangled(name) for part in loop.node.body for name in stores(part)}
    found: dict[Place, Template] = {}
    for name, value in frame.variables.items():
        number = number_of(value)
        if name not in names or number is None or isinstance(value, ArrayRef):
            continue
        last = known.get(name)
        if last is not None:
            slot = number_of(last)
            if slot is not None and (number | slot) == slot:
                number = slot
        if isinstance(value, (Weak, Var)) or last is not None:
            found[id(frame), name] = Slot(number.like, Type(number.dtype))
    return found


def put_in(loop: Loop, before: State, merger: Merger, templates: dict[Place, Template],
             shared: dict[int, list[Any]], values: Iterator[Value]) -> None:
    """Put values into everything that is carried.  shared: for arrays that have other names, what they may be."""
    for number, others in shared.items():
        merger.is_exact[number] = False
        for other in others:
            if not isinstance(other, ArrayRef):
                mark_decided(loop.it, other, merger.where)
    for (cell_id, key), template in templates.items():
        cell = before.cells[cell_id][0]
        if key is None and isinstance(cell, ArrayRef):
            put_array(cell, next(values))
            continue
        value = merger.install(template, values, label_of(loop.it, cell, key))
        if isinstance(value, Poison) and not isinstance(cell, Frame):
            raise value.problem
        target = cell.variables if isinstance(cell, Frame) else cell.fields if isinstance(cell, Instance) else cell
        if value is MISSING:
            target.pop(key, None)
        else:
            target[key] = value
    entry = roots_of(before, before, templates)
    for number, made in merger.made.items():
        if isinstance(made, ArrayRef):
            if number in shared:
                depend_on(made, [x for x in shared[number] if isinstance(x, ArrayRef)] or [made],
                          merger.where)
            owners = [root.owner for root in entry.get(number, ()) if root.owner != "local"]
            made.owner = owners[0] if owners else "local"


def label_of(it: Interpreter, cell: Any, key: Any) -> str:
    return cell_name(it, cell) if key is None else key if isinstance(key, str) else "t"


def hints_of(before: State, merger: Merger, templates: dict[Place, Template]) -> list[tuple[Type, str]]:
    """Types of the carries, and what they are called after."""
    found = []
    done: set[int] = set()
    for (cell_id, key), template in templates.items():
        name = label_of(merger.it, before.cells[cell_id][0], key)
        for type in merger.slots(template, done):
            found.append((type, NUMBERED.sub("", name) if name.isidentifier() and name.strip("_") else "t"))
    return found


def changes_of(loop: Loop, before: State, done: Pass, templates: dict[Place, Template]) -> dict[Place, Template]:
    """Templates for all that the trip changed or that was thought to change."""
    end, merger = done.arm.state, Merger(loop.it, "E122", done.merger.where, (before, done.arm.state))
    done.merger = merger
    inner = {t.name for stmt in all_statements(Block(tuple(done.body.stmts), ())) for t in stmt.targets}
    inner |= {v.name for v in (*done.carries, *(() if done.index is None else (done.index,)))}
    found: dict[Place, Template] = {}
    for cell_id, (cell, first) in before.cells.items():
        begin, last = done.start.contents(cell), end.contents(cell)
        if cell_id in loop.it.kept and not same_contents(begin, last):
            check_not_kept(loop.it, cell)
        if isinstance(cell, ArrayRef):
            place = (cell_id, None)
            if last["value"] is not begin["value"] or last["known"] is not begin["known"]:
                found[place] = Slot("array", cell.type, cell.layout)
            continue
        if isinstance(cell, Items):
            if begin != last:
                raise error("E122", "how far an iterator is would be another thing in every trip of a loop that runs "
                            "when the function runs", merger.where, kind=NotImplementedError,
                            help="make a new iterator in each trip, or index what it goes over")
            continue
        is_variable = isinstance(cell, Frame)
        if isinstance(cell, list):
            if len(first) != len(last):
                raise error("E122", "a list changes its length in a loop that runs when the function runs",
                            merger.where, kind=NotImplementedError,
                            help="write into an array: `a = np.zeros(n)`, then `a[i] = ...`")
            first, begin, last = (dict(enumerate(c)) for c in (first, begin, last))
        elif is_grown(cell) and begin["most"] != last["most"]:
            raise error("E122", "a list changes its length in a loop that runs when the function runs", merger.where,
                        kind=NotImplementedError, help="write into an array: `a = np.zeros(n)`, then `a[i] = ...`")
        elif not is_variable and first.keys() != last.keys():
            raise error("E122", "a set, dict or object gets or loses entries in a loop that is decided at run time",
                        merger.where, kind=NotImplementedError, help="give it all its entries before the loop")
        for key in dict.fromkeys((*first, *last)):
            template = _change(merger, (cell_id, key), first.get(key, MISSING), begin.get(key, MISSING),
                               last.get(key, MISSING), templates, str(key), is_variable)
            if template is None:
                continue
            if any(name in inner for t in merger.slots(template) for d in t.shape for name in symbols_of(d)):
                template = Broken(error("E122", f"the shape of `{key}` is another one in every trip", merger.where,
                                        help="give it a shape that is known before the loop"))
            if isinstance(template, Broken) and not is_variable:
                raise template.problem
            found[cell_id, key] = template
    return found


def _change(merger: Merger, place: Place, first: Any, begin: Any, last: Any, templates: dict[Place, Template],
            name: str, is_variable: bool) -> Template | None:
    old = templates.get(place)
    if old is None:
        if last is begin:
            return None
        template = merger.join(first, last, name, is_variable)
        return None if isinstance(template, Fixed) else template
    if isinstance(old, Broken):
        return old
    return merger.join(old, last, name, is_variable)


def roots_of(state: State, contents: State, templates: dict[Place, Template]) -> dict[int, list[Any]]:
    """The arrays (or containers) that meet at each pair's places in a state, one for each place."""
    found: dict[int, list[Any]] = {}

    def visit(template: Template, x: Any) -> None:
        match template:
            case Option():
                if x is not MISSING and x is not None:
                    visit(template.child, x.value if isinstance(x, Maybe) else x)
            case Slot() if template.pair is not None and isinstance(x, ArrayRef):
                found.setdefault(template.pair, []).append(x.root)
            case Group():
                if template.pair is not None:
                    found.setdefault(template.pair, []).append(x)
                parts = (list(x.fields.values()) if isinstance(x, Instance) else list(x.values())
                         if isinstance(x, dict) else list(x) if isinstance(x, (list, tuple)) else [])
                for child, part in zip(template.children, parts):
                    visit(child, part)

    for (cell_id, key), template in templates.items():
        if key is None and isinstance(state.cells[cell_id][0], ArrayRef):
            continue
        held = contents.cells[cell_id][1]
        visit(template, held[key] if isinstance(held, list) else held.get(key, MISSING))
    return found


def same_shared(a: dict[int, list[Any]], b: dict[int, list[Any]]) -> bool:
    return a.keys() == b.keys() and all({id(x) for x in a[k]} == {id(x) for x in b[k]} for k in a)


def shared_by(before: State, done: Pass) -> dict[int, list[Any]]:
    """Pairs whose arrays or containers are also known by other names, before the first trip or after one: with those
    from before the loop that they may be."""
    found: dict[int, list[Any]] = {}
    met = {True: roots_of(before, before, done.found), False: roots_of(before, done.arm.state, done.found)}
    for is_entry, state in ((True, before), (False, done.arm.state)):
        for pair, things in met[is_entry].items():
            counts = {id(x): sum(y is x for y in things) for x in things}
            is_exact = len(counts) <= 1 and all(state.references.get(k, 0) <= n for k, n in counts.items())
            is_exact = is_exact and not any(is_decided(done.merger.it, x) for x in things)
            others = [x for x in others_of(things, is_exact) if id(x) in before.cells]
            if others or not is_exact or any(isinstance(x, ArrayRef) and x.depends for x in things):
                _add(found, pair, others)
    for pair in _parts_of_shared(done.found.values(), found):
        _add(found, pair, [x for things in met.values() for x in things.get(pair, ()) if id(x) in before.cells])
    return found


def _add(found: dict[int, list[Any]], pair: int, others: list[Any]) -> None:
    held = found.setdefault(pair, [])
    held.extend(x for x in others if all(x is not y for y in held))


def _parts_of_shared(templates: Iterable[Template], shared: dict[int, list[Any]]) -> list[int]:
    """Pairs in containers that are known by other names: what is in them is, too."""
    found: dict[int, None] = {}
    pending: list[tuple[Template, bool]] = [(t, False) for t in templates]
    while pending:
        template, inside = pending.pop()
        match template:
            case Option():
                pending.append((template.child, inside))
            case Slot() if inside and template.pair is not None:
                found[template.pair] = None
            case Group():
                if inside and template.pair is not None:
                    found[template.pair] = None
                inside = inside or template.pair in shared
                pending.extend((child, inside) for child in template.children)
    return list(found)


def taken_out(before: State, state: State, merger: Merger, templates: dict[Place, Template]) -> Iterator[Value | None]:
    """The carried values as they are in a state, which is the current one."""
    done: set[int] = set()
    for (cell_id, key), template in templates.items():
        cell = before.cells[cell_id][0]
        if key is None and isinstance(cell, ArrayRef):
            yield cell.read()
            continue
        held = state.cells[cell_id][1]
        x = held[key] if isinstance(held, list) else held.get(key, MISSING)
        yield from merger._extract(template, x, done)
