"""What custom rules get with `symbolic_zeros=True`: zeros that they can tell, and arguments with a mark whether a
derivative by them may be taken.

    f.defjvp(rule, symbolic_zeros=True)             f.defvjp(fwd, bwd, symbolic_zeros=True)
    def rule(primals, tangents):                    def fwd(x, y):
        ...                                             return f(x.value, y.value), (x.value if y.perturbed else None)
        if type(t_y) is SymbolicZero: ...

What is known while transpiling counts: arguments that come from no argument that is differentiated, by any transform
around, are not perturbed.  Where that is not known, as for what a loop carries, they are.  A cotangent that is zero
comes as an array of zeros, as JAX may give it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..ir.build import Builder, current
from ..ir.nodes import Let, Stmt, Value, Var
from ..ir.types import Type
from ..ir.walk import all_statements, blocks, bound_inside, definitions, operands, reads


class SymbolicZero(NamedTuple):
    """A tangent that is zero, whatever the argument."""

    shape: tuple[Any, ...]
    dtype: Any


class CustomVJPPrimal(NamedTuple):
    """An argument of a forward function.  perturbed: whether a derivative by it may be taken."""

    value: Any
    perturbed: bool


def zero_of(type: Type) -> SymbolicZero:
    """The zero of a type."""
    return SymbolicZero(type.shape, type.numpy)


def may_be_perturbed(values: Sequence[Value], stands: Mapping[Var, Value | None]) -> list[bool]:
    """Whether each value may depend on what is differentiated.  stands: what params stand for that nothing is
    differentiated by; None for a value of the caller's."""
    made: dict[Var, Stmt] = {}
    builder: Builder | None = current()
    while builder is not None:
        made.update((target, stmt) for stmt in builder.stmts for target in stmt.targets)
        builder = builder.outer
    known: dict[Value, bool] = {}

    def moves(value: Value) -> bool:
        if not isinstance(value, Var) or not value.type.is_inexact:
            return False
        if value in stands:
            source = stands[value]
            return source is not None and moves(source)
        if value not in known:
            stmt = made.get(value)
            known[value] = True if stmt is None else any(map(moves, _sources(stmt)))
        return known[value]

    return [moves(value) for value in values]


def _sources(stmt: Stmt) -> list[Value]:
    """What a statement's results may depend on."""
    if isinstance(stmt, Let) and stmt.op.stops_derivatives:
        return []
    found = {v for block in blocks(stmt) for v in reads(block) if isinstance(v, Var)}
    own = {v for block in blocks(stmt) for v in definitions(block)} | set(bound_inside(stmt))
    own.update(v for block in blocks(stmt) for inner in all_statements(block) for v in bound_inside(inner))
    return [*operands(stmt), *(found - own)]
