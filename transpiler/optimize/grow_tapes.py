"""Loops that count the trips of a loop with tapes are made one with it: it runs once, and its tapes grow.

    before                                   after
    x, n = while carry (v = x0, c = 0):      x, n, room, t = while carry (v = x0, c = 0, room = 64, t = empty (64,)):
      cond: p(v)                               cond: p(v)
      do: yield f(v), c + 1                    do:
    m = maximum(n, 0)                            room_1, t_1 = if c == room: twice the room, and what was there
    e = empty (m,)                                             else: room, t
    x, t = for k in 0 .. n                       yield f(v), c + 1, room_1, store(t_1, v, c)
        carry (v = x0, t = e):               m = maximum(n, 0)
      yield f(v), store(t, v, k)

The transforms count loops first (`transforms.counted`), since tapes of a known size are arrays like others, which can
be differentiated again and have a place in StableHLO; only then are the two made one.  The k-th trip of one is done
with the k-th of the other, which is right whatever they compute.  What both compute is found by numbering values
(`_Numbers`): carries that begin as equals and go on as equals are equal, and are carried once.

A tape that does not fit in memory is a MemoryError that names the loop.  Inside of parallel loops everything stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import Names, building, check, const, current, int_const, size_value
from ..ir.dims import product, symbol, symbols_of
from ..ir.index import Span
from ..ir.ints import LOWEST
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import I64, Type
from ..ir.walk import (
    Copier,
    all_statements,
    blocks,
    bound_inside,
    operands,
    reads,
    sizes_used,
    substituted,
    used_names,
    with_blocks,
    with_body,
    with_contents,
)
from .dead_code import live

ROOM = 64           # rows of a tape of numbers to begin with
ROOM_OF_ARRAYS = 8  # and of one of arrays
TOO_LONG = "what the derivative keeps of each trip of the loop does not fit in memory"


def grow_tapes(func: Func) -> Func:
    if not any(isinstance(s, While) for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        return with_body(func, _visit(func.body, {n for s in all_statements(func.body) for n in sizes_used(s)}))


def _visit(block: Block, sizes: set[str]) -> Block:
    """sizes: names that sizes have anywhere."""
    stmts = [with_blocks(s, [_visit(b, sizes) for b in blocks(s)]) if not (isinstance(s, For) and s.parallel) else s
             for s in block.stmts]
    results = block.results
    at = 0
    while at < len(stmts):
        stmt = stmts[at]
        pair = _pair(stmts, at) if isinstance(stmt, While) else None
        if pair is not None:
            made, replaced = _joined(pair, sizes)
            stmts[at:] = [*pair.before, *made, *(substituted(s, replaced) for s in stmts[pair.end + 1:])]
            results = tuple(replaced.get(r, r) if isinstance(r, Var) else r for r in results)
            at += len(pair.before)
        at += 1
    return with_contents(block, stmts, results)


@dataclass(frozen=True)
class Pair:
    """count: the loop that counts, its count as the carry of that number.  loop: the one counted.  rows: the name of
    the length of its tapes.  tapes: which of its carries these are.  before, after: what stands between the two, by
    where it goes; end: where the second stands."""

    count: While
    number: int
    loop: For
    rows: str
    tapes: tuple[int, ...]
    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]
    end: int


def _pair(stmts: Sequence[Stmt], at: int) -> Pair | None:
    count = stmts[at]
    assert isinstance(count, While)
    made = set(count.targets)
    before: list[Stmt] = []
    after: list[Stmt] = []
    lengths: set[str] = set()
    unset: dict[Var, Stmt] = {}
    for end in range(at + 1, len(stmts)):
        stmt = stmts[end]
        if isinstance(stmt, For) and stmt.hi in count.targets:
            rest = stmts[end + 1:]
            own = {v: made for v, made in unset.items()
                   if not any(v in operands(s) or any(v in reads(b) for b in blocks(s)) for s in rest)}
            return _fitting(count, stmt, lengths, own, before, after, end)
        names = {v.name for v in made}
        depends = not made.isdisjoint(operands(stmt)) or not names.isdisjoint(sizes_used(stmt)) or any(
            not (made | names).isdisjoint(reads(b)) for b in blocks(stmt))
        if not isinstance(stmt, Let) and (isinstance(stmt, (Check, Call)) or (
                (depends or isinstance(stmt, While)) and not _is_silent(stmt))):
            return None         # what can be told from outside stays where it is
        if not depends and not isinstance(stmt, While):
            before.append(stmt)
            continue
        made.update(stmt.targets)
        after.append(stmt)
        if not isinstance(stmt, Let):
            continue
        if _is_length(stmt, count):
            lengths.add(stmt.target.name)
        elif stmt.op.is_unset:
            unset[stmt.target] = stmt
    return None


def _is_silent(stmt: Stmt) -> bool:
    """Whether all that a loop or branch does is to give its results."""
    return not any(isinstance(s, (Check, Call)) or (isinstance(s, Let) and not s.op.is_pure)
                   for b in blocks(stmt) for s in all_statements(b))


def _is_length(let: Let, count: While) -> bool:
    """Whether it is `maximum(trips, 0)`."""
    return any(_dim_of(let) == dims.maximum(symbol(t.name, LOWEST), 0) for t in count.targets if t in let.args)


def _dim_of(let: Let) -> Any:
    """What an operation on int scalars gives, as a dimension; None for others."""
    if any(a.type != I64 for a in (*let.args, *let.targets)):
        return None
    args = [a.value if isinstance(a, Const) else symbol(a.name, LOWEST) for a in let.args]
    return let.op.as_dimension(*args, **let.params)


def _fitting(count: While, loop: For, lengths: set[str], unset: Mapping[Var, Stmt], before: Sequence[Stmt],
             after: Sequence[Stmt], end: int) -> Pair | None:
    """The pair, if the second loop needs nothing of the first but its count, and that for the tapes alone."""
    number = count.targets.index(loop.hi)  # type: ignore[arg-type]
    if not _counts(count, number) or not _is(loop.lo, 0) or not _is(loop.step, 1) or loop.parallel:
        return None
    tapes = tuple(k for k, c in enumerate(loop.carries) if _rows_of(c.type) in lengths)
    rows = {_rows_of(loop.carries[k].type) for k in tapes}
    if len(rows) != 1:
        return None
    (length,) = rows
    assert length is not None
    begins = [loop.inits[k] for k in tapes if not isinstance(loop.inits[k], Const)]
    if any(init not in unset for init in begins) or len(set(begins)) < len(begins) or any(
            length in symbols_of(d) for k, carry in enumerate(loop.carries) for d in carry.type.shape[k in tapes:]):
        return None         # a tape of a batch has its rows in the second axis
    late = {t for s in after for t in s.targets} | set(count.targets)
    inits = {v for k, v in enumerate(loop.inits) if k not in tapes}
    inside = {v for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s))}
    read = reads(loop.body) - inside - {*loop.carries, loop.index}
    sizes = {v.name for v in late} - {length}
    if not late.isdisjoint(inits | read) or not sizes.isdisjoint(n for n in read if isinstance(n, str)) or (
            loop.index.name in read):
        return None
    if any(length in sizes_used(s) and not _is_of_tapes(s) for s in all_statements(loop.body)) or any(
            length in symbols_of(d) for v in read if isinstance(v, Var) for d in v.type.shape):
        return None
    if any(isinstance(s, (Check, Call)) and (isinstance(s, Call) or s.prints) for s in all_statements(loop.body)):
        return None
    kept = tuple(s for s in after if s not in [unset.get(loop.inits[k]) for k in tapes])  # type: ignore[arg-type]
    read_later = {v for s in kept for v in operands(s)}
    if any(loop.inits[k] in read_later for k in tapes):
        return None
    return Pair(count, number, loop, length, tapes, tuple(before), kept, end)


def _is_of_tapes(stmt: Stmt) -> bool:
    """Whether it stores to a tape or reads one, or is a statement around such."""
    if isinstance(stmt, Let):
        return stmt.op.access in ("store", "load") and not any(
            isinstance(item, Span) and symbols_of(item.size) and item is stmt.params["index"][0]
            for item in stmt.params["index"])
    return isinstance(stmt, (If, For))


def _rows_of(type: Type) -> str | None:
    """The name that the first axis is as long as."""
    return str(type.shape[0]) if type.shape and not isinstance(type.shape[0], int) else None


def _is(value: Value, number: int) -> bool:
    return isinstance(value, Const) and value.value == number


def _counts(loop: While, k: int) -> bool:
    """Whether the carry k is 0, then 1 more in each trip."""
    result = loop.body.results[k]
    made = next((s for s in loop.body.stmts if result in s.targets), None)
    return _is(loop.inits[k], 0) and isinstance(made, Let) and _dim_of(made) == symbol(loop.carries[k].name, LOWEST) + 1


# ---------------------------------------------------------------------------------------------------------------
# the loop that is both


def _joined(pair: Pair, sizes: set[str]) -> tuple[list[Stmt], dict[Var, Value]]:
    """The statements in place of both, and what is to be read for the targets of them that are gone."""
    count, loop = pair.count, pair.loop
    equal = {k: j for k, j in _equal_carries(pair).items() if loop.targets[k].name not in sizes}
    outer = current()
    own = [k for k in range(len(loop.carries)) if k not in equal and k not in pair.tapes]
    copier = Copier()
    carries = [copier.bind(loop.carries[k]) for k in own]
    room = outer.var(I64, "room")
    tapes = [_named_as(loop.inits[k], outer.var(_with_rows(loop.carries[k].type, room), loop.carries[k].name))
             for k in pair.tapes]
    first = ROOM if all(len(t.type.shape) == 1 for t in tapes) else ROOM_OF_ARRAYS
    with building() as begin:
        inits = [_unset(loop.inits[k], _with_rows(loop.carries[k].type, first), t.name)
                 for k, t in zip(pair.tapes, tapes)]
    with building(loc=loop.loc) as b:
        more, *grown = _grown(pair, count.carries[pair.number], room, tapes)
        copier.stand_for(loop.index, count.carries[pair.number])
        for k, j in equal.items():
            copier.stand_for(loop.carries[k], count.carries[j])
        copier.values.update((loop.carries[k], t) for k, t in zip(pair.tapes, grown))
        copier.sizes[pair.rows] = symbol(more.name, 0)
        bodies = [(loop.body, copier), (count.body, Copier())]
        if _checks(count.body) - _checks(loop.body):
            bodies.reverse()            # what is checked comes before what must have been checked
        _emit_once(bodies)
        results = {body: [own_copier.value(r) for r in body.results] for body, own_copier in bodies}
    end = outer.var(I64, "room")
    last = [outer.var(_with_rows(loop.targets[k].type, end), loop.targets[k].name) for k in pair.tapes]
    made = While((*count.targets, *(loop.targets[k] for k in own), end, *last),
                 (*count.carries, *carries, room, *tapes),
                 (*count.inits, *(loop.inits[k] for k in own), int_const(first), *inits), count.cond,
                 Block(tuple(b.stmts), (*results[count.body], *(results[loop.body][k] for k in own), more,
                                        *(results[loop.body][k] for k in pair.tapes))), loop.loc or count.loc)
    replaced: dict[Var, Value] = {loop.targets[k]: count.targets[j] for k, j in equal.items()}
    with building(loc=loop.loc) as behind:
        replaced.update((loop.targets[k], _as_long_as_needed(pair, tape)) for k, tape in zip(pair.tapes, last))
    return [*begin.stmts, made, *pair.after, *behind.stmts], replaced


def _checks(block: Block) -> Counter[Any]:
    """How often the block checks what."""
    return Counter((s.kind, s.message, s.loc) for s in all_statements(block) if isinstance(s, Check))


def _named_as(init: Value, tape: Var) -> Var:
    """The tape with the name of what it began as, which is gone."""
    return Var(init.name, tape.type) if isinstance(init, Var) else tape


def _emit_once(bodies: Sequence[tuple[Block, Copier]]) -> None:
    """Emit both; of what the second has in common with the first nothing more."""
    numbers = _Numbers()
    for body, copier in bodies:
        for stmt in body.stmts:
            known = numbers.known(stmt, copier)
            if known is None:
                copier.statement(stmt)
                numbers.add(current().stmts[-1])
            else:
                for target, value in zip(stmt.targets, known):
                    copier.stand_for(target, value)


def _as_long_as_needed(pair: Pair, tape: Var) -> Value:
    """The rows of the tape that were written."""
    rest = tuple(Span(0, d) for d in tape.type.shape[1:])
    value: Value = ops.load(tape, index=(Span(0, symbol(pair.rows, 0)), *rest))
    return value


def _with_rows(type: Type, rows: Var | int) -> Type:
    return type.with_shape((rows if isinstance(rows, int) else symbol(rows.name, 0), *type.shape[1:]))


def _unset(init: Value, type: Type, name: str) -> Value:
    """What a tape begins as, or has in the rows that are new."""
    if isinstance(init, Const):
        return const(init.value, type)
    made: Value = ops.empty(shape=type.shape, dtype=type.dtype)
    if isinstance(made, Var):
        made.name = current().names.fresh(name)
    return made


def _grown(pair: Pair, counter: Var, room: Var, tapes: Sequence[Var]) -> list[Var]:
    """Emit the branch that doubles the tapes where they are full; the room that there is then, and the tapes."""
    outer = current()
    targets = [outer.var(I64, "room")]
    targets += [outer.var(_with_rows(t.type, targets[0]), t.name) for t in tapes]
    is_full = counter.eq(room)
    with building() as b:
        more = room * 2
        assert isinstance(more, Var)
        row: Any = sum(product(t.type.shape[1:]) * np.dtype(t.type.dtype).itemsize for t in tapes)
        check(ops.fits_in_memory((more + room) * size_value(row)), "MemoryError", TOO_LONG)
        values: list[Value] = [more]
        for k, tape in zip(pair.tapes, tapes):
            base = _unset(pair.loop.inits[k], _with_rows(tape.type, more), tape.name)
            rest = tuple(Span(0, d) for d in tape.type.shape[1:])
            values.append(ops.store(base, tape, index=(Span(0, symbol(room.name, 0)), *rest)))
    outer.stmts.append(If(tuple(targets), is_full, Block(tuple(b.stmts), tuple(values)), Block((), (room, *tapes)),
                          outer.loc))
    return targets


# ---------------------------------------------------------------------------------------------------------------
# what both loops compute


def _equal_carries(pair: Pair) -> dict[int, int]:
    """Carries of the second loop with those of the first that are equal to them in every trip."""
    count, loop = pair.count, pair.loop
    equal = {}
    for k, (carry, init) in enumerate(zip(loop.carries, loop.inits)):
        found = [j for j, (c, i) in enumerate(zip(count.carries, count.inits))
                 if c.type == carry.type and _same(i, init) and j != pair.number] if k not in pair.tapes else []
        if found:
            equal[k] = next((j for j in found if _plain(count.carries[j].name) == _plain(carry.name)), found[0])
    while True:
        numbers = _Numbers({loop.index: count.carries[pair.number],
                            **{loop.carries[k]: count.carries[j] for k, j in equal.items()}})
        for stmt in (*count.body.stmts, *loop.body.stmts):
            numbers.add(stmt)
        wrong = [k for k, j in equal.items()
                 if numbers.of(loop.body.results[k]) != numbers.of(count.body.results[j])]
        if not wrong:
            return equal
        for k in wrong:
            del equal[k]


def _plain(name: str) -> str:
    return name.rstrip("0123456789_")


def _same(a: Value, b: Value) -> bool:
    return a is b or (isinstance(a, Const) and isinstance(b, Const) and repr(a.value) == repr(b.value)
                      and a.type == b.type)


class _Numbers:
    """Values with equal numbers are equal.  Operations are numbered by what they are of, branches result by result,
    loops by all that a result goes through from trip to trip."""

    def __init__(self, equal: Mapping[Var, Var] | None = None, around: _Numbers | None = None) -> None:
        """around: the numbers outside of a loop whose body this is for."""
        self._equal = equal or {}
        self._of: dict[Var, Any] = {} if around is None else dict(around._of)
        self._number: dict[Any, int] = {} if around is None else around._number
        self._first: dict[int, Var] = {}
        self._depth: int = 0 if around is None else around._depth + 1

    def of(self, value: Value) -> Any:
        if isinstance(value, Const):
            return repr(value.value), value.type
        value = self._equal.get(value, value)
        return self._of.get(value, value)

    def add(self, stmt: Stmt, is_nested: bool = False) -> None:
        for target, key in zip(stmt.targets, self._keys(stmt)):
            number = self._number.setdefault(key, len(self._number))
            self._of[target] = number
            if not is_nested:           # what an arm has is out of reach behind it
                self._first.setdefault(number, target)

    def known(self, stmt: Stmt, copier: Copier) -> list[Var] | None:
        """The values that the statement's copy would give, where all of them are there already."""
        inside = [stmt, *(s for b in blocks(stmt) for s in all_statements(b))]
        if not isinstance(stmt, (Let, If, For)) or any(isinstance(s, (Call, While)) or (
                isinstance(s, Check) and s.prints) for s in inside) or any(
                    symbols_of(d).keys() & copier.sizes.keys() for t in stmt.targets for d in t.type.shape):
            return None
        own = _Numbers({old: new for old, new in copier.values.items() if isinstance(new, Var)})
        own._of, own._number = dict(self._of), dict(self._number)
        found = [self._first.get(own._number.get(key, -1)) for key in own._keys(stmt)]
        return found if found and all(v is not None for v in found) else None  # type: ignore[return-value]

    def _keys(self, stmt: Stmt) -> Iterable[Any]:
        match stmt:
            case Let() if stmt.op.is_pure and stmt.op.is_shareable:
                params = tuple(sorted(stmt.params.items(), key=lambda item: item[0]))
                key = (stmt.op.name, tuple(map(self.of, stmt.args)), params, tuple(t.type for t in stmt.targets))
                return [(key, k) for k in range(len(stmt.targets))]
            case If():
                for block in (stmt.then, stmt.orelse):
                    for inner in block.stmts:
                        self.add(inner, is_nested=True)
                pred = self.of(stmt.pred)
                return [("if", pred, self.of(a), self.of(b)) for a, b in zip(stmt.then.results, stmt.orelse.results)]
            case For():
                return [self._loop(stmt, k) for k in range(len(stmt.targets))]
            case _:
                return [(stmt, k) for k in range(len(stmt.targets))]

    def _loop(self, loop: For, k: int) -> Any:
        """The key of a loop's result: the range, and how the carries that it depends on begin and go on."""
        through = _feeding(loop, k)
        own = _Numbers(self._equal, self)
        own._of[loop.index] = ("index", own._depth)
        own._of.update((loop.carries[j], ("carry", own._depth, place)) for place, j in enumerate(through))
        for stmt in loop.body.stmts:
            own.add(stmt, is_nested=True)
        way = tuple((self.of(loop.inits[j]), own.of(loop.body.results[j])) for j in through)
        return "for", *map(self.of, (loop.lo, loop.hi, loop.step)), way, through.index(k)


def _feeding(loop: For, k: int) -> list[int]:
    """The carries that a carry depends on, itself among them."""
    found = {k}
    while True:
        block = live(Block(loop.body.stmts, tuple(loop.body.results[j] for j in sorted(found))))
        read = reads(block)
        more = found | {j for j, carry in enumerate(loop.carries) if carry in read or carry.name in read}
        if more == found:
            return sorted(found)
        found = more
