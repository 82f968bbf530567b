"""Reverse mode: the statements, then their adjoints in reverse order.

    before                         after
    func f(x: f64):                func f_vjp(x: f64, ct: f64):
      y = sin(x)                     y = sin(x)
      return y                       t = cos(x)
                                     d_x = multiply(ct, t)
                                     return y, d_x

Only statements between the wanted params and the results take part.  An adjoint accumulates in the order in which
the reverse sweep reaches its uses; contributions given as `Into` (reads of a part) are added into what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ..ir.build import Names, building, const, located
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Value, Var, While
from ..ir.walk import used_names
from ..ops.base import Into, Zeros, cotangent_zeros
from .activity import active_variables
from .common import name_like, unsupported_statement
from .jvp import jvp
from .limits import add_vjp_limits


class _Adjoints:
    """Cotangents collected so far, and what is known of their zeros."""

    def __init__(self) -> None:
        self.parts: dict[Var, list[Value | Into]] = {}
        self.zeros: dict[Var, Zeros] = {}

    def add(self, var: Var, part: Value | Into, zeros: Zeros) -> None:
        self.parts.setdefault(var, []).append(part)
        known = self.zeros.get(var)
        self.zeros[var] = zeros if known is None else Zeros.MASKED if Zeros.MASKED in (known, zeros) else Zeros.PLAIN

    def take(self, var: Var) -> Value | None:
        """The sum of all contributions; None for zero."""
        parts = self.parts.pop(var, None)
        if not parts:
            return None
        total: Value | None = None
        for part in parts:
            if not isinstance(part, Into):
                total = part if total is None else total + part
        for part in parts:
            if isinstance(part, Into):
                total = part.add(const(0, var.type) if total is None else total)
        return total


def vjp(func: Func, wrt: Sequence[bool], *, name: str | None = None,
        cotangents: Sequence[Value | None] | None = None) -> Func:
    """Params: those of `func`, then a cotangent for each result that is real or complex.  Results: those of `func`,
    then the cotangent of each param in `wrt`.

    With `cotangents` (constants, or None for zero, one for each real or complex result) there are no extra params.
    """
    inexact = [r for r in func.results if r.type.is_inexact]
    active = active_variables(func, wrt)
    with building(Names(used_names(func))) as b:
        b.stmts.extend(func.body.stmts)
        if cotangents is None:
            names = ["ct"] if len(inexact) == 1 else [f"ct_{k}" for k in range(len(inexact))]
            cts: list[Value | None] = [b.var(r.type, hint) for r, hint in zip(inexact, names, strict=True)]
            extra = tuple(ct for ct in cts if isinstance(ct, Var))
        else:
            cts, extra = list(cotangents), ()
        adjoints = _Adjoints()
        for result, ct in zip(inexact, cts, strict=True):
            if isinstance(result, Var) and result in active and ct is not None:
                adjoints.add(result, ct, _known_zeros(ct))
        for stmt in reversed(func.body.stmts):
            match stmt:
                case Let():
                    with located(stmt.loc):
                        _pull(stmt, adjoints, active)
                case Check():
                    pass
                case If() | For() | While() | Call():
                    if any(t in active for t in stmt.targets):
                        unsupported_statement(stmt, "the reverse mode")
                case _:
                    assert_never(stmt)
        bars = []
        for param, wanted in zip(func.params, wrt, strict=True):
            if wanted:
                bar = adjoints.take(param)
                bars.append(const(0, param.type) if bar is None else name_like(bar, "d_", param))
    return Func(name or f"{func.name}_vjp", (*func.params, *extra), Block(tuple(b.stmts), (*func.results, *bars)))


def _known_zeros(ct: Value) -> Zeros:
    return Zeros.NONZERO if isinstance(ct, Const) and ct.value != 0 else Zeros.PLAIN


def _pull(let: Let, adjoints: _Adjoints, active: set[Var]) -> None:
    if not any(t in adjoints.parts for t in let.targets):
        return
    zeros = [adjoints.zeros[t] for t in let.targets if t in adjoints.parts]
    known = Zeros.MASKED if Zeros.MASKED in zeros else Zeros.PLAIN if Zeros.PLAIN in zeros else Zeros.NONZERO
    cts = [adjoints.take(t) for t in let.targets]
    for target, ct in zip(let.targets, cts, strict=True):
        if ct is not None:
            name_like(ct, "d_", target)
    wanted = [isinstance(a, Var) and a in active for a in let.args]
    if not any(wanted):
        return
    several = let.op.result_count > 1
    if known is Zeros.NONZERO and not all(isinstance(ct, Const) for ct in cts):
        known = Zeros.PLAIN
    with cotangent_zeros(known):
        parts = let.op.vjp(cts if several else cts[0], let.args, let.targets if several else let.target, wanted,
                           **let.params)
    if several:
        parts = add_vjp_limits(let, cts, parts, jvp)
    for arg, part, want in zip(let.args, parts, wanted, strict=True):
        if part is None or not want or not isinstance(arg, Var):
            continue
        if let.op.masks:
            zeros_of_part = Zeros.MASKED
        elif not isinstance(part, Into) and isinstance(part, Const):
            zeros_of_part = _known_zeros(part)
        else:
            zeros_of_part = Zeros.MASKED if known is Zeros.MASKED else Zeros.PLAIN
        adjoints.add(arg, part, zeros_of_part)
