"""Turn a nest of loops whose trips add to several neighbouring rows into one whose trips add to one row each.

    before                                     after
    for j in 0 .. n carry (d):                 for r in 0 .. n + 2 carry (d):
      for k in 0 .. m carry (d):                 if 2 <= r < n:                       all three have a trip for row r
        d[j, k] += w(j, k)                         for k in 0 .. m carry (d):
        d[j + 1, k] += w(j, k)                       d[r, k] += w(r, k) + w(r - 1, k) + w(r - 2, k)
        d[j + 2, k] += w(j, k)                   else:
                                                   if r < n: for k in 0 .. m: d[r, k] += w(r, k)
                                                   if 1 <= r < n + 1: ...

The adjoint of a stencil is such a nest.  A row is then read and written once instead of once for each neighbour, and
no two trips touch one row.  `gather` does the same for the innermost loop, without the conditions.  Sums change their
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .. import ops
from ..ir.build import Names, building, current, for_loop, located, plus
from ..ir.dims import symbols_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var
from ..ir.walk import Copier, blocks, operands, used_names, with_blocks, with_body, with_contents
from .gather import WIDEST


@dataclass(frozen=True)
class Nest:
    """Loops around one another, the outermost first, that only add to one array.

    lets: the pure statements of all of them, in order.  adds: the adds with their distance from the outermost index
    along `axis`.
    """

    loops: tuple[For, ...]
    lets: tuple[Let, ...]
    adds: tuple[tuple[int, Let], ...]
    axis: int

    @property
    def distances(self) -> list[int]:
        return sorted({c for c, _ in self.adds})


def gather_rows(func: Func) -> Func:
    ints = Ints(func.body)
    with building(Names(used_names(func))):
        return with_body(func, _visit(func.body, ints))


def _visit(block: Block, ints: Ints) -> Block:
    stmts: list[Stmt] = []
    for old in block.stmts:
        nest = _nest(old, ints) if isinstance(old, For) else None
        if nest is None:
            stmts.append(with_blocks(old, [_visit(b, ints) for b in blocks(old)]))
        else:
            with building() as b:
                b.loc = nest.adds[0][1].loc
                _Rows(nest, ints).emit()
            stmts += b.stmts
    return with_contents(block, stmts)


# ---------------------------------------------------------------------------------------------------------------
# which nests


def _nest(loop: For, ints: Ints) -> Nest | None:
    loops: list[For] = [loop]
    lets: list[Let] = []
    while True:
        inner = _inside(loops[-1], lets)
        if inner is None:
            break
        loops.append(inner)
    adds = _adds(loops[-1])
    if len(loops) == 1 or adds is None or not all(_is_plain(one) for one in loops) or _are_bounds_inside(loops):
        return None
    arrays = {v for one in loops for v in (*one.carries, *one.inits, *one.targets)} | {let.target for let in adds}
    lets += [s for s in loops[-1].body.stmts if isinstance(s, Let) and s not in adds]
    if not all(let.op.is_pure and arrays.isdisjoint(let.args) for let in lets):
        return None
    return _along_rows(tuple(loops), tuple(lets), adds, ints)


def _inside(loop: For, lets: list[Let]) -> For | None:
    """The one loop inside of it, whose statements are otherwise pure; they are added to `lets`."""
    found = [s for s in loop.body.stmts if isinstance(s, For)]
    others = [s for s in loop.body.stmts if isinstance(s, Let)]
    if len(found) != 1 or len(others) + 1 != len(loop.body.stmts):
        return None
    if found[0].inits != loop.carries or loop.body.results != found[0].targets:
        return None
    lets += others
    return found[0]


def _is_plain(loop: For) -> bool:
    return (len(loop.carries) == 1 and isinstance(loop.step, Const) and abs(loop.step.value) == 1
            and not loop.parallel and loop.checkpoint is None)


def _are_bounds_inside(loops: Sequence[For]) -> bool:
    """Whether a loop's bounds are computed inside of the outermost."""
    inside = {t for loop in loops for s in loop.body.stmts for t in s.targets} | {loop.index for loop in loops}
    return any(v in inside for loop in loops for v in (loop.lo, loop.hi))


def _adds(loop: For) -> list[Let] | None:
    """The adds of the innermost loop, if it does nothing else with its carry."""
    if len(loop.carries) != 1:
        return None
    version: Value = loop.carries[0]
    found: list[Let] = []
    if not version.type.shape or version.type.kind not in "fc":
        return None
    for stmt in loop.body.stmts:
        if not isinstance(stmt, Let):
            return None
        if not any(v is version for v in operands(stmt)):
            continue
        if stmt.op.access != "add_at" or stmt.args[0] is not version or any(
                v is version for v in stmt.args[1:]) or not all(isinstance(i, At) for i in stmt.params["index"]):
            return None
        found.append(stmt)
        version = stmt.target
    return found if loop.body.results == (version,) else None


def _along_rows(loops: tuple[For, ...], lets: tuple[Let, ...], adds: Sequence[Let], ints: Ints) -> Nest | None:
    """The nest, if all adds go to rows at a fixed distance from the outermost index, of which there are few."""
    index = ints.dim(loops[0].index)
    inner = {loop.index.name for loop in loops[1:]}
    for axis in range(loops[0].carries[0].type.rank):
        apart = [ints.dim(let.args[2 + axis]) - index for let in adds]
        if not all(isinstance(a, int) for a in apart) or any(
                inner & set(symbols_of(ints.dim(let.args[2 + axis]))) for let in adds):
            continue
        width = max(apart) - min(apart)
        return Nest(loops, lets, tuple(zip(apart, adds)), axis) if 0 < width <= WIDEST else None
    return None


# ---------------------------------------------------------------------------------------------------------------
# the new loops


class _Rows:
    """Emits the nest, row by row, at the current builder."""

    def __init__(self, nest: Nest, ints: Ints) -> None:
        self.nest, self.ints = nest, ints
        outer = nest.loops[0]
        self.array: Var = outer.targets[0]
        self.begin, self.end = _ascending(outer)

    def emit(self) -> None:
        first, *_, last = self.nest.distances
        index = self.nest.loops[0].index.name
        results = for_loop(plus(self.begin, first), plus(self.end, last), self.nest.loops[0].inits,
                           lambda row, array: [self._row(row, array)], index=index, hints=[self.array.name])
        # the nest's own name, since others refer to it
        loop = current().stmts.pop()
        assert isinstance(loop, For) and loop.targets == results
        current().stmts.append(replace(loop, targets=(self.array,)))

    def _row(self, row: Var, array: Value) -> Value:
        first, *_, last = self.nest.distances
        inside = (row >= plus(self.begin, last)) & (row < plus(self.end, first))
        return self._if(inside, array, lambda: self._adding(row, array, self.nest.distances),
                        lambda: self._at_border(row, array))

    def _at_border(self, row: Var, array: Value) -> Value:
        for distance in self.nest.distances:
            trip = (row >= plus(self.begin, distance)) & (row < plus(self.end, distance))
            array = self._if(trip, array, partial(self._adding, row, array, [distance]), partial(_same, array))
        return array

    def _if(self, pred: Value, array: Value, then: Callable[[], Value], orelse: Callable[[], Value]) -> Value:
        outer = current()
        arms = []
        for arm in (then, orelse):
            with building() as b:
                result = arm()
            arms.append(Block(tuple(b.stmts), (result,)))
        target = outer.var(array.type, self.array.name)
        outer.stmts.append(If((target,), pred, arms[0], arms[1], outer.loc))
        return target

    def _adding(self, row: Var, array: Value, distances: Sequence[int]) -> Value:
        """The loops inside, which add to `row` what the trips row - distance have for it."""
        inner = self.nest.loops[1:]

        def body(depth: int, indices: tuple[Value, ...], array: Value) -> Value:
            if depth == len(inner):
                return self._element(row, indices, array, distances)
            loop = inner[depth]
            lo, hi = _ascending(loop)
            (result,) = for_loop(lo, hi, [array], lambda i, a: [body(depth + 1, (*indices, i), a)],
                                 index=loop.index.name, hints=[self.array.name])
            return result

        return body(0, (), array)

    def _element(self, row: Var, indices: Sequence[Value], array: Value, distances: Sequence[int]) -> Value:
        total: dict[tuple[object, ...], tuple[list[Value], Value]] = {}
        own = {self.nest.loops[0].index.name, *(t.name for let in self.nest.lets for t in let.targets)}
        for distance in distances:
            adds = [let for c, let in self.nest.adds if c == distance]
            copier = self._trip(row, -distance, indices, adds)
            for let in adds:
                place = [row if a == self.nest.axis else copier.value(p) for a, p in enumerate(let.args[2:])]
                beside = [self.ints.dim(p) for a, p in enumerate(let.args[2:]) if a != self.nest.axis]
                # positions made of the outermost index, or of what the nest reads, differ with the distance
                key = (*beside, distance if any(own & symbols_of(d).keys() for d in beside) else None)
                value = copier.value(let.args[1])
                before = total.get(key)
                total[key] = (place, value) if before is None else (before[0], self._sum(let, before[1], value))
        for place, value in total.values():
            array = ops.add_at(array, value, *place, index=(At(),) * len(place))
            if isinstance(array, Var):
                array.name = current().names.fresh(self.array.name)
        return array

    def _sum(self, let: Let, a: Value, b: Value) -> Value:
        with located(let.loc):
            total: Value = a + b
        return total

    def _trip(self, row: Var, distance: int, indices: Sequence[Value], adds: Sequence[Let]) -> Copier:
        """What the trip row + distance adds, at the given indices of the loops inside."""
        outer, *inner = self.nest.loops
        copier = Copier({outer.index: plus(row, distance)} | {
            loop.index: i for loop, i in zip(inner, indices, strict=True)})
        needed = {v for let in adds for v in let.args[1:]}
        for let in reversed(self.nest.lets):
            if not needed.isdisjoint(let.targets):
                needed.update(let.args)
        own = self.ints.dim(outer.index)
        for let in self.nest.lets:
            if needed.isdisjoint(let.targets):
                continue
            apart = self.ints.dim(let.target) - own if let.target.type.dtype == "int64" else None
            if isinstance(apart, int):
                copier.values[let.target] = plus(row, distance + apart)
            else:
                copier.statement(let)
        return copier


def _same(array: Value) -> Value:
    return array


def _ascending(loop: For) -> tuple[Value, Value]:
    """The loop's trips as the ints lo .. hi."""
    if isinstance(loop.step, Const) and loop.step.value > 0:
        return loop.lo, loop.hi
    return plus(loop.hi, 1), plus(loop.lo, 1)
