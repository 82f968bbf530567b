"""Local arrays of a few elements become scalars.

    before                                              after
    s = empty() {shape=(2,)}                            x_1, y_1 = for t in 0 .. n carry (s_0 = x, s_1 = y):
    s_1 = store(store(s, x, 0), y, 1)                     a = multiply(s_1, 0.1)
    s_2 = for t in 0 .. n carry (c = s_1):                b = add(s_0, a)
      v = load(c, 1)                                      yield b, s_1
      a = multiply(v, 0.1)                              ...
      yield add_at(c, a, 0)
    ...

Such is the state of an ordinary differential equation in `np.array([x, y])`.  Its size is known, and so are all places
where it is read and written; loops over its elements are written out.  A compiler keeps scalars in registers, and sees
through what goes from trip to trip in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import Builder, Names, building, const, current, located
from ..ir.dependence import position_of
from ..ir.index import At
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import I64
from ..ir.unroll import known_indices, written_out
from ..ir.walk import (
    all_statements,
    blocks,
    operands,
    reads,
    replacement,
    substituted,
    used_names,
    with_blocks,
    with_body,
    with_contents,
    with_operands,
)

MOST = 9            # elements of an array, and trips of a loop that is written out
LONGEST = 128       # statements of a loop written out


def write_out(func: Func) -> Func:
    """The func without short loops over elements of small arrays."""
    with building(Names(used_names(func))):
        return with_body(func, _written_out(func.body))


def arrays_as_scalars(func: Func) -> Func:
    """Every place of the small arrays has to be known: see `write_out`."""
    chosen = _Arrays(func).chosen
    if not chosen:
        return func
    with building(Names(used_names(func))):
        rewriter = _Rewriter(chosen)
        return with_body(func, rewriter.block(func.body, ()))


def is_small(value: Value) -> bool:
    """Whether it is an array of a few elements, of a size that is known, and not of ints, which may be sizes."""
    shape = value.type.shape
    return bool(shape) and value.type.kind in "fcb" and all(isinstance(d, int) for d in shape) and (
        1 <= prod(shape) <= MOST)


def take_arms(func: Func) -> Func:
    """The func without branches on what is known, as it is in loops that were written out."""
    return with_body(func, _decided(func.body))


def _decided(block: Block) -> Block:
    replaced: dict[Var, Value] = {}
    stmts: list[Stmt] = []
    for old in block.stmts:
        stmt = substituted(old, replaced)
        stmt = with_blocks(stmt, [_decided(inner) for inner in blocks(stmt)])
        if isinstance(stmt, If) and isinstance(stmt.pred, Const) and not _may_name_sizes(stmt.targets):
            arm = stmt.then if stmt.pred.value else stmt.orelse
            stmts += arm.stmts
            replaced.update(zip(stmt.targets, arm.results, strict=True))
        else:
            stmts.append(stmt)
    return with_contents(block, stmts, [replacement(r, replaced) for r in block.results])


# --- short loops -------------------------------------------------------------------------------------------------


def _written_out(block: Block) -> Block:
    replaced: dict[Var, Value] = {}
    changed = False
    with building() as b:
        for old in block.stmts:
            stmt = substituted(old, replaced)
            stmt = with_blocks(stmt, [_written_out(inner) for inner in blocks(stmt)])
            indices = _short(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and indices is not None:
                replaced.update(zip(stmt.targets, written_out(stmt, indices), strict=True))
                changed = True
                continue
            changed = changed or stmt is not old
            b.stmts.append(stmt)
    return Block(tuple(b.stmts), tuple(replacement(r, replaced) for r in block.results)) if changed else block


def _short(loop: For) -> range | None:
    """The indices of a short loop over elements of small arrays."""
    indices = known_indices(loop)
    if not indices or loop.checkpoint is not None or loop.segment or _may_name_sizes(loop.targets):
        return None
    inside = list(all_statements(loop.body))
    # What is read after the first of several writes to another version of it would have to be copied.
    if any(not is_small(init) and init in reads(loop.body) for init in loop.inits):
        return None
    if len(indices) > MOST or len(indices) * len(inside) > LONGEST or not any(
            isinstance(s, Let) and s.op.access is not None and isinstance(s.args[0], Var) and is_small(s.args[0])
            for s in inside):
        return None
    return indices


def _may_name_sizes(targets: Sequence[Var]) -> bool:
    """Whether there are ints, after which sizes may be named."""
    return any(target.type == I64 for target in targets)


# --- which arrays ------------------------------------------------------------------------------------------------


class _Arrays:
    """chosen: small arrays of which nothing is done but to read and write elements at known places, and to hand them
    on."""

    def __init__(self, func: Func) -> None:
        self._parent: dict[Var, Var] = {}
        self._bad: set[Var] = set()
        self._spoil(*func.params, *func.body.results)
        for stmt in all_statements(func.body):
            self._note(stmt)
        spoilt = {self._find(v) for v in self._bad}
        self.chosen = {v for v in self._parent if self._find(v) not in spoilt}

    def _find(self, var: Var) -> Var:
        self._parent.setdefault(var, var)
        while self._parent[var] is not var:
            var = self._parent[var]
        return var

    def _join(self, *values: Value) -> None:
        arrays = [v for v in values if isinstance(v, Var) and is_small(v)]
        for other in arrays[1:]:
            self._parent[self._find(other)] = self._find(arrays[0])
        if any(v.type.shape and not is_small(v) for v in values):       # it becomes one whose size is not known
            self._spoil(*arrays)

    def _spoil(self, *values: Value) -> None:
        self._bad.update(v for v in values if isinstance(v, Var) and is_small(v))

    def _note(self, stmt: Stmt) -> None:
        match stmt:
            case Let() if stmt.op.access is not None:
                array, *rest = stmt.args
                self._spoil(*rest)
                self._join(array, *stmt.targets)
                if not is_small(array) or place_of(stmt) is None:
                    self._spoil(array, *stmt.targets)
            case Let() if stmt.op.is_unset and is_small(stmt.target):
                self._find(stmt.target)
            case If():
                self._spoil(stmt.pred)
                for k, target in enumerate(stmt.targets):
                    self._join(target, stmt.then.results[k], stmt.orelse.results[k])
            case For() | While():
                for k, target in enumerate(stmt.targets):
                    group = (target, stmt.carries[k], stmt.inits[k], stmt.body.results[k])
                    self._join(*group)
                    if isinstance(stmt, For) and stmt.parallel:
                        self._spoil(*group)
            case _:
                self._spoil(*operands(stmt), *stmt.targets)


def place_of(let: Let) -> int | None:
    """The number of the element that is read or written, in C's order; None where it is not known."""
    shape, places = let.args[0].type.shape, position_of(let)
    if not all(isinstance(item, At) for item in let.params["index"]) or not all(
            isinstance(p, Const) and 0 <= p.value < size for p, size in zip(places, shape, strict=True)):
        return None
    return int(np.ravel_multi_index([p.value for p in places], shape))      # type: ignore[union-attr]


# --- scalars in their place --------------------------------------------------------------------------------------


class _Rewriter:
    def __init__(self, chosen: set[Var]) -> None:
        self.chosen = chosen
        self._elements: dict[Var, tuple[Value, ...]] = {}
        self._replaced: dict[Var, Value] = {}

    def block(self, block: Block, names: Sequence[Var]) -> Block:
        """names: what its results become."""
        with building() as b:
            for stmt in block.stmts:
                self._statement(stmt, b)
            results = self._expanded(block.results, names)
        return Block(tuple(b.stmts), results)

    def _statement(self, stmt: Stmt, b: Builder) -> None:
        match stmt:
            case Let() if stmt.op.access is not None and (stmt.args[0] in self.chosen or (
                    stmt.targets[0] in self.chosen)):
                self._access(stmt)
            case Let() if stmt.targets[0] in self.chosen:
                target = stmt.targets[0]                                    # nobody reads what is unset
                self._elements[target] = (const(0, target.type.with_shape(())),) * prod(target.type.shape)
            case If():
                pred = replacement(stmt.pred, self._replaced)
                then, orelse = (self.block(arm, stmt.targets) for arm in (stmt.then, stmt.orelse))
                b.stmts.append(If(self._bound(stmt.targets), pred, then, orelse, stmt.loc))
            case For():
                moved = with_operands(stmt, self._replaced)
                assert isinstance(moved, For)
                inits, carries = self._expanded(stmt.inits, stmt.carries), self._bound(stmt.carries)
                body = self.block(stmt.body, stmt.carries)
                targets = self._bound(stmt.targets)
                b.stmts.append(replace(moved, targets=targets, carries=carries, inits=inits, body=body))
            case While():
                inits, carries = self._expanded(stmt.inits, stmt.carries), self._bound(stmt.carries)
                cond, body = self.block(stmt.cond, ()), self.block(stmt.body, stmt.carries)
                b.stmts.append(While(self._bound(stmt.targets), carries, inits, cond, body, stmt.loc))
            case _:
                b.stmts.append(with_operands(stmt, self._replaced))

    def _access(self, let: Let) -> None:
        place = place_of(let)
        assert place is not None
        elements = self._elements_of(let.args[0])
        if let.op.access == "load":
            self._replaced[let.targets[0]] = elements[place]
            return
        value = replacement(let.args[1], self._replaced)
        if let.op.access == "add_at":
            with located(let.loc):
                value = ops.add(elements[place], value)
        self._elements[let.targets[0]] = (*elements[:place], value, *elements[place + 1:])

    def _elements_of(self, array: Value) -> tuple[Value, ...]:
        if isinstance(array, Var):
            return self._elements[array]
        values: Any = np.broadcast_to(np.asarray(array.value), array.type.shape)
        return tuple(const(v, array.type.with_shape(())) for v in values.ravel())

    def _expanded(self, values: Sequence[Value], names: Sequence[Var]) -> tuple[Value, ...]:
        """The values, and elements of those that become chosen arrays under these names; without names none do."""
        found: list[Value] = []
        for k, value in enumerate(values):
            if k < len(names) and names[k] in self.chosen:
                found += self._elements_of(value)
            else:
                found.append(replacement(value, self._replaced))
        return tuple(found)

    def _bound(self, names: Sequence[Var]) -> tuple[Var, ...]:
        """Names that a statement binds, with new ones for the elements of chosen arrays."""
        found: list[Var] = []
        for name in names:
            if name not in self.chosen:
                found.append(name)
                continue
            scalars = tuple(current().var(name.type.with_shape(()), f"{name.name}_{k}")
                            for k in range(prod(name.type.shape)))
            self._elements[name] = scalars
            found += scalars
        return tuple(found)
