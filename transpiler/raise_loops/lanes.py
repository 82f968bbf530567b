"""The trips of one loop side by side: values with a leading axis, one element a trip.

Operations go over to that axis by their batching rules, made when someone asks for their value.  An index that moves
by the same distance in each trip makes a slice of a load, any other a gather.  Branches are computed on both sides,
with places that exist, and one is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .. import ops
from ..errors import RuleError
from ..ir import dims
from ..ir.build import const, current, int_const, located, size_value
from ..ir.dims import symbols_of
from ..ir.index import Span
from ..ir.ints import factor_of
from ..ir.nodes import Const, For, If, Let, Value, Var
from ..ir.types import BOOL, I64, Type
from .checks import Checks
from .facts import Facts
from .findings import Refused
from .flat import Flat, Path
from .inner import InnerLoops
from .lane import Items, Lane, chosen, is_positive, lane_of, needs_order
from .moving import positions
from .places import Places


class Lanes:
    """The trips stand in the order of their indices, lowest first; `backwards`: they run in the other one.

    trips: how many, a dimension (None: not known, so that no value can be asked for).  carried: what a carry is at the
    beginning of each trip; Refused where that needs the trips' order.  rows: for versions of arrays of which each trip
    has its own part, what is left of an index into the whole (see `views`).
    """

    def __init__(self, loop: For, flat: Flat, facts: Facts, trips: Any, keeps: bool) -> None:
        self.loop, self.flat, self.facts, self.trips, self.keeps = loop, flat, facts, trips, keeps
        step = int(loop.step.value) if isinstance(loop.step, Const) else 0
        self.step, self.backwards = abs(step), step < 0
        self.start = facts.dim(loop.lo)         # the lowest index
        if self.backwards and trips is not None:
            self.start = self.start + (trips - 1) * step
        self.some = trips is not None and is_positive(trips)        # whether there surely is a trip
        self.carried: Callable[[int], Lane] = self.refuse_carry
        self.read_version: Callable[[Let], Lane | None] = lambda let: None
        self.rows: dict[Var, Callable[[Items], Items]] = {}
        self.found: dict[Value, Lane] = {}
        self.first: dict[Value, Value] = {}
        self.running: set[Any] = set()          # values and checks being made
        self.number_of_carry = {carry: k for k, carry in enumerate(loop.carries)}
        self.sites = dict(flat.sites)
        self.places, self.checks, self.inner = Places(self), Checks(self), InnerLoops(self)
        self.indices: dict[str, Any] = {}      # of the inner loops around: the dimensions that are their indices now

    def refuse_carry(self, number: int) -> NoReturn:
        raise Refused(needs_order(self.loop.carries[number].name), number)

    # --- values ------------------------------------------------------------------------------------------------

    def get(self, value: Value) -> Lane:
        """The value in all trips."""
        if isinstance(value, Const):
            return Lane(value, False)
        if value in self.found:
            return self.found[value]
        if value in self.running:
            raise Refused(needs_order(value.name))
        self.running.add(value)
        try:
            found = self._made(value)
        finally:
            self.running.discard(value)
        self.found.setdefault(value, found)
        return self.found[value]

    def _made(self, value: Var) -> Lane:
        if value is self.loop.index:
            return Lane(self.materialised(value), True)
        if value in self.number_of_carry:
            return self.carried(self.number_of_carry[value])
        site = self.sites.get(value)
        if site is None:
            return Lane(value, False)
        if value.type == I64 and (moving := self.moving(value)) is not None:
            return Lane(self.materialised(value), True) if moving[0] else Lane(self.at_first(value), False)
        self.checks.before(site.number)
        with located(site.stmt.loc):
            match site.stmt:
                case Let():
                    made = self.let(site.stmt, site.path)
                    self.found.update(made)
                case If():
                    k = site.stmt.targets.index(value)
                    return self.selected(site.stmt.pred, site.stmt.then.results[k], site.stmt.orelse.results[k])
                case For():
                    made = self.inner.of(site.stmt, site)
                    self.found.update(made)
                case _:
                    raise AssertionError(site.stmt)
        return self.found[value]

    def supposing(self, value: Value) -> Value:
        """The value in all trips as if nothing had been computed yet, while some reads find something else."""
        found, running = self.found, self.running
        self.found, self.running = {}, set()
        try:
            return self.along(value)
        finally:
            self.found, self.running = found, running

    def along(self, value: Value) -> Value:
        """The value with the axis of trips, repeated where it has none."""
        lane = self.get(value)
        return lane.value if lane.batched else self.repeated(lane.value)

    def repeated(self, value: Value) -> Value:
        shape = (self.trips, *value.shape)
        if isinstance(value, Const):
            return Const(value.value, Type(value.dtype, shape))
        return ops.broadcast(value, shape=shape, axes=tuple(range(1, value.rank + 1)))

    def selected(self, pred: Value, yes: Value, no: Value) -> Lane:
        """One of two values in each trip."""
        if yes is no:
            return self.get(yes)
        which = self.get(pred)
        if isinstance(which.value, Const):
            return self.get(yes if which.value.value else no)
        a, b = self.get(yes), self.get(no)
        if not (which.batched or a.batched or b.batched):
            return Lane(chosen(which.value, a.value, b.value), False)
        left, right = (x.value if x.batched else self.repeated(x.value) for x in (a, b))
        return Lane(chosen(which.value, left, right, which.batched), True)

    def first_of(self, search: Any, values: Value) -> Value:
        """Where among the trips, of equal ones in the first that runs, an extremum is."""
        if not self.backwards:
            found: Value = search(values, axes=(0,))
            return found
        return ops.subtract(size_value(self.trips - 1), search(ops.reverse(values, axes=(0,)), axes=(0,)))

    def last(self, values: Value) -> Value:
        """The value of the trip that runs last."""
        return lane_of(Lane(values, True), int_const(0) if self.backwards else size_value(self.trips - 1))

    def before_each(self, first: Value, values: Value) -> Value:
        """`first`, then the values of all trips but the last, in the order in which they run."""
        first = ops.reshape(first, shape=(1, *first.shape))
        if self.trips == 1:
            return first
        rest = ops.load(values, index=(Span(1 if self.backwards else 0, self.trips - 1),
                                       *(Span(0, d) for d in values.shape[1:])))
        found: Value = ops.concatenate(*((rest, first) if self.backwards else (first, rest)), axis=0)
        return found

    def holds(self, path: Path) -> Lane | None:
        """Whether the conditions hold; None where there are none."""
        found: Lane | None = None
        for pred, wanted in path:
            lane = self.get(pred)
            if isinstance(lane.value, Const) and bool(lane.value.value) is wanted:
                continue
            if not wanted:
                lane = Lane(ops.logical_not(lane.value), lane.batched)
            found = lane if found is None else self.together(ops.logical_and, found, lane)
        return found

    def together(self, op: Any, a: Lane, b: Lane) -> Lane:
        """A binary operation on two values."""
        if not (a.batched or b.batched):
            return Lane(op(a.value, b.value), False)
        left, right = (x.value if x.batched else self.repeated(x.value) for x in (a, b))
        return Lane(op(left, right), True)

    # --- ints --------------------------------------------------------------------------------------------------

    def moving(self, value: Value) -> tuple[int, Any] | None:
        """(a, b) of an int that is a * index + b, with a dimension b that is the same in all trips; else None."""
        dim = self.facts.dim(value)
        factor = factor_of(dim, self.loop.index.name)
        if factor is None:
            return None
        rest = dim - factor * dims.symbol(self.loop.index.name, 0)
        own = self.flat.names - self.indices.keys()
        return (factor, rest) if symbols_of(rest).keys().isdisjoint(own) else None

    def at_first(self, value: Value) -> Value:
        """A moving int where the index is lowest."""
        if value is self.loop.index:
            return self._emitted_once(value, self.start)
        if isinstance(value, Const) or value.name not in self.flat.names:
            return value
        site = self.sites.get(value)
        with located(None if site is None else site.stmt.loc):
            return self._emitted_once(value, dims.substitute(self.facts.dim(value), {
                self.loop.index.name: self.start, **self.indices}))

    def _emitted_once(self, value: Value, dim: Any) -> Value:
        if value not in self.first:
            self.first[value] = self.facts.emitted(dim)
        return self.first[value]

    def materialised(self, value: Value) -> Value:
        """A moving int as an array of all trips."""
        moving = self.moving(value)
        assert moving is not None
        return positions(self.at_first(value), moving[0] * self.step, self.trips)

    # --- statements --------------------------------------------------------------------------------------------

    def let(self, stmt: Let, path: Path) -> dict[Value, Lane]:
        """The targets in all trips."""
        read = self.read_version(stmt)
        if read is not None:
            return {stmt.target: read}
        if stmt.op.raises is not None and (path or not self.some):
            raise Refused(f"{stmt.op.name} may raise in some trips")
        if stmt.op.access is not None:
            return {stmt.target: self.places.of(stmt, path)}
        if stmt.op.relates is not None and stmt.args[0].type == I64:
            known = self.facts.decided(stmt, path, self.sites)
            if known is not None:
                return {stmt.target: Lane(const(known, BOOL), False)}
        lanes = [self.get(a) for a in stmt.args]
        if path and stmt.args and stmt.args[0].type.kind in stmt.op.checked_kinds:
            raise Refused(f"{stmt.op.name} in a branch could be given what only the branch has checked")
        return self._applied(stmt, lanes)

    def _applied(self, stmt: Let, lanes: Sequence[Lane]) -> dict[Value, Lane]:
        args = [x.value for x in lanes]
        flags = [x.batched for x in lanes]
        if not any(flags):
            types = tuple(t.type for t in stmt.targets)
            made = current().let(stmt.op, args, stmt.params, types, stmt.targets[0].name)
            return {t: Lane(v, False) for t, v in zip(stmt.targets, made)}
        try:
            found = stmt.op.batch(args, flags, **stmt.params)
        except RuleError as problem:
            raise Refused(problem.message) from None
        results = found if stmt.op.result_count > 1 else (found,)
        return {t: Lane(v, True) for t, v in zip(stmt.targets, results, strict=True)}

    def is_inner(self, value: Value) -> bool:
        return isinstance(value, Var) and (value in self.flat.sites or value in self.number_of_carry
                                           or value is self.loop.index)

