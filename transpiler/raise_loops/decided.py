"""Comparisons of ints that are decided by how great and how small what loops carry can get.

    for i in 0 .. 9 carry (k = 0):          k is 0 or one of the i, so `k < 9` holds, and `k < 0` does not
      ...
      yield i if b else k
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..ir.bounds import Bounds
from ..ir.build import const
from ..ir.dims import symbols_of
from ..ir.nodes import Block, For, Func, If, Let, Value, Var
from ..ir.types import BOOL, I64
from ..ir.walk import all_statements, replacement, substituted


def with_decided(func: Func, *, indices: bool = False) -> Func:
    """The func with what such comparisons surely give in their places.  indices: also those of what loops count."""
    loops = [s for s in all_statements(func.body) if isinstance(s, For)]
    carried = {c.name for s in loops for c in s.carries if c.type == I64}
    carried |= {s.index.name for s in loops} if indices else set()
    if not carried:
        return func
    carried |= {t.name for s in all_statements(func.body) if isinstance(s, If) for t in s.targets if t.type == I64}
    bounds = Bounds(func)
    known: dict[Var, Value] = {}
    for stmt in all_statements(func.body):
        if isinstance(stmt, Let) and stmt.op.relates is not None and stmt.args[0].type == I64 == stmt.args[1].type:
            apart: Any = bounds.ints.dim(stmt.args[0]) - bounds.ints.dim(stmt.args[1])
            if not isinstance(apart, int) and symbols_of(apart).keys() & carried:
                answer = _answer(stmt.op.relates, bounds.of(apart, most=False), bounds.of(apart, most=True))
                if answer is not None:
                    known[stmt.target] = const(answer, BOOL)
    if not known:
        return func
    body = Block(tuple(substituted(s, known) for s in func.body.stmts),
                 tuple(replacement(r, known) for r in func.body.results))
    return replace(func, body=body)


def _answer(relation: str, low: int | None, high: int | None) -> bool | None:
    """Whether `a relation b`, from the least and the most that a - b is."""
    above, below = low is not None and low > 0, high is not None and high < 0
    not_below, not_above = low is not None and low >= 0, high is not None and high <= 0
    yes, no = {"<": (below, not_below), "<=": (not_above, above), ">": (above, not_above), ">=": (not_below, below),
               "==": (False, above or below), "!=": (above or below, False)}[relation]
    return True if yes else False if no else None
