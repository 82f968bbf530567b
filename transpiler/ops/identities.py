"""Algebra that is exact: what sums, products and quotients of given operands equal in every bit.

x * 1 is x, but x + 0.0 is not, unless x is known not to be -0.0.  Operations on two choices by one condition, and
products of a choice between constants, become one choice: derivatives of branches meet there, and only the branch
taken is computed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Const, Let, Value
from .base import definition


def is_number(x: Value, number: float) -> bool:
    """Whether x is that constant; 0.0 and -0.0 are told apart."""
    return isinstance(x, Const) and x.value == number and (
        number != 0 or x.type.kind != "f" or bool(np.signbit(x.value)) == bool(np.signbit(number)))


def operand_of(name: str, x: Value) -> Value | None:
    """The operand of the operation `name`, of one operand, that x is known to be the result of."""
    let = definition(x)
    return let.args[0] if let is not None and let.op.name == name else None


def simpler_sum(x: Value, y: Value) -> Value | None:
    neutral = 0 if x.type.kind in "iu" else -0.0
    if x.type.kind in "bc":
        return None
    if is_number(y, neutral):
        return x
    if is_number(x, neutral):
        return y
    for term, other in ((x, y), (y, x)):
        if is_number(term, 0.0) and is_never_negative_zero(other):
            return other
        if (opposite := operand_of("negative", other)) is not None:
            return ops.subtract(term, opposite)
    return both_chosen(ops.add, x, y)


def simpler_difference(x: Value, y: Value) -> Value | None:
    if x.type.kind == "c":
        return None
    if is_number(y, 0.0):
        return x
    opposite = operand_of("negative", y)
    return None if opposite is None else ops.add(x, opposite)


def simpler_product(x: Value, y: Value) -> Value | None:
    for factor, other in ((x, y), (y, x)):
        if x.type.kind == "c":
            continue
        if is_number(factor, 1):
            return other
        if is_number(factor, -1) and x.type.kind in "if":
            return ops.negative(other)
        opposite = operand_of("negative", other)
        if isinstance(factor, Const) and x.type.kind in "if" and opposite is not None:
            return opposite * const(-factor.value, factor.type)
    first, second = operand_of("negative", x), operand_of("negative", y)
    if first is not None and second is not None:
        return first * second
    if x.type.kind == "f" and first is not None:                # signs travel outwards, where they meet and cancel
        return ops.negative(first * y)
    if x.type.kind == "f" and second is not None:
        return ops.negative(x * second)
    chosen = factor_chosen(x, y)
    return factor_chosen(y, x) if chosen is None else chosen


def simpler_quotient(x: Value, y: Value) -> Value | None:
    if x.type.kind == "c":
        return None
    first, second = operand_of("negative", x), operand_of("negative", y)
    if first is not None or second is not None:
        quotient = (x if first is None else first) / (y if second is None else second)
        return quotient if first is not None and second is not None else ops.negative(quotient)
    if not isinstance(y, Const):
        return None
    if y.value == 1:
        return x
    if y.value == -1:
        return ops.negative(x)
    mantissa, exponent = np.frexp(y.value)
    if abs(mantissa) == 0.5 and abs(exponent) < 100:            # by a power of two: the product is as exact
        return x * const(1.0 / y.value, y.type)
    return None


# ---------------------------------------------------------------------------------------------------------------
# choices


def choice(x: Value) -> Let | None:
    """The select that x is known to be the result of."""
    let = definition(x)
    return let if let is not None and let.op.name == "select" else None


def both_chosen(op: Callable[..., Value], x: Value, y: Value) -> Value | None:
    """op(c ? a : b, c ? d : e) is c ? op(a, d) : op(b, e), where constants leave one operation at most."""
    first, second = choice(x), choice(y)
    if first is None or second is None or first.args[0] is not second.args[0]:
        return None
    (cond, a, b), (_, d, e) = first.args, second.args
    if not (isinstance(a, Const) or isinstance(d, Const)) or not (isinstance(b, Const) or isinstance(e, Const)):
        return None
    return ops.select(cond, op(a, d), op(b, e))  # type: ignore[no-any-return]


def factor_chosen(x: Value, factor: Value) -> Value | None:
    """(c ? a : b) * k is c ? a * k : b * k for constants k and a or b."""
    let = choice(x)
    if let is None or not isinstance(factor, Const):
        return None
    cond, a, b = let.args
    if not (isinstance(a, Const) or isinstance(b, Const)):
        return None
    return ops.select(cond, a * factor, b * factor)  # type: ignore[no-any-return]


def scaled(ct: Value, partial: Value) -> Value | None:
    """A simpler `scale`: a plain product where neither operand can make a NaN of a zero.  A zero may turn its sign."""
    if isinstance(ct, Const):
        return ct if ct.value == 0 else ct * partial
    if isinstance(partial, Const) and np.isfinite(partial.value):
        return ct * partial
    opposite = operand_of("negative", ct)
    if opposite is not None:
        return ops.negative(ops.scale(opposite, partial))  # type: ignore[no-any-return]
    let = choice(ct)
    if let is None:
        return None
    cond, a, b = let.args
    if is_zero(a):
        return ops.select(cond, a, ops.scale(b, partial))  # type: ignore[no-any-return]
    return ops.select(cond, ops.scale(a, partial), b) if is_zero(b) else None


def is_zero(x: Value) -> bool:
    return isinstance(x, Const) and x.value == 0


# ---------------------------------------------------------------------------------------------------------------
# signs

_POSITIVE = frozenset(("exp", "exp2", "expit", "absolute", "cosh", "arccosh", "hypot"))
_KEEPING = frozenset(("multiply", "divide", "add", "scale", "maximum"))


def is_never_negative_zero(x: Value, depth: int = 3) -> bool:
    """Whether x is known not to be -0.0, so that x + 0.0 is x."""
    if isinstance(x, Const):
        return x.value != 0 or not np.signbit(x.value)
    let = definition(x)
    if let is None or depth == 0 or x.type.kind != "f":
        return False
    if has_sign_bit_clear(x, depth):
        return True
    if let.op.name in ("add", "subtract"):                      # sums that cancel are +0.0
        first, second = let.args
        if any(isinstance(t, Const) and t.value != 0 for t in let.args):
            return True
        return let.op.name == "add" and (is_never_negative_zero(first, depth - 1)
                                         or is_never_negative_zero(second, depth - 1))
    if let.op.name == "select":
        return all(is_never_negative_zero(v, depth - 1) for v in let.args[1:])
    return False


def has_sign_bit_clear(x: Value, depth: int = 3) -> bool:
    """Whether x is known to be at least +0.0 (or NaN)."""
    if isinstance(x, Const):
        return not isinstance(x.value, complex) and not np.signbit(x.value)
    let = definition(x)
    if let is None or depth == 0 or x.type.kind != "f":
        return False
    if let.op.name in _POSITIVE:
        return True
    if let.op.name == "int_power":
        return bool(let.params["n"] % 2 == 0)
    if let.op.name == "multiply" and let.args[0] is let.args[1]:
        return True
    return let.op.name in _KEEPING and all(has_sign_bit_clear(v, depth - 1) for v in let.args)
