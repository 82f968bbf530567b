"""Which values get an array of their own and which stay virtual (computed where they are used).

Elementwise and reindexing operations can be virtual.  One is given an array when something needs it whole: it is a
result, or an operand of a library call or of control flow.  It also gets one when recomputing it would cost more
than keeping it: it is dear and used by loop nests that cannot become one, repeated along inner axes, or read at
many places of one nest: in a chain of `v = v[1:] - v[:-1]` each link would double the work.  And it gets one where it
is written over before it is used (`overwritten`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.ints import Ints
from ..ir.nodes import Block, Let, Stmt, Var
from ..ir.walk import blocks, operands, reads
from ..ops.base import Lowering
from .overwritten import keep_overwritten

DEAR = 6            # cost of an inlined expression above which two separate nests share an array of it
PLACES = 4          # places of one nest at which a value is computed anew, at most
REPEATED = 2        # cost above which an operand that is repeated along outer axes gets an array


@dataclass(frozen=True)
class Plan:
    """virtual: values without an array.  views: values that are NumPy views, made for a library call.  unset: arrays
    of which no element is set."""

    virtual: dict[Var, Let]
    views: set[Var]
    unset: set[Var]


def can_be_virtual(stmt: Stmt) -> bool:
    """Scalars are computed where they stand: one read of an array before a write to it must stay before."""
    return isinstance(stmt, Let) and stmt.op.is_pure and len(stmt.targets) == 1 and bool(stmt.target.type.shape) and (
        stmt.op.lowering in (Lowering.REINDEX, Lowering.ELEMENTWISE))


def plan(block: Block, ints: Ints) -> Plan:
    """ints: of the func that the block is of."""
    virtual: dict[Var, Let] = {s.target: s for s in block.stmts if isinstance(s, Let) and can_be_virtual(s)}
    lets = [s for s in block.stmts if isinstance(s, Let)]
    views = _needed_whole(block, virtual)
    _keep_scattered(lets, virtual)
    behind = _ancestors(block)
    _keep_dear(lets, virtual, behind)
    keep_overwritten(lets, virtual, _users(lets, virtual), behind, ints)
    return Plan(virtual, views, {let.target for let in lets if let.op.is_unset})


def _needed_whole(block: Block, virtual: dict[Var, Let]) -> set[Var]:
    """Take out of `virtual` what must be an array; return those that can be views of one."""
    views: set[Var] = set()

    def whole(value: Any, as_view: bool) -> None:
        let = virtual.get(value) if isinstance(value, Var) else None
        if let is None:
            return
        if not value.type.shape:
            virtual.pop(value)
            return
        if as_view and let.op.lowering is Lowering.REINDEX and len(let.args) == 1 and isinstance(
                let.args[0], Var) and let.op.view([a.type for a in let.args], let.params) is not None:
            views.add(value)
            virtual.pop(value)
            whole(let.args[0], True)
            return
        virtual.pop(value)

    for result in block.results:
        whole(result, False)
    for stmt in reversed(block.stmts):
        if not isinstance(stmt, Let):
            for value in {*operands(stmt)}.union(*(reads(b) for b in blocks(stmt))):
                whole(value, False)
        elif stmt.op.lowering in (Lowering.KERNEL, Lowering.EXPAND):
            for value in stmt.args:
                whole(value, stmt.op.lowering is Lowering.KERNEL)
        elif stmt.op.lowering is Lowering.SCATTER:
            whole(stmt.args[0], False)
    return views


def _keep_scattered(lets: list[Let], virtual: dict[Var, Let]) -> None:
    """Take out of `virtual` what one nest would compute at more than `PLACES` places.

    A place is the sequence of reindexings on the way from the nest to the value, as a number; from the last statement
    to the first, so that what gets an array is a nest of its own for what it reads.
    """
    is_dear: dict[Var, bool] = {}
    for let in lets:
        if let.targets[0] in virtual:
            inputs = [a for a in let.args if isinstance(a, Var) and a in virtual]
            is_dear[let.target] = let.op.cost > REPEATED or any(map(is_dear.__getitem__, inputs)) or (
                let.op.cost > 0 and any(virtual[a].op.cost > 0 for a in inputs))
    numbers: dict[Any, int] = {}
    places: dict[Var, dict[Let, set[int]]] = {v: {} for v in virtual}
    for let in reversed(lets):
        here = places.get(let.targets[0], {}) if let.targets[0] in virtual else {let: {0}}
        moves = let.op.lowering is Lowering.REINDEX
        if let.targets[0] in virtual and is_dear[let.target] and (not moves or len(let.args) > 1) and any(
                len(found) > PLACES for found in here.values()):
            del virtual[let.target]
            here = {let: {0}}
        for k, arg in enumerate(let.args):
            if not isinstance(arg, Var) or arg not in virtual:
                continue
            for nest, found in here.items():
                there = places[arg].setdefault(nest, set())
                for place in found:
                    if len(there) <= PLACES:
                        step = (place, let.targets[0], k)
                        there.add(numbers.setdefault(step, len(numbers) + 1) if moves else place)


def _users(lets: list[Let], virtual: dict[Var, Let]) -> dict[Var, set[Let]]:
    """The statements with memory of their own for which a virtual value is computed."""
    users: dict[Var, set[Let]] = {v: set() for v in virtual}
    for let in reversed(lets):
        roots = users[let.targets[0]] if let.targets[0] in virtual else {let}
        for arg in let.args:
            if arg in users:
                users[arg] |= roots
    return users


def _keep_dear(lets: list[Let], virtual: dict[Var, Let], behind: dict[Var, frozenset[Var]]) -> None:
    """Take out of `virtual` what is cheaper kept than computed again."""
    users = _users(lets, virtual)
    cost: dict[Var, int] = {}
    for let in lets:
        if let.targets[0] not in virtual:
            continue
        value = let.target
        types = [a.type for a in let.args]
        copies = let.op.copies_along(types, **let.params) if let.op.lowering is Lowering.REINDEX else ()
        hoistable = bool(copies) and min(copies) >= max(a.type.rank for a in let.args)
        cost[value] = 0 if hoistable else let.op.cost + sum(
            cost.get(a, 0) for a in let.args if isinstance(a, Var) and a in virtual)
        shared = len(users[value]) > 1 and cost[value] > DEAR and not _one_nest(users[value], behind)
        if value.type.shape and shared:
            del virtual[value]
            continue
        for arg in let.args:
            if copies and not hoistable and isinstance(arg, Var) and arg in virtual and arg.type.shape and (
                    cost[arg] > REPEATED):
                del virtual[arg]


def _ancestors(block: Block) -> dict[Var, frozenset[Var]]:
    """For each value, all values of the block that it depends on."""
    behind: dict[Var, frozenset[Var]] = {}
    for stmt in block.stmts:
        read = {v for v in operands(stmt) if isinstance(v, Var)}.union(*(reads(b) for b in blocks(stmt)))
        all_read = frozenset(v for v in read if isinstance(v, Var)).union(*(behind.get(v, ()) for v in read))
        for target in stmt.targets:
            behind[target] = all_read
    return behind


def _one_nest(users: set[Let], behind: dict[Var, frozenset[Var]]) -> bool:
    """Whether the loop nests of these statements can become one: same space, none depends on another."""
    spaces = {_space(let) for let in users}
    if len(spaces) > 1:
        return False
    targets = [let.targets[0] for let in users]
    return not any(a is not b and a in behind[b] for a in targets for b in targets)


def _space(let: Let) -> tuple[Any, ...]:
    if let.op.lowering is Lowering.REDUCTION:
        return let.args[0].type.shape
    if let.op.lowering is Lowering.REINDEX and let.op.destination(
            [a.type for a in let.args], **let.params) is not None:
        return let.args[0].type.shape
    if let.op.lowering is Lowering.SCATTER:
        return let.op.space([a.type for a in let.args], **let.params)
    return let.targets[0].type.shape
