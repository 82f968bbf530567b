"""Which versions of an array share memory because each is written over the one before it.

    A = for i in 0 .. n carry (a = A0):      A0, a, a_1, a_2 and A are one chain: `a_1` is stored over `a`,
      a_1 = store(a, 0.0, i)                 `a_2` over `a_1`, the next iteration's `a` is this one's `a_2`
      a_2 = store(a_1, v, 1)
      yield a_2

The reverse mode can read old versions from the last one: what was not overwritten since is still there, and what was
can be put back on the way.  A block sees its part of a chain as a `Link`: the version that it begins with and those
that follow from it, by writes and by loops and branches inside, in order.  A loop may hand arrays around, as by
`u, v = v, u`: each version that an iteration ends with comes from one that it begins with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from .. import ops
from ..ir.build import Names, building, current
from ..ir.index import New, index_shape
from ..ir.nodes import Block, For, Func, If, Let, Stmt, Value, Var
from ..ir.walk import blocks, used_names, with_blocks
from ..ops.base import Lowering
from .scopes import Scope, Scopes


@dataclass(eq=False)
class Link:
    """versions: of one block, first to last.  writes: the operations that made them, in the same block.  end: the
    target of the loop or branch around that the last version becomes."""

    scope: Scope
    versions: list[Var]
    writes: list[Let] = field(default_factory=list)
    end: Var | None = None


class Chains:
    """of: the link of each version in nested blocks.  moves: for a loop, the position of the carry that a result begins
    as, by the position of the result.  arms: for a branch, by the position of each target that is one array written in
    either arm: the version before it, and the links of the arms that write.  Versions of one `group` may share memory.
    """

    def __init__(self, func: Func, scopes: Scopes) -> None:
        self.scopes = scopes
        self.of: dict[Var, Link] = {}
        self.moves: dict[For, dict[int, int]] = {}
        self.arms: dict[If, dict[int, tuple[Var, Link | None, Link | None]]] = {}
        self._parent: dict[Var, Var] = {}
        self._beginning: dict[tuple[Scope, Var], list[Link]] = {}      # of arms, by the version from around
        self._visit(func.body.stmts)

    def group(self, version: Var) -> Var:
        while self._parent.get(version, version) is not version:
            version = self._parent[version]
        return version

    def anchor(self, version: Var) -> For | If:
        """The outermost statement around that has the version's chain among its own."""
        link = self.of[version]
        while link.end in self.of:
            link = self.of[link.end]
        assert link.scope.owner is not None
        return link.scope.owner

    def ends(self, version: Var) -> list[Var]:
        """The targets of the anchor that the version's memory may end as."""
        return [t for t in self.anchor(version).targets if t.type.shape and self.group(t) is self.group(version)]

    def next_writer(self, version: Var, reader: Scope) -> Stmt | None:
        """The statement that writes over the version, as its reader sees it: of the version's block, or of an arm
        around the reader.  Who reads it afterwards reads what is gone."""
        link = next((arm for scope in reader.around() for arm in self._beginning.get((scope, version), ())),
                    self.of[version])
        at = link.versions.index(version) + 1
        return link.scope.defined[link.versions[at]] if at < len(link.versions) else None

    def writes(self) -> Iterator[tuple[Link, Let]]:
        for link in dict.fromkeys(self.of.values()):
            for let in link.writes:
                yield link, let

    # --- finding them ------------------------------------------------------------------------------------------

    def _visit(self, stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            if isinstance(stmt, For):
                self._visit(stmt.body.stmts)               # what loops inside do is known first
                self._loop(stmt)
            elif isinstance(stmt, If):
                self._visit(stmt.then.stmts)
                self._visit(stmt.orelse.stmts)
                self._branch(stmt)

    def _loop(self, stmt: For) -> None:
        scope = self.scopes.inside[(stmt, 0)]
        found: dict[int, tuple[int, Link]] = {}
        for k, result in enumerate(stmt.body.results):
            link = self._traced(result, scope)
            if link is not None and link.versions[0] in stmt.carries:
                found[k] = (stmt.carries.index(link.versions[0]), link)
        while True:                       # arrays handed around must all stay among those that are known
            begun = [k for k, _ in found.values()]
            links = [link for _, link in found.values()]
            wrong = [k for k, (first, link) in found.items() if k not in begun or first not in found or
                     begun.count(first) > 1 or not self._is_whole(link, links)]
            if not wrong:
                break
            for k in wrong:
                del found[k]
        self.moves[stmt] = {k: first for k, (first, _) in found.items()}
        for k, (first, link) in found.items():
            self._keep(link, stmt.targets[k])
            self._join(stmt.targets[k], stmt.targets[first])

    def _branch(self, stmt: If) -> None:
        found: dict[int, list[Link]] = {}
        for k, target in enumerate(stmt.targets):
            ends = [self._traced(block.results[k], self.scopes.inside[(stmt, arm)])
                    for arm, block in enumerate((stmt.then, stmt.orelse))] if target.type.shape else []
            links = [link for link in ends if link is not None]
            if len(links) == 2 and links[0].versions[0] is links[1].versions[0]:
                found[k] = links
        while wrong := [k for k, links in found.items() if not all(
                self._is_whole(link, [other[arm] for other in found.values()]) for arm, link in enumerate(links))]:
            for k in wrong:
                del found[k]
        self.arms[stmt] = {}
        for k, both in found.items():
            start = both[0].versions[0]
            links = [link for link in both if len(link.versions) > 1]
            self.arms[stmt][k] = (start, *(link if link in links else None for link in both))  # type: ignore[assignment]
            for link in links:
                self._keep(link, stmt.targets[k])
                self._beginning.setdefault((link.scope, start), []).append(link)

    def _is_whole(self, link: Link, links: Sequence[Link]) -> bool:
        """Whether the arrays that a loop or branch in the link hands around are all among the links.  If not, what it
        gives may be in the memory of one that is made in this block."""
        known = {v for other in links for v in other.versions}
        for version in link.versions[1:]:
            made = link.scope.defined[version]
            if isinstance(made, (For, If)) and any(
                    t not in known for t in made.targets if t.type.shape and self.group(t) is self.group(version)):
                return False
        return True

    def _keep(self, link: Link, end: Var) -> None:
        """Two arrays may begin as one value, which is copied then: what a link begins with outside joins nothing."""
        link.end = end
        for version in link.versions:
            if self.scopes.of[version] is link.scope:
                self._join(end, version)
                self.of[version] = link

    def _join(self, one: Var, other: Var) -> None:
        a, b = self.group(one), self.group(other)
        if a is not b:
            self._parent[b] = a

    def _traced(self, value: Value, scope: Scope) -> Link | None:
        """Backwards from a version through what wrote it, as far as this block goes."""
        versions: list[Var] = []
        writes: list[Let] = []
        while isinstance(value, Var) and value.type.shape:
            versions.append(value)
            if self.scopes.of.get(value) is not scope:
                break
            stmt = scope.defined[value]
            before: Value | None = None
            if isinstance(stmt, Let) and stmt.op.lowering is Lowering.SCATTER:
                writes.append(stmt)
                before = stmt.args[0]
            elif isinstance(stmt, For):
                k = stmt.targets.index(value)
                before = stmt.inits[k] if k in self.moves[stmt] else None
            elif isinstance(stmt, If):
                known = self.arms[stmt].get(stmt.targets.index(value))
                before = known[0] if known is not None else None
            if before is None:
                break
            value = before
        return Link(scope, versions[::-1], writes[::-1]) if versions else None


def keep_overwritten(func: Func) -> tuple[Func, dict[Let, Var]]:
    """The func with a load of what each write of a chain is about to overwrite, and the variable that it gives."""
    writes = {let for _, let in Chains(func, Scopes(func)).writes() if let.op.access in ("store", "add_at")}
    found: dict[Let, Var] = {}

    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, Let) and stmt in writes:
                found[stmt] = _overwritten(stmt, stmts)
            if isinstance(stmt, For) and stmt.checkpoint is not None and stmt.checkpoint.slots is not None:
                stmts.append(stmt)                       # nothing in it is undone
                continue
            inner = blocks(stmt)
            stmts.append(with_blocks(stmt, [visit(b) for b in inner]) if inner else stmt)
        return Block(tuple(stmts), block.results) if any(
            a is not b for a, b in zip_longest(stmts, block.stmts)) else block

    if not writes:
        return func, found
    with building(Names(used_names(func))):
        body = visit(func.body)
    return Func(func.name, func.params, body, func.result_names), found


def _overwritten(write: Let, stmts: list[Stmt]) -> Var:
    """What was there before the write: a load that is there already, or one put behind `stmts`."""
    array, _, *scalars = write.args
    index = tuple(item for item in write.params["index"] if not isinstance(item, New))
    for stmt in stmts:
        if isinstance(stmt, Let) and stmt.op.access == "load" and stmt.args == (array, *scalars) and (
                stmt.params["index"] == index):
            return stmt.target
    type = array.type.with_shape(index_shape(index))
    old = current().var(type, f"{write.target.name}_old")
    stmts.append(Let((old,), ops.load, (array, *scalars), {"index": index}, write.loc))
    return old
