"""Source templates of operations, parsed once, and the Python expressions of constants and dimensions.

A template is Python source with `{0}`, `{1}`, ... for the operands, `{out}` (or `{out0}`, `{out1}`) for results that
are allocated before, and `{name}` for the operation's parameters.  It becomes a tree, and operands are put in as
trees, so that parentheses stand where they are needed and nowhere else.

Trees are printed by `ast.unparse`, not astor: astor wraps a long expression in the middle, where the comment that
names the user's line belongs at its end, and brackets more than is needed (`(a * b) + c`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..ir.dims import DimExpr
from ..ir.types import Type

_PLACE = re.compile(r"\{(\w+)\}")
_MARK = "_place_"

# Numba computes in these with the wider int64, and NumPy does not.
NARROW_INTS = frozenset({"int8", "int16", "int32", "uint8", "uint16", "uint32"})
# A literal beside one of these would widen it.
LITERAL_WIDENS = frozenset({"float16", "float32", "complex64", "uint64"})
_DTYPES = NARROW_INTS | LITERAL_WIDENS | {"bool_", "int64", "float64", "complex128"}
DEFAULT_DTYPES = frozenset({"bool", "int64", "float64", "complex128"})


@dataclass(frozen=True, eq=False)
class Template:
    """`counts`: how often each place occurs."""

    tree: ast.expr
    counts: Mapping[str, int]
    text: str

    def fill(self, put: Callable[[str], ast.expr], name: Callable[[ast.Name], ast.expr]) -> ast.expr:
        """The tree with places replaced by `put(place)` and all other names by `name(node)`."""

        def visit(node: ast.Name) -> ast.expr:
            return put(node.id[len(_MARK):]) if node.id.startswith(_MARK) else name(node)

        return map_names(self.tree, visit)


@lru_cache(maxsize=4096)
def parse_template(text: str) -> Template:
    counts: dict[str, int] = {}
    for place in _PLACE.findall(text):
        counts[place] = counts.get(place, 0) + 1
    tree = ast.parse(_PLACE.sub(lambda match: _MARK + match[1], text), mode="eval").body
    return Template(tree, counts, text)


def map_names(node: Any, visit: Callable[[ast.Name], ast.expr]) -> Any:
    """A copy of a tree with every Name replaced by `visit(name)`."""
    if isinstance(node, ast.Name):
        return visit(node)
    if isinstance(node, ast.AST):
        return type(node)(**{field: map_names(getattr(node, field, None), visit) for field in node._fields})
    if isinstance(node, list):
        return [map_names(item, visit) for item in node]
    return node


def with_text_parameters(text: str, params: Mapping[str, Any]) -> str:
    """The template with string parameters (dtypes, flags) written out: `np.{dtype}` becomes `np.float32`."""

    def written(match: re.Match[str]) -> str:
        value = params.get(match[1])
        if not isinstance(value, str):
            return match[0]
        return "bool_" if value == "bool" else value

    return _PLACE.sub(written, text)


# --- expressions -------------------------------------------------------------------------------------------------


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def number(value: int | float | bool) -> ast.expr:
    """A Python literal; negative ones are a unary minus, so that `(-1.0) ** x` keeps its parentheses."""
    if isinstance(value, bool):
        return ast.Constant(value)
    if isinstance(value, float):
        if value != value:
            return attribute("np", "nan")
        negative = bool(np.signbit(value))
        size = attribute("np", "inf") if value in (np.inf, -np.inf) else ast.Constant(abs(value))
    else:
        if value == np.iinfo(np.int64).min:
            return ast.parse("np.iinfo(np.int64).min", mode="eval").body
        negative, size = value < 0, ast.Constant(abs(value))
    return ast.UnaryOp(ast.USub(), size) if negative else size


def attribute(owner: str, field: str) -> ast.expr:
    return ast.Attribute(name(owner), field, ast.Load())


def dtype_name(dtype: str) -> ast.expr:
    """`np.float32`; `np.bool_`, which all versions of NumPy and Numba know."""
    return attribute("np", "bool_" if dtype == "bool" else dtype)


def call(function: ast.expr | str, *args: ast.expr) -> ast.expr:
    return ast.Call(name(function) if isinstance(function, str) else function, list(args), [])


def constant(value: Any, dtype: str) -> ast.expr:
    """A scalar constant that has the dtype in NumPy and in Numba alike."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        literal = call("complex", *(_float(part, dtype) for part in (value.real, value.imag)))
    else:
        literal = _float(value, dtype) if kind == "f" else number(value)
    return literal if dtype in DEFAULT_DTYPES else call(dtype_name(dtype), literal)


def _float(value: float, dtype: str) -> ast.expr:
    """The shortest literal that rounds to the value in that precision: 0.1, not 0.10000000149011612."""
    if dtype in ("float32", "complex64", "float16") and np.isfinite(value):
        part = {"complex64": np.float32}.get(dtype) or np.dtype(dtype).type
        value = float(np.format_float_scientific(part(value), unique=True))
    return number(float(value))


@lru_cache(maxsize=4096)
def _dimension(dim: DimExpr) -> ast.expr:
    return ast.parse(str(dim), mode="eval").body


def dimension(dim: Any, name: Callable[[ast.Name], ast.expr]) -> ast.expr:
    """A dimension, its sizes named by `name`."""
    return number(dim) if isinstance(dim, int) else map_names(_dimension(dim), name)


def allocation(function: str, shape: list[ast.expr], dtype: str, *fill: ast.expr) -> ast.expr:
    """`np.empty(n)`, `np.zeros((n, m), np.float32)`, `np.full(n, 2.0)`."""
    size = shape[0] if len(shape) == 1 else ast.Tuple(shape, ast.Load())
    return call(attribute("np", function), size, *fill, *([] if dtype == "float64" else [dtype_name(dtype)]))


def filled_array(value: Any, type: Type, shape: list[ast.expr]) -> ast.expr:
    """A new array of equal elements."""
    if value == 0 and not (type.kind == "f" and np.signbit(value)) and not (
            type.kind == "c" and (np.signbit(value.real) or np.signbit(value.imag))):
        return allocation("zeros", shape, type.dtype)
    if value == 1:
        return allocation("ones", shape, type.dtype)
    return allocation("full", shape, type.dtype, constant(value, type.dtype) if type.kind == "c" else (
        _float(value, type.dtype) if type.kind == "f" else number(value)))


def plain_allocation(tree: ast.expr) -> ast.expr:
    """`np.empty((n,), dtype=np.float64)` as it is usually written: `np.empty(n)`."""
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and len(tree.args) == 1 and
            tree.func.attr in ("empty", "zeros", "ones") and isinstance(tree.args[0], ast.Tuple)):
        return tree
    shape = tree.args[0].elts
    if len(shape) == 0:
        return tree
    dtypes = [keyword.value for keyword in tree.keywords]
    args: list[ast.expr] = [shape[0] if len(shape) == 1 else tree.args[0]]
    args += [d for d in dtypes if ast.unparse(d) != "np.float64"]
    return ast.Call(tree.func, args, [])


# --- tidying and typing ------------------------------------------------------------------------------------------


def tidy(node: ast.expr) -> ast.expr:
    """`a + -b` is `a - b` and `-a + b` is `b - a`, to the last bit."""
    if not isinstance(node, ast.BinOp):
        return node
    right = node.right
    if isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
        return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), right.operand)
    left = node.left
    if isinstance(node.op, ast.Add) and isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub) and not (
            isinstance(left.operand, ast.Constant)):
        return ast.BinOp(right, ast.Sub(), left.operand)
    return node


def _is_literal(node: Any) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def typed_literals(node: Any, dtype: str, inside_call: bool = False) -> Any:
    """Number literals of a template in the dtype of its operands, where a bare literal would widen the result.

    Left alone: what is compared, integer exponents and integer arguments of calls.
    """
    if _is_literal(node):
        literal = ast.literal_eval(node)
        if inside_call and isinstance(literal, int):
            return node
        part = "float32" if dtype == "complex64" else dtype
        if isinstance(literal, float) and np.dtype(dtype).kind in "iu":
            return node
        return constant(float(literal) if np.dtype(part).kind == "f" else literal, part)
    match node:
        case ast.BinOp():
            exponent = isinstance(node.op, ast.Pow) and _is_literal(node.right) and isinstance(
                ast.literal_eval(node.right), int)
            right = node.right if exponent else typed_literals(node.right, dtype)
            return ast.BinOp(typed_literals(node.left, dtype), node.op, right)
        case ast.UnaryOp() if not isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, typed_literals(node.operand, dtype))
        case ast.IfExp():
            return ast.IfExp(node.test, typed_literals(node.body, dtype), typed_literals(node.orelse, dtype))
        case ast.Call() if not (isinstance(node.func, ast.Attribute) and node.func.attr in _DTYPES):
            return ast.Call(node.func, [typed_literals(a, dtype, True) for a in node.args], node.keywords)
    return node


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)


def typed_result(node: ast.expr, dtype: str) -> ast.expr:
    """The computed expression brought back to the dtype where Numba would have widened it."""
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, typed_result(node.body, dtype), typed_result(node.orelse, dtype))
    computed = isinstance(node, ast.BinOp) or (isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not))
    if not computed:
        return node
    if dtype in NARROW_INTS or (dtype == "uint64" and isinstance(node, ast.UnaryOp)):
        return call(dtype_name(dtype), node)
    if dtype == "bool":
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return ast.UnaryOp(ast.Not(), node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            return call("bool", node)
    return node
