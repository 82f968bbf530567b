"""Arithmetic, comparisons and casts of numbers: types and LLVM instructions as Numba's, with NumPy's error model.

    int and int        int64; uint64 if neither is signed          / gives float64
    float and float    the wider one
    int and float      float64 with int64 and wider ints           other mixtures are left to Numba
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from llvmlite import ir
from numba.core import types

from .values import BOOL, FLOAT, INT, TYPES, NotCovered, Number

BIT = ir.IntType(1)
LLVM: dict[Any, Any] = {
    TYPES.boolean: BIT, TYPES.float32: ir.FloatType(), TYPES.float64: ir.DoubleType(),
    **{getattr(types, f"{sign}int{width}"): ir.IntType(width) for sign in ("", "u") for width in (8, 16, 32, 64)},
}
WORDS = (TYPES.int64, TYPES.uint64)
FLOATS = (TYPES.float32, TYPES.float64)

_FLOAT_CODE = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INT_CODE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor"}
_FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def is_plain(value: Number) -> bool:
    """A bool, an int or a float32 or float64."""
    return value.type in LLVM


def literal(value: bool | int | float) -> Number:
    """As Numba types it in the text: bool, int64 or float64."""
    if isinstance(value, bool):
        return Number(BOOL, BIT(int(value)))
    if isinstance(value, int):
        if not -2**63 <= value < 2**63:
            raise NotCovered("an int of more than 64 bits")
        return Number(INT, LLVM[INT](value), value, value >= 0)
    return Number(FLOAT, LLVM[FLOAT](value))


def unsigned(value: int) -> Number:
    """`np.uint64(value)` of an int that is no int64."""
    return Number(TYPES.uint64, LLVM[TYPES.uint64](value))


def of_index(value: Any) -> Number:
    """A size or a counted index: an int64 that is not negative."""
    return Number(INT, value, natural=True)


def cast(builder: Any, value: Number, to: Any) -> Number:
    """Numba's implicit and explicit casts of bools, ints and floats."""
    kind = value.type
    if kind == to:
        return value
    llvm, target, x = value.llvm, LLVM.get(to), value.llvm
    if target is None or kind not in LLVM:
        raise NotCovered(f"a cast of {kind} to {to}")
    if to == BOOL:
        zero = LLVM[kind](0.0 if kind in FLOATS else 0)
        llvm = builder.fcmp_unordered("!=", x, zero) if kind in FLOATS else builder.icmp_unsigned("!=", x, zero)
    elif to in FLOATS:
        if kind in FLOATS:
            llvm = builder.fpext(x, target) if to == FLOAT else builder.fptrunc(x, target)
        elif value.literal is not None:
            llvm = target(float(value.literal))
        else:
            llvm = builder.sitofp(x, target) if is_signed(kind) else builder.uitofp(x, target)
    elif kind in FLOATS:
        llvm = builder.fptosi(x, target) if is_signed(to) else builder.fptoui(x, target)
    elif value.literal is not None:
        bits = value.literal % (1 << to.bitwidth)
        return Number(to, target(bits - (1 << to.bitwidth) if is_signed(to) and bits >> (to.bitwidth - 1) else bits))
    elif target.width > x.type.width:
        llvm = builder.sext(x, target) if is_signed(kind) else builder.zext(x, target)
    elif target.width < x.type.width:
        llvm = builder.trunc(x, target)
    return Number(to, llvm)


def is_signed(kind: Any) -> bool:
    return isinstance(kind, types.Integer) and bool(getattr(kind, "signed"))  # noqa: B009


def arithmetic(builder: Any, op: ast.operator, left: Number, right: Number) -> Number | None:
    """None where the operation is left to Numba."""
    kinds = {left.type, right.type}
    kind = type(op)
    if kinds == {BOOL} and kind in (ast.BitAnd, ast.BitOr, ast.BitXor):
        return Number(BOOL, getattr(builder, _INT_CODE[kind])(left.llvm, right.llvm))
    common = _common(kinds)
    if common is None:
        return None
    if kind is ast.Div:
        common = common if common in FLOATS else FLOAT
    if common in FLOATS:
        if kind not in _FLOAT_CODE:
            return None
        a, b = cast(builder, left, common), cast(builder, right, common)
        return Number(common, getattr(builder, _FLOAT_CODE[kind])(a.llvm, b.llvm))
    a, b = cast(builder, left, common), cast(builder, right, common)
    natural = left.natural and right.natural and common == INT and kind in (ast.Add, ast.Mult, ast.FloorDiv)
    if left.literal is not None and right.literal is not None and kind in _FOLDED:
        return literal(_FOLDED[kind](left.literal, right.literal))
    if kind in _INT_CODE:
        return Number(common, getattr(builder, _INT_CODE[kind])(a.llvm, b.llvm), natural=natural)
    if kind in (ast.FloorDiv, ast.Mod) and common == INT and right.literal is not None and right.literal > 0:
        return _divided(builder, kind, a, b, left.natural)
    return None


def _common(kinds: set[Any]) -> Any:
    """The type that arithmetic on the types is done in; None where this is left to Numba."""
    if not kinds <= LLVM.keys() or BOOL in kinds:
        return None
    floats = kinds & set(FLOATS)
    if floats:
        ints = kinds - floats
        return None if ints - set(WORDS) else FLOAT if ints or FLOAT in floats else TYPES.float32
    return INT if any(is_signed(kind) for kind in kinds) else TYPES.uint64


def _divided(builder: Any, kind: type[ast.operator], a: Number, b: Number, natural: bool) -> Number:
    """Floor division by a positive literal, or its remainder."""
    quotient, rest = builder.sdiv(a.llvm, b.llvm), builder.srem(a.llvm, b.llvm)
    if natural:
        return Number(INT, quotient if kind is ast.FloorDiv else rest, natural=True)
    below = builder.icmp_signed("<", rest, LLVM[INT](0))
    if kind is ast.FloorDiv:
        return Number(INT, builder.sub(quotient, builder.zext(below, LLVM[INT])))
    return Number(INT, builder.select(below, builder.add(rest, b.llvm), rest), natural=True)


def negated(builder: Any, value: Number) -> Number | None:
    if value.literal is not None and value.type == INT:
        return literal(-value.literal)
    if value.type in FLOATS:
        if isinstance(value.llvm, ir.Constant):
            return Number(value.type, ir.Constant(value.llvm.type, -value.llvm.constant))
        return Number(value.type, builder.fneg(value.llvm))
    if value.type == INT:
        return Number(INT, builder.neg(value.llvm))
    return None


def comparison(builder: Any, op: ast.cmpop, left: Number, right: Number) -> Number | None:
    """None where the comparison is left to Numba."""
    sign = _SIGNS.get(type(op))
    if sign is None:
        return None
    if left.type == right.type == BOOL:
        return Number(BOOL, builder.icmp_unsigned(sign, left.llvm, right.llvm))
    kinds = {left.type, right.type}
    if all(isinstance(kind, types.Integer) for kind in kinds) and len({is_signed(kind) for kind in kinds}) == 2:
        return None
    common = _common(kinds)
    if common is None:
        return None
    a, b = cast(builder, left, common).llvm, cast(builder, right, common).llvm
    if common in FLOATS:
        compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        return Number(BOOL, compare(sign, a, b))
    return Number(BOOL, (builder.icmp_signed if is_signed(common) else builder.icmp_unsigned)(sign, a, b))
