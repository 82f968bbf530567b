"""The versions of an array that a loop carries: what writes make of it, one after the other, and who reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir.nodes import Block, For, If, Let, Value, Var
from ..ir.walk import blocks, operands


@dataclass
class Versions:
    """vars: the versions, the carry first.  accesses: loads of them and writes that make them, with the inner loops
    around and whether they run in each trip.  pure: whether nothing else reads a version."""

    vars: set[Value] = field(default_factory=set)
    accesses: list[tuple[Let, tuple[For, ...], bool]] = field(default_factory=list)
    pure: bool = True

    @property
    def only_adds(self) -> bool:
        """Whether all that happens to the array is that something is added at places, outside of inner loops."""
        return all(let.op.adds and not inner for let, inner, _ in self.accesses)

    @property
    def writes(self) -> list[tuple[Let, tuple[For, ...], bool]]:
        return [a for a in self.accesses if a[0].op.access != "load"]

    @property
    def loads(self) -> list[tuple[Let, tuple[For, ...], bool]]:
        return [a for a in self.accesses if a[0].op.access == "load"]


def versions_of(loop: For, number: int) -> Versions:
    """Of one carry of the loop."""
    found = Versions({loop.carries[number]})
    _visit(loop.body, (), True, found)
    for k, result in enumerate(loop.body.results):
        if (result in found.vars) != (k == number):
            found.pure = False
    return found


def _visit(block: Block, inner: tuple[For, ...], always: bool, found: Versions) -> None:
    for stmt in block.stmts:
        match stmt:
            case Let() if stmt.op.access is not None and stmt.args[0] in found.vars:
                found.accesses.append((stmt, inner, always))
                if any(a in found.vars for a in stmt.args[1:]):
                    found.pure = False
                if stmt.op.access != "load":
                    found.vars.add(stmt.target)
            case If():
                if stmt.pred in found.vars:
                    found.pure = False
                for arm in blocks(stmt):
                    _visit(arm, inner, False, found)
                _join(stmt.targets, [arm.results for arm in blocks(stmt)], found)
            case For():
                if any(v in found.vars for v in (stmt.lo, stmt.hi, stmt.step)):
                    found.pure = False
                held = [k for k, v in enumerate(stmt.inits) if v in found.vars]
                found.vars.update(stmt.carries[k] for k in held)
                _visit(stmt.body, (*inner, stmt), False, found)
                for k, result in enumerate(stmt.body.results):
                    if (result in found.vars) != (k in held):
                        found.pure = False
                found.vars.update(stmt.targets[k] for k in held)
            case _:
                if any(v in found.vars for v in operands(stmt)) or any(_reads(b, found) for b in blocks(stmt)):
                    found.pure = False


def _join(targets: Sequence[Var], arms: Sequence[Sequence[Value]], found: Versions) -> None:
    for target, *values in zip(targets, *arms, strict=True):
        held = [v in found.vars for v in values]
        if all(held):
            found.vars.add(target)
        elif any(held):
            found.pure = False


def _reads(block: Block, found: Versions) -> bool:
    return any(v in found.vars for v in block.results) or any(
        any(v in found.vars for v in operands(s)) or any(_reads(b, found) for b in blocks(s)) for s in block.stmts)
