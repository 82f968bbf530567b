"""Facts from what transforms report: what carries derivatives, what is saved, restored and computed again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from ..errors import Location
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
    # A loop's body may be traced several times, until it fits: the last one counts.
    for sweep in {_what_of(sweep): sweep for sweep in report.sweeps}.values():
        if isinstance(sweep, Reverse):
            _residuals(sweep, report.counted_late, facts)
        elif isinstance(sweep, Batch):
            _batched(sweep, facts)


def _what_of(sweep: Reverse | Forward | Batch) -> tuple[Any, ...]:
    """Equal for the same transform of the same code."""
    return type(sweep), tuple((s.loc, s.loc.part if s.loc else (), s.op.name if isinstance(s, Let) else type(s))
                              for s in all_statements(sweep.func.body))


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


def _residuals(sweep: Reverse, counted_late: Set[Location | None], facts: Facts) -> None:
    makers = definitions(sweep.func.body)
    known = {name for param in sweep.func.params for dim in param.type.shape for name in symbols_of(dim)} | {
        param.name for param in sweep.func.params}
    residuals = sweep.residuals

    def amount(var: Var) -> Any:
        return bytes_of(var.type) if all(symbols_of(dim).keys() <= known for dim in var.type.shape) else None

    overwritten = {old: let for let, old in residuals.undone.items()}
    for scope, variables in residuals.saved.items():
        trips = [_trips(loop, makers, known) for loop in scope.loops()]
        for var in variables:
            let = overwritten.get(var)
            name = f"what {_array_of(let)} held" if let is not None else shown(var) or "a value"
            made = scope.defined.get(var)
            if isinstance(made, While) and made.loc in counted_late and var == made.targets[-1]:
                continue
            if var in residuals.own:
                _saved_again(scope, var, name, amount(var), residuals.own[var], facts)
            else:
                _saved(scope, var, name, amount(var), trips, facts)
    for scope, stmts in residuals.again.items():
        _recomputed(scope, [s for s in stmts if isinstance(s, Let)], facts)
        for stmt in stmts:
            if not isinstance(stmt, Let):
                _run_again(scope, stmt, facts)
    for let in residuals.undone:
        facts.add(place_of(let.loc), Kind.RESTORED, "restored", f"the reverse part puts back what {_array_of(let)} "
                  "held before the write, for earlier reads of it")


def _array_of(let: Let) -> str:
    """What a read reads, or a write writes to."""
    array = let.args[0]
    return (shown(array) if isinstance(array, Var) else "") or "the array"


def _saved(scope: Scope, var: Var, name: str, amount: Any, trips: list[Any], facts: Facts) -> None:
    """trips: of each loop around, None where they are not known."""
    loops = scope.loops()
    size = "an array" if amount is None else size_text(amount)
    if not loops:
        facts.add(_made_at(scope, var), Kind.SAVED, "saved" if amount is None else "saved {}",
                  f"{name} of the arm that was taken: {size}, for the reverse part", amount, var)
        return
    whole = f", {size_text(bytes_of(var.type, *trips))} in all" if None not in trips else ""
    lines = lines_text(loop.loc.line for loop in loops if loop.loc is not None)
    around = f"the loop{'s' if len(loops) > 1 else ''} at {lines}"
    when = " as it is before the trip" if scope.defined[var] is None else ""
    facts.add(_made_at(scope, var), Kind.SAVED, "saved" if amount is None else "saved {}/trip",
              f"{name}{when}: {size} for each trip of {around}{whole}, for the reverse part", amount, var)
    facts.add(place_of(loops[-1].loc), Kind.SAVED, "saves" if amount is None else "saves {}/trip",
              f"{name}: {size} for each trip{whole}", amount, var)


def _saved_again(scope: Scope, var: Var, name: str, amount: Any, loop: For, facts: Facts) -> None:
    """Saved as the loop runs again in the reverse part."""
    size = "an array" if amount is None else size_text(amount)
    at = f" at {lines_text([loop.loc.line])}" if loop.loc is not None else ""
    facts.add(_made_at(scope, var), Kind.SAVED, "saved" if amount is None else "saved {}/trip",
              f"{name}: {size} for each trip of the loop{at}, as it is run again in the reverse part; the memory is "
              "used over", amount, var)


def _run_again(scope: Scope, stmt: Stmt, facts: Facts) -> None:
    loops = scope.loops()
    around = f", in each trip of the loop at {lines_text(x.loc.line for x in loops[-1:] if x.loc)}" if loops else ""
    what = "the branch" if isinstance(stmt, If) else "the loop"
    facts.add(place_of(stmt.loc), Kind.RECOMPUTED, "run again", f"{what} is run again in the reverse part{around}, for "
              "values that are not saved")


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
        reads = [f"{_array_of(let)}[...]" for let in found if let.op.access == "load"]
        made = [shown(t) or "a part of this" for let in found if let.op.access != "load" for t in let.targets]
        for label, verb, names in (("recomputed", "computed", made), ("read again", "read", reads)):
            if names:
                facts.add(place, Kind.RECOMPUTED, label, f"{listed(list(dict.fromkeys(names)))}: {verb} again in the "
                          f"reverse part{around}, not saved")


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
