"""What is known of the ints of a func while its loops are raised: ranges, sizes, and whether two places may be one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import int_const
from ..ir.constraints import Constraints
from ..ir.dependence import Access, Axis, Place, Relation, may_meet, place_of
from ..ir.dims import DimCall, Symbol, symbols_of
from ..ir.inequalities import combined
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var
from ..ir.types import I64
from ..ir.walk import all_statements, bound_inside


class Facts:
    """sizes: the names that the shapes of the params bind; what is made of these alone is known before any loop runs.
    """

    def __init__(self, func: Func) -> None:
        self.ints = Ints(func.body)
        self.values: dict[str, Var] = {p.name: p for p in func.params if p.type == I64}
        for stmt in all_statements(func.body):
            self._note(stmt)
        self.sizes = {s for p in func.params for d in p.type.shape for s in symbols_of(d)} - self.values.keys()

    def learn(self, stmts: Iterable[Stmt]) -> None:
        """Statements that were made since."""
        for stmt in all_statements(Block(tuple(stmts), ())):
            self._note(stmt)
            if isinstance(stmt, Let) and len(stmt.targets) == 1:
                self.ints.definition[stmt.target] = stmt
            elif isinstance(stmt, For):
                self.ints.loop[stmt.index.name] = stmt

    def _note(self, stmt: Stmt) -> None:
        self.values.update((v.name, v) for v in (*stmt.targets, *bound_inside(stmt)) if v.type == I64)

    def dim(self, value: Value) -> Any:
        return self.ints.dim(value)

    def is_known(self, dim: Any) -> bool:
        """Whether a dimension is made of sizes alone."""
        return symbols_of(dim).keys() <= self.sizes

    def is_below(self, a: Any, b: Any) -> bool:
        """Whether a < b in every trip of all loops."""
        return self.ints.is_negative(a - b)

    def is_inside(self, axis: Axis, dim: Any) -> bool:
        """Whether all positions are surely inside an axis of `dim` elements."""
        lowest, highest = axis.ends
        return self.is_below(-1, lowest) and self.is_below(highest, dim)

    def extremes(self, dim: Any) -> tuple[Any, Any] | None:
        """The lowest and highest that the dimension is in any trip, made of sizes; None where that is not known."""
        high, below = self.ints.most(dim), self.ints.most(-dim)
        if high is None or below is None or not self.is_known(high) or not self.is_known(below):
            return self._extremes_of_call(dim)
        return -below, high

    def _extremes_of_call(self, dim: Any) -> tuple[Any, Any] | None:
        """Those of max(a, b) or min(a, b), with a number added."""
        call = next((a for monomial, _ in dim.terms for a in monomial if isinstance(a, DimCall)), None) if isinstance(
            dim, dims.DimExpr) else None
        rest = None if call is None else dim - dims.DimExpr((((call,), 1),))
        if call is None or not isinstance(rest, int) or call.kind not in ("max", "min"):
            return None
        found = [self.extremes(a) for a in call.args]
        if None in found:
            return None
        join = dims.maximum if call.kind == "max" else dims.minimum
        (low, high), (other_low, other_high) = found                            # type: ignore[misc]
        return join(low, other_low) + rest, join(high, other_high) + rest

    def decided(self, comparison: Let, path: Sequence[tuple[Value, bool]], sites: Mapping[Var, Any]) -> bool | None:
        """What a comparison of ints surely is where the conditions hold, in every trip of the loops; None: not known.
        """
        for answer in (True, False):
            known = Constraints(self.ints)
            for pred, wanted in path:
                for let, holds in _parts(pred, wanted, sites):
                    self._say(known, let, holds)
            if self._say(known, comparison, not answer) and not known.may_hold():
                return answer
        return None

    def holds(self, pred: Value, path: Sequence[tuple[Value, bool]], sites: Mapping[Var, Any]) -> bool:
        """Whether a condition, made of comparisons of ints, surely holds where those on the path do."""
        if isinstance(pred, Const):
            return bool(pred.value)
        site = sites.get(pred)
        if site is None or not isinstance(site.stmt, Let):
            return False
        let = site.stmt
        if let.op.connects == "and":
            return all(self.holds(a, path, sites) for a in let.args)
        if let.op.relates is None or let.args[0].type != I64 or let.args[1].type != I64:
            return False
        return self.decided(let, path, sites) is True

    def _say(self, known: Constraints, let: Let, holds: bool) -> bool:
        """That the comparison holds, or that it fails.  False: that is no linear inequality."""
        relation = let.op.relates if holds else _OPPOSITE[let.op.relates]
        a, b = (known.row(self.dim(arg)) for arg in let.args)
        if relation in ("<", "<="):
            known.not_above(combined(a, 1, {"": 1}, int(relation == "<")), b)
        elif relation in (">", ">="):
            known.not_above(combined(b, 1, {"": 1}, int(relation == ">")), a)
        elif relation == "==":
            known.equal(a, b)
        return relation != "!="

    def emitted(self, dim: Any) -> Value:
        """The dimension as a value, from the ints that it is named after."""
        if isinstance(dim, (int, np.integer)):
            return int_const(int(dim))
        total: Value | None = None
        for monomial, coefficient in dim.terms:
            term: Value | None = None if coefficient == 1 and monomial else int_const(coefficient)
            for atom in monomial:
                factor = self._atom(atom)
                term = factor if term is None else ops.multiply(term, factor)
            assert term is not None
            total = term if total is None else ops.add(total, term)
        assert total is not None
        return total

    def _atom(self, atom: Symbol | DimCall) -> Value:
        if isinstance(atom, Symbol):
            value = self.values.get(atom.name)
            return value if value is not None else ops.size(dim=dims.symbol(atom.name, atom.low))
        a, b = map(self.emitted, atom.args)
        name = {"floordiv": "floor_divide", "mod": "remainder", "max": "maximum", "min": "minimum"}[atom.kind]
        found: Value = getattr(ops, name)(a, b)
        return found

    def place(self, let: Let) -> Place:
        """Where a load, store or add_at reads or writes."""
        return place_of(let, self.ints)


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _parts(pred: Value, wanted: bool, sites: Mapping[Var, Any]) -> Iterator[tuple[Let, bool]]:
    """The comparisons of ints that hold, or do not, where a condition is as wanted."""
    site = sites.get(pred) if isinstance(pred, Var) else None
    if site is None:
        return
    stmt = site.stmt
    if isinstance(stmt, If):
        k = stmt.targets.index(pred)
        for chosen, arm, other in ((True, stmt.then, stmt.orelse), (False, stmt.orelse, stmt.then)):
            impossible = other.results[k]
            if isinstance(impossible, Const) and bool(impossible.value) is not wanted:
                yield from _parts(stmt.pred, chosen, sites)
                yield from _parts(arm.results[k], wanted, sites)
    elif isinstance(stmt, Let):
        if stmt.op.relates is not None and stmt.args[0].type == I64 == stmt.args[1].type:
            yield stmt, wanted
        elif stmt.op.connects == ("and" if wanted else "or"):
            for arg in stmt.args:
                yield from _parts(arg, wanted, sites)
        elif stmt.op.connects == "not":
            yield from _parts(stmt.args[0], not wanted, sites)


class Meeting:
    """Whether accesses in trips of one loop may touch the same element.  They name the loops that are inside of it.

    around: the loops outside, whose trip the two share.  local: names of ints that the body computes.
    """

    def __init__(self, facts: Facts, loop: For, around: Sequence[For], local: Container[str]) -> None:
        self.facts, self.loop, self.around, self.local = facts, loop, around, local

    def earlier(self, a: Access, b: Access) -> bool:
        """Whether a of some trip may touch what b does in a later one."""
        return self._may(a, b, "before")

    def same(self, a: Access, b: Access) -> bool:
        """Whether both may touch one place in the same trip."""
        return self._may(a, b, "same")

    def ever(self, a: Access, b: Access) -> bool:
        return self.earlier(a, b) or self.same(a, b) or self.earlier(b, a)

    def _may(self, a: Access, b: Access, relation: Relation) -> bool:
        one, other = (replace(x, loops=(*self.around, self.loop, *x.loops)) for x in (a, b))
        return may_meet(one, other, [(self.loop, self.loop, relation)], self.facts.ints, self.local.__contains__)
