"""The reverse mode of a loop that may keep few of its states: by halves that are run again, as binomials divide them.

    func sweep(lo, n, slots, x, ct):          the adjoint of n iterations from lo on, which begin with x
      while n > 1:
        m = split(n, slots)
        y = the state after m iterations
        ct = sweep(lo + m, n - m, slots - 1, y, ct)
        n = m
      return adjoint of iteration lo at x, applied to ct

With s slots and no iteration run more than r times forward, C(s + r, s) iterations can be reversed; `split` takes the
first C(s + r - 1, s) of them for the least such r.  A state is kept for each call that runs inside another, of which
there are never more than slots.

Source: A. Griewank and A. Walther, "Algorithm 799: Revolve", ACM Transactions on Mathematical Software 26 (2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import ops
from ..ir.build import Names, building, choose, const, current, for_loop, int_const, size_value, while_loop
from ..ir.dims import symbol, symbols_of
from ..ir.library import library
from ..ir.nodes import Block, Call, For, Func, Value, Var
from ..ir.types import I64, Type
from ..ir.walk import Copier, all_statements, bound_inside, reads
from .calls import call_vjp


@dataclass(frozen=True)
class Swept:
    """A loop as funcs.  outside: what its body reads of the surroundings; sizes: names of sizes that no array there
    has, which are passed as ints; moving, touched: positions of the carries and of `outside` that have adjoints."""

    loop: For
    outside: tuple[Var, ...]
    sizes: tuple[str, ...]
    moving: tuple[int, ...]
    touched: tuple[int, ...]

    @property
    def params(self) -> list[tuple[str, Type]]:
        """Of the funcs, after the number of the iteration."""
        return [*((v.name, v.type) for v in (*self.loop.carries, *self.outside)), *((s, I64) for s in self.sizes)]


    @property
    def names(self) -> list[str]:
        """Of the params and of the sizes in their types."""
        return [*(name for name, _ in self.params),
                *(size for _, type in self.params for dim in type.shape for size in symbols_of(dim))]


def swept(loop: For, active: set[Var], named: dict[str, Var]) -> Swept:
    """named: int scalars that sizes may be named after."""
    inside = {loop.index, *loop.carries}
    inside.update(t for s in all_statements(loop.body) for t in (*s.targets, *bound_inside(s)))
    read = reads(loop.body)
    read |= {named[name] for name in read if isinstance(name, str) and name in named}
    outside = tuple(sorted((v for v in read if isinstance(v, Var) and v not in inside), key=lambda v: v.name))
    given = {v.name for v in outside} | {str(d) for v in (*loop.carries, *outside) for d in v.type.shape}
    used = {name for name in read if isinstance(name, str)} | {
        name for v in (*loop.carries, *outside) for d in v.type.shape for name in symbols_of(d)}
    inner = {v.name for v in inside}
    return Swept(loop, outside, tuple(sorted(used - given - inner)),
                 tuple(k for k, c in enumerate(loop.carries) if c in active),
                 tuple(k for k, v in enumerate(outside) if v in active))


def emit_sweep(plan: Swept, trips: Value, lo: Value, slots: int, inits: Sequence[Value], outside: Sequence[Value],
               cts: Sequence[Value], totals: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Emit the adjoint of the loop; the cotangents of the moving carries at its begin, and of what it touches."""
    sizes = [size_value(symbol(name, 0)) for name in plan.sizes]
    types = [plan.loop.carries[k].type for k in plan.moving] + [plan.outside[k].type for k in plan.touched]
    bars = tuple(current().var(given.type, "d") for given in (*cts, *totals))
    assert len(types) == len(bars)
    name = library().derive(("sweep", plan.loop, plan.moving, plan.touched), "sweep", lambda own: _sweep(plan, own))

    def run() -> list[Value]:
        current().stmts.append(Call(bars, name, (lo, trips, int_const(slots), *inits, *outside, *sizes, *cts, *totals),
                                    plan.loop.loc))
        return list(bars)

    found: Sequence[Value] = choose(trips > 0, run, lambda: [*cts, *totals], hint="d")
    return list(found[:len(cts)]), list(found[len(cts):])


def _step(plan: Swept, own: str, with_outside: bool) -> Func:
    """One iteration: the carries after it, and then what it touches as it was, so that adjoints are added to those."""
    loop = plan.loop
    names = Names([*plan.names, loop.index.name])
    params = [Var(name, type) for name, type in plan.params]
    index = Var(loop.index.name, I64)
    copier = Copier(dict(zip((loop.index, *loop.carries, *plan.outside), (index, *params), strict=False)))
    with building(names) as b:
        for stmt in loop.body.stmts:
            copier.statement(stmt)
    results = [copier.value(r) for r in loop.body.results]
    if with_outside:
        results += [copier.value(plan.outside[k]) for k in plan.touched]
    return Func(own, (index, *params), Block(tuple(b.stmts), tuple(results)))


def _sweep(plan: Swept, own: str) -> Func:
    loop, count = plan.loop, len(plan.loop.carries)
    step = library().derive(("step", loop), "step", lambda name: _step(plan, name, False))
    whole = library().derive(("step with outside", loop, plan.touched), "step", lambda name: _step(plan, name, True))
    names = Names(plan.names)
    start, left, slots = (Var(names.fresh(name), I64) for name in ("start", "left", "slots"))
    params = [Var(name, type) for name, type in plan.params]
    moved = [*(loop.carries[k] for k in plan.moving), *(plan.outside[k] for k in plan.touched)]
    given = [Var(names.fresh(f"d_{v.name}"), v.type) for v in moved]
    state, rest = params[:count], params[count:]

    def forward(begin: Value, trips: Value) -> tuple[Var, ...]:
        def body(k: Value, *carries: Value) -> Sequence[Value]:
            after = tuple(current().var(c.type, c.name) for c in loop.carries)
            current().stmts.append(Call(after, step, (begin + k * loop.step, *carries, *rest), loop.loc))
            return after
        return for_loop(int_const(0), trips, state, body, index="k", hints=[c.name for c in loop.carries])

    def part(n: Value, *cts: Value) -> Sequence[Value]:
        m = _split(n, slots)
        middle = forward(start, m)
        after = tuple(current().var(v.type, f"d_{v.name}") for v in moved)
        fewer = ops.maximum(slots - 1, int_const(1))
        current().stmts.append(Call(after, own, (start + m * loop.step, n - m, fewer, *middle, *rest, *cts), loop.loc))
        return [m, *after]

    with building(names) as b:
        _, *cts = while_loop([left, *given], lambda n, *_: n > 1, part, hints=["left", *(g.name for g in given)])
        touched = tuple(plan.outside[k] for k in plan.touched)
        targets = tuple(current().var(v.type, v.name) for v in (*loop.carries, *touched))
        call = Call(targets, whole, (start, *state, *rest), loop.loc)
        by_target: list[Value | None] = [None] * len(targets)
        for at, ct in zip((*plan.moving, *range(count, len(targets))), cts, strict=True):
            by_target[at] = ct
        wanted = [False, *(at in plan.moving for at in range(count)),
                  *(at in plan.touched for at in range(len(plan.outside))), *[False] * len(plan.sizes)]
        found = call_vjp(call, call.args, by_target, wanted, lambda _: None)
        bars = [bar if bar is not None else const(0, arg.type)
                for bar, arg, want in zip(found, call.args, wanted, strict=True) if want]
    return Func(own, (start, left, slots, *params, *given), Block(tuple(b.stmts), tuple(bars)))


def _split(n: Value, slots: Value) -> Value:
    """How many of n > 1 iterations to run before a state is kept."""
    def more(r: Value, before: Value, most: Value) -> Sequence[Value]:
        return [r + 1, most, ops.floor_divide(most * (slots + r + 1), r + 1)]

    _, first, _ = while_loop([int_const(0), int_const(1), int_const(1)], lambda r, before, most: most < n, more,
                             hints=["r", "first", "most"])
    return ops.minimum(first, n - 1)
