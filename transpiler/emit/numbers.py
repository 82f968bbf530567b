"""Python's own numbers in text that also runs without Numba.

Python's float division raises where NumPy's gives inf or NaN, and its powers leave the reals.  A parameter or a
constant may be a Python float when the text runs as plain Python, so where nothing but such numbers meet in `/` or
`**` one of them is made NumPy's: parameters at the function's entry, others on the spot.  Compiled, it costs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ..ir.nodes import Call, Const, For, If, Let, Value, Var, While
from .access import Role
from .plan import Plan
from .templates import DEFAULT_DTYPES

_DIFFERENT = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


class PythonNumbers:
    """params: those to convert at the entry.  operations: Lets whose first operand is to be converted."""

    def __init__(self, plan: Plan, numpy_params: Collection[str] = ()) -> None:
        self.plan = plan
        self._known: dict[Var, frozenset[Var] | None] = {}
        self._numpy = {param for param in plan.func.params if param.name in numpy_params}
        self._origin = self._origins()
        self.params: list[Var] = []
        self.operations: set[Let] = set()
        risky = [s for s in plan.statements() if isinstance(s, Let) and self._is_different(s)]
        if not risky:
            return
        wanted: set[Var] = set()
        for let in risky:
            origins = [self._sources(arg) for arg in let.args]
            if all(o is not None for o in origins):
                wanted.update(param for o in origins if o is not None for param in o)
        self.params = [param for param in plan.func.params if param in wanted and param.type.is_inexact]
        self._numpy.update(self.params)
        self._known.clear()
        self.operations = {let for let in risky if all(self._sources(arg) is not None for arg in let.args)}

    def _is_different(self, let: Let) -> bool:
        if self.plan.roles[let] is not Role.SCALAR or not any(a.type.is_inexact for a in let.args):
            return False
        return any(isinstance(node, ast.BinOp) and isinstance(node.op, _DIFFERENT)
                   for node in ast.walk(self.plan.template(let).tree))

    def _origins(self) -> dict[Var, tuple[Value, ...]]:
        """What a variable that a loop or branch defines may hold."""
        found: dict[Var, tuple[Value, ...]] = {}
        for stmt in self.plan.statements():
            match stmt:
                case If():
                    found.update(zip(stmt.targets, zip(stmt.then.results, stmt.orelse.results)))
                case For() | While():
                    for k, carry in enumerate(stmt.carries):
                        found[carry] = (stmt.inits[k], stmt.body.results[k])
                        found[stmt.targets[k]] = (stmt.inits[k], stmt.body.results[k])
                case _:
                    pass
        return found

    def _sources(self, value: Value) -> frozenset[Var] | None:
        """The parameters through which the value may be a Python number; None if it is NumPy's for certain."""
        value = self.plan.value(value)
        if isinstance(value, Const):
            return frozenset() if value.type.dtype in DEFAULT_DTYPES else None
        if value.type.shape or value.type.dtype not in DEFAULT_DTYPES or value in self._numpy:
            return None
        if value not in self._known:
            self._known[value] = None           # a value made only from itself is none
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, var: Var) -> frozenset[Var] | None:
        if var in self._origin:
            possible = [self._sources(v) for v in self._origin[var]]
            some = [p for p in possible if p is not None]
            return frozenset().union(*some) if some else None
        stmt = self.plan.definition.get(var)
        if stmt is None:
            return frozenset([var]) if var in self.plan.func.params else frozenset()
        if isinstance(stmt, Call) or not isinstance(stmt, Let):
            return frozenset()
        if self.plan.roles[stmt] is not Role.SCALAR:
            return frozenset() if not stmt.args else None
        tree = self.plan.template(stmt).tree
        if isinstance(tree, ast.Call) and not (isinstance(tree.func, ast.Name) and tree.func.id in ("abs", "complex")):
            return None
        operands = [self._sources(arg) for arg in stmt.args]
        known = [o for o in operands if o is not None]
        if isinstance(tree, ast.IfExp):
            return frozenset().union(*known) if known else None
        return frozenset().union(*known) if len(known) == len(operands) else None
