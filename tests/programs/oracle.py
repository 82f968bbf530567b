"""What Python says of a program: its value, and its derivative along a tangent by a complex step.

The value is the program run by CPython and NumPy, as it is.  For the derivative its text is changed so that it runs
on complex numbers with the meaning it has on real ones: comparisons, `max`, `sort` and the like look at real parts
and are noted down.  `f(x + 1e-20j * t).imag / 1e-20` is then the derivative to the last digit, without differences.
Two runs with the same notes took the same way through the program.
"""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

STEP = 1e-20
BY_REAL_PART = {"max", "min", "argmax", "argmin", "sort", "argsort", "clip"}     # also as methods of arrays


@dataclass(frozen=True)
class Slopes:
    """values, tangents: one for each result.  decisions: what comparisons gave, in order.  margin: how far the closest
    of them was from giving something else; 0.0 at a tie of values that move apart."""

    values: list[Any]
    tangents: list[Any]
    decisions: tuple[bytes, ...]
    margin: float


class Oracle:
    """A program's `f`, as text and as CPython's function."""

    def __init__(self, source: str, name: str) -> None:
        self.source, self.name = source, name
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        scope: dict[str, Any] = {}
        exec(compile(source, name, "exec"), scope)
        self.function: FunctionType = scope["f"]
        self._changed = compile(ast.fix_missing_locations(_Complex().visit(ast.parse(source))), name, "exec")

    def close(self) -> None:
        linecache.cache.pop(self.name, None)

    def value(self, args: Sequence[Any]) -> tuple[list[Any] | None, Exception | None]:
        """The results, or what the program raises."""
        try:
            with np.errstate(all="ignore"):
                return flat(self.function(*copy.deepcopy(args))), None
        except Exception as problem:
            return None, problem

    def rounded_otherwise(self, args: Sequence[Any]) -> list[Any] | None:
        """The results where the arguments, and what NumPy's functions give, differ in their last bit; None where that
        raises."""
        scope: dict[str, Any] = {}
        try:
            with np.errstate(all="ignore"):
                exec(compile(self.source, self.name, "exec"), scope)
                scope["np"] = _NudgedNumPy()
                return flat(scope["f"](*[nudged(a) for a in copy.deepcopy(args)]))
        except Exception:       # whatever the program raises: it decides by its last bits
            return None

    def along(self, args: Sequence[Any], tangents: Sequence[Any]) -> Slopes:
        notes = _Notes()
        scope = {"np": _ComplexNumPy(notes), "abs": notes.absolute, "max": notes.builtin(max), "min": notes.builtin(min),
                 "_compare": notes.compare, "_method": notes.method, "float": lambda x: x}
        with np.errstate(all="ignore"):
            exec(self._changed, scope)
            scope["np"] = _ComplexNumPy(notes)
            found = flat(scope["f"](*[moved(a, t) for a, t in zip(args, tangents, strict=True)]))
        return Slopes([np.real(r) for r in found], [np.imag(r) / STEP for r in found], tuple(notes.taken), notes.margin)


def moved(arg: Any, tangent: Any) -> Any:
    """The argument with a small imaginary part; a copy."""
    return copy.deepcopy(arg) if tangent is None else arg + STEP * 1j * tangent


def flat(results: Any) -> list[Any]:
    if isinstance(results, (tuple, list)):
        return [leaf for entry in results for leaf in flat(entry)]
    if isinstance(results, dict):
        return [leaf for entry in results.values() for leaf in flat(entry)]
    return [results]


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": lambda a, b: a < b, "LtE": lambda a, b: a <= b, "Gt": lambda a, b: a > b, "GtE": lambda a, b: a >= b,
    "Eq": lambda a, b: a == b, "NotEq": lambda a, b: a != b}


class _Complex(ast.NodeTransformer):
    """`a < b` becomes `_compare("Lt", a, b)`, `a.sort()` becomes `_method("sort", a)`; imports of NumPy go."""

    def visit_Import(self, node: ast.Import) -> Any:
        return ast.Pass()

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if not all(type(op).__name__ in OPERATORS for op in node.ops):
            return node
        links: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            links.append(ast.Call(ast.Name("_compare", ast.Load()), [ast.Constant(type(op).__name__), left, right], []))
            left = right
        return links[0] if len(links) == 1 else ast.BoolOp(ast.And(), links)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in BY_REAL_PART and not (
                isinstance(called.value, ast.Name) and called.value.id == "np"):
            node.args = [ast.Constant(called.attr), called.value, *node.args]
            node.func = ast.Name("_method", ast.Load())
        return node


class _Notes:
    """How comparisons came out, and how closely."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.margin = np.inf

    def compare(self, name: str, a: Any, b: Any) -> Any:
        if not (np.iscomplexobj(a) or np.iscomplexobj(b)):
            return OPERATORS[name](a, b)
        self.apart(np.asarray(a - b))
        result = OPERATORS[name](np.real(a), np.real(b))
        self.taken.append(np.asarray(result).tobytes())
        return result

    def apart(self, difference: np.ndarray[Any, Any]) -> None:
        """A tie is harmless between values that stay equal."""
        if difference.size:
            near = np.where(difference == 0.0, np.inf, np.abs(np.real(difference)))
            self.margin = min(self.margin, float(np.min(near)))

    def absolute(self, x: Any) -> Any:
        return np.where(self.compare("Lt", x, 0.0), -x, x)[()] if np.iscomplexobj(x) else builtins.abs(x)

    def builtin(self, choose: Callable[..., Any]) -> Callable[..., Any]:
        sign = "Gt" if choose is max else "Lt"

        def chosen(*args: Any, **kwargs: Any) -> Any:
            items = list(args[0]) if len(args) == 1 else list(args)
            if kwargs or not any(map(np.iscomplexobj, items)):
                return choose(*args, **kwargs)
            best = items[0]
            for item in items[1:]:
                best = item if self.compare(sign, item, best) else best
            return best

        return chosen

    def method(self, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, np.ndarray) or not np.iscomplexobj(x):
            return getattr(x, name)(*args, **kwargs)
        if name == "sort":
            x[...] = self.sort(x, *args, **kwargs)
            return None
        return getattr(self, name)(x, *args, **kwargs)

    def order(self, x: Any, axis: int) -> Any:
        found = np.argsort(np.real(x), axis=axis, kind="stable")
        self.apart(np.diff(np.take_along_axis(x, found, axis), axis=axis))
        self.taken.append(found.tobytes())
        return found

    def sort(self, x: Any, axis: int = -1) -> Any:
        return np.take_along_axis(x, self.order(x, axis), axis)

    def argsort(self, x: Any, axis: int = -1) -> Any:
        return self.order(x, axis)

    def max(self, x: Any, axis: int | None = None) -> Any:
        return self._extreme(x, axis, -1)

    def min(self, x: Any, axis: int | None = None) -> Any:
        return self._extreme(x, axis, 0)

    def argmax(self, x: Any, axis: int | None = None) -> Any:
        self._extreme(x, axis, -1)
        return np.argmax(np.real(x), axis=axis)

    def argmin(self, x: Any, axis: int | None = None) -> Any:
        self._extreme(x, axis, 0)
        return np.argmin(np.real(x), axis=axis)

    def _extreme(self, x: Any, axis: int | None, place: int) -> Any:
        if axis is None:
            x, axis = np.ravel(x), 0
        return np.take(self.sort(x, axis), place, axis=axis)

    def maximum(self, a: Any, b: Any) -> Any:
        return np.where(self.compare("GtE", a, b), a, b)[()]

    def minimum(self, a: Any, b: Any) -> Any:
        return np.where(self.compare("LtE", a, b), a, b)[()]

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.minimum(self.maximum(x, low), high)


class _NudgedNumPy:
    """NumPy, whose functions give floats that differ in the last bit."""

    def __getattr__(self, name: str) -> Any:
        original = getattr(np, name)
        if isinstance(original, type) or not callable(original):
            return original
        return lambda *args, **kwargs: nudged(original(*args, **kwargs))


def nudged(x: Any) -> Any:
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        x *= 1.0 + np.finfo(float).eps          # in place: it may be a view
        return x
    return x * (1.0 + np.finfo(float).eps) if isinstance(x, (float, np.floating)) else x


class _ComplexNumPy:
    """NumPy, where new arrays of floats are complex."""

    def __init__(self, notes: _Notes) -> None:
        self._notes = notes
        self.abs = self.absolute = notes.absolute
        self.float64 = lambda x: x
        self.hypot = lambda a, b: np.sqrt(a * a + b * b)
        self.vdot = np.dot

    def __getattr__(self, name: str) -> Any:
        original = getattr(np, name)
        if name in ("maximum", "minimum", *BY_REAL_PART):
            mine = getattr(self._notes, name)
            return lambda x, *args, **kwargs: (mine if np.iscomplexobj(x) or any(map(np.iscomplexobj, args))
                                               else original)(x, *args, **kwargs)
        if isinstance(original, (np.ufunc, type)) or not callable(original):
            return original

        def complex_result(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            # Programs make arrays of numbers from ints with `full(...) * 1.0`.
            if isinstance(result, np.ndarray) and (result.dtype.kind == "f" or name == "full"):
                return result.astype(complex)
            return result

        return complex_result
