"""The reverse sweep: adjoints of statements, blocks, branches and loops.

    y = for i in 0 .. n carry (x = x0):        d_x0 = for k in n-1 .. -1 carry (d = d_y):
      x_1 = f(x)                                 x = load(x_tape, k)
      yield x_1                                  d_1 = adjoint of f at x, applied to d
                                                 yield d_1

The adjoint of a loop runs backwards; it carries the adjoints of the carries and those of all active variables of the
surroundings that the body reads, so that reading one element costs one addition.  An arm of a branch likewise takes
and gives the adjoints of what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from .. import ops
from ..ir.build import building, const, current, for_loop, int_const, located
from ..ir.index import At, Span
from ..ir.nodes import Block, Call, Check, Const, For, If, Let, Stmt, Value, Var, While
from ..ir.walk import Copier, all_statements, blocks, reads
from ..ops.base import Into, Zeros, cotangent_zeros
from .calls import call_vjp
from .common import name_like, unsupported_statement
from .forward_sweep import Saved, counter_of, trip_count
from .jvp import jvp
from .limits import add_vjp_limits
from .residuals import Residuals
from .scopes import Scopes

if TYPE_CHECKING:
    from ..errors import Location


class Adjoints:
    """Cotangents collected so far, and what is known of their zeros."""

    def __init__(self) -> None:
        self.parts: dict[Var, list[tuple[Value | Into, Location | None]]] = {}     # with the line each comes from
        self.zeros: dict[Var, Zeros] = {}

    def add(self, var: Var, part: Value | Into, zeros: Zeros) -> None:
        self.parts.setdefault(var, []).append((part, current().loc))
        known = self.zeros.get(var)
        self.zeros[var] = zeros if known is None else Zeros.MASKED if Zeros.MASKED in (known, zeros) else Zeros.PLAIN

    def take(self, var: Var) -> Value | None:
        """The sum of all contributions; None for zero."""
        parts = self.parts.pop(var, None)
        if not parts:
            return None
        total: Value | None = None
        for part, loc in parts:
            if not isinstance(part, Into):
                with located(loc):
                    total = part if total is None else total + part
        for part, loc in parts:
            if isinstance(part, Into):
                with located(loc):
                    total = part.add(const(0, var.type) if total is None else total)
        return total

    def zeros_of(self, variables: Sequence[Var]) -> Zeros:
        found = [self.zeros[v] for v in variables if v in self.parts]
        return Zeros.MASKED if Zeros.MASKED in found else Zeros.PLAIN if Zeros.PLAIN in found else Zeros.NONZERO


def known_zeros(ct: Value) -> Zeros:
    return Zeros.NONZERO if isinstance(ct, Const) and ct.value != 0 else Zeros.PLAIN


class ReverseSweep:
    """Emits adjoints at the current builder.

    Without `saved` this is a rehearsal: values of nested scopes are read as if they were still there, which tells
    what has to be saved.
    """

    def __init__(self, active: set[Var], scopes: Scopes, residuals: Residuals | None = None,
                 saved: Saved | None = None) -> None:
        self.active, self.scopes = active, scopes
        self.residuals, self.saved = residuals, saved
        self.copier = Copier()
        self.counters: list[Value] = []
        self.replayed: set[Var] = set()        # what calls gave whose reverse mode is called

    def statements(self, stmts: Sequence[Stmt], adjoints: Adjoints) -> None:
        for stmt in reversed(stmts):
            match stmt:
                case Let():
                    with located(stmt.loc):
                        self._let(stmt, adjoints)
                case Check():
                    pass
                case If():
                    if self._matters(stmt, adjoints):
                        with located(stmt.loc):
                            self._branch(stmt, adjoints)
                case For():
                    if self._matters(stmt, adjoints):
                        with located(stmt.loc):
                            self._loop(stmt, adjoints)
                case Call():
                    if self._matters(stmt, adjoints):
                        with located(stmt.loc):
                            self._call(stmt, adjoints)
                case While():
                    if self._matters(stmt, adjoints):
                        unsupported_statement(stmt, "the reverse mode")
                case _:
                    assert_never(stmt)

    @staticmethod
    def _matters(stmt: Stmt, adjoints: Adjoints) -> bool:
        return any(t in adjoints.parts for t in stmt.targets)

    # --- one operation -----------------------------------------------------------------------------------------

    def _let(self, let: Let, adjoints: Adjoints) -> None:
        if not self._matters(let, adjoints):
            return
        known = adjoints.zeros_of(let.targets)
        cts = [adjoints.take(t) for t in let.targets]
        for target, ct in zip(let.targets, cts, strict=True):
            if ct is not None:
                name_like(ct, "d_", target)
        wanted = [isinstance(a, Var) and a in self.active for a in let.args]
        if not any(wanted):
            return
        several = let.op.result_count > 1
        if known is Zeros.NONZERO and not all(isinstance(ct, Const) for ct in cts):
            known = Zeros.PLAIN
        args = tuple(map(self.copier.value, let.args))
        results = tuple(self.copier.value(t) for t in let.targets)
        with cotangent_zeros(known):
            parts = let.op.vjp(cts if several else cts[0], args, results if several else results[0], wanted,
                               **self.copier.params(let.params))
        if several:
            parts = add_vjp_limits(let, cts, parts, jvp)
        for arg, part, want in zip(let.args, parts, wanted, strict=True):
            if part is None or not want or not isinstance(arg, Var):
                continue
            if let.op.masks:
                zeros = Zeros.MASKED
            elif not isinstance(part, Into) and isinstance(part, Const):
                zeros = known_zeros(part)
            else:
                zeros = Zeros.MASKED if known is Zeros.MASKED else Zeros.PLAIN
            adjoints.add(arg, part, zeros)

    def _call(self, call: Call, adjoints: Adjoints) -> None:
        cts = [adjoints.take(t) for t in call.targets]
        wanted = [isinstance(a, Var) and a in self.active for a in call.args]
        bars = call_vjp(call, tuple(map(self.copier.value, call.args)), cts, wanted)
        if any(bar is not None for bar in bars):
            self.replayed.update(call.targets)
        for arg, bar in zip(call.args, bars, strict=True):
            if bar is not None and isinstance(arg, Var):
                adjoints.add(arg, bar, Zeros.MASKED)

    # --- blocks ------------------------------------------------------------------------------------------------

    def _outer_reads(self, stmt: For | If) -> list[Var]:
        """Active variables of the surroundings that the statement's blocks read, in a fixed order."""
        inside = {t for b in blocks(stmt) for s in all_statements(b) for t in s.targets}
        for block in blocks(stmt):
            for inner in all_statements(block):
                if isinstance(inner, For):
                    inside.update(inner.carries)
        if isinstance(stmt, For):
            inside.update(stmt.carries)
        read = {v for b in blocks(stmt) for v in reads(b) if isinstance(v, Var)} & self.active
        return sorted(read - inside, key=lambda v: list(self.scopes.of).index(v))

    def _enter(self, stmt: For | If, arm: int) -> None:
        """Make saved and recomputed values of a scope readable, inside its reversed block."""
        if self.residuals is None or self.saved is None:
            return
        scope = self.scopes.inside[(stmt, arm)]
        for var in self.residuals.saved.get(scope, ()):
            if var in self.saved.tapes:
                self.copier.values[var] = self._from_tape(var)
            else:
                self.copier.values[var] = self.saved.exports[var]
        for let in self.residuals.recomputed.get(scope, ()):
            self.copier.statement(let)

    def _from_tape(self, var: Var) -> Value:
        assert self.saved is not None
        tape = self.saved.tapes[var]
        rest = tuple(Span(0, d) for d in var.type.shape)
        value = ops.load(tape, *self.counters, index=(*[At()] * len(self.counters), *rest))
        return name_like(value, "", var)

    def _totals(self, outer: Sequence[Var], adjoints: Adjoints) -> list[Value]:
        """The adjoints so far of the surroundings, which the blocks go on adding to."""
        found = []
        for var in outer:
            total = adjoints.take(var)
            found.append(const(0, self.copier.type(var.type)) if total is None else total)
        return found

    # --- branches ----------------------------------------------------------------------------------------------

    def _branch(self, stmt: If, adjoints: Adjoints) -> None:
        outer = self._outer_reads(stmt)
        cts = {t: adjoints.take(t) for t in stmt.targets if t in self.active}
        totals = self._totals(outer, adjoints)
        arms = []
        for arm, block in enumerate((stmt.then, stmt.orelse)):
            kept = dict(self.copier.values)
            with building() as b:
                self._enter(stmt, arm)
                own = Adjoints()
                for var, total in zip(outer, totals, strict=True):
                    if not is_zero(total):
                        own.add(var, total, Zeros.MASKED)
                for target, result in zip(stmt.targets, block.results, strict=True):
                    ct = cts.get(target)
                    if ct is not None and isinstance(result, Var) and result in self.active:
                        own.add(result, ct, Zeros.MASKED)
                self.statements(block.stmts, own)
                bars = [own.take(var) for var in outer]
            arms.append(Block(tuple(b.stmts), tuple(t if bar is None else bar
                                                    for bar, t in zip(bars, totals, strict=True))))
            self.copier.values = kept
        targets = tuple(current().var(t.type, f"d_{v.name}") for v, t in zip(outer, totals, strict=True))
        if not targets:
            return
        current().stmts.append(If(targets, self.copier.value(stmt.pred), arms[0], arms[1], stmt.loc))
        for var, target in zip(outer, targets, strict=True):
            adjoints.add(var, target, Zeros.MASKED)

    # --- loops -------------------------------------------------------------------------------------------------

    def _loop(self, stmt: For, adjoints: Adjoints) -> None:
        moving = [k for k, c in enumerate(stmt.carries) if c in self.active]
        outer = self._outer_reads(stmt)
        masked = any(s.op.masks for s in all_statements(stmt.body) if isinstance(s, Let)) or any(
            isinstance(s, If) for s in all_statements(stmt.body))
        zeros = Zeros.MASKED if masked else Zeros.PLAIN
        starts = []
        for k in moving:
            ct = adjoints.take(stmt.targets[k])
            starts.append(const(0, self.copier.type(stmt.targets[k].type)) if ct is None else ct)
        totals = self._totals(outer, adjoints)
        lo, hi, step = (self.copier.value(v) for v in (stmt.lo, stmt.hi, stmt.step))
        first, last, back = reversed_range(lo, hi, step)

        def body(index: Value, *carried: Value) -> list[Value]:
            kept = dict(self.copier.values)
            self.copier.values[stmt.index] = index
            self.counters.append(counter_of(stmt, index) if lo is stmt.lo else counter_of(
                For(stmt.targets, stmt.index, lo, hi, step, stmt.carries, stmt.inits, stmt.body), index))
            self._enter(stmt, 0)
            own = Adjoints()
            for var, total in zip(outer, carried[len(moving):], strict=True):
                own.add(var, total, zeros)
            for k, ct in zip(moving, carried, strict=False):
                result = stmt.body.results[k]
                if isinstance(result, Var) and result in self.active:
                    own.add(result, ct, zeros)
            self.statements(stmt.body.stmts, own)
            bars = [own.take(stmt.carries[k]) for k in moving]
            sums = [own.take(var) for var in outer]
            self.counters.pop()
            self.copier.values = kept
            zero = [const(0, c.type) for c in carried]
            return [z if bar is None else bar for bar, z in zip([*bars, *sums], zero, strict=True)]

        hints = [*(f"d_{stmt.carries[k].name}" for k in moving), *(f"d_{v.name}" for v in outer)]
        ends = for_loop(first, last, [*starts, *totals], body, step=back, index=stmt.index.name, hints=hints)
        for k, ct in zip(moving, ends, strict=False):
            init = stmt.inits[k]
            if isinstance(init, Var) and init in self.active:
                adjoints.add(init, ct, zeros)
        for var, ct in zip(outer, ends[len(moving):], strict=True):
            adjoints.add(var, ct, zeros)


def is_zero(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 0


def reversed_range(lo: Value, hi: Value, step: Value) -> tuple[Value, Value, Value]:
    """First value, bound and step of `reversed(range(lo, hi, step))`."""
    if isinstance(step, Const) and step.value == 1:
        return hi - 1, lo - 1, int_const(-1)
    last = lo + (trip_count(lo, hi, step) - 1) * step
    back = int_const(-step.value) if isinstance(step, Const) else ops.negative(step)
    return last, lo - (ops.sign(step) if not isinstance(step, Const) else (1 if step.value > 0 else -1)), back
