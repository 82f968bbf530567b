"""Arrays whose size only the running function knows, with room for as many elements as there can be.

    t, y, broke, trips = while ...:  t < 5 ...        trips is at most 5
    y_tape: f64[trips] = empty()                      y_tape: f64[5] = empty()

What lies beyond `trips` is never read: such an array may only be made, carried, and read and written element by
element along that axis, as the tapes of a derivative are.  Sizes that are the same in every run become that number,
and loops in whose iterations other arrays have sizes of their own are unrolled (`hlo_unroll`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from .. import ops
from ..errors import RuleError, TranspileError
from ..ir.bounds import Bounds
from ..ir.build import Names, building, current, int_const
from ..ir.dims import symbols_of
from ..ir.index import At, New, Span
from ..ir.nodes import Block, Check, Func, Let, Stmt, Value, Var, While
from ..ir.types import I64
from ..ir.walk import Copier, all_statements, blocks, bound_inside, sizes_used, used_names, with_blocks
from ..ops.base import Lowering
from .hlo_blocks import TOO_MANY
from .hlo_unroll import unroll_sized


def with_known_sizes(func: Func, max_trips: int | None = None) -> Func:
    """The func in which sizes that follow from ints of the running function are numbers, where they are bounded.

    max_trips: how often a `while` loop runs at most, where nothing else tells; it is checked (with the
    message `TOO_MANY`).  Other sizes stay as they are.  RuleError: an array with room for more is used as a whole.
    """
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
        most = {v.name: max(0, n) for v in named if (n := bounds.high(v)) is not None}
        unrolled = unroll_sized(func, _whole_sizes(func, names))
        if unrolled is not func:
            func = unrolled
            continue
        if not most:
            return func
        _require_elementwise(func, most)
        return _substituted(_checking(func, bounds.assumed, max_trips), most)


def _ints(func: Func) -> list[Var]:
    return [t for stmt in all_statements(func.body) for t in (*stmt.targets, *bound_inside(stmt)) if t.type == I64]


def _sizes(func: Func) -> set[str]:
    """Sizes that no parameter gives."""
    given = {s for p in func.params for d in p.type.shape for s in symbols_of(d)} | {p.name for p in func.params}
    used = {n for stmt in all_statements(func.body) for n in sizes_used(stmt)}
    return (used | {n for r in func.results for d in r.type.shape for n in symbols_of(d)}) - given


def _substituted(func: Func, sizes: Mapping[str, int]) -> Func:
    with building(Names([p.name for p in func.params])) as b:
        copier = Copier(sizes=sizes)
        for stmt in func.body.stmts:
            copier.statement(stmt)
        results = tuple(copier.value(r) for r in func.results)
    return replace(func, body=Block(tuple(b.stmts), results))


def _checking(func: Func, loops: Sequence[While], most: int | None) -> Func:
    """A check after each of the loops that it did not run more often than was said: a counter is added to it."""
    if not loops or most is None:
        return func

    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for stmt in block.stmts:
            changed = with_blocks(stmt, [visit(inner) for inner in blocks(stmt)])
            stmts += _counted(changed, most) if stmt in loops and isinstance(changed, While) else [changed]
        return Block(tuple(stmts), block.results)

    with building(Names(used_names(func))):
        return replace(func, body=visit(func.body))


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


def _require_elementwise(func: Func, sizes: Mapping[str, int]) -> None:
    """RuleError where an array of such a size is used as a whole."""
    for result in func.results:
        if _uses(result, sizes):
            raise _whole(result, sizes, None)
    for stmt in all_statements(func.body):
        if not isinstance(stmt, Let):
            continue
        arrays = [v for v in (*stmt.args, *stmt.targets) if _uses(v, sizes)]
        in_params = sizes_used(stmt) & set(sizes)
        if (arrays or in_params) and not _is_harmless(stmt, sizes):
            raise _whole((arrays or list(stmt.targets))[0], sizes, stmt)


def _whole_sizes(func: Func, names: Set[str]) -> set[str]:
    """The sizes of arrays that are used as a whole."""
    found = {n for r in func.results for d in r.type.shape for n in symbols_of(d)}
    for stmt in all_statements(func.body):
        if isinstance(stmt, Let):
            used = sizes_used(stmt) & names
            if used and not _is_harmless(stmt, dict.fromkeys(used, 0)):
                found |= used
    return found & names


def _is_harmless(let: Let, sizes: Mapping[str, int]) -> bool:
    op = let.op
    if op.is_unset or op.lowering is Lowering.ELEMENTWISE:
        return True
    if op.access is None:
        return False
    shape = let.args[0].type.shape
    axes = [item for item in let.params["index"] if not isinstance(item, New)]
    return all(isinstance(item, At) or not _named(dim, sizes) or _is_full(item, dim)
               for item, dim in zip(axes, shape, strict=True))


def _is_full(item: Any, dim: Any) -> bool:
    return isinstance(item, Span) and item.start == 0 and item.step == 1 and item.size == dim


def _named(dim: Any, sizes: Mapping[str, int]) -> bool:
    return bool(symbols_of(dim).keys() & sizes.keys())


def _uses(value: Value, sizes: Mapping[str, int]) -> bool:
    return any(_named(d, sizes) for d in value.type.shape)


def _whole(value: Value, sizes: Mapping[str, int], stmt: Let | None) -> RuleError | TranspileError:
    name = value.name if isinstance(value, Var) else "an array"
    what = (f"{name}: {value.type}, whose size follows from a run-time value, is used as a whole"
            if _uses(value, sizes) else "a size that follows from a run-time value is computed with")
    problem = RuleError(f"StableHLO needs every size as a number, and {what}", code="E207", kind=NotImplementedError,
                        help="give the array room for all that there can be, and count what is in it")
    return problem if stmt is None or stmt.loc is None else problem.at(stmt.loc)
