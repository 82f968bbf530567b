"""Which places of the arrays that a loop carries its trips read and write, through all branches and loops inside.

    for j carry (a):
      if p:                           read   (a[j + 1], in j)
        s = load(a, j + 1)            add    (a[k, 0], in j and k)
        for k: a[k, 0] += s
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ir import dependence
from ..ir.dependence import Order, Place, place_of
from ..ir.ints import Ints
from ..ir.nodes import Block, For, If, Let, Stmt, Value, Var, While
from ..ir.walk import operands


@dataclass(frozen=True)
class Touch:
    """root: which carry of the loop.  place: None for anywhere in the array.  loops: those around, the outermost
    first."""

    root: int
    place: Place | None
    writes: bool
    adds: bool
    loops: tuple[For, ...]

    def may_meet(self, other: Touch, order: Sequence[Order], ints: Ints, differs: Callable[[str], bool]) -> bool:
        """Whether both may touch one element where their trips are in that order; see `ir.dependence`."""
        one, two = (dependence.Access(t.place, t.loops) for t in (self, other))
        return self.root == other.root and dependence.may_meet(one, two, order, ints, differs)


def touches_of(loop: For, ints: Ints) -> list[Touch] | None:
    """None where an array that the loop carries is not one that it writes to throughout."""
    walker = _Walker(ints)
    walker.roots = {carry: k for k, carry in enumerate(loop.carries) if carry.type.shape}
    if not walker.block(loop.body, (loop,)):
        return None
    if any(walker.roots.get(r) != k for k, (carry, r) in enumerate(zip(loop.carries, loop.body.results))   # type: ignore
           if carry.type.shape):
        return None
    return list(dict.fromkeys(walker.found))


class _Walker:
    """roots: of each version of a carried array, which carry it is.  Other arrays are values: what is made in a trip
    is the trip's own, and what comes from outside is not written to."""

    def __init__(self, ints: Ints) -> None:
        self.ints = ints
        self.roots: dict[Value, int] = {}
        self.found: list[Touch] = []

    def block(self, block: Block, loops: tuple[For, ...]) -> bool:
        """Note what the block does; False where it exchanges arrays."""
        return all(self._statement(stmt, loops) for stmt in block.stmts)

    def _statement(self, stmt: Stmt, loops: tuple[For, ...]) -> bool:
        match stmt:
            case Let() if stmt.op.access is not None:
                self._access(stmt, loops)
                return True
            case If():
                return all(self.block(b, loops) for b in (stmt.then, stmt.orelse)) and self._joined(
                    stmt.targets, [stmt.then.results, stmt.orelse.results])
            case For():
                return self._loop(stmt, [stmt.body], (*loops, stmt))
            case While():
                return self._loop(stmt, [stmt.cond, stmt.body], loops)
            case _:
                self._reads_all(operands(stmt), loops)
                return True

    def _loop(self, loop: For | While, inside: Sequence[Block], loops: tuple[For, ...]) -> bool:
        for carry, init in zip(loop.carries, loop.inits):
            if init in self.roots:
                self.roots[carry] = self.roots[init]
        return all(self.block(b, loops) for b in inside) and all(
            self.roots.get(c) == self.roots.get(r) for c, r in zip(loop.carries, loop.body.results)) and self._joined(
                loop.targets, [loop.inits])

    def _joined(self, targets: Sequence[Var], ways: Sequence[Sequence[Value]]) -> bool:
        """Each array that a statement gives is a version of one array, whichever way it comes."""
        for k, target in enumerate(targets):
            roots = {self.roots.get(way[k]) for way in ways}
            if len(roots) > 1:
                return False
            (root,) = roots
            if root is not None:
                self.roots[target] = root
        return True

    def _access(self, let: Let, loops: tuple[For, ...]) -> None:
        root = self.roots.get(let.args[0])
        self._reads_all(let.args[1:], loops)
        if root is not None:
            writes = let.op.access != "load"
            self.found.append(Touch(root, place_of(let, self.ints), writes, let.op.access == "add_at", loops))
            if writes:
                self.roots[let.target] = root

    def _reads_all(self, values: Sequence[Value], loops: tuple[For, ...]) -> None:
        self.found += [Touch(self.roots[v], None, False, False, loops) for v in values if v in self.roots]
