"""Calls of funcs whose derivative is given, over a batch: a call of the batched func, with the batched rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import ops
from ..ir.build import Names, building, current
from ..ir.dims import symbols_of
from ..ir.library import library
from ..ir.nodes import Block, Call, Func, Rule
from ..ir.types import I64, Type
from ..ir.walk import all_statements, used_names
from .rules import rule_of

if TYPE_CHECKING:
    from .vmap import Batching


def has_rule(call: Call) -> bool:
    """Whether the func has a rule for a whole batch: no residual has a size that the function decides while it runs,
    which differs from lane to lane."""
    rule = rule_of(call.func)
    if rule is None or rule.forward is None:
        return False
    for func in (library().callee(name) for name in (rule.forward, rule.ahead) if name is not None):
        inside = {t.name for s in all_statements(func.body) for t in s.targets if t.type == I64}
        if any(size in inside for r in func.results for d in r.type.shape for size in symbols_of(d)):
            return False
    return True


def call_ruled(batching: Batching, call: Call) -> None:
    """Emit the call for the whole batch; all its results have the batch axis."""
    copier, size, is_told = batching.copier, batching.size, batching.copier.is_told
    args = tuple(map(copier.value, call.args))
    flags = tuple(a in batching.lanes for a in args)
    name = library().derive(("vmap", call.func, flags, size, is_told), f"{library().wanted[call.func]}_vmap",
                            lambda own: _batched(own, call.func, flags, size, is_told))
    types = [Type(copier.type(t.type).dtype, (size, *copier.type(t.type).shape)) for t in call.targets]
    targets = tuple(current().var(type, t.name) for t, type in zip(call.targets, types, strict=True))
    current().stmts.append(Call(targets, name, args, call.loc, call.needed))
    for old, new in zip(call.targets, targets, strict=True):
        batching.stands(old, new)


def _batched(own: str, name: str, flags: tuple[bool, ...], size: Any, is_told: bool) -> Func:
    from .vmap import vmap
    func = library().callee(name)
    rule = func.rule
    assert rule is not None and rule.forward is not None
    results = len(func.results)

    def part(of: str | None, batched: Sequence[bool], spread: int | None = None,
             summed: Sequence[bool] = ()) -> str | None:
        if of is None:
            return None
        key = ("vmap", of, tuple(batched), size, is_told)
        return library().derive(key, f"{library().wanted[of]}_vmap", lambda part_name: _summed(
            vmap(library().callee(of), batched, size, name=part_name, spread=spread, is_told=is_told), summed))

    def saved(of: str) -> list[bool]:
        """Which residuals of a forward func depend on the batch."""
        made = part(of, flags, results)
        assert made is not None
        pairs = zip(library().callee(made).results[results:], library().callee(of).results[results:], strict=True)
        return [new.type.rank > old.type.rank for new, old in pairs]

    cts = [True for r in func.results if r.type.is_inexact]
    wrt = [flags[k] for k in rule.wrt]
    new_rule = Rule(rule.wrt, part(rule.forward, flags, results),
                    part(rule.push, [*saved(rule.ahead or rule.forward), *wrt]),
                    part(rule.pull, [*saved(rule.forward), *cts], summed=[not is_batched for is_batched in wrt]),
                    part(rule.ahead, flags, results), part(rule.code, flags))
    return replace(vmap(func, flags, size, name=own, is_told=is_told), rule=new_rule)


def _summed(func: Func, summed: Sequence[bool]) -> Func:
    """The func with the sums of some results over the batch: cotangents of what is one for all lanes."""
    if not any(summed):
        return func
    with building(Names(used_names(func))) as b:
        results = tuple(ops.sum(r, axes=(0,)) if is_summed else r
                        for r, is_summed in zip(func.results, summed, strict=True))
    return replace(func, body=Block((*func.body.stmts, *b.stmts), results))
