"""Linear inequalities between ints of a func, together with what its loops and sizes say of these ints.

    for i in 0 .. n:                    known: 0 <= i <= n - 1, and 2 <= n
      for j in i + 1 .. max(n, m):      i + 1 <= j <= max(n, m) - 1, and n <= max(n, m), m <= max(n, m)

What is not linear in the ints is an unknown of its own: it may be anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import dims
from .dims import DimCall, DimExpr, Symbol, symbols_of
from .inequalities import Row, combined, may_hold
from .ints import LOWEST, Ints
from .nodes import Const, For

NO_SIDE = ""


def nowhere(_name: str) -> bool:
    return False


class Constraints:
    """differs: whether the int of a name may differ between two *sides*, such as two trips of a loop.  It is then an
    unknown for each; all else is one unknown."""

    def __init__(self, ints: Ints, differs: Callable[[str], bool] = nowhere) -> None:
        self.ints, self.differs = ints, differs
        self._at_least_zero: list[Row] = []
        self._zero: list[Row] = []
        self._low: dict[str, int] = {}                      # of what both sides share
        self._loops: set[tuple[str, str]] = set()           # whose bounds are there: the index's name, and the side
        self._named: dict[str, tuple[Any, str]] = {}        # what the unknowns stand for, and on which side
        self._new: list[str] = []                           # those of which nothing is said yet

    def row(self, dim: Any, side: str = NO_SIDE) -> Row:
        """The dimension as coefficients of unknowns."""
        if not isinstance(dim, DimExpr):
            return {"": int(dim)}
        found: dict[str, int] = {}
        for monomial, coefficient in dim.terms:
            name = self._unknown(monomial, side) if monomial else ""
            found[name] = found.get(name, 0) + coefficient
        return found

    def _unknown(self, monomial: tuple[Any, ...], side: str) -> str:
        name = "*".join(map(str, monomial))
        if any(map(self.differs, symbols_of(DimExpr(((monomial, 1),))))):
            name = f"{side} {name}"
        else:
            side = NO_SIDE
        only = monomial[0] if len(monomial) == 1 else None
        if name not in self._named:
            self._named[name] = (only, side)
            self._new.append(name)
        if isinstance(only, Symbol) and side == NO_SIDE:
            self._low[name] = min(only.low, self._low.get(name, only.low))
        return name

    def at_least_zero(self, row: Row) -> None:
        self._at_least_zero.append(row)

    def zero(self, row: Row) -> None:
        self._zero.append(row)

    def not_above(self, low: Row, high: Row) -> None:
        self.at_least_zero(combined(high, 1, low, -1))

    def equal(self, a: Row, b: Row) -> None:
        self.zero(combined(a, 1, b, -1))

    def in_range(self, loop: For, side: str = NO_SIDE) -> None:
        """The loop's index is one that it counts."""
        name = loop.index.name
        if not self.differs(name):
            side = NO_SIDE
        if (name, side) in self._loops or not isinstance(loop.step, Const) or not loop.step.value:
            return
        self._loops.add((name, side))
        step = int(loop.step.value)
        first, last = self.ints.dim(loop.lo), self.ints.dim(loop.hi)
        low, high = (first, last - 1) if step > 0 else (last + 1, first)
        index = self.row(dims.symbol(name, LOWEST), side)
        self.not_above(self.row(low, side), index)
        self.not_above(index, self.row(high, side))
        if abs(step) != 1:
            self.equal(index, combined(self.row(first, side), 1, {f"{side} trip of {name}": 1}, step))

    def may_hold(self) -> bool:
        """Whether all may hold at once."""
        while self._new:
            self._explain(*self._named[self._new.pop()])
        lows = [{name: 1, "": -low} for name, low in self._low.items() if low >= 0]
        return may_hold([*self._at_least_zero, *lows], self._zero)

    def _explain(self, atom: Any, side: str) -> None:
        """Say what is known of an unknown wherever it stands."""
        if isinstance(atom, Symbol):
            loop = self.ints.loop.get(atom.name)
            if loop is not None:
                self.in_range(loop, side)
        elif isinstance(atom, DimCall) and atom.kind in ("max", "min"):
            whole = self.row(DimExpr((((atom,), 1),)), side)
            for arg in atom.args:
                part = self.row(arg, side)
                self.not_above(*((part, whole) if atom.kind == "max" else (whole, part)))
