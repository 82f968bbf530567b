"""A loop inside of one whose trips stand side by side: its own trips stay one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ir import dims
from ..ir.build import Builder, building, current, located
from ..ir.ints import LOWEST
from ..ir.nodes import Block, Check, For, Value, Var
from ..ir.types import I64, Type
from ..ir.walk import reads
from .findings import Refused
from .flat import Flat, Site
from .hull import trips_of, with_known_bounds
from .lane import Lane

if TYPE_CHECKING:
    from .lanes import Lanes


class InnerLoops:
    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    def of(self, stmt: For, site: Site) -> dict[Value, Lane]:
        """A loop whose trips stay one after the other, each of them in all trips of this loop at once."""
        if any(self.lanes.get(v).batched for v in (stmt.lo, stmt.hi, stmt.step)):
            carries = stmt.carries
            stmt = with_known_bounds(stmt, self.lanes.facts)
            self.lanes.facts.learn((stmt,))
            for carry, result in zip(carries, stmt.body.results):
                if carry in self.lanes.rows and isinstance(result, Var):
                    self.lanes.rows[result] = self.lanes.rows[carry]
        if site.path and trips_of(stmt, self.lanes.facts) is None:
            raise Refused("how many trips an inner loop makes is known only where its branch is taken")
        lo, hi, step = (self.lanes.get(v).value for v in (stmt.lo, stmt.hi, stmt.step))
        for value in sorted((v for v in reads(stmt.body) if isinstance(v, Var)), key=lambda v: v.name):
            if value in self.lanes.sites or value in self.lanes.number_of_carry or value is self.lanes.loop.index:
                self.lanes.get(value)
                if value.type == I64 and self.lanes.moving(value) is not None:
                    self.lanes.at_first(value)
        inits = [self.lanes.get(v) for v in stmt.inits]
        batched = [x.batched for x in inits]
        while True:
            outer = current()
            index = outer.var(I64, stmt.index.name)
            carries = tuple(outer.var(x.value.type if x.batched or not b else self._widened(x.value.type), c.name)
                            for c, x, b in zip(stmt.carries, inits, batched))
            with building() as inner:
                results = self._inner_body(stmt, site, index, carries, batched)
            if all(b or not r.batched for b, r in zip(batched, results)):
                break
            batched = [b or r.batched for b, r in zip(batched, results)]
        values = tuple(r.value if r.batched or not b else self._repeated_in(inner, r.value)
                       for b, r in zip(batched, results))
        starts = tuple(x.value if x.batched or not b else self.lanes.repeated(x.value) for b, x in zip(batched, inits))
        targets = tuple(outer.var(c.type, t.name) for c, t in zip(carries, stmt.targets))
        made = For(targets, index, lo, hi, step, carries, starts, Block(tuple(inner.stmts), values), False, stmt.loc,
                   stmt.checkpoint, stmt.segment)
        outer.stmts.append(made)
        self.lanes.facts.learn((made,))
        return {old: Lane(new, b) for old, new, b in zip(stmt.targets, targets, batched)}

    def _inner_body(self, stmt: For, outer: Site, index: Var, carries: Sequence[Var],
                    batched: Sequence[bool]) -> list[Lane]:
        """Emit the body at the current builder; its results."""
        opened = Flat(stmt, checked=False)
        if self.lanes.keeps and opened.checks:
            raise Refused("which exception is raised first depends on the order of its trips")
        path = outer.path
        own = {v: Site(outer.number, s.stmt, (*path, *s.path)) for v, s in opened.sites.items()}
        before, indices = dict(self.lanes.found), dict(self.lanes.indices)
        first = dict(self.lanes.first)
        self.lanes.sites.update(own)
        self.lanes.facts.values[index.name] = index
        self.lanes.indices[stmt.index.name] = dims.symbol(index.name, LOWEST)
        self.lanes.found[stmt.index] = Lane(index, False)
        self.lanes.found.update((old, Lane(new, b)) for old, new, b in zip(stmt.carries, carries, batched))
        for site in sorted({id(s): s for s in (*opened.sites.values(), *opened.checks)}.values(),
                           key=lambda s: s.number):
            if isinstance(site.stmt, Check):
                with located(site.stmt.loc):
                    self.lanes.checks.hoist([Site(outer.number, site.stmt, (*path, *site.path))])
            else:
                for target in site.stmt.targets:
                    self.lanes.get(target)
        results = [self.lanes.get(r) for r in stmt.body.results]
        self.lanes.found, self.lanes.indices, self.lanes.first = before, indices, first
        for var in own:
            del self.lanes.sites[var]
        return results

    def _widened(self, type: Type) -> Type:
        return type.with_shape((self.lanes.trips, *type.shape))

    def _repeated_in(self, builder: Builder, value: Value) -> Value:
        with building() as b:
            found = self.lanes.repeated(value)
        builder.stmts.extend(b.stmts)
        return found
