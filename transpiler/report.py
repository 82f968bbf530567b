"""What passes tell of what they do, for whoever asks: `gradsmith annotate` does.

A pass that has something to tell takes a `report`, None by default, and appends to it what it decided, as it has it:
nothing is worked out for a report that is not needed anyway.  What a statement has become is otherwise told by its
place, which says what transforms made of the line (`Location.part`) and survives all passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .errors import Location
from .ir.nodes import Block, Func, Let, Stmt, Var
from .ir.walk import blocks, with_blocks

if TYPE_CHECKING:
    from .transforms.forward_sweep import Saved
    from .transforms.residuals import Residuals
    from .transforms.scopes import Scopes


@dataclass(frozen=True)
class Reverse:
    """A vjp of `func`: what carries derivatives, what the reverse sweep needs, and where it was put."""

    func: Func
    active: frozenset[Var]
    scopes: Scopes
    residuals: Residuals
    saved: Saved


@dataclass(frozen=True)
class Forward:
    """A jvp of `func`: what has a tangent."""

    func: Func
    active: frozenset[Var]


@dataclass(frozen=True)
class Batch:
    """A vmap of `func`: what depends on the batch (None: everything), and the statements that run lane by lane."""

    func: Func
    batched: frozenset[Var] | None
    looped: frozenset[Stmt]


@dataclass(frozen=True)
class Fusion:
    """What lowering made of a block: values without an array, and for each statement on whole arrays the loops, by
    their indices and outermost first, in which elements of it are computed: several where it is computed again."""

    virtual: frozenset[Var]
    places: Mapping[Let, tuple[tuple[Var, ...], ...]]


@dataclass
class Report:
    """sweeps: the transforms of a trace, in the order in which they were applied.  fusions: the blocks lowered.
    counted_late: `while` loops whose trips the reverse sweep counts itself, so that they are not saved."""

    sweeps: list[Reverse | Forward | Batch] = field(default_factory=list)
    fusions: list[Fusion] = field(default_factory=list)
    counted_late: set[Location | None] = field(default_factory=set)

    @property
    def made_loops(self) -> set[Var]:
        """The indices of loops that lowering made."""
        return {index for fusion in self.fusions for places in fusion.places.values() for around in places
                for index in around}


def part_of(loc: Location | None, part: str) -> Location | None:
    """The place, as the place of what a transform made of it."""
    return None if loc is None else replace(loc, part=(*loc.part, part))


def in_part(stmts: Iterable[Stmt], part: str) -> list[Stmt]:
    """The statements, and those inside them, at places of that part."""
    found = []
    for stmt in stmts:
        inner = [Block(tuple(in_part(block.stmts, part)), block.results) for block in blocks(stmt)]
        found.append(replace(with_blocks(stmt, inner), loc=part_of(stmt.loc, part)))
    return found


def new_in_part(stmts: Iterable[Stmt], old: Set[Stmt], part: str) -> list[Stmt]:
    """The statements, with operations that are none of `old` at places of that part."""
    found = []
    for stmt in stmts:
        inner = [Block(tuple(new_in_part(block.stmts, old, part)), block.results) for block in blocks(stmt)]
        is_new = isinstance(stmt, Let) and stmt not in old
        found.append(replace(stmt, loc=part_of(stmt.loc, part)) if is_new else with_blocks(stmt, inner))
    return found
