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

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from .. import ops
from ..ir.build import Builder, building, const, current, for_loop, int_const, located
from ..ir.index import At, Span
from ..ir.nodes import Block, Call, Check, Const, For, If, Let, Stmt, Value, Var, While
from ..ir.walk import Copier, all_statements, blocks, reads, with_blocks
from ..ops.base import Into, Lowering, Zeros, cotangent_zeros
from .binomial import emit_sweep, swept
from .calls import call_vjp
from .chains import Chains, Link
from .common import name_like, unsupported_statement
from .forward_sweep import ForwardSweep, as_dim, counter_of, trip_count
from .jvp import jvp
from .limits import add_vjp_limits, check_turned_apart
from .residuals import DEAR, Residuals
from .rules import given_vjp, is_given
from .scopes import Scopes
from .short_chains import shorten_chains

if TYPE_CHECKING:
    from ..errors import Location
    from ..ir.types import Type


class Adjoints:
    """Cotangents collected so far, and what is known of their zeros.  typed: a variable's type as of this iteration.
    totals: variables around the loop of which this is an iteration, whose scalar parts are added up in any order."""

    def __init__(self, typed: Callable[[Type], Type], totals: Sequence[Var] = ()) -> None:
        self.typed = typed
        self.totals = {var for var in totals if not var.type.shape and var.type.kind == "f"}
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
        add = ops.accumulate if var in self.totals else ops.add
        total: Value | None = None
        for part, loc in parts:
            if not isinstance(part, Into):
                with located(loc):
                    total = part if total is None else add(total, part)
        for part, loc in parts:
            if isinstance(part, Into):
                with located(loc):
                    total = part.add(const(0, self.typed(var.type)) if total is None else total)
        return total

    def zeros_of(self, variables: Sequence[Var]) -> Zeros:
        found = [self.zeros[v] for v in variables if v in self.parts]
        return Zeros.MASKED if Zeros.MASKED in found else Zeros.PLAIN if Zeros.PLAIN in found else Zeros.NONZERO


def known_zeros(ct: Value) -> Zeros:
    return Zeros.NONZERO if isinstance(ct, Const) and ct.value != 0 else Zeros.PLAIN


class ReverseSweep:
    """Emits adjoints at the current builder.

    Without `forward` this is a rehearsal: values of nested scopes are read as if they were still there, which tells
    what has to be saved.
    """

    def __init__(self, active: set[Var], scopes: Scopes, chains: Chains | None = None,
                 residuals: Residuals | None = None, forward: ForwardSweep | None = None,
                 is_whole: bool = True) -> None:
        self.active, self.scopes, self.chains = active, scopes, chains
        self.residuals, self.forward = residuals or Residuals(), forward
        self.is_whole = is_whole            # whether nothing comes after the func: no other one calls it
        self.copier = Copier()
        self.tapes = {} if forward is None else dict(forward.saved.tapes)
        self._memory: dict[Link, Value] = {}
        # What is saved or made again is not read from memory, where it may have been written over.
        self._pinned = {var for found in self.residuals.saved.values() for var in found} | {
            var for again in self.residuals.again.values() for stmt in again for var in stmt.targets}
        self._undoing = {owner for write in self.residuals.undone for scope in scopes.of[write.targets[0]].around()
                         if (owner := scope.owner) is not None}
        self._dear = dear_scalars(scopes)
        self.counters: list[Value] = []
        self.replayed: set[Var] = set()        # what calls gave whose reverse mode is called

    def statements(self, stmts: Sequence[Stmt], adjoints: Adjoints) -> None:
        for stmt in reversed(stmts):
            match stmt:
                case Let():
                    with located(stmt.loc):
                        self._undo(stmt)
                        self._let(stmt, adjoints)
                case Check():
                    pass
                case If():
                    if self._matters(stmt, adjoints) or stmt in self._undoing:
                        with located(stmt.loc):
                            self._branch(stmt, adjoints)
                case For():
                    if self._matters(stmt, adjoints) or stmt in self._undoing:
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

    def adjoints(self, totals: Sequence[Var] = ()) -> Adjoints:
        """An empty collection."""
        return Adjoints(self.copier.type if self.forward is not None else lambda type: type, totals)

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
        args = tuple(map(self._operand, let.args))
        results = tuple(map(self._operand, let.targets))
        with cotangent_zeros(known), building(share=True) as rule:
            self._offer_computed(let, rule)
            parts = let.op.vjp(cts if several else cts[0], args, results if several else results[0], wanted,
                               **self.copier.params(let.params))
        current().stmts += rule.stmts
        if several:
            if self.is_whole and self.scopes.of[let.targets[0]] is self.scopes.root:
                parts = add_vjp_limits(let, cts, parts, jvp)
            else:
                check_turned_apart(let, args, results, cts)
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

    def _offer_computed(self, let: Let, rule: Builder) -> None:
        """Let the rule's partials be what the function has computed of the same arguments: of sin(x), cos(x)."""
        around = list(self.scopes.of[let.targets[0]].around())
        for other in self._dear.get(let.args[0], ()) if let.args else ():
            if self.scopes.of[other.target] in around and other is not let and (
                    self.forward is None or other.target in self.copier.values):
                rule.offer(other.op, tuple(map(self.copier.value, other.args)), self.copier.params(other.params),
                           self.copier.value(other.target))

    def _call(self, call: Call, adjoints: Adjoints) -> None:
        cts = [adjoints.take(t) for t in call.targets]
        wanted = [isinstance(a, Var) and a in self.active for a in call.args]
        args = tuple(map(self.copier.value, call.args))
        if is_given(call):
            full = [const(0, self.adjoints().typed(t.type)) if ct is None else ct
                    for t, ct in zip(call.targets, cts, strict=True) if t.type.is_inexact]
            bars = given_vjp(call, args, full, wanted)
        else:
            bars = call_vjp(call, args, cts, wanted, lambda arg: adjoints.take(arg) if isinstance(arg, Var) else None)
        if not is_given(call) and any(bar is not None for bar in bars):
            self.replayed.update(call.targets)
        for arg, bar in zip(call.args, bars, strict=True):
            if bar is not None and isinstance(arg, Var):
                adjoints.add(arg, bar, Zeros.MASKED)

    def _operand(self, value: Value) -> Value:
        """What a rule sees of an argument or result.  One that is not there is asked for its type alone, in which sizes
        are those of this iteration."""
        found = self.copier.value(value)
        if found is not value or isinstance(value, Const) or self.forward is None:
            return found
        type = self.copier.type(value.type)
        return value if type == value.type else Var(value.name, type)

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
        """Make values of a scope readable inside its reversed block: those saved, then those that are made again."""
        if self.forward is None:
            return
        scope = self.scopes.inside[(stmt, arm)]
        for var in self.residuals.saved.get(scope, ()):
            self._set(var, self._from_tape(var) if var in self.tapes else self.forward.saved.exports[var])
        for again in self.residuals.again.get(scope, ()):
            values, sizes = dict(self.copier.values), dict(self.copier.sizes)
            if isinstance(again, For):
                self.tapes.update(self.forward.again(again, self.copier))
            else:
                self.copier.statement(without_checks(again))
            if blocks(again):       # what is inside is of that run alone
                made = {t.name for t in again.targets}
                values.update((t, self.copier.values[t]) for t in again.targets)
                sizes.update((name, size) for name, size in self.copier.sizes.items() if name in made)
                self.copier.values, self.copier.sizes = values, sizes

    def _set(self, var: Var, value: Value) -> None:
        self.copier.values[var] = value
        if not var.type.shape and var.type.dtype == "int64" and self.forward is not None:
            self.copier.sizes[var.name] = as_dim(value)

    def _from_tape(self, var: Var) -> Value:
        tape = self.tapes[var]
        own = self.residuals.own.get(var)
        counters = self.counters if own is None else self.counters[self.scopes.of[var].loops().index(own):]
        rest = tuple(Span(0, d) for d in self.copier.type(var.type).shape)
        value = ops.load(tape, *counters, index=(*[At()] * len(counters), *rest))
        return name_like(value, "", var)

    # --- arrays that were overwritten --------------------------------------------------------------------------

    def _undo(self, let: Let) -> None:
        """Put back what the operation overwrote, where earlier reads need it."""
        old = self.residuals.undone.get(let)
        if old is None or self.chains is None:
            return
        link = self.chains.of[let.targets[0]]
        scalars = map(self.copier.value, let.args[2:])
        index = self.copier.params(let.params)["index"]
        self._show(link, ops.store(self._memory[link], self.copier.value(old), *scalars, index=index))

    def _show(self, link: Link | None, memory: Value) -> None:
        """From here on, this is what the link's memory is, from which its versions are read but for those saved.  An
        arm's link may begin with a version of the root, which is still there by itself."""
        if link is None or self.chains is None:
            return
        self._memory[link] = memory
        for version in link.versions:
            if version in self.chains.of and version not in self._pinned:
                self.copier.values[version] = memory

    def _link_of(self, version: Var) -> Link | None:
        return self.chains.of.get(version) if self.chains is not None else None

    def _memory_of(self, version: Var) -> Value:
        link = self._link_of(version)
        return self.copier.value(version) if link is None or link not in self._memory else self._memory[link]

    def _links(self, stmt: For) -> dict[int, tuple[int, Link]]:
        """The chains through a loop, by result position: the carry that each begins as."""
        if self.chains is None or self.forward is None:
            return {}
        return {k: (first, self.chains.of[stmt.carries[first]]) for k, first in self.chains.moves[stmt].items()}

    def _moving_arrays(self, stmt: For) -> list[int]:
        """Result positions of the arrays whose memory the reversed loop carries: because something is put back there,
        or because the loop hands arrays around."""
        links = {k: first for k, (first, _) in self._links(stmt).items() if self._is_there(stmt.targets[k])}
        while not set(links.values()) <= links.keys():          # of arrays handed around, all or none
            links = {k: first for k, first in links.items() if first in links}
        if stmt in self._undoing:
            return sorted(links)
        return sorted(k for k, first in links.items() if k != first)

    def _is_there(self, version: Var) -> bool:
        """Whether its memory can be read here; if not, nobody needs it."""
        return (self.scopes.of[version] is self.scopes.root or version in self.copier.values
                or self._link_of(version) in self._memory)

    def _totals(self, outer: Sequence[Var], adjoints: Adjoints) -> list[Value]:
        """The adjoints so far of the surroundings, which the blocks go on adding to."""
        found = []
        for var in outer:
            total = adjoints.take(var)
            found.append(const(0, self.copier.type(var.type)) if total is None else total)
        return found

    def _kept(self) -> tuple[dict[Var, Value], dict[str, Any], dict[Link, Value]]:
        """What is known here, to go back to it after a block."""
        return dict(self.copier.values), dict(self.copier.sizes), dict(self._memory)

    def _restore(self, kept: tuple[dict[Var, Value], dict[str, Any], dict[Link, Value]]) -> None:
        self.copier.values, self.copier.sizes, self._memory = kept

    # --- branches ----------------------------------------------------------------------------------------------

    def _branch(self, stmt: If, adjoints: Adjoints) -> None:
        outer = self._outer_reads(stmt)
        cts = {t: adjoints.take(t) for t in stmt.targets if t in self.active}
        totals = self._totals(outer, adjoints)
        parts = {} if self.chains is None or self.forward is None else {
            k: part for k, part in self.chains.arms[stmt].items() if self._is_there(stmt.targets[k])}
        written = parts if stmt in self._undoing else {}
        arms = []
        for arm, block in enumerate((stmt.then, stmt.orelse)):
            kept = self._kept()
            with building() as b:
                for k, (_, *links) in parts.items():
                    self._show(links[arm], self._memory_of(stmt.targets[k]))
                self._enter(stmt, arm)
                own = self.adjoints()
                for var, total in zip(outer, totals, strict=True):
                    if not is_zero(total):
                        own.add(var, total, Zeros.MASKED)
                for target, result in zip(stmt.targets, block.results, strict=True):
                    ct = cts.get(target)
                    if ct is not None and isinstance(result, Var) and result in self.active:
                        own.add(result, ct, Zeros.MASKED)
                self.statements(block.stmts, own)
                bars = [own.take(var) for var in outer]
                ends = [(stmt.targets[k], links[arm]) for k, (_, *links) in written.items()]
                befores = [self._memory_of(target) if link is None else self._memory[link] for target, link in ends]
            arms.append(Block(tuple(b.stmts), (*(t if bar is None else bar
                                                 for bar, t in zip(bars, totals, strict=True)), *befores)))
            self._restore(kept)
        hints = [*(f"d_{v.name}" for v in outer), *(stmt.targets[k].name for k in written)]
        if not hints:
            return
        targets = tuple(current().var(r.type, hint) for r, hint in zip(arms[0].results, hints, strict=True))
        current().stmts.append(If(targets, self.copier.value(stmt.pred), arms[0], arms[1], stmt.loc))
        for var, target in zip(outer, targets, strict=False):
            adjoints.add(var, target, Zeros.MASKED)
        for k, before in zip(written, targets[len(outer):], strict=True):
            self._show(self._link_of(stmt.targets[k]), before)

    # --- loops -------------------------------------------------------------------------------------------------

    def _sweep(self, stmt: For, slots: int, adjoints: Adjoints) -> None:
        """The adjoint of a loop of which few states may be kept."""
        plan = swept(stmt, self.active, self.scopes.by_name())
        cts = self._totals([stmt.targets[k] for k in plan.moving], adjoints)
        totals = self._totals([plan.outside[k] for k in plan.touched], adjoints)
        lo, hi, step = (self.copier.value(v) for v in (stmt.lo, stmt.hi, stmt.step))
        inits, outside = ([self.copier.value(v) for v in values] for values in (stmt.inits, plan.outside))
        bars, sums = emit_sweep(plan, trip_count(lo, hi, step), lo, slots, inits, outside, cts, totals)
        for k, bar in zip(plan.moving, bars, strict=True):
            init = stmt.inits[k]
            if isinstance(init, Var) and init in self.active:
                adjoints.add(init, bar, Zeros.MASKED)
        for k, bar in zip(plan.touched, sums, strict=True):
            adjoints.add(plan.outside[k], bar, Zeros.MASKED)

    def _loop(self, stmt: For, adjoints: Adjoints) -> None:
        if stmt.checkpoint is not None and stmt.checkpoint.slots is not None:
            self._sweep(stmt, stmt.checkpoint.slots, adjoints)
            return
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
        links, arrays = self._links(stmt), self._moving_arrays(stmt)
        for k, (_, link) in links.items():
            if k not in arrays and self._is_there(stmt.targets[k]):
                self._show(link, self._memory_of(stmt.targets[k]))

        def body(index: Value, *carried: Value) -> list[Value]:
            kept = self._kept()
            for k, memory in zip(arrays, carried[len(carried) - len(arrays):], strict=True):
                self._show(links[k][1], memory)
            carried = carried[:len(carried) - len(arrays)]
            self._set(stmt.index, index)
            self.counters.append(counter_of(stmt, index) if lo is stmt.lo else counter_of(
                For(stmt.targets, stmt.index, lo, hi, step, stmt.carries, stmt.inits, stmt.body), index))
            self._enter(stmt, 0)
            own = self.adjoints(totals=outer)
            for var, total in zip(outer, carried[len(moving):], strict=True):
                own.add(var, total, zeros)
            for k, ct in zip(moving, carried, strict=False):
                result = stmt.body.results[k]
                if isinstance(result, Var) and result in self.active:
                    own.add(result, ct, zeros)
            self.statements(stmt.body.stmts, own)
            bars = [own.take(stmt.carries[k]) for k in moving]
            sums = [own.take(var) for var in outer]
            memories = [self._memory_of(stmt.carries[k]) for k in arrays]
            self.counters.pop()
            self._restore(kept)
            zero = [const(0, c.type) for c in carried]
            return [*(z if bar is None else bar for bar, z in zip([*bars, *sums], zero, strict=True)), *memories]

        hints = [*(f"d_{stmt.carries[k].name}" for k in moving), *(f"d_{v.name}" for v in outer),
                 *(stmt.carries[k].name for k in arrays)]
        memory = [self._memory_of(stmt.targets[k]) for k in arrays]
        ends = for_loop(first, last, [*starts, *totals, *memory], body, step=back, index=stmt.index.name, hints=hints)
        if self.forward is not None:
            made = current().stmts[-1]
            assert isinstance(made, For)
            current().stmts[-1] = shorten_chains(made, len(moving) + len(outer))
        for k, value in zip(arrays, ends[len(moving) + len(outer):], strict=True):
            self._show(self._link_of(stmt.targets[k]), value)
        for k, ct in zip(moving, ends, strict=False):
            init = stmt.inits[k]
            if isinstance(init, Var) and init in self.active:
                adjoints.add(init, ct, zeros)
        for var, ct in zip(outer, ends[len(moving):], strict=False):
            adjoints.add(var, ct, zeros)


def without_checks(stmt: Stmt) -> Stmt:
    """The statement without the checks in it, which have passed before."""
    inner = [Block(tuple(without_checks(s) for s in block.stmts if not isinstance(s, Check)), block.results)
             for block in blocks(stmt)]
    return with_blocks(stmt, inner) if inner else stmt


def dear_scalars(scopes: Scopes) -> dict[Value, list[Let]]:
    """The operations of nested blocks that take long for one number, by their first arguments."""
    found: dict[Value, list[Let]] = {}
    for var, scope in scopes.of.items():
        let = scope.defined[var]
        if isinstance(let, Let) and scope is not scopes.root and not var.type.shape and let.op.is_pure and (
                let.op.lowering is Lowering.ELEMENTWISE and let.op.cost > DEAR):
            found.setdefault(let.args[0], []).append(let)
    return found


def is_zero(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 0


def reversed_range(lo: Value, hi: Value, step: Value) -> tuple[Value, Value, Value]:
    """First value, bound and step of `reversed(range(lo, hi, step))`."""
    if isinstance(step, Const) and step.value == 1:
        return hi - 1, lo - 1, int_const(-1)
    last = lo + (trip_count(lo, hi, step) - 1) * step
    back = int_const(-step.value) if isinstance(step, Const) else ops.negative(step)
    return last, lo - (ops.sign(step) if not isinstance(step, Const) else (1 if step.value > 0 else -1)), back
