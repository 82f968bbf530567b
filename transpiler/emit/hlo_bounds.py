"""Arrays whose size only the running function knows, with room for as many elements as there can be.

    t, y, broke, trips = while ...:  t < 5 ...        trips is at most 5
    y_tape: f64[trips] = empty()                      y_tape: f64[5] = empty()

What lies beyond `trips` decides nothing (`hlo_room`).  Sizes that are the same in every run become that number, and
loops in whose iterations arrays have sizes of their own that are used as a whole are unrolled (`hlo_unroll`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..ir.bounds import Bounds
from ..ir.build import Names, building, const, current, int_const
from ..ir.dims import symbols_of
from ..ir.index import At, New, Span
from ..ir.nodes import Block, Check, Const, For, Func, Let, Stmt, Var, While
from ..ir.simulated import simulated_target
from ..ir.types import I64
from ..ir.walk import Copier, all_statements, blocks, bound_inside, sizes_used, used_names, with_blocks
from ..ops.base import Lowering
from .hlo_blocks import TOO_MANY
from .hlo_room import Room, no_result
from .hlo_unroll import unroll_sized


def with_known_sizes(func: Func, max_trips: int | None = None) -> Func:
    """The func in which sizes that follow from ints of the running function are numbers, where they are bounded.

    max_trips: how often a loop runs at most, where nothing else tells; it is checked (with the message
    `TOO_MANY`).  Other sizes stay as they are.  RuleError: an operation has no form for arrays with room for more than
    they have (`hlo_room`), or such an array is a result.
    """
    if _sizes(func):
        func = _copied(func, _Computing())
    while True:
        names = _sizes(func)
        if not names:
            return func
        bounds = Bounds(func, max_trips)
        named = [v for v in _ints(func) if v.name in names]
        exact = {v.name: n for v in named if (n := bounds.exact(v)) is not None}
        if exact:
            func = _substituted(func, exact)
            continue
        most = _parts(func, names) | {v.name: max(0, n) for v in named if (n := bounds.high(v)) is not None}
        unrolled = unroll_sized(func, {n for n in _whole_sizes(func, names) if _follows_from_trips(n, named, bounds)})
        if unrolled is not func:
            func = unrolled
            continue
        guessed = [v for v in named if v.name not in most] if max_trips is not None else []
        most |= {v.name: max_trips for v in guessed if max_trips is not None}
        if not most:
            return func
        long = next((r for r in func.results if any(_named(d, most) for d in r.type.shape)), None)
        if long is not None:
            raise no_result(long)
        ints = {v.name: v for v in named}
        return _copied(_checking(func, bounds.assumed, guessed, max_trips), Room(most, ints))


def _parts(func: Func, names: Set[str]) -> dict[str, int]:
    """Sizes of parts of arrays: at most what the axis has."""
    most: dict[str, int] = {}
    for stmt in all_statements(func.body):
        if not isinstance(stmt, Let) or stmt.op.access is None:
            continue
        axes = [item for item in stmt.params["index"] if not isinstance(item, New)]
        for item, dim in zip(axes, stmt.args[0].type.shape, strict=True):
            name = str(item.size) if isinstance(item, Span) else ""
            if isinstance(item, Span) and name in names and isinstance(dim, int):
                most[name] = min(most.get(name, dim), -(-dim // abs(item.step)))
    return most


class _Computing(Copier):
    """Computes ints that follow from constants alone, in loops too."""

    def statement(self, stmt: Stmt) -> None:
        super().statement(stmt)
        if isinstance(stmt, Let):
            self._fold(stmt)
        elif isinstance(stmt, For):
            for k, target in enumerate(stmt.targets):
                number = None if target.type != I64 else simulated_target(stmt, k)
                if number is not None:
                    self._know(target, number)

    def _fold(self, let: Let) -> None:
        args = [self.value(a) for a in let.args]
        if len(let.targets) == 1 and not let.target.type.shape and let.op.is_pure and args and all(
                isinstance(a, Const) and not a.type.shape for a in args):
            numbers = [a.type.numpy.type(a.value) for a in args]                # type: ignore[union-attr]
            with np.errstate(all="ignore"):
                self._know(let.target, let.op.reference(*numbers, **let.params).item())

    def _know(self, target: Var, number: Any) -> None:
        self.values[target] = const(number, target.type)
        if target.type == I64:
            self.sizes[target.name] = number


def _ints(func: Func) -> list[Var]:
    return [t for stmt in all_statements(func.body) for t in (*stmt.targets, *bound_inside(stmt)) if t.type == I64]


def _sizes(func: Func) -> set[str]:
    """Sizes that no parameter gives."""
    given = {s for p in func.params for d in p.type.shape for s in symbols_of(d)} | {p.name for p in func.params}
    used = {n for stmt in all_statements(func.body) for n in sizes_used(stmt)}
    return (used | {n for r in func.results for d in r.type.shape for n in symbols_of(d)}) - given


def _substituted(func: Func, sizes: Mapping[str, int]) -> Func:
    return _copied(func, Copier(sizes=sizes))


def _copied(func: Func, copier: Copier) -> Func:
    with building(Names([p.name for p in func.params])) as b:
        for stmt in func.body.stmts:
            copier.statement(stmt)
        results = tuple(copier.value(r) for r in func.results)
    return replace(func, body=Block(tuple(b.stmts), results))


def _checking(func: Func, loops: Sequence[For | While], sizes: Sequence[Var], most: int | None) -> Func:
    """A check of each of the loops that it does not run more often than was said, and of sizes that they are no
    larger; to a `while` loop a counter is added for that."""
    if not (loops or sizes) or most is None:
        return func

    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for k, stmt in enumerate(block.stmts):
            place = next((s.loc for s in block.stmts[k:] if s.loc is not None), None)
            changed = with_blocks(stmt, [visit(inner) for inner in blocks(stmt)])
            if stmt in loops and isinstance(changed, While):
                stmts += _counted(changed, most)
            else:
                stmts += [*(_short(changed, most) if stmt in loops and isinstance(changed, For) else []), changed]
            for size in (t for t in changed.targets if t in sizes):
                with building() as after:
                    fits = ops.less_equal(size, int_const(most))
                stmts += [*after.stmts, Check(fits, "RuntimeError", f"{TOO_MANY}{most}", stmt.loc or place)]
        return Block(tuple(stmts), block.results)

    with building(Names(used_names(func))):
        return replace(func, body=visit(func.body))


def _short(loop: For, most: int) -> list[Stmt]:
    assert isinstance(loop.step, Const)
    with building() as before:
        ends = (loop.lo, loop.hi) if loop.step.value > 0 else (loop.hi, loop.lo)
        fits = ops.less_equal(ops.subtract(ends[1], ends[0]), int_const(most * abs(loop.step.value)))
    return [*before.stmts, Check(fits, "RuntimeError", f"{TOO_MANY}{most}", loop.loc)]


def _counted(loop: While, most: int) -> list[Stmt]:
    count, trips = current().var(I64, "count"), current().var(I64, "trips")
    with building() as inner:
        inner.stmts.extend(loop.body.stmts)
        results = (*loop.body.results, count + 1)
    counted = replace(loop, targets=(*loop.targets, trips), carries=(*loop.carries, count),
                      inits=(*loop.inits, int_const(0)), body=Block(tuple(inner.stmts), results))
    with building() as after:
        fits = ops.less_equal(trips, int_const(most))
    return [counted, *after.stmts, Check(fits, "RuntimeError", f"{TOO_MANY}{most}", loop.loc)]


def _whole_sizes(func: Func, names: Set[str]) -> set[str]:
    """The sizes of arrays that are used as a whole."""
    found = {n for r in func.results for d in r.type.shape for n in symbols_of(d)}
    for stmt in all_statements(func.body):
        if isinstance(stmt, Let):
            used = sizes_used(stmt) & names
            if used and not _is_harmless(stmt, dict.fromkeys(used, 0)):
                found |= used
    return found & names


def _follows_from_trips(name: str, named: Sequence[Var], bounds: Bounds) -> bool:
    """Whether the size is a number in every trip of the loops around, once these are written out."""
    return any(v.name == name and symbols_of(bounds.ints.dim(v)).keys() <= bounds.ints.loop.keys() for v in named)


def _is_harmless(let: Let, sizes: Mapping[str, int]) -> bool:
    op = let.op
    if op.is_unset or op.lowering is Lowering.ELEMENTWISE:
        return True
    if op.access is None:
        return False
    shape = let.args[0].type.shape
    axes = [item for item in let.params["index"] if not isinstance(item, New)]
    return all(isinstance(item, At) or not (_named(dim, sizes) or _named(item.size, sizes)) or _is_full(item, dim)
               for item, dim in zip(axes, shape, strict=True))


def _is_full(item: Any, dim: Any) -> bool:
    return isinstance(item, Span) and item.start == 0 and item.step == 1 and item.size == dim


def _named(dim: Any, sizes: Mapping[str, Any]) -> bool:
    return bool(symbols_of(dim).keys() & sizes.keys())
