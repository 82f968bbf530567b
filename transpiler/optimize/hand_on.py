"""Hand an element that the next trip works on to that trip in a scalar.

    before                                            after
    for j in 0 .. n carry (c = a):                    s = load(a, 0)
      v = load(c, j)                                  for j in 0 .. n carry (c = a, v = s):
      w = multiply(v, 0.5)                              w = multiply(v, 0.5)
      d = store(c, 0.0, j)                              u = load(c, j + 1)
      e = add_at(d, w, j + 1)                           t = add(u, w)
                                                        d = store(c, 0.0, j)
                                                        yield d, t
                                                      a = store(a, t, n)

A recurrence then does not wait for its memory.  Where the scalar does not follow from the trip before's, as in
`d[j] = f(d[j]); d[j + 1] += g(d[j])` counting down, there is no recurrence, and LLVM vectorises the loop.  What the
trip computes is the same to the bit.  A recurrence that only reads what the trip before left, such as
`a[j] = a[j - 1] + x[j]`, stays as it is: LLVM does this itself.

After D. Callahan, S. Carr and K. Kennedy, "Improving register allocation for subscripted variables" (1990).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .. import ops
from ..ir.build import Names, building, current, int_const
from ..ir.dependence import position_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var
from ..ir.walk import blocks, operands, replacement, same_value, substituted, used_names, with_blocks
from .promote import makes_a_trip, with_array

Distances = tuple[Value | int, ...]      # of a place: along each axis the position, or as an int how far from the index


@dataclass(frozen=True)
class Pair:
    """Two places of carry `number`: what is at `lead` in one trip is at `trail` in the next.  apart: of the trail, from
    the loop's index along `axis`.  delayed: the trail is written to."""

    number: int
    lead: Distances
    trail: Distances
    axis: int
    apart: int
    delayed: bool


def hand_on(func: Func) -> Func:
    ints = Ints(func.body)
    with building(Names(used_names(func))):
        body = _visit(func.body, ints)
    return func if body is func.body else replace(func, body=body)


def _visit(block: Block, ints: Ints) -> Block:
    stmts: list[Stmt] = []
    for old in block.stmts:
        stmt = with_blocks(old, [_visit(b, ints) for b in blocks(old)])
        stmts += _handed_on(stmt, ints) if isinstance(stmt, For) else [stmt]
    if len(stmts) == len(block.stmts) and all(a is b for a, b in zip(stmts, block.stmts)):
        return block
    return Block(tuple(stmts), block.results)


def _handed_on(loop: For, ints: Ints, makes_trips: bool = False) -> list[Stmt]:
    if loop.parallel or loop.abreast or loop.checkpoint is not None or loop.segment or not (
            isinstance(loop.step, Const) and abs(loop.step.value) == 1) or not all(
            isinstance(s, Let) and s.op.is_pure for s in loop.body.stmts):
        return [loop]
    for number in range(len(loop.carries)):
        pair = _pair(loop, number, ints)
        if pair is None:
            continue
        name = loop.carries[number].name
        carry = current().var(loop.carries[number].type.scalar, name)
        body = _body(loop, pair, carry, ints)
        if not pair.delayed and carry in _needed(body):
            continue
        if makes_trips or makes_a_trip(loop, ints):
            return _with_scalar(loop, pair, carry, body, ints)
        return _if_any_trip(loop, pair, carry, body, ints)
    return [loop]


def _needed(body: Block) -> set[Value]:
    """What the last result follows from."""
    needed: set[Value] = {body.results[-1]}
    for stmt in reversed(body.stmts):
        if not needed.isdisjoint(stmt.targets):
            needed.update(v for v in operands(stmt) if not v.type.shape)
    return needed


# ---------------------------------------------------------------------------------------------------------------
# which elements


def _pair(loop: For, number: int, ints: Ints) -> Pair | None:
    lets = _accesses(loop, number)
    if lets is None:
        return None
    inside = {loop.index, *loop.carries, *(t for s in loop.body.stmts for t in s.targets)}
    places = [_distances(loop, let, inside, ints) for let in lets]
    assert isinstance(loop.step, Const)
    step = int(loop.step.value)
    for trail, let in zip(places, lets):
        axes = [k for k, p in enumerate(trail) if isinstance(p, int)] if trail is not None else []
        if trail is None or len(axes) != 1 or let.op.access == "store":
            continue
        (axis,) = axes
        apart = trail[axis]
        assert isinstance(apart, int)
        lead = (*trail[:axis], apart + step, *trail[axis + 1:])
        kinds = {"lead": set[str](), "trail": set[str]()}
        for other, place in zip(lets, places):
            which = next((name for name, p in (("lead", lead), ("trail", trail))
                          if place is not None and _same(p, place)), None)
            if which is not None:
                kinds[which].add(str(other.op.access))
            elif not all(_differ(other, p, loop, ints) for p in (lead, trail)):
                break
        else:
            if not kinds["lead"].isdisjoint({"store", "add_at"}):
                return Pair(number, lead, trail, axis, apart, kinds["trail"] != {"load"})
    return None


def _accesses(loop: For, number: int) -> list[Let] | None:
    """All reads and writes of elements of an array that the loop carries; None where it does anything else with it."""
    newest: Value = loop.carries[number]
    if not newest.type.shape:
        return None
    versions: set[Value] = {newest}
    found = []
    for let in loop.body.stmts:
        assert isinstance(let, Let)
        used = [v for v in operands(let) if v in versions]
        if not used:
            continue
        if let.op.access is None or used != [newest] or let.args[0] is not newest or not all(
                isinstance(item, At) for item in let.params["index"]):
            return None
        found.append(let)
        if let.op.access != "load":
            newest = let.target
            versions.add(newest)
    return found if [k for k, r in enumerate(loop.body.results) if r in versions] == [number] and (
        loop.body.results[number] is newest) else None


def _distances(loop: For, let: Let, inside: set[Var], ints: Ints) -> Distances | None:
    """None where the place is neither at a fixed distance from the index nor the same in all trips."""
    found: list[Value | int] = []
    for value in position_of(let):
        apart = ints.dim(value) - ints.dim(loop.index)
        if isinstance(apart, int):
            found.append(apart)
        elif value in inside:
            return None
        else:
            found.append(value)
    return tuple(found)


def _same(a: Distances, b: Distances) -> bool:
    return all(p == q if isinstance(p, int) or isinstance(q, int) else same_value(p, q) for p, q in zip(a, b))


def _differ(let: Let, distances: Distances, loop: For, ints: Ints) -> bool:
    """Whether the statement's place is surely another one in the same trip."""
    index = ints.dim(loop.index)
    for value, distance in zip(position_of(let), distances):
        apart = ints.dim(value) - (index + distance if isinstance(distance, int) else ints.dim(distance))
        if ints.is_negative(apart) or ints.is_negative(-apart):
            return True
    return False


# ---------------------------------------------------------------------------------------------------------------
# the new loop


def _if_any_trip(loop: For, pair: Pair, carry: Var, body: Block, ints: Ints) -> list[Stmt]:
    """All of it, where the loop makes a trip: outside of the array otherwise."""
    b = current()
    assert isinstance(loop.step, Const)
    inner = replace(loop, targets=tuple(b.var(t.type, t.name) for t in loop.targets))
    with building() as test:
        test.loc = loop.loc
        pred = loop.lo < loop.hi if loop.step.value > 0 else loop.lo > loop.hi
    then = Block(tuple(_with_scalar(inner, pair, carry, body, ints)), inner.targets)
    return [*test.stmts, If(loop.targets, pred, then, Block((), loop.inits), loop.loc)]


def _with_scalar(loop: For, pair: Pair, carry: Var, body: Block, ints: Ints) -> list[Stmt]:
    init, target = loop.inits[pair.number], loop.targets[pair.number]
    index = (At(),) * init.type.rank
    with building() as before:
        before.loc = loop.loc
        first: Value = ops.load(init, *_at(pair, loop.lo), index=index)
    last = current().var(carry.type, carry.name)
    array = current().var(target.type, target.name) if pair.delayed else target
    targets = (*(array if k == pair.number else t for k, t in enumerate(loop.targets)), last)
    scalar = For(targets, loop.index, loop.lo, loop.hi, loop.step, (*loop.carries, carry), (*loop.inits, first),
                 body, False, loop.loc)
    stmts = [*before.stmts, *_handed_on(scalar, ints, makes_trips=True)]
    if pair.delayed:
        with building() as after:
            after.loc = loop.loc
            stored = ops.store(array, last, *_at(pair, loop.hi), index=index)
        assert isinstance(stored, Var)
        stmts += [with_array(stmt, stored, target) for stmt in after.stmts]
    return stmts


def _at(pair: Pair, index: Value) -> Iterator[Value]:
    """The trail in the trip with this index."""
    for distance in pair.trail:
        if not isinstance(distance, int):
            yield distance
        elif isinstance(index, Const):
            yield int_const(index.value + distance)
        else:
            yield index + int_const(distance) if distance > 0 else index - int_const(-distance) if distance else index


def _body(loop: For, pair: Pair, carry: Var, ints: Ints) -> Block:
    """The trip with both elements in scalars; its last result is the lead's."""
    inside = {loop.index, *loop.carries, *(t for s in loop.body.stmts for t in s.targets)}
    own = _accesses(loop, pair.number)
    assert own is not None
    lead: Value | None = None
    trail: Value = carry
    replaced: dict[Var, Value] = {}
    stmts: list[Stmt] = []
    newest: Value = loop.carries[pair.number]
    where: Sequence[Value] = ()
    for old in loop.body.stmts:
        let = substituted(old, replaced)
        assert isinstance(let, Let) and isinstance(old, Let)
        place = _distances(loop, old, inside, ints) if any(old is x for x in own) else None
        at_lead = place is not None and _same(place, pair.lead)
        if not at_lead and not (place is not None and _same(place, pair.trail)):
            stmts.append(let)
            newest = let.target if any(old is x for x in own) and old.op.access != "load" else newest
            continue
        kind = let.op.access
        if at_lead:
            if lead is None and kind != "store":
                with building() as b:
                    b.loc = let.loc
                    lead = ops.load(let.args[0], *position_of(let), index=let.params["index"])
                stmts += b.stmts
        else:
            where = position_of(let)
        value = lead if at_lead else trail
        if kind == "load":
            assert value is not None
            replaced[let.target] = value
            continue
        value = let.args[1] if kind == "store" else _sum(stmts, value, let)
        lead, trail = (value, trail) if at_lead else (lead, value)
        if pair.delayed:
            replaced[let.target] = let.args[0]
        else:
            stmts.append(Let(let.targets, ops.store, (let.args[0], value, *position_of(let)), let.params, let.loc))
            newest = let.target
    newest = replacement(newest, replaced)
    assert lead is not None
    if pair.delayed:
        with building() as b:
            b.loc = loop.loc
            newest = ops.store(newest, trail, *where, index=(At(),) * len(where))
        stmts += b.stmts
    results = [newest if k == pair.number else replacement(r, replaced) for k, r in enumerate(loop.body.results)]
    return Block(tuple(stmts), (*results, lead))


def _sum(stmts: list[Stmt], value: Value | None, let: Let) -> Value:
    with building() as b:
        b.loc = let.loc
        result: Value = value + let.args[1]  # type: ignore[operator]
    stmts += b.stmts
    return result
