"""Batching: each statement on a leading batch axis of the arguments that have one.

    before                         after (x batched, w not)
    func f(w: f64[n], x: f64[n]):  func f_vmap(w: f64[n], x: f64[b,n]):
      y = multiply(w, x)             w_1 = broadcast(w) {shape=(b,n), axes=(1,)}
      return y                       y = multiply(w_1, x)
                                     return y
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from .. import ops
from ..errors import error
from ..ir.build import Names, building, for_loop, int_const, located, size_value
from ..ir.dims import symbol, symbols_of
from ..ir.index import At, Span
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import Copier, all_statements, blocks, operands, reads, sizes_used, used_names
from ..report import Batch, Report


def vmap(func: Func, batched: Sequence[bool], size: Any, *, name: str | None = None,
         report: Report | None = None) -> Func:
    """The func over a batch axis 0 of length `size` (a dimension) of each param that is `batched`.

    Every result has the batch axis first, also those that do not depend on the batch.  `report` is told what does.
    """
    with building(Names(used_names(func))) as b:
        copier = Copier()
        lanes: set[Var] = set()
        params = []
        for param, is_batched in zip(func.params, batched, strict=True):
            if is_batched:
                new = Var(param.name, Type(param.type.dtype, (size, *param.type.shape)))
                copier.values[param] = new
                lanes.add(new)
                params.append(new)
            else:
                params.append(param)
        stmts = func.body.stmts
        if _sizes_differ(func, batched):
            results = _every_lane(func, copier, lanes, size)
            if report is not None:
                report.sweeps.append(Batch(func, None, frozenset(stmts)))
            return Func(name or f"{func.name}_vmap", tuple(params), Block(tuple(b.stmts), results), func.result_names)
        for stmt in stmts:
            match stmt:
                case Let():
                    with located(stmt.loc):
                        _batch(stmt, copier, lanes)
                case Check():
                    pred = copier.value(stmt.pred)
                    if stmt.values and any(copier.value(v) in lanes for v in operands(stmt)):
                        with located(stmt.loc):
                            _lane_by_lane(stmt, copier, lanes, size)
                        continue
                    if pred in lanes:
                        pred = ops.all(pred, axes=(0,))
                    b.stmts.append(Check(pred, stmt.kind, stmt.message, stmt.loc,
                                         values=tuple(map(copier.value, stmt.values))))
                case If() | For() | While() | Call():
                    if any(v in lanes for v in map(copier.value, _all_read(stmt))):
                        with located(stmt.loc):
                            _lane_by_lane(stmt, copier, lanes, size)
                    else:
                        copier.statement(stmt)
                case _:
                    assert_never(stmt)
        if report is not None:
            report.sweeps.append(_batch_of(func, copier, lanes))
        values = map(copier.value, func.results)
        results = tuple(v if v in lanes else along(v, size) for v in values)
    return Func(name or f"{func.name}_vmap", tuple(params), Block(tuple(b.stmts), results), func.result_names)


def _batch_of(func: Func, copier: Copier, lanes: set[Var]) -> Batch:
    """What depends on the batch, and which statements run lane by lane."""
    batched = frozenset(t for s in func.body.stmts for t in s.targets if copier.value(t) in lanes)
    looped = frozenset(s for s in func.body.stmts if isinstance(s, (If, For, While)) and not batched.isdisjoint(
        s.targets))
    return Batch(func, batched, looped)


def along(value: Value, size: Any) -> Value:
    """The value repeated along a new leading axis."""
    if isinstance(value, Const):
        return Const(value.value, Type(value.dtype, (size, *value.shape)))
    return ops.broadcast(value, shape=(size, *value.shape), axes=tuple(range(1, value.rank + 1)))


def _batch(let: Let, copier: Copier, lanes: set[Var]) -> None:
    args = tuple(map(copier.value, let.args))
    flags = [isinstance(a, Var) and a in lanes for a in args]
    if not any(flags):
        copier.statement(let)
        return
    results = let.op.batch(args, flags, **copier.params(let.params))
    for target, value in zip(let.targets, results if let.op.result_count > 1 else (results,), strict=True):
        copier.values[target] = value
        if isinstance(value, Var):
            lanes.add(value)


def _sizes_differ(func: Func, batched: Sequence[bool]) -> bool:
    """Whether the size of some array follows from batched values, so that lanes have arrays of different sizes."""
    lanes = {p for p, is_batched in zip(func.params, batched, strict=True) if is_batched}
    for stmt in func.body.stmts:
        if not lanes.isdisjoint(_all_read(stmt)):
            lanes.update(stmt.targets)
    sizes = {name for stmt in all_statements(func.body) for name in sizes_used(stmt)}
    return any(v.name in sizes for v in lanes)


def _every_lane(func: Func, copier: Copier, lanes: set[Var], size: Any) -> tuple[Value, ...]:
    """All statements inside one loop over lanes."""
    for result in func.results:
        if any(symbols_of(d).keys() & set(used_names(func)) - set(_shape_sizes(func)) for d in result.type.shape):
            raise error("E311", "a batched value decides the size of a result", None)
    outs = [ops.empty(shape=(size, *r.type.shape), dtype=r.type.dtype) for r in func.results]

    def lane(index: Value, *carried: Value) -> list[Value]:
        own = Copier()
        for param in func.params:
            whole = copier.value(param)
            spans = tuple(Span(0, d) for d in param.type.shape)
            mine = ops.load(whole, index, index=(At(), *spans)) if whole in lanes else whole
            own.values[param] = mine
            if whole in lanes and not param.type.shape and param.type.dtype == "int64" and isinstance(mine, Var):
                own.sizes[param.name] = symbol(mine.name, 0)
        for stmt in func.body.stmts:
            own.statement(stmt)
        return [ops.store(out, own.value(r), index, index=(At(), *(Span(0, d) for d in out.shape[1:])))
                for out, r in zip(carried, func.results, strict=True)]

    return for_loop(int_const(0), size_value(size), outs, lane, index="lane", parallel=True,
                    hints=["out"] * len(outs))


def _shape_sizes(func: Func) -> list[str]:
    """Sizes that the params' shapes bind."""
    return [name for p in func.params for d in p.type.shape for name in symbols_of(d)]


def _lane_by_lane(stmt: If | For | While | Call | Check, copier: Copier, lanes: set[Var], size: Any) -> None:
    """A branch, loop or call on batched values: a loop over lanes around it, each with its own branches and trips."""
    read = [v for v in _all_read(stmt) if isinstance(v, Var)]
    batched = sorted((v for v in read if copier.value(v) in lanes), key=lambda v: v.name)
    for target in stmt.targets:
        if any(symbols_of(d).keys() & {v.name for v in batched} for d in target.type.shape):
            raise error("E311", "a batched value decides the size of an array here", stmt.loc)
    outs = [ops.empty(shape=(size, *copier.type(t.type).shape), dtype=t.type.dtype) for t in stmt.targets]

    def lane(index: Value, *carried: Value) -> list[Value]:
        own = Copier(copier.values, copier.sizes)
        for value in batched:
            whole = copier.value(value)
            spans = tuple(Span(0, d) for d in whole.shape[1:])
            own.values[value] = ops.load(whole, index, index=(At(), *spans))
        own.statement(stmt)
        return [ops.store(out, own.value(t), index, index=(At(), *(Span(0, d) for d in out.shape[1:])))
                for out, t in zip(carried, stmt.targets, strict=True)]

    results = for_loop(int_const(0), size_value(size), outs, lane, index="lane", parallel=True,
                       hints=[t.name for t in stmt.targets])
    for target, result in zip(stmt.targets, results, strict=True):
        copier.values[target] = result
        lanes.add(result)


def _all_read(stmt: Stmt) -> set[Any]:
    return set(operands(stmt)).union(*(reads(x) for x in blocks(stmt)))
