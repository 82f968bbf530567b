"""NumPy's ufuncs on scalars of one type: maximum, floor_divide, sign, shifts and their like.

In plain Python each function is the NumPy ufunc, without its warnings. In compiled code it becomes a handful of LLVM
instructions in place, without calls or branches where that is possible, so that loops over it vectorise. Operands have
one type, which is also the result's unless a docstring says otherwise; anything else is a `TypingError`. Integers wrap
around. What NumPy defines and C does not (division by zero, the lowest integer divided by -1, shifts by more than the
width) follows NumPy.
"""

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

from gradsmith.kernels.number import Number

# Registering --------------------------------------------------------------------------------------------------------

FLOATS = (types.Float,)
INTEGERS = (types.Integer,)
NUMBERS = (types.Float, types.Integer)
ALL = (types.Float, types.Integer, types.Boolean)


def scalar(
    reference: Callable[..., Any], kinds: tuple[type[types.Type], ...], result: types.Type | None = None
) -> Callable[[Callable[..., Number]], Callable[..., Any]]:
    """Make a function of `Number`s callable from Python, where it is `reference`, and from compiled code."""

    def register(rule: Callable[..., Number]) -> Callable[..., Any]:
        arity = len(inspect.signature(rule).parameters)

        def call(*operands: Any) -> Any:
            with np.errstate(all="ignore"):
                return reference(*operands)

        call.__name__ = call.__qualname__ = rule.__name__
        call.__doc__, call.__module__ = rule.__doc__, rule.__module__

        class Template(AbstractTemplate):
            key = call

            def generic(self, operands: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature:
                operands = tuple(map(types.unliteral, operands))
                if len(operands) != arity or keywords:
                    raise TypingError(f"{rule.__name__} takes {arity} positional operands")
                if any(operand != operands[0] for operand in operands) or not isinstance(operands[0], kinds):
                    allowed = " or ".join(kind.__name__.lower() for kind in kinds)
                    raise TypingError(
                        f"{rule.__name__} takes operands of one type, {allowed}, not {', '.join(map(str, operands))}"
                    )
                return Signature(result or operands[0], operands, None)

        infer_global(call, types.Function(Template))

        for kind in kinds:

            @lower_builtin(call, *[kind] * arity)
            def lower(context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value]) -> ir.Value:
                return rule(*[Number(builder, *pair) for pair in zip(signature.args, values)]).value

        return call

    return register


# Order and sign -----------------------------------------------------------------------------------------------------


@scalar(np.maximum, ALL)
def maximum(x: Number, y: Number) -> Number:
    """The greater; NaN if either is."""
    return x.where((x >= y) | x.is_nan() if x.is_float else x >= y, y)


@scalar(np.minimum, ALL)
def minimum(x: Number, y: Number) -> Number:
    """The smaller; NaN if either is."""
    return x.where((x <= y) | x.is_nan() if x.is_float else x <= y, y)


@scalar(np.fmax, ALL)
def fmax(x: Number, y: Number) -> Number:
    """The greater; NaN only if both are."""
    return x.where((x >= y) | y.is_nan() if x.is_float else x >= y, y)


@scalar(np.fmin, ALL)
def fmin(x: Number, y: Number) -> Number:
    """The smaller; NaN only if both are."""
    return x.where((x <= y) | y.is_nan() if x.is_float else x <= y, y)


@scalar(np.sign, NUMBERS)
def sign(x: Number) -> Number:
    """-1, 0 or 1; NaN stays NaN, and -0.0 becomes 0.0."""
    zero, one = x.like(x.operand(0)), x.like(x.operand(1))
    if not x.is_float and not x.is_signed:
        return one.where(x > 0, 0)
    signed = one.where(x > 0, zero.like(x.operand(-1)).where(x < 0, zero))
    return x.where(x.is_nan(), signed) if x.is_float else signed


@scalar(np.abs, NUMBERS)
def absolute(x: Number) -> Number:
    """|x|; the lowest integer stays as it is."""
    if x.is_float:
        return x.intrinsic("fabs")
    return (-x).where(x < 0, x) if x.is_signed else x


@scalar(np.heaviside, FLOATS)
def heaviside(x: Number, at_zero: Number) -> Number:
    """0 below zero, 1 above, `at_zero` at zero; NaN stays NaN."""
    one = x.like(x.operand(1))
    return at_zero.where(x.equals(0), x.where(x.is_nan(), one.where(x > 0, 0)))


@scalar(np.signbit, FLOATS, result=types.boolean)
def signbit(x: Number) -> Number:
    """Whether the sign bit is set, as a bool."""
    return x.bits() < 0


@scalar(np.copysign, FLOATS)
def copysign(x: Number, y: Number) -> Number:
    """|x| with the sign of y."""
    return x.intrinsic("copysign", y)


@scalar(np.nextafter, FLOATS)
def nextafter(x: Number, y: Number) -> Number:
    """The next float after x in the direction of y; y itself where they are equal."""
    bits = x.bits()
    outward = (x < y).equals(x > 0)  # away from zero the magnitude grows, and with it the integer of the bits
    one = bits.like(bits.operand(1))
    step = (bits + one.where(outward, -1)).as_float(x)
    step = one.as_float(x).intrinsic("copysign", y).where(x.equals(0), step)
    step = y.where(x.equals(y), step)
    return (x + y).where(x.is_nan() | y.is_nan(), step)


@scalar(np.nan_to_num, NUMBERS)
def nan_to_num(x: Number) -> Number:
    """0 for NaN, the largest finite floats for the infinities."""
    if not x.is_float:
        return x
    top = float(np.finfo(f"f{x.width // 8}").max)
    bounded = x.where(x <= top, top)
    bounded = bounded.where(bounded >= -top, -top)
    return x.like(x.operand(0)).where(x.is_nan(), bounded)


# Rounding -----------------------------------------------------------------------------------------------------------


def _rounded(x: Number, name: str) -> Number:
    return x.intrinsic(name) if x.is_float else x


@scalar(np.rint, FLOATS)
def rint(x: Number) -> Number:
    """The nearest integer, the even one of two."""
    return _rounded(x, "rint")


@scalar(np.trunc, NUMBERS)
def trunc(x: Number) -> Number:
    """The integer part."""
    return _rounded(x, "trunc")


@scalar(np.trunc, NUMBERS)
def fix(x: Number) -> Number:
    """The integer part."""
    return _rounded(x, "trunc")


@scalar(np.floor, NUMBERS)
def floor(x: Number) -> Number:
    """The greatest integer not above x."""
    return _rounded(x, "floor")


@scalar(np.ceil, NUMBERS)
def ceil(x: Number) -> Number:
    """The smallest integer not below x."""
    return _rounded(x, "ceil")


# Division -----------------------------------------------------------------------------------------------------------


def _safe(y: Number) -> Number:
    """`y`, or 1 where dividing by it would trap."""
    unsafe = y.equals(0) | y.equals(-1) if y.is_signed else y.equals(0)
    return y.like(y.operand(1)).where(unsafe, y)


def _zero_if(condition: Number, number: Number) -> Number:
    return number.like(number.operand(0)).where(condition, number)


def _float_remainder(x: Number, y: Number) -> tuple[Number, Number]:
    """The remainder with the sign of y, and whether it was moved from the side of x (`npy_divmod` in NumPy)."""
    rest = x % y
    moved = rest.differs(0) & ((y < 0) ^ (rest < 0))
    signed_zero = rest.like(rest.operand(0)).intrinsic("copysign", y)
    result = signed_zero.where(rest.equals(0), (rest + y).where(moved, rest))
    return rest.where(y.equals(0), result), moved


@scalar(np.floor_divide, NUMBERS)
def floor_divide(x: Number, y: Number) -> Number:
    """The quotient rounded down. By zero: 0 for integers, x / y for floats."""
    if x.is_float:
        rest = x % y
        _, moved = _float_remainder(x, y)
        quotient = (x - rest) / y
        quotient = (quotient - 1).where(moved, quotient)
        whole = quotient.intrinsic("floor")
        whole = (whole + 1).where(quotient - whole > 0.5, whole)
        signed_zero = x.like(x.operand(0)).intrinsic("copysign", x / y)
        return (x / y).where(y.equals(0), signed_zero.where(quotient.equals(0), whole))
    divisor = _safe(y)
    quotient = x / divisor
    if x.is_signed:
        inexact = (quotient * divisor).differs(x)
        quotient = (quotient - 1).where(inexact & ((x < 0) ^ (y < 0)), quotient)
        quotient = (-x).where(y.equals(-1), quotient)
    return _zero_if(y.equals(0), quotient)


@scalar(np.remainder, NUMBERS)
def remainder(x: Number, y: Number) -> Number:
    """x - floor_divide(x, y) * y, with the sign of y. By zero: 0 for integers, NaN for floats."""
    if x.is_float:
        return _float_remainder(x, y)[0]
    rest = x % _safe(y)  # 0 for the divisors that are not safe
    if x.is_signed:
        rest = (rest + y).where(rest.differs(0) & ((rest < 0) ^ (y < 0)), rest)
    return rest


@scalar(np.fmod, NUMBERS)
def fmod(x: Number, y: Number) -> Number:
    """The remainder of a division rounded towards zero, with the sign of x. By zero: 0 for integers, NaN for floats."""
    return x % y if x.is_float else x % _safe(y)


# Shifts and powers --------------------------------------------------------------------------------------------------


def _in_range(x: Number, count: Number) -> Number:
    builder, width = count.builder, ir.Constant(count.value.type, x.width)
    return Number(builder, types.boolean, builder.icmp_unsigned("<", count.value, width))


@scalar(np.left_shift, INTEGERS)
def left_shift(x: Number, count: Number) -> Number:
    """x * 2**count; 0 where count is negative or not below the width."""
    fits = _in_range(x, count)
    return (x << count.where(fits, 0)).where(fits, 0)


@scalar(np.right_shift, INTEGERS)
def right_shift(x: Number, count: Number) -> Number:
    """x / 2**count rounded down; -1 or 0, by x's sign, where count is negative or not below the width."""
    fits = _in_range(x, count)
    if x.is_signed:
        return x >> count.where(fits, x.width - 1)
    return (x >> count.where(fits, 0)).where(fits, 0)


def int_power(x: Any, n: Any) -> Any:
    """x**n for a float or integer x and an integer n, by repeated squaring; the result has the type of x.

    An integer to a negative power raises `ValueError`, as in NumPy. 0**0 is 1. The error of a float is at most about
    n / 2 ulp, from the roundings of ever higher powers. A literal `n` is unrolled.
    """
    kind: Any = x.dtype.type if isinstance(x, np.generic) else np.float64 if isinstance(x, float) else np.int64
    x, n = kind(x), operator.index(n)
    if n < 0 and not isinstance(x, np.floating):
        raise ValueError("Integers to negative integer powers are not allowed.")
    with np.errstate(all="ignore"):
        result, square, rest = kind(1), x, abs(n)
        while rest:
            result = result * square if rest & 1 else result
            square, rest = square * square, rest >> 1
        return kind(1) / result if n < 0 else result


class IntPowerTemplate(AbstractTemplate):
    key = int_power
    prefer_literal = True

    def generic(self, operands: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature:
        if len(operands) != 2 or keywords:
            raise TypingError("int_power takes two positional operands")
        x, n = types.unliteral(operands[0]), operands[1]
        if not isinstance(x, NUMBERS) or not isinstance(n, (types.Integer, types.IntegerLiteral)):
            raise TypingError(f"int_power takes a float or integer and an integer, not {x}, {n}")
        lowest = -64 if isinstance(x, types.Float) else 0
        if isinstance(n, types.IntegerLiteral) and not lowest <= n.literal_value <= 64:
            n = types.unliteral(n)
        return Signature(x, (x, n), None)


infer_global(int_power, types.Function(IntPowerTemplate))


@lower_builtin(int_power, types.Float, types.IntegerLiteral)
@lower_builtin(int_power, types.Integer, types.IntegerLiteral)
def lower_literal_power(context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value]) -> ir.Value:
    x = Number(builder, signature.args[0], values[0])
    exponent = signature.args[1].literal_value
    one = x.like(x.operand(1))
    result, square, rest = one, x, abs(exponent)
    while rest:
        result = result * square if rest & 1 else result
        square, rest = square * square if rest > 1 else square, rest >> 1
    return (one / result if exponent < 0 else result).value


@lower_builtin(int_power, types.Float, types.Integer)
@lower_builtin(int_power, types.Integer, types.Integer)
def lower_power(context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value]) -> ir.Value:
    x, n = (Number(builder, *pair) for pair in zip(signature.args, values))
    negative = n < 0 if n.is_signed else None
    if negative is not None and not x.is_float:
        with cgutils.if_unlikely(builder, negative.value):
            message = "Integers to negative integer powers are not allowed."
            context.call_conv.return_user_exc(builder, ValueError, (message,))
    # The lowest integer negated is itself, which the unsigned shift below reads as the number it should be.
    magnitude = (-n).where(negative, n) if negative is not None else n
    result = cgutils.alloca_once_value(builder, x.operand(1))
    square = cgutils.alloca_once_value(builder, x.value)
    rest = cgutils.alloca_once_value(builder, magnitude.value)
    test, body, after = (builder.append_basic_block(f"power.{name}") for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    builder.cbranch(cgutils.is_not_null(builder, builder.load(rest)), body, after)
    builder.position_at_end(body)
    factor, bits = x.like(builder.load(square)), builder.load(rest)
    odd = Number(builder, types.boolean, builder.trunc(bits, ir.IntType(1)))
    total = x.like(builder.load(result))
    builder.store((total * factor).where(odd, total).value, result)
    builder.store((factor * factor).value, square)
    builder.store(builder.lshr(bits, ir.Constant(bits.type, 1)), rest)
    builder.branch(test)
    builder.position_at_end(after)
    power = x.like(builder.load(result))
    if x.is_float and negative is not None:
        power = (power.like(power.operand(1)) / power).where(negative, power)
    return power.value
