"""Terms of a sum that have a cotangent in common are added up first, then multiplied with it once.

    before                                            after
    a = scale(d, c)                                   p = add(c, w)
    b = scale(d, w)                                   s = scale(d, p)
    s = add(a, b)

A variable that a statement uses in several places gets a term from each.  `scale` compares its cotangent with 0, so
that it is worth more than the product that it saves.  What is left of the sum does not depend on cotangents, and less
of it on the trip.  Products of partial derivatives are made only with numbers that are surely finite where the
function's arguments are: `scale` keeps infinite ones from zeros.  Sums change their order.

After the preaccumulation of statements in A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008,
section 10.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import ops
from ..ir.build import Names, building, const, located
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, Func, Let, Stmt, Value, Var
from ..ir.types import F64
from ..ir.walk import all_statements, blocks, operands, used_names, with_blocks, with_body, with_contents
from ..ops.base import Product

DEAR = 3            # a `scale` is a comparison, a product and a choice


@dataclass(frozen=True)
class Term:
    """sign * number * (the product of `factors`).  guarded: with 0 where the number is 0."""

    number: Value
    factors: tuple[Value, ...] = ()
    sign: int = 1
    guarded: bool = False


def add_partials_first(func: Func) -> Func:
    if not any(isinstance(s, Let) and s.op.multiplies is Product.ZEROS_WIN for s in all_statements(func.body)):
        return func
    with building(Names(used_names(func))):
        return with_body(func, _Factoring(func).block(func.body))


class _Factoring:
    def __init__(self, func: Func) -> None:
        self.params = set(func.params)
        self.definition = Ints(func.body).definition
        self.seen: Counter[Value] = Counter(func.results)
        for stmt in all_statements(func.body):
            self.seen.update(operands(stmt))
            self.seen.update(r for b in blocks(stmt) for r in b.results)

    def block(self, block: Block) -> Block:
        inside = {t: s for s in block.stmts if isinstance(s, Let) for t in s.targets}
        dropped: set[Let] = set()
        changed: dict[Let, tuple[Let, ...]] = {}
        for stmt in reversed(block.stmts):
            if isinstance(stmt, Let) and stmt not in dropped:
                used: list[Let] = []
                terms = self._terms(stmt.targets[0], inside, used, root=True)
                if terms is not None and (better := self._better(terms, used, stmt)) is not None:
                    dropped.update(used)
                    changed[stmt] = better
        if not changed and not any(blocks(s) for s in block.stmts):
            return block
        stmts: list[Stmt] = []
        for stmt in block.stmts:
            if isinstance(stmt, Let) and stmt in changed:
                stmts += changed[stmt]
            elif not isinstance(stmt, Let) or stmt not in dropped:
                stmts.append(with_blocks(stmt, [self.block(b) for b in blocks(stmt)]))
        return with_contents(block, stmts)

    def _terms(self, value: Value, inside: dict[Var, Let], used: list[Let], root: bool = False) -> list[Term] | None:
        """The value as a sum of products with cotangents; None where it is not, as far as it is computed here and used
        for nothing else.  used: what computes it."""
        let = inside.get(value) if isinstance(value, Var) and (root or self.seen[value] == 1) else None
        if let is None or value.type != F64:
            return None
        mark = len(used)
        used.append(let)
        if let.op.multiplies is not None:
            found = self._product(let, inside, used)
        elif (signs := _signs(let)) is not None:
            parts = [self._terms(arg, inside, used) for arg in let.args]
            found = None if all(p is None for p in parts) else [
                replace(term, sign=term.sign * sign) for part, arg, sign in zip(parts, let.args, signs)
                for term in ([Term(arg)] if part is None else part)]
        else:
            found = None
        if found is None:
            del used[mark:]
        return found

    def _product(self, let: Let, inside: dict[Var, Let], used: list[Let]) -> list[Term] | None:
        guarded = let.op.multiplies is Product.ZEROS_WIN
        number, factor = let.args
        sides = [(number, factor)] if guarded else [(number, factor), (factor, number)]
        for inner, other in sides:
            mark = len(used)
            found = self._terms(inner, inside, used) if self._is_tame(other) else None
            if found is not None:
                return [replace(t, factors=(*t.factors, other), guarded=t.guarded or guarded) for t in found]
            del used[mark:]
        return [Term(number, (factor,), 1, True)] if guarded else None

    def _is_tame(self, value: Value, depth: int = 4) -> bool:
        """Whether it is surely finite where the function's arguments are, and do not overflow."""
        if isinstance(value, Const) or value in self.params:
            return True
        let = self.definition.get(value)
        if let is None or depth == 0:
            return False
        if let.op.access == "load":
            return let.args[0] in self.params
        return (let.op.multiplies is Product.PLAIN or _signs(let) is not None) and all(
            self._is_tame(arg, depth - 1) for arg in let.args)

    def _better(self, terms: Sequence[Term], used: Sequence[Let], root: Let) -> tuple[Let, ...] | None:
        """The statements for the terms, in groups with a number in common, where that takes less."""
        groups: dict[Value, list[Term]] = {}
        for term in terms:
            groups.setdefault(term.number, []).append(term)
        if sum(t.guarded for t in terms) <= sum(any(t.guarded for t in g) for g in groups.values()):
            return None
        with building() as b, located(root.loc):
            total = None
            for number, group in groups.items():
                negated, part = _group(number, group)
                if total is None:
                    total = ops.negative(part) if negated else part
                else:
                    total = total - part if negated else total + part
        if _cost(b.stmts) >= _cost(used):
            return None
        *before, last = b.stmts
        assert isinstance(last, Let) and last.targets[0] is total
        return (*before, replace(last, targets=root.targets))       # type: ignore[arg-type]


def _group(number: Value, terms: Sequence[Term]) -> tuple[bool, Value]:
    """Whether to subtract it, and the number times the sum of what it is multiplied with."""
    if len(terms) == 1 and not terms[0].factors:
        return terms[0].sign < 0, number
    negated = terms[0].sign < 0 and all(t.sign < 0 for t in terms)
    total = None
    for term in sorted(terms, key=lambda t: t.sign < 0):
        factors = term.factors or (const(1.0, F64),)
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        if total is None:
            total = ops.negative(product) if term.sign < 0 and not negated else product
        else:
            total = total - product if term.sign < 0 and not negated else total + product
    multiply = ops.scale if any(t.guarded for t in terms) else ops.multiply
    return negated, multiply(number, total)


def _signs(let: Let) -> tuple[int, ...] | None:
    """Of a sum, difference or negative: the signs of its arguments."""
    if let.op.linear_in != (tuple(range(len(let.args))),) or getattr(let.op, "partials", None) is None:
        return None
    partials = let.op.partials(*let.args, let.targets[0])
    return tuple(partials) if all(type(p) is int and abs(p) == 1 for p in partials) else None


def _cost(stmts: Sequence[object]) -> int:
    return sum(DEAR if s.op.multiplies is Product.ZEROS_WIN else 1 for s in stmts if isinstance(s, Let))
