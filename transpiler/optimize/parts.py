"""Segments of loops that only some states are kept of run backwards for a part of the elements at a time.

    before                                        after
    for s in parts - 1 .. -1:                     for s in parts - 1 .. -1:
      x = state[s]                                  for p in 0 .. n by B:
      for t in the segment:                           x = state[s, p - h .. p + B + h]; e = d[p - h .. p + B + h]
        tape[t] = x; x = step(x)                      for t in the segment: tape[t] = x; x = step(x)
      for t in the segment, backwards:                for t in the segment, backwards: e = adjoint of step(tape[t], e)
        d = adjoint of step(tape[t], d)               new[p .. p + B] = e[h .. h + B]
                                                    d = new

The tape of a segment of all elements is larger than the caches of a core, and a step of a stencil takes less time than
its state takes to and from memory.  The tape of a part fits.  What neighbours of a part have to do with it, `local`
finds: the h elements at each side are computed twice.  Every element is computed as before, bit for bit.
The steps of a segment that only run forwards do so for parts that fit in the first cache.

After M. Wolfe, "More iteration space tiling" (1989), and the overlapped tiles of Krishnamoorthy et al., "Effective
automatic parallelization of stencil computations" (2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import building, current, for_loop, int_const, located, plus, size_value
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, Let, Stmt, Value, Var
from ..ir.types import I64
from ..ir.walk import Copier, all_statements, exchanged, replacement, substituted
from .local import Axis, Local, NotLocalError, Reach, bounds_above

BYTES = 1_000_000       # of the arrays of a part: what fits in the second cache of a core, with room for others
NEAR = 28_000           # of the arrays of a part that only runs forwards: what fits in the first cache
FEWEST = 16             # steps of a segment for which that pays, where they are known
OVERLAPS = 4            # how often as long as what is computed twice at one side a part is, at least


def run_in_parts(func: Func) -> Func:
    if not any(isinstance(s, For) and s.segment for s in all_statements(func.body)):
        return func
    ints = Ints(func.body)
    return exchanged(func, lambda stmt, old: _in_parts(stmt, ints, func) if stmt is old else [stmt])


def _in_parts(stmt: Stmt, ints: Ints, func: Func) -> list[Stmt]:
    if not isinstance(stmt, For) or not any(isinstance(s, For) and s.segment for s in stmt.body.stmts) or (
            not isinstance(stmt.step, Const) or abs(stmt.step.value) != 1 or not stmt.carries):
        return [stmt]
    if stmt.step.value == 1:
        return [_forwards(stmt, ints, func)]
    found = _reach_of(stmt, ints)
    if found is None:
        return [stmt]
    with building() as b, located(stmt.loc):
        _Parts(stmt, *found, _scalars_before(stmt, func), BYTES).emit()
    return list(b.stmts)


def _reach_of(loop: For, ints: Ints) -> tuple[str, Local, Reach] | None:
    """A size along which the loop's body is local, and what is known of that."""
    for size in dims.symbols_of(loop.carries[0].type.shape[0]) if loop.carries[0].type.shape else ():
        local = Local(loop, size, ints)
        try:
            return size, local, local.reach()
        except NotLocalError:
            continue
    return None


def _forwards(loop: For, ints: Ints, func: Func) -> For:
    """The loop with its segments in parts."""
    stmts: list[Stmt] = []
    replaced: dict[Var, Value] = {}
    for stmt in loop.body.stmts:
        parts = _segment_in_parts(stmt, loop, ints, func) if isinstance(stmt, For) and stmt.segment else None
        if parts is None:
            stmts.append(substituted(stmt, replaced))
        else:
            stmts += parts[0]
            replaced.update(zip(stmt.targets, parts[1]))
    if not replaced:
        return loop
    return replace(loop, body=Block(tuple(stmts), tuple(replacement(r, replaced) for r in loop.body.results)))


def _segment_in_parts(segment: For, around: For, ints: Ints, func: Func) -> tuple[list[Stmt], Sequence[Value]] | None:
    """What is in the place of a segment that runs forwards, and the results; None where it has to run as a whole."""
    length = ints.dim(segment.hi) - ints.dim(segment.lo)
    if not segment.carries or any(isinstance(d, int) and d < FEWEST for d in bounds_above(length)):
        return None
    names = current().names
    carries = tuple(Var(names.fresh(c.name), c.type) for c in segment.carries)
    once = replace(segment, index=Var(names.fresh("once"), I64), lo=int_const(0), hi=int_const(1), step=int_const(1),
                   carries=carries, body=Block((replace(segment, inits=carries),), segment.targets))
    found = _reach_of(once, ints)
    if found is None:
        return None
    with building() as b, located(segment.loc):
        results = _Parts(once, *found, _scalars_before(around, func), NEAR).body(once.index, segment.inits)
    return list(b.stmts), results


def _scalars_before(loop: For, func: Func) -> dict[str, Var]:
    """Ints that are known at the loop, by name."""
    found = {p.name: p for p in func.params if p.type == I64}
    for stmt in func.body.stmts:
        if stmt is loop or loop in all_statements(Block((stmt,), ())):
            break
        found.update({v.name: v for v in stmt.targets if v.type == I64})
    return found


class _Parts:
    """The loop whose body runs for parts, emitted at the current builder."""

    def __init__(self, loop: For, size: str, local: Local, reach: Reach, scalars: dict[str, Var],
                 bytes: int) -> None:
        self.loop, self.axis, self.local, self.scalars = loop, local.axis, local, scalars
        self.known = {local.ints.dim(v): v for v in scalars.values()}
        self.low = next(s for c in loop.carries for d in c.type.shape for s in dims.symbols_of(d).values()
                        if s.name == size).low
        self.whole = size_value(dims.symbol(size, self.low))
        halo = plus(self.value(reach.spread), reach.edge)
        fit = ops.floor_divide(int_const(bytes), self._bytes_each()) - halo * int_const(2)
        self.length = ops.maximum(fit, halo * int_const(OVERLAPS))
        self.halo = halo
        self.count = ops.floor_divide(plus(self.whole + self.length, -1), self.length)
        self.cells = ops.minimum(self.whole, self.length + halo * int_const(2))
        self.size = dims.symbol(self.cells.name, self.low)
        self.scalars[self.cells.name] = self.cells
        self.named = {name: dims.substitute(dim, {size: self.size}) for name, dim in self.axis.named.items()}
        self.sizes = {v: self.value(dims.substitute(dim, {size: self.size})) for v, dim in local.sizes.items()}

    def emit(self) -> None:
        outer, loop = current(), self.loop
        carries = tuple(outer.var(c.type, c.name) for c in loop.carries)
        index = outer.var(I64, loop.index.name)
        with building() as b:
            results = self.body(index, carries)
        outer.stmts.append(replace(loop, index=index, carries=carries, body=Block(tuple(b.stmts), tuple(results))))

    def body(self, index: Var, carries: Sequence[Value]) -> Sequence[Value]:
        """Emit the loop's body for all parts; its results."""
        news = [ops.empty(shape=c.type.shape, dtype=c.type.dtype) for c in carries]
        return for_loop(int_const(0), self.count, news, lambda number, *new: self._part(number, index, carries, new),
                        index="part", hints=[c.name for c in self.loop.carries])

    def _part(self, number: Var, index: Var, carries: Sequence[Value], news: Sequence[Var]) -> Sequence[Value]:
        begin = number * self.length
        first = ops.minimum(ops.maximum(begin - self.halo, int_const(0)), self.whole - self.cells)
        copier = _OfPart({self.loop.index: index}, {self.axis.size: self.size, **self.named})
        copier.first, copier.axis = first, self.axis
        copier.values.update(self.sizes)
        for old, carry in zip(self.loop.carries, carries):
            copier.values[old] = self._cut(carry, copier, first)
        for array, only_loaded in self.local.arrays.items():
            if only_loaded:
                copier.shifted.add(array)
            else:
                copier.values[array] = self._cut(array, copier, first)
        for stmt in self.loop.body.stmts:
            copier.statement(stmt)
        end = ops.minimum(begin + self.length, self.whole)
        return [self._copied(copier.value(result), new, begin - first, begin, end - begin)
                for result, new in zip(self.loop.body.results, news)]

    def _cut(self, array: Value, copier: _OfPart, first: Value) -> Value:
        """The part's elements of an array, in one of its own."""
        type = copier.type(array.type)
        return self._copied(array, ops.empty(shape=type.shape, dtype=type.dtype), first, int_const(0),
                            size_value(type.shape[self._number(array)]))

    def _copied(self, source: Value, target: Value, begin: Value, place: Value, count: Value) -> Value:
        """The target with `count` of the source's elements along the axis, from `begin` on, at `place`."""
        axis, rank = self._number(source), source.type.rank
        index = tuple(At() for _ in range(rank))

        def along(k: int, array: Value, at: tuple[Value, ...]) -> Value:
            if k == rank:
                read, written = (tuple(i + start if n == axis else i for n, i in enumerate(at))
                                 for start in (begin, place))
                return ops.store(array, ops.load(source, *read, index=index), *written, index=index)
            trips = count if k == axis else size_value(source.type.shape[k])
            return for_loop(int_const(0), trips, [array], lambda i, now: [along(k + 1, now, (*at, i))], index="i")[0]

        return along(0, target, ())

    def _number(self, array: Value) -> int:
        number = self.axis.of(array)
        if number is None:
            number = Axis(self.cells.name).of(array)
        assert number is not None
        return number

    def _bytes_each(self) -> Value:
        """Bytes of all arrays of a part, for each element along the axis."""
        total: Any = 0
        inside = {v.name for v in self.local.inside if isinstance(v, Var)}
        for var in (*self.loop.carries, *self.local.made):
            others = [d for k, d in enumerate(var.type.shape) if k != self.axis.of(var)]
            if all(dims.symbols_of(d).keys().isdisjoint(inside) for d in others):
                total = total + dims.product(others) * np.dtype(var.type.dtype).itemsize
        return ops.maximum(self.value(total), int_const(1))

    def value(self, dim: Any) -> Value:
        """A dimension made of named sizes and ints, as a value."""
        if isinstance(dim, int):
            return int_const(dim)
        if dim in self.known:
            return self.known[dim]
        total: Value = int_const(0)
        for monomial, factor in dim.terms:
            term: Value = int_const(factor)
            for atom in monomial:
                term = term * self._atom(atom)
            total = total + term
        return total

    def _atom(self, atom: Any) -> Value:
        alone = dims.DimExpr((((atom,), 1),))
        if alone in self.known:
            return self.known[alone]
        if isinstance(atom, dims.Symbol):
            found = self.scalars.get(atom.name)
            return size_value(dims.symbol(atom.name, atom.low)) if found is None else found
        of = {"max": ops.maximum, "min": ops.minimum, "floordiv": ops.floor_divide, "mod": ops.remainder}[atom.kind]
        return of(*map(self.value, atom.args))          # type: ignore[no-any-return]


class _OfPart(Copier):
    """shifted: arrays of all elements, of which the copy reads from `first` on."""

    first: Value
    axis: Axis

    def __init__(self, values: Mapping[Var, Value], sizes: Mapping[str, Any]) -> None:
        super().__init__(values, sizes)
        self.shifted: set[Var] = set()

    def statement(self, stmt: Stmt) -> None:
        super().statement(stmt)
        if not isinstance(stmt, Let) or stmt.op.access != "load" or stmt.args[0] not in self.shifted:
            return
        load = current().stmts.pop()
        assert isinstance(load, Let) and isinstance(stmt.args[0], Var)
        at = 1 + (self.axis.of(stmt.args[0]) or 0)
        moved = load.args[at] + self.first
        current().stmts.append(replace(load, args=(*load.args[:at], moved, *load.args[at + 1:])))
