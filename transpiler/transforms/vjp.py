"""Reverse mode: the statements, then their adjoints in reverse order.

    before                         after
    func f(x: f64):                func f_vjp(x: f64, ct: f64):
      y = sin(x)                     y = sin(x)
      return y                       t = cos(x)
                                     d_x = multiply(ct, t)
                                     return y, d_x

Only statements between the wanted params and the results take part.  An adjoint accumulates in the order in which
the reverse sweep reaches its uses; contributions given as `Into` (reads of a part) are added into what is there.

With loops and branches: While loops are counted first (`counted`); a rehearsal of the reverse sweep tells which
values of nested blocks it reads; `residuals` decides which of them are saved, and which are made again and from what;
the forward sweep saves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import ops
from ..ir.build import Builder, Names, building, const
from ..ir.dims import symbol, symbols_of
from ..ir.index import Span
from ..ir.nodes import Block, For, Func, If, Let, Value, Var, While
from ..ir.types import Type
from ..ir.walk import all_statements, reads, used_names
from ..ops.base import Zeros
from ..optimize.dead_code import drop_dead_code
from ..optimize.hoist import hoist_all
from ..report import Report, Reverse, in_part, new_in_part
from .activity import active_variables
from .calls import without_replayed
from .chains import Chains, keep_overwritten
from .common import name_like
from .counted import count_trips, counting_pairs
from .forward_sweep import ForwardSweep
from .limits import joined
from .overlap import Places
from .residuals import Residuals, choose_residuals
from .reverse_sweep import ReverseSweep, known_zeros
from .rules import with_rules, without_given
from .scopes import Scopes
from .segments import Needs, in_segments, measured


def vjp(func: Func, wrt: Sequence[bool], *, name: str | None = None,
        cotangents: Sequence[Value | None] | None = None, given: Sequence[bool] | None = None,
        is_whole: bool | None = None, adds: bool = False, report: Report | None = None) -> Func:
    """Params: those of `func`, then a cotangent for each result that is real or complex.  Results: those of `func`,
    then the cotangent of each param in `wrt`.

    adds: there are then params for what is to be added to the cotangent of each array in `wrt`.

    With `cotangents` (constants, or None for zero, one for each real or complex result) there are no extra params.
    given: which of these results have a cotangent param (others have the cotangent zero).
    is_whole: nothing comes before or after the func, since no other one calls it; without `given`, unless it is said.
    report: is told what is active and what is saved; places in the reverse sweep then say that they are there.
    """
    is_whole = given is None if is_whole is None else is_whole
    func = joined(with_rules(func, wrt, "pull"))
    if any(isinstance(s, (If, For, While)) for s in func.body.stmts):
        func = hoist_all(func)             # what does not change in a loop is still there in the reverse sweep
    active = active_variables(func, wrt)
    counted, counts = count_trips(func, lambda stmt: any(t in active for t in stmt.targets))
    if counted is not func:
        func, active = counted, active_variables(counted, wrt)
    wanted = Wanted(tuple(wrt), cotangents, given, adds)
    seen = _analysed(func, wanted, active, is_whole)
    wishes = [s for s in all_statements(seen.func.body) if isinstance(s, For) and s.checkpoint is not None
              and s.checkpoint.slots is None]
    if wishes:
        seen = _in_segments(func, wishes, wanted, is_whole)
    func, scopes, chains, residuals, active = seen.func, seen.scopes, seen.chains, seen.residuals, seen.active
    with building(Names(used_names(func))) as b:
        forward = ForwardSweep(scopes, residuals, counting_pairs(func, counts))
        for stmt in func.body.stmts:
            forward.statement(stmt)
        first = len(b.stmts)
        reverse = ReverseSweep(active, scopes, chains, residuals, forward, is_whole)
        extra, bars = _reversed(func, wanted, active, reverse, b)
        if report is not None:
            own = set(all_statements(func.body))
            b.stmts[:] = [*new_in_part(b.stmts[:first], own, "saving"), *in_part(b.stmts[first:], "reverse")]
            report.sweeps.append(Reverse(func, frozenset(active), scopes, residuals, forward.saved))
    derived = Func(name or f"{func.name}_vjp", (*func.params, *extra), Block(tuple(b.stmts), (*func.results, *bars)))
    derived = without_given(without_replayed(derived, reverse.replayed))
    # Rules may emit partials that nobody asks for, of values that nobody saved.
    return drop_dead_code(derived) if scopes.inside else derived


@dataclass(frozen=True)
class Wanted:
    """What `vjp` is asked for, see there."""

    wrt: tuple[bool, ...]
    cotangents: Sequence[Value | None] | None
    given: Sequence[bool] | None
    adds: bool


def _reversed(func: Func, wanted: Wanted, active: set[Var], reverse: ReverseSweep,
              b: Builder) -> tuple[tuple[Var, ...], list[Value]]:
    """Emit the reverse sweep; the cotangent params and the results."""
    cotangents, given = wanted.cotangents, wanted.given
    inexact = [r for r in func.results if r.type.is_inexact]
    if cotangents is None:
        names = ["ct"] if len(inexact) == 1 else [f"ct_{k}" for k in range(len(inexact))]
        made = {t.name for stmt in all_statements(func.body) for t in stmt.targets}
        cts: list[Value | None] = [b.var(_seen_outside(r.type, made, b), hint) if given is None or given[k] else None
                                   for k, (r, hint) in enumerate(zip(inexact, names, strict=True))]
        extra = tuple(ct for ct in cts if isinstance(ct, Var))
    else:
        cts, extra = list(cotangents), ()
    adjoints = reverse.adjoints()
    for result, ct in zip(inexact, cts, strict=True):
        if isinstance(result, Var) and result in active and ct is not None:
            zeros = known_zeros(ct) if given is None else Zeros.MASKED
            adjoints.add(result, ct if ct.shape == result.shape else _of_size(ct, result), zeros)
    params = [p for p, want in zip(func.params, wanted.wrt, strict=True) if want]
    for param in params if wanted.adds else ():
        if param.type.shape:
            extra = (*extra, b.var(param.type, f"d_{param.name}"))
            adjoints.add(param, extra[-1], Zeros.MASKED)
    reverse.statements(func.body.stmts, adjoints)
    bars: list[Value] = []
    for param in params:
        bar = adjoints.take(param)
        bars.append(const(0, param.type) if bar is None else name_like(bar, "d_", param))
    return extra, bars


def _seen_outside(type: Type, made: set[str], b: Builder) -> Type:
    """The type of a cotangent param: sizes that the func finds out itself have names of their own in it."""
    return type.with_shape(tuple(d if made.isdisjoint(symbols_of(d)) else symbol(b.names.fresh("size"), 0)
                                 for d in type.shape))


def _of_size(ct: Value, result: Value) -> Value:
    """A cotangent with the result's sizes, as the func knows them by now."""
    return ops.load(ct, index=tuple(Span(0, d) for d in result.shape))


def _in_segments(func: Func, wishes: Sequence[For], wanted: Wanted, is_whole: bool) -> Analysed:
    """The func with loops in segments.  How long these are, what is saved of a first try tells."""
    def analysed(divided: Func) -> Analysed:
        return _analysed(divided, wanted, active_variables(divided, wanted.wrt), is_whole)

    needs = {s.targets: Needs(1, 1) for s in wishes}
    tried = analysed(in_segments(func, needs))
    found = measured(tried.func, tried.residuals, Places(tried.scopes))
    return analysed(in_segments(func, dict(zip(needs, found, strict=True))))


@dataclass(frozen=True)
class Analysed:
    """A func, with loads of what is overwritten, and what its reverse sweep needs."""

    func: Func
    active: set[Var]
    scopes: Scopes
    chains: Chains
    residuals: Residuals


def _analysed(func: Func, wanted: Wanted, active: set[Var], is_whole: bool) -> Analysed:
    nested = any(isinstance(s, (If, For)) for s in func.body.stmts)
    overwritten: dict[Let, Var] = {}
    if nested:
        func, overwritten = keep_overwritten(func)
    scopes = Scopes(func)
    chains = Chains(func, scopes)
    needed = _needed(func, wanted, active, scopes, is_whole) if nested else set()
    return Analysed(func, active, scopes, chains,
                    choose_residuals(scopes, chains, overwritten, needed) if needed else Residuals())


def _needed(func: Func, wanted: Wanted, active: set[Var], scopes: Scopes, is_whole: bool) -> set[Var]:
    """Rehearse the reverse sweep to learn what it reads of nested blocks."""
    with building(Names(used_names(func))) as b:
        extra, bars = _reversed(func, wanted, active, ReverseSweep(active, scopes, is_whole=is_whole), b)
    rehearsal = drop_dead_code(Func(func.name, (*func.params, *extra), Block(tuple(b.stmts), tuple(bars))))
    read = reads(rehearsal.body)
    names = scopes.by_name()
    read |= {names[size] for size in read if isinstance(size, str) and size in names}
    made = {t for s in all_statements(rehearsal.body) for t in s.targets}
    return {v for v in read if v not in made and v in scopes.of and scopes.of[v] is not scopes.root}
