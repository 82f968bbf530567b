"""The body of a loop with its branches opened: each statement, and under which conditions it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.nodes import Block, Call, Check, For, If, Let, Stmt, Value, Var, While
from ..ir.types import I64
from ..ir.walk import all_statements, blocks, bound_inside, operands, sizes_used
from .findings import Refused

Path = tuple[tuple[Value, bool], ...]


@dataclass(frozen=True)
class Site:
    """number: the place in the text; path: conditions, and what they must be."""

    number: int
    stmt: Stmt
    path: Path


class Flat:
    """sites: of each value that the body computes outside of inner loops.  names: of all ints that it computes.

    Refused: what can only run trip by trip.
    """

    def __init__(self, loop: For, *, checked: bool = True) -> None:
        self.loop = loop
        self.sites: dict[Var, Site] = {}
        self.checks: list[Site] = []
        self.names = {v.name for s in all_statements(loop.body) for v in (*s.targets, *bound_inside(s))
                      if v.type == I64}
        self.names |= {v.name for v in (loop.index, *loop.carries) if v.type == I64}
        self._count = 0
        self._open(loop.body, ())
        if checked:
            self._require_fixed_sizes()

    def _open(self, block: Block, path: Path) -> None:
        for stmt in block.stmts:
            self._count += 1
            site = Site(self._count, stmt, path)
            self.sites.update((t, site) for t in stmt.targets)
            match stmt:
                case Check():
                    if stmt.prints:
                        raise Refused("it prints")
                    self.checks.append(site)
                case If():
                    self._open(stmt.then, (*path, (stmt.pred, True)))
                    self._open(stmt.orelse, (*path, (stmt.pred, False)))
                case While():
                    raise Refused("there is a `while` loop in it")
                case Call():
                    raise Refused("it calls a function that calls itself")
                case Let():
                    if not stmt.op.is_pure:
                        raise Refused(f"{stmt.op.name} has to run in each trip")
                case For():
                    for inner in all_statements(stmt.body):
                        if isinstance(inner, (While, Call)) or (isinstance(inner, Check) and inner.prints):
                            raise Refused("a loop inside of it has to run trip by trip")

    def _require_fixed_sizes(self) -> None:
        for stmt in all_statements(self.loop.body):
            moving = sizes_used(stmt) & self.names
            if moving:
                raise Refused("the size of an array changes from trip to trip")

    def accesses(self) -> Iterator[tuple[Let, tuple[For, ...], bool]]:
        """Every load, store and add_at, with the inner loops around it and whether it runs in each trip."""
        yield from _accesses(self.loop.body, (), True)


def choice_of(stmt: Stmt, value: Value) -> tuple[Value, Value, Value] | None:
    """The condition and the two values one of which the statement makes its target, if that is what it does."""
    if isinstance(stmt, If):
        k = stmt.targets.index(value)  # type: ignore[arg-type]
        return stmt.pred, stmt.then.results[k], stmt.orelse.results[k]
    if isinstance(stmt, Let) and stmt.op.chooses:
        pred, yes, no = stmt.args
        return pred, yes, no
    return None


def _accesses(block: Block, inner: tuple[For, ...], always: bool) -> Iterator[tuple[Let, tuple[For, ...], bool]]:
    for stmt in block.stmts:
        match stmt:
            case Let():
                if stmt.op.access is not None:
                    yield stmt, inner, always
            case If():
                yield from _accesses(stmt.then, inner, False)
                yield from _accesses(stmt.orelse, inner, False)
            case For():
                yield from _accesses(stmt.body, (*inner, stmt), False)
            case _:
                pass


def readers(block: Block) -> dict[Value, list[Stmt | None]]:
    """Who reads each value in the block and in what is nested; None for results of blocks."""
    found: dict[Value, list[Stmt | None]] = {}
    for stmt in all_statements(block):
        for value in operands(stmt):
            found.setdefault(value, []).append(stmt)
        for inner in blocks(stmt):
            for value in inner.results:
                found.setdefault(value, []).append(None)
    for value in block.results:
        found.setdefault(value, []).append(None)
    return found
