"""What the reverse sweep needs of values that are gone: which are computed again and which are saved.

A value of a loop's body (or of an arm of a branch) is gone when the reverse sweep reads it.  It is computed again
where that takes nothing but values that are there: constants, values of the func's own block, indices of the loops
around, and other saved or recomputed values.  The rest is saved: of a loop, on a tape with a slot for each
iteration; of an arm, as one more result of the branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..ir.nodes import Const, Func, Let, Value, Var
from ..ir.walk import sizes_used
from ..ops.base import Lowering
from .scopes import Scope, Scopes

DEAR = 24        # total cost of an expression above which it is saved rather than computed again


@dataclass
class Residuals:
    """saved, recomputed: for each scope, in the order of definition."""

    saved: dict[Scope, list[Var]] = field(default_factory=dict)
    recomputed: dict[Scope, list[Let]] = field(default_factory=dict)


def choose_residuals(func: Func, scopes: Scopes, needed: Iterable[Var]) -> Residuals:
    """`needed`: variables of nested scopes that the reverse sweep reads."""
    return _Choice(scopes).run(set(needed))


class _Choice:
    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.names = scopes.by_name()
        self.saved: set[Var] = set()
        self.again: set[Var] = set()

    def run(self, needed: set[Var]) -> Residuals:
        order = [v for v in self.scopes.of if v in needed]      # definitions in program order
        for var in order:
            if not self._is_there(var) and not self._recompute(var):
                self.saved.add(var)
        # A value saved late may spare recomputation, never the other way round: one pass is enough to be right.
        result = Residuals()
        for var, scope in self.scopes.of.items():
            if var in self.saved:
                result.saved.setdefault(scope, []).append(var)
            elif var in self.again:
                let = scope.defined[var]
                assert isinstance(let, Let)
                if let not in result.recomputed.setdefault(scope, []):
                    result.recomputed[scope].append(let)
        return result

    def _is_there(self, value: Value) -> bool:
        if isinstance(value, Const) or value in self.saved or value in self.again:
            return True
        scope = self.scopes.of.get(value)
        if scope is None or scope is self.scopes.root:
            return True
        return scope.is_loop and value is scope.owner.index  # type: ignore[union-attr]

    def _recompute(self, var: Var) -> bool:
        """Mark var, and what it takes, as recomputed, if that can be done."""
        found: list[Var] = []
        cost = self._cost(var, found)
        if cost is None or cost > DEAR:
            return False
        self.again.update(found)
        return True

    def _cost(self, value: Value, found: list[Var]) -> int | None:
        if self._is_there(value) or value in found:
            return 0
        assert isinstance(value, Var)
        let = self.scopes.of[value].defined[value]
        if not isinstance(let, Let) or not let.op.is_pure or let.op.lowering in (Lowering.KERNEL, Lowering.EXPAND,
                                                                                Lowering.SCATTER):
            return None
        total = let.op.cost
        for operand in (*let.args, *(self.names[s] for s in sorted(sizes_used(let)) if s in self.names)):
            if operand is value:
                continue
            cost = self._cost(operand, found)
            if cost is None:
                return None
            total += cost
        found.extend(let.targets)
        return total
