"""Arithmetic: sums, products, quotients, powers, remainders, extrema, conversions and the parts of complex numbers.

At kinks and ties: `absolute` has slope 0 at 0; `maximum`, `minimum`, `fmax` and `fmin` share equally between equal
operands; `x ** y` at x = 0 has slope 0 in y, and in x the limit of y * x**(y - 1), which is 0 for y = 0.  Remainders
jump where the quotient is whole; there the slope in the divisor is that of the side that the value belongs to.

Complex derivatives follow JAX: a holomorphic function multiplies tangents and cotangents alike by f'(z), without
conjugation; the cotangent c of z means that the result changes by Re(c * dz).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import const
from ..ir.nodes import Value
from ..ir.types import Type
from .base import Folding, Into, Product, RuleError, Sample, sample
from .families import Elementwise, elementwise, register
from .identities import (
    is_number,
    operand_of,
    simpler_difference,
    simpler_product,
    simpler_quotient,
    simpler_sum,
)
from .samples import between, complex_plane, corner, integers, truths

INF, NAN = float("inf"), float("nan")
COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}
REAL_OF = {"complex64": "float32", "complex128": "float64"}


def _or_of_bools(template: str, of_bools: str) -> Any:
    """The source of a sum or product, which NumPy defines for truth values as `or` and `and`."""
    return lambda x, *_: of_bools if x.kind == "b" else template


add = elementwise(
    "add", np.add, partials=lambda x, y, r: (1, 1), scalar=_or_of_bools("{0} + {1}", "{0} | {1}"), stablehlo="add",
    simplify=simpler_sum, as_dimension=lambda x, y: x + y,
    samples=[*between(-2, 2, arity=2), *integers(-9, 9, arity=2, dtypes=("int64", "int8", "uint8")), truths(2),
             complex_plane(2)], doc="x + y; `or` of truth values.")

subtract = elementwise(
    "subtract", np.subtract, partials=lambda x, y, r: (1, -1), scalar="{0} - {1}", stablehlo="subtract",
    simplify=simpler_difference, kinds="iufc", as_dimension=lambda x, y: x - y,
    samples=[*between(-2, 2, arity=2), *integers(-9, 9, arity=2, dtypes=("int64", "uint8")),
                           complex_plane(2)], doc="x - y.")

add.additive, subtract.additive = (0, 1), (0,)
add.sums_apart = subtract.sums_apart = True

multiply = elementwise(
    "multiply", np.multiply, partials=lambda x, y, r: (y, x), scalar=_or_of_bools("{0} * {1}", "{0} & {1}"),
    stablehlo="multiply", simplify=simpler_product, as_dimension=lambda x, y: x * y,
    samples=[*between(-2, 2, arity=2), *integers(-9, 9, arity=2, dtypes=("int64", "int8", "uint8")), truths(2),
             complex_plane(2)], doc="x * y; `and` of truth values.")

add.folding = Folding("sum", "cumsum", "add", "iufc", of_nothing=True, writes="add_at")
subtract.folding = replace(add.folding, commutes=False, term=lambda x: ops.negative(x))
multiply.folding = Folding("prod", "cumprod", "multiply", "iufc", of_nothing=True)
multiply.multiplies = Product.PLAIN
add.linear_in, subtract.linear_in, multiply.linear_in = ((0, 1),), ((0, 1),), ((0,), (1,))


def _divide_source(x: Type, y: Type) -> str:
    return "complex_divide({0}, {1})" if x.kind == "c" else "{0} / {1}"


def _divide_partials(x: Value, y: Value, r: Value) -> tuple[Value, Value]:
    """Of x / y: one division serves both, and 1 / y none at all."""
    inverse = 1 / y
    return inverse, -(r * r) if is_number(x, 1) else -(r * inverse)


divide = elementwise(
    "divide", np.divide, partials=_divide_partials, singular=(0, 1), scalar=_divide_source,
    stablehlo="divide", kinds="fc", cost=4, simplify=simpler_quotient,
    samples=[*between(0.5, 2, arity=2), complex_plane(2), corner([1, 0, -2], [INF, 2, INF])],
    doc="x / y of floating-point or complex numbers; integers are converted before.")

negative = elementwise(
    "negative", np.negative, partials=lambda x, r: (-1,), scalar="-{0}", stablehlo="negate", kinds="iufc",
    simplify=lambda x: operand_of("negative", x), as_dimension=lambda x: -x,
    samples=[*between(-2, 2), *integers(-9, 9, dtypes=("int64", "int8")), *integers(0, 9, dtypes=("uint8",)),
             complex_plane()], doc="-x.")

negative.linear_in = ((0,),)
negative.repeats = ("multiply", -1)


# ---------------------------------------------------------------------------------------------------------------
# powers


def _power_partials(x: Value, y: Value, r: Value) -> tuple[Value, Value]:
    in_x = ops.select(y.eq(0), const(0, x.type), y * ops.power(x, y - 1))
    in_y = ops.select(x.eq(0), const(0, x.type), r * ops.log(x))
    return in_x, in_y


def _power_hlo(h: Any, x: Any, y: Any) -> Any:
    if x.type.kind in "fc":
        return h.op("power", x, y)
    one, zero = h.constant(1, x.type), h.constant(0, x.type)
    result, square = one, x
    for bit in range(x.type.numpy.itemsize * 8 - (x.type.kind == "i")):
        odd = h.compare("NE", h.op("and", y, h.constant(1 << bit, x.type)), zero)
        result = h.op("multiply", result, h.select(odd, square, one))
        square = h.op("multiply", square, square)
    return result


def _power_source(x: Type, y: Type) -> str:
    return {"f": "power({0}, {1})", "c": "{0} ** {1}"}.get(x.kind, "int_power({0}, {1})")


power = elementwise(
    "power", np.power, partials=_power_partials, singular=(0, 1), scalar=_power_source, stablehlo=_power_hlo,
    kinds="iufc", cost=20,
    samples=[*between(0.5, 2, arity=2), *integers(0, 5, arity=2, dtypes=("int64", "int32")), complex_plane(2),
             corner([0, 0, 0, 0], [0, 1, 2, 3.5])],
    doc="x ** y for operands of one dtype; integer exponents are not negative.  Slope 0 in y at x = 0.")
power.checked_kinds = "iu"


@register
class IntPower(Elementwise):
    """x ** n for an integer n known while transpiling: right for negative x and at 0, where 0.0 ** 0 is 1 with slope 0.

    Integers take n >= 0 only.
    """

    name = "int_power"
    kinds = "iufc"
    cost = 4

    def infer(self, x: Type, *, n: int, **params: Any) -> Type:  # type: ignore[override]
        if n < 0 and not x.is_inexact:
            raise RuleError("Integers to negative integer powers are not allowed.", code="E309",
                            help="make the base a float: x.astype(float)")
        return super().infer(x)

    def reference(self, x: Any, *, n: int, **params: Any) -> Any:
        return np.power(x, n)

    @staticmethod
    def scalar(x: Type, *, n: int) -> str:
        if n == 2:
            return "{0} * {0}"
        if x.kind != "c":
            return f"int_power({{0}}, {n})"
        return f"{{0}} ** {n}" if n >= 0 else f"complex_divide(1, {{0}} ** {-n})"

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, n: int,  # type: ignore
            **params: Any) -> Any:
        if n == 0 or tangents[0] is None:
            return None
        return self._product(tangents[0], self._slope(args[0], n), n < 1, forward=True)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, n: int,  # type: ignore
            **params: Any) -> list[Value | Into | None]:
        if n == 0 or not args[0].type.is_inexact:
            return [None]
        return [self._product(ct, self._slope(args[0], n), n < 1)]

    @staticmethod
    def _slope(x: Value, n: int) -> Any:
        if n == 1:
            return 1
        return n * x if n == 2 else n * ops.int_power(x, n=n - 1)

    def stablehlo(self, h: Any, x: Any, *, n: int, **params: Any) -> Any:
        result, square, rest = h.constant(1, x.type), x, abs(n)
        while rest:
            result = h.op("multiply", result, square) if rest & 1 else result
            square, rest = h.op("multiply", square, square), rest >> 1
        return h.op("divide", h.constant(1, x.type), result) if n < 0 else result

    def samples(self) -> list[Sample]:
        return [s for n in (2, 3, 7, -1, -2) for s in between(0.5, 2, n=n)] + [
            *between(-2, -1, n=3), *integers(-4, 4, dtypes=("int64", "int32"), n=3), complex_plane(n=3),
            complex_plane(n=-2), corner([0, -1, 2], n=2), corner([0, -1, 2], n=3), corner([0, -1, 2], n=0),
            corner([0, -1, 2], n=1)]


# ---------------------------------------------------------------------------------------------------------------
# remainders


def _signs_differ(h: Any, r: Any, y: Any) -> Any:
    """Whether r is not zero and has another sign than y."""
    zero = h.constant(0, r.type)
    other = h.compare("NE", h.compare("LT", r, zero), h.compare("LT", y, zero))
    return h.op("and", h.compare("NE", r, zero), other)


def _floor_divide_hlo(h: Any, x: Any, y: Any) -> Any:
    zero, one = h.constant(0, x.type), h.constant(1, x.type)
    by_zero = h.compare("EQ", y, zero)
    if x.type.kind in "iu":
        divisor = h.select(by_zero, one, y)
        quotient = h.op("divide", x, divisor)
        if x.type.kind == "i":
            down = _signs_differ(h, h.op("remainder", x, divisor), divisor)
            quotient = h.select(down, h.op("subtract", quotient, one), quotient)
        return h.select(by_zero, zero, quotient)
    rest = h.op("remainder", x, y)
    exact = h.op("divide", h.op("subtract", x, rest), y)
    exact = h.select(_signs_differ(h, rest, y), h.op("subtract", exact, one), exact)
    whole = h.op("floor", exact)
    half = h.compare("GT", h.op("subtract", exact, whole), h.constant(0.5, x.type))
    return h.select(by_zero, h.op("divide", x, y), h.select(half, h.op("add", whole, one), whole))


def _fmod_hlo(h: Any, x: Any, y: Any) -> Any:
    if x.type.kind == "f":
        return h.op("remainder", x, y)
    zero, one = h.constant(0, x.type), h.constant(1, x.type)
    by_zero = h.compare("EQ", y, zero)
    return h.select(by_zero, zero, h.op("remainder", x, h.select(by_zero, one, y)))


def _remainder_hlo(h: Any, x: Any, y: Any) -> Any:
    rest = _fmod_hlo(h, x, y)
    if x.type.kind == "u":
        return rest
    return h.select(_signs_differ(h, rest, y), h.op("add", rest, y), rest)


def _mixed(*extra: Sample) -> list[Sample]:
    """Divisions with both signs, away from whole quotients, and of integers, also by zero."""
    x, y = np.array([5.3, -5.3, 5.3, -5.3, 0.4]), np.array([2.0, 2.0, -2.0, -2.0, 3.0])
    whole, by = np.array([7, -7, 7, -7, 5, 0]), np.array([2, 2, -2, -2, 0, 3])
    return [sample(x, y), sample(x.astype("float32"), y.astype("float32")), sample(whole, by),
            sample(whole.astype("int8"), by.astype("int8")),
            sample(abs(whole).astype("uint8"), abs(by).astype("uint8")), *extra]


floor_divide = elementwise(
    "floor_divide", np.floor_divide, partials=None, scalar="floor_divide({0}, {1})", stablehlo=_floor_divide_hlo,
    kinds="iuf", cost=10, samples=_mixed(corner([6, -6, 1, -1], [2, 2, INF, INF])),
    doc="The quotient rounded down; integers by zero give 0, as NumPy does.  Piecewise constant.")

remainder = elementwise(
    "remainder", np.remainder, partials=lambda x, y, r: (1, -ops.floor_divide(x, y)), singular=(1,),
    scalar="remainder({0}, {1})", stablehlo=_remainder_hlo, kinds="iuf", cost=10,
    samples=_mixed(corner([6, -6, 0], [2, 2, 3])), doc="x - floor(x / y) * y, with the sign of y.")

fmod = elementwise(
    "fmod", np.fmod, partials=lambda x, y, r: (1, -ops.rint((x - r) / y)), singular=(1,), scalar="fmod({0}, {1})",
    stablehlo=_fmod_hlo, kinds="iuf", cost=10, samples=_mixed(corner([6, -6, 0], [2, 2, 3])),
    doc="x - trunc(x / y) * y, with the sign of x.")


# ---------------------------------------------------------------------------------------------------------------
# size and order


@register
class Absolute(Elementwise):
    """|x|, real also for complex x.  The slope at 0 is 0; elsewhere the sign, or conj(z)/|z| for complex z."""

    name = "absolute"

    def infer(self, x: Type, **params: Any) -> Type:  # type: ignore[override]
        found = super().infer(x)
        return found.with_dtype(REAL_OF[x.dtype]) if x.kind == "c" else found

    def reference(self, x: Any, **params: Any) -> Any:
        return np.absolute(x)

    @staticmethod
    def scalar(x: Type) -> str:
        return {"b": "{0}", "c": "abs({0})"}.get(x.kind, "absolute({0})")

    def simplify(self, args: Sequence[Value], **params: Any) -> Value | None:
        (x,) = args
        if operand_of("absolute", x) is not None and x.type.kind != "c":
            return x
        opposite = operand_of("negative", x)
        return None if opposite is None or x.type.kind != "f" else ops.absolute(opposite)

    @staticmethod
    def partials(x: Value, r: Value) -> tuple[Value, ...]:  # type: ignore[override]
        return (ops.sign(x),)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        if args[0].type.kind != "c" or tangents[0] is None:
            return super().jvp(tangents, args, result)
        return ops.real(tangents[0] * self._direction(args[0], result))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        if args[0].type.kind != "c" or not wanted[0]:
            return super().vjp(ct, args, result, wanted)
        return [ops.scale(ops.convert(ct, dtype=args[0].dtype), self._direction(args[0], result))]

    @staticmethod
    def _direction(z: Value, size: Value) -> Value:
        """conj(z) / |z|, 0 at 0."""
        unit = ops.conj(z) / ops.convert(size, dtype=z.dtype)
        return ops.select(size.eq(0), const(0, z.type), unit)

    def stablehlo(self, h: Any, x: Any, **params: Any) -> Any:
        return x if x.type.kind in "bu" else h.op("abs", x, type=self.infer(x.type))

    def samples(self) -> list[Sample]:
        return [*between(0.5, 2), *between(-2, -0.5), *integers(-9, 9, dtypes=("int64", "int8")), truths(),
                *integers(0, 9, dtypes=("uint8",)), complex_plane(), corner([0.0, -0.0, 1.0]),
                corner([0, 1], dtype="complex128")]


def _sign_hlo(h: Any, x: Any) -> Any:
    if x.type.kind == "u":
        return h.op("minimum", x, h.constant(1, x.type))
    return h.op("sign", x)


sign = elementwise(
    "sign", np.sign, partials=None, scalar="sign({0})", stablehlo=_sign_hlo, kinds="iuf",
    samples=[*between(-2, 2), *integers(-9, 9), *integers(0, 3, dtypes=("uint8",)), corner([0.0, -0.0, INF])],
    doc="-1, 0 or 1; NaN stays NaN.  Piecewise constant.")


class Extremum(Elementwise):
    """The greater or the smaller of two; equal operands share the derivative equally."""

    masks = True
    kinds = "biuf"
    function: Any
    greater: bool
    skips_nan = False

    def reference(self, x: Any, y: Any, **params: Any) -> Any:
        return self.function(x, y)

    @property
    def scalar(self) -> str:  # type: ignore[override]
        return f"{self.name}({{0}}, {{1}})"

    def _first_wins(self, x: Value, y: Value) -> Value:
        wins = x > y if self.greater else x < y
        return wins | ops.isnan(y) if self.skips_nan else wins

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        if not result.type.is_inexact:
            return None
        x, y = args
        zero = const(0, result.type)
        t_x, t_y = (zero if t is None else t for t in tangents)
        both = t_x + t_y if None not in tangents else t_x if tangents[1] is None else t_y
        return ops.select(self._first_wins(x, y), t_x, ops.select(x.eq(y), 0.5 * both, t_y))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        if not result.type.is_inexact:
            return [None, None]
        x, y = args
        zero = const(0, ct.type)
        first, tie = self._first_wins(x, y), x.eq(y)
        half = 0.5 * ct
        return [ops.select(first, ct, ops.select(tie, half, zero)) if wanted[0] else None,
                ops.select(first, zero, ops.select(tie, half, ct)) if wanted[1] else None]

    def stablehlo(self, h: Any, x: Any, y: Any, **params: Any) -> Any:
        result = h.op("maximum" if self.greater else "minimum", x, y)
        if not self.skips_nan or x.type.kind != "f":
            return result
        return h.select(h.compare("NE", x, x), y, h.select(h.compare("NE", y, y), x, result))

    def samples(self) -> list[Sample]:
        found = [*between(-2, 2, arity=2), *integers(-9, 9, arity=2, dtypes=("int64", "int8")),
                 *integers(0, 9, arity=2, dtypes=("uint8",)), truths(2), corner([1, 0, -2, INF], [1, -0.0, -2, INF])]
        return [*found, corner([NAN, 1, 2], [1, NAN, 2])] if self.skips_nan else found


@register
class Maximum(Extremum):
    """The greater of x and y; NaN if either is."""

    short = "top"
    name, function, greater = "maximum", np.maximum, True
    folding = Folding("max", "cummax", "maximum", "iuf", of_nothing=False)

    def as_dimension(self, x: Any, y: Any, **params: Any) -> Any:
        return dims.maximum(x, y)


@register
class Minimum(Extremum):
    """The smaller of x and y; NaN if either is."""

    short = "low"
    name, function, greater = "minimum", np.minimum, False
    folding = Folding("min", "cummin", "minimum", "iuf", of_nothing=False)

    def as_dimension(self, x: Any, y: Any, **params: Any) -> Any:
        return dims.minimum(x, y)


@register
class FMax(Extremum):
    """The greater of x and y; the other one where one is NaN."""

    name, function, greater, skips_nan = "fmax", np.fmax, True, True


@register
class FMin(Extremum):
    """The smaller of x and y; the other one where one is NaN."""

    name, function, greater, skips_nan = "fmin", np.fmin, False, True
