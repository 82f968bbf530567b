"""What the reverse sweep needs of values that are gone: which are computed again and which are saved.

A value of a loop's body (or of an arm of a branch) is gone when the reverse sweep reads it.  It can be

- computed again, from operands that must then be there, too;
- read again from a later version of the array that it was read from or stored into (`chains`, `overlap`), where
  every write in between that could have changed it is undone on the way back: what it overwrote is saved;
- found by running an inner loop again in each reverse iteration of the loop around, on tapes that are used over;
- saved: of a loop, on a tape with a slot for each iteration; of an arm, as one more result of the branch.

Each has a price in bytes saved, work being worth some, and each value one way to be made besides saving.  The cheapest
choice of all is a minimal cut of a network (`flow`): a value's need, the way it is made, and the needs of that.

PyTorch's partitioner and Enzyme choose what they keep by a minimal cut, too; here work has a price, and each write to
undo is a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import ops
from ..ir.dims import DimCall, symbols_of
from ..ir.nodes import Block, Check, Const, For, If, Let, Stmt, Value, Var
from ..ir.walk import all_statements, blocks, bound_inside, operands, reads, sizes_used
from ..ops.base import Lowering
from ..optimize.dead_code import live
from .chains import Chains
from .flow import INFINITE, Network
from .overlap import Access, Clash, Places
from .rules import given_value
from .scopes import Scope, Scopes

TYPICAL = 100               # of a size or a count of trips that is not known
WORK = 2                    # flops that cost as much as a byte saved and read again
DEAR = 4                    # flops of an operation above which it waits for itself when done for one number at a time,
LATENCY = 3                 # and then costs this many times as much as among others: vectors hide that
REUSED = 4                  # bytes on a tape that is used over in each iteration, and stays in the cache
FORBIDDEN = 1 << 44         # bytes: worse than anything, but possible


@dataclass
class Residuals:
    """saved, again: for each scope, in the order of definition.  again: statements that are run again when the reverse
    sweep enters the scope; of loops, the values in `own` are saved then, and only for the iterations of that loop.
    undone: writes whose overwritten part is put back, with the value that holds it."""

    saved: dict[Scope, list[Var]] = field(default_factory=dict)
    again: dict[Scope, list[Stmt]] = field(default_factory=dict)
    own: dict[Var, For] = field(default_factory=dict)
    undone: dict[Let, Var] = field(default_factory=dict)


def choose_residuals(scopes: Scopes, chains: Chains, overwritten: dict[Let, Var], needed: Iterable[Var]) -> Residuals:
    """`needed`: variables of nested scopes that the reverse sweep reads.  overwritten: for writes of chains, the
    variable that holds what was there before."""
    needed = set(needed)
    segments = {owner for owner, _ in scopes.inside if isinstance(owner, For) and owner.segment}
    first = _Choice(scopes, chains, overwritten, needed, segments).run()
    if not first.own:
        return first
    # Loops that run again for some values save others, too, where that is cheaper than to compute them once more.
    chosen = set(first.own.values())
    return _Choice(scopes, chains, overwritten, needed, chosen, chosen).run()


class _Choice:
    """running: loops that run again if anything is to be saved of one run of them.  chosen: those that are going to,
    which are not asked whether they pay."""

    def __init__(self, scopes: Scopes, chains: Chains, overwritten: dict[Let, Var], needed: set[Var],
                 running: Collection[For], chosen: Collection[For] = ()) -> None:
        self.scopes, self.chains, self.overwritten = scopes, chains, overwritten
        self.needed, self.running, self.chosen = needed, running, chosen
        self.computed = computed_before(scopes, needed)
        self.places = Places(scopes)
        self.names = scopes.by_name()
        self.indices = {owner.index.name for owner, _ in scopes.inside if isinstance(owner, For)}
        self.network = Network()
        self._met: set[Any] = set()
        self._rerun: dict[Var, For] = {}            # carries and others that only running the loop again makes
        self._runs: dict[For, bool] = {}
        self._read_back: dict[Var, Let] = {}
        self._still_there: dict[Var, list[Let]] = {}        # with the writes to undo
        self._stored = {let.args[1]: (link, let) for link, let in chains.writes()
                        if let.op.access == "store" and isinstance(let.args[1], Var)}
        self._writes: dict[Any, list[tuple[Let, Access]]] = {}
        for _, let in chains.writes():
            key = (chains.anchor(let.targets[0]), chains.group(let.targets[0]))
            self._writes.setdefault(key, []).append((let, self.places.of(let)))

    def run(self) -> Residuals:
        for var in (v for v in self.scopes.of if v in self.needed):     # definitions in program order
            if not self._is_there(var):
                self._need(var)
                self.network.edge(("need", var), "end", INFINITE)
        for loop in self.chosen:
            if self._can_run_again(loop):
                self.network.edge(("run", loop), "end", INFINITE)
        wanted = self.network.sink_side("begin", "end")
        result = Residuals()
        for var, scope in self.scopes.of.items():
            if ("need", var) not in wanted:
                continue
            if self._maker(var) not in wanted:
                result.saved.setdefault(scope, []).append(var)
                home = self._rerun_of(var)
                if home is not None:
                    result.own[var] = home
            elif var in self._rerun:
                result.saved.setdefault(scope, []).append(var)
                result.own[var] = self._rerun[var]
            else:
                stmt = self._read_back.get(var) or scope.defined[var]
                given = given_value(stmt, var)
                if given is not None:
                    stmt = Let((var,), ops.convert, (given,), {"dtype": var.type.dtype}, stmt.loc if stmt else None)
                again = result.again.setdefault(scope, [])
                if isinstance(stmt, (Let, If)) and var not in self._still_there and stmt not in again:
                    again.append(stmt)
        for (owner, _), inside in self.scopes.inside.items():
            if isinstance(owner, For) and ("run", owner) in wanted and inside.parent is not None:
                result.again.setdefault(inside.parent, []).append(owner)
        for scope, again in result.again.items():
            result.again[scope] = in_order(again, self.scopes.of)
        result.undone = {let: old for let, old in self.overwritten.items() if ("undo", let) in wanted}
        if not result.undone:
            self._drop_unread(result)
        return result

    def _drop_unread(self, result: Residuals) -> None:
        """Drop arrays that are saved of segments only for loops that run again there, where what these run for does not
        need them."""
        read: set[Any] = set(self.needed)
        for again in result.again.values():
            for stmt in again:
                read |= _read_for(stmt, result.own) if isinstance(stmt, For) else {
                    *operands(stmt), *(v for b in blocks(stmt) for v in reads(b))}
        for scope, found in result.saved.items():
            result.saved[scope] = [v for v in found if v in read or not v.type.shape or not (
                v in result.own and result.own[v].segment)]

    def _is_there(self, value: Value) -> bool:
        if isinstance(value, Const):
            return True
        scope = self.scopes.of.get(value)
        if scope is None or scope is self.scopes.root:
            return True
        return isinstance(scope.owner, For) and value is scope.owner.index

    # --- the network -------------------------------------------------------------------------------------------

    def _need(self, var: Var) -> None:
        """A value that must be there: its maker, and what saving it instead costs."""
        if ("need", var) in self._met:
            return
        self._met.add(("need", var))
        self._find_way_back(var)
        maker = self._maker(var)
        self.network.edge(maker, ("need", var), self._bytes_saved(var))
        if maker in self._met:
            return
        self._met.add(maker)
        scope = self.scopes.of[var]
        stmt = scope.defined[var]
        if var in self._read_back or var in self._still_there:
            self._make_by_reading(var, maker)
            return
        if isinstance(stmt, Let) and self._make_by_operation(stmt, maker):
            return
        if isinstance(stmt, If) and self._make_by_statement(stmt, scope, maker):
            return
        given = given_value(stmt, var)
        if given is not None:
            self._price(maker, 1)
            self._requires(maker, [given])
            return
        if isinstance(stmt, For) and self._can_run_again(stmt):
            self._price(maker, 1)
            self.network.edge(("run", stmt), maker, INFINITE)
            return
        self._make_by_running_again(var, maker)

    def _maker(self, var: Var) -> Any:
        stmt = self.scopes.of[var].defined[var]
        shared = isinstance(stmt, (Let, If)) and var not in self._read_back and var not in self._still_there
        return ("make", stmt if shared else var)

    def _price(self, maker: Any, price: float) -> None:
        self.network.edge("begin", maker, max(1, int(price)))

    def _requires(self, maker: Any, values: Iterable[Value]) -> None:
        for value in values:
            if not self._is_there(value):
                assert isinstance(value, Var)
                self._need(value)
                self.network.edge(("need", value), maker, INFINITE)

    def _find_way_back(self, var: Var) -> None:
        """Whether the value can be read from memory: as a version of an array that nothing in its block changes
        afterwards, or from the place where it was stored and which nobody wrote to since."""
        scope = self.scopes.of[var]
        stmt = scope.defined[var]
        if var in self.chains.of:
            number = self.places.number[scope.owner] if stmt is None else self.places.last[stmt]  # type: ignore[index]
            clashes = self._clashes(var, Access(scope, number), scope, number)
            if clashes is not None:
                self._still_there[var] = clashes
        elif var in self._stored and not var.type.shape and not (isinstance(stmt, Let) and stmt.op.access == "load"):
            link, write = self._stored[var]
            if link.scope is scope:
                access = self.places.of(write)
                if self._clashes(write.targets[0], access, scope, access.number) == []:
                    self._read_back[var] = Let((var,), ops.load, (write.targets[0], *write.args[2:]),
                                               dict(write.params), write.loc)

    def _make_by_reading(self, var: Var, maker: Any) -> None:
        scope = self.scopes.of[var]
        if var in self._still_there:
            self._price(maker, 1)
            self._requires(maker, self.chains.ends(var))
            self._undo_for(maker, self._still_there[var])
            return
        source, *at = self._read_back[var].args
        assert isinstance(source, Var)
        self._price(maker, self._trips(scope) / WORK)
        self._requires(maker, [*at, *self.chains.ends(source)])

    def _make_by_operation(self, let: Let, maker: Any) -> bool:
        if not let.op.is_pure:
            return False
        if let.op.lowering in (Lowering.KERNEL, Lowering.EXPAND, Lowering.SCATTER) and let.args and not any(
                map(self._has_no_room, let.targets)):
            return False
        scope = self.scopes.of[let.targets[0]]
        home = next((s for s in scope.around() if s.is_loop), None)
        rerun = home is not None and isinstance(home.owner, For) and self._can_run_again(home.owner)
        if not self._read_sources([let], scope, let, maker, home if rerun else None):
            return False
        self._price(maker, self._work(let) * self._trips(self.scopes.of[let.targets[0]]) / WORK)
        return True

    def _make_by_statement(self, stmt: If | For, scope: Scope, maker: Any) -> bool:
        """Running a branch or loop again with all that it reads of the outside; checks have passed already."""
        inner = [s for block in blocks(stmt) for s in all_statements(block) if not isinstance(s, Check)]
        if any(isinstance(s, Let) and not s.op.is_pure for s in inner):
            return False
        if not self._read_sources([stmt, *inner], scope, stmt, maker):
            return False
        work = sum(self._work(s) * self._trips(self._scope_of(s, scope)) for s in inner if isinstance(s, Let))
        self._price(maker, work / WORK)
        return True

    def _make_by_running_again(self, var: Var, maker: Any) -> None:
        home = next((s for s in self.scopes.of[var].around() if s.is_loop), None)
        loop = home.owner if home is not None else None
        if home is None or not isinstance(loop, For) or self._size_changes(var, home) or not self._can_run_again(loop):
            self._price(maker, INFINITE)
            return
        self._rerun[var] = loop
        self._price(maker, self._bytes(var) * self._trips(self.scopes.of[var]) / _reused(loop))
        self.network.edge(("run", loop), maker, INFINITE)

    def _can_run_again(self, loop: For) -> bool:
        """Whether an inner loop can be run in each reverse iteration of the one around."""
        if loop not in self._runs:
            scope = self.scopes.inside[(loop, 0)].parent
            self._runs[loop] = True                 # for those who ask while it is being found out
            self._runs[loop] = scope is not None and bool(scope.loops()) and self._make_by_statement(
                loop, scope, ("run", loop))
            if not self._runs[loop]:
                self._price(("run", loop), INFINITE)
        return self._runs[loop]

    # --- what is read -----------------------------------------------------------------------------------------

    def _read_sources(self, stmts: Sequence[Stmt], block: Scope, top: Stmt, maker: Any,
                      home: Scope | None = None) -> bool:
        """Require all that the statements read of the outside, when they run again as the reverse sweep enters `block`
        (whose statement `top` they are or are in).  An array that has changed inside of the block since must be there
        as it was; False where it is another one in each iteration of `home`, which better runs again and saves the
        part, if that is much smaller.
        """
        made = {t for s in stmts for t in (*s.targets, *bound_inside(s))}
        plain: list[Value] = []
        undo: list[Let] = []
        for stmt in stmts:
            values = [*operands(stmt), *(r for inner in blocks(stmt) for r in inner.results)]
            values += [self.names[s] for s in sorted(sizes_used(stmt)) if s in self.names]
            for k, value in enumerate(values):
                if isinstance(value, Const) or value in made:
                    continue
                if value not in self.chains.of:
                    plain.append(value)
                    continue
                access = Access(self._scope_of(stmt, block), self.places.number[stmt])
                if isinstance(stmt, Let) and stmt.op.access == "load" and k == 0 and stmt.target in self.scopes.of:
                    access = self.places.of(stmt)
                clashes = self._clashes(value, access, block, self.places.number[top])
                if clashes and self._is_cheaper(value, clashes):
                    plain.append(value)
                elif clashes is not None:
                    undo += clashes
                    plain += self.chains.ends(value)
                elif home is not None and home in self.scopes.of[value].around() and (
                        self._elements(value) > 2 * self._elements(top.targets[0])):
                    return False
                else:
                    plain.append(value)                 # the array itself, as it was
        self._requires(maker, plain)
        self._undo_for(maker, undo)
        return True

    def _is_cheaper(self, array: Var, writes: Iterable[Let]) -> bool:
        """Whether it takes no more room to save the array than to save what the writes to undo overwrote."""
        return self._bytes_saved(array) <= sum(self._bytes_saved(self.overwritten[write]) for write in writes)

    def _undo_for(self, maker: Any, writes: Iterable[Let]) -> None:
        for write in writes:
            node = ("undo", write)
            if node not in self._met:
                self._met.add(node)
                self._requires(node, [self.overwritten[write], *write.args[2:]])
                for owner in (scope.owner for scope in self.scopes.of[write.targets[0]].around()):
                    self._requires(node, operands(owner)[:3] if isinstance(owner, For) else
                                   operands(owner) if owner is not None else ())
                self._requires(node, [self.names[s] for s in sorted(sizes_used(write)) if s in self.names])
            self.network.edge(node, maker, INFINITE)

    def _scope_of(self, stmt: Stmt, around: Scope) -> Scope:
        """The block of a statement; that around a While, which has none, for what is inside of it."""
        if stmt.targets:
            return self.scopes.of.get(stmt.targets[0], around)
        parent = self.scopes.inside[(stmt, 0)].parent if (stmt, 0) in self.scopes.inside else None
        return around if parent is None else parent

    def _clashes(self, version: Var, access: Access, block: Scope, after: int) -> list[Let] | None:
        """The writes that must be undone before the read; None where that would be too late, or where the version was
        read from a copy, since it had been written over."""
        found = []
        writer = self.chains.next_writer(version, access.scope)
        if writer is not None and access.number >= self.places.number[writer]:
            return None
        key = (self.chains.anchor(version), self.chains.group(version))
        for write, place in self._writes.get(key, ()):
            clash = self.places.clash(access, block, after, place)
            if clash is Clash.INSIDE or (clash is Clash.AFTER and write not in self.overwritten):
                return None
            if clash is Clash.AFTER:
                found.append(write)
        return found

    # --- prices ------------------------------------------------------------------------------------------------

    def _rerun_of(self, var: Var) -> For | None:
        """The loop that is run again on a tape of which the value is saved: that of its block or, in loops inside of a
        segment, that segment, with room for all their iterations."""
        scope = self.scopes.of[var]
        if scope.owner in self.running and not self._size_changes(var, scope):
            return scope.owner                          # type: ignore[return-value]
        loops = scope.loops()
        at = next((k for k in reversed(range(len(loops))) if loops[k].segment and loops[k] in self.running), None)
        if at is None or self._has_no_room(var) or any(self.places.most_trips(each) is None for each in loops[at + 1:]):
            return None
        return loops[at]

    def _bytes_saved(self, var: Var) -> int:
        scope = self.scopes.of[var]
        home = self._rerun_of(var)
        if home is not None:
            return max(1, self._bytes(var) * self._trips(scope) // _reused(home))
        price = self._bytes(var) * self._trips(scope)
        loops = scope.loops()
        if any(loop.segment for loop in loops):
            return FORBIDDEN * TYPICAL
        if self._has_no_room(var):
            return FORBIDDEN * TYPICAL
        if any(not self._is_even(loop, loops) for loop in loops):
            return FORBIDDEN
        return int(max(price, 1))

    def _size_changes(self, var: Var, home: Scope) -> bool:
        """Whether the value's size is found inside of the loop, so that a tape has no room for all of them."""
        sizes = [self.names[s] for d in var.type.shape for s in symbols_of(d) if s in self.names]
        return any(home in self.scopes.of[size].around() for size in sizes)

    def _has_no_room(self, var: Var) -> bool:
        """Whether the value's greatest size in all iterations is not known, so that it cannot be saved."""
        loops = self.scopes.of[var].loops()
        return any(self.places.most(dim, loops) is None for dim in var.type.shape)

    def _is_root(self, size: str) -> bool:
        var = self.names.get(size)
        return var is None or self.scopes.of[var] is self.scopes.root

    def _is_even(self, loop: For, around: Sequence[For]) -> bool:
        """Whether the most trips follow from sizes and the indices of loops around."""
        indices = {outer.index.name for outer in around}
        used = {s for v in (loop.lo, loop.hi, loop.step) if isinstance(v, Var)
                for s in symbols_of(self.places.dim(v))}
        return all(self._is_root(s) or s in indices for s in used)

    def _bytes(self, var: Var) -> int:
        return self._elements(var) * np.dtype(var.type.dtype).itemsize

    def _elements(self, var: Var) -> int:
        total = 1
        for dim in var.type.shape:
            total *= max(1, estimate(dim, self.indices))
        return total

    def _trips(self, scope: Scope) -> int:
        total = 1
        for loop in scope.loops():
            if all(isinstance(v, Const) for v in (loop.lo, loop.hi, loop.step)):
                total *= max(1, len(range(loop.lo.value, loop.hi.value, loop.step.value)))  # type: ignore[union-attr]
            else:
                total *= TYPICAL
        return total

    def _work(self, let: Let) -> int:
        per = let.op.cost if let.op.lowering is Lowering.ELEMENTWISE else 1
        if per > DEAR and not let.targets[0].type.shape and let.targets[0] in self.computed:
            per *= LATENCY
        return per * max(self._elements(v) for v in (*let.targets, *(a for a in let.args if isinstance(a, Var) and
                                                     let.op.lowering in (Lowering.REDUCTION, Lowering.KERNEL,
                                                                         Lowering.EXPAND))))


def _read_for(loop: For, own: dict[Var, For]) -> set[Any]:
    """What the loop reads of the outside to make the values that it is run again for."""
    stmts = loop.body.stmts
    inside = {v for s in (loop, *all_statements(loop.body)) for v in (*s.targets, *bound_inside(s))}
    wanted: tuple[Value, ...] = tuple(v for v, owner in own.items() if owner is loop)
    made = {*loop.carries, *(t for s in stmts for t in s.targets)}
    if any(owner in all_statements(loop.body) for owner in own.values()) or not made.issuperset(wanted):
        wanted = (*wanted, *loop.body.results, *made)       # for loops inside, too
    carried: set[Var] = {v for v in wanted if v in loop.carries}
    while True:
        results = (r for c, r in zip(loop.carries, loop.body.results) if c in carried)
        read = reads(live(Block(stmts, (*wanted, *results))))
        more = carried | {c for c in loop.carries if c in read}
        if more == carried:
            begins = [init for c, init in zip(loop.carries, loop.inits) if c in carried]
            return (read - inside) | {loop.lo, loop.hi, loop.step, *begins}
        carried = more


def _reused(loop: Any) -> int:
    """How much cheaper the tapes of a loop that is run again are; those of a checkpointed loop are as long as the
    budget allows, and stay in no cache."""
    return 1 if loop.segment else REUSED


def computed_before(scopes: Scopes, needed: Iterable[Var]) -> set[Var]:
    """Values that the forward sweep computes in any case: what the states of loops follow from that `needed` follows
    from.  Others are computed only to be saved."""
    states: list[Var] = []
    follow(scopes, needed, states)
    return follow(scopes, [r for state in states for r in _sources(scopes, state, through=True)], None)


def follow(scopes: Scopes, values: Iterable[Value], states: list[Var] | None) -> set[Var]:
    """All that the values follow from, and they; with `states`, these are told what loops carry, which is not followed
    further."""
    found: set[Var] = set()
    pending = list(values)
    while pending:
        var = pending.pop()
        if not isinstance(var, Var) or var in found or var not in scopes.of:
            continue
        found.add(var)
        if states is not None and scopes.of[var].defined[var] is None:
            states.append(var)
        else:
            pending += _sources(scopes, var, through=states is None)
    return found


def _sources(scopes: Scopes, var: Var, through: bool) -> list[Value]:
    """What the value is made from; through: what the iteration before has made it from, too."""
    scope = scopes.of[var]
    stmt = scope.defined[var]
    if stmt is None:
        owner = scope.owner
        if not through or not isinstance(owner, For) or var not in owner.carries:
            return []
        k = owner.carries.index(var)
        return [owner.inits[k], owner.body.results[k]]
    ends = [block.results[stmt.targets.index(var)] for block in blocks(stmt)] if isinstance(stmt, (If, For)) else [
        v for block in blocks(stmt) for v in reads(block) if isinstance(v, Var)]
    return [*operands(stmt), *ends]


def estimate(dim: Any, indices: Collection[str] = ()) -> int:
    """A dimension with a typical number for every size, and half of it for every index of a loop."""
    if isinstance(dim, int):
        return dim
    total = 0
    for monomial, coefficient in dim.terms:
        term = coefficient
        for atom in monomial:
            term *= _estimated_call(atom, indices) if isinstance(atom, DimCall) else (
                TYPICAL // 2 if atom.name in indices else TYPICAL)
        total += term
    return total


def _estimated_call(call: DimCall, indices: Collection[str]) -> int:
    a, b = (estimate(arg, indices) for arg in call.args)
    if call.kind in ("max", "min"):
        return max(a, b) if call.kind == "max" else min(a, b)
    return (a // b if call.kind == "floordiv" else a % b) if b else 0


def in_order(stmts: Sequence[Stmt], program: Iterable[Var]) -> list[Stmt]:
    """Statements so that each comes after those whose results it reads, else in the order of `program`.

    A value that is read back from where it was stored may need an index that was found after the value.
    """
    place = {var: number for number, var in enumerate(program)}
    maker = {key: s for s in stmts for t in s.targets for key in (t, t.name)}        # a size is read by its name
    done: dict[Stmt, None] = {}

    def put(stmt: Stmt) -> None:
        if stmt in done:
            return
        read = {*operands(stmt), *sizes_used(stmt), *(v for block in blocks(stmt) for v in reads(block))}
        before = {maker[v] for v in read if v in maker and maker[v] is not stmt}
        for other in sorted(before, key=lambda s: place[s.targets[0]]):
            put(other)
        done[stmt] = None

    for stmt in sorted(stmts, key=lambda s: place[s.targets[0]]):
        put(stmt)
    return list(done)
