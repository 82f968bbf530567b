"""Lines of Python from the statements of a func: loops, branches, writes in place, each with the user's line.

A loop's next carries and a branch's results are assigned together: in an order in which no assignment overwrites what
a later one reads, and as one parallel assignment where there is none (`a, b = b, a + b`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, assert_never

import numpy as np

from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from . import calls
from . import templates as t
from .access import Role
from .expressions import Expressions, computes, names_in
from .memory import left_over
from .names import INDICES, Naming
from .noted import of_no_use, trip_functions
from .plan import Plan
from .raising import filled, left_to_fill, quoted
from .storage import Storage

if TYPE_CHECKING:
    from ..errors import Location

COMMENT_COLUMN = 48
INDENT = "    "
CHUNKS = 64         # of a parallel sum: enough for many threads, few enough to cost nothing


@dataclass(frozen=True)
class Line:
    """stmts: what the line computes, beside what is written inside it; of a header, its loop."""

    depth: int
    text: str
    loc: Location | None = None
    stmts: tuple[Stmt, ...] = ()

    def render(self, comments: bool) -> str:
        text = INDENT * self.depth + self.text
        if not comments or self.loc is None:
            return text
        return f"{text.ljust(COMMENT_COLUMN - 2)}  # {PurePath(self.loc.file).name}:{self.loc.line}"


@dataclass(frozen=True)
class Assignment:
    """`value` read anew for `name`; loc, stmts: of what it computes."""

    name: str
    value: ast.expr
    loc: Location | None
    stmts: tuple[Stmt, ...] = ()


class Writer:
    """Writes the body of one function; `functions` gives the names of the module's functions in the text; is_entry:
    whether it is called from outside, rather than by others of these; fills: exceptions fill their messages."""

    def __init__(self, plan: Plan, storage: Storage, naming: Naming, expressions: Expressions,
                 functions: dict[str, str], is_entry: bool = True, fills: bool = False) -> None:
        self.is_entry = is_entry
        self.fills = fills
        self.plan = plan
        self.storage = storage
        self.naming = naming
        self.expressions = expressions
        self.functions = functions
        self.lines: list[Line] = []
        self.depth = 1
        self.writing: tuple[Stmt, ...] = ()         # what the next line is of
        self.failed: str | None = None              # the parameter that takes note of exceptions
        self.noting = False                         # in a function for one trip
        self.trips: list[str] = []                  # such functions
        self.known: set[str] = set()                # names of the module

    def line(self, text: str, loc: Location | None = None) -> None:
        self.lines.append(Line(self.depth, text, loc, self.writing))

    def function(self, func: Func) -> None:
        self.block(func.body)
        results = [self._taken(None, "return", k, result) for k, result in enumerate(func.returned)]
        loc = self._loc(func.returned[0]) if len(results) == 1 else None
        effects = self.storage.memory.kept(left_over(func))
        if effects:
            # Results are computed before what they read is overwritten.
            for k, (result, value) in enumerate(zip(results, func.returned)):
                if computes(result) or not isinstance(result, ast.Name | ast.Constant):
                    kept = t.name(self.naming.fresh("result"))
                    self.writing = self._inside(value)
                    self.assign(kept.id, result, self._loc(value))
                    results[k] = kept
            self.write_back(effects)
        if func.effects and not results:
            if not self.lines:
                self.line("pass")
            return
        if not self.is_entry:
            results = [calls.result(self.plan, value, tree) for value, tree in zip(func.returned, results)]
        text = _tuple_text([ast.unparse(result) for result in results])
        self.writing = tuple(s for result in func.returned for s in self._inside(result))
        self.line(f"return {text}", loc if any(map(computes, results)) else None)

    def write_back(self, pairs: Sequence[tuple[Var, Value]]) -> None:
        """Copy values into the memory of params, as if at once."""
        before, self.writing = self.writing, ()         # the lines are of no statement
        sources = [self.expressions.value(value) for _, value in pairs]
        for k, (_, value) in enumerate(pairs):
            if self.storage.memory.home(value) is not None:
                kept = t.name(self.naming.fresh("new"))
                self.assign(kept.id, t.call(ast.Attribute(sources[k], "copy", ast.Load())))
                sources[k] = kept
        for (param, value), source in zip(pairs, sources, strict=True):
            self._copied_into(self.naming.of(param), source, value)
        self.writing = before

    def _copied_into(self, name: str, source: ast.expr, value: Value) -> None:
        """`for i in range(a.shape[0]): a[i] = source[i]`."""
        if isinstance(value, Var) and not isinstance(source, ast.Name):
            kept = t.name(self.naming.fresh("new"))
            self.assign(kept.id, source)
            source = kept
        indices = [self.naming.fresh(INDICES[k % len(INDICES)]) for k in range(value.type.rank)]
        for k, index in enumerate(indices):
            self.line(f"for {index} in range({name}.shape[{k}]):")
            self.depth += 1
        place = f"[{', '.join(indices)}]"
        element = f"{ast.unparse(source)}{place}" if isinstance(value, Var) else ast.unparse(
            t.constant(value.value, value.type.dtype))
        self.line(f"{name}{place} = {element}")
        self.depth -= len(indices)

    def check(self, stmt: Check) -> None:
        """`if not ...: raise ...`."""
        always = isinstance(stmt.pred, Const) and not stmt.pred.value
        if not always:
            self.line(f"if {ast.unparse(_negated(self.expressions.value(stmt.pred)))}:")
            self.depth += 1
        if self.noting:
            self.line("return False", stmt.loc)
            self.depth -= not always
            return
        self.write_back(self.storage.memory.kept(stmt.kept))
        kind, message, values = filled(stmt) if self.fills else left_to_fill(stmt)
        given = [quoted(message), *(ast.unparse(self.expressions.value(v)) for v in values)]
        self.line(f"raise {kind}({', '.join(given)})", stmt.loc)
        if not always:
            self.depth -= 1

    def print(self, stmt: Check) -> None:
        """`print(...)` of what Numba prints as Python does; else by Python itself."""
        pieces = plain_pieces(stmt)
        values = [ast.unparse(self.expressions.value(v)) for v in stmt.values]
        if pieces is not None:
            supply = iter(values)
            self.line(f"print({', '.join(next(supply) if p is None else quoted(p) for p in pieces)})", stmt.loc)
            return
        self.line("with objmode():")
        self.depth += 1
        text = quoted(stmt.message)
        self.line(f"print({text}.format({', '.join(values)}), end={quoted('')})" if values else
                  f"print({text}, end={quoted('')})", stmt.loc)
        self.depth -= 1

    def block(self, block: Block) -> None:
        for stmt in block.stmts:
            if stmt not in self.plan.dead and not (stmt.targets and stmt.targets[0] in self.plan.inlined):
                self.statement(stmt)

    def nested(self, block: Block, header: str, loc: Location | None = None) -> None:
        self.line(header, loc)
        self.depth += 1
        self.block(block)
        self.depth -= 1

    def statement(self, stmt: Stmt) -> None:
        self.writing = (stmt,)
        match stmt:
            case Let():
                self.let(stmt)
            case Call():
                args = ", ".join(ast.unparse(calls.argument(self.expressions, self.plan, a, self.is_entry,
                                                            (stmt, "argument", k) in self.storage.copies))
                                 for k, a in enumerate(stmt.args))
                targets = ", ".join(map(self.naming.of, stmt.targets))
                call = f"{self.functions[stmt.func]}({args})"
                self.line(f"{targets} = {call}" if targets else call, stmt.loc)
            case Check():
                if stmt.prints:
                    self.print(stmt)
                else:
                    self.check(stmt)
            case If():
                self.branch(stmt)
            case For():
                self.for_loop(stmt)
            case While():
                self.while_loop(stmt)
            case _:
                assert_never(stmt)

    # --- operations ------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        kind = self.plan.roles[let]
        if kind in (Role.STORE, Role.ADD):
            self.write(let)
        elif kind is Role.FILLS:
            outs = []
            for target in let.targets:
                self.assign(self.naming.of(target), self.expressions.empty(target.type))
                outs.append(t.name(self.naming.of(target)))
            self.line(ast.unparse(self.expressions.filled(let, outs)), let.loc)
        else:
            value = self.expressions.statement(let)
            names = ", ".join(map(self.naming.of, let.targets))
            if len(let.targets) > 1:
                self.line(f"{names} = {ast.unparse(value)}", let.loc)
            else:
                self.assign(names, value, self._loc(let.target))

    def write(self, let: Let) -> None:
        """A store or an addition in place, into a copy where the operand is still needed."""
        name = self.naming.of(let.target)
        whole = self.expressions.value(let.args[0])
        if (let, "operand", 0) in self.storage.copies:
            whole = t.call(ast.Attribute(whole, "copy", ast.Load()))
        if not (isinstance(whole, ast.Name) and whole.id == name):
            self.assign(name, whole)
        place = self.expressions.place(let, let.target, let.args[2:])
        value = self.expressions.value(let.args[1])
        if self.plan.roles[let] is Role.ADD:
            if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) and not (
                    isinstance(value.operand, ast.Constant)):
                self.line(f"{ast.unparse(place)} -= {ast.unparse(value.operand)}", let.loc)
            else:
                self.line(f"{ast.unparse(place)} += {ast.unparse(value)}", let.loc)
        else:
            loc = let.loc if let.loc is not None else self._loc(let.args[1])
            self.assign_place(place, value, loc)

    def assign(self, name: str, value: ast.expr, loc: Location | None = None) -> None:
        if isinstance(value, ast.Name) and value.id == name:
            return
        self.assign_place(t.name(name), value, loc)

    def assign_place(self, place: ast.expr, value: ast.expr, loc: Location | None) -> None:
        """`place = value`, or `place += rest` where the value is `place + rest`."""
        loc = loc if computes(value) else None
        text = ast.unparse(place)
        if isinstance(value, ast.BinOp):
            sign = _SIGNS.get(type(value.op))
            if sign and ast.unparse(value.left) == text:
                return self.line(f"{text} {sign}= {ast.unparse(value.right)}", loc)
            if sign in ("+", "*") and ast.unparse(value.right) == text:
                return self.line(f"{text} {sign}= {ast.unparse(value.left)}", loc)
        self.line(f"{text} = {ast.unparse(value)}", loc)

    # --- values handed on ------------------------------------------------------------------------------------------

    def _taken(self, stmt: Stmt | None, which: str, k: int, value: Value) -> ast.expr:
        """The expression of a value that takes its memory, copied where that is not free."""
        tree = self.expressions.value(value)
        if (stmt, which, k) not in self.storage.copies:
            return tree
        if value.type.rank > 1 and which != "return" and not (which == "init" and self._stays(stmt, k)):
            # A copy keeps Fortran's order; loops and branches want one layout from all sides.
            tree = t.call(t.attribute("np", "ascontiguousarray"), tree)
        return t.call(ast.Attribute(tree, "copy", ast.Load()))

    def _stays(self, loop: Stmt | None, k: int) -> bool:
        """Is the carried array the same memory in all iterations?"""
        result = self.plan.value(loop.body.results[k]) if isinstance(loop, (For, While)) else None
        return isinstance(result, Var) and result not in self.plan.inlined and (
            self.storage.owner(result) is self.storage.owner(loop.carries[k]))  # type: ignore[union-attr]

    def hand_on(self, stmt: Stmt, which: str, targets: Sequence[Var], values: Sequence[Value],
                numbers: Sequence[int]) -> None:
        """Assign values to the targets as if at once."""
        pending = []
        for k in numbers:
            name, value = self.naming.of(targets[k]), self._taken(stmt, which, k, values[k])
            if not (isinstance(value, ast.Name) and value.id == name):
                pending.append(Assignment(name, value, self._loc(values[k]), self._inside(values[k])))
        self._assign_all(pending, (stmt,))

    def _assign_all(self, pending: list[Assignment], around: tuple[Stmt, ...]) -> None:
        while pending:
            ready = next((a for a in pending if not any(
                a.name in names_in(b.value) for b in pending if b is not a)), None)
            if ready is None:
                names = ", ".join(a.name for a in pending)
                text = ", ".join(ast.unparse(a.value) for a in pending)
                loc = next((a.loc for a in pending if a.loc is not None and computes(a.value)), None)
                self.writing = tuple(s for a in pending for s in a.stmts) or around
                self.line(f"{names} = {text}", loc)
                return
            self.writing = ready.stmts or around
            self.assign(ready.name, ready.value, ready.loc)
            pending.remove(ready)

    def _inside(self, value: Value) -> tuple[Stmt, ...]:
        """The statement of a value that is written where it is used."""
        value = self.plan.value(value)
        return (self.plan.definition[value],) if isinstance(value, Var) and value in self.plan.inlined else ()

    def _loc(self, value: Value) -> Location | None:
        """Where the user wrote what the value's expression computes: the outermost part that has a line."""
        value = self.plan.value(value)
        stmt = self.plan.definition.get(value) if isinstance(value, Var) else None
        if stmt is None:
            return None
        if stmt.loc is not None:
            return stmt.loc
        args = stmt.args if isinstance(stmt, Let) else (
            *stmt.then.results, *stmt.orelse.results) if isinstance(stmt, If) else ()
        for arg in args:
            if self.plan.value(arg) in self.plan.inlined and (found := self._loc(arg)) is not None:
                return found
        return None

    # --- control flow ------------------------------------------------------------------------------------------------

    def branch(self, stmt: If) -> None:
        if stmt in self.plan.conditional:
            return self.assign(self.naming.of(stmt.targets[0]), self.expressions.statement(stmt),
                               self._loc(stmt.targets[0]))
        then, orelse = (self._arm(stmt, which, block) for which, block in
                        (("then", stmt.then), ("orelse", stmt.orelse)))
        pred = self.expressions.value(stmt.pred)
        if not then and not orelse:
            return
        if not then:
            pred, then, orelse = _negated(pred), orelse, []
        self.writing = (stmt,)
        self.line(f"if {ast.unparse(pred)}:")
        self.lines += then
        if orelse:
            self.line("else:")
            self.lines += orelse

    def _arm(self, stmt: If, which: str, block: Block) -> list[Line]:
        before, self.lines = self.lines, []
        self.depth += 1
        self.block(block)
        self.hand_on(stmt, which, stmt.targets, block.results,
                     [k for k, target in enumerate(stmt.targets) if self.plan.uses[target]])
        self.depth -= 1
        found, self.lines = self.lines, before
        return found

    def for_loop(self, loop: For) -> None:
        changing = self.plan.carried[loop]
        summed = [k for k in changing if loop.carries[k] in self.storage.partial]
        owners = [target if k in summed else carry for k, (target, carry) in enumerate(zip(loop.targets, loop.carries))]
        self.hand_on(loop, "init", owners, loop.inits, changing)
        lo, hi, step = (self.expressions.value(v) for v in (loop.lo, loop.hi, loop.step))
        start = len(self.lines)
        if loop in self.storage.noted:
            self._noted(loop, lo, hi)
        elif summed:
            self._chunks(loop, lo, hi, summed)
        else:
            bounds = [lo, hi, step] if not _is_int(step, 1) else [lo, hi] if not _is_int(lo, 0) else [hi]
            self._counted(loop, "prange" if loop in self.storage.prange else self._serial(loop), bounds)
        if len(self.lines) == start + 1:        # the body wrote nothing
            self.lines.pop()
        self.hand_on(loop, "after", loop.targets, owners, changing)

    def _serial(self, loop: For) -> str:
        """What a loop on one thread goes over."""
        return "abreast" if loop.abreast and "abreast" in self.known else "range"

    def _counted(self, loop: For, kind: str, bounds: list[ast.expr]) -> None:
        self.writing = (loop,)
        self.line(f"for {self.naming.of(loop.index)} in {kind}({', '.join(map(ast.unparse, bounds))}):")
        self.depth += 1
        self.block(loop.body)
        self.hand_on(loop, "body", loop.carries, loop.body.results, self.plan.carried[loop])
        self.depth -= 1

    def _noted(self, loop: For, lo: ast.expr, hi: ast.expr) -> None:
        """A parallel loop over trips that may raise, see `noted`."""
        assert self.failed is not None
        index = self.naming.of(loop.index)
        before, depth, self.lines, self.depth, self.noting = self.lines, self.depth, [], 1, True
        self.block(loop.body)
        self.hand_on(loop, "body", loop.carries, loop.body.results, self.plan.carried[loop])
        body = [line.render(False) for line in self.lines]
        self.lines, self.depth, self.noting = before, depth, False
        name = self.naming.fresh(f"{self.functions[self.plan.func.name]}_{index}")
        texts, call = trip_functions(name, index, body, self.known, self.plan.statements(loop.body))
        self.trips += texts
        bounds = [hi] if _is_int(lo, 0) else [lo, hi]
        self.line(f"for {index} in prange({', '.join(map(ast.unparse, bounds))}):")
        for k, text in enumerate((f"if not {call}:", f"{self.failed}[0] = True")):
            self.lines.append(Line(self.depth + 1 + k, text))
        self.line(f"if {self.failed}[0]:")
        results = [ast.unparse(of_no_use(value.type)) for value in self.plan.func.returned]
        self.lines.append(Line(self.depth + 1, f"return {_tuple_text(results)}"))

    def _chunks(self, loop: For, lo: ast.expr, hi: ast.expr, summed: Sequence[int]) -> None:
        """A parallel loop over chunks of the range, each with sums of its own: in whatever order one chunk adds up,
        and however many threads there are, the result is the same."""
        chunk = t.name(self.naming.fresh("chunk"))
        size = hi if _is_int(lo, 0) else ast.BinOp(hi, ast.Sub(), lo)

        def bound(number: ast.expr) -> ast.expr:
            share = ast.BinOp(ast.BinOp(number, ast.Mult(), size), ast.FloorDiv(), t.number(CHUNKS))
            return share if _is_int(lo, 0) else ast.BinOp(lo, ast.Add(), share)

        kind = "prange" if loop in self.storage.prange else "range"
        self.line(f"for {chunk.id} in {kind}({CHUNKS}):")
        self.depth += 1
        for k in summed:
            carry = loop.carries[k]
            self.assign(self.naming.of(carry), t.constant(np.zeros((), carry.type.dtype).item(), carry.type.dtype))
        self._counted(loop, "range", [bound(chunk), bound(ast.BinOp(chunk, ast.Add(), t.number(1)))])
        for k in summed:
            self.line(f"{self.naming.of(loop.targets[k])} += {self.naming.of(loop.carries[k])}")
        self.depth -= 1

    def while_loop(self, loop: While) -> None:
        changing = self.plan.carried[loop]
        self.hand_on(loop, "init", loop.carries, loop.inits, changing)
        simple = all(s in self.plan.dead or (s.targets and s.targets[0] in self.plan.inlined) for s in loop.cond.stmts)
        pred = self.expressions.value(loop.cond.results[0])
        self.writing = (loop,)
        if simple:
            self.line(f"while {ast.unparse(pred)}:", self._loc(loop.cond.results[0]) if computes(pred) else None)
            self.depth += 1
        else:
            self.line("while True:")
            self.depth += 1
            self.block(loop.cond)
            self.line(f"if {ast.unparse(_negated(pred))}:")
            self.depth += 1
            self.line("break")
            self.depth -= 1
        start = len(self.lines)
        self.block(loop.body)
        self.hand_on(loop, "body", loop.carries, loop.body.results, changing)
        if len(self.lines) == start and simple:
            self.line("pass")
        self.depth -= 1
        self.hand_on(loop, "after", loop.targets, loop.carries, changing)


_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def _tuple_text(items: Sequence[str]) -> str:
    """The items of a tuple; more than 30 in parts, since CPython builds such a display as a list, which Numba does not
    read."""
    if len(items) <= 30:
        return ", ".join(items) if items else "()"
    parts = [items[k:k + 30] for k in range(0, len(items), 30)]
    return " + ".join(f"({', '.join(part)}{',' if len(part) == 1 else ''})" for part in parts)


def _is_int(tree: ast.expr, value: int) -> bool:
    return isinstance(tree, ast.Constant) and tree.value == value


def _negated(pred: ast.expr) -> ast.expr:
    """`not pred`; an order is not turned round, for the sake of NaN."""
    if isinstance(pred, ast.UnaryOp) and isinstance(pred.op, ast.Not):
        return pred.operand
    if isinstance(pred, ast.Compare) and isinstance(pred.ops[0], ast.Eq | ast.NotEq):
        other = ast.NotEq() if isinstance(pred.ops[0], ast.Eq) else ast.Eq()
        return ast.Compare(pred.left, [other], pred.comparators)
    return ast.UnaryOp(ast.Not(), pred)


def plain_pieces(stmt: Check) -> list[str | None] | None:
    """What is printed, as words between spaces at the end of which a line ends: None for a value; or None where it is
    not as simple as that, or another than Python's numbers."""
    if not stmt.message.endswith("\n") or any(str(v.type) not in ("f64", "i64", "bool") for v in stmt.values):
        return None
    text = stmt.message[:-1]
    if "{{" in text or "}}" in text or "\n" in text:
        return None
    pieces: list[str | None] = []
    for part in text.split(" "):
        if part == "{}":
            pieces.append(None)
        elif "{" in part:
            return None
        elif pieces and isinstance(pieces[-1], str):
            pieces[-1] += f" {part}"
        else:
            pieces.append(part)
    return pieces
