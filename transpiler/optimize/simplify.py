"""Replace statements by simpler values, exactly.

    before                  after
    a = multiply(x, 1.0)    c = negative(y)
    b = negative(a)         return x, c
    ...

Each operation's own `simplify` says what it equals; operations on constants alone are computed.
"""

from __future__ import annotations

import math

import numpy as np

from ..ir.build import const, is_plain
from ..ir.nodes import Const, Func, Let, Value, Var
from ..ir.walk import definitions, renamed, rewrite
from ..ops.base import Lowering, known_definitions


def simplify(func: Func) -> Func:
    known: dict[Var, Let] = {t: s for t, s in definitions(func.body).items() if isinstance(s, Let)}
    names: dict[Var, str] = {}

    def change(let: Let) -> Let | Value:
        if len(let.targets) != 1 or not let.op.is_pure:
            known.update((target, let) for target in let.targets)
            return let
        folded = fold_constants(let)
        if folded is None:
            folded = let.op.simplify(let.args, **let.params)
        if folded is None:
            known[let.target] = let
            return let
        if folded.type != let.target.type:
            raise AssertionError(f"simplify of {let.op.name} turned {let.target.type} into {folded.type}")
        # A value without a name of its own takes that of the one that it replaces.
        if isinstance(folded, Var) and is_plain(folded.name) and not is_plain(let.target.name):
            names.setdefault(folded, names.get(let.target, let.target.name))
        return folded

    with known_definitions(known):
        simpler = rewrite(func, change)
    for param in func.params:
        names.pop(param, None)
    return renamed(simpler, names) if names else simpler


def fold_constants(let: Let) -> Const | None:
    """The result of an elementwise operation on constants, when it is finite."""
    if let.op.lowering is not Lowering.ELEMENTWISE or not let.args or not all(isinstance(a, Const) for a in let.args):
        return None
    with np.errstate(all="ignore"):
        value = let.op.reference(*(a.type.numpy.type(a.value) for a in let.args), **let.params)  # type: ignore[union-attr]
    value = np.asarray(value, let.target.dtype).item()
    if isinstance(value, (float, complex)) and not math.isfinite(abs(value)):
        return None
    return const(value, let.target.type)
