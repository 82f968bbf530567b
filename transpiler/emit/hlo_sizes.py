"""Sizes, all of which StableHLO needs as numbers: put in where they are named, asked for where they are not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import RuleError
from ..ir.build import Names, building
from ..ir.dims import symbols_of
from ..ir.nodes import Block, Func, Var
from ..ir.types import I64
from ..ir.walk import Copier


def specialise(func: Func, sizes: Mapping[str, int]) -> Func:
    """The func with the named sizes replaced by numbers, in every type and parameter.

    ValueError: a name that is no size of the func.  Sizes that are not given stay.
    """
    known = {s for p in func.params for d in p.type.shape for s in symbols_of(d)}
    known |= {p.name for p in func.params if p.type == I64}
    unknown = sorted(set(sizes) - known)
    if unknown:
        raise ValueError(f"{func.name} has no size named {', '.join(unknown)}; its sizes are "
                         f"{', '.join(sorted(known)) or 'all numbers'}")
    if not sizes:
        return func
    with building(Names()) as b:
        copier = Copier(sizes=dict(sizes))
        params = copier.bind_all(func.params)
        effects = tuple(params[func.params.index(p)] for p in func.effects)
        for stmt in func.body.stmts:
            copier.statement(stmt)
        results = tuple(copier.value(r) for r in func.results)
    return replace(func, params=params, body=Block(tuple(b.stmts), results), effects=effects)


def require_sizes(var: Var, params: Sequence[Var]) -> None:
    """RuleError where a size in the type of `var` is not a number: says which argument gives it, or that only the
    running function knows."""
    require_numbers(var.type.shape, f"{var.name}: {var.type}", params)


def require_numbers(dims: Sequence[Any], where: str, params: Sequence[Var]) -> None:
    for dim in dims:
        if isinstance(dim, int):
            continue
        shown = f"StableHLO needs every size as a number, and {dim} in {where} is not one"
        names = list(symbols_of(dim))
        owners = {p.name: p.name for p in params if p.type == I64}
        owners |= {s: p.name for p in params for d in p.type.shape for s in symbols_of(d)}
        if all(n in owners for n in names):
            of = " and ".join(dict.fromkeys(f"`{owners[n]}`" for n in names))
            raise RuleError(shown, code="E207", kind=NotImplementedError, help=(
                f"say what {', '.join(names)} of the argument {of} is: "
                f"specialise(func, {{{', '.join(f'{n!r}: ...' for n in names)}}})"))
        rest = ", ".join(f"`{n}`" for n in names if n not in owners)
        raise RuleError(f"{shown}: {rest} is known only while the function runs, as the number of trips of a `while` "
                        "loop is, whose steps a derivative saves, or a part of an array that changes its size",
                        code="E207", kind=NotImplementedError, help=(
                            "give the loop a bound that is known before: `for k in range(100):` with "
                            "`if not condition: break` in it, or stablehlo(..., max_trips=100); use whole arrays, and "
                            "`np.where` for the part"))
