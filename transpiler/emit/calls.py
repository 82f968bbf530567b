"""Arguments and results of functions of the module, written so that each function is compiled for one signature.

Numba specialises a function on literals and on the memory order of arrays; of a recursive function that has two
versions, one of which calls the other, it loads damaged machine code from its cache.  So ints and bools are written
with their dtypes, and arrays that may have another order, or may be read-only, are copied.
"""

from __future__ import annotations

import ast

from ..ir.nodes import Const, Let, Value, Var
from . import templates as t
from .access import Role
from .expressions import Expressions
from .plan import Plan


def argument(expressions: Expressions, plan: Plan, value: Value, is_entry: bool, is_copied: bool = False) -> ast.expr:
    """What a call passes for the value.  is_entry: the function's own parameters come from outside of the module.
    is_copied: the callee writes to it, and it is needed as it is."""
    tree = expressions.value(value)
    value = plan.value(value)
    if value.type.shape:
        if is_copied or (is_entry and isinstance(value, Var) and plan.root(value) in plan.func.params):
            return t.call(ast.Attribute(_contiguous(tree) if value.type.rank > 1 else tree, "copy", ast.Load()))
        return _contiguous(tree) if _may_be_in_other_order(plan, value) else tree
    if isinstance(value, Const) and value.type.kind in "biu":
        return t.call(t.attribute("np", "bool_" if value.type.kind == "b" else value.type.dtype),
                      ast.Constant(value.value))
    return tree


def result(plan: Plan, value: Value, tree: ast.expr) -> ast.expr:
    """What a function that others of the module call returns for the value; `tree` is its expression."""
    return _contiguous(tree) if value.type.shape and _may_be_in_other_order(plan, plan.value(value)) else tree


def _may_be_in_other_order(plan: Plan, value: Value) -> bool:
    made = plan.definition.get(value) if isinstance(value, Var) else None
    if not isinstance(made, Let):
        return False
    return plan.roles[made] in (Role.VIEW, Role.SLICE) or (plan.roles[made] is Role.RETURNS and value.type.rank > 1)


def _contiguous(tree: ast.expr) -> ast.expr:
    return t.call(t.attribute("np", "ascontiguousarray"), tree)
