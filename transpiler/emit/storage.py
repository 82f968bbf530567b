"""Out of SSA: which values share one variable of the text, and where an array has to be copied.

In the IR arrays are values; in the text they are memory.  Each array has one owner at a time:

    owner      what `empty`, a constant, a kernel, a call, a store, a loop or a branch gives, and a parameter that the
               function has an effect on, or that it takes from other functions of the module (see `taking`)
    borrower   another parameter (it is the caller's) or a view (it is its array's)

A store, a loop's carry, a branch's result, a call and the function's result *take* their operand's memory.  They may
have it if its owner is no other parameter, nobody reads the operand or another view of the same memory afterwards, and
no other result of the same place takes it too; otherwise they take a copy.  So two owners never share memory.  What
lies in the memory of a parameter with an effect is told by `memory`; it is never returned, but copied.

Values that are never needed at the same time and are joined by a loop, a branch or a store share a variable:

    x_1 = for t in 0 .. n carry (x_2 = x): x_3 = r * x_2; yield x_3        for t in range(n):
                                                                              x = r * x
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, blocks, bound_inside, operands
from .access import WRITES, Role
from .memory import Memory
from .noted import may_raise
from .plan import Plan
from .templates import NARROW_INTS

Edge = tuple[object, str, int]      # a statement (None: the func), which of its edges, the number of the value on it


class Storage:
    """copies: the edges on which an array is copied.  prange: loops that run in parallel.  partial: their carries
    that are summed up chunk by chunk, each beginning at zero, and added to the loop's target.  noted: those in which it
    is noted that something was raised, which they are only with `notes`."""

    def __init__(self, plan: Plan, parallel: bool, notes: bool = False,
                 taken: Mapping[str, frozenset[int]] | None = None) -> None:
        self.plan = plan
        self.taken = taken or {}
        self.copies: set[Edge] = set()
        self.prange: set[For] = set()
        self.noted: set[For] = set()
        self.partial: set[Var] = set()
        self.params = set(plan.func.params)
        own = {plan.func.params[k] for k in self.taken.get(plan.func.name, ())}
        self.borrowed = self.params - set(plan.func.effects) - own
        self._points = 0
        self._bits: dict[Var, int] = {}
        self._parent: dict[Var, Var] = {}
        self._reads: dict[Block, set[Var]] = {}
        if parallel:
            self._find_parallel(plan.func.body, notes)
        self._walk(plan.func)
        self.memory = Memory(plan, self.copies)
        self._keep_homes()
        self._take("return", None, plan.func.returned, set(), is_return=True)
        self._coalesce()
        self.prange = {loop for loop in self.prange if self._stays_in_place(loop)}
        self.noted &= self.prange

    def owner(self, var: Var) -> Var:
        """The var that stands for all that share its variable."""
        while var in self._parent:
            var = self._parent[var]
        return var

    def live(self, owner: Var) -> int:
        """The points at which the variable is needed, as bits."""
        return self._bits.get(owner, 0)

    # --- parallel loops ------------------------------------------------------------------------------------------

    def _find_parallel(self, block: Block, notes: bool) -> None:
        for stmt in block.stmts:
            if isinstance(stmt, For) and stmt.parallel and self._may_leave(stmt, notes):
                sums = [k for k in self.plan.carried[stmt] if not stmt.carries[k].type.shape]
                # Numba would widen a sum of narrow integers, and knows no sum of truth values.
                partial = [stmt.carries[k] for k in sums if not self._adds_once(stmt, k)]
                if not any(stmt.carries[k].type.dtype in NARROW_INTS | {"bool"} for k in sums) and not (
                        partial and not _is_one(stmt.step)):
                    self.prange.add(stmt)
                    self.partial.update(partial)
                    if notes and may_raise(self.plan.statements(stmt.body)):
                        self.noted.add(stmt)
                    continue
            for inner in blocks(stmt):
                self._find_parallel(inner, notes)

    def _may_leave(self, loop: For, notes: bool) -> bool:
        """An exception does not get out of a parallel loop: that there was one can be noted if the loop adds nothing
        up.  Printing needs Python."""
        inside = list(self.plan.statements(loop.body))
        if any(isinstance(stmt, Check) and stmt.prints for stmt in inside):
            return False
        return not may_raise(inside) or (notes and all(
            loop.carries[k].type.shape for k in self.plan.carried[loop]) and _is_one(loop.step))

    def _stays_in_place(self, loop: For) -> bool:
        """Is every array that the loop carries the same memory in all iterations, and all through each?"""
        arrays = [k for k in self.plan.carried[loop] if loop.carries[k].type.shape]
        return all(self._is_written_in_place(loop, k) for k in arrays)

    def _is_written_in_place(self, loop: For | While, k: int) -> bool:
        """Whether what an iteration makes of an array that it carries is in the memory that the carry was in."""
        carry, result = loop.carries[k], self.plan.value(loop.body.results[k])
        return (loop, "body", k) not in self.copies and isinstance(result, Var) and (
            self.owner(result) is self.owner(carry)) and self._is_memory_of(result, carry)

    def _is_memory_of(self, version: Value, first: Var) -> bool:
        """Whether a version of an array, made by writes, loops and branches from another one, was never copied."""
        version = self.plan.value(version)
        if version is first:
            return True
        made = self.plan.definition.get(version) if isinstance(version, Var) else None
        match made:
            case Let() if self.plan.roles[made] in WRITES:
                return (made, "operand", 0) not in self.copies and self._is_memory_of(made.args[0], first)
            case For() | While():
                k = made.targets.index(version)
                return (made, "init", k) not in self.copies and self._is_written_in_place(made, k) and (
                    self._is_memory_of(made.inits[k], first))
            case If():
                k = made.targets.index(version)
                return not {(made, "then", k), (made, "orelse", k)} & self.copies and all(
                    self._is_memory_of(arm.results[k], first) for arm in (made.then, made.orelse))
            case _:
                return False

    def _adds_once(self, loop: For, k: int) -> bool:
        """Is the next carry `carry + something` and the carry read nowhere else?"""
        carry, result = loop.carries[k], self.plan.value(loop.body.results[k])
        let = self.plan.definition.get(result) if isinstance(result, Var) else None
        if not isinstance(result, Var) or not isinstance(let, Let) or self.plan.roles[let] is not Role.SCALAR:
            return False
        if self.plan.uses[carry] != 1 or self.plan.uses[result] != 1 or let not in loop.body.stmts:
            return False
        tree = self.plan.template(let).tree
        return carry in let.args and isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add) and isinstance(
            tree.left, ast.Name) and isinstance(tree.right, ast.Name) and self.plan.value(let.args[0]) is not (
            self.plan.value(let.args[1]))

    # --- liveness and copies -------------------------------------------------------------------------------------

    def _point(self, live: Iterable[Var]) -> None:
        bit = 1 << self._points
        self._points += 1
        for var in live:
            self._bits[var] = self._bits.get(var, 0) | bit

    def _walk(self, func: Func) -> None:
        live = self._block(func.body, self._named(func.results))
        self._point(live | set(func.params))

    def _named(self, values: Iterable[Value]) -> set[Var]:
        return {var for value in values for var in self.plan.named(value)}

    def _block(self, block: Block, live: set[Var]) -> set[Var]:
        for stmt in reversed(block.stmts):
            if stmt in self.plan.dead or (stmt.targets and stmt.targets[0] in self.plan.inlined):
                continue
            live = self._statement(stmt, live)
        return live

    def _statement(self, stmt: Stmt, live: set[Var]) -> set[Var]:
        targets = set(stmt.targets)
        match stmt:
            case Let() | Call():
                return self._let(stmt, live)
            case Check():
                return live | self._named(operands(stmt))
            case If():
                self._point(live | targets)
                live = live - targets
                if stmt in self.plan.conditional:
                    return live | set(self.plan.named_in(stmt))
                before: set[Var] = set()
                for which, arm in (("then", stmt.then), ("orelse", stmt.orelse)):
                    self._take(which, stmt, arm.results, live)
                    before |= self._block(arm, live | self._named(arm.results))
                return before | self._named([stmt.pred])
            case For() | While():
                return self._loop(stmt, live)
            case _:
                assert_never(stmt)

    def _let(self, stmt: Let | Call, live: set[Var]) -> set[Var]:
        targets = set(stmt.targets)
        self._point(live | targets)
        live = live - targets
        read = set(self.plan.named_in(stmt))
        kind = self.plan.roles[stmt] if isinstance(stmt, Let) else None
        if kind in WRITES:
            whole = self.plan.value(stmt.args[0])
            if not self._is_free(whole, live):
                self.copies.add((stmt, "operand", 0))
            # The target stands for the operand while the element is computed.
            self._point(live | targets | (self._named(stmt.args[1:]) - {whole}))  # type: ignore[arg-type]
        elif kind is Role.FILLS:
            self._point(live | targets | read)
        elif isinstance(stmt, Call):
            self._call(stmt, live)
        return live | read

    def _call(self, call: Call, live: set[Var]) -> None:
        for k in self.taken.get(call.func, ()):
            others = self._named([*call.args[:k], *call.args[k + 1:]])
            if not self._is_free(self.plan.value(call.args[k]), live | others, views_may=False):
                self.copies.add((call, "argument", k))

    def _keep_homes(self) -> None:
        """A call does not take what lies in a parameter's memory."""
        for stmt in self.plan.statements():
            if isinstance(stmt, Call):
                self.copies.update((stmt, "argument", k) for k in self.taken.get(stmt.func, ())
                                   if self.memory.home(stmt.args[k]) is not None)

    def _loop(self, loop: For | While, live: set[Var]) -> set[Var]:
        changing = self.plan.carried[loop]
        targets = {loop.targets[k] for k in changing}
        summed = {loop.targets[k] for k in changing if loop.carries[k] in self.partial}
        inside = set(bound_inside(loop)) - {c for k, c in enumerate(loop.carries) if k not in changing}
        carries = {loop.carries[k] for k in changing} | summed
        results = [loop.body.results[k] for k in changing]
        inits = [loop.inits[k] for k in changing]
        self._point(live | targets)
        live = live - targets
        self._point(live | carries)
        outer = self._free(loop) | live
        self._take("body", loop, loop.body.results, outer, only=changing)
        self._point(outer | carries)
        now = self._block(loop.body, outer | summed | self._named(results))
        if isinstance(loop, While):
            now = self._block(loop.cond, now | live | carries | self._named(loop.cond.results))
        self._point(now | outer | inside | carries)
        bounds = self._named([loop.lo, loop.hi, loop.step]) if isinstance(loop, For) else set()
        self._point(outer | carries | bounds)
        self._take("init", loop, loop.inits, outer, only=changing)
        return outer - summed | bounds | self._named(inits)

    def _free(self, loop: For | While) -> set[Var]:
        """Names that the loop reads from outside."""
        read = set[Var]().union(*(self._read_in(b) for b in blocks(loop)))
        return read - {v for b in blocks(loop) for s in all_statements(b) for v in (*s.targets, *bound_inside(s))} - (
            set(bound_inside(loop)))

    def _read_in(self, block: Block) -> set[Var]:
        known = self._reads.get(block)
        if known is not None:
            return known
        found = self._named(block.results)
        for stmt in block.stmts:
            if stmt in self.plan.dead:
                continue
            match stmt:
                case Let() | Call():
                    found |= set(self.plan.named_in(stmt))
                case If():
                    found |= self._named([stmt.pred])
                case For():
                    found |= self._named([stmt.lo, stmt.hi, stmt.step, *stmt.inits])
                case While():
                    found |= self._named(stmt.inits)
                case Check():
                    found |= self._named(operands(stmt))
                case _:
                    assert_never(stmt)
            for inner in blocks(stmt):
                found |= self._read_in(inner)
        self._reads[block] = found
        return found

    def _is_free(self, value: Value, live: set[Var], views_may: bool = True) -> bool:
        """May the memory of the array be taken, where `live` are read later?"""
        if isinstance(value, Const):
            return True
        root = self.plan.root(value)
        if root in self.borrowed or (self.plan.is_view(value) and not views_may):
            return False
        return not any(var.type.shape and self.plan.root(var) is root for var in live)

    def _take(self, which: str, stmt: Stmt | None, values: Sequence[Value], live: set[Var],
              only: Sequence[int] | None = None, is_return: bool = False) -> None:
        taken: set[Value] = set()
        for k in range(len(values)) if only is None else only:
            value = self.plan.value(values[k])
            if not value.type.shape or isinstance(value, Const):
                continue
            root = self.plan.root(value)
            if root in taken or not self._is_free(value, live, views_may=is_return) or (
                    is_return and self.memory.home(value) is not None):
                self.copies.add((stmt, which, k))
            else:
                taken.add(root)

    # --- sharing variables ---------------------------------------------------------------------------------------

    def _coalesce(self) -> None:
        for a, b in self._pairs():
            self._join(a, b)

    def _pairs(self) -> Iterator[tuple[Value, Value]]:
        for stmt in self.plan.statements():
            match stmt:
                case Let() if self.plan.roles[stmt] in WRITES:
                    yield stmt.args[0], stmt.target
                case If():
                    for arm in (stmt.then, stmt.orelse):
                        yield from zip(stmt.targets, arm.results)
                case For() | While():
                    for k in self.plan.carried[stmt]:
                        carry, target, init = stmt.carries[k], stmt.targets[k], stmt.inits[k]
                        if carry not in self.partial:
                            yield carry, target
                        yield carry, stmt.body.results[k]
                        yield target, init
                case _:
                    pass

    def _join(self, a: Value, b: Value) -> None:
        a, b = self.plan.value(a), self.plan.value(b)
        if isinstance(a, Const) or isinstance(b, Const) or a in self.plan.inlined or b in self.plan.inlined:
            return
        if a.type.dtype != b.type.dtype or a.type.rank != b.type.rank:
            return
        home = self.memory.home(a)
        if home != self.memory.home(b):
            return      # the name of a parameter with an effect always means its memory
        if home is None and _called(a) != _called(b) and (a in self.params or b in self.params or not a.type.shape):
            return      # the user has two names for it: `d_x = ct`
        a, b = self.owner(a), self.owner(b)
        if a is b or self.live(a) & self.live(b) or self._is_index(a) or self._is_index(b):
            return
        if b in self.params:
            a, b = b, a
        self._parent[b] = a
        self._bits[a] = self.live(a) | self.live(b)

    def _is_index(self, var: Var) -> bool:
        if not hasattr(self, "_indices"):
            self._indices = {s.index for s in all_statements(self.plan.func.body) if isinstance(s, For)}
        return var in self._indices


def _is_one(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 1


def _called(var: Var) -> str:
    """The name without numbers; what has none may be called anything."""
    return re.sub(r"(_\d+)+$", "", var.name)
