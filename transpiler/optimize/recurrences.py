"""Loops of which each trip waits for the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.dependence import position_of
from ..ir.dims import substitute, symbol, symbols_of
from ..ir.ints import LOWEST, Ints
from ..ir.nodes import For, Let, Var
from .dependence import step_of


def recurs(loop: For, versions: Mapping[Var, int], ints: Ints) -> bool:
    """Whether each trip reads an element that the one before has written, or added to.  versions: which array each
    variable is a version of."""
    def places(*kinds: str) -> set[tuple[int, tuple[Any, ...]]]:
        return {(versions[s.args[0]], tuple(map(ints.dim, position_of(s))))  # type: ignore[index]
                for s in loop.body.stmts if isinstance(s, Let) and s.op.access in kinds and s.args[0] in versions}

    def seen_later(place: Any) -> Any:
        return substitute(place, {loop.index.name: symbol(loop.index.name, LOWEST) - step_of(loop)})

    written = {(root, tuple(map(seen_later, place))) for root, place in places("store", "add_at")
               if any(loop.index.name in symbols_of(p) for p in place)}
    return not written.isdisjoint(places("load"))
