"""Statements as StableHLO: operations by their rules, branches and loops as regions, checks as an error flag.

    y = If(p) {a} else {b}          %y = "stablehlo.if"(%p) ({ ... a }, { ... b })
    y = For(i, 0..n, x)             %i, %y = stablehlo.while(%i = 0, %x = ...) cond { i < n } do { ... i + 1 }
    y = While(x) cond {..} do {..}  %y = stablehlo.while(%x = ...) cond { ... } do { ... }
    Check(p, "IndexError", ...)     %error = select(%error == 0 and not p, code, %error)

A machine that runs StableHLO cannot raise.  Without the flag, checks are left out and what they guard goes on: an
index that is out of range is moved into it by a read, and a write to it does nothing or is moved likewise.  With it,
an int32 says which check failed first, or which operation raises (`Printer.require`), 0 for none; a loop ends when one
of its checks has failed.  Text that the
function prints is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from ..errors import RuleError, locate
from ..ir.build import Names
from ..ir.nodes import Block, Call, Check, Const, For, If, Let, Stmt, Value, Var, While
from ..ir.types import I64, Type, dims_in
from ..ir.walk import all_statements
from .hlo_inline import recursion
from .hlo_printer import Printer
from .hlo_sizes import require_numbers, require_sizes
from .hlo_text import HloValue, identifier

if TYPE_CHECKING:
    from ..errors import Location

I32 = Type("int32")
TOO_MANY = "a loop ran more often than max_trips = "       # how the text of a check begins that always matters
NAMELESS = re.compile(r"t(_\d+)+")              # what rules call results that nobody named
NUMBERS = re.compile(r"(_\d+)+$")


@dataclass(frozen=True)
class Failure:
    """What a value of the error flag stands for: the exception, its text (with places for values, as in
    `Check.message`), and the user's line."""

    code: int
    kind: str
    message: str
    loc: Location | None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f" ({self.loc})" if self.loc is not None else "")


class Emitter:
    """Emits statements with `h`.  `values` has what each variable is; `error` the flag, where checks are wanted."""

    def __init__(self, h: Printer, names: Names, params: Sequence[Var], *, checked: bool, locations: bool) -> None:
        self.h, self.names, self.params, self.locations = h, names, params, locations
        self.values: dict[Var, HloValue] = {}
        self.failures: dict[tuple[Check | Let, str], Failure] = {}
        self.checked = checked
        self.error: HloValue | None = None

    def func(self, body: Block) -> list[HloValue]:
        """The results, and the flag if it was asked for.  A loop that ran for longer than there was room turns the
        results into NaN."""
        if self._may_fail(body) or self.checked:
            self.error = self.h.constant(0, I32)
        self.statements(body.stmts)
        results = self.all_values(body.results)
        if self.error is None or self.checked:
            return results + self._flag(self.checked)
        fits = self.h.compare("EQ", self.error, self.h.constant(0, I32))
        return [self._unless(fits, r) if r.type.is_inexact else r for r in results]

    def _unless(self, pred: HloValue, value: HloValue) -> HloValue:
        every = self.h.broadcast(pred, value.type.shape, ()) if value.type.shape else pred
        return self.h.select(every, value, self.h.constant(float("nan"), value.type))

    # --- values ----------------------------------------------------------------------------------------------

    def value(self, value: Value) -> HloValue:
        if isinstance(value, Const):
            return self.h.constant(value.value, value.type)
        return self.values[value]

    def all_values(self, values: Sequence[Value]) -> list[HloValue]:
        return [self.value(v) for v in values]

    def bind(self, targets: Sequence[Var], values: Sequence[HloValue]) -> None:
        """The targets are these results of one fresh instruction, which get their names."""
        for target, value in zip(targets, values, strict=True):
            self.values[target] = value
            value.name = self.name(target)

    def name(self, var: Var) -> str | None:
        """A fresh name after the variable's: `x_3` for another `x_2_1`; None where nobody named it."""
        if NAMELESS.fullmatch(var.name):
            return None
        wanted = identifier(var.name)
        return self.names.fresh(wanted if wanted not in self.names.taken else NUMBERS.sub("", wanted))

    # --- statements ------------------------------------------------------------------------------------------

    def statements(self, stmts: Sequence[Stmt]) -> None:
        for k, stmt in enumerate(stmts):
            self._require_sizes(stmts, k)
            with self._at(stmt.loc):
                self._statement(stmt)

    def _require_sizes(self, stmts: Sequence[Stmt], k: int) -> None:
        """Of what a statement makes.  A tape, which has no place of its own, has that of the loop that follows."""
        try:
            for target in stmts[k].targets:
                require_sizes(target, self.params)
        except RuleError as problem:
            place = next((s.loc for s in stmts[k:] if s.loc is not None), None)
            if place is None:
                raise
            raise problem.at(place) from None

    @contextmanager
    def _at(self, loc: Location | None) -> Iterator[None]:
        """Instructions have the place of the statement, and errors are drawn over it, where it is known."""
        before = self.h.location
        if self.locations and loc is not None:
            self.h.location = location(loc)
        try:
            if loc is None:
                yield
            else:
                with locate(loc):
                    yield
        finally:
            self.h.location = before

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self._let(stmt)
            case If():
                self._if(stmt)
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case Check():
                self._check(stmt)
            case Call():
                raise recursion(stmt)            # those of other funcs are written in place before
            case _:
                assert_never(stmt)

    def _let(self, let: Let) -> None:
        h, rule = self.h, let.op.stablehlo
        why = getattr(rule, "unsupported", None)
        if why is not None:
            raise RuleError(f"{let.op.name} cannot be written in StableHLO: {why}", code="E207",
                            kind=NotImplementedError)
        require_numbers([d for p in let.params.values() for d in dims_in(p)], let.op.name, self.params)
        args = self.all_values(let.args)
        mark = len(h.body)
        h.required.clear()
        found = rule(h, *args, **let.params)
        results = tuple(found) if let.op.result_count > 1 else (found,)
        fresh = set(map(id, h.body[mark:]))
        for target, value in zip(let.targets, results, strict=True):
            if value.type != target.type:
                raise RuleError(f"the StableHLO rule of {let.op.name} gives {value.type}, not {target.type}")
            self.values[target] = value
            source = value.source
            if value.name is None and source is not None and id(source) in fresh and not source.is_constant:
                value.name = self.name(target)
        if self.error is not None and self._matters(let):
            for pred, message in h.required:
                self._unless_holds(pred, let, let.op.raises.__name__, message)  # type: ignore[union-attr]

    # --- branches --------------------------------------------------------------------------------------------

    def _if(self, stmt: If) -> None:
        if isinstance(stmt.pred, Const):
            taken = stmt.then if stmt.pred.value else stmt.orelse
            self.statements(taken.stmts)
            for target, result in zip(stmt.targets, taken.results, strict=True):
                self.values[target] = self.value(result)
            return
        flagged, before = self._may_fail(stmt.then, stmt.orelse), self.error
        if not stmt.targets and not flagged:
            return

        def arm(block: Block) -> Any:
            def emit() -> list[HloValue]:
                self.error = before
                self.statements(block.stmts)
                return self.all_values(block.results) + self._flag(flagged)
            return emit

        found = self.h.choose(self.value(stmt.pred), arm(stmt.then), arm(stmt.orelse))
        self.error = found[-1] if flagged else before
        self.bind(stmt.targets, found[:len(stmt.targets)])

    # --- loops -----------------------------------------------------------------------------------------------

    def _for(self, stmt: For) -> None:
        """XLA 0.10 counts the trips of a loop by 2 from 0 to 1 as none, and by 2 from 3 to 2 as one: a loop whose step
        is not 1 or -1 counts its trips by 1, and its index follows from that."""
        h, flagged = self.h, self._may_fail(stmt.body)
        if not stmt.targets and not flagged:
            return
        strided = isinstance(stmt.step, Const) and abs(stmt.step.value) != 1
        lo, hi, step = (self.value(v) for v in (stmt.lo, stmt.hi, stmt.step))
        trips = self._trips(stmt, lo, hi) if strided else hi

        def test(h: Printer, index: HloValue, *carried: HloValue) -> HloValue:
            going = h.compare("LT", index, trips) if strided else self._in_range(index, stmt, hi, step)
            return self._going(going, carried[-1:] if flagged else ())

        def body(h: Printer, index: HloValue, *carried: HloValue) -> list[HloValue]:
            self.values[stmt.index] = self._place(stmt, lo, index) if strided else index
            self._enter(stmt.carries, carried, flagged)
            self.statements(stmt.body.stmts)
            following = h.op("add", index, h.constant(1, I64) if strided else self.value(stmt.step))
            return [following, *self.all_values(stmt.body.results), *self._flag(flagged)]

        inits = [h.constant(0, I64) if strided else lo, *self.all_values(stmt.inits), *self._flag(flagged)]
        index = self.names.fresh("trip") if strided else self.name(stmt.index)
        names = [index, *map(self.name, stmt.carries), *self._flag_name(flagged)]
        before = self.error
        found = h.while_loop(inits, test, body, names)
        self.error = found[-1] if flagged else before
        self.bind(stmt.targets, found[1:len(stmt.targets) + 1])

    def _trips(self, stmt: For, lo: HloValue, hi: HloValue) -> HloValue:
        """How often it runs; 0 or less: never."""
        h, step = self.h, stmt.step.value                                       # type: ignore[union-attr]
        if isinstance(stmt.lo, Const) and isinstance(stmt.hi, Const):
            return h.constant(len(range(stmt.lo.value, stmt.hi.value, step)), I64)
        distance = h.op("subtract", hi, lo) if step > 0 else h.op("subtract", lo, hi)
        up = h.op("add", distance, h.constant(abs(step) - 1, I64))
        return h.op("divide", up, h.constant(abs(step), I64))

    def _place(self, stmt: For, lo: HloValue, trip: HloValue) -> HloValue:
        along = self.h.op("multiply", trip, self.value(stmt.step))
        place = self.h.op("add", self.value(stmt.lo) if isinstance(stmt.lo, Const) else lo, along)
        place.name = self.name(stmt.index)
        return place

    def _in_range(self, index: HloValue, stmt: For, hi: HloValue, step: HloValue) -> HloValue:
        h = self.h
        if isinstance(stmt.step, Const):
            return h.compare("LT" if stmt.step.value > 0 else "GT", index, self.value(stmt.hi))
        zero = h.constant(0, I64)
        up = h.op("and", h.compare("GT", step, zero), h.compare("LT", index, hi))
        down = h.op("and", h.compare("LT", step, zero), h.compare("GT", index, hi))
        return h.op("or", up, down)

    def _while(self, stmt: While) -> None:
        cond_fails = self._may_fail(stmt.cond)
        flagged, before = cond_fails or self._may_fail(stmt.body), self.error

        def test(h: Printer, *carried: HloValue) -> HloValue:
            self._enter(stmt.carries, carried, flagged)
            self.statements(stmt.cond.stmts)
            return self._going(self.value(stmt.cond.results[0]), self._flag(flagged))

        def body(h: Printer, *carried: HloValue) -> list[HloValue]:
            self._enter(stmt.carries, carried, flagged)
            self.statements(stmt.body.stmts)
            return self.all_values(stmt.body.results) + self._flag(flagged)

        inits = [self._not_counted(v) for v in self.all_values(stmt.inits)] + self._flag(flagged)
        if not inits:
            return                                      # it does nothing but end
        names = [self.name(v) for v in stmt.carries] + self._flag_name(flagged)
        found = self.h.while_loop(inits, test, body, names)
        self.error = found[-1] if flagged else before
        self.bind(stmt.targets, found[:len(stmt.targets)])
        if cond_fails:                                  # a condition cannot hand on its flag: it is asked once more
            for carry, target in zip(stmt.carries, stmt.targets, strict=True):
                self.values[carry] = self.values[target]
            self.statements(stmt.cond.stmts)

    def _not_counted(self, init: HloValue) -> HloValue:
        """A first value that XLA does not compute trips from, which it gets wrong for steps other than 1 (`_for`)."""
        if init.type.kind not in "iu" or init.type.shape:
            return init
        return self.h.op("optimization_barrier", init)

    def _enter(self, carries: Sequence[Var], carried: Sequence[HloValue], flagged: bool) -> None:
        self.error = carried[-1] if flagged else self.error
        for var, value in zip(carries, carried):
            self.values[var] = value

    def _flag_name(self, flagged: bool) -> list[str | None]:
        return [self.names.fresh("error")] if flagged else []

    # --- checks ----------------------------------------------------------------------------------------------

    def _may_fail(self, *blocks: Block) -> bool:
        return any(self._matters(s) for b in blocks for s in all_statements(b))

    def _matters(self, stmt: Stmt) -> bool:
        """Whether the flag has to tell of it."""
        if isinstance(stmt, Let):
            return self.checked and stmt.op.raises is not None
        return isinstance(stmt, Check) and self._is_told(stmt)

    def _is_told(self, check: Check) -> bool:
        return check.message.startswith(TOO_MANY) or (self.checked and not check.prints)

    def _flag(self, flagged: bool) -> list[HloValue]:
        return [self.error] if flagged and self.error is not None else []

    def _going(self, condition: HloValue, flag: Sequence[HloValue]) -> HloValue:
        """The condition, and no check has failed."""
        if not flag:
            return condition
        return self.h.op("and", condition, self.h.compare("EQ", flag[0], self.h.constant(0, I32)))

    def _check(self, check: Check) -> None:
        if self.error is None or not self._matters(check):
            return
        self._unless_holds(self.value(check.pred), check, check.kind, check.message)

    def _unless_holds(self, pred: HloValue, stmt: Check | Let, kind: str, message: str) -> None:
        assert self.error is not None
        key = (stmt, message)
        if key not in self.failures:
            self.failures[key] = Failure(len(self.failures) + 1, kind, message, stmt.loc)
        h, code = self.h, self.failures[key].code
        unless = h.op("not", pred)
        first = h.op("and", unless, h.compare("EQ", self.error, h.constant(0, I32)))
        self.error = h.select(first, h.constant(code, I32), self.error)
        self.error.name = self.names.fresh("error")


def location(loc: Location) -> str:
    file = loc.file.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{file}":{loc.line}:{loc.column + 1}'


