"""Which of two ints is the less, as it is known while transpiling: else as it turns out."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..ir.build import Builder, current
from ..ir.ints import Ints
from ..ir.nodes import Let, Value


class Ends:
    """Ends of loops, also of such as were emitted here."""

    def __init__(self, ints: Ints) -> None:
        self.ints = ints

    def dim(self, value: Value) -> Any:
        """The int64 scalar as a dimension."""
        around: Builder | None = current()
        while around is not None and value not in self.ints.definition:
            self.ints.definition.update(
                (s.target, s) for s in around.stmts if isinstance(s, Let) and len(s.targets) == 1)
            around = around.outer
        return self.ints.resolved(self.ints.dim(value))

    def least(self, a: Value, b: Value) -> Value:
        return a if self.is_at_most(a, b) else b if self.is_at_most(b, a) else ops.minimum(a, b)

    def most(self, a: Value, b: Value) -> Value:
        return b if self.is_at_most(a, b) else a if self.is_at_most(b, a) else ops.maximum(a, b)

    def is_at_most(self, a: Value, b: Value) -> bool:
        """Whether a <= b for sure."""
        return self.ints.is_negative(self.dim(a) - self.dim(b) - 1)

    def apart(self, a: Value, b: Value) -> Any:
        """b - a as a dimension."""
        return self.dim(b) - self.dim(a)
