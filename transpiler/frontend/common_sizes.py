"""Results of a batch whose sizes the lanes decide, such as `x[k:k + 2]` for a batched k: an array of all lanes needs
one size, which is the first lane's.  That the others agree is checked when they are computed.

    before                          after (first: the size that the first lane's `part` has)
    func f(x: f64[n], k: i64):      func f(x: f64[n], k: i64, first: i64):
      ...                             ...
      part = load(x, k) [m]           part = load(x, k) [m]
      return part                     check m == first
                                      return load(part) [0:first]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import ops
from ..errors import error
from ..ir.build import Names, building, check, current, int_const, size_value
from ..ir.dims import bounds, symbol
from ..ir.index import Span
from ..ir.nodes import Block, Func, Value, Var
from ..ir.types import Type
from ..ir.walk import inline, used_names
from ..transforms.lane_loop import lane_of
from ..transforms.vmap import own_sizes


def with_common_sizes(func: Func, batched: Sequence[bool], inputs: Sequence[Value],
                      size: Any) -> tuple[Func, list[bool], list[Value]]:
    """The func with results of sizes that the surrounding code knows, and what it is to be given.

    size: of the batch.  TranspileError (E311) for a batch without lanes.
    """
    places = own_sizes(func, batched)
    if not places:
        return func, list(batched), list(inputs)
    if size == 0:
        raise error("E311", "the lanes decide the size of a result, and there are none", None)
    if (bounds(size)[0] or 0) < 1:
        check(ops.greater(size_value(size), int_const(0)), "ValueError",
              "the lanes of a batch decide the size of a result, and there are none")
    first = inline(func, [lane_of(x, int_const(0)) if own else x for x, own in zip(inputs, batched, strict=True)])
    found = [_value_of(first[k].shape[axis]) for k, axis in places]
    params: list[Var] = []
    with building(Names(used_names(func))) as b:
        results = list(func.results)
        for k, axis in places:
            params.append(b.var(Type("int64"), "first"))
            results[k] = _of_size(results[k], axis, params[-1])
    body = Block((*func.body.stmts, *b.stmts), tuple(results))
    return (replace(func, params=(*func.params, *params), body=body), [*batched, *[False] * len(params)],
            [*inputs, *found])


def _value_of(size: Any) -> Value:
    """The value that the size is named after, if it is; else one computed from it."""
    made = {t.name: t for stmt in current().stmts for t in stmt.targets if t.type == Type("int64")}
    named = made.get(str(size))
    return size_value(size) if named is None else named


def _of_size(x: Value, axis: int, size: Var) -> Value:
    check(ops.equal(size_value(x.shape[axis]), size), "ValueError",
          f"the lanes of a batch must agree on the size of a result, and differ along its axis {axis}")
    spans = tuple(Span(0, symbol(size.name, 0) if k == axis else d) for k, d in enumerate(x.shape))
    return ops.load(x, index=spans)
