"""Rounding, and operations on the sign and the last place of floating-point numbers.

All rounding is piecewise constant: its derivative is 0, also at the jumps.  `copysign(x, y)` has slope
sign(x) * sign(y) in x (0 at x = 0) and 0 in y.  `nextafter(x, y)` moves with x: slope 1 in x and 0 in y.
`heaviside(x, h)` has slope 0 in x, and in h slope 1 where x = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Value
from .families import Elementwise, elementwise
from .samples import between, corner

INF, NAN = float("inf"), float("nan")


def _rounding(name: str, function: Any, stablehlo: str | Any, doc: str) -> Elementwise:
    return elementwise(name, function, partials=None, scalar=f"{name}({{0}})", stablehlo=stablehlo, kinds="f",
                       samples=[*between(-4, 4), corner([0.5, 1.5, 2.5, -0.5, -0.0, 2.0, INF, NAN])], doc=doc)


def _trunc_hlo(h: Any, x: Any) -> Any:
    return h.select(h.compare("LT", x, h.constant(0, x.type)), h.op("ceil", x), h.op("floor", x))


floor = _rounding("floor", np.floor, "floor", "The greatest whole number not above x.")
ceil = _rounding("ceil", np.ceil, "ceil", "The smallest whole number not below x.")
rint = _rounding("rint", np.rint, "round_nearest_even", "The nearest whole number, the even one of two.")
trunc = _rounding("trunc", np.trunc, _trunc_hlo, "The whole number next to x in the direction of 0.")


def _sign_of(y: Value) -> Value:
    """1 or -1 by the sign bit."""
    return ops.copysign(const(1, y.type), y)


def _copysign_hlo(h: Any, x: Any, y: Any) -> Any:
    whole = x.type.with_dtype("int32" if x.type.dtype == "float32" else "int64")
    negative = h.compare("LT", h.op("bitcast_convert", y, type=whole), h.constant(0, whole))
    size = h.op("abs", x)
    return h.select(negative, h.op("negate", size), size)


copysign = elementwise(
    "copysign", np.copysign, partials=lambda x, y, r: (ops.sign(x) * _sign_of(y), None),
    scalar="copysign({0}, {1})", stablehlo=_copysign_hlo, kinds="f",
    samples=[*between(0.5, 2, arity=2), *between(-2, -0.5, arity=2), corner([0, 1, -2, 1], [1, -0.0, 0.0, -INF])],
    doc="|x| with the sign of y.")

nextafter = elementwise(
    "nextafter", np.nextafter, partials=lambda x, y, r: (1, None), scalar="nextafter({0}, {1})",
    stablehlo="chlo.next_after", kinds="f",
    samples=[*between(-2, 2, arity=2), corner([0, 1, 1, INF], [1, 1, -INF, 0])],
    doc="The next floating-point number after x in the direction of y.")


def _heaviside_partials(x: Value, h: Value, r: Value) -> tuple[None, Value]:
    return None, ops.select(x.eq(0), const(1, x.type), const(0, x.type))


def _heaviside_hlo(h: Any, x: Any, at_zero: Any) -> Any:
    zero, one = h.constant(0, x.type), h.constant(1, x.type)
    step = h.select(h.compare("GT", x, zero), one, zero)
    return h.select(h.compare("EQ", x, zero), at_zero, h.select(h.compare("NE", x, x), x, step))


heaviside = elementwise(
    "heaviside", np.heaviside, partials=_heaviside_partials, scalar="heaviside({0}, {1})", stablehlo=_heaviside_hlo,
    kinds="f", samples=[*between(-2, 2, arity=2), corner([0.0, -0.0, 1.0, -1.0], [0.5, 0.25, 0.5, 0.5])],
    doc="0 below 0, 1 above, the second argument at 0.")
