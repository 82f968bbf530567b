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
from ..ir.build import Names, building, located
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import Copier, blocks, operands, reads, used_names
from .common import unsupported_statement


def vmap(func: Func, batched: Sequence[bool], size: Any, *, name: str | None = None) -> Func:
    """The func over a batch axis 0 of length `size` (a dimension) of each param that is `batched`.

    Every result has the batch axis first, also those that do not depend on the batch.
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
        for stmt in func.body.stmts:
            match stmt:
                case Let():
                    with located(stmt.loc):
                        _batch(stmt, copier, lanes)
                case Check():
                    pred = copier.value(stmt.pred)
                    if pred in lanes:
                        pred = ops.all(pred, axes=(0,))
                    b.stmts.append(Check(pred, stmt.kind, stmt.message, stmt.loc))
                case If() | For() | While() | Call():
                    if any(copier.value(v) in lanes for v in _all_read(stmt)):
                        unsupported_statement(stmt, "vmap")
                    copier.statement(stmt)
                case _:
                    assert_never(stmt)
        results = []
        for result in func.results:
            value = copier.value(result)
            results.append(value if value in lanes else along(value, size))
    return Func(name or f"{func.name}_vmap", tuple(params), Block(tuple(b.stmts), tuple(results)), func.result_names)


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


def _all_read(stmt: Stmt) -> set[Any]:
    return set(operands(stmt)).union(*(reads(x) for x in blocks(stmt)))
