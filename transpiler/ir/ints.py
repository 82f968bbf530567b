"""What is known of the ints of a func: sums as dimensions, and which of two differ in every trip of the loops around.

    j: i64 in 0 .. i            j - i is at most -1: a[i, k] and a[j, k] are two elements
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dims
from .nodes import Block, Const, For, Let, Value, Var
from .walk import all_statements

DEEPEST = 16        # loops looked through
LOWEST = -2**62     # of an int that nothing is known of


class Ints:
    """definition: the statement of each variable.  loop: the loop of each index."""

    def __init__(self, body: Block, around: Ints | None = None) -> None:
        """around: what is known of the code around the block."""
        self.definition: dict[Var, Let] = {} if around is None else dict(around.definition)
        self.loop: dict[str, For] = {} if around is None else dict(around.loop)
        self._dims: dict[Var, Any] = {}
        self._differ: dict[tuple[Value, Value], bool] = {}
        for stmt in all_statements(body):
            if isinstance(stmt, Let) and len(stmt.targets) == 1:
                self.definition[stmt.target] = stmt
            elif isinstance(stmt, For):
                self.loop[stmt.index.name] = stmt

    def dim(self, value: Value) -> Any:
        """The int64 scalar as a dimension, made of loop indices, sizes and ints that are not known any closer."""
        if isinstance(value, Const):
            return int(value.value)
        if value not in self._dims:
            self._dims[value] = dims.symbol(value.name, LOWEST)      # what a chain that is too long comes to
            self._dims[value] = self._defined(value)
        return self._dims[value]

    def _defined(self, value: Var) -> Any:
        let = self.definition.get(value)
        found = None
        if let is not None and value.type.dtype == "int64" and all(
                a.type.dtype == "int64" and not a.type.shape for a in let.args):
            found = let.op.as_dimension(*map(self.dim, let.args), **let.params)
        return dims.symbol(value.name, LOWEST) if found is None else found

    def resolved(self, dim: Any) -> Any:
        """The dimension with what is known of the ints that sizes in it are named after."""
        named = {v.name: v for v in self.definition if v.type.dtype == "int64" and not v.type.shape}
        return dims.substitute(dim, {name: self.dim(named[name]) for name in dims.symbols_of(dim) if name in named})

    def differ(self, a: Value, b: Value) -> bool:
        """Whether the two are surely unequal wherever both are in scope."""
        if (a, b) not in self._differ:
            apart = self.dim(a) - self.dim(b)
            self._differ[a, b] = self.is_negative(apart) or self.is_negative(-apart)
        return self._differ[a, b]

    def is_negative(self, dim: Any) -> bool:
        """Whether the dimension is below 0 in every trip of the loops whose indices it is made of."""
        most = self.most(dim)
        if most is None or isinstance(most, (int, np.integer)):
            return most is not None and bool(most < 0)
        high = dims.bounds(most)[1]
        return high is not None and high < 0

    def most(self, dim: Any) -> Any | None:
        """What the dimension is at most, without the indices of loops; None where that is not simple.

        Each index, those of inner loops first, gives way to the bound that makes the dimension greatest.
        """
        for _ in range(DEEPEST):
            if isinstance(dim, (int, np.integer)):
                return dim
            name = next((name for name in reversed(self.loop) if name in dims.symbols_of(dim)), None)
            if name is None:
                return dim
            factor = factor_of(dim, name)
            step = self.loop[name].step
            if factor is None or not isinstance(step, Const):
                return None
            loop = self.loop[name]
            up = step.value > 0             # lo, lo + step, ...: below hi; above it where the step is negative
            last = self.dim(loop.hi) + (-1 if up else 1)
            dim = dims.substitute(dim, {name: last if up == (factor > 0) else self.dim(loop.lo)})
        return None


def factor_of(dim: Any, name: str) -> int | None:
    """What a named int is multiplied with in the dimension, None where it stands in a product or the like."""
    rest = dims.substitute(dim, {name: 0})
    change = dims.substitute(dim, {name: 1}) - rest
    if not isinstance(change, int) or dim - rest != change * dims.symbol(name, 0):
        return None
    return change
