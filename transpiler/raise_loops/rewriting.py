"""What a loop is made into before it is raised: additions to places as such, reads of what no trip changes from the
array before the loop, and a part of an array that all trips work on as a carry of its own.

    before                                    after
    for k in 0 .. m carry (c):                x = load(c_0, i, j)
      v = load(c, i, j)                       for k in 0 .. m carry (s = x):
      w = add(v, t)                             w = add(s, t)
      d = store(c, w, i, j)                     yield w
      yield d                                 store(c_0, w, i, j)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .. import ops
from ..ir.build import building, current, located
from ..ir.dependence import Access, axis_items
from ..ir.index import Span
from ..ir.ints import Ints
from ..ir.nodes import Block, Check, For, If, Let, Stmt, Value, Var
from ..ir.walk import blocks, replacement, same_value, with_blocks, with_operands
from .facts import Facts, Meeting
from .flat import readers
from .lane import Items
from .versions import Versions, versions_of
from .views import View


def without_kept(loop: For) -> For:
    """With checks that do not say what arrays are to hold should they fail."""
    def visit(block: Block) -> Block:
        stmts = []
        for stmt in block.stmts:
            if isinstance(stmt, Check):
                stmt = replace(stmt, kept=())
            stmts.append(with_blocks(stmt, [visit(b) for b in blocks(stmt)]))
        return Block(tuple(stmts), block.results)

    return replace(loop, body=visit(loop.body))


def without_idle_branches(loop: For) -> For:
    """Without results of branches that are the same on both sides."""
    replaced: dict[Var, Value] = {}

    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for old in block.stmts:
            stmt = with_operands(old, replaced)
            stmt = with_blocks(stmt, [visit(b) for b in blocks(stmt)])
            if isinstance(stmt, If):
                same = [a is b for a, b in zip(stmt.then.results, stmt.orelse.results)]
                replaced.update((t, a) for t, a, s in zip(stmt.targets, stmt.then.results, same) if s)
                if any(same):
                    kept = [k for k, s in enumerate(same) if not s]
                    arms = [Block(b.stmts, tuple(b.results[k] for k in kept)) for b in blocks(stmt)]
                    stmt = If(tuple(stmt.targets[k] for k in kept), stmt.pred, arms[0], arms[1], stmt.loc)
            stmts.append(stmt)
        return Block(tuple(stmts), tuple(replacement(r, replaced) for r in block.results))

    body = visit(loop.body)
    return loop if not replaced else replace(loop, body=body)


def with_adds(loop: For, ints: Ints) -> For:
    """Where an element is read, something added and the sum stored to the same place, the addition as one write."""
    read_by = readers(loop.body)
    defined: dict[Value, Let] = {s.target: s for s in _lets(loop.body)}
    changed: dict[Stmt, Let] = {}
    for store in defined.values():
        if store.op.access != "store" or not isinstance(store.args[1], Var):
            continue
        total = defined.get(store.args[1])
        folding = None if total is None else total.op.folding
        if total is None or folding is None or folding.writes is None or len(read_by[total.target]) != 1 or (
                total.target.type.kind not in folding.kinds):
            continue
        for k in (0, 1) if folding.commutes else (0,):
            load = defined.get(total.args[k])
            if load is None or load.op.access != "load" or not _same_place(load, store, ints) or len(
                    read_by[load.target]) != 1:
                continue
            with building(current().names, total.loc) as b:
                term = folding.term(total.args[1 - k])
                made = getattr(ops, folding.writes)(store.args[0], term, *store.args[2:], index=store.params["index"])
            last = b.stmts[-1]
            assert isinstance(last, Let) and last.target is made
            changed[store] = Let(store.targets, last.op, last.args, last.params, store.loc)
            if len(b.stmts) > 1:
                changed[total] = b.stmts[0]  # type: ignore[assignment]
            break
    return loop if not changed else _exchanged(loop, changed)


def _same_place(load: Let, store: Let, ints: Ints) -> bool:
    return (load.args[0] is store.args[0] and load.params["index"] == store.params["index"]
            and all(same_value(a, b) or ints.dim(a) == ints.dim(b) for a, b in zip(load.args[1:], store.args[2:])))


def _lets(block: Block) -> list[Let]:
    found = []
    for stmt in block.stmts:
        if isinstance(stmt, Let) and len(stmt.targets) == 1:
            found.append(stmt)
        for inner in blocks(stmt):
            found += _lets(inner)
    return found


def _exchanged(loop: For, changed: Mapping[Stmt, Let]) -> For:
    def visit(block: Block) -> Block:
        stmts = []
        for stmt in block.stmts:
            stmt = changed.get(stmt, stmt)
            stmts.append(with_blocks(stmt, [visit(b) for b in blocks(stmt)]))
        return Block(tuple(stmts), block.results)

    return replace(loop, body=visit(loop.body))


def reading_before(loop: For, facts: Facts, around: Sequence[For], local: set[str]) -> For:
    """Loads of carried arrays that no trip writes to where they read, from the arrays as they were before the loop."""
    changed: dict[Stmt, Let] = {}
    meeting = Meeting(facts, loop, around, local)
    for number, carry in enumerate(loop.carries):
        if not carry.type.shape:
            continue
        versions = versions_of(loop, number)
        if not versions.pure or not versions.writes:
            continue
        writes = [Access(facts.place(let), inner) for let, inner, _ in versions.writes]
        for let, inner, _ in versions.loads:
            read = Access(facts.place(let), inner)
            if not any(meeting.ever(write, read) for write in writes):
                changed[let] = Let(let.targets, let.op, (loop.inits[number], *let.args[1:]), let.params, let.loc)
    return loop if not changed else _exchanged(loop, changed)


def with_part(loop: For, number: int, view: View, versions: Versions, part: Value) -> For:
    """The loop with the part of an array that all trips work on as the carry, which `part` is at first."""
    carry, target = loop.carries[number], loop.targets[number]
    b = current()
    own = b.var(part.type, carry.name)
    replaced: dict[Var, Value] = {carry: own}
    body = _on_part(loop.body, view, versions, replaced)
    end = b.var(part.type, target.name)

    def put(values: tuple, new: object) -> tuple:  # type: ignore[type-arg]
        return (*values[:number], new, *values[number + 1:])

    return replace(loop, targets=put(loop.targets, end), carries=put(loop.carries, own),
                   inits=put(loop.inits, part), body=body)


def _on_part(block: Block, view: View, versions: Versions, replaced: dict[Var, Value]) -> Block:
    with building(current().names) as b:
        for stmt in block.stmts:
            match stmt:
                case Let() if stmt.op.access is not None and stmt.args[0] in versions.vars:
                    with located(stmt.loc):
                        _access(stmt, view, replaced)
                case If() if any(t in versions.vars for t in stmt.targets):
                    arms = [_on_part(arm, view, versions, replaced) for arm in blocks(stmt)]
                    targets = tuple(b.var(r.type, t.name) if t in versions.vars else t
                                    for t, r in zip(stmt.targets, arms[0].results))
                    replaced.update((t, n) for t, n in zip(stmt.targets, targets) if t is not n)
                    pred = replacement(stmt.pred, replaced)
                    b.stmts.append(If(targets, pred, arms[0], arms[1], stmt.loc))
                case _:
                    new = with_operands(stmt, replaced)
                    b.stmts.append(with_blocks(new, [_on_part(x, view, versions, replaced) for x in blocks(new)]))
    return Block(tuple(b.stmts), tuple(replacement(r, replaced) for r in block.results))


def _access(stmt: Let, view: View, replaced: dict[Var, Value]) -> None:
    array = replacement(stmt.args[0], replaced)
    items: Items = view.reduced(axis_items(stmt))
    scalars = [replacement(s, replaced) for _, s in items if s is not None]
    index = tuple(item for item, _ in items)
    whole = all(isinstance(item, Span) and item == Span(0, d) for item, d in zip(index, array.shape))
    if stmt.op.access == "load":
        replaced[stmt.target] = array if whole else ops.load(array, *scalars, index=index)
        return
    value = replacement(stmt.args[1], replaced)
    if whole:
        replaced[stmt.target] = ops.add(array, value) if stmt.op.adds else value
    else:
        replaced[stmt.target] = stmt.op(array, value, *scalars, index=index)
