"""How great an int of a func can get at most, and how small: what the loops and branches around say.

    t, y, broke, trips = while carry (t = 0, y = x, broke = False, count = 0):
      cond: t < 5 and not broke                                  trips is at most 5
      do: yield t + 1, f(y), g(y), count + 1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from .dims import DimCall, DimExpr, Symbol, substitute
from .ints import Ints
from .nodes import Const, For, Func, If, Let, Stmt, Value, Var, While
from .simulated import simulated_trips
from .types import I64
from .walk import all_statements

DEEPEST = 40        # ints looked through
NOTHING = "nothing"
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_LESS = {"<": (False, False), "<=": (False, True), ">": (True, False), ">=": (True, True)}     # swapped; or equal


class Bounds:
    """max_trips: of a loop of which nothing else is known; `assumed` then has the loops taken at their word."""

    def __init__(self, func: Func, max_trips: int | None = None) -> None:
        self.ints = Ints(func.body)
        self.max_trips = max_trips
        self.assumed: list[For | While] = []
        self._owner: dict[str, tuple[Stmt, int]] = {}           # of targets
        self._carry: dict[str, tuple[Stmt, int]] = {}
        self._simulated: dict[While, int | None] = {}
        self._let: dict[Var, Let] = {}
        self._branch: dict[Var, tuple[If, int]] = {}            # of targets
        self._named: dict[str, Let] = {}
        self._arrays: dict[Value, list[Value]] = {}             # what an array of ints that is carried may be
        for stmt in all_statements(func.body):
            if isinstance(stmt, (For, While, If)):
                self._owner.update({t.name: (stmt, k) for k, t in enumerate(stmt.targets) if t.type == I64})
            if isinstance(stmt, (For, While)):
                self._carry.update({c.name: (stmt, k) for k, c in enumerate(stmt.carries) if c.type == I64})
            if isinstance(stmt, Let) and len(stmt.targets) == 1:
                self._let[stmt.target] = stmt
                self._named[stmt.target.name] = stmt
            elif isinstance(stmt, If):
                self._branch.update({t: (stmt, k) for k, t in enumerate(stmt.targets)})
                arms = zip(stmt.then.results, stmt.orelse.results)
                self._arrays.update({t: [*s] for t, s in zip(stmt.targets, arms)})
            elif isinstance(stmt, (For, While)):
                sources = list(zip(stmt.inits, stmt.body.results))
                self._arrays.update({t: [*s] for t, s in zip(stmt.targets, sources)})
                self._arrays.update({c: [*s] for c, s in zip(stmt.carries, sources)})

    def exact(self, value: Value) -> int | None:
        """Its value, where it is the same in every run."""
        found = self.ints.dim(value)
        return found if isinstance(found, int) else None

    def high(self, value: Value) -> int | None:
        """None: it is not known to be bounded."""
        return self._of(self.ints.dim(value), True, DEEPEST)

    def low(self, value: Value) -> int | None:
        return self._of(self.ints.dim(value), False, DEEPEST)

    def of(self, dim: Any, *, most: bool) -> int | None:
        """The same of a sum of ints: the most, or the least, that it is."""
        return self._of(dim, most, DEEPEST)

    # --- of sums -------------------------------------------------------------------------------------------------

    def _of(self, dim: Any, most: bool, depth: int) -> int | None:
        if isinstance(dim, int):
            return dim
        if not depth:
            return None
        assert isinstance(dim, DimExpr)
        total = 0
        for monomial, factor in dim.terms:
            bound = self._product(monomial, most == (factor > 0), depth) if monomial else 1
            if bound is None:
                return None
            total += factor * bound
        return total

    def _product(self, atoms: Sequence[Any], most: bool, depth: int) -> int | None:
        if len(atoms) == 1:
            return self._atom(atoms[0], most, depth)
        lows = [self._atom(a, False, depth) for a in atoms]
        found = [self._atom(a, most, depth) for a in atoms]
        if any(low is None or low < 0 for low in lows) or any(f is None for f in found):
            return None
        return prod(f for f in found if f is not None)

    def _atom(self, atom: Any, most: bool, depth: int) -> int | None:
        return self._call(atom, most, depth) if isinstance(atom, DimCall) else self._symbol(atom, most, depth - 1)

    def _call(self, call: DimCall, most: bool, depth: int) -> int | None:
        a, b = call.args
        if call.kind in ("max", "min"):
            found = [self._of(x, most, depth) for x in (a, b)]
            known = [f for f in found if f is not None]
            one_is_enough = most == (call.kind == "min")
            if not known or (len(known) < 2 and not one_is_enough):
                return None
            return min(known) if call.kind == "min" else max(known)
        if not isinstance(b, int) or b <= 0:
            return None
        if call.kind == "mod":
            return b - 1 if most else 0
        inside = self._of(a, most, depth)
        return None if inside is None else inside // b

    def _symbol(self, symbol: Symbol, most: bool, depth: int) -> int | None:
        name = symbol.name
        if name in self.ints.loop:
            return self._index(self.ints.loop[name], most, depth)
        if name in self._carry:
            return self._counted(*self._carry[name], most, depth)
        if name in self._owner:
            stmt, k = self._owner[name]
            if not isinstance(stmt, If):
                return self._counted(stmt, k, most, depth)
            sides = [self._of(self.ints.dim(b.results[k]), most, depth) for b in (stmt.then, stmt.orelse)]
            known = [s for s in sides if s is not None]
            return None if len(known) < 2 else max(known) if most else min(known)
        let = self._named.get(name)
        if let is not None and let.op.access == "load" and let.args[0].type.dtype == "int64":
            found = self._elements(let.args[0], most, depth, set())
            return found if isinstance(found, int) else None
        return symbol.low if not most and symbol.low >= 0 else None

    # --- of arrays -----------------------------------------------------------------------------------------------

    def _elements(self, array: Value, most: bool, depth: int, seen: set[Value]) -> int | str | None:
        """The bound of all elements that were written to an array; NOTHING where none were."""
        if isinstance(array, Const):
            return int(array.value)
        if array in seen:
            return NOTHING
        seen.add(array)
        let = self._let.get(array)
        if let is not None:
            if let.op.is_unset:
                return NOTHING
            if let.op.access == "load":
                return self._elements(let.args[0], most, depth, seen)
            if let.op.access != "store":
                return None
            value = let.args[1]
            new = self._elements(value, most, depth, seen) if value.type.shape else self._of(
                self.ints.dim(value), most, depth)
            return _wider(self._elements(let.args[0], most, depth, seen), new, most)
        if array not in self._arrays:
            return None
        found: int | str | None = NOTHING
        for source in self._arrays[array]:
            found = _wider(found, self._elements(source, most, depth, seen), most)
        return found

    # --- of loops ------------------------------------------------------------------------------------------------

    def _index(self, loop: For, most: bool, depth: int) -> int | None:
        if not isinstance(loop.step, Const):
            return None
        up = loop.step.value > 0
        if most != up:
            return self._of(self.ints.dim(loop.lo), most, depth)
        last = self._of(self.ints.dim(loop.hi), most, depth)
        return None if last is None else last + (-1 if up else 1)

    def _counted(self, stmt: Stmt, k: int, most: bool, depth: int) -> int | None:
        """A carry to which each trip adds one of some numbers, or that is the greatest or smallest int so far."""
        assert isinstance(stmt, (For, While))
        first = self._of(self.ints.dim(stmt.inits[k]), most, depth)
        if first is None:
            return None
        changes = self._changes(stmt, k, depth)
        if changes is None:
            return self._extreme(stmt, k, first, most, depth)
        change = max(0, changes[1]) if most else min(0, changes[0])
        trips = self._trips(stmt, depth) if change else 0
        return None if trips is None else first + change * trips

    def _changes(self, stmt: For | While, k: int, depth: int) -> tuple[int, int] | None:
        """The least and the most that a trip adds to a carry."""
        return self._ahead(self.ints.dim(stmt.body.results[k]), {stmt.carries[k].name: (0, 0)}, depth)

    def _ahead(self, dim: Any, known: dict[str, tuple[int, int] | None], depth: int) -> tuple[int, int] | None:
        """How far an int is from a carry, at least and at most.  known: of names, first of the carry's own."""
        symbol = next((m[0] for m, _ in dim.terms if m and isinstance(m[0], Symbol)), None) if isinstance(
            dim, DimExpr) else None
        rest = None if symbol is None else dim - DimExpr((((symbol,), 1),))
        if symbol is None or not isinstance(rest, int) or not depth:
            return None
        if symbol.name not in known:
            known[symbol.name] = self._owner_ahead(symbol.name, known, depth - 1)
        found = known[symbol.name]
        return None if found is None else (found[0] + rest, found[1] + rest)

    def _owner_ahead(self, name: str, known: dict[str, tuple[int, int] | None], depth: int) -> tuple[int, int] | None:
        stmt, k = self._owner.get(name, (None, 0))
        if isinstance(stmt, If):
            sides = [self._ahead(self.ints.dim(b.results[k]), known, depth) for b in (stmt.then, stmt.orelse)]
            lows, highs = [s[0] for s in sides if s is not None], [s[1] for s in sides if s is not None]
            return (min(lows), max(highs)) if len(lows) == 2 else None
        if not isinstance(stmt, (For, While)):
            return None
        first, changes = self._ahead(self.ints.dim(stmt.inits[k]), known, depth), self._changes(stmt, k, depth)
        trips = self._trips(stmt, depth) if first is not None and changes is not None else None
        if first is None or changes is None or trips is None:
            return None
        return first[0] + trips * min(0, changes[0]), first[1] + trips * max(0, changes[1])

    def _extreme(self, stmt: For | While, k: int, first: int, most: bool, depth: int) -> int | None:
        """The bound of a carry that is always one of some ints, such as the greatest so far: of all of these."""
        seen, found = {stmt.carries[k].name}, first
        pending = [self.ints.dim(stmt.body.results[k])]
        while pending:
            dim = pending.pop()
            atom = _only_atom(dim)
            if isinstance(atom, Symbol) and atom.name in seen:
                continue
            choices = self._choices(atom)
            if choices:
                seen |= {atom.name} if isinstance(atom, Symbol) else set()
                pending += choices
                continue
            bound = self._of(dim, most, depth - 1)
            if bound is None:
                return None
            found = max(found, bound) if most else min(found, bound)
        return found

    def _choices(self, atom: Any) -> list[Any]:
        """Ints one of which this is, none where it may be another."""
        if isinstance(atom, DimCall):
            return list(atom.args) if atom.kind in ("max", "min") else []
        name = atom.name if isinstance(atom, Symbol) else None
        if name not in self._carry and name not in self._owner:
            return []
        stmt, k = self._carry[name] if name in self._carry else self._owner[name]
        if isinstance(stmt, If):
            values = (stmt.then.results[k], stmt.orelse.results[k])
        else:
            assert isinstance(stmt, (For, While))
            if self._change(stmt, k) is not None:
                return []
            values = (stmt.inits[k], stmt.body.results[k])
        return [self.ints.dim(v) for v in values]

    def _change(self, stmt: For | While, k: int) -> int | None:
        change = self.ints.dim(stmt.body.results[k]) - self.ints.dim(stmt.carries[k])
        return change if isinstance(change, int) else None

    def _least_change(self, stmt: While, k: int, arms: Mapping[Value, bool], depth: int) -> int | None:
        """What each trip that goes on adds to a carry at least, or takes away; None where it may do either."""
        result = stmt.body.results[k]
        while isinstance(result, Var) and (branch := self._branch.get(result, (None, 0))[0]) is not None and (
                branch.pred in arms):
            number = branch.targets.index(result)
            result = (branch.then if arms[branch.pred] else branch.orelse).results[number]
        change = self.ints.dim(result) - self.ints.dim(stmt.carries[k])
        if isinstance(change, int):
            return change
        changes = self._ahead(self.ints.dim(result), {stmt.carries[k].name: (0, 0)}, depth)
        if changes is None or changes[0] * changes[1] <= 0:
            return None
        return min(changes, key=abs)

    def _trips(self, stmt: For | While, depth: int) -> int | None:
        if isinstance(stmt, For):
            if not isinstance(stmt.step, Const):
                return None
            trips = self._way(self.ints.dim(stmt.hi) - self.ints.dim(stmt.lo), stmt.step.value, depth)
            return self._assumed(stmt) if trips is None else trips
        if stmt not in self._simulated:
            self._simulated[stmt] = simulated_trips(stmt)
        if (trips := self._simulated[stmt]) is not None:
            return trips
        known: list[tuple[Let, bool]] = []
        self._say(stmt.cond.results[0], True, known, {})
        found = [t for let, holds in known if (t := self._until(stmt, let, holds, {}, depth)) is not None]
        found += self._left(stmt, depth)
        return min(found) if found else self._assumed(stmt)

    def _left(self, stmt: While, depth: int) -> Iterator[int]:
        """Bounds from `break` and `return`: a carried bool ends the loop, and all trips but the last leave it false."""
        pending = [stmt.cond.results[0]]
        while pending:
            value = pending.pop()
            let = self._let.get(value) if isinstance(value, Var) else None
            if let is not None and let.op.connects == "and":
                pending += let.args
            elif let is not None and let.op.connects == "not" and let.args[0] in stmt.carries:
                flag = stmt.body.results[stmt.carries.index(let.args[0])]       # type: ignore[arg-type]
                known: list[tuple[Let, bool]] = []
                arms: dict[Value, bool] = {}
                self._say(flag, False, known, arms)
                for comparison, holds in known:
                    trips = self._until(stmt, comparison, holds, arms, depth)
                    if trips is not None:
                        yield trips + 1
            elif isinstance(value, Var):
                pending += self._both(value)

    def _assumed(self, stmt: For | While) -> int | None:
        if self.max_trips is not None and stmt not in self.assumed:
            self.assumed.append(stmt)
        return self.max_trips

    def _way(self, distance: Any, step: int, depth: int) -> int | None:
        """Steps until a distance that begins as this one is not ahead any more."""
        far = self._of(distance, step > 0, depth)
        return None if far is None else max(0, -(-far // step))

    def _say(self, value: Value, holds: bool, known: list[tuple[Let, bool]], arms: dict[Value, bool]) -> None:
        """Comparisons that hold, or do not, where a bool is true, or false, and which arms of branches were taken."""
        if not isinstance(value, Var):
            return
        branch, k = self._branch.get(value, (None, 0))
        if branch is not None:
            for chosen, arm, other in ((True, branch.then, branch.orelse), (False, branch.orelse, branch.then)):
                if _is(other.results[k], not holds) or (other.results[k] is branch.pred and chosen is holds):
                    arms[branch.pred] = chosen
                    self._say(branch.pred, chosen, known, arms)
                    self._say(arm.results[k], holds, known, arms)
                    return
            return
        let = self._let.get(value)
        if let is None:
            return
        if let.op.connects == ("and" if holds else "or"):
            for arg in let.args:
                self._say(arg, holds, known, arms)
        elif let.op.connects == "not":
            self._say(let.args[0], not holds, known, arms)
        elif let.op.relates in _LESS:
            known.append((let, holds))

    def _both(self, value: Var) -> list[Value]:
        """The two sides of an `and` that does not look at the second where the first is false."""
        branch, k = self._branch.get(value, (None, 0))
        if branch is None or not (branch.orelse.results[k] is branch.pred or _is(branch.orelse.results[k], False)):
            return []
        return [branch.pred, branch.then.results[k]]

    def _until(self, stmt: While, let: Let, holds: bool, arms: Mapping[Value, bool], depth: int) -> int | None:
        """How often a comparison of a counter with a bound can hold, or fail.  arms: those that trips take which go on.
        """
        a, b = let.args
        if a.type != I64:
            return None
        swapped, closed = _LESS[let.op.relates if holds else _OPPOSITE[let.op.relates]]
        below, above = map(self.ints.dim, (b, a) if swapped else (a, b))
        gap = above - below + int(closed)                                  # positive while the loop goes on
        for k, carry in enumerate(stmt.carries):
            if carry.type != I64:
                continue
            factor = _factor(gap, carry.name)
            change = self._least_change(stmt, k, arms, depth) if factor else None
            if change and factor and change * factor < 0 and not _names(gap) & _others(stmt, carry):
                start = substitute(gap, {carry.name: self.ints.dim(stmt.inits[k])})
                return self._way(start, -change * factor, depth)
        return None


def _is(value: Value, known: bool) -> bool:
    return isinstance(value, Const) and value.type.dtype == "bool" and bool(np.any(value.value)) is known


def _wider(a: int | str | None, b: int | str | None, most: bool) -> int | str | None:
    if a is None or b is None:
        return None
    if isinstance(a, str) or isinstance(b, str):
        return b if isinstance(a, str) else a
    return max(a, b) if most else min(a, b)


def _only_atom(dim: Any) -> Any:
    """The one thing that the dimension is, None where it is a sum or product."""
    if isinstance(dim, DimExpr) and len(dim.terms) == 1:
        monomial, factor = dim.terms[0]
        if factor == 1 and len(monomial) == 1:
            return monomial[0]
    return None


def _factor(dim: Any, name: str) -> int | None:
    if not isinstance(dim, DimExpr):
        return None
    found = None
    for monomial, factor in dim.terms:
        names = {n for atom in monomial for n in _atom_names(atom)}
        if name in names:
            if found is not None or monomial != (Symbol(name),):
                return None
            found = factor
    return found


def _names(dim: Any) -> set[str]:
    return {n for monomial, _ in dim.terms for atom in monomial for n in _atom_names(atom)} if isinstance(
        dim, DimExpr) else set()


def _atom_names(atom: Any) -> set[str]:
    return {atom.name} if isinstance(atom, Symbol) else {n for a in atom.args for n in _names(a)}


def _others(stmt: While, carry: Var) -> set[str]:
    """What may change between trips, besides the carry."""
    inside = {t.name for block in (stmt.cond, stmt.body) for s in all_statements(block) for t in s.targets}
    return inside | {c.name for c in stmt.carries if c is not carry}

