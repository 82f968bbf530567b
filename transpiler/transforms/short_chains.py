"""Shorter ways from the adjoints that a trip of a reversed loop begins with to those that the next one begins with.

    before                                    after
    d_x = for k in n-1 .. -1 carry (d = c):   d_x = for k in n-1 .. -1 carry (d = c):
      p = multiply(d, a)                        s = multiply(a, r)
      q = multiply(p, r)                        w = subtract(s, b)
      u = multiply(d, b)                        d_1 = multiply(d, w)
      d_1 = subtract(q, u)                      yield d_1
      yield d_1

A processor waits for each product on the left before it begins the next, in this trip and the one after.  Adjoints are
linear in adjoints: what a trip does to one is a product with a coefficient that follows from values of the function
alone, and can be computed while the trips before are still on the way.  The coefficients are tangents, which forward
mode gives: of each value along the way, one for each *source*, an adjoint that comes from the trip before, or one that
is read from an array.

Only what is linear in adjoints is rearranged, nothing of the function itself; and only where the chain of a trip, not
the amount of arithmetic, is what takes the time.  A product of two partials may leave the range of numbers where the
adjoint times one of them does not, so only double precision, with range to spare, is rearranged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from .. import ops
from ..ir.build import Builder, building, const, current, located
from ..ir.dims import symbols_of
from ..ir.index import At
from ..ir.ints import Ints, factor_of
from ..ir.nodes import Block, Const, For, Let, Stmt, Value, Var
from ..ir.types import F64
from ..ir.walk import sizes_used
from ..ops.base import Lowering, Op, known_definitions
from ..optimize.simplify import fold_constants

SOURCES = 3         # that a value may follow from; one of more is a source itself
STATES = 12         # adjoints that a loop may carry
LONGEST = 200       # statements in a trip: in more, the arithmetic is what takes the time
CYCLES = 4          # that an addition or multiplication takes
MEMORY = 5          # cycles from a store to a load of the same element
AT_ONCE = 2         # additions that begin in one cycle
NONE = float("-inf")    # of a way
GAIN = 0.9          # of the time of a trip: for less, nothing changes


def shorten_chains(loop: For, count: int) -> For:
    """The loop, of which the first `count` carries are adjoints, with shorter chains where that pays."""
    if not 0 < count <= STATES or len(loop.body.stmts) > LONGEST or not all(
            isinstance(s, Let) for s in loop.body.stmts):
        return loop
    body: Sequence[Let] = loop.body.stmts       # type: ignore[assignment]
    ints = Ints(Block((*_lets_around(), loop), ()))
    slow = _slow_circles(loop, count, ints)
    if not slow:
        return loop
    best, least = loop.body, (GAIN * _cycles(loop, loop.body, count, ints), 0.0)
    for keeps_sums, rearranged in product((True, False), (slow, range(count))):
        with building() as b:
            results = _Rearranged(loop, body, count, keeps_sums, rearranged).emit()
        after = Block(tuple(_alive(b.stmts, results)), tuple(results))      # type: ignore[arg-type]
        cost = _cycles(loop, after, count, ints), _work(after)
        if cost < least:
            best, least = after, cost
    return loop if best is loop.body else replace(loop, body=best)


@dataclass(frozen=True)
class Combination:
    """A value as a sum of sources, each times a coefficient (None: once).  masks: a coefficient of 0 may be one of what
    was not taken, and hides all that the source is."""

    of: Mapping[Var, Value | None]
    masks: bool = False

    def times(self, source: Value, coefficient: Value) -> Value:
        """A source of 0 stays 0 where the coefficient leaves the range of numbers, which its factors might not have."""
        return (ops.chain if self.masks else ops.scale)(source, coefficient)


class _Rearranged:
    """Emits the body with every adjoint that goes on put together from its sources at the end.

    keeps_sums: a sum of sources is one itself where it is multiplied, rather than each of its terms.  rearranged: for
    which carries, by number; others get what they got.
    """

    def __init__(self, loop: For, body: Sequence[Let], count: int, keeps_sums: bool,
                 rearranged: Collection[int]) -> None:
        self.loop, self.body, self.count, self.keeps_sums = loop, body, count, keeps_sums
        self.rearranged = rearranged
        self.versions: set[Value] = {loop.carries[k] for k in rearranged}       # of arrays
        self.found: dict[Var, Combination] = {}
        # What does not change from trip to trip is a number like others.
        self.adjoints: set[Value] = {c for c, r in zip(loop.carries[:count], loop.body.results) if c is not r}
        self.known: dict[Var, Let] = {}
        self.made: dict[Value, Value] = {}
        self.ready: dict[Value, int] = {}           # cycles from the beginning of the trip

    def emit(self) -> list[Value]:
        with known_definitions(self.known):
            for carry in self.loop.carries[:self.count]:        # (of what is not among the adjoints nobody asks)
                self.found[carry] = Combination({carry: None})
                self.ready[carry] = 0
            for let in self.body:
                with located(let.loc):
                    self._statement(let)
            return [self._put_together(r) if k in self.rearranged else r for k, r in enumerate(self.loop.body.results)]

    def _statement(self, let: Let) -> None:
        if not self.adjoints.isdisjoint(let.args):
            self.adjoints.update(let.targets)
            if let.op.access in ("store", "add_at") and let.args[0] in self.versions:
                self.versions.update(let.targets)
                let = replace(let, args=(let.args[0], self._put_together(let.args[1]), *let.args[2:]))
        self._append(let)
        combination = self._combination(let) if len(let.targets) == 1 else None
        for target in let.targets:
            if target in self.adjoints:
                self.found[target] = combination or Combination({target: None})

    def _append(self, let: Let) -> None:
        current().stmts.append(let)
        self.known.update(dict.fromkeys(let.targets, let))
        after = [self.ready[a] for a in let.args if a in self.ready]
        if after:
            self.ready.update(dict.fromkeys(let.targets, max(after) + latency(let)))

    def _combination(self, let: Let) -> Combination | None:
        """None for what is not linear in the adjoints among the arguments, or adds something else to them."""
        places = [k for k, a in enumerate(let.args) if a in self.adjoints]
        jointly = next((s for s in let.op.linear_in if set(places) <= set(s)), None)
        if not places or jointly is None or let.target.type != F64:
            return None
        if any(let.args[k].type != F64 or (k not in places and not _is_zero(let.args[k])) for k in jointly):
            return None
        terms = {k: self._term(let.args[k], len(jointly) > 1) for k in places}
        sources = dict.fromkeys(source for term in terms.values() for source in term.of)
        if len(sources) > SOURCES:
            return None
        return Combination({source: self._coefficient(let, terms, source) for source in sources},
                           (let.op.masks and let.op.multiplies is None) or any(term.masks for term in terms.values()))

    def _term(self, value: Value, is_summed: bool) -> Combination:
        assert isinstance(value, Var)
        found = self.found[value]
        is_sum = len(found.of) > 1 and all(coefficient is None for coefficient in found.of.values())
        return Combination({value: None}) if self.keeps_sums and is_sum and not is_summed else found

    def _coefficient(self, let: Let, terms: Mapping[int, Combination], source: Var) -> Value | None:
        tangents: list[Value | None] = [None] * len(let.args)
        for k, term in terms.items():
            if source in term.of:
                coefficient = term.of[source]
                tangents[k] = const(1, F64) if coefficient is None else coefficient
        with building() as b:
            found = let.op.jvp(tangents, let.args, let.target, **let.params)
        value = self._emitted(b.stmts, found)
        return None if isinstance(value, Const) and value.value == 1 else value

    def _emitted(self, stmts: Sequence[Stmt], result: Value) -> Value:
        """Emit what is needed of the statements, simplified: factors of 1 go."""
        renamed: dict[Value, Value] = {}
        for let in _alive(stmts, [result]):         # type: ignore[arg-type]
            let = replace(let, args=tuple(renamed.get(a, a) for a in let.args))
            with building() as b:
                simpler = fold_constants(let)
                if simpler is None:
                    simpler = let.op.simplify(let.args, **let.params)
            for made in b.stmts:
                self._append(made)                  # type: ignore[arg-type]
            if simpler is None:
                self._append(let)
            else:
                renamed[let.target] = simpler
        return renamed.get(result, result)

    def _put_together(self, value: Value) -> Value:
        """The sum, what is ready last added last."""
        combination = self.found.get(value) if isinstance(value, Var) else None
        if combination is None or list(combination.of) == [value]:
            return value
        if value not in self.made:
            let = self.known[value]             # type: ignore[index]
            with located(let.loc):
                self.made[value] = self._sum(combination, let.op if let.op.any_order else ops.add)
        return self.made[value]

    def _sum(self, combination: Combination, plus: Op) -> Value:
        waiting = []
        for source, coefficient in combination.of.items():
            term: Value = source
            if coefficient is not None:
                with building() as b:
                    term = combination.times(source, coefficient)
                term = self._emitted(b.stmts, term)
            waiting.append(term)
        while len(waiting) > 1:
            waiting.sort(key=lambda v: self.ready.get(v, 0))
            one, other = waiting[:2]
            with building() as b:
                total = plus(one, other)
            waiting[:2] = [self._emitted(b.stmts, total)]
        return waiting[0]


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 0


def _alive(stmts: Sequence[Let], results: Sequence[Value]) -> list[Let]:
    """What the results need: arguments, and the ints that sizes are named after."""
    read: set[Value] = set(results)
    sizes = {s for r in results for d in r.type.shape for s in symbols_of(d)}
    found = []
    for let in reversed(stmts):
        if not read.isdisjoint(let.targets) or not sizes.isdisjoint(t.name for t in let.targets):
            read.update(let.args)
            sizes.update(sizes_used(let))
            found.append(let)
    return found[::-1]


# --- how long a trip takes ---------------------------------------------------------------------------------------


def latency(let: Let) -> int:
    """Cycles from the last argument to the result."""
    if let.op.access is not None:
        return MEMORY if let.op.access == "load" else CYCLES
    return CYCLES * let.op.cost if let.op.lowering is Lowering.ELEMENTWISE else 0


def _cycles(loop: For, block: Block, count: int, ints: Ints) -> float:
    """About how long a trip takes: as long as the slowest circle through what goes from trip to trip, or as all the
    arithmetic."""
    return max(_work(block), _slowest_circle(_ways(loop, block, count, ints)))


def _work(block: Block) -> float:
    """Cycles for the arithmetic of a trip; what chooses besides counts twice."""
    return sum(let.op.cost * (1 + let.op.masks) for let in _alive(block.stmts, block.results)       # type: ignore
               if let.op.lowering is Lowering.ELEMENTWISE) / AT_ONCE


def _slow_circles(loop: For, count: int, ints: Ints) -> list[int]:
    """The carries on circles that take longer than the arithmetic."""
    ways = _ways(loop, loop.body, count, ints)
    reached = [[way != NONE for way in row] for row in ways]
    for k, s, t in product(range(count), repeat=3):
        reached[s][t] = reached[s][t] or (reached[s][k] and reached[k][t])
    work = _work(loop.body)
    found = []
    for k in range(count):
        circle = [t for t in range(count) if reached[k][t] and reached[t][k]]
        if _slowest_circle([[ways[s][t] for t in circle] for s in circle]) > work:
            found.append(k)
    return found


def _ways(loop: For, block: Block, count: int, ints: Ints) -> list[list[float]]:
    """The longest way from each adjoint at the beginning of a trip to each at its end."""
    body, results = _alive(block.stmts, block.results), block.results[:count]       # type: ignore[arg-type]
    recurring = _recurring(loop, body, ints)
    rows = []
    for carry, _ in zip(loop.carries, results, strict=False):
        ready: dict[Value, float] = {carry: 0}
        for let in body:
            if let.op.access == "load" and let not in recurring:
                continue
            after = [ready[a] + (0 if k == 0 and let.op.access in ("store", "add_at") else latency(let))
                     for k, a in enumerate(let.args) if a in ready
                     and (k == 0 or let in recurring or let.op.access not in ("store", "add_at"))]
            if after:
                ready.update(dict.fromkeys(let.targets, max(after)))
        rows.append([ready.get(r, NONE) for r in results])
    return rows


def _recurring(loop: For, body: Sequence[Let], ints: Ints) -> set[Let]:
    """Loads that may read what an earlier trip wrote, and the writes that they may read."""
    root: dict[Value, Value] = {}
    loads: list[tuple[Let, Value]] = []
    written: dict[Value, list[Let]] = {}
    for let in body:
        if let.op.access is None:
            continue
        first = root.setdefault(let.args[0], let.args[0])
        if let.op.access == "load":
            loads.append((let, first))
        else:
            root[let.target] = first
            written.setdefault(first, []).append(let)
    return {let for load, first in loads for write in written.get(first, ())
            if _comes_back(ints, loop, load, write) for let in (load, write)}


def _lets_around() -> Iterator[Let]:
    around: Builder | None = current()
    while around is not None:
        yield from (s for s in around.stmts if isinstance(s, Let))
        around = around.outer


def _comes_back(ints: Ints, loop: For, load: Let, write: Let) -> bool:
    """Whether a later trip may load what this one writes."""
    if not isinstance(loop.step, Const) or any(not isinstance(item, At) for let in (load, write)
                                               for item in let.params["index"]):
        return True
    trips: set[float] = set()
    for one, other in zip(load.args[1:], write.args[2:], strict=True):
        place, apart = ints.dim(one), ints.dim(other) - ints.dim(one)
        moves = loop.index.name in symbols_of(place)
        factor = factor_of(place, loop.index.name) if moves else 0
        if moves != (loop.index.name in symbols_of(ints.dim(other))):
            return False        # once in all trips
        if not isinstance(apart, int) or factor is None:
            return True
        if moves:
            trips.add(apart / (factor * loop.step.value))
        elif apart:
            return False
    return not trips or (len(trips) == 1 and trips.pop() > 0)


def _slowest_circle(ways: Sequence[Sequence[float]]) -> float:
    """The greatest mean of a circle's ways (R. M. Karp, "A characterization of the minimum cycle mean in a digraph",
    Discrete Mathematics 23, 1978)."""
    n = len(ways)
    longest = [[0.0] * n]
    for _ in range(n):
        longest.append([max(longest[-1][s] + ways[s][t] for s in range(n)) for t in range(n)])
    means = [min((longest[n][t] - longest[k][t]) / (n - k) for k in range(n)) for t in _finite(longest[n])]
    return max(means, default=0.0)


def _finite(row: Sequence[float]) -> Iterator[int]:
    return (k for k, x in enumerate(row) if x != NONE)
