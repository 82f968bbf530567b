"""Special functions of mathematics: error functions, gamma functions, entropies and sinc, as SciPy defines them.

`xlogy(x, y)`, `xlog1py(x, y)` and `entr(x)` are 0 where x = 0, and their slopes there are the limits: the slope in y
is 0, the slope in x may be infinite.  The reference values are SciPy's, which is imported when first asked for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Value
from ..ir.types import Type
from .base import Into, RuleError, Sample
from .families import Elementwise, elementwise, register
from .samples import between, corner

INF, NAN = float("inf"), float("nan")
HIGHEST_POLYGAMMA, HIGHEST_SINC = 30, 20        # orders that the kernels have


def _check_order(n: int, highest: int, what: str) -> None:
    if not 0 <= n <= highest:
        raise RuleError(f"the derivative of order {n} of {what} is not supported (0 to {highest} are)",
                        kind=NotImplementedError, code="E202")


def scipy_reference(name: str) -> Callable[..., Any]:
    """SciPy's function of that name, in the dtype of the first operand."""
    def call(*args: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*args).astype(args[0].dtype)[()]
    return call


# ---------------------------------------------------------------------------------------------------------------
# error functions

erf = elementwise(
    "erf", scipy_reference("erf"), partials=lambda x, r: (2 / math.sqrt(math.pi) * ops.exp(-(x * x)),),
    scalar="erf({0})", stablehlo="chlo.erf", kinds="f", cost=20, samples=[*between(-2, 2), corner([INF, -INF, 0.0])],
    doc="The error function.")

erfc = elementwise(
    "erfc", scipy_reference("erfc"), partials=lambda x, r: (-2 / math.sqrt(math.pi) * ops.exp(-(x * x)),),
    scalar="erfc({0})", stablehlo="chlo.erfc", kinds="f", cost=20, samples=[*between(-2, 3), corner([INF, -INF, 0.0])],
    doc="1 - erf(x) without cancellation.")

erfinv = elementwise(
    "erfinv", scipy_reference("erfinv"), partials=lambda x, r: (math.sqrt(math.pi) / 2 * ops.exp(r * r),),
    singular=(0,), scalar="erfinv({0})", stablehlo="chlo.erf_inv", kinds="f", cost=25,
    samples=[*between(-0.9, 0.9), corner([-1.0, 0.0, 1.0])], doc="The inverse of erf on [-1, 1].")


# ---------------------------------------------------------------------------------------------------------------
# gamma functions

gammaln = elementwise(
    "gammaln", scipy_reference("gammaln"), partials=lambda x, r: (ops.digamma(x),), singular=(0,),
    scalar="gammaln({0})", stablehlo="chlo.lgamma", kinds="f", cost=40,
    samples=[*between(0.3, 6), *between(-0.9, -0.1)[:1], corner([1.0, 2.0])], doc="log(abs(gamma(x))).")

digamma = elementwise(
    "digamma", scipy_reference("digamma"), partials=lambda x, r: (ops.polygamma(x, n=1),), singular=(0,),
    scalar="digamma({0})", stablehlo="chlo.digamma", kinds="f", cost=40,
    samples=[*between(0.3, 6), *between(-0.9, -0.1)[:1]], doc="The derivative of log(gamma(x)).")


@register
class Polygamma(Elementwise):
    """The n-th derivative of digamma, for n >= 0 known while transpiling."""

    name = "polygamma"
    kinds = "f"
    cost = 60

    def infer(self, x: Type, *, n: int, **params: Any) -> Type:  # type: ignore[override]
        _check_order(n, HIGHEST_POLYGAMMA, "digamma")
        return super().infer(x)

    def reference(self, x: Any, *, n: int, **params: Any) -> Any:
        from scipy import special

        return np.asarray(special.polygamma(n, x)).astype(x.dtype)[()]

    @staticmethod
    def scalar(x: Type, *, n: int) -> str:
        return f"polygamma({n}, {{0}})"

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, n: int,  # type: ignore
            **params: Any) -> Any:
        return self._product(tangents[0], ops.polygamma(args[0], n=n + 1), True)  # type: ignore[arg-type]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, n: int,  # type: ignore
            **params: Any) -> list[Value | Into | None]:
        return [self._product(ct, ops.polygamma(args[0], n=n + 1), True)]

    def stablehlo(self, h: Any, x: Any, *, n: int, **params: Any) -> Any:
        return h.op("chlo.polygamma", h.constant(n, x.type), x, type=x.type)

    def samples(self) -> list[Sample]:
        return [s for n in (1, 2, 3) for s in between(0.5, 6, n=n)]


# ---------------------------------------------------------------------------------------------------------------
# logarithms with a factor or a domain


def _logit_hlo(h: Any, x: Any) -> Any:
    return h.op("subtract", h.op("log", x), h.op("log_plus_one", h.op("negate", x)))


logit = elementwise(
    "logit", scipy_reference("logit"), partials=lambda x, r: (1 / (x * (1 - x)),), singular=(0,), scalar="logit({0})",
    stablehlo=_logit_hlo, kinds="f", cost=15, samples=[*between(0.1, 0.9), corner([0.0, 1.0, 0.5])],
    doc="log(x / (1 - x)), the inverse of expit.")


def _ratio(x: Value, y: Value) -> Value:
    """x / y, and 0 for 0 / 0."""
    return ops.select(x.eq(0) & y.eq(0), const(0, x.type), x / y)


def _times_log_hlo(log: str) -> Any:
    def emit(h: Any, x: Any, y: Any) -> Any:
        zero = h.constant(0, x.type)
        vanishes = h.op("and", h.compare("EQ", x, zero), h.compare("EQ", y, y))
        return h.select(vanishes, zero, h.op("multiply", x, h.op(log, y)))
    return emit


xlogy = elementwise(
    "xlogy", scipy_reference("xlogy"), partials=lambda x, y, r: (ops.log(y), _ratio(x, y)), singular=(0, 1),
    scalar="xlogy({0}, {1})", stablehlo=_times_log_hlo("log"), kinds="f", cost=12,
    samples=[*between(0.3, 3, arity=2), corner([0, 0, 0, 2], [0, 1, INF, 1])],
    doc="x * log(y), which is 0 where x is 0.")

xlog1py = elementwise(
    "xlog1py", scipy_reference("xlog1py"), partials=lambda x, y, r: (ops.log1p(y), _ratio(x, 1 + y)), singular=(0, 1),
    scalar="xlog1py({0}, {1})", stablehlo=_times_log_hlo("log_plus_one"), kinds="f", cost=14,
    samples=[*between(-0.5, 3, arity=2), corner([0, 0, 0, 2], [-1, 0, INF, 0])],
    doc="x * log1p(y), which is 0 where x is 0.")


def _entr_partials(x: Value, r: Value) -> tuple[Value]:
    return (ops.select(x < 0, const(0, x.type), -1 - ops.log(x)),)


def _entr_hlo(h: Any, x: Any) -> Any:
    zero = h.constant(0, x.type)
    inside = h.op("negate", h.op("multiply", x, h.op("log", x)))
    domain = h.select(h.compare("EQ", x, zero), zero, inside)
    return h.select(h.compare("LT", x, zero), h.constant(-INF, x.type), domain)


entr = elementwise(
    "entr", scipy_reference("entr"), partials=_entr_partials, singular=(0,), scalar="entr({0})", stablehlo=_entr_hlo,
    kinds="f", cost=12, samples=[*between(0.2, 3), corner([0.0, -1.0, 1.0])],
    doc="-x * log(x), 0 at 0 and -inf below, where its slope is 0.")


# ---------------------------------------------------------------------------------------------------------------
# sinc


def sinc_series(n: int) -> tuple[float, list[float]]:
    """Where and how the n-th derivative of f(u) = sin(u) / u is summed from its Taylor series.

    Returns the bound on |u| below which the series is used, and the coefficients in u**2 of
    f^(n)(u) = u**(n % 2) * sum_j c[j] * u**(2*j), where f^(n)(u) = sum_k (-1)**k u**(2k-n) / ((2k-n)! (2k+1)).
    Above the bound (n + 2) / 2 the recurrence u f^(n) + n f^(n-1) = sin(u + n pi/2) loses no accuracy, because
    n! <= ((n + 1) / 2)**n; below it the terms are at most exp(bound) times the result.
    """
    bound = (n + 2) / 2
    found: list[float] = []
    k = (n + 1) // 2
    while True:
        power = 2 * k - n
        found.append((-1.0) ** k / (math.factorial(power) * (2 * k + 1)))
        if bound ** power / math.factorial(power) < 1e-18:
            return bound, found
        k += 1


def sinc_derivative_of(x: Any, n: int) -> Any:
    """The n-th derivative of np.sinc, in float64: sin(pi x) / (pi x) differentiated n times."""
    if n == 0:
        return np.sinc(x)
    u = np.pi * np.asarray(x, "float64")
    bound, coefficients = sinc_series(n)
    near = np.where(np.abs(u) < bound, u, 0.0)
    square, series = near * near, np.zeros_like(u)
    for c in reversed(coefficients):
        series = series * square + c
    if n % 2:
        series = series * near
    far = np.where(np.abs(u) < bound, bound, u)
    sine, cosine = np.sin(far), np.cos(far)
    waves = (sine, cosine, -sine, -cosine)
    value = sine / far
    for m in range(1, n + 1):
        value = (waves[m % 4] - m * value) / far
    return np.pi ** n * np.where(np.abs(u) < bound, series, value)


@register
class SincDerivative(Elementwise):
    """The n-th derivative of np.sinc(x) = sin(pi x) / (pi x), accurate at and near 0 for every n."""

    name = "sinc_derivative"
    kinds = "f"
    cost = 30

    def infer(self, x: Type, *, n: int, **params: Any) -> Type:  # type: ignore[override]
        _check_order(n, HIGHEST_SINC, "np.sinc")
        return super().infer(x)

    def reference(self, x: Any, *, n: int, **params: Any) -> Any:
        return np.asarray(sinc_derivative_of(x, n)).astype(x.dtype)[()]

    @staticmethod
    def scalar(x: Type, *, n: int) -> str:
        return f"sinc_derivative({n}, {{0}})" if n else "sinc({0})"

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, n: int,  # type: ignore
            **params: Any) -> Any:
        return self._product(tangents[0], ops.sinc_derivative(args[0], n=n + 1), False,  # type: ignore[arg-type]
                             forward=True)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, n: int,  # type: ignore
            **params: Any) -> list[Value | Into | None]:
        return [self._product(ct, ops.sinc_derivative(args[0], n=n + 1), False)]

    def stablehlo(self, h: Any, x: Any, *, n: int, **params: Any) -> Any:
        def number(value: float) -> Any:
            return h.constant(value, x.type)

        u = h.op("multiply", x, number(math.pi))
        bound, coefficients = sinc_series(n)
        if n == 0:
            bound, coefficients = 0.0, [1.0]
            is_near = h.compare("EQ", u, number(0))
        else:
            is_near = h.compare("LT", h.op("abs", u), number(bound))
        near = h.select(is_near, u, number(0))
        square, series = h.op("multiply", near, near), number(0)
        for c in reversed(coefficients):
            series = h.op("add", h.op("multiply", series, square), number(c))
        if n % 2:
            series = h.op("multiply", series, near)
        far = h.select(is_near, number(1), u)
        sine, cosine = h.op("sine", far), h.op("cosine", far)
        waves = (sine, cosine, h.op("negate", sine), h.op("negate", cosine))
        value = h.op("divide", sine, far)
        for m in range(1, n + 1):
            value = h.op("divide", h.op("subtract", waves[m % 4], h.op("multiply", number(m), value)), far)
        return h.op("multiply", h.select(is_near, series, value), number(math.pi ** n))

    def samples(self) -> list[Sample]:
        return [s for n in (0, 1, 2, 5) for s in (*between(-3, 3, n=n), *between(-0.4, 0.4, n=n)[:1])] + [
            corner([0.0, 1e-8, 1.0, -2.0], n=n) for n in (0, 1, 2, 4)]
