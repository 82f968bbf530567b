"""Turn a loop that adds each trip's share to several neighbouring elements into one that adds to one element a trip.

    before                                            after
    for j in 1 .. n - 1 carry (d):                    d[0] += w(1); d[1] += w(1); d[1] += w(2)
      d[j - 1] += w(j)                                for e in 2 .. n - 2 carry (d):
      d[j] += w(j)                                      d[e] += w(e + 1) + w(e) + w(e - 1)
      d[j + 1] += w(j)                                d[n - 2] += w(n - 3); d[n - 2] += w(n - 2); d[n - 1] += w(n - 2)

The adjoint of a stencil is such a loop.  LLVM vectorises the second form, whose trips do not touch each other's
elements.  What is dear in w is computed once, before.  What else the loop does stays a loop, behind.  Where there are
fewer trips than neighbours, the adding stays as it is.  Sums change their order.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from .. import ops
from ..ir.build import building, current, for_loop, plus
from ..ir.dims import symbol
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value
from ..ir.walk import Copier, exchanged, operands, same_value

WIDEST = 4          # between the first and the last of the neighbours
DEAR = 4            # what costs more is not computed for each neighbour


@dataclass(frozen=True)
class Adds:
    """What a loop adds to its carry `number`: (distance from the index, the add) along `axis`.  Along other axes, any
    two adds are at one position or surely at different ones."""

    number: int
    axis: int
    lets: tuple[tuple[int, Let], ...]

    @property
    def first(self) -> int:
        return min(c for c, _ in self.lets)

    @property
    def last(self) -> int:
        return max(c for c, _ in self.lets)


def gather_adds(func: Func) -> Func:
    ints = Ints(func.body)
    return exchanged(func, lambda stmt, _: _gathered(stmt, ints) if isinstance(stmt, For) else [stmt])


def _gathered(loop: For, ints: Ints) -> list[Stmt]:
    if loop.parallel or not isinstance(loop.step, Const) or abs(loop.step.value) != 1 or not all(
            isinstance(stmt, Let) and stmt.op.is_pure for stmt in loop.body.stmts):
        return [loop]
    for k in range(len(loop.carries)):
        adds = _adds(loop, k, ints)
        if adds is not None and _is_free(loop, adds, ints):
            with building() as b:
                b.loc = adds.lets[0][1].loc
                array = _Gather(loop, adds, ints).emit()
            rest = _without(loop, adds, array)
            return [*b.stmts, *(_gathered(rest, ints) if isinstance(rest, For) else [rest])]
    return [loop]


# ---------------------------------------------------------------------------------------------------------------
# which loops


def _adds(loop: For, number: int, ints: Ints) -> Adds | None:
    """The adds to one carry, if that is all that the loop does with it and they are to neighbours."""
    version: Value = loop.carries[number]
    if not version.type.shape or version.type.kind not in "fc":
        return None
    found: list[Let] = []
    for stmt in loop.body.stmts:
        if not any(v is version for v in operands(stmt)):
            continue
        if not isinstance(stmt, Let) or stmt.op.access != "add_at" or stmt.args[0] is not version or any(
                v is version for v in stmt.args[1:]) or not all(isinstance(i, At) for i in stmt.params["index"]):
            return None
        found.append(stmt)
        version = stmt.target
    uses = [v for s in loop.body.stmts for v in operands(s)] + list(loop.body.results)
    links = [loop.carries[number], *(let.target for let in found)]
    if loop.body.results[number] is not version or any(sum(v is link for v in uses) != 1 for link in links):
        return None
    return _neighbours(loop, number, found, ints)


def _neighbours(loop: For, number: int, found: Sequence[Let], ints: Ints) -> Adds | None:
    inside = {loop.index, *loop.carries, *(t for s in loop.body.stmts for t in s.targets)}
    index = ints.dim(loop.index)
    axes = [a for a in range(loop.carries[number].type.rank)
            if all(isinstance(ints.dim(let.args[2 + a]) - index, int) for let in found)]
    if len(found) < 2 or len(axes) != 1:
        return None
    (axis,) = axes
    others = [_beside(let, axis) for let in found]
    if any(p in inside for other in others for p in other) or not all(
            all(map(same_value, a, b)) or any(map(ints.differ, a, b)) for a in others for b in others):
        return None
    lets = tuple((ints.dim(let.args[2 + axis]) - index, let) for let in found)
    adds = Adds(number, axis, lets)
    return adds if 0 < adds.last - adds.first <= WIDEST else None


def _beside(let: Let, axis: int) -> list[Value]:
    """The position of an add along other axes."""
    return [place for a, place in enumerate(let.args[2:]) if a != axis]


def _is_free(loop: For, adds: Adds, ints: Ints) -> bool:
    """Whether what is added depends on the trip alone: on its index, on what is there before the loop, and on elements
    of what the loop writes that no other trip writes."""
    need = _needed(loop, [let.args[1] for _, let in adds.lets])
    for let in need:
        for arg in let.args:
            if arg not in loop.carries:
                continue
            if let.op.access != "load" or arg is loop.carries[adds.number] or not _is_own(loop, arg, let, ints):
                return False
    written = {t for s in loop.body.stmts if isinstance(s, Let) and s.op.access in ("store", "add_at")
               for t in s.targets}
    return not any(a in written for let in need for a in let.args) and not any(
        let.args[1] in loop.carries or let.args[1] in written for _, let in adds.lets)


def _needed(loop: For, values: Sequence[Value], known: Container[Let] = ()) -> list[Let]:
    """The statements of the loop that the values follow from, in order.  known: those that need none."""
    needed = set(values)
    found: list[Let] = []
    for stmt in reversed(loop.body.stmts):
        if isinstance(stmt, Let) and not needed.isdisjoint(stmt.targets):
            found.insert(0, stmt)
            if stmt not in known:
                needed.update(stmt.args)
    return found


def _is_own(loop: For, carry: Value, load: Let, ints: Ints) -> bool:
    """Whether all that the loop writes to the array in a trip is the element that `load` reads in it."""
    place = load.args[1:]
    if not all(isinstance(i, At) for i in load.params["index"]) or not any(
            isinstance(ints.dim(p) - ints.dim(loop.index), int) for p in place):
        return False
    versions = {carry}
    for stmt in loop.body.stmts:
        if versions.isdisjoint(operands(stmt)):
            continue
        if not isinstance(stmt, Let) or stmt.op.access is None:
            return False
        if stmt.op.access != "load":
            if stmt.args[0] not in versions or not all(map(same_value, stmt.args[2:], place)) or (
                    len(stmt.args) - 2 != len(place)):
                return False
            versions.add(stmt.target)
    k = next(k for k, c in enumerate(loop.carries) if c is carry)
    return [j for j, r in enumerate(loop.body.results) if r in versions] == [k]


# ---------------------------------------------------------------------------------------------------------------
# the new loops


class _Gather:
    """Emits the adding at the current builder."""

    def __init__(self, loop: For, adds: Adds, ints: Ints) -> None:
        self.loop, self.adds, self.ints = loop, adds, ints
        self.need = _needed(loop, [let.args[1] for _, let in adds.lets])
        self.name = loop.targets[adds.number].name
        self.kept: dict[Let, Value] = {}        # dear values that several adds need: arrays with one for each trip
        step = loop.step.value if isinstance(loop.step, Const) else 1
        # the trips are those of the ints begin .. end
        self.begin = loop.lo if step > 0 else plus(loop.hi, 1)
        self.end = loop.hi if step > 0 else plus(loop.lo, 1)

    def emit(self) -> Value:
        """The array after all adding."""
        width = self.adds.last - self.adds.first
        array = self.loop.inits[self.adds.number]
        if self.ints.is_negative(self.ints.dim(self.begin) + width - 1 - self.ints.dim(self.end)):
            return self._wide(array, width)
        pred = plus(self.begin, width) <= self.end
        outer = current()
        with building() as then:
            then.loc = outer.loc
            wide = self._wide(array, width)
        with building() as orelse:
            orelse.loc = outer.loc
            narrow = self._narrow(array)
        target = outer.var(array.type, self.name)
        outer.stmts.append(If((target,), pred, Block(tuple(then.stmts), (wide,)), Block(tuple(orelse.stmts), (narrow,)),
                              outer.loc))
        return target

    def _narrow(self, array: Value) -> Value:
        """As it was."""
        def body(index: Value, array: Value) -> list[Value]:
            for distance, let in self.adds.lets:
                array = self._add(array, let, self._values(index, [let])[0], plus(index, distance))
            return [array]

        (result,) = for_loop(self.begin, self.end, [array], body, index=self.loop.index.name,
                             hints=[self.name])
        return result

    def _wide(self, array: Value, width: int) -> Value:
        first, last = self.adds.first, self.adds.last
        self._keep_dear()
        for trip in range(width):
            index = plus(self.begin, trip)
            array = self._some(array, index, [(c, let) for c, let in self.adds.lets if trip + c < last])

        def body(element: Value, array: Value) -> list[Value]:
            rows: list[tuple[Let, Value]] = []
            for distance, let in self.adds.lets:
                (value,) = self._values(element, [let], -distance)
                beside = _beside(let, self.adds.axis)
                k = next((k for k, (one, _) in enumerate(rows)
                          if all(map(same_value, _beside(one, self.adds.axis), beside))), None)
                if k is None:
                    rows.append((let, value))
                else:
                    rows[k] = rows[k][0], rows[k][1] + value
            for let, total in rows:
                array = self._add(array, let, total, element)
            return [array]

        (array,) = for_loop(plus(self.begin, last), plus(self.end, first), [array], body,
                            index=self.loop.index.name, hints=[self.name])
        for trip in range(1, width + 1):
            index = plus(self.end, -trip)
            array = self._some(array, index, [(c, let) for c, let in self.adds.lets if c - trip >= first])
        self.kept = {}
        return array

    def _keep_dear(self) -> None:
        """What is dear and would be computed for each neighbour is computed once, in a loop of its own."""
        needs = [{id(let) for let in _needed(self.loop, [add.args[1]])} for _, add in self.adds.lets]
        apart = [c for c, _ in self.adds.lets]
        dear = [let for let in self.need if let.op.cost > DEAR and let.target.type.is_inexact and len(
            {c for c, need in zip(apart, needs) if id(let) in need}) > 1]
        if not dear:
            return
        count = self.end - self.begin                           # type: ignore[operator]
        size = count.value if isinstance(count, Const) else symbol(count.name, 0)
        arrays = [ops.empty(shape=(size,), dtype=let.target.type.dtype) for let in dear]

        def body(index: Value, *arrays: Value) -> list[Value]:
            values = self._values(index, dear, results=True)
            return [ops.store(a, v, index - self.begin, index=(At(),)) for a, v in zip(arrays, values)]

        self.kept = dict(zip(dear, for_loop(self.begin, self.end, arrays, body, index=self.loop.index.name,
                                            hints=[let.target.name for let in dear], parallel=True)))

    def _some(self, array: Value, index: Value, lets: Sequence[tuple[int, Let]]) -> Value:
        """Some of the adds of one trip."""
        for (distance, let), value in zip(lets, self._values(index, [let for _, let in lets])):
            array = self._add(array, let, value, plus(index, distance))
        return array

    def _add(self, array: Value, let: Let, value: Value, at: Value) -> Value:
        place = [at if a == self.adds.axis else p for a, p in enumerate(let.args[2:])]
        result = ops.add_at(array, value, *place, index=(At(),) * len(place))
        result.name = current().names.fresh(self.name)
        return result

    def _values(self, index: Value, lets: Sequence[Let], distance: int = 0, results: bool = False) -> list[Value]:
        """What is added (or results: what the statements give) in the trip index + distance."""
        copier = Copier(dict(zip(self.loop.carries, self.loop.inits)))
        own = self.ints.dim(self.loop.index)
        wanted = [let.target if results else let.args[1] for let in lets]
        needed = {id(let) for let in _needed(self.loop, wanted, self.kept)}
        copier.values[self.loop.index] = index if distance == 0 else plus(index, distance)
        for let in self.need:
            if id(let) not in needed:
                continue
            apart = self.ints.dim(let.target) - own if let.target.type.dtype == "int64" else None
            if isinstance(apart, int):
                copier.values[let.target] = plus(index, apart + distance)
            elif let in self.kept:
                copier.values[let.target] = ops.load(self.kept[let], plus(index, distance) - self.begin, index=(At(),))
            else:
                copier.statement(let)
        return [copier.value(value) for value in wanted]


def _without(loop: For, adds: Adds, array: Value) -> Stmt:
    """The loop without these adds; the array is what it begins with, and stays."""
    dropped = {id(let) for _, let in adds.lets}
    stmts = tuple(s for s in loop.body.stmts if id(s) not in dropped)
    results = tuple(loop.carries[adds.number] if k == adds.number else r for k, r in enumerate(loop.body.results))
    inits = tuple(array if k == adds.number else v for k, v in enumerate(loop.inits))
    return For(loop.targets, loop.index, loop.lo, loop.hi, loop.step, loop.carries, inits, Block(stmts, results),
               loop.parallel, loop.loc)
