"""Text that imports nothing of ours: each kernel's call as NumPy or `math` has it."""

from __future__ import annotations

import ast
from typing import Any

from ..ops.base import RuleError
from .templates import parse_template

_UFUNCS = """exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh
arcsinh arccosh arctanh hypot logaddexp logaddexp2 maximum minimum fmax fmin floor ceil rint trunc fix copysign nextafter
heaviside sign absolute signbit floor_divide remainder fmod left_shift right_shift power""".split()

TEMPLATES: dict[str, str] = {
    **{name: f"np.{name}" + "({0})" for name in _UFUNCS},
    **{name: f"np.{name}" + "({0}, {1})" for name in (
        "arctan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin copysign nextafter heaviside floor_divide "
        "remainder fmod left_shift right_shift power").split()},
    "accumulate": "{0} + {1}",
    "int_power": "{0} ** {1}",
    "expit": "1.0 / (1.0 + np.exp(-{0}))",
    "logistic": "1.0 / (1.0 + np.exp(-{0}))",
    "erf": "math.erf({0})",
    "erfc": "math.erfc({0})",
    "gammaln": "math.lgamma({0})",
    "gemm": "np.dot({0}, {1}, {2})",
    "gemv": "np.dot({0}, {1}, {2})",
    "dot": "np.dot({0}, {1})",
    "nrm2": "np.linalg.norm({0})",
}


def without_kernels(tree: ast.expr) -> ast.expr:
    """The template with kernels replaced.  RuleError: one of them has no equivalent."""

    def visit(node: Any) -> Any:
        if isinstance(node, list):
            return [visit(item) for item in node]
        if not isinstance(node, ast.AST):
            return node
        new = type(node)(**{field: visit(getattr(node, field, None)) for field in node._fields})
        if isinstance(new, ast.Call) and isinstance(new.func, ast.Name) and new.func.id not in _KNOWN:
            kernel, args = new.func.id, new.args
            if kernel not in TEMPLATES:
                raise RuleError(f"{kernel} has no equivalent in NumPy that a standalone module could call",
                                help="leave out --standalone; the module then imports gradsmith.kernels")
            return parse_template(TEMPLATES[kernel]).fill(lambda place: args[int(place)], lambda name: name)
        return new

    return visit(tree)  # type: ignore[no-any-return]


_KNOWN = frozenset(("abs", "max", "min", "int", "float", "bool", "complex", "round", "len", "pow", "divmod"))
