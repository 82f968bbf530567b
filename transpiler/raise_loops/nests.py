"""Raise the loops of a func, inner ones first: what a loop does element by element as operations on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..ir.build import Names, building, current, located
from ..ir.nodes import Block, For, Func, Stmt, Value, Var, While
from ..ir.walk import (
    Copier,
    all_statements,
    blocks,
    reads,
    replacement,
    sizes_used,
    used_names,
    with_blocks,
    with_operands,
)
from ..optimize.dead_code import live
from .carries import Carries
from .facts import Facts, Meeting
from .findings import Finding, Outcome, Refused, works_on_elements
from .flat import Flat
from .handing import handing_on
from .hull import trips_of, with_known_bounds
from .lanes import Lanes
from .rewriting import reading_before, with_adds, with_part, without_idle_branches, without_kept
from .versions import versions_of
from .views import View, fixed_part, part_once, put_back_once, view_of


def raised(func: Func, findings: list[Finding] | None = None, *, keeps: bool = True) -> Func:
    """The func with every loop raised that can be; `findings` is told of each.

    keeps: what an exception leaves in the caller's arrays, and which of several is raised, is kept as well.  A target
    that cannot raise asks for less.
    """
    if not has_loops(func):
        return func
    func = with_known_sizes(func)
    nests = _Nests(func, keeps)
    with building(Names(used_names(func))):
        body = nests.block(func.body, ())
    if findings is not None:
        findings.extend(nests.findings)
    return replace(func, body=body) if nests.changed else func


def has_loops(func: Func) -> bool:
    return any(isinstance(s, (For, While)) for s in all_statements(func.body))


def with_known_sizes(func: Func) -> Func:
    """The func with sizes that are named after ints, but follow from those of its arguments, spelled as such."""
    used = {name for s in all_statements(func.body) for name in sizes_used(s)}
    facts = Facts(func)
    known = {v.name: facts.dim(v) for v in facts.values.values() if v.name in used and facts.is_known(facts.dim(v))}
    if not known:
        return func
    with building(Names(used_names(replace(func, body=Block((), ()))))):
        body = Copier(sizes=known).block(func.body)
    return replace(func, body=body)


@dataclass
class _Raised:
    """What stands for a loop: statements and the values of its targets.  kept: why a loop is left."""

    stmts: list[Stmt]
    values: Sequence[Value]
    kept: str = ""


@dataclass
class _Nests:
    func: Func
    keeps: bool
    findings: list[Finding] = field(default_factory=list)
    changed: bool = False

    def __post_init__(self) -> None:
        self.facts = Facts(self.func)
        self.replaced: dict[Var, Value] = {}
        self.sizes = {name for s in all_statements(self.func.body) for name in sizes_used(s)}

    def block(self, block: Block, around: tuple[For, ...]) -> Block:
        """The block with its loops raised.  around: the loops outside."""
        with building() as b:
            for old in block.stmts:
                stmt = with_operands(old, self.replaced)
                if isinstance(stmt, While):
                    self._note_while(stmt)
                if not isinstance(stmt, For):
                    stmt = with_blocks(stmt, [self.block(x, around) for x in blocks(stmt)])
                    b.stmts.append(stmt)
                    self.facts.learn((stmt,))
                    continue
                with located(stmt.loc):
                    self._loop(stmt, around)
            results = tuple(replacement(r, self.replaced) for r in block.results)
        if len(b.stmts) == len(block.stmts) and all(x is y for x, y in zip(b.stmts, block.stmts)) and all(
                x is y for x, y in zip(results, block.results)):
            return block
        return Block(tuple(b.stmts), results)

    def _note_while(self, stmt: While) -> None:
        outcome = Outcome.KEPT if works_on_elements(stmt.body) else Outcome.WHOLE
        self.findings.append(Finding(stmt.loc, outcome, "a trip decides whether there is another"))

    def _loop(self, loop: For, around: tuple[For, ...]) -> None:
        b = current()
        self.facts.ints.loop[loop.index.name] = loop
        place = len(self.findings)
        loop = with_blocks(loop, [self.block(loop.body, (*around, loop))])  # type: ignore[assignment]
        self.facts.learn((loop,))
        try:
            made = self._attempt(loop, around)
        except Refused as refused:
            outcome = Outcome.KEPT if works_on_elements(loop.body) else Outcome.WHOLE
            self.findings.insert(place, Finding(loop.loc, outcome, refused.reason))
            self.facts.learn((loop,))
            b.stmts.append(loop)
            return
        self.changed = True
        slow = any(isinstance(s, For) and works_on_elements(s.body) for s in made.stmts)
        outcome = Outcome.RAISED if not made.kept else Outcome.PARTLY if slow else Outcome.WHOLE
        if not made.kept:
            self.findings[place:] = [f.over_whole_arrays() for f in self.findings[place:]]
        self.findings.insert(place, Finding(loop.loc, outcome, made.kept))
        b.stmts.extend(made.stmts)
        self.facts.learn(made.stmts)
        self.replaced.update(zip(loop.targets, made.values))

    def _attempt(self, loop: For, around: tuple[For, ...]) -> _Raised:
        if any(v.name in self.sizes for v in (*loop.targets, *loop.carries, loop.index)):
            raise Refused("the size of an array follows from what it computes")
        with building() as b:
            loop, parts = self._prepared(loop, around)
            bounded = with_known_bounds(loop, self.facts)
            trips = trips_of(bounded, self.facts)
            assert trips is not None
            made = _Raised([], loop.inits) if trips == 0 else self._raised(bounded, around, trips, bounded is loop)
            b.stmts.extend(made.stmts)
            values = list(made.values)
            for k, (view, whole) in parts.items():
                values[k] = put_back_once(view, whole, values[k])
        return _Raised(list(b.stmts), values, made.kept)

    def _prepared(self, loop: For, around: tuple[For, ...]) -> tuple[For, dict[int, tuple[View, Value]]]:
        """The loop with what can be said without knowing its trips, and its carries that are parts of arrays."""
        if not self.keeps:
            loop = without_kept(loop)
        loop = without_idle_branches(loop)
        loop = with_adds(handing_on(loop, self.facts, Flat(loop).names), self.facts.ints)
        loop = replace(loop, body=live(loop.body))
        self.facts.learn((loop,))
        loop = reading_before(loop, self.facts, around, Flat(loop).names)
        return self._with_parts(loop)

    def _raised(self, loop: For, around: tuple[For, ...], trips: object, partly: bool) -> _Raised:
        with building() as b:
            flat = Flat(loop)
            lanes = Lanes(loop, flat, self.facts, trips, self.keeps)
            carries = Carries(lanes, Meeting(self.facts, loop, around, flat.names))
            before = len(b.stmts)
            found: dict[int, Value] = {}
            refused: dict[int, str] = {}
            for k in range(len(loop.carries)):
                try:
                    found[k] = carries.after(k)
                except Refused as problem:
                    refused[k] = problem.reason
            if refused and (not partly or not self._can_split(loop, refused)):
                raise Refused(_first(refused))
            if not refused:
                lanes.checks.all()
            else:
                made = b.stmts[before:]
                del b.stmts[before:]
                rest = _rest(loop, sorted(refused))
                b.stmts.append(rest)
                b.stmts.extend(made)
                found.update(zip(sorted(refused), rest.targets))
            values = [found[k] for k in range(len(loop.carries))]
        return _Raised(list(b.stmts), values, _first(refused) if refused else "")

    def _with_parts(self, loop: For) -> tuple[For, dict[int, tuple[View, Value]]]:
        """The loop with carries that are parts of arrays, where all trips work on the same part."""
        parts: dict[int, tuple[View, Value]] = {}
        for k, carry in enumerate(loop.carries):
            if not carry.type.shape or loop.body.results[k] is carry:
                continue
            lanes = Lanes(loop, Flat(loop), self.facts, trips_of(loop, self.facts), self.keeps)
            versions = versions_of(loop, k)
            if view_of(lanes, carry, versions) is not None:
                continue
            view = fixed_part(lanes, carry, versions)
            if view is None:
                continue
            whole = loop.inits[k]
            loop = with_part(loop, k, view, versions, part_once(view, whole))
            self.facts.learn((loop,))
            parts[k] = (view, whole)
        return loop, parts

    def _can_split(self, loop: For, refused: dict[int, str]) -> bool:
        """Whether some carries may leave the loop: those that what stays does not read."""
        while True:
            stay = sorted(refused)
            inside = reads(live(Block(loop.body.stmts, tuple(loop.body.results[k] for k in stay))))
            needed = [k for k, c in enumerate(loop.carries) if c in inside and k not in refused]
            if not needed:
                break
            refused.update((k, refused[stay[0]]) for k in needed)
        return any(k not in refused and loop.body.results[k] is not c for k, c in enumerate(loop.carries))


def _first(refused: dict[int, str]) -> str:
    return refused[min(refused)]


def _rest(loop: For, stay: Sequence[int]) -> For:
    """The loop with some of its carries."""
    b = current()
    body = live(Block(loop.body.stmts, tuple(loop.body.results[k] for k in stay)))
    targets = tuple(b.var(loop.targets[k].type, loop.targets[k].name) for k in stay)
    return replace(loop, targets=targets, carries=tuple(loop.carries[k] for k in stay),
                   inits=tuple(loop.inits[k] for k in stay), body=body, parallel=False)
