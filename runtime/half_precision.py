"""Arguments in half precision, for XLA: they are read as float32, in which all is computed.

Where all float arguments come in one half precision, results leave in it; what is written to an argument has its
precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from .transpiler.frontend.values import Leaf
from .transpiler.ir.nodes import Func, Var


def half_of_all(leaves: Sequence[Leaf]) -> str | None:
    """The half precision that all float arguments come in; None where they differ, or there are none."""
    found = {leaf.stored for leaf in leaves if leaf.type.is_inexact and not leaf.weak}
    return found.pop() if len(found) == 1 else None


def stored_params(func: Func, leaves: Sequence[Leaf]) -> dict[Var, str]:
    """The params that come in half precision, and in which."""
    return {p: leaf.stored for p, leaf in zip(func.params, leaves) if leaf.stored is not None}


def rounded_results(func: Func, half: str | None, leaves: Sequence[Leaf]) -> dict[int, str]:
    """What float32 results are rounded to, by number: `half`; of what is written to a param, the param's precision."""
    found = {k: half for k, r in enumerate(func.returned) if half is not None and r.type.dtype == "float32"}
    stored = stored_params(func, leaves)
    count = len(func.returned)
    return found | {count + k: stored[p] for k, p in enumerate(func.effects) if p in stored}
