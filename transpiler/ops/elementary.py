"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions, each a row of the table.

Derivatives use the result where that is cheaper, and avoid overflow and cancellation where they can.  At the origin
`hypot` and `arctan2` have slope 0; `logaddexp` of two equal infinities shares equally.  All but `cbrt`, `hypot`,
`arctan2`, `logaddexp`, `logaddexp2` and `expit` take complex numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Value
from .families import elementwise
from .samples import between, complex_plane, corner

INF = float("inf")
LN2, LN10 = math.log(2.0), math.log(10.0)


def _times(name: str, factor: float, after: bool) -> Any:
    """StableHLO for name(x) * factor, or name(x * factor)."""
    def emit(h: Any, x: Any) -> Any:
        scale = h.constant(factor, x.type)
        return h.op("multiply", h.op(name, x), scale) if after else h.op(name, h.op("multiply", x, scale))
    return emit


# ---------------------------------------------------------------------------------------------------------------
# exponentials and logarithms: exponentials overflow at finite x, where 1 / (1 + exp(x)) has the slope 0

exp = elementwise(
    "exp", np.exp, partials=lambda x, r: (r,), singular=(0,), scalar="exp({0})", stablehlo="exponential",
    kinds="fc", cost=10,
    samples=[*between(-3, 3), complex_plane(), corner([-INF, INF, 710.0, 0.0])])

exp2 = elementwise(
    "exp2", np.exp2, partials=lambda x, r: (LN2 * r,), singular=(0,), scalar="exp2({0})",
    stablehlo=_times("exponential", LN2, after=False), kinds="fc", cost=10, samples=between(-3, 3), doc="2 ** x.")

expm1 = elementwise(
    "expm1", np.expm1, partials=lambda x, r: (r + 1,), singular=(0,), scalar="expm1({0})",
    stablehlo="exponential_minus_one", kinds="fc", cost=12,
    samples=[*between(-3, 3), *between(-1e-8, 1e-8)[:1], complex_plane()],
    doc="exp(x) - 1 without cancellation near 0.")

log = elementwise(
    "log", np.log, partials=lambda x, r: (1 / x,), singular=(0,), scalar="log({0})", stablehlo="log", kinds="fc",
    cost=10, samples=[*between(0.2, 4), complex_plane(), corner([0.0, 1.0, INF])])

log2 = elementwise(
    "log2", np.log2, partials=lambda x, r: (1 / (LN2 * x),), singular=(0,), scalar="log2({0})",
    stablehlo=_times("log", 1 / LN2, after=True), kinds="fc", cost=10, samples=[*between(0.2, 4), corner([0.0, 8.0])])

log10 = elementwise(
    "log10", np.log10, partials=lambda x, r: (1 / (LN10 * x),), singular=(0,), scalar="log10({0})",
    stablehlo=_times("log", 1 / LN10, after=True), kinds="fc", cost=10,
    samples=[*between(0.2, 4), complex_plane(), corner([0.0, 1000.0])])

log1p = elementwise(
    "log1p", np.log1p, partials=lambda x, r: (1 / (1 + x),), singular=(0,), scalar="log1p({0})",
    stablehlo="log_plus_one", kinds="fc", cost=12,
    samples=[*between(-0.8, 3), *between(-1e-8, 1e-8)[:1], complex_plane(), corner([-1.0, 0.0])],
    doc="log(1 + x) without cancellation near 0.")


def _expit(x: Any) -> Any:
    """Without overflow: both branches use exp(-|x|)."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small / (1 + small), 1 / (1 + small)).astype(x.dtype)[()]


expit = elementwise(
    "expit", _expit, partials=lambda x, r: (r * (1 - r),), scalar="expit({0})", stablehlo="logistic",
    kinds="f", cost=12, samples=[*between(-4, 4), corner([-INF, INF, 800.0, -800.0])],
    doc="The logistic function 1 / (1 + exp(-x)).")


def _signed_gap(x: Value, y: Value) -> Value:
    """x - y, which is 0 also for two equal infinities."""
    same = ops.isinf(x) & x.eq(y)
    return ops.select(same, const(0, x.type), x - y)


def _logaddexp_partials(x: Value, y: Value, r: Value) -> tuple[Value, Value]:
    gap = _signed_gap(x, y)
    return ops.expit(gap), ops.expit(-gap)


def _logaddexp2_partials(x: Value, y: Value, r: Value) -> tuple[Value, Value]:
    gap = LN2 * _signed_gap(x, y)
    return ops.expit(gap), ops.expit(-gap)


def _logaddexp_hlo(base: float) -> Any:
    def emit(h: Any, x: Any, y: Any) -> Any:
        """max + log(1 + exp(-|gap|)), and max + log(2) for equal operands, infinite ones among them."""
        top = h.op("maximum", x, y)
        gap = h.op("multiply", h.op("negate", h.op("abs", h.op("subtract", x, y))), h.constant(base, x.type))
        gap = h.select(h.compare("EQ", x, y), h.constant(0, x.type), gap)
        tail = h.op("log_plus_one", h.op("exponential", gap))
        return h.op("add", top, h.op("divide", tail, h.constant(base, x.type)))
    return emit


logaddexp = elementwise(
    "logaddexp", np.logaddexp, partials=_logaddexp_partials, scalar="logaddexp({0}, {1})",
    stablehlo=_logaddexp_hlo(1.0), kinds="f", cost=20,
    samples=[*between(-3, 3, arity=2), corner([-INF, -INF, INF, 1, 2], [-INF, 1, INF, -INF, 2])],
    doc="log(exp(x) + exp(y)).")

logaddexp2 = elementwise(
    "logaddexp2", np.logaddexp2, partials=_logaddexp2_partials, scalar="logaddexp2({0}, {1})",
    stablehlo=_logaddexp_hlo(LN2), kinds="f", cost=20,
    samples=[*between(-3, 3, arity=2), corner([-INF, -INF, INF, 1, 2], [-INF, 1, INF, -INF, 2])],
    doc="log2(2 ** x + 2 ** y).")


# ---------------------------------------------------------------------------------------------------------------
# roots

sqrt = elementwise(
    "sqrt", np.sqrt, partials=lambda x, r: (0.5 / r,), singular=(0,), scalar="np.sqrt({0})", stablehlo="sqrt",
    kinds="fc", cost=5, samples=[*between(0.2, 4), complex_plane(), corner([0.0, 1.0, INF])])

cbrt = elementwise(
    "cbrt", np.cbrt, partials=lambda x, r: (1 / (3 * (r * r)),), singular=(0,), scalar="cbrt({0})", stablehlo="cbrt",
    kinds="f", cost=15, samples=[*between(0.2, 4), *between(-4, -0.2), corner([0.0, 1.0])], doc="The real cube root.")


def _hypot_partials(x: Value, y: Value, r: Value) -> tuple[Value, Value]:
    at_origin, zero = r.eq(0), const(0, r.type)
    return ops.select(at_origin, zero, x / r), ops.select(at_origin, zero, y / r)


def _hypot_hlo(h: Any, x: Any, y: Any) -> Any:
    """Scaled by the greater, so that squares neither overflow nor vanish."""
    x, y = h.op("abs", x), h.op("abs", y)
    great, small = h.op("maximum", x, y), h.op("minimum", x, y)
    plain = h.op("and", h.compare("NE", great, h.constant(0, x.type)), h.op("is_finite", great,
                                                                          type=great.type.with_dtype("bool")))
    ratio = h.op("divide", small, h.select(plain, great, h.constant(1, x.type)))
    scaled = h.op("multiply", great, h.op("sqrt", h.op("add", h.op("multiply", ratio, ratio),
                                                        h.constant(1, x.type))))
    return h.select(plain, scaled, great)


hypot = elementwise(
    "hypot", np.hypot, partials=_hypot_partials, scalar="hypot({0}, {1})", stablehlo=_hypot_hlo,
    kinds="f", cost=10, samples=[*between(0.3, 3, arity=2), corner([0, 3, 0], [0, 0, -2]),
                                 corner([1e200, 1e-200], [1e200, 1e-200])],
    doc="sqrt(x*x + y*y) without overflow.  Slope 0 at the origin.")


# ---------------------------------------------------------------------------------------------------------------
# trigonometric functions

sin = elementwise(
    "sin", np.sin, partials=lambda x, r: (ops.cos(x),), scalar="sin({0})", stablehlo="sine", kinds="fc", cost=12,
    samples=[*between(-4, 4), complex_plane()])

cos = elementwise(
    "cos", np.cos, partials=lambda x, r: (-ops.sin(x),), scalar="cos({0})", stablehlo="cosine", kinds="fc",
    cost=12, samples=[*between(-4, 4), complex_plane()])

tan = elementwise(
    "tan", np.tan, partials=lambda x, r: (1 + r * r,), scalar="tan({0})", stablehlo="tan", kinds="fc", cost=20,
    samples=[*between(-1.3, 1.3), complex_plane()])

arcsin = elementwise(
    "arcsin", np.arcsin, partials=lambda x, r: (1 / ops.sqrt((1 - x) * (1 + x)),), singular=(0,),
    scalar="arcsin({0})", stablehlo="chlo.asin", kinds="fc", cost=15,
    samples=[*between(-0.9, 0.9), complex_plane(), corner([-1.0, 1.0])])

arccos = elementwise(
    "arccos", np.arccos, partials=lambda x, r: (-1 / ops.sqrt((1 - x) * (1 + x)),), singular=(0,),
    scalar="arccos({0})", stablehlo="chlo.acos", kinds="fc", cost=15,
    samples=[*between(-0.9, 0.9), complex_plane(), corner([-1.0, 1.0])])

arctan = elementwise(
    "arctan", np.arctan, partials=lambda x, r: (1 / (1 + x * x),), scalar="arctan({0})", stablehlo="chlo.atan",
    kinds="fc", cost=12, samples=[*between(-3, 3), complex_plane(scale=0.7), corner([-INF, INF, 1e200])])


def _arctan2_partials(y: Value, x: Value, r: Value) -> tuple[Value, Value]:
    """x / h**2 and -y / h**2 for h = hypot(x, y), divided one after the other against overflow."""
    h = ops.hypot(x, y)
    at_origin, zero = h.eq(0), const(0, h.type)
    return ops.select(at_origin, zero, x / h / h), ops.select(at_origin, zero, -(y / h / h))


arctan2 = elementwise(
    "arctan2", np.arctan2, partials=_arctan2_partials, singular=(0, 1), scalar="arctan2({0}, {1})",
    stablehlo="atan2", kinds="f", cost=20,
    samples=[*between(0.3, 3, arity=2), *between(-3, -0.3, arity=2), corner([0, 0, 0, 1, -0.0], [0, 1, -1, 0, -1])],
    doc="The angle of the point (x, y) for arguments y, x.  Slope 0 at the origin.")


# ---------------------------------------------------------------------------------------------------------------
# hyperbolic functions

sinh = elementwise(
    "sinh", np.sinh, partials=lambda x, r: (ops.cosh(x),), singular=(0,), scalar="sinh({0})", stablehlo="chlo.sinh",
    kinds="fc", cost=15, samples=[*between(-3, 3), complex_plane()])

cosh = elementwise(
    "cosh", np.cosh, partials=lambda x, r: (ops.sinh(x),), singular=(0,), scalar="cosh({0})", stablehlo="chlo.cosh",
    kinds="fc", cost=15, samples=[*between(-3, 3), complex_plane()])

tanh = elementwise(
    "tanh", np.tanh, partials=lambda x, r: (1 - r * r,), scalar="tanh({0})", stablehlo="tanh", kinds="fc",
    cost=12, samples=[*between(-3, 3), complex_plane(), corner([-INF, INF, 1000.0])])

arcsinh = elementwise(
    "arcsinh", np.arcsinh, partials=lambda x, r: (1 / ops.sqrt(x * x + 1),), scalar="arcsinh({0})",
    stablehlo="chlo.asinh", kinds="fc", cost=15, samples=[*between(-3, 3), complex_plane(scale=0.7)])


def _arccosh_partials(x: Value, r: Value) -> tuple[Value]:
    if x.type.kind == "c":         # two roots, so that the cut lies where that of arccosh does
        return (1 / (ops.sqrt(x - 1) * ops.sqrt(x + 1)),)
    return (1 / ops.sqrt((x - 1) * (x + 1)),)


arccosh = elementwise(
    "arccosh", np.arccosh, partials=_arccosh_partials, singular=(0,), scalar="arccosh({0})",
    stablehlo="chlo.acosh", kinds="fc", cost=15, samples=[*between(1.2, 4), complex_plane(), corner([1.0, 2.0])])

arctanh = elementwise(
    "arctanh", np.arctanh, partials=lambda x, r: (1 / ((1 - x) * (1 + x)),), singular=(0,),
    scalar="arctanh({0})", stablehlo="chlo.atanh", kinds="fc", cost=15,
    samples=[*between(-0.9, 0.9), complex_plane(scale=0.7), corner([-1.0, 1.0])])
