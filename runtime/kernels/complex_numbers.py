"""Complex numbers where Numba's own operations differ from NumPy's: division by zero is no exception, and hyperbolic
functions do not overflow on the way."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

COMPLEX = (types.complex64, types.complex128)


def complex_divide(x: Any, y: Any) -> Any:
    """x / y of complex numbers of one type, by Smith's algorithm as in NumPy; a part over 0 is infinite or NaN.

    An integer is taken as a number of the other operand's type.
    """
    with np.errstate(all="ignore"):
        return np.divide(x, y)


class DivideTemplate(AbstractTemplate):
    key = complex_divide

    def generic(self, operands: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        kinds = {types.unliteral(o) for o in operands if not isinstance(o, types.Integer)}
        if len(operands) != 2 or keywords or len(kinds) != 1 or not kinds <= set(COMPLEX):
            return None
        (kind,) = kinds
        return Signature(kind, (kind, kind), None)


infer_global(complex_divide, types.Function(DivideTemplate))


@lower_builtin(complex_divide, types.Complex, types.Complex)
def lower_divide(context: Any, builder: Any, signature: Signature, operands: Any) -> ir.Value:
    """Without branches, so that loops over it vectorise."""
    kind = signature.return_type
    x, y = (context.make_complex(builder, kind, value=v) for v in operands)
    smaller = builder.fcmp_ordered("<", _size(builder, y.real), _size(builder, y.imag))
    by, rest = builder.select(smaller, y.imag, y.real), builder.select(smaller, y.real, y.imag)
    first, second = builder.select(smaller, x.imag, x.real), builder.select(smaller, x.real, x.imag)
    ratio = builder.fdiv(rest, by)
    scale = builder.fdiv(by.type(1.0), builder.fadd(by, builder.fmul(rest, ratio)))
    real = builder.fmul(builder.fadd(first, builder.fmul(second, ratio)), scale)
    imag = builder.fmul(builder.fsub(second, builder.fmul(first, ratio)), scale)
    imag = builder.select(smaller, builder.fneg(imag), imag)
    is_zero = builder.fcmp_ordered("==", _size(builder, by), by.type(0.0))
    result = context.make_complex(builder, kind)
    result.real = builder.select(is_zero, builder.fdiv(x.real, _size(builder, by)), real)
    result.imag = builder.select(is_zero, builder.fdiv(x.imag, _size(builder, by)), imag)
    return result._getvalue()


def _size(builder: Any, x: ir.Value) -> ir.Value:
    return builder.call(builder.module.declare_intrinsic("llvm.fabs", [x.type]), [x])


# Elementary functions as Python that Numba compiles, for one type each ------------------------------------------------


def exp(z: Any) -> Any:
    size = math.exp(z.real)
    if z.imag == 0.0:
        return complex(size, z.imag)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


def sinh(z: Any) -> Any:
    odd, even = math.sinh(z.real), math.cosh(z.real)
    if z.imag == 0.0:
        return complex(odd, z.imag)
    return complex(odd * math.cos(z.imag), even * math.sin(z.imag))


def cosh(z: Any) -> Any:
    odd, even = math.sinh(z.real), math.cosh(z.real)
    if z.imag == 0.0:
        return complex(even, z.imag * math.copysign(1.0, z.real))
    return complex(even * math.cos(z.imag), odd * math.sin(z.imag))


def tanh(z: Any) -> Any:
    """Kahan, "Branch cuts for complex elementary functions" (1987); far out, where sinh overflows, its limit."""
    x, y = z.real, z.imag
    if abs(x) > 18.0:
        return complex(math.copysign(1.0, x), 4.0 * math.sin(y) * math.cos(y) * math.exp(-2.0 * abs(x)))
    t, s = math.tan(y), math.sinh(x)
    b = 1.0 + t * t
    d = 1.0 + b * s * s
    return complex(b * math.sqrt(1.0 + s * s) * s / d, t / d)


def tan(z: Any) -> Any:
    """-i tanh(i z)."""
    x, y = z.real, z.imag
    if abs(y) > 18.0:
        return complex(4.0 * math.sin(x) * math.cos(x) * math.exp(-2.0 * abs(y)), math.copysign(1.0, y))
    t, s = math.tan(x), math.sinh(y)
    b = 1.0 + t * t
    d = 1.0 + b * s * s
    return complex(t / d, b * math.sqrt(1.0 + s * s) * s / d)
