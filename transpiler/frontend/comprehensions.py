"""Comprehensions and generator expressions.

Over what is known while transpiling they are gone through now.  Else they are the loops that Python says they are,
which append to a list (`growth`); `sum` of one adds, `any` and `all` stop early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gast

from ..errors import TranspileError, error
from ..ir.build import current
from .environment import Frame, Scope, scope_of
from .iteration import ENDED, Iterator, Sequence, iterate, one_by_one
from .liveness import loads, stores
from .operators import truth
from .state import capture, restore
from .trips import is_lazy, sequence_of, trips_of

if TYPE_CHECKING:
    from .interpreter import Interpreter

FIRST, FOUND = ".0", ".found"          # what Python calls the first iterable; what the loops fill
Inside = Callable[[Any], tuple[list[Any], Any]]        # statements for an element, and what FOUND is before


class Generator(Iterator):
    """What a generator expression gives.  Its elements are computed when they are asked for."""

    def __init__(self, it: Interpreter, node: Any, frame: Frame, values: Any) -> None:
        super().__init__([])
        self.it, self.node, self.frame, self.values = it, node, frame, values

    @property
    def is_fresh(self) -> bool:
        """Whether nothing was taken from it."""
        return self.position == 0

    def at(self, position: int) -> Any:
        if position == 0:
            self.given = list(iterate(self.it, gone_through(self.it, self.node, self.frame, self.values)))
        if position == ENDED or position >= len(self.given):
            raise StopIteration
        return self.given[position]

    def held(self) -> tuple[Any, ...]:
        return (*self.given, self.values)


def materialised(it: Interpreter, values: Any) -> Any:
    """The list that a generator expression makes, taken from it; anything else as it is."""
    if not isinstance(values, Generator) or not values.is_fresh:
        return values
    found = gone_through(it, values.node, values.frame, values.values)
    values.position = ENDED
    return found


def streamed(it: Interpreter, values: Any) -> Any:
    """A generator expression over one thing as a sequence, whose elements are computed when they are asked for.

    Anything else, and one with conditions, as it is.
    """
    if not isinstance(values, Generator) or not values.is_fresh:
        return values
    [first, *others] = values.node.generators
    if others or first.ifs:
        return values
    over = sequence_of(it, values.values)
    if over is None:
        return values

    def item(k: Any) -> Any:
        from .assignments import assign
        from .expressions import evaluate
        inner = _frame_of(values.node, values.frame)
        it.frames.append(inner)
        try:
            assign(it, first.target, over.item(k), inner)
            return evaluate(it, values.node.elt, inner)
        finally:
            it.frames.pop()

    values.position = ENDED
    return Sequence(it, over.length, item, over.held(), unrolled=over.unrolled or not is_lazy(values.values))


def refuse_changes(values: Any, loop: Any, frame: Frame) -> None:
    """A `for` whose generator gives all elements before the first trip may not change what that reads."""
    if not isinstance(values, Generator) or not values.is_fresh or values.frame is not frame:
        return
    read = set(loads(values.node)) - set(stores(values.node))
    for part in (part for statement in loop.body for part in gast.walk(statement)):
        base = part
        while isinstance(base, (gast.Subscript, gast.Attribute)):
            base = base.value
        if isinstance(getattr(part, "ctx", None), gast.Store) and isinstance(base, gast.Name) and base.id in read:
            raise error("E110", f"this loop changes `{base.id}`, which the generator that it goes over reads",
                        values.frame.location(part), kind=NotImplementedError,
                        help="write the generator's `for` and `if` as statements around the body")


def comprehension(it: Interpreter, node: Any, frame: Frame) -> Any:
    """The value of a comprehension."""
    from .expressions import evaluate
    part = node.generators[0]
    if any(g.is_async for g in node.generators):
        raise error("E112", "coroutines are not supported", frame.location(node))
    values = evaluate(it, part.iter, frame)
    it.at(frame.location(part.iter))
    if isinstance(node, gast.GeneratorExp):
        return Generator(it, node, frame, values)
    return gone_through(it, node, frame, values)


def gone_through(it: Interpreter, node: Any, frame: Frame, values: Any) -> Any:
    """All elements of a comprehension, over these values first: a list, dict or set."""
    values = materialised(it, values)
    if not isinstance(node, (gast.ListComp, gast.GeneratorExp)):
        return _now(it, node, frame, values)
    trips = trips_of(it, values)
    attempts = [lambda: _now(it, node, frame, values), lambda: _as_loop(it, node, frame, values, _appending)]
    if trips is None or trips.count is None:
        attempts.reverse()
    if it.watch is not None:
        return attempts[0]()
    before, builder = capture(it, frame, [values]), current()
    emitted, names, here, steps = len(builder.stmts), it.names.taken.copy(), it.here, it.steps
    try:
        return attempts[0]()
    except TranspileError as problem:
        from .loops import NEED_UNROLLING
        if problem.code not in NEED_UNROLLING:
            raise
        failure = problem
    builder.take_back(emitted)
    restore(before)
    it.forget_names(names)
    it.at(here)
    it.steps = steps
    try:
        return attempts[1]()
    except TranspileError:
        raise failure from None


def _frame_of(node: Any, frame: Frame, *more: str) -> Frame:
    scope = scope_of(node)
    if more:
        scope = Scope(scope.local | set(more))
    return Frame(frame.source, scope, frame, frame.globals, {}, frame.name, frame.class_name, frame.first,
                 is_comprehension=True)


# ---------------------------------------------------------------------------------------------------------------
# now


def _now(it: Interpreter, node: Any, frame: Frame, first: Any) -> Any:
    """Element by element, while transpiling."""
    from .assignments import assign
    from .expressions import evaluate, static_key, static_set
    inner = _frame_of(node, frame)
    found: list[Any] = []

    def loop(k: int) -> None:
        if k == len(node.generators):
            if isinstance(node, gast.DictComp):
                key = evaluate(it, node.key, inner)
                value = evaluate(it, node.value, inner)
                it.at(inner.location(node.key))
                found.append((static_key(it, key), value))
            else:
                found.append(evaluate(it, node.elt, inner))
            return
        part = node.generators[k]
        values = first if k == 0 else materialised(it, evaluate(it, part.iter, inner))
        it.at(inner.location(part.iter))
        for value in one_by_one(it, values):
            assign(it, part.target, value, inner)
            if all(_test(it, test, inner) for test in part.ifs):
                loop(k + 1)

    it.frames.append(inner)
    try:
        loop(0)
    finally:
        it.frames.pop()
    if isinstance(node, gast.DictComp):
        return dict(found)
    if isinstance(node, gast.SetComp):
        return static_set(it, found, node, frame)
    return found


def _test(it: Interpreter, node: Any, frame: Frame) -> bool:
    from .expressions import evaluate_test
    value = evaluate_test(it, node, frame)
    it.at(frame.location(node))
    return truth(it, value, "a condition in a comprehension")


# ---------------------------------------------------------------------------------------------------------------
# as loops


def _as_loop(it: Interpreter, node: Any, frame: Frame, first: Any, inside: Inside) -> Any:
    """Interpret the loops; returns what they leave in FOUND.

    inside: the statements for an element, given the comprehension, and what FOUND is before.
    """
    from .statements import execute
    statement, start = _loops(node, inside)
    inner = _frame_of(node, frame, FIRST, FOUND)
    inner.variables.update({FIRST: first, FOUND: start})
    it.frames.append(inner)
    try:
        execute(it, statement, inner)
    finally:
        it.frames.pop()
    return inner.variables[FOUND]


def _loops(node: Any, inside: Inside) -> tuple[Any, Any]:
    """The comprehension as nested `for` and `if` statements; made once per node, so that they are told apart."""
    known = node.__dict__.setdefault("_gradsmith_loops", {})
    if inside not in known:
        body, _ = inside(node)
        for k, part in reversed(list(enumerate(node.generators))):
            for test in reversed(part.ifs):
                body = [_placed(gast.If(test, body, []), test)]
            values = _placed(gast.Name(FIRST, gast.Load(), None, None), part.iter) if k == 0 else part.iter
            body = [_placed(gast.For(part.target, values, body, [], None), part.target)]
        known[inside] = body[0]
    return known[inside], inside(node)[1]


def _placed(new: Any, old: Any) -> Any:
    for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
        setattr(new, name, getattr(old, name))
    return new


def _found(node: Any, context: Any) -> Any:
    return _placed(gast.Name(FOUND, context, None, None), node.elt)


def _appending(node: Any) -> tuple[list[Any], Any]:
    method = _placed(gast.Attribute(_found(node, gast.Load()), "append", gast.Load()), node.elt)
    return [_placed(gast.Expr(_placed(gast.Call(method, [node.elt], []), node.elt)), node.elt)], []


def _adding(node: Any) -> tuple[list[Any], Any]:
    return [_placed(gast.AugAssign(_found(node, gast.Store()), gast.Add(), node.elt), node.elt)], 0


def _asking(stops_at: bool) -> Inside:
    def inside(node: Any) -> tuple[list[Any], Any]:
        answer = _placed(gast.Constant(stops_at, None), node.elt)
        test = node.elt if stops_at else _placed(gast.UnaryOp(gast.Not(), node.elt), node.elt)
        body = [_placed(gast.Assign([_found(node, gast.Store())], answer, None), node.elt),
                _placed(gast.Return(_placed(gast.Constant(None, None), node.elt)), node.elt)]
        return [_placed(gast.If(test, body, []), node.elt)], not stops_at

    return inside


ANY, ALL = _asking(True), _asking(False)


def _is_lazy(it: Interpreter, generator: Generator) -> bool:
    """Whether how many elements there are is decided when the function runs."""
    if it.watch is not None:
        return False
    trips = trips_of(it, materialised(it, generator.values))
    return trips is not None and trips.count is None


def summed(it: Interpreter, generator: Generator) -> Any | None:
    """`sum(x for ...)`, which needs no list; None where the elements are known one by one."""
    if not generator.is_fresh or not _is_lazy(it, generator):
        return None
    before, builder = capture(it, None, [generator.values]), current()
    emitted, names, here = len(builder.stmts), it.names.taken.copy(), it.here
    try:
        found = _as_loop(it, generator.node, generator.frame, generator.values, _adding)
    except TranspileError as problem:
        from .loops import NEED_UNROLLING
        if problem.code not in NEED_UNROLLING:
            raise
    else:
        generator.position = ENDED
        return found
    builder.take_back(emitted)
    restore(before)
    it.forget_names(names)
    it.at(here)
    return None


def asked(it: Interpreter, generator: Generator, all_of: bool) -> Any:
    """`any(x for ...)` or `all(x for ...)`, which ask no further once the answer is there."""
    generator.position = ENDED
    return _as_loop(it, generator.node, generator.frame, generator.values, ALL if all_of else ANY)
