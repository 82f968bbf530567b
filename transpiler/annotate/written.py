"""Which generated line comes from which statements, and which loops stand around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..emit.plan import Plan
from ..emit.python import Emitted
from ..emit.statements import Line
from ..emit.storage import Storage
from ..errors import Location
from ..ir.nodes import For, If, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, operands
from .facts import Place, place_of


@dataclass(frozen=True)
class WrittenLine:
    """number: in the module's text, from 1.  loops: the headers around it, outermost first.  stmts: all that it
    computes, without loops that lowering made."""

    number: int
    line: Line
    loops: tuple[WrittenLine, ...]
    stmts: tuple[Stmt, ...]

    @property
    def loop(self) -> For | While | None:
        """The loop that the line is the header of."""
        first = self.line.stmts[0] if is_header(self.line) else None
        return first if isinstance(first, (For, While)) else None

    @property
    def places(self) -> tuple[Place, ...]:
        """The user's lines that it comes from."""
        return tuple(dict.fromkeys(p for s in self.stmts if (p := place_of(s.loc)) is not None))

    def part_at(self, place: Place) -> tuple[str, ...]:
        """What transforms made of that line of the user's here."""
        return next(s.loc.part for s in self.stmts if s.loc is not None and place_of(s.loc) == place)


@dataclass(frozen=True)
class WrittenFunction:
    """One function of the module's text."""

    lines: tuple[WrittenLine, ...]
    plan: Plan
    storage: Storage

    def header_of(self, index: Var) -> int | None:
        """The number of the line that opens the loop with that index."""
        for line in self.lines:
            loop = line.loop
            if isinstance(loop, For) and loop.index is index:
                return line.number
        return None


def written_functions(emitted: Emitted, finished: str, made_loops: set[Var]) -> list[WrittenFunction]:
    """`finished`: the emitted text with lines added; the numbers are those in it.  made_loops: the indices of loops
    that are not the user's."""
    numbers = _numbers(emitted.text.split("\n"), finished.split("\n"))
    return [WrittenFunction(tuple(_lines(lines, [numbers[start + k] for k in range(len(lines))], plan,
                                         made_loops)), plan, storage)
            for start, lines, plan, storage in emitted.functions]


def _numbers(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """Where each line of the emitted text is in the finished one, which has more lines, and other parameters."""
    found: dict[int, int] = {}
    at = 0
    for number, line in enumerate(before, 1):
        head = line.partition("(")[0] if line.startswith("def ") else None
        while after[at] != line and not (head is not None and after[at].startswith(f"{head}(")):
            at += 1
        at += 1
        found[number] = at
    return found


def _lines(lines: Sequence[Line], numbers: Sequence[int], plan: Plan, made_loops: set[Var]) -> Iterator[WrittenLine]:
    loops = {s.loc for s in all_statements(plan.func.body) if isinstance(s, (For, While))}
    around: list[WrittenLine] = []
    for line, number in zip(lines, numbers, strict=True):
        while around and around[-1].line.depth >= line.depth:
            around.pop()
        made = WrittenLine(number, line, tuple(around), _stmts_of(line, plan, made_loops, loops))
        if made.loop is not None:
            around.append(made)
        yield made


def _stmts_of(line: Line, plan: Plan, made_loops: set[Var], loops: set[Location | None]) -> tuple[Stmt, ...]:
    """What the line computes.  Values of a loop itself, such as reads of its tapes, do not count where they stand
    inside of others."""
    if any(isinstance(s, For) and s.index in made_loops for s in line.stmts):
        return ()
    if not is_header(line) and any(isinstance(s, (For, While)) for s in line.stmts):
        return line.stmts           # what a loop carries begins, or goes on
    found = dict.fromkeys(s for stmt in line.stmts for s in _computed(stmt, plan))
    return tuple(s for s in found if s in line.stmts or s.loc is None or s.loc not in loops)


def is_header(line: Line) -> bool:
    """Whether it opens a loop."""
    return line.text.startswith(("for ", "while ")) and bool(line.stmts) and isinstance(line.stmts[0], (For, While))


def _computed(stmt: Stmt, plan: Plan) -> Iterator[Stmt]:
    """The statement and those that are written inside its expression."""
    yield stmt
    values: list[Value] = list(operands(stmt))
    if isinstance(stmt, If):
        if stmt not in plan.conditional:
            values = [stmt.pred]
        else:
            values += [*stmt.then.results, *stmt.orelse.results]
    elif isinstance(stmt, For):
        values = [stmt.lo, stmt.hi, stmt.step]
    elif isinstance(stmt, While):
        values = list(stmt.cond.results)
    for value in values:
        value = plan.value(value)
        if isinstance(value, Var) and value in plan.inlined:
            yield from _computed(plan.definition[value], plan)


def parts_by_name(functions: Sequence[WrittenFunction]) -> Mapping[tuple[str, ...], str]:
    """A name for what transforms made of lines: "forward", "reverse", "tangent of reverse"."""
    found = {s.loc.part for f in functions for line in f.lines for s in line.stmts if s.loc is not None}
    kinds = {kind for part in found for kind in part}
    plain = "forward" if "reverse" in kinds else "primal" if "tangent" in kinds else "code"
    return {part: _part_name([kind for kind in part if kind != "saving"], plain)
            for part in sorted(found, key=lambda part: (len(part), part))}


def _part_name(kinds: Sequence[str], plain: str) -> str:
    if not kinds:
        return plain
    first = [] if kinds[0] == "reverse" or plain == "primal" else [plain]
    return " of ".join([*reversed(kinds), *first])


def let_lines(functions: Sequence[WrittenFunction]) -> Iterator[tuple[WrittenLine, Let]]:
    """Every operation with the line that it is written on."""
    for function in functions:
        for line in function.lines:
            for stmt in line.stmts:
                if isinstance(stmt, Let):
                    yield line, stmt
