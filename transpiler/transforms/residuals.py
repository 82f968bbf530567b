"""What the reverse sweep needs of values that are gone: which are computed again and which are saved.

A value of a loop's body (or of an arm of a branch) is gone when the reverse sweep reads it.  It is computed again
where that takes nothing but values that are there: constants, values of the func's own block, indices of the loops
around, and other saved or recomputed values.  The rest is saved: of a loop, on a tape with a slot for each
iteration; of an arm, as one more result of the branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..ir.dims import bounds, product
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
            if self._is_there(var):
                continue
            made: list[Var] = []
            missing: list[Var] = []
            cost = self._cost(var, made, missing)
            if cost <= DEAR and (not missing or (len(missing) == 1 and _no_larger(missing[0], var))):
                self.saved.update(missing)        # one source of several needed values, or a smaller one
                self.again.update(made)
            else:
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

    def _cost(self, value: Value, made: list[Var], missing: list[Var]) -> int:
        """What computing a value again costs; `made`: all that is computed on the way, `missing`: what would have to
        be saved for it."""
        if self._is_there(value) or value in made or value in missing:
            return 0
        assert isinstance(value, Var)
        let = self.scopes.of[value].defined[value]
        if not isinstance(let, Let) or not let.op.is_pure or let.op.lowering in (
                Lowering.KERNEL, Lowering.EXPAND, Lowering.SCATTER) or self._reads_changing_array(let):
            missing.append(value)
            return 0
        total = let.op.cost
        for operand in (*let.args, *(self.names[s] for s in sorted(sizes_used(let)) if s in self.names)):
            if operand is not value:
                total += self._cost(operand, made, missing)
        made.extend(let.targets)
        return total

    def _reads_changing_array(self, let: Let) -> bool:
        """Whether it reads a part of an array that is not there: the part is saved, not the array."""
        source = let.args[0] if let.args else None
        return (let.op.lowering is Lowering.REINDEX and isinstance(source, Var) and not self._is_there(source)
                and not _no_larger(source, let.target))


def _no_larger(a: Var, b: Var) -> bool:
    """Whether a has at most as many elements as b, as far as the sizes tell."""
    fewer = bounds(product(b.type.shape) - product(a.type.shape))[0]
    return fewer is not None and fewer >= 0
