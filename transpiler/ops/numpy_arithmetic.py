"""NumPy's and Python's names for arithmetic, powers, comparisons, logic, bits, conversions and choices.

A power with an exponent known while transpiling becomes what it means: `x ** 2` an integer power, `x ** 0.5` a square
root, `x ** -1` a quotient.  Other exponents go to `power`, whose slopes are right at 0 (see `arithmetic`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const
from ..ir.nodes import Const, Value, Var
from ..ir.types import BOOL, Type
from . import arithmetic as a
from . import comparison as c
from .base import RuleError
from .families import broadcast_to
from .spelling import (
    Weak,
    as_value,
    broadcast_together,
    cast,
    describe,
    is_value,
    promote,
    python_type,
    result_dtype,
    spell_outer,
    spell_ufunc,
    spelled,
    ufunc_operands,
)

spell_ufunc(np.add, a.add, operator.add)
spell_ufunc(np.subtract, a.subtract, operator.sub)
spell_ufunc(np.multiply, a.multiply, operator.mul)
spell_ufunc(np.divide, a.divide, operator.truediv)
spell_ufunc(np.negative, a.negative, operator.neg)
spell_ufunc(np.positive, lambda x: x, operator.pos)
spell_ufunc(np.floor_divide, a.floor_divide, operator.floordiv)
spell_ufunc(np.remainder, a.remainder, operator.mod)
spell_ufunc(np.fmod, a.fmod)
spell_ufunc(np.absolute, ops.absolute, abs)
spell_ufunc(np.fabs, ops.absolute)
spell_ufunc(np.maximum, ops.maximum)
spell_ufunc(np.minimum, ops.minimum)
spell_ufunc(np.fmax, ops.fmax)
spell_ufunc(np.fmin, ops.fmin)
spell_ufunc(np.square, lambda x: ops.int_power(x, n=2))


@spelled(np.divmod, divmod)
def numpy_divmod(x: Any, y: Any, **options: Any) -> tuple[Value, Value]:
    x, y = ufunc_operands(np.floor_divide, (x, y), **options)
    return ops.floor_divide(x, y), ops.remainder(x, y)


def _sign(x: Value) -> Value:
    if x.type.kind != "c":
        return ops.sign(x)
    size = ops.convert(ops.absolute(x), dtype=x.dtype)
    return ops.select(size.eq(0), const(0, x.type), x / size)


def _reciprocal(x: Value) -> Value:
    """1 / x; of integers the quotient is truncated, and 1 / 0 is what NumPy gives on x86."""
    if x.type.is_inexact:
        return const(1, x.type) / x
    inverse = ops.select(ops.absolute(x).eq(1), x, const(0, x.type))
    if x.dtype not in ("int32", "int64"):
        return inverse
    return ops.select(x.eq(0), const(np.iinfo(x.dtype).min, x.type), inverse)


spell_ufunc(np.sign, _sign)
spell_ufunc(np.reciprocal, _reciprocal)


# ---------------------------------------------------------------------------------------------------------------
# powers


@spelled(np.power, operator.pow)
def numpy_power(*operands: Any, **options: Any) -> Value:
    return _power(np.power, *operands, **options)


@spelled(np.float_power)
def numpy_float_power(*operands: Any, **options: Any) -> Value:
    return _power(np.float_power, *operands, **options)


spell_outer(np.power, numpy_power)
spell_outer(np.float_power, numpy_float_power)


@spelled(pow)
def python_power(base: Any, exp: Any, mod: Any = None) -> Value:
    if mod is not None:
        raise RuleError("pow with a modulus is not supported", kind=NotImplementedError, code="E203",
                        help="use (base ** exp) % mod")
    return _power(np.power, base, exp)


def _power(ufunc: np.ufunc, *operands: Any, **options: Any) -> Value:
    if len(operands) == 2 and python_type(operands[0]) and type(operands[1]) is int and operands[1] < 0:
        if python_type(operands[0]) in (int, bool):          # Python's 2 ** -1 is 0.5
            operands = (as_value(operands[0], "float64"), operands[1])
    base, exponent = ufunc_operands(ufunc, operands, **options)
    if isinstance(exponent, Const):
        return power_by(base, exponent.value)
    if base.type.is_inexact:
        return ops.power(base, exponent)
    if exponent.type.kind == "i":
        fits = exponent >= 0
        check(_everywhere(fits), "ValueError", "Integers to negative integer powers are not allowed.")
    return ops.power(base, exponent)


def power_by(base: Value, exponent: Any) -> Value:
    """base ** exponent for a number known while transpiling, in the dtype of base."""
    if exponent == 0:
        return const(1, base.type)
    if exponent == 1:
        return base
    if base.type.is_inexact and exponent == 0.5:
        return ops.sqrt(base)
    if base.type.is_inexact and exponent == -1:
        return const(1, base.type) / base
    whole = exponent.real if isinstance(exponent, complex) and exponent.imag == 0 else exponent
    if not isinstance(whole, complex) and whole == np.floor(whole) and abs(whole) <= 64:
        return ops.int_power(base, n=int(whole))
    return ops.power(base, const(exponent, base.type))


# ---------------------------------------------------------------------------------------------------------------
# comparisons


def _spell_comparison(ufunc: np.ufunc, op: Callable[..., Value], *more: Any) -> None:
    """NumPy compares integers of any dtypes exactly, among them Python's that do not fit the array's dtype."""

    def call(*operands: Any, **options: Any) -> Value:
        if any(is_value(x) and x.type.kind in "iu" for x in operands):
            operands = tuple(as_value(x) if isinstance(x, Weak) and python_type(x) is int else x for x in operands)
        for k, x in enumerate(operands):
            other = operands[1 - k] if len(operands) == 2 else None
            if type(x) is int and isinstance(other, (Var, Const)) and other.type.kind in "iu":
                limits = np.iinfo(other.dtype)
                if not limits.min <= x <= limits.max:
                    answer = bool(ufunc(x, 0) if k == 0 else ufunc(0, x))
                    return const(answer, BOOL.with_shape(other.shape))
        x, y = ufunc_operands(ufunc, operands, **options)
        if x.type.kind == "i" and y.dtype == "uint64":
            return ops.select(x < 0, const(bool(ufunc(-1, 0)), BOOL), op(cast(x, "uint64"), y))
        if y.type.kind == "i" and x.dtype == "uint64":
            return ops.select(y < 0, const(bool(ufunc(0, -1)), BOOL), op(x, cast(y, "uint64")))
        return op(x, y)

    spelled(ufunc, *more)(call)
    spell_outer(ufunc, call)


_spell_comparison(np.equal, c.equal, operator.eq)
_spell_comparison(np.not_equal, c.not_equal, operator.ne)
_spell_comparison(np.less, c.less, operator.lt)
_spell_comparison(np.less_equal, c.less_equal, operator.le)
_spell_comparison(np.greater, c.greater, operator.gt)
_spell_comparison(np.greater_equal, c.greater_equal, operator.ge)


@spelled(np.isclose)
def numpy_isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Value:
    x, y = broadcast_together(*promote(a, b))
    if not x.type.is_inexact:
        x, y = cast(x, "float64"), cast(y, "float64")
    if x.type.kind == "c":
        raise RuleError("np.isclose of complex numbers is not supported", kind=NotImplementedError, code="E203",
                        help="compare np.abs(a - b) with a tolerance")
    bound = as_value(atol, x.dtype) + as_value(rtol, x.dtype) * ops.absolute(y)
    near = (ops.absolute(x - y) <= bound) & ops.isfinite(y) | x.eq(y)
    return near | ops.isnan(x) & ops.isnan(y) if equal_nan else near


@spelled(np.allclose)
def numpy_allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Value:
    return _everywhere(numpy_isclose(a, b, rtol, atol, equal_nan))


@spelled(np.array_equal)
def numpy_array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Value:
    x, y = promote(a1, a2)
    if x.rank != y.rank or any(isinstance(m, int) and isinstance(n, int) and m != n for m, n in zip(x.shape, y.shape)):
        return const(False, BOOL)
    same = x.eq(y)
    return _everywhere(same | ops.isnan(x) & ops.isnan(y) if equal_nan and x.type.is_inexact else same)


def _everywhere(x: Value) -> Value:
    return ops.all(x, axes=tuple(range(x.rank))) if x.rank else x


# ---------------------------------------------------------------------------------------------------------------
# logic and bits


def truth(x: Value) -> Value:
    """bool(x) of each element: whether it is not 0."""
    if x.dtype == "bool":
        return x
    if isinstance(x, Const):
        return const(bool(x.value), x.type.with_dtype("bool"))
    return x.ne(0)


spell_ufunc(np.logical_and, lambda x, y: c.logical_and(truth(x), truth(y)))
spell_ufunc(np.logical_or, lambda x, y: c.logical_or(truth(x), truth(y)))
spell_ufunc(np.logical_xor, lambda x, y: c.logical_xor(truth(x), truth(y)))
spell_ufunc(np.logical_not, lambda x: c.logical_not(truth(x)))
spell_ufunc(np.bitwise_and, c.bitwise_and, operator.and_)
spell_ufunc(np.bitwise_or, c.bitwise_or, operator.or_)
spell_ufunc(np.bitwise_xor, c.bitwise_xor, operator.xor)
spell_ufunc(np.invert, c.invert, operator.invert)
spell_ufunc(np.left_shift, c.left_shift, operator.lshift)
spell_ufunc(np.right_shift, c.right_shift, operator.rshift)


# ---------------------------------------------------------------------------------------------------------------
# choices


@spelled(np.where)
def numpy_where(condition: Any, x: Any = None, y: Any = None) -> Value | tuple[Value, ...]:
    if x is None and y is None:
        from .numpy_selecting import nonzero
        return nonzero(condition)
    if x is None or y is None:
        raise RuleError("either both or neither of x and y should be given", kind=ValueError, code="E208")
    return ops.select(truth(as_value(condition)), *promote(x, y))


@spelled(np.clip, np.ndarray.clip)
def numpy_clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
               max: Any = None, **options: Any) -> Value:
    """minimum(maximum(a, a_min), a_max), with a bound of None left out; at its bounds the slope is shared equally."""
    if out is not None or options.pop("dtype", None) is not None or options.get("where", True) is not True:
        raise RuleError("np.clip takes the array and its bounds only", kind=NotImplementedError, code="E203",
                        help="assign the result instead")
    low, high = a_min if min is None else min, a_max if max is None else max
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise RuleError("np.clip got a bound both as `a_min`/`a_max` and as `min`/`max`", code="E208", kind=ValueError)
    bounds = [x for x in (low, high) if x is not None]
    x, *limits = promote(a, *bounds)
    if low is not None:
        x = ops.maximum(x, limits[0])
    return x if high is None else ops.minimum(x, limits[-1])


@spelled(np.nan_to_num)
def numpy_nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Value:
    """Replaced elements have slope 0, all others 1."""
    if copy is not True:
        raise RuleError("np.nan_to_num in place is not supported", kind=NotImplementedError, code="E203",
                        help="assign the result: x = np.nan_to_num(x)")
    x = as_value(x)
    if not x.type.is_inexact:
        return x
    if x.type.kind == "c":
        return ops.make_complex(*(numpy_nan_to_num(part, True, nan, posinf, neginf)
                                  for part in (ops.real(x), ops.imag(x))))
    limits = np.finfo(x.dtype)
    top = as_value(float(limits.max) if posinf is None else posinf, x.dtype)
    bottom = as_value(float(limits.min) if neginf is None else neginf, x.dtype)
    infinite = ops.select(x > 0, *broadcast_together(top, bottom, x)[:2])
    return ops.select(ops.isnan(x), broadcast_to(as_value(nan, x.dtype), x.shape),
                      ops.select(ops.isinf(x), infinite, x))


# ---------------------------------------------------------------------------------------------------------------
# conversions and parts of complex numbers


def _spell_dtype(constructor: Any) -> None:
    def call(x: Any = 0) -> Value:
        name = np.dtype(constructor).name
        if name == "float16":
            raise RuleError("float16 is not supported", kind=TypeError, code="E307", help="use np.float32")
        return as_value(x, name)

    spelled(constructor)(call)


for _constructor in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
                     np.float16, np.float32, np.float64, np.complex64, np.complex128):
    _spell_dtype(_constructor)


def scalar_argument(x: Any, what: str) -> Value:
    """x as a value of rank 0; arrays are a TypeError, as in NumPy."""
    value = as_value(x)
    if value.rank:
        raise RuleError(f"{what} takes a number, not {describe(x)}: only 0-dimensional arrays can be converted to "
                        "Python scalars", kind=TypeError, code="E309")
    return value


@spelled(float)
def python_float(x: Any = 0.0) -> Value:
    value = scalar_argument(x, "float()")
    if value.type.kind == "c":
        raise RuleError("float() does not take a complex number", kind=TypeError, code="E309", help="take x.real")
    return cast(value, "float64")


@spelled(int)
def python_int(x: Any = 0) -> Value:
    value = scalar_argument(x, "int()")
    if value.type.kind == "c":
        raise RuleError("int() does not take a complex number", kind=TypeError, code="E309", help="take x.real")
    return cast(value, "int64")


@spelled(bool, operator.truth)
def python_bool(x: Any = False) -> Value:
    return truth(scalar_argument(x, "bool()"))


@spelled(complex)
def python_complex(real: Any = 0, imag: Any = 0) -> Value:
    re, im = scalar_argument(real, "complex()"), scalar_argument(imag, "complex()")
    if "c" in (re.type.kind, im.type.kind):
        return cast(re, "complex128") + cast(im, "complex128") * const(1j, Type("complex128"))
    return ops.make_complex(cast(re, "float64"), cast(im, "float64"))


@spelled(np.real, np.ndarray.real)
def numpy_real(val: Any) -> Value:
    x = as_value(val)
    return ops.real(x) if x.type.kind == "c" else x


@spelled(np.imag, np.ndarray.imag)
def numpy_imag(val: Any) -> Value:
    x = as_value(val)
    return ops.imag(x) if x.type.kind == "c" else const(0, x.type)


spell_ufunc(np.conjugate, lambda x: ops.conj(x) if x.type.kind == "c" else x)


@spelled(np.ndarray.conj, np.ndarray.conjugate)
def conj_method(a: Any) -> Value:
    """Unlike the function, the method leaves truth values as they are."""
    x = as_value(a)
    return ops.conj(x) if x.type.kind == "c" else x


@spelled(np.angle)
def numpy_angle(z: Any, deg: bool = False) -> Value:
    z = as_value(z)
    if z.type.kind == "c":
        angle = ops.arctan2(ops.imag(z), ops.real(z))
    else:
        angle = ops.arctan2(*ufunc_operands(np.arctan2, (0, z)))
    return angle * (180 / np.pi) if deg else angle


@spelled(np.iscomplex)
def numpy_iscomplex(x: Any) -> Value:
    return numpy_imag(x).ne(0)


@spelled(np.isreal)
def numpy_isreal(x: Any) -> Value:
    return numpy_imag(x).eq(0)


@spelled(np.iscomplexobj)
def numpy_iscomplexobj(x: Any) -> bool:
    return np.dtype(result_dtype(x)).kind == "c"


@spelled(np.isrealobj)
def numpy_isrealobj(x: Any) -> bool:
    return not numpy_iscomplexobj(x)
