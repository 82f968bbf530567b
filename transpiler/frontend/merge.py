"""One value out of two: what a variable is after a branch, or what a loop carries from trip to trip.

A template says what two values have in common:

    Fixed(value)     both are this
    Slot             numbers or arrays of one type, or one of each (`either`): one run-time value
    Group            containers of one structure, with a template for each part
    Option           a variable that only one of them sets, or that is None in the other
    Broken           they do not fit together; an error when it is read

`extract` takes the run-time values out of a Python value as the template wants them, `install` makes a Python value
of such values.  A bool, int or float that Python computed takes the dtype of a NumPy number it meets, as in NumPy.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import error
from ..ir.nodes import Const, Value
from ..ir.types import BOOL, Type
from ..ops.spelling import Weak
from .decided import is_decided, mark_decided
from .environment import MISSING
from .templates import (
    DEAD,
    Broken,
    DontCare,
    Fixed,
    Group,
    Option,
    Slot,
    Template,
    conforms,
    described,
    fits,
    held_number,
    held_value,
    is_array,
    is_immutable,
    kind_of,
    make_group,
    number_of,
    parts_of,
    same_static,
)
from .values import ArrayRef, Maybe, Poison, is_static, type_of

if TYPE_CHECKING:
    from ..errors import Location
    from .interpreter import Interpreter
    from .state import State


class Merger:
    """Joins the values of two states.  code: of the error for values that do not fit.

    sides: the states, for how often arrays are referred to in them.
    """

    def __init__(self, it: Interpreter, code: str, where: Location | None, sides: tuple[State | None, State | None],
                 preds: tuple[Any, ...] = ()) -> None:
        self.it, self.code, self.where, self.sides, self.preds = it, code, where, sides, preds
        self.pairs: dict[tuple[Any, Any], int] = {}
        self.sites: dict[int, int] = {}
        self.roots: dict[int, tuple[Any, Any]] = {}
        self.made: dict[int, Any] = {}
        self.is_exact: dict[int, bool] = {}

    # --- joining -----------------------------------------------------------------------------------------------

    def join(self, a: Any, b: Any, name: str, may_lack: bool = False) -> Template:
        """What two values (or a template and a value) have in common.

        may_lack: for variables, of which one may have no value, or be None.
        """
        if isinstance(a, Fixed):
            a = a.value
        if a is b:
            return Fixed(b)
        a, b = (DontCare() if x is DEAD else x for x in (a, b))
        if isinstance(a, DontCare):
            return self.join(a.value, b, name, may_lack) if fits(a.value, b) else self.lift(b, name, 1)
        if isinstance(b, DontCare):
            return self.join(a, b.value, name, may_lack) if fits(b.value, a) else self.lift(a, name, 0)
        for x in (a, b):
            if isinstance(x, Broken):
                return x
            if isinstance(x, Poison):
                return Broken(x.problem)          # type: ignore[arg-type]
        if may_lack and any(x is MISSING or x is None or isinstance(x, (Maybe, Option)) for x in (a, b)):
            return self._join_lacking(a, b, name)
        if same_static(a, b):
            return Fixed(b)
        numbers = (number_of(a), number_of(b))
        if None not in numbers:
            joined = numbers[0] | numbers[1]      # type: ignore[operator]
            return Slot(joined.like, Type(joined.dtype))
        if is_array(a) and is_array(b):
            return self._join_arrays(a, b, name)
        numbers = (held_number(a), held_number(b))
        if None not in numbers:
            joined = numbers[0] | numbers[1]      # type: ignore[operator]
            return Slot("either", Type(joined.dtype), "C", self._pair(a, b))
        if isinstance(a, Group) or kind_of(a) is not None:
            return self._join_groups(a, b, name)
        return self._broken(a, b, name)

    def _join_lacking(self, a: Any, b: Any, name: str) -> Template:
        kinds = {x is None or (isinstance(x, (Maybe, Option)) and x.is_none) for x in (a, b)
                 if x is None or x is MISSING or isinstance(x, (Maybe, Option))}
        if len(kinds) > 1:
            return self._broken(a, b, name)
        left, right = (x.value if isinstance(x, Maybe) else x.child if isinstance(x, Option) else x for x in (a, b))
        if left is MISSING or left is None:
            child = self.lift(right, name, 1)
        elif right is MISSING or right is None:
            child = self.lift(left, name, 0)
        else:
            child = self.join(left, right, name)
        return child if isinstance(child, Broken) else Option(child, kinds.pop())

    def lift(self, x: Any, name: str, side: int = 0) -> Template:
        """A template for a value that has no counterpart; side: which of the two states it is from."""
        if isinstance(x, (Fixed, Slot, Group, Option, Broken)):
            return x
        if x is MISSING:
            return Fixed(x)
        if isinstance(x, Poison):
            return Broken(x.problem)              # type: ignore[arg-type]
        if isinstance(x, Maybe):
            return Option(self.lift(x.value, name, side), x.is_none)
        if is_static(x) and not isinstance(x, (ArrayRef, list, dict)):
            return Fixed(x)
        number = number_of(x)
        if number is not None:
            return Slot(number.like, Type(number.dtype))
        if isinstance(x, ArrayRef):
            like = "either" if x.may_be_number else "array"
            return Slot(like, x.type, x.layout, self._pair(*((x, None) if side == 0 else (None, x))))
        kind = kind_of(x)
        if kind is None:
            return Fixed(x)
        keys, parts = parts_of(x)
        children = tuple(self.lift(p, name, side) for p in parts)
        broken = next((c for c in children if isinstance(c, Broken)), None)
        pair = None if is_immutable(kind, type_of(x)) else self._pair(*((x, None) if side == 0 else (None, x)))
        return broken if broken is not None else Group(kind, type_of(x), keys, children, pair)

    def _join_arrays(self, a: Any, b: Any, name: str) -> Template:
        left, right = a.type, b.type
        if left.rank != right.rank or not all(self._same_size(x, y) for x, y in zip(left.shape, right.shape)):
            return self._broken(a, b, name)
        dtype = left.dtype if left.dtype == right.dtype else np.result_type(left.numpy, right.numpy).name
        layout = a.layout if a.layout == b.layout else "A"
        return Slot("array", Type(dtype, left.shape), layout, self._pair(a, b))

    def _same_size(self, a: Any, b: Any) -> bool:
        if a == b:
            return True
        known = self.it.assumptions
        return known.decidable(a) and known.decidable(b) and known.are_equal(a, b)

    def _join_groups(self, a: Any, b: Any, name: str) -> Template:
        if kind_of(b) is None:
            return self._broken(a, b, name)
        mine = (a.kind, a.cls, a.keys) if isinstance(a, Group) else (kind_of(a), type_of(a), parts_of(a)[0])
        left = a.children if isinstance(a, Group) else parts_of(a)[1]
        keys, right = parts_of(b)
        if mine != (kind_of(b), type_of(b), keys) or len(left) != len(right):
            return self._broken(a, b, name)
        children = tuple(self.join(x, y, name) for x, y in zip(left, right))
        broken = next((c for c in children if isinstance(c, Broken)), None)
        if broken is not None:
            return broken
        if any(isinstance(c, Option) for c in children):
            return self._broken(a, b, name)
        if is_immutable(mine[0], mine[1]):
            if all(isinstance(c, Fixed) for c in children) and mine[0] == "tuple":
                return Fixed(b)
            return Group(mine[0], mine[1], keys, children)         # type: ignore[arg-type]
        return Group(mine[0], mine[1], keys, children, self._pair(a, b))     # type: ignore[arg-type]

    def _broken(self, a: Any, b: Any, name: str) -> Broken:
        what = "after this branch" if self.code == "E121" else "in this loop"
        message = (f"`{name}` may be {described(a)} or {described(b)} {what}" if self.code == "E121" else
                   f"`{name}` begins as {described(a)} and becomes {described(b)} {what}")
        label = "decided when the function runs" if self.code == "E121" else "the loop runs when the function runs"
        return Broken(error(self.code, message, self.where, label=label))

    # --- aliases -----------------------------------------------------------------------------------------------

    def _pair(self, a: Any, b: Any) -> int:
        """A number for the two things that meet here; all places where the same two meet share it."""
        key = tuple(("pair", x.pair) if isinstance(x, (Slot, Group)) else id(x) for x in (a, b))
        number = self.pairs.setdefault(key, len(self.pairs))       # type: ignore[arg-type]
        self.sites[number] = self.sites.get(number, 0) + 1
        self.roots[number] = (a, b)
        return number

    def decide_aliases(self) -> None:
        """Which merged arrays are new ones to all intents: whatever refers to the old ones refers to the new ones."""
        for number, things in self.roots.items():
            exact = True
            for x, side in zip(things, self.sides):
                if x is None or side is None or isinstance(x, (Slot, Group)) or number_of(x) is not None:
                    continue
                root = x.root if isinstance(x, ArrayRef) else x
                count = side.references.get(id(root), 0)
                exact = exact and count <= self.sites[number] and not is_decided(self.it, root)
            self.is_exact[number] = exact

    # --- values ------------------------------------------------------------------------------------------------

    def extract(self, template: Template, x: Any, side: int) -> Iterator[Value | None]:
        """The run-time values in x, as the template wants them; None where any will do."""
        yield from self._extract(template, x, set())

    def _extract(self, template: Template, x: Any, done: set[int]) -> Iterator[Value | None]:
        if x is DEAD:
            x = DontCare()
        if isinstance(x, DontCare):
            x = x.value if x.value is not MISSING and conforms(template, x.value) else x
        match template:
            case Slot():
                if template.pair is not None:
                    if template.pair in done:
                        return
                    done.add(template.pair)
                yield None if isinstance(x, DontCare) else held_value(template, x)
            case Option():
                if x is MISSING or isinstance(x, DontCare) or (x is None and template.is_none):
                    yield Const(False, BOOL)
                    x = DontCare()
                elif isinstance(x, Maybe):
                    yield x.is_set
                    x = x.value
                else:
                    yield Const(True, BOOL)
                yield from self._extract(template.child, x, done)
            case Group():
                parts = [x] * len(template.children) if isinstance(x, DontCare) else parts_of(x)[1]
                if template.pair is not None:
                    if template.pair in done:
                        return
                    done.add(template.pair)
                for child, part in zip(template.children, parts):
                    yield from self._extract(child, part, done)

    def slots(self, template: Template, done: set[int] | None = None) -> Iterator[Type]:
        """Types of the run-time values, in the same order."""
        done = set() if done is None else done
        match template:
            case Slot() | Group() if template.pair is not None and template.pair in done:
                return
            case Slot():
                if template.pair is not None:
                    done.add(template.pair)
                yield template.type
            case Option():
                yield BOOL
                yield from self.slots(template.child, done)
            case Group():
                if template.pair is not None:
                    done.add(template.pair)
                for child in template.children:
                    yield from self.slots(child, done)

    def install(self, template: Template, values: Iterator[Value], name: str) -> Any:
        """The value again."""
        match template:
            case Fixed():
                return template.value
            case Broken():
                return Poison(template.problem, self.preds)
            case Option():
                is_set = next(values)
                value = self.install(template.child, values, name)
                if isinstance(is_set, Const):
                    return value if is_set.value else None if template.is_none else MISSING
                return Maybe(value, is_set, template.is_none)
            case Slot():
                if template.pair is not None and template.pair in self.made:
                    return self.made[template.pair]
                value = next(values)
                if template.like == "weak":
                    return Weak(value)
                if template.like == "scalar" or template.pair is None:
                    return value
                made: Any = ArrayRef(value, layout=template.layout, owner=self._owner(template.pair))
                if template.like == "either":
                    made.may_be_number, made.decided_at = True, self.where
                self.made[template.pair] = made
                return made
            case Group():
                if template.pair is not None and template.pair in self.made:
                    return self.made[template.pair]
                parts = [self.install(c, values, name) for c in template.children]
                broken = next((p for p in parts if isinstance(p, Poison)), None)
                if broken is not None:
                    return broken
                made = make_group(template, parts)
                if template.pair is not None:
                    if not self.is_exact.get(template.pair, True):
                        self._mark(template.pair, made)
                    self.made[template.pair] = made
                return made
        raise AssertionError(template)

    def _mark(self, pair: int, made: Any) -> None:
        """A container that may be one of two: nothing may be written to it, nor to those that it may be."""
        mark_decided(self.it, made, self.where)
        if self.code == "E121":
            for x in self.roots[pair]:
                if x is not None and not isinstance(x, (Slot, Group)):
                    mark_decided(self.it, x, self.where)

    def _owner(self, pair: int | None) -> str:
        owners = [x.root.owner for x in self.roots.get(pair or 0, ()) if isinstance(x, ArrayRef)]
        return next((o for o in owners if o != "local"), "local")

    def finish(self) -> None:
        """After everything is installed: arrays that may be others remember which."""
        for number, made in self.made.items():
            if isinstance(made, ArrayRef):
                roots = [x.root for x in self.roots[number] if isinstance(x, ArrayRef)]
                depend_on(made, others_of(roots, self.is_exact.get(number, True)), self.where)


def others_of(roots: list[Any], is_exact: bool) -> list[Any]:
    """What one merged of these may be, by another name, and what arrays of them may be themselves."""
    found: dict[int, Any] = {}
    for root in roots:
        if not is_exact:
            found[id(root)] = root
        if isinstance(root, ArrayRef):
            found.update((id(other), other) for other, _ in root.depends)
    return list(found.values())


def depend_on(made: ArrayRef, others: list[ArrayRef], where: Location | None) -> None:
    """Neither may be written to from now on without an error."""
    if others:
        made.decided_at = where
        made.depends = tuple((other, other.version) for other in others)
