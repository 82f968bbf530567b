"""Calls of recursive funcs under the transforms: a callee is derived once, and the call becomes a call of that.

    primal                    forward mode                                  reverse mode
    y = call f(n, x)          y, t_y = call f_jvp(n, x, t_x)                y = call f(n, x)      (the forward sweep)
                                                                            d_x_1 = call f_vjp(n, x, ct, d_x)

The callee's reverse mode runs its own forward sweep, so what it needs of the call are the call's arguments.  Its
primal call may then go if nobody reads its results.  Cotangents of arrays are added to what there is of them already:
a call that reads one element then adds one number, rather than to make an array and to add that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ..ir.build import const, current
from ..ir.library import library
from ..ir.nodes import Block, Call, Func, Stmt, Value, Var
from ..ir.walk import blocks, with_blocks
from .activity import dependences
from .rules import given_jvp, is_given, rule_of


def call_jvp(call: Call, tangents: Sequence[Value | None]) -> list[Value | None]:
    """Emit the call with its tangents; `tangents` of the arguments, None for zero.  Returns those of the targets."""
    if is_given(call):
        current().stmts.append(call)
        return given_jvp(call, tangents)
    if rule_of(call.func) is not None:              # nobody asks for its tangents, see `with_rules`
        current().stmts.append(call)
        return [None] * len(call.targets)
    wrt = tuple(t is not None for t in tangents)
    moving = [bool(params & {k for k, moves in enumerate(wrt) if moves}) for params in dependences(call)]
    if not any(moving):
        current().stmts.append(call)
        return [None] * len(call.targets)
    found = tuple(current().var(t.type, f"t_{t.name}") for t, moves in zip(call.targets, moving, strict=True) if moves)
    given = tuple(t for t in tangents if t is not None)
    current().stmts.append(Call((*call.targets, *found), _jvp_of(call.func, wrt, tuple(moving)), (*call.args, *given),
                                call.loc, call.needed))
    rest = iter(found)
    return [next(rest) if moves else None for moves in moving]


def _jvp_of(name: str, wrt: tuple[bool, ...], moving: tuple[bool, ...]) -> str:
    from .jvp import jvp

    def make(own: str) -> Func:
        func = library().callee(name)
        made = jvp(func, wrt, name=own, report=library().report, is_whole=False)
        tangents = iter(made.results[len(func.results):])
        pairs = [(next(tangents), moves) for r, moves in zip(func.results, moving, strict=True) if r.type.is_inexact]
        return _with_results(made, (*func.results, *(t for t, moves in pairs if moves)))

    return library().derive(("jvp", name, wrt), f"{library().wanted[name]}_jvp", make)


def call_vjp(call: Call, args: Sequence[Value], cts: Sequence[Value | None], wanted: Sequence[bool],
             take: Callable[[Value], Value | None]) -> list[Value | None]:
    """Emit the call of the callee's reverse mode.

    args: of the call, as they are read now; cts: of its targets, None for zero; wanted: which arguments' cotangents are
    asked for; take: gives, once, what there is of a variable's cotangent.  Returns the cotangents, those of arrays with
    what there was.
    """
    given = tuple(ct is not None for ct in cts)
    reached = [params for params, has_ct in zip(dependences(call), given, strict=True) if has_ct]
    wrt = tuple(want and any(k in params for params in reached) for k, want in enumerate(wanted))
    if not any(wrt):
        return [None] * len(call.args)
    bars = tuple(current().var(a.type, f"d_{a.name}" if isinstance(a, Var) else "t")
                 for a, want in zip(args, wrt, strict=True) if want)
    totals = [take(old) for old, want in zip(call.args, wrt, strict=True) if want and old.type.shape]
    arrays = [a for a, want in zip(args, wrt, strict=True) if want and a.type.shape]
    begun = (const(0, a.type) if total is None else total for a, total in zip(arrays, totals, strict=True))
    current().stmts.append(Call(bars, _vjp_of(call.func, wrt, given), (*args, *(ct for ct in cts if ct is not None),
                                                                       *begun), call.loc))
    rest = iter(bars)
    return [next(rest) if want else None for want in wrt]


def _vjp_of(name: str, wrt: tuple[bool, ...], given: tuple[bool, ...]) -> str:
    from ..optimize.dead_code import drop_dead_code
    from .vjp import vjp

    def make(own: str) -> Func:
        func = library().callee(name)
        inexact = tuple(has for r, has in zip(func.results, given, strict=True) if r.type.is_inexact)
        made = vjp(func, wrt, name=own, given=inexact, adds=True, report=library().report)
        return drop_dead_code(_with_results(made, made.results[len(func.results):]))

    return library().derive(("vjp", name, wrt, given), f"{library().wanted[name]}_vjp", make)


def without_replayed(func: Func, replayed: Collection[Var]) -> Func:
    """Calls that give one of these may go where nobody reads them: a call of their reverse mode does the same."""
    if not replayed:
        return func

    def visit(block: Block) -> Block:
        return Block(tuple(map(statement, block.stmts)), block.results)

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Call):
            return replace(stmt, needed=False) if any(t in replayed for t in stmt.targets) else stmt
        return with_blocks(stmt, [visit(b) for b in blocks(stmt)])

    return Func(func.name, func.params, visit(func.body), func.result_names)


def _with_results(func: Func, results: tuple[Value, ...]) -> Func:
    return Func(func.name, func.params, Block(func.body.stmts, results))
