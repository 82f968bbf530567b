"""Checks of all trips as one, before what relies on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import ops
from ..ir.build import const, current, located
from ..ir.nodes import Check, If, Let, Value, Var
from ..ir.types import BOOL
from ..ir.walk import operands
from .findings import Refused
from .flat import Site
from .lane import Lane, is_true, lane_of

if TYPE_CHECKING:
    from .lanes import Lanes


class Checks:
    """Of a loop's body outside of inner loops, in the order of the text; `hoist` is for any."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self._checked = 0

    def before(self, number: int) -> None:
        """Emit the checks that stand before a statement: what follows relies on them."""
        while self._checked < len(self.lanes.flat.checks) and self.lanes.flat.checks[self._checked].number < number:
            self._emit()

    def all(self) -> None:
        while self._checked < len(self.lanes.flat.checks):
            self._emit()

    def _emit(self) -> None:
        """The next checks, as many as need nothing that the first of them guards."""
        checks = self.lanes.flat.checks[self._checked:]
        first = checks[0]
        count = 1 + next((k for k, site in enumerate(checks[1:]) if self._is_guarded(site, first.number)),
                         len(checks) - 1)
        together = checks[:count]
        if any(site.stmt in self.lanes.running for site in together):
            raise Refused("a check in it needs what the trips before have computed")
        if self.lanes.keeps and count < len(self.lanes.flat.checks):
            raise Refused("which of several exceptions is raised depends on the order of its trips")
        if not self._is_guarded(first, first.number):
            self._checked += count              # nothing that they need waits for them
            self.hoist(together)
            return
        self.lanes.running.update(site.stmt for site in together)
        try:
            self.hoist(together)
        finally:
            self.lanes.running.difference_update(site.stmt for site in together)
        self._checked += count

    def _is_guarded(self, site: Site, number: int) -> bool:
        """Whether a check needs something read behind that place of the text, or what a trip before has made."""
        seen: set[Value] = set()
        assert isinstance(site.stmt, Check)
        todo = [site.stmt.pred, *site.stmt.values, *(pred for pred, _ in site.path)]
        while todo:
            value = todo.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.lanes.number_of_carry:
                return True
            inner = self.lanes.sites.get(value) if isinstance(value, Var) else None
            if inner is None:
                continue
            stmt = inner.stmt
            if not isinstance(stmt, (Let, If)) or (
                    isinstance(stmt, Let) and inner.number > number and not self._is_sure(stmt)):
                return True
            if isinstance(stmt, If):
                k = stmt.targets.index(value)  # type: ignore[arg-type]
                todo += [stmt.then.results[k], stmt.orelse.results[k]]
            todo += operands(stmt)
        return False

    def _is_sure(self, let: Let) -> bool:
        """Whether an operation needs no check before it."""
        if let.op.access == "load":
            facts = self.lanes.facts
            return all(facts.is_inside(axis, dim) for axis, dim in zip(facts.place(let), let.args[0].shape))
        checked = bool(let.args) and let.args[0].type.kind in let.op.checked_kinds
        return let.op.access is None and not checked and let.op.raises is None

    def hoist(self, sites: Sequence[Site]) -> None:
        """Checks for all trips: those of the first trip in which one fails."""
        fine: list[Lane] = []
        for site in sites:
            stmt = site.stmt
            assert isinstance(stmt, Check)
            if self.lanes.keeps and any(self.lanes.is_inner(v) for _, v in stmt.kept):
                raise Refused("an exception in a trip leaves what the trips before have written")
            with located(stmt.loc):
                sure = self.lanes.facts.holds(stmt.pred, site.path, self.lanes.sites)
                holds = Lane(const(True, BOOL), False) if sure else self.lanes.get(stmt.pred)
                when = None if is_true(holds.value) else self.lanes.holds(site.path)
                if when is not None:
                    holds = self.lanes.together(ops.logical_or, Lane(ops.logical_not(when.value), when.batched), holds)
                fine.append(holds)
        if not all(x.batched or is_true(x.value) for x in fine) and not self.lanes.some:
            raise Refused("a check in it holds only if there is a trip")
        told = [tuple(map(self.lanes.get, site.stmt.values)) for site in sites]  # type: ignore[union-attr]
        trip: Value | None = None
        if any(x.batched for x in fine) and (len(sites) > 1 or any(x.batched for values in told for x in values)):
            if not self.lanes.some:
                raise Refused("a check in it tells of a trip, and there may be none")
            every = fine[0]
            for x in fine[1:]:
                every = self.lanes.together(ops.logical_and, every, x)
            trip = self.lanes.first_of(ops.argmin, ops.convert(every.value, dtype="int64"))
        for site, holds, values in zip(sites, fine, told, strict=True):
            stmt = site.stmt
            assert isinstance(stmt, Check)
            if is_true(holds.value):
                continue
            with located(stmt.loc):
                if not holds.batched:
                    pred = holds.value
                else:
                    pred = ops.all(holds.value, axes=(0,)) if trip is None else lane_of(holds, trip)
                shown = tuple(x.value if trip is None else lane_of(x, trip) for x in values)
                current().stmts.append(Check(pred, stmt.kind, stmt.message, stmt.loc,
                                             stmt.kept if self.lanes.keeps else (), shown))
