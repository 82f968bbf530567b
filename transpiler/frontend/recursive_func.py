"""A recursive function as a func of its own: interpreted until what it takes, gives and changes settles; and its calls.

See `recursion` for which functions these are, and for what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import ops
from ..errors import error
from ..ir.build import building, check, const, current
from ..ir.dims import symbol, symbols_of
from ..ir.library import library
from ..ir.nodes import Call, Const, Value, Var
from ..ir.types import I64, map_dims
from ..ir.walk import size_substitution
from .call_merger import CallMerger
from .carried import Loop, Place, hints_of, put_in, taken_out
from .environment import MISSING, Frame
from .errors import Unfinished
from .guards import Restart
from .lifting import Lifted, lift_group
from .merge import Merger, depend_on
from .outside import keeping_nothing
from .state import State, capture, restore, same_contents
from .surroundings import surroundings
from .templates import Broken, Fixed, Group, Option, Slot, Template, same_template
from .values import ArrayRef, Instance, Poison

if TYPE_CHECKING:
    from .interpreter import Interpreter

MAX_PASSES = 16
LIMIT = 1000             # nested calls at run time, as in CPython: more would overflow the stack of compiled code
Key = tuple[str, int, int, str]


class Widen(Restart):
    """The func must be interpreted again: what it is called with is more general than was thought."""

    def __init__(self, recursion: Recursion) -> None:
        super().__init__("a recursive call has other arguments")
        self.recursion = recursion


@dataclass(frozen=True, eq=False)
class Same:
    """In place of a result that is one of the arguments: the very array."""

    number: int


@dataclass
class Done:
    """One interpretation of the body."""

    stmts: tuple[Any, ...]
    value: Any
    result: Template
    effects: tuple[int, ...]
    places: dict[Place, Template]


class Recursion:
    """One recursive func: what its calls have in common, and its body when that has settled.

    params: templates of the arguments, by name; sizes: names of sizes of its own; result: of what it returns, None
    while only its calls of itself could tell; effects: numbers of the array arguments that it writes to; places: what
    else it changes.  lowest: the outermost func on the stack that it calls, by number.  orders: how often it may be
    differentiated.
    """

    def __init__(self, it: Interpreter, key: Key, node: Any, frame: Frame, name: str) -> None:
        self.it, self.key, self.node, self.frame, self.name = it, key, node, frame, name
        self.parent, self.where = frame.parent, it.here or frame.location(node)
        self.orders = it.orders
        self.sizes: set[str] = set()
        self.clash: str | None = None
        merger = CallMerger(self)
        self.params = {label: merger.lift(value, label) for label, value in frame.arguments.items()}
        self.result: Template | None = None
        self.effects: tuple[int, ...] = ()
        self.places: dict[Place, Template] = {}
        self.may_be: set[int] = set()              # numbers of array arguments that a result may be
        self.other_roots: list[ArrayRef] = []      # other arrays that a result may be
        self.before = capture(it, None, list(frame.arguments.values()))
        self.seen = surroundings(node, frame)
        self.same = [Same(k) for k in range(256)]
        self.marks = True                          # whether arguments are marked in results
        self.members: list[Recursion] = []
        self.lowest = 0
        self.lifted: Lifted | None = None
        self.func_name = library().reserve(name if name.isidentifier() else "inner")
        self.loop = Loop(it, node, frame)

    def own_size(self, name: str) -> Any:
        """A new size of the func's own."""
        own = self.it.names.fresh(f"n_{name}" if name.isidentifier() else "n")
        self.sizes.add(own)
        return symbol(own, 0)

    # --- arguments ---------------------------------------------------------------------------------------------

    def joined(self, arguments: dict[str, Any]) -> dict[str, Template] | None:
        """What these arguments and those of other calls have in common; None where it is too little for one func."""
        merger = CallMerger(self)
        if arguments.keys() != self.params.keys():
            return None
        found = {name: merger.join(template, arguments[name], name) for name, template in self.params.items()}
        if any(isinstance(t, Broken) for t in found.values()):
            self.clash = merger.clash
            return None
        return found

    def serves(self, frame: Frame) -> bool:
        """Whether a call with these arguments may be of this func as it is."""
        if self.parent is not frame.parent or surroundings(self.node, frame) != self.seen:
            return False
        sizes = set(self.sizes)
        joined = self.joined(frame.arguments)
        self.sizes = sizes
        return joined is not None and _same_templates(joined, self.params)

    # --- tracing -----------------------------------------------------------------------------------------------

    def trace(self) -> None:
        """Interpret the body until nothing new comes up."""
        it = self.it
        names, steps, depth = it.names.taken.copy(), it.steps, len(it.recursions)
        funcs, traced, guards = library().snapshot(), len(it.traced), dict(it.assumptions.guards)
        it.recursions.append(self)
        self.lowest = depth
        try:
            for _ in range(MAX_PASSES):
                it.steps = steps + 1
                it.forget_names(names)
                it.names.taken |= self.sizes
                library().restore(funcs)
                del it.traced[traced:]
                it.assumptions.guards = dict(guards)      # what an earlier pass took for granted may not be so
                restore(self.before)
                self.members, self.lowest = [], depth
                it.at(self.where)
                try:
                    done = self._interpret()
                except Widen as wider:
                    if wider.recursion is not self:
                        raise
                    continue
                if self._is_settled(done):
                    break
            else:
                raise error("E130", f"what `{self.name}` takes and gives does not settle", self.where,
                            label="a recursive call", help="let it take and give values of one type in all calls")
        finally:
            it.recursions.pop()
            restore(self.before)
        self.stmts = done.stmts
        it.traced.append(self)
        if self.lowest < depth:
            it.recursions[-1].members += [self, *self.members]
            it.recursions[-1].lowest = min(it.recursions[-1].lowest, self.lowest)
        else:
            lift_group([self, *self.members])

    def _is_settled(self, done: Done) -> bool:
        if self.result is not None and same_template(done.result, self.result) and done.effects == self.effects and (
                _same_templates(done.places, self.places)):
            return True
        self.result, self.effects, self.places = done.result, done.effects, done.places
        return False

    def _interpret(self) -> Done:
        from .calls import run_body
        it = self.it
        merger = CallMerger(self)
        places = Merger(it, "E130", self.where, (self.before, None))
        with building() as body, keeping_nothing():
            self.depth = body.var(I64, "depth")
            body.loc = None
            check(ops.less(self.depth, const(LIMIT, I64)), "RecursionError",
                  f"maximum recursion depth exceeded in {self.name}")
            it.at(self.where)
            frame = Frame(self.frame.source, self.frame.scope, self.parent, self.frame.globals, self.frame.cells,
                          self.frame.name, self.frame.class_name)
            self.inputs: list[Var] = []
            self.arrays: list[ArrayRef] = []
            done: set[int] = set()
            for name, template in self.params.items():
                mine = [body.var(type, name.strip("_") or "x") for type in merger.slots(template, done)]
                self.inputs += mine
                frame.variables[name] = merger.install(template, iter(mine), name)
                self._note(mine)
            self.arrays = [a for a in merger.made.values() if isinstance(a, ArrayRef)]
            self.array_inputs = [a.value for a in self.arrays if isinstance(a.value, Var)]
            containers = [(c, _copied(c)) for c in merger.made.values() if not isinstance(c, ArrayRef)]
            kept = [body.var(type, hint) for type, hint in hints_of(self.before, places, self.places)]
            put_in(self.loop, self.before, places, self.places, {}, iter(kept))
            self.inputs += kept
            frame.first = next(iter(frame.variables.values()), MISSING)
            frame.arguments, frame.branching = dict(frame.variables), it.branching
            self.start = capture(it, None, frame.arguments.values(), known=self.before)
            # What the caller holds: a write to it is seen although nobody here reads it any more.
            keeper = Frame(frame.source, frame.scope, None, {}, {}, self.name, variables=dict(frame.variables))
            it.frames.append(keeper)
            try:
                value = run_body(it, self.node, frame, self.name)
            except Unfinished as never:
                if never.recursion is not self:
                    raise
                raise error("E125", f"`{self.name}` calls itself on every way through it", self.where,
                            kind=RecursionError, label="a recursion that does not end",
                            help="return without a recursive call in some case") from None
            finally:
                it.frames.pop()
            self._refuse_changed(containers)
            found = self._changes(capture(it, None, (), known=self.before))
            value, joined = self._result(merger, value)
            self._refuse_inner_sizes(merger, joined, body.stmts)
            effects = tuple(k for k, (a, v) in enumerate(zip(self.arrays, self.array_inputs)) if a.value is not v)
            self.outputs = [v if v is not None else const(0, t) for v, t in zip(
                merger.extract(joined, value, 1), merger.slots(joined), strict=True)]
            self.outputs += [self.arrays[k].read() for k in effects]
            self.outputs += [v if v is not None else const(0, t) for v, (t, _) in zip(
                taken_out(self.before, capture(it, None, (), known=self.before), places, self.places),
                hints_of(self.before, places, self.places), strict=True)]
        return Done(tuple(body.stmts), value, joined, effects, found)

    def _result(self, merger: CallMerger, value: Any) -> tuple[Any, Template]:
        """The result with arguments marked in it, and what it has in common with results found before."""
        marked = self._marked(value)
        joined = Merger.lift(merger, marked, "the result") if self.result is None else merger.join(
            self.result, marked, "the result")
        if isinstance(joined, Broken) and self.marks:
            self.marks, self.result = False, None      # not always an argument: any array, that may be one of those
            return self._result(merger, value)
        if isinstance(joined, Broken):
            raise joined.problem
        return marked, joined

    def _note(self, params: Sequence[Var]) -> None:
        for param in params:
            if param.type == I64:
                self.it.sizes[param] = symbol(param.name, 0)

    def _refuse_changed(self, containers: Sequence[tuple[Any, Any]]) -> None:
        for container, contents in containers:
            if not same_contents(_copied(container), contents):
                raise error("E126", f"a {type(container).__name__.lower()} that a recursive call takes is "
                            "changed in it", self.where,
                            help="return what is new, or pass one and the same object to all calls")

    def _refuse_inner_sizes(self, merger: CallMerger, template: Template, stmts: Sequence[Any]) -> None:
        inner = {t.name for stmt in stmts for t in stmt.targets if t.type == I64}
        for type in merger.slots(template):
            if any(name in inner for d in type.shape for name in symbols_of(d)):
                raise error("E311", f"the shape of what `{self.name}` returns is decided while it runs", self.where,
                            label="a recursive call", help="let its size follow from the sizes of the arguments")

    def _marked(self, value: Any) -> Any:
        """The result with arguments in it as such; notes which arrays the others may be."""
        for number, array in enumerate(self.arrays):
            if value is array and self.marks:
                return self.same[number]
        if isinstance(value, tuple):
            parts = [self._marked(v) for v in value]
            return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
        if isinstance(value, ArrayRef):
            for root in (value.root, *(other for other, _ in value.root.depends)):
                numbers = [k for k, a in enumerate(self.arrays) if a is root]
                self.may_be.update(numbers)
                if not numbers and id(root) in self.before.cells and all(root is not r for r in self.other_roots):
                    self.other_roots.append(root)
        elif isinstance(value, (list, dict, Instance)):
            for part in value if isinstance(value, list) else (
                    value.values() if isinstance(value, dict) else value.fields.values()):
                self._marked(part)
        return value

    # --- what else changes -------------------------------------------------------------------------------------

    def _changes(self, now: State) -> dict[Place, Template]:
        """Templates for everything from before the call that is another one now, or was thought to be."""
        merger = Merger(self.it, "E130", self.where, (self.before, now))
        found: dict[Place, Template] = {}
        for cell_id, (cell, first) in self.before.cells.items():
            begin, last = self.start.contents(cell), now.contents(cell)
            if isinstance(cell, ArrayRef):
                if last["value"] is not begin["value"] or last["known"] is not begin["known"] or (
                        (cell_id, None) in self.places):
                    found[cell_id, None] = Slot("array", cell.type, cell.layout)
                continue
            if isinstance(cell, list):
                if len(first) != len(last):
                    raise error("E126", "a list changes its length in a recursive call", self.where,
                                kind=NotImplementedError, help="write into an array, or return what is new")
                first, begin, last = (dict(enumerate(c)) for c in (first, begin, last))
            elif not isinstance(cell, Frame) and first.keys() != last.keys():
                raise error("E126", "a set, dict or object gets or loses entries in a recursive call", self.where,
                            kind=NotImplementedError, help="give it all its entries before the first call")
            for key in dict.fromkeys((*first, *last)):
                old = self.places.get((cell_id, key))
                if old is None and last.get(key, MISSING) is begin.get(key, MISSING):
                    continue
                template = merger.join(old if old is not None else first.get(key, MISSING), last.get(key, MISSING),
                                       str(key), isinstance(cell, Frame))
                if isinstance(template, Broken):
                    raise template.problem
                if not isinstance(template, Fixed):
                    found[cell_id, key] = template
        return found

    # --- calls -------------------------------------------------------------------------------------------------

    def called_inside(self, arguments: dict[str, Any], joined: dict[str, Template]) -> Any:
        """A call from inside the body."""
        it = self.it
        number = it.recursions.index(self)
        for inner in it.recursions[number:]:
            inner.lowest = min(inner.lowest, number)
        if not _same_templates(joined, self.params):
            self.params = joined
            raise Widen(self)
        changed = self._changes(capture(it, None, (), known=self.before))
        if not _same_templates(changed, self.places):
            self.places = changed
            raise Widen(self)
        if self.result is None:
            raise Unfinished(self)
        return self.call(arguments)

    def call(self, arguments: dict[str, Any]) -> Any:
        """Emit a call, and do what it does."""
        it = self.it
        assert self.result is not None
        merger = CallMerger(self)
        places = Merger(it, "E130", self.where, (self.before, None))
        depth = ops.add(it.recursions[-1].depth, const(1, I64)) if it.recursions else const(0, I64)
        values: list[Value] = []
        done: set[int] = set()
        for name, template in self.params.items():
            values += [v if v is not None else const(0, t) for v, t in zip(
                merger._extract(template, arguments[name], set(done)), merger.slots(template, done), strict=True)]
        arrays = self._arrays_of(arguments)
        self._refuse_aliases(arrays)
        now = capture(it, None, (), known=self.before)
        values += [v if v is not None else const(0, t) for v, (t, _) in zip(
            taken_out(self.before, now, places, self.places), hints_of(self.before, places, self.places), strict=True)]
        sizes = _sizes_of(self.inputs, values)
        hints = [(t, "result") for t in merger.slots(self.result)]
        hints += [(v.type, v.name) for k, v in enumerate(self.array_inputs) if k in self.effects]
        hints += hints_of(self.before, places, self.places)
        builder = current()
        targets = tuple(builder.var(map_dims(t, lambda s: sizes.get(s.name, symbol(s.name, s.low))), hint)
                        for t, hint in hints)
        given = self.lifted.given() if self.lifted is not None else ()
        builder.stmts.append(Call(targets, self.func_name, (depth, *values, *given), builder.loc or self.where))
        after = iter(targets)
        result = CallMerger(self).install(self.result, after, "the result")
        from .writes import check_writable
        for k in self.effects:
            check_writable(it, arrays[k])
            if not arrays[k].write(next(after)):
                raise error("E124", "writing through this view is not supported", it.here, kind=NotImplementedError,
                            help="pass the array itself, with an index")
        put_in(self.loop, self.before, Merger(it, "E130", self.where, (self.before, None)), self.places, {}, after)
        return self._with_arrays(result, arrays)

    def _arrays_of(self, arguments: dict[str, Any]) -> list[ArrayRef]:
        """The array arguments, in the order of `arrays`."""
        found: dict[int, ArrayRef] = {}

        def visit(template: Template, x: Any) -> None:
            match template:
                case Slot() if template.pair is not None and isinstance(x, ArrayRef):
                    found.setdefault(template.pair, x)
                case Group():
                    if template.pair is not None:
                        found.setdefault(template.pair, x)
                    parts = (x.fields.values() if isinstance(x, Instance) else x.values() if isinstance(x, dict)
                             else x)
                    for child, part in zip(template.children, parts):
                        visit(child, part)
                case Option() if x is not MISSING and x is not None:
                    visit(template.child, x)

        for name, template in self.params.items():
            visit(template, arguments[name])
        return [x for x in found.values() if isinstance(x, ArrayRef)]

    def _refuse_aliases(self, arrays: Sequence[ArrayRef]) -> None:
        """An array that the func writes to must not be known to it by another name."""
        for k in self.effects:
            root = arrays[k].root
            others = [a.root for j, a in enumerate(arrays) if j != k]
            others += [cell for cell, _ in self.seen_cells() if isinstance(cell, ArrayRef)]
            if any(other is root for other in others):
                raise error("E123", f"`{self.name}` writes to an array that it also knows by another name",
                            self.it.here,                            help="pass a copy of one of the two")

    def seen_cells(self) -> list[tuple[Any, Any]]:
        return [(cell, None) for cell in self.seen.cells]

    def _with_arrays(self, result: Any, arrays: Sequence[ArrayRef]) -> Any:
        """The result with the arguments themselves where it has them."""
        if isinstance(result, Same):
            return arrays[result.number]
        if isinstance(result, Poison):
            raise result.problem
        if isinstance(result, tuple):
            parts = [self._with_arrays(v, arrays) for v in result]
            return type(result)._make(parts) if hasattr(result, "_make") else tuple(parts)
        if isinstance(result, ArrayRef):
            roots = [arrays[k].root for k in sorted(self.may_be) if k < len(arrays)] + self.other_roots
            depend_on(result, roots, self.where)
            result.owner = next((r.owner for r in roots if r.owner != "local"), "local")
        elif isinstance(result, (list, dict, Instance)):
            for part in result if isinstance(result, list) else (
                    result.values() if isinstance(result, dict) else result.fields.values()):
                self._with_arrays(part, arrays)
        return result


def _copied(container: Any) -> Any:
    return dict(container.fields) if isinstance(container, Instance) else (
        list(container) if isinstance(container, list) else dict(container))


def _same_templates(a: dict[Any, Template], b: dict[Any, Template]) -> bool:
    return a.keys() == b.keys() and all(same_template(t, b[k]) for k, t in a.items())


def _sizes_of(params: Sequence[Var], values: Sequence[Value]) -> dict[str, Any]:
    """What the sizes in the func's types are in a call."""
    found = size_substitution(params, [v.type for v in values])
    for param, value in zip(params, values, strict=True):
        if param.type == I64:
            found.setdefault(param.name, int(value.value) if isinstance(value, Const) else symbol(value.name, 0))
    return found
