"""Scalars that inner loops carry become elements of an array with one for each trip of the outer loop.

    for j in 0 .. n:                              s = empty(n)
      t = 0.0                                     for j in 0 .. n:
      for k: t += a[k, j]                           s[j] = 0.0
      b[j] = t                                      for k: s[j] += a[k, j]
                                                    b[j] = s[j]

The trips of the outer loop are then independent of one another in memory, too, and `interchange` may turn the loops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import ops
from ..ir.build import building, current, int_const
from ..ir.dims import symbol
from ..ir.index import At
from ..ir.nodes import Block, Const, For, Let, Stmt, Value, Var
from ..ir.types import Type
from ..ir.walk import substituted


def with_scalars_in_arrays(loop: For) -> tuple[list[Stmt], For]:
    """What makes the arrays, and the loop with them; the loop itself where its inner loops carry no scalars."""
    if not (isinstance(loop.step, Const) and abs(loop.step.value) == 1) or not any(
            not c.type.shape for s in loop.body.stmts if isinstance(s, For) for c in s.carries):
        return [], loop
    with building() as before:
        trips = loop.hi - loop.lo if loop.step.value > 0 else loop.lo - loop.hi
        size = ops.maximum(trips, int_const(0))
        dim = size.value if isinstance(size, Const) else symbol(size.name, 0)
    return _Expander(loop, dim, before.stmts).expanded()


class _Expander:
    def __init__(self, loop: For, size: Any, before: list[Stmt]) -> None:
        self.loop, self.size, self.before = loop, size, before
        self.stmts: list[Stmt] = []
        self.carries: list[Var] = []
        self.inits: list[Value] = []
        self.results: list[Value] = []
        self.replaced: dict[Var, Value] = {}

    def expanded(self) -> tuple[list[Stmt], For]:
        loop = self.loop
        assert isinstance(loop.step, Const)
        with building() as body:
            least = loop.lo if loop.step.value > 0 else loop.hi + int_const(1)
            at = loop.index - least
        self.stmts += body.stmts
        for old in loop.body.stmts:
            stmt = substituted(old, self.replaced)
            if isinstance(stmt, For) and any(not c.type.shape for c in stmt.carries):
                self.stmts += self._inner(stmt, at)
            else:
                self.stmts.append(stmt)
        targets = tuple(current().var(c.type, c.name) for c in self.carries)
        results = tuple(self.replaced.get(r, r) if isinstance(r, Var) else r for r in loop.body.results)
        body_block = Block(tuple(self.stmts), (*results, *self.results))
        return self.before, replace(loop, targets=(*loop.targets, *targets), carries=(*loop.carries, *self.carries),
                                    inits=(*loop.inits, *self.inits), body=body_block)

    def _inner(self, inner: For, at: Value) -> list[Stmt]:
        """The inner loop on arrays, between what sets their elements and what reads them."""
        scalars = [k for k, c in enumerate(inner.carries) if not c.type.shape]
        around: list[Stmt] = []
        reads: list[Stmt] = []
        writes: list[Stmt] = []
        names = current().names
        arrays: dict[int, tuple[Value, Var, Value, Var]] = {}
        for k in scalars:
            carry = inner.carries[k]
            array = self._array(carry)
            with building() as b:
                ready = ops.store(array, inner.inits[k], at, index=(At(),))
            around += b.stmts
            inside = Var(names.fresh(carry.name), array.type)
            after = Var(names.fresh(carry.name), array.type)
            reads.append(_load(carry, inside, at))
            with building() as b:
                stored = ops.store(inside, inner.body.results[k], at, index=(At(),))
            writes += b.stmts
            arrays[k] = ready, inside, stored, after
            self.results.append(after)
        pick = [arrays.get(k) for k in range(len(inner.carries))]
        loop = replace(
            inner, targets=tuple(t if p is None else p[3] for t, p in zip(inner.targets, pick)),
            carries=tuple(c if p is None else p[1] for c, p in zip(inner.carries, pick)),
            inits=tuple(i if p is None else p[0] for i, p in zip(inner.inits, pick)),
            body=Block((*reads, *inner.body.stmts, *writes),
                       tuple(r if p is None else p[2] for r, p in zip(inner.body.results, pick))))
        return [*around, loop, *(_load(inner.targets[k], arrays[k][3], at) for k in scalars)]

    def _array(self, scalar: Var) -> Var:
        """The array that the outer loop carries for a scalar of an inner one."""
        with building() as b:
            new = ops.empty(shape=(self.size,), dtype=scalar.type.dtype)
        self.before += b.stmts
        carry = current().var(Type(scalar.type.dtype, (self.size,)), scalar.name)
        self.carries.append(carry)
        self.inits.append(new)
        return carry


def _load(target: Var, array: Value, at: Value) -> Let:
    """A load into a variable that there is already."""
    with building() as b:
        ops.load(array, at, index=(At(),))
    (let,) = b.stmts
    assert isinstance(let, Let)
    return replace(let, targets=(target,))

