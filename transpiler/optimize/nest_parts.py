"""A loop with loops inside as parts that may be loops of their own: inner loops, and writes between them.

    for j:                                        parts
      s = load(r, i, j)                             [s] for k: a[k, j] -= q[k, i] * s
      for k: a[k, j] -= q[k, i] * s                 [s, t] r[i, j] = t
      t = multiply(s, 2.0)
      r[i, j] = t

What is computed besides belongs to every part that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.dependence import position_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Const, For, Let, Value, Var
from .dependence import Access, Dependences, any_meet


@dataclass(frozen=True)
class Part:
    """lets: statements of the outer loop, in order.  loop: the inner loop behind them, None where the part only writes.
    roots: the arrays that it writes to, by number."""

    lets: tuple[Let, ...]
    loop: For | None
    accesses: tuple[Access, ...]
    roots: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """versions: the array, by number, that each variable is a version of.  inside: what the outer loop binds."""

    loop: For
    parts: tuple[Part, ...]
    versions: dict[Var, int]
    inside: frozenset[Var]

    def depends(self, value: Value) -> bool:
        """Whether the value changes with the outer loop."""
        return value in self.inside


def parts_of(loop: For, ints: Ints) -> Nest | None:
    """The nest, if all that it does is read, compute and write elements, and loops inside of loops inside are none."""
    reader = _Reader(loop, ints)
    if not reader.read():
        return None
    parts = reader.parts()
    if parts is None or {r for part in parts for r in part.roots} != set(range(len(loop.carries))):
        return None
    inside = {loop.index, *loop.carries, *(t for s in loop.body.stmts for t in s.targets)}
    return Nest(loop, tuple(parts), reader.versions, frozenset(inside))


class _Reader:
    def __init__(self, loop: For, ints: Ints) -> None:
        self.loop, self.ints = loop, ints
        self.versions: dict[Var, int] = {c: k for k, c in enumerate(loop.carries)}
        self.current: list[Value] = list(loop.carries)

    def read(self) -> bool:
        """Whether the nest is of the kind; finds the versions of all arrays."""
        loop = self.loop
        if not _is_plain(loop) or not all(c.type.shape for c in loop.carries):
            return False
        for stmt in loop.body.stmts:
            if isinstance(stmt, Let):
                if not self._let(stmt):
                    return False
            elif not isinstance(stmt, For) or not self._inner(stmt):
                return False
        return list(loop.body.results) == self.current

    def _inner(self, loop: For) -> bool:
        roots = [self.versions.get(v, -1) if isinstance(v, Var) else -1 for v in loop.inits]
        if not _is_plain(loop) or -1 in roots or len(set(roots)) != len(roots) or any(
                self.current[r] is not v for r, v in zip(roots, loop.inits)):
            return False
        for r, carry in zip(roots, loop.carries):
            self.versions[carry] = r
            self.current[r] = carry
        if not all(isinstance(s, Let) and self._let(s) for s in loop.body.stmts):
            return False
        if any(self.current[r] is not v for r, v in zip(roots, loop.body.results)):
            return False
        for r, target in zip(roots, loop.targets):
            self.versions[target] = r
            self.current[r] = target
        return True

    def _let(self, let: Let) -> bool:
        if not let.op.is_pure or len(let.targets) != 1:
            return False
        arrays = [a for a in let.args if a in self.versions]
        if let.op.access is None:
            return not arrays and not let.target.type.shape
        if not all(isinstance(i, At) for i in let.params["index"]) or any(a is not let.args[0] for a in arrays):
            return False
        array = let.args[0]
        if let.op.access == "load":
            return not arrays or self.current[self.versions[array]] is array  # type: ignore[index]
        if not arrays or self.current[self.versions[array]] is not array:  # type: ignore[index]
            return False
        root = self.versions[array]  # type: ignore[index]
        self.versions[let.target] = root
        self.current[root] = let.target
        return True

    # -----------------------------------------------------------------------------------------------------------

    def parts(self) -> list[Part] | None:
        """None where a part reads an element later than it was read, when it may have changed."""
        stmts = self.loop.body.stmts
        groups: list[list[int]] = []
        for at, stmt in enumerate(stmts):
            if isinstance(stmt, For):
                groups.append([at])
            elif self._writes(stmt):
                if groups and not isinstance(stmts[groups[-1][0]], For):
                    groups[-1].append(at)
                else:
                    groups.append([at])
        parts = [self._part(group) for group in groups]
        if not all(self._reads_in_time(group, part) for group, part in zip(groups, parts)):
            return None
        return parts

    @staticmethod
    def _writes(stmt: object) -> bool:
        return isinstance(stmt, Let) and stmt.op.access in ("store", "add_at")

    def _part(self, group: Sequence[int]) -> Part:
        stmts = self.loop.body.stmts
        last = stmts[group[-1]]
        loop = last if isinstance(last, For) else None
        own = [] if loop is not None else [s for k in group if isinstance(s := stmts[k], Let)]
        needed = {v for let in own for v in let.args}
        if loop is not None:
            needed |= {loop.lo, loop.hi, *(v for s in loop.body.stmts if isinstance(s, Let) for v in s.args)}
        lets: list[Let] = []
        for stmt in reversed(stmts[:group[-1] + 1]):
            if isinstance(stmt, Let) and (any(stmt is s for s in own) or (
                    not self._writes(stmt) and not needed.isdisjoint(stmt.targets))):
                lets.insert(0, stmt)
                needed |= set(stmt.args)
        inner = [s for s in loop.body.stmts if isinstance(s, Let)] if loop is not None else []
        loops = (self.loop,) if loop is None else (self.loop, loop)
        accesses = tuple(a for let in (*lets, *inner) for a in self._access(let, loops))
        return Part(tuple(lets), loop, accesses, tuple(sorted({a.root for a in accesses if a.writes})))

    def _access(self, let: Let, loops: tuple[For, ...]) -> list[Access]:
        if let.op.access is None or let.args[0] not in self.versions:
            return []
        writes = let.op.access != "load"
        place = tuple(map(self.ints.dim, position_of(let)))
        return [Access(self.versions[let.args[0]], place, writes, let.op.access == "add_at", loops)]  # type: ignore[index]

    def _reads_in_time(self, group: Sequence[int], part: Part) -> bool:
        """Whether nothing writes to what the part reads in the outer loop until the part is done with it."""
        stmts = self.loop.body.stmts
        dependences = Dependences(self.ints)
        for let in part.lets:
            if let.op.access != "load":
                continue
            read = self._access(let, (self.loop,))
            start = next(k for k, s in enumerate(stmts) if s is let)
            for at in range(start + 1, group[-1] + 1):
                stmt = stmts[at]
                if isinstance(stmt, For):
                    written = [a for s in stmt.body.stmts if isinstance(s, Let)
                               for a in self._access(s, (self.loop, stmt)) if a.writes]
                elif at not in group and isinstance(stmt, Let):
                    written = [a for a in self._access(stmt, (self.loop,)) if a.writes]
                else:
                    continue
                if any_meet(dependences, read, written, [(self.loop, self.loop, "same")]):
                    return False
        return True


def _is_plain(loop: For) -> bool:
    return (isinstance(loop.step, Const) and abs(loop.step.value) == 1 and not loop.parallel and not loop.abreast
            and loop.checkpoint is None and not loop.segment and bool(loop.carries))
