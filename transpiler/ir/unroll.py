"""Loops of known trips, written out.

    for i in 0 .. 2 carry (c = a): b = add(c, i); yield b        b = add(a, 0);  b_1 = add(b, 1)
"""

from __future__ import annotations

from .build import int_const
from .nodes import Const, For, Value
from .walk import Copier


def known_indices(loop: For) -> range | None:
    """What the loop's index will be, where that is known."""
    bounds = loop.lo, loop.hi, loop.step
    if not all(isinstance(v, Const) for v in bounds) or not loop.step.value:        # type: ignore[union-attr]
        return None
    return range(*(v.value for v in bounds))                                        # type: ignore[union-attr]


def written_out(loop: For, indices: range) -> list[Value]:
    """Emit the iterations one after the other; what the loop gives.  Sizes that are named after its ints are not
    renamed outside of it."""
    carried: list[Value] = list(loop.inits)
    for index in indices:
        copier = Copier({loop.index: int_const(index), **dict(zip(loop.carries, carried, strict=True))},
                        {loop.index.name: index})
        for stmt in loop.body.stmts:
            copier.statement(stmt)
        carried = [copier.value(r) for r in loop.body.results]
    return carried
