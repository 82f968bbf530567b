"""Arrays that trips write to at places which are not each trip's own, or read where others have written.

Of the writes w1, w2, ... in the body, all trips of the first are made, then all of the second, and so on; what is
between is a version of the whole array.  A read is made from the first version that has, where it reads, what it
would have found: all writes before it have been made there, and none that come later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import ops
from ..ir.build import const, located
from ..ir.dependence import Access, axis_items
from ..ir.index import At, New, index_shape
from ..ir.nodes import If, Let, Value, Var
from .crossing import crossing_axis, read_across
from .facts import Meeting
from .findings import Refused, shown_name
from .flat import Path
from .lane import Lane, is_positive, spread
from .lanes import Lanes
from .moving import Moving, write_moving
from .versions import Versions

MOST_BRANCHES = 8       # one in the other, or one after the other, in which an array is written to


@dataclass(frozen=True)
class Writer:
    """A write, where the conditions hold; number: its place in the text."""

    path: Path
    stmt: Let
    number: int


def stores_of(lanes: Lanes, number: int, versions: Versions, meeting: Meeting) -> Stores | None:
    """How the trips write to a carried array; None where they do not, or in inner loops."""
    if not versions.pure or not versions.writes or any(inner for _, inner, _ in versions.accesses):
        return None
    if any(isinstance(item, New) for let, _, _ in versions.accesses for item in let.params["index"]):
        return None
    writers = _chain(lanes, lanes.loop.body.results[number], lanes.loop.carries[number], ())
    return None if writers is None else Stores(lanes, number, versions, writers, meeting)


def _chain(lanes: Lanes, value: Value, carry: Var, path: Path) -> list[Writer] | None:
    """The writes that make the value from the carry, in their order."""
    if value is carry:
        return []
    site = lanes.sites.get(value) if isinstance(value, Var) else None
    if site is None or len(path) > MOST_BRANCHES:
        return None
    stmt = site.stmt
    match stmt:
        case Let() if stmt.op.access in ("store", "add_at"):
            before = _chain(lanes, stmt.args[0], carry, path)
            return None if before is None else [*before, Writer(path, stmt, site.number)]
        case If():
            k = stmt.targets.index(value)  # type: ignore[arg-type]
            one = _chain(lanes, stmt.then.results[k], carry, (*path, (stmt.pred, True)))
            other = _chain(lanes, stmt.orelse.results[k], carry, (*path, (stmt.pred, False)))
            return None if one is None or other is None else _merged(one, other, path)
        case _:
            return None


def _merged(one: list[Writer], other: list[Writer], path: Path) -> list[Writer]:
    """What both arms have in front, whatever the condition; then what each has alone.  Paths of the arms go on from
    `path` with the condition."""
    common = []
    inner = len(path) + 1
    while one and other and one[0].stmt is other[0].stmt and one[0].path[inner:] == other[0].path[inner:]:
        common.append(Writer((*path, *one[0].path[inner:]), one[0].stmt, one[0].number))
        one, other = one[1:], other[1:]
    return [*common, *one, *other]


class Stores:
    """made: the versions of the whole array, from the one before the loop on, as far as they are made."""

    def __init__(self, lanes: Lanes, number: int, versions: Versions, writers: list[Writer],
                 meeting: Meeting) -> None:
        self.lanes, self.number, self.versions, self.writers, self.meeting = lanes, number, versions, writers, meeting
        self.name = shown_name(lanes.loop.carries[number].name)
        self.made: list[Value] = [lanes.loop.inits[number]]
        self._places = [Access(lanes.facts.place(w.stmt)) for w in writers]
        self._making = False
        self._supposing = False                 # whether reads find what was there before the loop
        self._orderly = self._is_orderly()

    def final(self) -> Value:
        self._require_order()
        return self._version(len(self.writers))

    def _is_orderly(self) -> bool:
        """Whether making all trips of one write before all of the next leaves the same value everywhere."""
        return not any(self.meeting.earlier(self._places[k], self._places[j])
                       for k, later in enumerate(self.writers) for j, before in enumerate(self.writers[:k])
                       if not (before.stmt.op.adds and later.stmt.op.adds))

    def _require_order(self) -> None:
        if not self._orderly:
            raise Refused(f"two writes to `{self.name}` meet in different trips", self.number)

    def read(self, let: Let) -> Lane:
        """What a load of some version finds in all trips."""
        self._require_order()
        lanes = self.lanes
        site = lanes.sites[let.target]
        read = Access(lanes.facts.place(let))
        seen = _chain(lanes, let.args[0], lanes.loop.carries[self.number], ())
        if seen is None:
            lanes.refuse_carry(self.number)
        before = {writer.stmt for writer in seen}
        for count in range(len(self.writers) + 1):
            if self._serves(read, before, count):
                version = self._version(count)
                return lanes.places.load(Lane(version, False), version.shape, axis_items(let), site.path, let)
        axis = crossing_axis(lanes, self.writers, before, let) if not site.path else None
        if axis is not None:
            return self._read_across(let, axis)
        raise Refused(f"each trip needs what the trips before have made of `{self.name}`", self.number)

    def _read_across(self, let: Let, axis: int) -> Lane:
        lanes, writer = self.lanes, self.writers[0].stmt
        old = lanes.places.load(Lane(self.made[0], False), self.made[0].shape, axis_items(let), (), let)
        if self._supposing:
            return old
        self._supposing = True
        try:
            stored = lanes.supposing(writer.args[1])
        finally:
            self._supposing = False
        return read_across(lanes, let, axis, writer, old, stored)

    def _serves(self, read: Access, before: set[Let], count: int) -> bool:
        """Whether the version after `count` writes has what a read finds that sees those of `before` in its trip."""
        for k, (writer, place) in enumerate(zip(self.writers, self._places)):
            first = writer.stmt in before
            if k >= count:
                if self.meeting.earlier(place, read) or (first and self.meeting.same(place, read)):
                    return False
            elif self.meeting.earlier(read, place) or (not first and self.meeting.same(place, read)):
                return False
        return True

    def _version(self, count: int) -> Value:
        if self._making and count >= len(self.made):
            raise Refused(f"each trip needs what the trips before have made of `{self.name}`", self.number)
        while len(self.made) <= count:
            self._making = True
            try:
                k = len(self.made) - 1
                with located(self.writers[k].stmt.loc):
                    self.made.append(self._written(self.made[k], k))
            finally:
                self._making = False
        return self.made[count]

    def _written(self, array: Value, k: int) -> Value:
        """The array after all trips of one write."""
        lanes, writer = self.lanes, self.writers[k]
        stmt, path = writer.stmt, writer.path
        lanes.checks.before(writer.number)
        where = lanes.holds(path)
        value = lanes.along(stmt.args[1])
        items = axis_items(stmt)
        value = ops.reshape(value, shape=(lanes.trips, *index_shape(tuple(i for i, _ in items))))
        places = []
        trusted = not path and lanes.some
        for (item, scalar), dim in zip(items, array.shape, strict=True):
            place: Moving = lanes.places.place(item, scalar)
            if not trusted and not lanes.facts.is_inside(lanes.places.axis(item, scalar), dim):
                place = self._safe(stmt, place, scalar, dim)
            places.append(place)
        if where is not None:
            value = self._where(where.value, where.batched, value, stmt, array, k)
        elif not stmt.op.adds and not lanes.some and not any(p.stride for p in places):
            raise Refused("what it stores is that of the last trip, and there may be none", self.number)
        return write_moving(stmt.op, array, value, places, lanes.trips, lanes.backwards)

    def _safe(self, stmt: Let, place: Moving, scalar: Value | None, dim: Any) -> Moving:
        """A place that exists, to which nothing is added where the branch is not taken."""
        if stmt.op.adds and scalar is not None and place.item == At() and is_positive(dim):
            return self.lanes.places.clipped(scalar, dim)
        raise Refused(f"`{self.name}` could be written outside of its elements where a branch is not taken",
                      self.number)

    def _where(self, mask: Value, batched: bool, value: Value, stmt: Let, array: Value, k: int) -> Value:
        """The values that leave the array as it is where the branch is not taken."""
        lanes = self.lanes
        taken = spread(mask, value.shape, batched)
        if stmt.op.adds:
            return ops.select(taken, value, const(0, value.type))
        if self.meeting.earlier(self._places[k], self._places[k]):
            raise Refused(f"some trips write to one element of `{self.name}`, and others do not", self.number)
        present = lanes.places.load(Lane(array, False), array.shape, axis_items(stmt), (), stmt)
        old = present.value if present.batched else lanes.repeated(present.value)
        return ops.select(taken, value, ops.reshape(old, shape=value.shape))
