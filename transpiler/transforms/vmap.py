"""Batching: each statement on a leading batch axis of the arguments that have one.

    before                         after (x batched, w not)
    func f(w: f64[n], x: f64[n]):  func f_vmap(w: f64[n], x: f64[b,n]):
      y = multiply(w, x)             w_1 = broadcast(w) {shape=(b,n), axes=(1,)}
      return y                       y = multiply(w_1, x)
                                     return y
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never

from .. import ops
from ..errors import error
from ..ir.build import Names, building, current, for_loop, int_const, located, size_value
from ..ir.dims import symbol, symbols_of
from ..ir.index import At, Span
from ..ir.library import library
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Rule, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import Copier, all_statements, blocks, operands, reads, sizes_used, used_names
from ..report import Batch, Report
from .rules import rule_of


def vmap(func: Func, batched: Sequence[bool], size: Any, *, name: str | None = None,
         report: Report | None = None, spread: int | None = None) -> Func:
    """The func over a batch axis 0 of length `size` (a dimension) of each param that is `batched`.

    Every result has the batch axis first, also those that do not depend on the batch; with `spread`, only so many
    results do, and others where they depend on it.  `report` is told what does.
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
                case Call() if _has_rule(stmt) and any(copier.value(a) in lanes for a in stmt.args):
                    with located(stmt.loc):
                        _batch_ruled(stmt, copier, lanes, size)
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
        results = tuple(v if v in lanes or (spread is not None and k >= spread) else along(v, size)
                        for k, v in enumerate(values))
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


def _has_rule(call: Call) -> bool:
    rule = rule_of(call.func)
    return rule is not None and rule.forward is not None


def _batch_ruled(call: Call, copier: Copier, lanes: set[Var], size: Any) -> None:
    """A call of a func with a rule: a call of the batched func, with the batched rule."""
    args = tuple(map(copier.value, call.args))
    flags = tuple(isinstance(a, Var) and a in lanes for a in args)
    name = library().derive(("vmap", call.func, flags, size), f"{library().wanted[call.func]}_vmap",
                            lambda own: _batched(own, call.func, flags, size))
    types = [Type(copier.type(t.type).dtype, (size, *copier.type(t.type).shape)) for t in call.targets]
    targets = tuple(current().var(type, t.name) for t, type in zip(call.targets, types, strict=True))
    current().stmts.append(Call(targets, name, args, call.loc, call.needed))
    copier.values.update(zip(call.targets, targets, strict=True))
    lanes.update(targets)


def _batched(own: str, name: str, flags: tuple[bool, ...], size: Any) -> Func:
    func = library().callee(name)
    rule = func.rule
    assert rule is not None and rule.forward is not None
    results = len(func.results)

    def part(of: str | None, batched: Sequence[bool], spread: int | None = None,
             summed: Sequence[bool] = ()) -> str | None:
        if of is None:
            return None
        return library().derive(("vmap", of, tuple(batched), size), f"{library().wanted[of]}_vmap", lambda part_name: (
            _summed(vmap(library().callee(of), batched, size, name=part_name, spread=spread), summed)))

    def saved(of: str) -> list[bool]:
        """Which residuals of a forward func depend on the batch."""
        made = part(of, flags, results)
        assert made is not None
        pairs = zip(library().callee(made).results[results:], library().callee(of).results[results:], strict=True)
        return [new.type.rank > old.type.rank for new, old in pairs]

    cts = [True for r in func.results if r.type.is_inexact]
    wrt = [flags[k] for k in rule.wrt]
    new_rule = Rule(rule.wrt, part(rule.forward, flags, results),
                    part(rule.push, [*saved(rule.ahead or rule.forward), *wrt]),
                    part(rule.pull, [*saved(rule.forward), *cts], summed=[not is_batched for is_batched in wrt]),
                    part(rule.ahead, flags, results), part(rule.code, flags))
    return replace(vmap(func, flags, size, name=own), rule=new_rule)


def _summed(func: Func, summed: Sequence[bool]) -> Func:
    """The func with the sums of some results over the batch: cotangents of what is one for all lanes."""
    if not any(summed):
        return func
    with building(Names(used_names(func))) as b:
        results = tuple(ops.sum(r, axes=(0,)) if is_summed else r
                        for r, is_summed in zip(func.results, summed, strict=True))
    return replace(func, body=Block((*func.body.stmts, *b.stmts), results))


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
