"""The loop tree: loops over dimensions, and leaves of scalar code inside them.

Each tensor statement becomes a path of loops with leaves (see `roots`); the schedule merges paths; `nests` turns the
tree into IR.  A leaf names its effects instead of performing them, so that trees can be compared and merged:

    Alloc    an array begins: unspecified, filled, or a copy of another value
    Store    code.results[0] is written (or added) at the place code.results[1:]
    Init     the accumulators of a reduction begin
    Step     one element (code.results[0]) goes into the accumulators, or into the element of an array of them
    Finish   the accumulators give the result: a scalar, or an element of an array
    Scalar   a scalar statement
    Whole    a statement on whole arrays or with blocks: library call, control flow, check
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ir.dims import symbols_of
from ..ir.nodes import Check, Let, Stmt, Value, Var
from ..ir.walk import all_statements, blocks, operands, reads, sizes_used
from .elements import Scalars


@dataclass(eq=False)
class Leaf:
    """target: the variable of the tensor program that this leaf makes or works on."""

    target: Var | None
    loc: Any
    code: Scalars | None = None

    def read(self) -> set[Var]:
        """Variables of the tensor program that the leaf reads."""
        if self.code is None:
            return set()
        made = {t for s in self.code.stmts for t in s.targets}
        found = {r for r in self.code.results if isinstance(r, Var)}
        for stmt in self.code.stmts:
            found.update(v for v in operands(stmt) if isinstance(v, Var))
            for block in blocks(stmt):
                inner = {t for s in block.stmts for t in s.targets}
                found |= {v for v in reads(block) if isinstance(v, Var)} - inner
        return found - made


@dataclass(eq=False)
class Alloc(Leaf):
    base: Value | None = None          # None: unspecified contents

    def read(self) -> set[Var]:
        return {self.base} if isinstance(self.base, Var) else set()


@dataclass(eq=False)
class Store(Leaf):
    adds: bool = False
    pointwise: bool = True             # every element of the target is written once, at the place of the loops

    def place(self) -> tuple[Value, ...]:
        assert self.code is not None
        return self.code.results[1:]


@dataclass(eq=False)
class Init(Leaf):
    let: Let | None = None
    in_array: bool = False             # the accumulators are the elements of the result


@dataclass(eq=False)
class Step(Leaf):
    """code.results: the element, then its positions along the reduced axes; `kept`: where in an array of
    accumulators (None: the accumulators are scalars)."""

    let: Let | None = None
    positions: int = 0
    kept: tuple[Var, ...] | None = None

    def read(self) -> set[Var]:
        return super().read() | ({self.target} if self.target is not None and self.kept is not None else set())


@dataclass(eq=False)
class Finish(Leaf):
    let: Let | None = None
    kept: tuple[Var, ...] = ()

    def place(self) -> tuple[Value, ...]:
        return self.kept


@dataclass(eq=False)
class Scalar(Leaf):
    pass


@dataclass(eq=False)
class Whole(Leaf):
    stmt: Stmt | None = None

    def read(self) -> set[Var]:
        assert self.stmt is not None
        found = {v for v in operands(self.stmt) if isinstance(v, Var)}
        for block in blocks(self.stmt):
            found |= {v for v in reads(block) if isinstance(v, Var)}
        return found

    @property
    def is_barrier(self) -> bool:
        """Whether nothing may move across."""
        assert self.stmt is not None
        return isinstance(self.stmt, Check) or any(
            isinstance(s, Check) for b in blocks(self.stmt) for s in all_statements(b)) or (
                isinstance(self.stmt, Let) and not self.stmt.op.is_pure)


@dataclass(eq=False)
class Loop:
    index: Var
    size: Any
    children: list[Item] = field(default_factory=list)


Item = Leaf | Loop


def leaves(item: Item) -> Iterator[Leaf]:
    if isinstance(item, Leaf):
        yield item
        return
    for child in item.children:
        yield from leaves(child)


def made_by(item: Item) -> set[Var]:
    """Variables of the tensor program that the item makes or changes."""
    found: set[Var] = set()
    for leaf in leaves(item):
        if isinstance(leaf, Whole):
            found.update(leaf.stmt.targets)  # type: ignore[union-attr]
        elif leaf.target is not None and not isinstance(leaf, Init):
            found.add(leaf.target)
    return found


def read_by(item: Item) -> set[Var]:
    found: set[Var] = set()
    for leaf in leaves(item):
        found |= leaf.read()
    return found


def sizes_of(item: Item) -> set[str]:
    """Named sizes that loops go up to, and those in the types and parameters of statements."""
    if isinstance(item, Loop):
        return set(symbols_of(item.size)).union(*map(sizes_of, item.children))
    found = {name for d in (item.target.type.shape if item.target is not None else ()) for name in symbols_of(d)}
    stmts = [*(item.code.stmts if item.code is not None else ())]
    if isinstance(item, Whole) and item.stmt is not None:
        stmts.append(item.stmt)
    elif isinstance(item, (Init, Step, Finish)) and item.let is not None:
        stmts.append(item.let)
    for stmt in stmts:
        found |= sizes_used(stmt)
        for block in blocks(stmt):
            found.update(size for size in reads(block) if isinstance(size, str))
    return found
