"""Recursive funcs that are complete, as funcs of the library: what they read of the code around them becomes params.

    w = ...                                  func f(depth, n, w):
    f: reads its params n and, outside, w       ... call f(depth + 1, n - 1, w)
       ... call f(depth + 1, n - 1)

Funcs that call each other take what any of them reads, but for what they define themselves.  A size of the code around
that no shape of a param has is a param, too: an int of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..ir.build import Names, building, current, size_value
from ..ir.dims import Symbol, symbol, symbols_of
from ..ir.library import library
from ..ir.nodes import Block, Call, Func, Stmt, Value, Var
from ..ir.types import I64, dims_in
from ..ir.walk import Copier, all_statements, blocks, bound_inside, operands, reads
from .arms import NUMBERED
from .outside import keeping_nothing

if TYPE_CHECKING:
    from .recursive_func import Recursion


@dataclass(frozen=True)
class Lifted:
    """outer: values of the surroundings that the func reads; sizes: those that it needs besides."""

    outer: tuple[Var, ...]
    sizes: tuple[Symbol, ...]

    def given(self, copier: Copier | None = None) -> tuple[Value, ...]:
        """Emit what a call passes for them."""
        outer = self.outer if copier is None else tuple(map(copier.value, self.outer))
        dims = [symbol(s.name, s.low) for s in self.sizes]
        if copier is not None:
            dims = [copier._size(s) for s in self.sizes]
        return (*outer, *map(size_value, dims))


def lift_group(group: Sequence[Recursion]) -> None:
    """Put funcs that call each other, and nobody else who is unfinished, into the library."""
    by_name = {r.func_name: r for r in group}
    inside = {name: _defined(r) for name, r in by_name.items()}
    outer = {name: {v for v in reads(_block(r)) if isinstance(v, Var)} - inside[name] for name, r in by_name.items()}
    sizes = {name: _sizes(r) for name, r in by_name.items()}
    calls = {name: {s.func for s in all_statements(_block(r)) if isinstance(s, Call)} & by_name.keys()
             for name, r in by_name.items()}
    while True:
        count = sum(map(len, outer.values())) + sum(map(len, sizes.values()))
        for name, called in calls.items():
            for other in called:
                outer[name] |= outer[other] - inside[name]
                sizes[name].update((s, low) for s, low in _free(sizes[other], by_name[other], outer[other]).items())
        if count == sum(map(len, outer.values())) + sum(map(len, sizes.values())):
            break
    for name, recursion in by_name.items():
        free = _free(sizes[name], recursion, outer[name])
        names = {v.name for v in inside[name]} | {v.name for v in outer[name]}
        recursion.lifted = Lifted(tuple(sorted(outer[name], key=lambda v: v.name)),
                                  tuple(Symbol(s, free[s]) for s in sorted(free) if s not in names))
    for recursion in group:
        library().add(_func(recursion, by_name))


def _block(recursion: Recursion) -> Block:
    return Block(recursion.stmts, tuple(recursion.outputs))


def _params(recursion: Recursion) -> list[Var]:
    return [recursion.depth, *recursion.inputs]


def _defined(recursion: Recursion) -> set[Var]:
    found = set(_params(recursion))
    for stmt in all_statements(_block(recursion)):
        found.update(stmt.targets)
        found.update(bound_inside(stmt))
    return found


def _sizes(recursion: Recursion) -> dict[str, int]:
    """Named sizes in the func, with their lower bounds."""
    found: dict[str, int] = {}

    def note(thing: Any) -> None:
        for dim in dims_in(thing):
            found.update((name, s.low) for name, s in symbols_of(dim).items())

    for value in (*_params(recursion), *recursion.outputs):
        note(value.type)
    for stmt in all_statements(_block(recursion)):
        for value in (*stmt.targets, *operands(stmt), *bound_inside(stmt), *(
                r for b in blocks(stmt) for r in b.results)):
            note(value.type)
        for param in getattr(stmt, "params", {}).values():
            note(param)
    return found


def _free(sizes: dict[str, int], recursion: Recursion, outer: set[Var]) -> dict[str, int]:
    """Sizes that neither the shape of a param nor an int of that name gives."""
    given = {str(d) for v in (*_params(recursion), *outer) for d in v.type.shape}
    given |= {v.name for v in (*_defined(recursion), *outer) if v.type == I64}
    return {name: low for name, low in sizes.items() if name not in given}


class _Lifter(Copier):
    """Copies a body; calls inside the group pass on what the callee reads of the surroundings."""

    def __init__(self, group: dict[str, Recursion], values: dict[Var, Value]) -> None:
        super().__init__(values)
        self.group = group

    def statement(self, stmt: Stmt) -> None:
        if not isinstance(stmt, Call) or stmt.func not in self.group:
            super().statement(stmt)
            return
        lifted = self.group[stmt.func].lifted
        assert lifted is not None
        args = (*map(self.value, stmt.args), *lifted.given(self))
        current().stmts.append(Call(self.bind_all(stmt.targets), stmt.func, args, stmt.loc))


def _named_anew(old: Sequence[Var], names: Names, copier: Copier) -> list[Var]:
    """Params that are called after the user's variables, without the numbers that made them unlike others outside."""
    made = {v: names.fresh(NUMBERED.sub("", v.name)) for v in old}
    for var, name in made.items():
        if var.type == I64:
            copier.sizes[var.name] = symbol(name, 0)
    copier.values.update((var, Var(name, copier.type(var.type))) for var, name in made.items())
    return [v for v in map(copier.value, made) if isinstance(v, Var)]


def _func(recursion: Recursion, group: dict[str, Recursion]) -> Func:
    lifted = recursion.lifted
    assert lifted is not None
    old = [*_params(recursion), *lifted.outer]
    extra = [Var(s.name, I64) for s in lifted.sizes]
    sizes = {s for v in old for d in v.type.shape for s in symbols_of(d)}
    names = Names(sorted({v.name for v in extra} | sizes - {v.name for v in old if v.type == I64}))
    with building(names, share=False) as body, keeping_nothing():
        copier = _Lifter(group, {})
        params = _named_anew(old, names, copier)
        for stmt in recursion.stmts:
            copier.statement(stmt)
        results = tuple(map(copier.value, recursion.outputs))
    return Func(recursion.func_name, (*params, *extra), Block(tuple(body.stmts), results))
