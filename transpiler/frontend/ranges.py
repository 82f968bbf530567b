"""What is known about ints in loops: an index is in the range that its loop counts, so `x[i - 1]` needs no check.

Dimensions may be made of loop indices; `surely_nonnegative` puts the worst index in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dims
from ..ir.dims import DimExpr, Symbol, symbols_of

if TYPE_CHECKING:
    from .interpreter import Interpreter


def surely_nonnegative(it: Interpreter, dim: Any) -> bool:
    """Whether dim >= 0 in every trip of the loops around, for all sizes."""
    if isinstance(dim, int):
        return dim >= 0
    parts = _without_extreme(dim)
    if parts is not None:
        needed, either = parts
        return (any if needed else all)(surely_nonnegative(it, part) for part in either)
    for name in reversed(it.ranges):
        if name not in symbols_of(dim):
            continue
        sign = _sign(dim, name, it)
        if sign is None:
            continue
        worst = it.ranges[name][0 if sign > 0 else 1]
        if worst is None:
            return False
        dim = dims.substitute(dim, {name: worst})
        if isinstance(dim, int):
            return dim >= 0
    if all(is_size(it, name) or is_natural(it, name) for name in symbols_of(dim)):
        low, _ = dims.bounds(dim)
        if low is not None and low >= 0:
            return True
    return _holds_in_this_call(it, dim)


def _holds_in_this_call(it: Interpreter, dim: Any) -> bool:
    """dim >= 0 taken for granted, and guarded, where it is made of sizes and int arguments that make it so now."""
    known = it.assumptions
    if not known.decidable(dim):
        return False
    example = known.example(dim)
    return example is not None and example >= 0 and known._assume(dim, "<", False) is False


def _without_extreme(dim: DimExpr) -> tuple[bool, tuple[Any, Any]] | None:
    """`x - max(a, b)` is not negative if both x - a and x - b are not; `x + max(a, b)` if one of x + a and x + b is.

    Whether one is enough, and the two; None where there is no maximum or minimum to take apart.
    """
    for monomial, coefficient in dim.terms:
        if len(monomial) != 1 or isinstance(monomial[0], Symbol) or monomial[0].kind not in ("max", "min"):
            continue
        rest = dim - dims.DimExpr(((monomial, coefficient),))
        one, other = (rest + coefficient * arg for arg in monomial[0].args)
        return (monomial[0].kind == "max") is (coefficient > 0), (one, other)
    return None


def is_size(it: Interpreter, name: str) -> bool:
    """Whether this names the length of an axis, which is not negative (an int argument may be)."""
    return name in it.assumptions.sizes and name not in it.assumptions.fixed


def is_natural(it: Interpreter, name: str) -> bool:
    """Whether this names a loop index that counts from 0 or more."""
    if name not in it.ranges:
        return False
    low = it.ranges[name][0]
    return low is not None and symbols_of(low).keys().isdisjoint({name}) and surely_nonnegative(it, low)


def _sign(dim: DimExpr, name: str, it: Interpreter) -> int | None:
    """1 where dim grows with the named index, -1 where it falls, None where that is not so simple."""
    signs = set()
    for monomial, coefficient in dim.terms:
        mine = [atom for atom in monomial if isinstance(atom, Symbol) and atom.name == name]
        others = [atom for atom in monomial if atom not in mine]
        if any(name in symbols_of(arg) for atom in others if not isinstance(atom, Symbol) for arg in atom.args):
            return None
        if not mine:
            continue
        if len(mine) > 1 or not all(isinstance(o, Symbol) and is_size(it, o.name) for o in others):
            return None
        signs.add(1 if coefficient > 0 else -1)
    return signs.pop() if len(signs) == 1 else None
