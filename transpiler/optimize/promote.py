"""Keep in a scalar what a loop reads and writes at one place of an array.

    before                                            after
    b = for k in 0 .. j carry (c = a):                s = load(a, i)
      v = load(c, k)                                  b, t = for k in 0 .. j carry (c = a, u = s):
      u = load(c, i)                                    v = load(c, k)
      w = subtract(u, v)                                w = subtract(u, v)
      yield store(c, w, i)                              yield c, w
                                                      b = store(a, t, i)

Only what the loop reads there, where all other places that it reads or writes are surely others (here k < j <= i), and
not in parallel loops.  What a loop only adds to a place is summed up and added behind it, whatever other places it adds
to; the sum may be in any order.  The place may lie outside of the array where the loop makes
no trip: unless it is known to make one, or the place is read or written next to the loop anyway, all of it is put into
an `if`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import ops
from ..ir.build import Names, building, const, current
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import (
    all_statements,
    blocks,
    operands,
    reads,
    replacement,
    same_value,
    substituted,
    used_names,
    with_blocks,
    with_body,
    with_contents,
)
from ..ops.base import Op

Place = tuple[Value, ...]


@dataclass(frozen=True)
class Access:
    """An element that is loaded, stored or added to; `nested`: in a loop inside."""

    let: Let
    nested: bool

    @property
    def place(self) -> Place:
        return self.let.args[1:] if self.let.op.access == "load" else self.let.args[2:]


def promote(func: Func) -> Func:
    ints = Ints(func.body)
    with building(Names(used_names(func))):
        return with_body(func, _visit(func.body, ints))


def _visit(block: Block, ints: Ints) -> Block:
    """Inner loops first: what is promoted there is loaded and stored once a trip of the loop around."""
    stmts: list[Stmt] = []
    for k, old in enumerate(block.stmts):
        stmt = with_blocks(old, [_visit(b, ints) for b in blocks(old)])
        if isinstance(stmt, For):
            stmts += _promoted(stmt, block.stmts[:k], block.stmts[k + 1:], ints)
        else:
            stmts.append(stmt)
    return with_contents(block, stmts)


def _promoted(loop: For, before: Sequence[Stmt], after: Sequence[Stmt], ints: Ints,
              makes_trips: bool = False) -> list[Stmt]:
    """The loop, with what goes before and after it.  makes_trips: it is known to make one, by a test around it."""
    if loop.parallel or not isinstance(loop.step, Const):
        return [loop]
    inside = {loop.index, *loop.carries, *(t for s in all_statements(loop.body) for t in s.targets)}
    for k, carry in enumerate(loop.carries):
        accesses = _accesses(loop, k) if carry.type.shape else None
        if accesses is None or not any(a.let.op.access != "load" for a in accesses):
            continue
        for access in accesses:
            place = access.place
            adds = carry.type.kind in "fc" and all(
                a.let.op.access == "add_at" or _differ(place, a.place, ints) for a in accesses)
            if access.nested or access.let.op.access == "store" or not inside.isdisjoint(place) or not (adds or all(
                    (_same(place, a.place) and not a.nested) or _differ(place, a.place, ints) for a in accesses)):
                continue
            if makes_trips or makes_a_trip(loop, ints) or _is_touched(carry, place, before, after):
                return _with_scalar(loop, k, place, adds, before, after, ints, makes_trips)
            return _if_any_trip(loop, k, place, adds, ints)
    return [loop]


# ---------------------------------------------------------------------------------------------------------------
# what a loop does to an array


def _accesses(loop: For, k: int) -> list[Access] | None:
    """All elements that the loop reads and writes of its carry k; None where it does anything else with it."""
    found: list[Access] = []
    return found if _follow(loop, k, found, False) else None


def _follow(loop: For, carried: int, found: list[Access], nested: bool) -> bool:
    versions = {loop.carries[carried]}
    for stmt in loop.body.stmts:
        used = [v for v in operands(stmt) if isinstance(v, Var) and v in versions]
        if isinstance(stmt, Let) and used:
            if stmt.op.access is None or not all(isinstance(item, At) for item in stmt.params["index"]) or used != [
                    stmt.args[0]]:
                return False
            found.append(Access(stmt, nested))
            if stmt.op.access != "load":
                versions.add(stmt.target)
        elif isinstance(stmt, For):
            entering = [k for k, init in enumerate(stmt.inits) if init in versions]
            if len(entering) > 1 or not versions.isdisjoint(reads(stmt.body)):
                return False
            for k in entering:
                if not _follow(stmt, k, found, True):
                    return False
                versions.add(stmt.targets[k])
        elif used or any(not versions.isdisjoint(reads(b)) for b in blocks(stmt)):
            return False
    return [k for k, r in enumerate(loop.body.results) if r in versions] == [carried]


def _same(a: Place, b: Place) -> bool:
    return all(map(same_value, a, b))


def _differ(a: Place, b: Place, ints: Ints) -> bool:
    return any(ints.differ(x, y) for x, y in zip(a, b))


def makes_a_trip(loop: For, ints: Ints) -> bool:
    ahead = ints.dim(loop.lo) - ints.dim(loop.hi)
    assert isinstance(loop.step, Const)
    return ints.is_negative(ahead if loop.step.value > 0 else -ahead)


def _is_touched(array: Var, place: Place, before: Sequence[Stmt], after: Sequence[Stmt]) -> bool:
    """Whether the block around the loop surely reads or writes this place of an array of this shape."""
    def touches(stmt: Stmt) -> bool:
        return (isinstance(stmt, Let) and stmt.op.access is not None and stmt.args[0].type.shape == array.type.shape
                and all(isinstance(item, At) for item in stmt.params["index"])
                and _same(place, Access(stmt, False).place))

    return any(map(touches, before)) or any(map(touches, _at_once(after)))


def _at_once(stmts: Sequence[Stmt]) -> Iterator[Stmt]:
    """Those before anything that may raise or not end."""
    for stmt in stmts:
        if isinstance(stmt, (Check, Call, While)) or any(
                isinstance(s, (Check, Call, While)) for b in blocks(stmt) for s in all_statements(b)):
            return
        yield stmt


# ---------------------------------------------------------------------------------------------------------------
# the new loop


def _with_scalar(loop: For, k: int, place: Place, adds: bool, before: Sequence[Stmt], after: Sequence[Stmt],
                 ints: Ints, makes_trips: bool) -> list[Stmt]:
    """Load, loop and store; where the loop only adds, a sum that is added to the array behind it."""
    index = (At(),) * len(place)
    init = loop.inits[k]
    with building() as b:
        b.loc = loop.loc
        first: Value = const(0, init.type.scalar) if adds else ops.load(init, *place, index=index)
    name = first.name if isinstance(first, Var) else loop.carries[k].name
    carry = current().var(first.type, name)
    body = _body(loop.body, loop.carries[k], place, carry, ops.accumulate if adds else ops.add)
    last, array = current().var(first.type, name), current().var(loop.targets[k].type, loop.targets[k].name)
    targets = (*(array if j == k else t for j, t in enumerate(loop.targets)), last)
    scalar = For(targets, loop.index, loop.lo, loop.hi, loop.step, (*loop.carries, carry), (*loop.inits, first), body,
                 False, loop.loc)
    store = Let((loop.targets[k],), ops.add_at if adds else ops.store, (array, last, *place), {"index": index},
                loop.loc)
    stmts: list[Stmt] = [*b.stmts, *_promoted(scalar, [*before, *b.stmts], [store, *after], ints, makes_trips)]
    return [*stmts, store] if body.results[-1] is not carry else [
        with_array(stmt, array, loop.targets[k]) for stmt in stmts]


def with_array(stmt: Stmt, old: Var, new: Var) -> Stmt:
    """The statement with another name for what it gives."""
    if old not in stmt.targets:
        return stmt
    targets = tuple(new if t is old else t for t in stmt.targets)
    match stmt:
        case For():
            return For(targets, stmt.index, stmt.lo, stmt.hi, stmt.step, stmt.carries, stmt.inits, stmt.body,
                       stmt.parallel, stmt.loc)
        case Let():
            return Let(targets, stmt.op, stmt.args, stmt.params, stmt.loc)
        case If():
            return If(targets, stmt.pred, stmt.then, stmt.orelse, stmt.loc)
        case _:
            raise TypeError(type(stmt).__name__)


def _if_any_trip(loop: For, k: int, place: Place, adds: bool, ints: Ints) -> list[Stmt]:
    """All of it, where the loop makes a trip."""
    b = current()
    assert isinstance(loop.step, Const)
    inner = For(tuple(b.var(t.type, t.name) for t in loop.targets), loop.index, loop.lo, loop.hi, loop.step,
                loop.carries, loop.inits, loop.body, False, loop.loc)
    with building() as test:
        test.loc = loop.loc
        pred = loop.lo < loop.hi if loop.step.value > 0 else loop.lo > loop.hi
    then = Block(tuple(_with_scalar(inner, k, place, adds, (), (), ints, True)), inner.targets)
    return [*test.stmts, If(loop.targets, pred, then, Block((), loop.inits), loop.loc)]


def _body(body: Block, carry: Var, place: Place, scalar: Value, add: Op) -> Block:
    """The body with the element in a scalar, which is its last result."""
    element: dict[Value, Value] = {carry: scalar}       # of each version of the array
    replaced: dict[Var, Value] = {}
    stmts: list[Stmt] = []
    for old in body.stmts:
        stmt = substituted(old, replaced)
        array = old.args[0] if isinstance(old, Let) and old.op.access is not None else None
        if isinstance(stmt, Let) and isinstance(old, Let) and array in element:
            kind, here = stmt.op.access, _same(Access(old, False).place, place)
            if kind == "load":
                if here:
                    replaced[old.target] = element[array]
                    continue
            elif here:
                element[old.target] = stmt.args[1] if kind == "store" else _sum(stmts, add, element[array], stmt)
                replaced[old.target] = stmt.args[0]
                continue
            else:
                element[old.target] = element[array]
        elif isinstance(old, For):
            element |= {target: element[init] for target, init in zip(old.targets, old.inits) if init in element}
        stmts.append(stmt)
    (result,) = {id(element[r]): element[r] for r in body.results if r in element}.values()
    return Block(tuple(stmts), (*(replacement(r, replaced) for r in body.results), replacement(result, replaced)))


def _sum(stmts: list[Stmt], add: Op, element: Value, let: Let) -> Value:
    with building() as b:
        b.loc = let.loc
        result: Value = add(element, let.args[1])
    stmts += b.stmts
    return result
