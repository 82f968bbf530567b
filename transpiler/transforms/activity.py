"""Which variables carry derivatives: those that depend on the wanted params (varied) and reach a result (useful)."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.nodes import Func, Var
from ..ir.walk import blocks, operands, reads


def active_variables(func: Func, wrt: Sequence[bool]) -> set[Var]:
    """Real or complex variables of the func's own block that are both varied and useful.

    A statement with blocks counts as reading all that its blocks read.
    """
    varied = {p for p, wanted in zip(func.params, wrt, strict=True) if wanted}
    for stmt in func.body.stmts:
        read = set(operands(stmt)).union(*(reads(x) for x in blocks(stmt)))
        if not varied.isdisjoint(read):
            varied.update(t for t in stmt.targets if t.type.is_inexact)
    useful = {r for r in func.results if isinstance(r, Var) and r.type.is_inexact}
    for stmt in reversed(func.body.stmts):
        if any(t in useful for t in stmt.targets):
            read = set(operands(stmt)).union(*(reads(x) for x in blocks(stmt)))
            useful.update(v for v in read if isinstance(v, Var) and v.type.is_inexact)
    return varied & useful
