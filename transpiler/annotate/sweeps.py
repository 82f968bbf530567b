"""Facts from what transforms report: what carries derivatives, what is saved, restored and computed again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..ir.build import is_plain
from ..ir.dims import substitute, symbol, symbols_of
from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import all_statements, definitions
from ..report import Batch, Forward, Report, Reverse
from ..transforms.scopes import Scope
from .facts import Facts, Kind, Place, bytes_of, lines_text, listed, place_of, size_text


def add_sweep_facts(report: Report, facts: Facts) -> None:
    """Of all transforms of a trace."""
    _inactive([s for s in report.sweeps if not isinstance(s, Batch)], facts)
    for sweep in report.sweeps:
        if isinstance(sweep, Reverse):
            _residuals(sweep, facts)
        elif isinstance(sweep, Batch):
            _batched(sweep, facts)


def shown(var: Var) -> str:
    """What the user calls a value; "" for one without a name."""
    name = re.sub(r"(_\d+)+$", "", var.name)
    return "" if is_plain(var.name) or is_plain(name) else name


# --- activity ----------------------------------------------------------------------------------------------------


def _inactive(sweeps: Iterable[Reverse | Forward], facts: Facts) -> None:
    """A line is inactive where no transform finds anything active on it."""
    idle: dict[Place, None] = {}
    busy: set[Place] = set()
    for sweep in sweeps:
        for stmt in all_statements(sweep.func.body):
            place = place_of(stmt.loc)
            if place is None:
                continue
            if isinstance(stmt, (If, For, While)) or not sweep.active.isdisjoint(stmt.targets):
                busy.add(place)          # control flow is neither
            elif stmt.targets:
                idle[place] = None
    for place in idle:
        if place not in busy:
            facts.add(place, Kind.INACTIVE, "inactive", "nothing on this line depends on what is differentiated, or "
                      "the result does not depend on it")


# --- what the reverse part needs ---------------------------------------------------------------------------------


def _residuals(sweep: Reverse, facts: Facts) -> None:
    makers = definitions(sweep.func.body)
    known = {name for param in sweep.func.params for dim in param.type.shape for name in symbols_of(dim)} | {
        param.name for param in sweep.func.params}
    for scope, variables in sweep.residuals.saved.items():
        trips = [_trips(loop, makers, known) for loop in scope.loops()]
        for var in variables:
            own = sweep.residuals.own.get(var)
            _saved(scope, var, trips if own is None else trips[-1:], facts)
    for scope, stmts in sweep.residuals.again.items():
        _recomputed(scope, [stmt for stmt in stmts if isinstance(stmt, Let)], facts)
        for stmt in stmts:
            if not isinstance(stmt, Let):
                facts.add(place_of(stmt.loc), Kind.RECOMPUTED, "runs again", "runs once more in the reverse part, for "
                          "values that are not saved")
    for write in sweep.residuals.undone:
        facts.add(place_of(write.loc), Kind.RESTORED, "restored", "what is overwritten here is put back in the reverse "
                  "part, for reads before it")


def _saved(scope: Scope, var: Var, trips: list[Any], facts: Facts) -> None:
    """trips: of each loop around, None where they are not known."""
    name = shown(var) or "a value"
    loops = scope.loops()
    size = size_text(bytes_of(var.type))
    if not loops:
        facts.add(_made_at(scope, var), Kind.SAVED, f"saved {size}",
                  f"{name} of the arm that was taken: {size}, for the reverse part")
        return
    whole = f", {size_text(bytes_of(var.type, *trips))} in all" if None not in trips else ""
    lines = lines_text(loop.loc.line for loop in loops if loop.loc is not None)
    around = f"the loop{'s' if len(loops) > 1 else ''} at {lines}"
    when = " as it is before the trip" if scope.defined[var] is None else ""
    facts.add(_made_at(scope, var), Kind.SAVED, f"saved {size}/trip",
              f"{name}{when}: {size} for each trip of {around}{whole}, for the reverse part")
    facts.add(place_of(loops[-1].loc), Kind.SAVED, f"saves {size}/trip", f"{name}: {size} for each trip{whole}")


def _trips(loop: For, makers: Mapping[Var, Stmt], known: set[str]) -> Any:
    """How many trips a loop has, in terms of sizes and arguments; None where they do not tell."""
    lo, hi = (_dim(value, makers) for value in (loop.lo, loop.hi))
    if lo is None or hi is None or not (isinstance(loop.step, Const) and loop.step.value == 1):
        return None
    return _as_given(hi - lo, known) if symbols_of(hi - lo).keys() <= known else None


def _as_given(dim: Any, known: set[str]) -> Any:
    """The dimension in the user's names: a func that is transformed may call its argument `n` `n_1`."""
    names = {name: re.sub(r"(_\d+)+$", "", name) for name in symbols_of(dim)}
    return substitute(dim, {old: symbol(new, 0) for old, new in names.items() if new not in known})


def _dim(value: Value, makers: Mapping[Var, Stmt]) -> Any:
    if isinstance(value, Const):
        return value.value
    maker = makers.get(value)
    if maker is None:
        return symbol(value.name, 0)
    return maker.params.get("dim") if isinstance(maker, Let) and not maker.args else None


def _made_at(scope: Scope, var: Var) -> Place | None:
    """The line that makes a value; of a carried one, the line that makes the next."""
    stmt = scope.defined.get(var)
    if stmt is not None:
        return place_of(stmt.loc)
    loop = scope.owner
    if not isinstance(loop, For):
        return None
    if var in loop.carries:
        place = made_in(loop.body, loop.body.results[loop.carries.index(var)])
        if place is not None:
            return place
    return place_of(loop.loc)


def made_in(block: Block, value: object) -> Place | None:
    """The line of the statement of the block that makes the value."""
    for stmt in block.stmts:
        if any(target is value for target in stmt.targets):
            return place_of(stmt.loc)
    return None


def _recomputed(scope: Scope, lets: Iterable[Let], facts: Facts) -> None:
    loops = scope.loops()
    around = f" in the trips of the loop at {lines_text(x.loc.line for x in loops[-1:] if x.loc)}" if loops else ""
    by_place: dict[Place, list[Let]] = {}
    for let in lets:
        place = place_of(let.loc)
        if place is not None and any(t.type.is_inexact for t in let.targets):
            by_place.setdefault(place, []).append(let)
    for place, found in by_place.items():
        names = listed([n for n in dict.fromkeys(shown(t) for let in found for t in let.targets) if n])
        reads = all(let.op.access == "load" for let in found)
        facts.add(place, Kind.RECOMPUTED, "read again" if reads else "recomputed",
                  f"{names or 'a part of this'}: {'read' if reads else 'computed'} again in the reverse part{around}, "
                  "not saved")


# --- batches -----------------------------------------------------------------------------------------------------


def _batched(sweep: Batch, facts: Facts) -> None:
    looped = {place_of(s.loc) for s in sweep.looped}
    for place in looped:
        facts.add(place, Kind.PARALLEL, "lane by lane", "each element of the batch takes its own branches and trips")
    if sweep.batched is None:
        return
    for place in _same_for_all(sweep.func, sweep.batched):
        facts.add(place, Kind.ONCE, "once", "does not depend on the batch: computed once for all of it")


def _same_for_all(func: Func, batched: frozenset[Var]) -> list[Place]:
    once: dict[Place, None] = {}
    other: set[Place] = set()
    for stmt in func.body.stmts:
        place = place_of(stmt.loc)
        if place is None:
            continue
        if _is_apart(stmt) or not batched.isdisjoint(stmt.targets):
            other.add(place)
        else:
            once[place] = None
    return [place for place in once if place not in other]


def _is_apart(stmt: Stmt) -> bool:
    return isinstance(stmt, (If, For, While)) or not stmt.targets
