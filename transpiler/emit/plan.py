"""Decide how values are written before anything is: which ones get a name, and which stand inside an expression.

    IR                                  text
    a = load(x, i)                      e = exp(-x[i])
    b = negative(a)                     d_x[i] = e * (1.0 - e)
    e = exp(b)
    f = subtract(1.0, e)
    g = multiply(e, f)
    d_x_1 = store(d_x, g, i)

A scalar that is used once is written where it is used, if that is in the same block (so nothing with a cost moves
into a loop), if no array that it reads is written to in between, and as long as the line stays readable.  What a loop
hands on is computed where it stands, if that is before what was handed on is last read: LLVM vectorises such a loop.
An If whose branches are such expressions is a conditional expression.  What a loop carries without changing is no
carry at all.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from ..ir.dims import symbols_of
from ..ir.index import Span
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import dims_in
from ..ir.walk import all_statements, blocks, operands, reads
from .access import Role, role, template
from .templates import Template, constant

LONGEST = 78            # characters of an expression, about

Place = tuple[int, int]     # a block (by its id) and an index into its statements; the length stands for its results


class Plan:
    """How the values of one func are written.

    alias       a value that is the same as another
    inlined     vars written inside the one expression that uses them
    conditional Ifs written as conditional expressions
    dead        statements without effect whose results nobody needs
    definition  the statement of each target
    uses        how often each var is read
    """

    def __init__(self, func: Func) -> None:
        self.func = func
        self.alias: dict[Var, Value] = {}
        self.inlined: set[Var] = set()
        self.conditional: set[If] = set()
        self.dead: set[Stmt] = set()
        self.uses: Counter[Var] = Counter()
        self.definition: dict[Var, Stmt] = {}
        self.roles: dict[Let, Role] = {}
        self.carried: dict[Stmt, tuple[int, ...]] = {}      # of each loop: the numbers of the carries that change
        self.int_scalars: dict[str, Var] = {}               # what a size may be named after
        self._early: set[Var] = set()
        self._use: dict[Var, Place] = {}
        self._templates: dict[Let, Template] = {}
        self._written: dict[Stmt, frozenset[Var]] = {}
        self._length: dict[Var, int] = {}
        self._collect(func)
        self._count(func.body, func.body.results, ())
        self._decide(func.body)

    # --- what there is -----------------------------------------------------------------------------------------

    def _collect(self, func: Func) -> None:
        for param in func.params:
            self._note_size(param)
        for stmt in all_statements(func.body):
            for target in stmt.targets:
                self.definition[target] = stmt
                self._note_size(target)
            match stmt:
                case Let():
                    self.roles[stmt] = role(stmt)
                case For() | While():
                    if isinstance(stmt, For):
                        self._note_size(stmt.index)
                    changing = []
                    for k, (carry, result) in enumerate(zip(stmt.carries, stmt.body.results)):
                        self._note_size(carry)
                        if result is carry:
                            self.alias[carry] = self.alias[stmt.targets[k]] = stmt.inits[k]
                        else:
                            changing.append(k)
                    self.carried[stmt] = tuple(changing)
                    self._early.update(_before_last_read(stmt))

    def _note_size(self, var: Var) -> None:
        if not var.type.shape and var.type.dtype == "int64":
            self.int_scalars[var.name] = var

    def template(self, let: Let) -> Template:
        """The operation's source for these operands."""
        known = self._templates.get(let)
        if known is None:
            known = self._templates[let] = template(let)
        return known

    def value(self, value: Value) -> Value:
        while isinstance(value, Var) and value in self.alias:
            value = self.alias[value]
        return value

    def root(self, value: Value) -> Value:
        """The array whose memory a chain of views looks at."""
        value = self.value(value)
        while isinstance(value, Var):
            stmt = self.definition.get(value)
            if not (isinstance(stmt, Let) and self.roles[stmt] in (Role.VIEW, Role.SLICE)):
                break
            value = self.value(stmt.args[0])
        return value

    def is_view(self, var: Var) -> bool:
        stmt = self.definition.get(var)
        return isinstance(stmt, Let) and self.roles[stmt] in (Role.VIEW, Role.SLICE)

    def size_vars(self, *dims: object) -> Iterator[Var]:
        """The scalars that the sizes in these dimensions are named after."""
        for dim in dims:
            for name in symbols_of(dim):
                if name in self.int_scalars:
                    value = self.value(self.int_scalars[name])
                    if isinstance(value, Var):
                        yield value

    def written_dims(self, stmt: Stmt) -> list[object]:
        """Dimensions that stand in the statement's own text."""
        if not isinstance(stmt, Let):
            return []
        dims = [d for value in stmt.params.values() for d in dims_in(value)]
        kind = self.roles[stmt]
        if kind is Role.FILLS:
            dims += [d for target in stmt.targets for d in target.type.shape]
        return dims

    def statements(self, block: Block | None = None) -> Iterator[Stmt]:
        """Every statement of the text, those of nested blocks after their owner."""
        for stmt in (block or self.func.body).stmts:
            if stmt not in self.dead:
                yield stmt
                for inner in blocks(stmt):
                    yield from self.statements(inner)

    # --- uses ----------------------------------------------------------------------------------------------------

    def _count(self, block: Block, results: tuple[Value, ...], skip: tuple[int, ...]) -> None:
        end = (id(block), len(block.stmts))
        for k, result in enumerate(results):
            if k not in skip:
                self._read(result, end)
        for index in range(len(block.stmts) - 1, -1, -1):
            stmt, place = block.stmts[index], (id(block), index)
            if _has_no_effect(stmt) and not any(self.uses[target] for target in stmt.targets):
                self.dead.add(stmt)
                continue
            match stmt:
                case Let():
                    self._count_let(stmt, place)
                case Call():
                    for arg in stmt.args:
                        self._read(arg, place)
                case Check():
                    self._read(stmt.pred, place)
                    for value in (*stmt.values, *stmt.lanes):
                        self._read(value, place, 2)
                    for _, value in stmt.kept:
                        self._read(value, place, 2)
                case If():
                    for arm in (stmt.then, stmt.orelse):
                        self._count(arm, arm.results, ())
                    self._read(stmt.pred, place)
                case For() | While():
                    still = tuple(k for k in range(len(stmt.carries)) if k not in self.carried[stmt])
                    self._count(stmt.body, stmt.body.results, still)
                    if isinstance(stmt, While):
                        self._count(stmt.cond, stmt.cond.results, ())
                    else:
                        for bound in (stmt.lo, stmt.hi, stmt.step):
                            self._read(bound, place)
                    for k in self.carried[stmt]:
                        self._read(stmt.inits[k], place)
                case _:
                    assert_never(stmt)

    def _count_let(self, let: Let, place: Place) -> None:
        for arg, times in zip(let.args, self.multiplicities(let)):
            self._read(arg, place, times)
        for var in self.size_vars(*self.written_dims(let)):
            self._read(var, place, 2)

    def multiplicities(self, let: Let) -> list[int]:
        """How often each operand stands in the statement's text."""
        kind = self.roles[let]
        if kind in (Role.LOAD, Role.SLICE, Role.STORE, Role.ADD):
            times = [1] if kind in (Role.LOAD, Role.SLICE) else [2, 1]
            for item in let.params["index"]:
                if isinstance(item, Span):
                    times += [2] if item.start is None else []
                elif str(item) == "at":
                    times.append(1)
            return times
        counts = self.template(let).counts
        return [counts.get(str(k), 0) for k in range(len(let.args))]

    def _read(self, value: Value, place: Place, times: int = 1) -> None:
        value = self.value(value)
        if isinstance(value, Var):
            self.uses[value] += times
            self._use[value] = place
        elif value.type.shape:
            for var in self.size_vars(*value.type.shape):
                self.uses[var] += 2

    # --- decisions -----------------------------------------------------------------------------------------------

    def _decide(self, block: Block) -> None:
        for stmt in block.stmts:
            for inner in blocks(stmt):
                self._decide(inner)
        place_of: dict[int, int] = {}       # of inlined statements: where they are written in the end
        for index in range(len(block.stmts) - 1, -1, -1):
            stmt = block.stmts[index]
            if stmt in self.dead or not self._may_inline(stmt):
                continue
            (target,) = stmt.targets
            if isinstance(stmt, Let) and self._is_name(stmt):
                self.inlined.add(target)
                continue
            if self.uses[target] != 1 or self._use[target][0] != id(block) or target in self._early:
                continue
            user = self._use[target][1]
            last = place_of.get(user, user)
            read = self._arrays_read(stmt)
            if read and any(not read.isdisjoint(self.written(s)) for s in block.stmts[index + 1:last]):
                continue
            self.inlined.add(target)
            place_of[index] = last
        for stmt in block.stmts:
            self._limit_length(stmt)

    def _is_name(self, let: Let) -> bool:
        """Is it a size that has a name already?"""
        return not let.args and isinstance(self.template(let).tree, ast.Name | ast.Constant)

    def _may_inline(self, stmt: Stmt) -> bool:
        match stmt:
            case Let():
                kind = self.roles[stmt]
                return kind in (Role.LOAD, Role.SLICE, Role.VIEW, Role.SCALAR) or (
                    kind is Role.RETURNS and len(stmt.targets) == 1 and not stmt.target.type.shape)
            case If():
                return self._may_be_conditional(stmt)
            case _:
                return False

    def _may_be_conditional(self, stmt: If) -> bool:
        if len(stmt.targets) != 1 or stmt.targets[0].type.shape:
            return False
        for arm in (stmt.then, stmt.orelse):
            if not all(s in self.dead or (s.targets and s.targets[0] in self.inlined) for s in arm.stmts):
                return False
        long = sum(self._length_of(arm.results[0]) for arm in (stmt.then, stmt.orelse))
        if long > LONGEST - 20:
            return False
        self.conditional.add(stmt)
        return True

    def _arrays_read(self, stmt: Stmt) -> set[Var]:
        found: set[Var] = set()
        for one in (stmt, *(s for b in blocks(stmt) for s in all_statements(b))):
            if isinstance(one, Let):
                found.update(r for a in one.args if a.type.shape and isinstance(r := self.root(a), Var))
        return found

    def written(self, stmt: Stmt) -> frozenset[Var]:
        """Arrays whose memory the statement may write to or hand on to a new name."""
        known = self._written.get(stmt)
        if known is not None:
            return known
        found: set[Value] = set()
        match stmt:
            case Let():
                if self.roles[stmt] in (Role.STORE, Role.ADD):
                    found.add(self.root(stmt.args[0]))
            case For() | While():
                found.update(self.root(stmt.inits[k]) for k in self.carried[stmt] if stmt.inits[k].type.shape)
            case If():
                found.update(self.root(r) for b in blocks(stmt) for r in b.results if r.type.shape)
            case Call() | Check():
                pass
            case _:
                assert_never(stmt)
        for inner in blocks(stmt):
            for one in inner.stmts:
                found |= self.written(one)
        result = frozenset(v for v in found if isinstance(v, Var))
        self._written[stmt] = result
        return result

    # --- length of lines -----------------------------------------------------------------------------------------

    def _length_of(self, value: Value) -> int:
        value = self.value(value)
        if isinstance(value, Const):
            return 8 if value.type.shape else len(ast.unparse(constant(value.value, value.type.dtype)))
        return self._length.get(value, len(value.name) if len(value.name) < 12 else 12) if (
            value in self.inlined) else min(len(value.name), 12)

    def _limit_length(self, stmt: Stmt) -> None:
        """Give names to the longest operands until the statement's expression is short enough."""
        match stmt:
            case Let() if stmt not in self.dead:
                times = self.multiplicities(stmt)
                own = 4 * len(stmt.args) if self.roles[stmt] in (Role.LOAD, Role.SLICE, Role.STORE, Role.ADD) else (
                    len(self.template(stmt).text) - 3 * sum(times))
                operands = list(stmt.args)
                if self.roles[stmt] is Role.SCALAR:
                    own += sum(self._is_compound(a) for a in operands)
            case If() if stmt in self.conditional:
                own, times = 12, [1, 1, 1]
                operands = [stmt.pred, stmt.then.results[0], stmt.orelse.results[0]]
            case _:
                return
        while True:
            length = own + sum(self._length_of(v) * n for v, n in zip(operands, times))
            movable = [w for v in (operands if isinstance(stmt, Let) else operands[:1])
                       if isinstance(w := self.value(v), Var) and w in self.inlined]
            if length <= LONGEST or not movable:
                break
            longest = max(movable, key=self._length_of)
            if self._length_of(longest) < 12:
                break
            self.inlined.discard(longest)
        if len(stmt.targets) == 1:
            self._length[stmt.targets[0]] = length

    def _is_compound(self, value: Value) -> bool:
        value = self.value(value)
        if not isinstance(value, Var) or value not in self.inlined:
            return False
        stmt = self.definition[value]
        return isinstance(stmt, If) or self.roles[stmt] is Role.SCALAR  # type: ignore[index]

    # --- expressions as trees ------------------------------------------------------------------------------------

    def named(self, value: Value) -> Iterator[Var]:
        """The vars whose names stand in the expression of the value."""
        value = self.value(value)
        if isinstance(value, Const):
            yield from self.size_vars(*value.type.shape)
        elif value in self.inlined:
            yield from self.named_in(self.definition[value])
        else:
            yield value

    def named_in(self, stmt: Stmt) -> Iterator[Var]:
        """The vars whose names stand in the expression of a Let or a conditional If."""
        if isinstance(stmt, If):
            for value in (stmt.pred, stmt.then.results[0], stmt.orelse.results[0]):
                yield from self.named(value)
        elif isinstance(stmt, (Let, Call)):
            for arg in stmt.args:
                yield from self.named(arg)
            yield from self.size_vars(*self.written_dims(stmt))


def _has_no_effect(stmt: Stmt) -> bool:
    match stmt:
        case Let():
            return bool(stmt.op.is_pure)
        case Check() | Call() | While():        # a While may never end
            return False
        case If() | For():
            return all(map(_has_no_effect, (s for b in blocks(stmt) for s in b.stmts)))
        case _:
            assert_never(stmt)


def _before_last_read(loop: For | While) -> Iterator[Var]:
    """Scalars that the loop hands on, and computes from other things than what was handed on the trip before, while
    that is still to be read."""
    at = {target: k for k, stmt in enumerate(loop.body.stmts) for target in stmt.targets}
    for carry, result in zip(loop.carries, loop.body.results):
        if isinstance(result, Var) and not carry.type.shape and result in at and any(
                carry in operands(stmt) for stmt in loop.body.stmts[at[result] + 1:]):
            needed: set[Value] = {result}
            for stmt in reversed(loop.body.stmts[:at[result] + 1]):
                if not needed.isdisjoint(stmt.targets):
                    needed.update(operands(stmt), *(reads(b) for b in blocks(stmt)))
            if carry not in needed:
                yield result
