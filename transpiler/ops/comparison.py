"""Comparisons, logic, bits and the choice between two values.

Comparisons and logic give bool.  `logical_*` take bool; the spellings convert with `!= 0` before.  Complex numbers are
only compared for equality, though NumPy orders them by their parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Const, Value, Var
from ..ir.types import Type
from .base import Folding, Into, RuleError, Sample, Search, definition, is_steady, lift, marks_of, sample
from .families import Elementwise, broadcast_shapes, broadcast_to, elementwise, register
from .samples import between, complex_plane, corner, integers, truths

INF, NAN = float("inf"), float("nan")


def _to_bool(*dtypes: str) -> str:
    return "bool"


def _comparison(name: str, function: Any, sign: str, direction: str, kinds: str = "biuf") -> Elementwise:
    samples = [*between(-2, 2, arity=2), *integers(-3, 3, arity=2, dtypes=("int64", "int8")), truths(2),
               *integers(0, 3, arity=2, dtypes=("uint8",)),
               corner([1, 2, NAN, 1, INF, 0.0], [1, 1, NAN, NAN, INF, -0.0])]
    op = elementwise(name, function, partials=None, scalar=f"{{0}} {sign} {{1}}", result_dtype=_to_bool, kinds=kinds,
                     stablehlo=lambda h, x, y: h.compare(direction, x, y),
                     samples=[*samples, complex_plane(2)] if "c" in kinds else samples, doc=f"x {sign} y, as bool.")
    op.relates = sign
    return op


equal = _comparison("equal", np.equal, "==", "EQ", "biufc")
not_equal = _comparison("not_equal", np.not_equal, "!=", "NE", "biufc")
less = _comparison("less", np.less, "<", "LT")
less_equal = _comparison("less_equal", np.less_equal, "<=", "LE")
greater = _comparison("greater", np.greater, ">", "GT")
greater_equal = _comparison("greater_equal", np.greater_equal, ">=", "GE")
LEAST, GREATEST = Search("argmin", "cummin"), Search("argmax", "cummax")
less.prefers = less_equal.prefers = (LEAST, GREATEST)
greater.prefers = greater_equal.prefers = (GREATEST, LEAST)


# ---------------------------------------------------------------------------------------------------------------
# logic and bits


def _with_neutral(neutral: bool, absorbing: bool | None) -> Any:
    """Simplifies an operation on truth values with a constant operand."""
    def simplify(x: Value, y: Value) -> Value | None:
        for operand, other in ((x, y), (y, x)):
            if isinstance(operand, Const) and x.dtype == "bool":
                if operand.value == neutral:
                    return other
                if operand.value == absorbing:
                    return operand
        return x if x is y and absorbing is not None else None
    return simplify


def _twice(name: str) -> Any:
    """Simplifies an operation that undoes itself."""
    def simplify(x: Value) -> Value | None:
        let = definition(x)
        return let.args[0] if let is not None and let.op.name == name else None
    return simplify


def _logical(name: str, function: Any, sign: str, op: str, simplify: Any, arity: int = 2) -> Elementwise:
    scalar = f"{{0}} {sign} {{1}}" if arity == 2 else f"{sign} {{0}}"
    return elementwise(name, function, partials=None, scalar=scalar, stablehlo=op, kinds="b", samples=[truths(arity)],
                       simplify=simplify,
                       doc=f"`{scalar.format('x', 'y')}` of truth values.")


logical_and = _logical("logical_and", np.logical_and, "and", "and", _with_neutral(True, False))
logical_or = _logical("logical_or", np.logical_or, "or", "or", _with_neutral(False, True))
logical_xor = _logical("logical_xor", np.logical_xor, "!=", "xor", _with_neutral(False, None))
logical_not = _logical("logical_not", np.logical_not, "not", "not", _twice("logical_not"), arity=1)
logical_and.folding = Folding("all", "cummin", "logical_and", "b", of_nothing=True)
logical_or.folding = Folding("any", "cummax", "logical_or", "b", of_nothing=True)
logical_and.connects, logical_or.connects, logical_not.connects = "and", "or", "not"

WHOLE = ("int64", "int8")


def _bits(name: str, function: Any, sign: str, op: str, simplify: Any) -> Elementwise:
    return elementwise(name, function, partials=None, scalar=f"{{0}} {sign} {{1}}", stablehlo=op, kinds="biu",
                       simplify=simplify,
                       samples=[*integers(-9, 9, arity=2, dtypes=WHOLE), truths(2),
                                *integers(0, 200, arity=2, dtypes=("uint8",))],
                       doc=f"x {sign} y, bit by bit.")


bitwise_and = _bits("bitwise_and", np.bitwise_and, "&", "and", _with_neutral(True, False))
bitwise_or = _bits("bitwise_or", np.bitwise_or, "|", "or", _with_neutral(False, True))
bitwise_xor = _bits("bitwise_xor", np.bitwise_xor, "^", "xor", _with_neutral(False, None))

fits_in_memory = elementwise(
    "fits_in_memory", lambda size: np.less_equal(size, 2**40), partials=None, scalar="fits_in_memory({0})",
    result_dtype=_to_bool, kinds="i", stablehlo=lambda h, x: h.compare("LE", x, h.constant(2**40, x.type)),
    samples=[sample(np.int64(n)) for n in (-1, 0, 1000, 2**62)],
    doc="Whether there is memory for that many bytes (int64); the reference takes 1 TiB for all there is.")
invert = elementwise(
    "invert", np.invert, partials=None, scalar=lambda x: "not {0}" if x.kind == "b" else "~{0}", stablehlo="not",
    kinds="biu", simplify=_twice("invert"),
    samples=[*integers(-9, 9, dtypes=WHOLE), *integers(0, 200, dtypes=("uint8",)), truths()],
    doc="Every bit turned; `not` of truth values.")


def _shift_samples() -> list[Sample]:
    x, count = np.array([5, -7, 100, 3, -1, 1]), np.array([0, 1, 3, 70, 64, 63])
    return [sample(x, count), sample(x.astype("int8"), count.astype("int8")),
            sample(abs(x).astype("uint8"), count.astype("uint8"))]


left_shift = elementwise(
    "left_shift", np.left_shift, partials=None, scalar="left_shift({0}, {1})", stablehlo="shift_left", kinds="iu",
    samples=_shift_samples(), doc="x * 2**y; 0 where y is negative or not below the width.")

right_shift = elementwise(
    "right_shift", np.right_shift, partials=None, scalar="right_shift({0}, {1})", kinds="iu",
    stablehlo=lambda h, x, y: h.op("shift_right_arithmetic" if x.type.kind == "i" else "shift_right_logical", x, y),
    samples=_shift_samples(), doc="x // 2**y; the sign alone is left where y is negative or not below the width.")


# ---------------------------------------------------------------------------------------------------------------
# tests of floating-point numbers


def _float_test(name: str, function: Any, stablehlo: Any, kinds: str = "fc", source: Any = None) -> Elementwise:
    return elementwise(name, function, partials=None, scalar=source or f"np.{name}({{0}})", stablehlo=stablehlo,
                       result_dtype=_to_bool, kinds=kinds,
                       samples=[*between(-2, 2), corner([NAN, INF, -INF, 0.0, -0.0, -1.0]),
                                corner([NAN, INF, -INF, 0.0], dtype="float32"),
                                *([complex_plane()] if "c" in kinds else [])],
                       doc=f"np.{name}, as bool.")


def _magnitude(h: Any, x: Any) -> Any:
    """|x|; for complex x the greater of the parts' sizes, NaN only where no part is infinite."""
    if x.type.kind != "c":
        return h.op("abs", x)
    return h.op("abs", x, type=x.type.with_dtype("float32" if x.type.dtype == "complex64" else "float64"))


def _isinf_hlo(h: Any, x: Any) -> Any:
    size = _magnitude(h, x)
    return h.compare("EQ", size, h.constant(INF, size.type))


def _isfinite_hlo(h: Any, x: Any) -> Any:
    size = _magnitude(h, x)
    return h.op("is_finite", size, type=size.type.with_dtype("bool"))


def _signbit_hlo(h: Any, x: Any) -> Any:
    whole = x.type.with_dtype("int32" if x.type.dtype == "float32" else "int64")
    return h.compare("LT", h.op("bitcast_convert", x, type=whole), h.constant(0, whole))


isnan = _float_test("isnan", np.isnan, lambda h, x: h.compare("NE", x, x))
isinf = _float_test("isinf", np.isinf, _isinf_hlo)
isfinite = _float_test("isfinite", np.isfinite, _isfinite_hlo)
signbit = _float_test("signbit", np.signbit, _signbit_hlo, "f", "signbit({0})")


# ---------------------------------------------------------------------------------------------------------------
# choice


def _same_number(a: Const, b: Const) -> bool:
    """Equal in every bit that matters; NaN is not."""
    return a.type.kind != "c" and a.value == b.value and bool(np.signbit(a.value)) == bool(np.signbit(b.value))


@register
class Select(Elementwise):
    """a where cond, else b: three-argument `np.where` of one dtype.

    Only the value taken matters: compiled code does not compute the other where it can avoid it, and derivatives
    of the branch not taken are exactly 0 whatever its partials are.
    """

    name = "select"
    masks, chooses = True, True
    linear_in = ((1, 2),)
    scalar = "{1} if {0} else {2}"

    def prepare(self, *args: Any) -> tuple[Value, ...]:
        cond, a, b = args
        like = next((v.type.scalar for v in (a, b) if isinstance(v, (Var, Const))), None)
        values = [v if isinstance(v, (Var, Const)) else lift(v, like) for v in (a, b)]
        cond = cond if isinstance(cond, (Var, Const)) else lift(bool(cond), None)
        shape = broadcast_shapes(cond.shape, *(v.shape for v in values))
        return tuple(broadcast_to(v, shape) for v in (cond, *values))

    def infer(self, cond: Type, a: Type, b: Type, **params: Any) -> Type:  # type: ignore[override]
        super().infer(cond, a, b)
        if cond.dtype != "bool" or a.dtype != b.dtype:
            raise RuleError(f"select got {cond}, {a} and {b}", kind=TypeError, code="E309")
        return a

    def reference(self, cond: Any, a: Any, b: Any, **params: Any) -> Any:
        return np.where(cond, a, b)[()]

    def simplify(self, args: Sequence[Value], **params: Any) -> Value | None:
        cond, a, b = args
        if isinstance(cond, Const):
            return a if cond.value else b
        if a is b or (isinstance(a, Const) and isinstance(b, Const) and _same_number(a, b)):
            return a
        let = definition(cond)
        return ops.select(let.args[0], b, a) if let is not None and let.op.name == "logical_not" else None

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        _, t_a, t_b = tangents
        if not result.type.is_inexact or (t_a is None and t_b is None):
            return None
        zero = const(0, result.type)
        return ops.select(args[0], zero if t_a is None else t_a, zero if t_b is None else t_b)

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        """The marks of what is chosen, where that follows from ints; else those of both."""
        if not is_steady(args[0]):
            return super().mark(marks, args, result)
        _, a, b = marks_of(marks, args)
        return ops.select(args[0], a, b)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        if not result.type.is_inexact:
            return [None, None, None]
        zero = const(0, ct.type)
        return [None, ops.select(args[0], ct, zero) if wanted[1] else None,
                ops.select(args[0], zero, ct) if wanted[2] else None]

    def stablehlo(self, h: Any, cond: Any, a: Any, b: Any, **params: Any) -> Any:
        return h.select(cond, a, b)

    def samples(self) -> list[Sample]:
        cond = np.array([True, False, True, True, False, False, True])
        found = [sample(cond, *s.args) for s in (*between(-2, 2, arity=2)[:2], *integers(-9, 9, arity=2))]
        return [*found, sample(np.bool_(True), np.float64(1.5), np.float64(-2.0)),
                sample(cond[:6], *complex_plane(2).args), sample(cond, cond, ~cond),
                sample(cond[:3], np.array([1.0, NAN, INF]), np.array([NAN, 2.0, 3.0]), corner=True)]


