"""Names of elementary and special functions, and of rounding, in NumPy, SciPy and Python's `math`.

Functions of `math` work in float64 and, outside their domain, give what NumPy gives (NaN or an infinity), where
CPython raises ValueError or OverflowError.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Value
from ..ir.types import BOOL
from . import comparison, elementary, rounding, special
from .base import RuleError
from .families import restore_axes
from .numpy_arithmetic import power_by, scalar_argument
from .spelling import (
    as_value,
    axes_of,
    cast,
    python_type,
    spell_scipy,
    spell_ufunc,
    spelled,
    static_int,
    ufunc_operands,
)

for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "hypot", "logaddexp",
              "logaddexp2", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh",
              "arcsinh", "arccosh", "arctanh"):
    spell_ufunc(getattr(np, _name), getattr(elementary, _name))


# ---------------------------------------------------------------------------------------------------------------
# rounding and signs


def _by_parts(op: Callable[[Value], Value], x: Value) -> Value:
    """The op on the real and on the imaginary part."""
    return ops.make_complex(op(ops.real(x)), op(ops.imag(x))) if x.type.kind == "c" else op(x)


def _unless_whole(op: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Integers and truth values are rounded already."""
    return lambda x: op(x) if x.type.is_inexact else x


spell_ufunc(np.floor, _unless_whole(rounding.floor))
spell_ufunc(np.ceil, _unless_whole(rounding.ceil))
spell_ufunc(np.trunc, _unless_whole(rounding.trunc))
spell_ufunc(np.rint, lambda x: _by_parts(rounding.rint, x))
spell_ufunc(np.copysign, rounding.copysign)
spell_ufunc(np.nextafter, rounding.nextafter)
spell_ufunc(np.heaviside, rounding.heaviside)


@spelled(np.fix)
def numpy_fix(x: Any, out: Any = None) -> Value:
    if out is not None:
        raise RuleError("out= of np.fix is not supported here", code="E203", kind=NotImplementedError,
                        help="assign the result instead")
    return _unless_whole(ops.trunc)(as_value(x))


@spelled(np.round, np.around, np.ndarray.round)
def numpy_round(a: Any, decimals: Any = 0, out: Any = None) -> Value:
    """As NumPy: multiplied by the power of ten, rounded to even, divided again."""
    if out is not None:
        raise RuleError("out= of np.round is not supported here", code="E203", kind=NotImplementedError,
                        help="assign the result instead")
    x, places = as_value(a), static_int(decimals, "decimals")
    if x.type.kind == "c":
        return _by_parts(lambda part: numpy_round(part, places), x)
    if x.dtype == "bool":
        raise RuleError("np.round of truth values is not supported", code="E309", kind=TypeError,
                        help="convert to a number before")
    if not x.type.is_inexact:
        if places >= 0:
            return x
        unit = const(10.0 ** -places, x.type.with_dtype("float64"))
        return cast(ops.rint(cast(x, "float64") / unit) * unit, x.dtype)
    if places == 0:
        return ops.rint(x)
    unit = const(10.0 ** abs(places), x.type)
    return ops.rint(x * unit) / unit if places > 0 else ops.rint(x / unit) * unit


@spelled(round)
def python_round(number: Any, ndigits: Any = None) -> Value:
    if ndigits is None:
        return cast(_unless_whole(ops.rint)(scalar_argument(number, "round()")), "int64")
    if python_type(number) is float:
        raise RuleError("round() of a Python float to digits rounds its decimal form, which is not supported",
                        code="E203", kind=NotImplementedError, help="use np.round(x, digits)")
    return numpy_round(number, ndigits)


@spelled(np.modf)
def numpy_modf(*operands: Any, **options: Any) -> tuple[Value, Value]:
    """The fractional part, of slope 1, and the whole part, of slope 0; both have the sign of x."""
    (x,) = ufunc_operands(np.modf, operands, **options)
    whole = ops.trunc(x)
    rest = ops.select(ops.isinf(x), const(0, x.type), x - whole)
    return ops.copysign(rest, x), whole


# ---------------------------------------------------------------------------------------------------------------
# tests


def _float_test(ufunc: np.ufunc, op: Callable[[Value], Value], of_whole: bool) -> None:
    spell_ufunc(ufunc, lambda x: op(x) if x.type.is_inexact else const(of_whole, BOOL.with_shape(x.shape)))


_float_test(np.isnan, comparison.isnan, False)
_float_test(np.isinf, comparison.isinf, False)
_float_test(np.isfinite, comparison.isfinite, True)


@spelled(np.signbit)
def numpy_signbit(*operands: Any, **options: Any) -> Value:
    x = as_value(operands[0]) if len(operands) == 1 else None
    if x is not None and not x.type.is_inexact:         # NumPy goes through float16 for narrow integers
        return x < 0 if x.type.kind == "i" else const(False, BOOL.with_shape(x.shape))
    return comparison.signbit(*ufunc_operands(np.signbit, operands, **options))


@spelled(np.isposinf)
def numpy_isposinf(x: Any) -> Value:
    x = as_value(x)
    return x.eq(math.inf) if x.type.is_inexact else const(False, BOOL.with_shape(x.shape))


@spelled(np.isneginf)
def numpy_isneginf(x: Any) -> Value:
    x = as_value(x)
    return x.eq(-math.inf) if x.type.is_inexact else const(False, BOOL.with_shape(x.shape))


# ---------------------------------------------------------------------------------------------------------------
# angles and sinc

spell_ufunc(np.deg2rad, lambda x: x * (math.pi / 180.0))
spell_ufunc(np.radians, lambda x: x * (math.pi / 180.0))
spell_ufunc(np.rad2deg, lambda x: x * (180.0 / math.pi))
spell_ufunc(np.degrees, lambda x: x * (180.0 / math.pi))


@spelled(np.sinc)
def numpy_sinc(x: Any) -> Value:
    x = as_value(x)
    return ops.sinc_derivative(x if x.type.is_inexact else cast(x, "float64"), n=0)


# ---------------------------------------------------------------------------------------------------------------
# scipy.special

for _name in ("expit", "erf", "erfc", "erfinv", "gammaln", "logit", "xlogy", "xlog1py", "entr"):
    spell_scipy(_name, getattr(elementary if _name == "expit" else special, _name))
spell_scipy("psi", special.digamma)
for _name in ("exp2", "expm1", "log1p", "cbrt"):
    spell_scipy(_name, getattr(elementary, _name))


@spelled(("scipy.special", "polygamma"))
def scipy_polygamma(n: Any, x: Any) -> Value:
    order, x = static_int(n, "the order of polygamma"), as_value(x)
    if order < 0:
        raise RuleError(f"polygamma of order {order} does not exist", code="E208", kind=ValueError)
    x = cast(x, "float64")
    return ops.polygamma(x, n=order) if order else ops.digamma(x)


def _shifted(x: Any, axis: Any) -> tuple[Value, Callable[[Value], Value]]:
    """x - max(x) along the axes, and the sum along them, copied back.  The maximum is a constant of both results."""
    x = as_value(x)
    x = x if x.type.is_inexact else cast(x, "float64")
    axes = axes_of(axis, x.rank)
    if not axes:
        return x - x, lambda v: v
    top = ops.stop_gradient(ops.max(x, axes=axes))
    return x - restore_axes(top, axes, x.shape), lambda v: restore_axes(ops.sum(v, axes=axes), axes, x.shape)


@spelled(("scipy.special", "softmax"))
def scipy_softmax(x: Any, axis: Any = None) -> Value:
    shifted, total = _shifted(x, axis)
    weights = ops.exp(shifted)
    return weights / total(weights)


@spelled(("scipy.special", "log_softmax"))
def scipy_log_softmax(x: Any, axis: Any = None) -> Value:
    shifted, total = _shifted(x, axis)
    return shifted - ops.log(total(ops.exp(shifted)))


# ---------------------------------------------------------------------------------------------------------------
# math


def _spell_math(function: Any, op: Callable[..., Value]) -> None:
    def call(*operands: Any) -> Value:
        name = f"math.{function.__name__}"
        values = [scalar_argument(x, name) for x in operands]
        if any(v.type.kind == "c" for v in values):
            raise RuleError(f"{name} does not take complex numbers", code="E309", kind=TypeError,
                            help="use NumPy's function of that name")
        return op(*(cast(v, "float64") for v in values))

    spelled(function)(call)


def _hypot(*coordinates: Value) -> Value:
    if not coordinates:
        return as_value(0.0)
    total = ops.absolute(coordinates[0])
    for x in coordinates[1:]:
        total = ops.hypot(total, x)
    return total


def _log(x: Value, base: Value | None = None) -> Value:
    return ops.log(x) if base is None else ops.log(x) / ops.log(base)


_MATH: dict[str, Callable[..., Value]] = {
    "exp": elementary.exp, "expm1": elementary.expm1, "log": _log, "log2": elementary.log2, "log10": elementary.log10,
    "log1p": elementary.log1p, "sqrt": elementary.sqrt, "sin": elementary.sin, "cos": elementary.cos,
    "tan": elementary.tan, "asin": elementary.arcsin, "acos": elementary.arccos, "atan": elementary.arctan,
    "atan2": elementary.arctan2, "sinh": elementary.sinh, "cosh": elementary.cosh, "tanh": elementary.tanh,
    "asinh": elementary.arcsinh, "acosh": elementary.arccosh, "atanh": elementary.arctanh, "hypot": _hypot,
    "exp2": elementary.exp2, "cbrt": elementary.cbrt, "fabs": lambda x: ops.absolute(x),
    "fmod": lambda x, y: ops.fmod(x, y), "copysign": rounding.copysign,
    "nextafter": rounding.nextafter, "erf": special.erf, "erfc": special.erfc, "lgamma": special.gammaln,
    "degrees": lambda x: x * (180.0 / math.pi), "radians": lambda x: x * (math.pi / 180.0),
    "isnan": comparison.isnan, "isinf": comparison.isinf, "isfinite": comparison.isfinite,
}
for _name, _op in _MATH.items():
    if hasattr(math, _name):
        _spell_math(getattr(math, _name), _op)


@spelled(math.pow)
def math_pow(x: Any, y: Any) -> Value:
    base = cast(scalar_argument(x, "math.pow"), "float64")
    if isinstance(y, (int, float)):
        return power_by(base, float(y))
    return ops.power(base, cast(scalar_argument(y, "math.pow"), "float64"))


def _spell_whole(function: Any, op: Callable[[Value], Value]) -> None:
    """math.floor and its like give Python ints."""
    def call(x: Any) -> Value:
        return cast(_unless_whole(op)(scalar_argument(x, f"math.{function.__name__}")), "int64")

    spelled(function)(call)


_spell_whole(math.floor, rounding.floor)
_spell_whole(math.ceil, rounding.ceil)
_spell_whole(math.trunc, rounding.trunc)
