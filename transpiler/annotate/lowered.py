"""Facts from lowering and emission: what is fused into which loop, what is parallel, what calls libraries, what has
an array and where arrays are copied, and what is slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..emit.access import Role
from ..errors import Location
from ..ir.dims import symbols_of
from ..ir.nodes import Block, Call, Check, Const, For, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import all_statements, blocks, operands
from ..ops.base import Lowering
from ..report import Fusion, Report
from .facts import Facts, Kind, Place, bytes_of, lines_text, listed, place_of, size_text
from .sweeps import shown
from .written import WrittenFunction, let_lines

NARROW = 8          # elements: reading along another axis than the last is cheap where that is no longer


def add_lowered_facts(report: Report, functions: Sequence[WrittenFunction], facts: Facts) -> None:
    every = [s for function in functions for s in all_statements(function.plan.func.body)]
    loops = {s.loc for s in every if isinstance(s, (For, While)) and s.loc is not None}
    for fusion in report.fusions:
        _fused(fusion, functions, loops, facts)
    for function in functions:
        _parallel(function, loops, facts)
        _kept(function, loops, facts)
        _memory(function, facts)
    _libraries(functions, facts)


# --- fusion ------------------------------------------------------------------------------------------------------


def _fused(fusion: Fusion, functions: Sequence[WrittenFunction], loops: set[Location], facts: Facts) -> None:
    """loops: the places of loops; an operation that has one is not the user's, but of what was made of the loop."""
    fused: dict[Place, list[int]] = {}
    again: dict[tuple[Place, tuple[int, ...]], list[str]] = {}
    for let, places in fusion.places.items():
        place = place_of(let.loc)
        headers = [[n for index in around if (n := _header(functions, index)) is not None] for around in places]
        inner = [numbers[-1] for numbers in headers if numbers]
        if place is None or not inner or let.loc in loops:
            continue
        target = let.targets[0]
        reduces = let.op.lowering is Lowering.REDUCTION
        if target in fusion.virtual or (reduces and not target.type.shape):
            fused.setdefault(place, []).extend(inner)
        if len(set(inner)) > 1 and let.op.lowering is Lowering.ELEMENTWISE:
            again.setdefault((place, tuple(inner)), []).append(let.op.name)
    for (place, headers_of), names in again.items():
        operations = listed(list(dict.fromkeys(names)))
        facts.add(place, Kind.RECOMPUTED, "recomputed", f"{operations}: computed in each of the loops at generated "
                  f"{lines_text(headers_of)}, rather than kept in an array")
    for place, numbers in fused.items():
        facts.add(place, Kind.FUSED, "fused", f"computed inside the loop{'s' if len(set(numbers)) > 1 else ''} at "
                  f"generated {lines_text(numbers)}, without an array")


def _header(functions: Sequence[WrittenFunction], index: Var) -> int | None:
    return next((n for f in functions if (n := f.header_of(index)) is not None), None)


# --- parallel loops ----------------------------------------------------------------------------------------------


def _parallel(function: WrittenFunction, loops: set[Location], facts: Facts) -> None:
    for line in function.lines:
        outer = next((h for h in line.loops if isinstance(h.loop, For) and is_parallel(h.loop)), None)
        if outer is None:
            continue
        for place in {place_of(s.loc): None for s in line.stmts if s.loc not in loops}:
            facts.add(place, Kind.PARALLEL, "parallel", f"the iterations of the loop at generated line {outer.number} "
                      "are independent, up to sums")


def is_parallel(loop: For) -> bool:
    """Whether it may run in parallel: an exception does not get out of a parallel loop."""
    return loop.parallel and not any(isinstance(s, (Check, Call)) for s in all_statements(loop.body))


# --- libraries ---------------------------------------------------------------------------------------------------


def _libraries(functions: Sequence[WrittenFunction], facts: Facts) -> None:
    found: dict[tuple[Place, str], list[int]] = {}
    for line, let in let_lines(functions):
        place = place_of(let.loc)
        if place is not None and let.op.library is not None:
            found.setdefault((place, let.op.library), []).append(line.number)
    for (place, library), numbers in found.items():
        facts.add(place, Kind.LIBRARY, library, f"a routine of {library}, called at generated {lines_text(numbers)}")


# --- kept from the forward to the reverse part -------------------------------------------------------------------


def _kept(function: WrittenFunction, loops: set[Location], facts: Facts) -> None:
    """Arrays that the forward part writes and the reverse part reads."""
    makers = Makers(function)
    for stmt in all_statements(function.plan.func.body):
        if not isinstance(stmt, Let) or not _is_reverse(stmt) or stmt in function.plan.dead:
            continue
        for arg in stmt.args:
            if arg.type.shape and isinstance(arg, Var):
                for made in makers.of(arg):
                    if made.loc is not None and made.loc not in loops and not set(made.loc.part) & OTHERS:
                        _keep(function, function.plan.root(arg), place_of(made.loc), facts)


def _keep(function: WrittenFunction, array: Value, place: Place | None, facts: Facts) -> None:
    if isinstance(array, Var):
        amount, size = _amount(function, array.type)
        facts.add(place, Kind.SAVED, "saved {}" if amount is not None else "saved",
                  f"{shown(array) or 'an array'}: {size}, kept for the reverse part", amount,
                  function.storage.owner(array))


OTHERS = {"reverse", "saving"}


def _is_reverse(stmt: Stmt) -> bool:
    return stmt.loc is not None and "reverse" in stmt.loc.part


class Makers:
    """Which statements wrote what an array holds."""

    def __init__(self, function: WrittenFunction) -> None:
        self.definition = function.plan.definition
        self.carried = {carry: (loop, k) for loop in all_statements(function.plan.func.body)
                        if isinstance(loop, (For, While)) for k, carry in enumerate(loop.carries)}
        self.roles = function.plan.roles

    def of(self, array: Value) -> list[Let]:
        found: dict[Let, None] = {}
        seen: set[Value] = set()
        pending: list[Value] = [array]
        while pending:
            value = pending.pop()
            if value in seen or isinstance(value, Const):
                continue
            seen.add(value)
            pending += self._before(value, found)
        return list(found)

    def _before(self, value: Var, found: dict[Let, None]) -> list[Value]:
        """What the value is made from, beside the operation that is put into `found`."""
        if value in self.carried:
            loop, k = self.carried[value]
            return [loop.inits[k], loop.body.results[k]]
        stmt = self.definition.get(value)
        match stmt:
            case Let():
                role = self.roles[stmt]
                if role in (Role.VIEW, Role.SLICE):
                    return [stmt.args[0]]
                if role in (Role.STORE, Role.ADD):
                    found[stmt] = None
                    return [stmt.args[0]]
                if role is Role.FILLS or (role is Role.RETURNS and stmt.args):
                    found[stmt] = None
            case For() | While():
                k = stmt.targets.index(value)
                return [stmt.inits[k], stmt.body.results[k]]
            case If():
                k = stmt.targets.index(value)
                return [stmt.then.results[k], stmt.orelse.results[k]]
        return []


# --- memory ------------------------------------------------------------------------------------------------------


def _memory(function: WrittenFunction, facts: Facts) -> None:
    """Arrays of the forward part, and what a loop does badly."""
    numbers = {loop: line.number for line in function.lines if (loop := line.loop) is not None}
    jumps: dict[tuple[Place, str], list[int]] = {}
    for stmt, loops in _with_loops(function.plan.func.body, ()):
        if stmt in function.plan.dead:
            continue
        own = place_of(stmt.loc) or next((p for x in reversed(loops) if (p := place_of(x.loc)) is not None), None)
        _copies(function, stmt, loops, own, facts)
        for target in _allocated(function, stmt):
            _allocation(function, stmt, target, bool(loops), own, facts)
        if not loops:
            continue
        if isinstance(stmt, Check) and not stmt.prints:
            facts.add(own, Kind.SLOW, "checks", f"in every trip, whether {stmt.kind} is to be raised: {stmt.message}")
        elif isinstance(stmt, Let) and isinstance(loops[-1], For) and own is not None and _jumps(stmt, loops[-1]):
            jumps.setdefault((own, shown_array(stmt)), []).append(numbers[loops[-1]])
    for (place, array), headers in jumps.items():
        facts.add(place, Kind.SLOW, "strided", f"{array} is read or written along another axis than its last, in the "
                  f"innermost loop at generated {lines_text(headers)}")


def _with_loops(block: Block, loops: tuple[For | While, ...]) -> Iterator[tuple[Stmt, tuple[For | While, ...]]]:
    for stmt in block.stmts:
        yield stmt, loops
        inside = (*loops, stmt) if isinstance(stmt, (For, While)) else loops
        for inner in blocks(stmt):
            yield from _with_loops(inner, inside)


def _allocated(function: WrittenFunction, stmt: Stmt) -> list[Var]:
    """Arrays that the statement allocates."""
    if isinstance(stmt, Let):
        fills = function.plan.roles[stmt] is Role.FILLS
        return [t for t in stmt.targets if t.type.shape] if fills or not stmt.op.is_shareable else []
    if isinstance(stmt, (For, While)):
        return [t for t, init in zip(stmt.targets, stmt.inits, strict=True) if isinstance(init, Const) and t.type.shape]
    return []


def _allocation(function: WrittenFunction, stmt: Stmt, target: Var, often: bool, place: Place | None,
                facts: Facts) -> None:
    amount, size = _amount(function, target.type)
    name = shown(target) or "an array"
    if often:
        facts.add(place, Kind.SLOW, "allocates {}/trip" if amount is not None else "allocates",
                  f"{name}: {size}, allocated anew in every trip", amount, target)
    elif stmt.loc is not None and not stmt.loc.part and (place is None or not facts.has(place, Kind.SAVED)):
        facts.add(place, Kind.ARRAY, "array {}" if amount is not None else "array", f"{name}: an array, {size}", amount,
                  target)


def _amount(function: WrittenFunction, type: Type) -> tuple[Any, str]:
    """The memory of an array in bytes, None where the arguments do not tell it, and in words."""
    params = function.plan.func.params
    known = {name for param in params for dim in param.type.shape for name in symbols_of(dim)} | {
        param.name for param in params}
    if all(symbols_of(dim).keys() <= known for dim in type.shape):
        return bytes_of(type), size_text(bytes_of(type))
    return None, "of a size found at run time"


def _copies(function: WrittenFunction, stmt: Stmt, loops: tuple[For | While, ...], own: Place | None,
            facts: Facts) -> None:
    for which, k, value in _edges(stmt):
        if (stmt, which, k) not in function.storage.copies:
            continue
        place = _maker_place(function, value) or own
        often = bool(loops) or which == "body"
        amount, size = _amount(function, value.type)
        name = shown(value) if isinstance(value, Var) else ""
        label = "copies" if amount is None else "copies {}/trip" if often else "copies {}"
        facts.add(place, Kind.SLOW if often else Kind.ARRAY, label,
                  f"{name or 'an array'}: {size}, copied, because what it held before is still needed"
                  f"{', in every trip' if often else ''}", amount, (stmt, which, k))


def _edges(stmt: Stmt) -> Iterator[tuple[str, int, Value]]:
    """The edges on which storage may have put a copy."""
    match stmt:
        case Let():
            if stmt.args:
                yield "operand", 0, stmt.args[0]
        case If():
            for which, arm in (("then", stmt.then), ("orelse", stmt.orelse)):
                yield from ((which, k, value) for k, value in enumerate(arm.results))
        case For() | While():
            yield from (("init", k, value) for k, value in enumerate(stmt.inits))
            yield from (("body", k, value) for k, value in enumerate(stmt.body.results))


def _maker_place(function: WrittenFunction, value: Value) -> Place | None:
    stmt = function.plan.definition.get(value) if isinstance(value, Var) else None
    return place_of(stmt.loc) if stmt is not None else None


def shown_array(let: Let) -> str:
    array = let.args[0]
    return (shown(array) if isinstance(array, Var) else "") or "an array"


def _jumps(let: Let, loop: For) -> bool:
    """Whether the operation, in an innermost loop, goes through its array along another axis than the last."""
    if let.op.access is None or any(isinstance(s, (For, While)) for s in all_statements(loop.body)):
        return False
    array = let.args[0].type
    index = let.args[2:] if let.op.access in ("store", "add_at") else let.args[1:]
    if array.rank < 2 or len(index) != array.rank or (isinstance(array.shape[-1], int) and array.shape[-1] <= NARROW):
        return False
    moving = _moving_with(loop)
    return index[-1] not in moving and any(i in moving for i in index[:-1])


def _moving_with(loop: For) -> set[Value]:
    """Values of the body that change with the index."""
    moving: set[Value] = {loop.index}
    for stmt in all_statements(loop.body):
        if not moving.isdisjoint(operands(stmt)):
            moving.update(stmt.targets)
    return moving


