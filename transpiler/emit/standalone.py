"""Text that imports nothing of ours: each kernel's call as NumPy or `math` has it.

Slower than the kernels, and for a few (`erfinv`, `digamma`, ...) there is nothing to call: those are errors.
"""

from __future__ import annotations

import ast
from typing import Any

from ..ops.base import RuleError
from .access import BUILTINS
from .raising import filled_exception, is_filled
from .templates import parse_template

_ONE = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin",
        "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil", "rint", "trunc",
        "fix", "sign", "absolute", "signbit", "isnan", "isinf", "isfinite")
_TWO = ("arctan2", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin", "copysign", "nextafter",
        "heaviside", "floor_divide", "remainder", "fmod", "left_shift", "right_shift", "power")

TEMPLATES: dict[str, str] = {
    **{name: f"np.{name}({{0}})" for name in _ONE},
    **{name: f"np.{name}({{0}}, {{1}})" for name in _TWO},
    "accumulate": "{0} + {1}",
    "complex_divide": "np.divide({0}, {1})",
    "int_power": "{0} ** {1}",
    "expit": "1.0 / (1.0 + np.exp(-{0}))",
    "erf": "math.erf({0})",
    "erfc": "math.erfc({0})",
    "gammaln": "math.lgamma({0})",
    "gemm": "np.dot({0}, {1}, {2})",
    "gemv": "np.dot({0}, {1}, {2})",
    "dot": "np.dot({0}, {1})",
    "nrm2": "np.linalg.norm({0})",
    "permuted": "np.transpose({0}, {1})",
    "reshaped": "np.ascontiguousarray({0}).reshape({1})",
    "solve": "np.linalg.solve({0}, {1})",
    "inv": "np.linalg.inv({0})",
    "cholesky": "np.linalg.cholesky({0})",
    "det": "np.linalg.det({0})",
    "fits_in_memory": "{0} <= 2**40",
}


def without_kernels(tree: ast.expr) -> ast.expr:
    """The template with kernels replaced.  RuleError: one of them has no equivalent."""

    def visit(node: Any) -> Any:
        if isinstance(node, list):
            return [visit(item) for item in node]
        if not isinstance(node, ast.AST):
            return node
        new = type(node)(**{field: visit(getattr(node, field, None)) for field in node._fields})
        if isinstance(new, ast.Call) and isinstance(new.func, ast.Name) and new.func.id not in BUILTINS:
            kernel, args = new.func.id, new.args
            form = parse_template(TEMPLATES[kernel]) if kernel in TEMPLATES else None
            if form is None or len(form.counts) != len(args):
                raise RuleError(f"{kernel} has no equivalent that Numba compiles",
                                help="leave out --standalone; the module then imports gradsmith.kernels")
            return form.fill(lambda place: args[int(place)], lambda name: name)
        return new

    return visit(tree)  # type: ignore[no-any-return]


# Kernels that NumPy has nothing for, but that Numba compiles as they are: the text of gradsmith.kernels.sharing.
FUNCTIONS: dict[str, str] = {
    "apart": '''\
@njit(cache=True, nogil=True)
def apart(a, b):
    """Whether all of one array lies before all of the other in memory."""
    if a.size == 0 or b.size == 0:
        return True
    first_a = last_a = np.int64(a.ctypes.data)
    for k in range(a.ndim):
        reach = (a.shape[k] - 1) * a.strides[k]
        first_a += min(reach, 0)
        last_a += max(reach, 0)
    first_b = last_b = np.int64(b.ctypes.data)
    for k in range(b.ndim):
        reach = (b.shape[k] - 1) * b.strides[k]
        first_b += min(reach, 0)
        last_b += max(reach, 0)
    return last_a + a.itemsize <= first_b or last_b + b.itemsize <= first_a''',
    "distinct": '''\
@njit(cache=True, nogil=True)
def distinct(a):
    """Whether no two elements of an array are one in memory, as they are in a broadcast array: each stride is longer
    than all that the shorter ones reach."""
    for k in range(a.ndim):
        reach = a.itemsize
        for j in range(a.ndim):
            if abs(a.strides[j]) < abs(a.strides[k]) or (abs(a.strides[j]) == abs(a.strides[k]) and j < k):
                reach += (a.shape[j] - 1) * abs(a.strides[j])
        if a.shape[k] > 1 and abs(a.strides[k]) < reach:
            return False
    return True''',
}


def helper(name: str) -> str | None:
    """The text of a class or function that the module needs to have itself; None where NumPy has it."""
    return filled_exception(name) if is_filled(name) else FUNCTIONS.get(name)
