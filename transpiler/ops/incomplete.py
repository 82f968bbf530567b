"""The incomplete gamma and beta functions, the normal distribution's, and what they are made of, as SciPy defines them.

Derivatives with respect to the shapes are operations of their own, up to second order (`kernels.incomplete_slopes`
has their formulas); those of the third order are refused.  In what is integrated, derivatives are those of the density.
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
from . import incomplete_beta_stablehlo as beta_hlo
from . import incomplete_stablehlo as hlo
from . import normal_stablehlo as normal_hlo
from . import quantiles_stablehlo as quantiles_hlo
from .base import Into, RuleError, Sample
from .families import Elementwise, elementwise, register
from .samples import between, corner
from .special import INF
from .spelling import cast, promote, spell_scipy, spelled

HIGHEST = 2         # order of a derivative with respect to shapes


def in_double(call: str) -> Callable[..., str]:
    """Source of a kernel that computes in float64."""
    def scalar(*operands: Type, **params: Any) -> str:
        is_double = operands[-1].dtype == "float64"
        places = (f"{{{k}}}" if is_double else f"np.float64({{{k}}})" for k in range(len(operands)))
        text = call.format(*places, **params)
        return text if is_double else f"np.float32({text})"
    return scalar


def reference_in_double(name: str) -> Callable[..., Any]:
    """SciPy's function of that name, computed in float64."""
    def call(*args: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*(np.asarray(x, "float64") for x in args)).astype(args[0].dtype)[()]
    return call


def row(name: str, arity: int, **rules: Any) -> Elementwise:
    """A function of SciPy's whose kernel has its name and computes in float64."""
    operands = ", ".join(f"{{{k}}}" for k in range(arity))
    kernel = rules.pop("kernel", name)
    return elementwise(name, reference_in_double(name), scalar=in_double(f"{kernel}({operands})"),
                       kinds="f", cost=rules.pop("cost", 200), **rules)


class Slope(Elementwise):
    """An operation with orders of differentiation as parameters, of which the partials are of other orders."""

    kinds = "f"
    cost = 1000
    source: str
    orders: tuple[str, ...]

    def derivatives_left(self, **orders: Any) -> float:
        return HIGHEST - sum(orders[key] for key in self.orders)

    def infer(self, *operands: Type, **orders: Any) -> Type:
        if self.derivatives_left(**orders) < 0:
            raise RuleError(f"derivatives of {self.source} by its shapes are supported up to order {HIGHEST}",
                            kind=NotImplementedError, code="E202")
        return super().infer(*operands)

    def reference(self, *operands: Any, **orders: Any) -> Any:
        flat = [np.ravel(x).astype("float64") for x in operands]
        found = [self.value(*map(float, point), **orders) for point in zip(*flat)]
        return np.array(found, operands[0].dtype).reshape(operands[0].shape)[()]

    def value(self, *point: float, **orders: int) -> float:
        """Its value at one point, from another source than the kernel's."""
        raise NotImplementedError(self.name)

    def slopes(self, *operands: Value, result: Value, **orders: int) -> Sequence[Callable[[], Value] | None]:
        """The partial derivatives, each when it is asked for."""
        raise NotImplementedError(self.name)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **orders: Any) -> Any:
        total: Value | None = None
        for tangent, slope in zip(tangents, self.slopes(*args, result=result, **orders), strict=True):
            if tangent is not None and slope is not None:
                term = self._product(tangent, slope(), True, forward=True)
                total = term if total is None else total + term
        return total

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **orders: Any) -> list[Value | Into | None]:
        return [self._product(ct, slope(), True) if want and slope is not None else None
                for want, slope in zip(wanted, self.slopes(*args, result=result, **orders), strict=True)]


def _polynomial_in_shapes(density: Value, first: int, second: int, a: Value, b: Value, bends: Any) -> Value:
    """The derivative of a density, `first` times by one shape and `second` times by another, where its logarithm has
    the first derivatives `a` and `b` and the second ones `bends(i, j)`."""
    if first + second == 0:
        return density
    if first + second == 1:
        return density * (a if first else b)
    if first == second:
        return density * (a * b + bends(1, 1))
    one = a if first else b
    return density * (one * one + bends(first, second))


def _masked(at_edge: Value, value: Value) -> Value:
    return ops.select(at_edge, const(0, value.type), value)


# ---------------------------------------------------------------------------------------------------------------
# incomplete gamma


def gamma_density(a: Value, x: Value, order: int = 0) -> Value:
    """x**(a - 1) exp(-x) / gamma(a), differentiated `order` times by a."""
    log_x = ops.log(x)
    density = ops.exp((a - 1) * log_x - x - ops.gammaln(a))
    if order == 0:
        return ops.select(x.eq(0) & a.eq(1), const(1, x.type), density)
    slope = log_x - ops.digamma(a)
    found = _polynomial_in_shapes(density, order, 0, slope, slope, lambda i, j: -ops.polygamma(a, n=1))
    return _masked(density.eq(0), found)


gammainc = row(
    "gammainc", 2, stablehlo=hlo.gammainc_hlo, singular=(1,),
    partials=lambda a, x, r: (ops.gammainc_slope(a, x, order=1), gamma_density(a, x)),
    samples=[*between(0.4, 4, arity=2)[:2], corner([1.0, 2.0, 3.0], [0.0, INF, 800.0])],
    doc="The regularised lower incomplete gamma function P(a, x), for a > 0 and x >= 0.")

gammaincc = row(
    "gammaincc", 2, stablehlo=lambda h, a, x: hlo.gammainc_hlo(h, a, x, True), singular=(1,),
    partials=lambda a, x, r: (-ops.gammainc_slope(a, x, order=1), -gamma_density(a, x)),
    samples=[*between(0.4, 4, arity=2)[:1], corner([1.0, 2.0, 3.0], [0.0, INF, 800.0])],
    doc="1 - P(a, x) without cancellation.")


def integral(function: Callable[[Any], Any], x: float) -> float:
    """Of function(log(t)) over log(t) up to log(x), where it decays exponentially: by the trapezoidal rule in s with
    log(t) = log(x) - exp(pi/2 sinh(s)) (Takahasi and Mori, "Double exponential formulas", 1974)."""
    s, step = np.linspace(-4.5, 4.5, 577, retstep=True)
    z = np.exp(math.pi / 2 * np.sinh(s))
    log_t = math.log(x) - z
    with np.errstate(under="ignore", over="ignore"):
        values = function(log_t) * z * (math.pi / 2 * np.cosh(s))
    return float(np.sum(values) * step)


def _gamma_integral(order: int, a: float, x: float) -> float:
    """The derivative of that order of P(a, x) by a, as the integral of the density's."""
    from scipy import special

    def slope(log_t: Any) -> Any:
        density = np.exp(a * log_t - np.exp(log_t) - special.gammaln(a))
        first = log_t - special.digamma(a)
        return density * (first if order == 1 else first * first - special.polygamma(1, a))
    return integral(slope, x) if 0 < x < INF else 0.0


def _beta_integral(in_a: int, in_b: int, a: float, b: float, x: float) -> float:
    from scipy import special

    def slope(log_t: Any) -> Any:
        t = np.exp(log_t)
        both, bend = special.digamma(a + b), special.polygamma(1, a + b)
        density = np.exp(a * log_t + (b - 1) * np.log1p(-t) - special.betaln(a, b))
        by_a, by_b = log_t - special.digamma(a) + both, np.log1p(-t) - special.digamma(b) + both
        return density * {(1, 0): by_a, (0, 1): by_b, (1, 1): by_a * by_b + bend,
                          (2, 0): by_a ** 2 + bend - special.polygamma(1, a),
                          (0, 2): by_b ** 2 + bend - special.polygamma(1, b)}[in_a, in_b]
    return integral(slope, x) if 0 < x < 1 else 0.0


@register
class GammaincSlope(Slope):
    """The derivative of P(a, x) with respect to a, of order 1 or 2."""

    name, source, orders = "gammainc_slope", "the incomplete gamma function", ("order",)

    def stablehlo(self, h: Any, a: Any, x: Any, *, order: int) -> Any:  # type: ignore[override]
        return hlo.gammainc_slope_hlo(h, a, x, order)

    scalar = staticmethod(in_double("gammainc_slope({order}, {0}, {1})"))

    def value(self, *point: float, order: int, **orders: int) -> float:  # type: ignore[override]
        return _gamma_integral(order, *point)

    def slopes(self, a: Value, x: Value, *, result: Value, order: int,  # type: ignore[override]
               **orders: int) -> Sequence[Callable[[], Value] | None]:
        return (lambda: ops.gammainc_slope(a, x, order=order + 1)), (lambda: gamma_density(a, x, order))

    def samples(self) -> list[Sample]:
        return [*between(0.4, 4, arity=2, order=1)[:2], *between(0.4, 4, arity=2, order=2)[:1]]


@register
class LogGammaSlope(Slope):
    """The derivative of a gamma quantile's logarithm y with respect to the shape a, at fixed probability: -P_a / P_y,
    where P is of a and exp(y).  order=2: -P_aa / P_y, which the derivative of the first takes."""

    name, source, orders = "log_gamma_slope", "gamma quantiles", ("order",)

    def stablehlo(self, h: Any, a: Any, y: Any, *, order: int) -> Any:  # type: ignore[override]
        return hlo.log_gamma_slope_hlo(h, a, y, order)

    scalar = staticmethod(in_double("log_gamma_slope({order}, {0}, {1})"))

    def value(self, *point: float, order: int, **orders: int) -> float:  # type: ignore[override]
        a, y = point
        x = math.exp(y)
        return -_gamma_integral(order, a, x) / math.exp(a * y - x - math.lgamma(a))

    def slopes(self, a: Value, y: Value, *, result: Value, order: int,  # type: ignore[override]
               **orders: int) -> Sequence[Callable[[], Value] | None]:
        def of_a() -> Value:
            return ops.log_gamma_slope(a, y, order=2) - result * (y - ops.digamma(a))

        def of_y() -> Value:
            return ops.digamma(a) - y - result * (a - ops.exp(y))

        def refuse() -> Value:
            raise RuleError("derivatives of gamma quantiles by their shape are supported up to order 2",
                            kind=NotImplementedError, code="E202")
        return (of_a, of_y) if order == 1 else (refuse, refuse)

    def samples(self) -> list[Sample]:
        return between(0.4, 2, arity=2, order=1)[:2]


def _inverse_partials(sign: int) -> Callable[..., Any]:
    def partials(a: Value, p: Value, r: Value) -> tuple[Value, Value]:
        by_shape = r * ops.log_gamma_slope(a, ops.log(r), order=1)
        return _masked(r.eq(0) | r.eq(INF), by_shape), sign / gamma_density(a, r)
    return partials


gammaincinv = row(
    "gammaincinv", 2, stablehlo=quantiles_hlo.gammaincinv_hlo, partials=_inverse_partials(1), singular=(1,),
    samples=[*between(0.4, 0.9, arity=2)[:2]],
    doc="The x with P(a, x) = p.")

gammainccinv = row(
    "gammainccinv", 2, stablehlo=lambda h, a, q: quantiles_hlo.gammaincinv_hlo(h, a, q, True),
    partials=_inverse_partials(-1), singular=(1,), samples=[*between(0.4, 0.9, arity=2)[:1]],
    doc="The x with 1 - P(a, x) = q.")


# ---------------------------------------------------------------------------------------------------------------
# incomplete beta


def beta_density(a: Value, b: Value, x: Value, in_a: int = 0, in_b: int = 0) -> Value:
    """x**(a - 1) (1 - x)**(b - 1) / B(a, b), differentiated so many times by a and b."""
    log_x, log_y = ops.log(x), ops.log1p(-x)
    density = ops.exp(ops.xlogy(a - 1, x) + ops.xlog1py(b - 1, -x) - ops.betaln(a, b))
    if in_a + in_b == 0:
        return density
    both = ops.digamma(a + b)

    def bends(i: int, j: int) -> Value:
        shared = ops.polygamma(a + b, n=1)
        return shared if i == j else shared - ops.polygamma(a if i else b, n=1)

    found = _polynomial_in_shapes(density, in_a, in_b, log_x - ops.digamma(a) + both, log_y - ops.digamma(b) + both,
                                  bends)
    return _masked(density.eq(0), found)


def _slope(a: Value, b: Value, x: Value, in_a: int, in_b: int) -> Value:
    return ops.betainc_slope(a, b, x, in_a=in_a, in_b=in_b)


betainc = row(
    "betainc", 3, stablehlo=beta_hlo.betainc_hlo, singular=(2,),
    partials=lambda a, b, x, r: (_slope(a, b, x, 1, 0), _slope(a, b, x, 0, 1), beta_density(a, b, x)),
    samples=[*between(0.3, 0.95, arity=3)[:1], corner([1.0, 2.0, 1.0], [1.0, 3.0, 1.0], [0.0, 0.0, 1.0])],
    doc="The regularised incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1.")


@register
class BetaincSlope(Slope):
    """The derivative of I_x(a, b), `in_a` times with respect to a and `in_b` times to b."""

    name, source, orders = "betainc_slope", "the incomplete beta function", ("in_a", "in_b")

    def stablehlo(self, h: Any, a: Any, b: Any, x: Any, *, in_a: int, in_b: int) -> Any:  # type: ignore[override]
        return beta_hlo.betainc_hlo(h, a, b, x, in_a, in_b)

    scalar = staticmethod(in_double("betainc_slope({in_a}, {in_b}, {0}, {1}, {2})"))

    def value(self, *point: float, in_a: int, in_b: int, **orders: int) -> float:  # type: ignore[override]
        return _beta_integral(in_a, in_b, *point)

    def slopes(self, a: Value, b: Value, x: Value, *, result: Value, in_a: int,  # type: ignore[override]
               in_b: int, **orders: int) -> Sequence[Callable[[], Value] | None]:
        return ((lambda: _slope(a, b, x, in_a + 1, in_b)), (lambda: _slope(a, b, x, in_a, in_b + 1)),
                (lambda: beta_density(a, b, x, in_a, in_b)))

    def samples(self) -> list[Sample]:
        return [s for i, j in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
                for s in between(0.3, 0.95, arity=3, in_a=i, in_b=j)[:2 if i > j else 1]]


def _betaincinv_partials(a: Value, b: Value, p: Value, r: Value) -> tuple[Value, Value, Value]:
    density = beta_density(a, b, r)
    edge = r.eq(0) | r.eq(1)
    return (_masked(edge, -_slope(a, b, r, 1, 0) / density), _masked(edge, -_slope(a, b, r, 0, 1) / density),
            1 / density)


betaincinv = row(
    "betaincinv", 3, stablehlo=quantiles_hlo.betaincinv_hlo, partials=_betaincinv_partials, singular=(2,),
    samples=[*between(0.3, 0.95, arity=3)[:2]],
    doc="The x with I_x(a, b) = p.")


# ---------------------------------------------------------------------------------------------------------------
# gamma and beta


def _sum_hlo(h: Any, a: Any, b: Any) -> Any:
    logs = [h.op("chlo.lgamma", v) for v in (a, b, h.op("add", a, b))]
    return h.op("subtract", h.op("add", logs[0], logs[1]), logs[2])


gamma = row("gamma", 1, kernel="gamma_function", stablehlo=beta_hlo.gamma_hlo,
            partials=lambda x, r: (r * ops.digamma(x),), singular=(0,), cost=60,
            samples=[*between(0.3, 5), *between(-0.9, -0.1)[:1], corner([1.0, 2.0, 170.0])], doc="The gamma function.")


def _beta_partials(a: Value, b: Value, r: Value) -> tuple[Value, Value]:
    both = ops.digamma(a + b)
    return r * (ops.digamma(a) - both), r * (ops.digamma(b) - both)


beta = row("beta", 2, stablehlo=beta_hlo.beta_hlo, partials=_beta_partials, singular=(0, 1), cost=100,
           samples=[*between(0.3, 5, arity=2), corner([1.0, 2.0], [1.0, 1.0])], doc="gamma(a) gamma(b) / gamma(a + b).")


def _betaln_partials(a: Value, b: Value, r: Value) -> tuple[Value, Value]:
    both = ops.digamma(a + b)
    return ops.digamma(a) - both, ops.digamma(b) - both


betaln = row("betaln", 2, partials=_betaln_partials, singular=(0, 1), stablehlo=_sum_hlo, cost=100,
             samples=[*between(0.3, 5, arity=2), corner([1.0, 2.0], [1.0, 1.0])], doc="log(abs(beta(a, b))).")


# ---------------------------------------------------------------------------------------------------------------
# the normal distribution


def _ndtri_partials(p: Value, r: Value) -> tuple[Value]:
    return (math.sqrt(2 * math.pi) * ops.exp(r * r / 2),)


def _erfcx_partials(x: Value, r: Value) -> tuple[Value]:
    """0 at infinity, where the formula is infinity times 0."""
    return (_masked(r.eq(0), 2 * x * r - 2 / math.sqrt(math.pi)),)


erfcx = row("erfcx", 1, stablehlo=normal_hlo.erfcx_hlo, partials=_erfcx_partials, singular=(0,), cost=40,
            samples=[*between(-2, 4), corner([INF, 0.0])], doc="exp(x**2) erfc(x).")

log_ndtr = row("log_ndtr", 1, stablehlo=normal_hlo.log_ndtr_hlo,
               partials=lambda x, r: (math.sqrt(2 / math.pi) / ops.erfcx(x * -math.sqrt(0.5)),),
               singular=(0,), cost=60, samples=[*between(-4, 3), corner([0.0, -50.0, 40.0])],
               doc="The logarithm of the normal distribution function.")

ndtri = row("ndtri", 1, stablehlo=normal_hlo.ndtri_hlo, partials=_ndtri_partials, singular=(0,), cost=60,
            samples=[*between(0.05, 0.95), corner([0.0, 0.5, 1.0])], doc="The quantiles of the normal distribution.")


# ---------------------------------------------------------------------------------------------------------------
# SciPy's names

for _name, _op in (("gammainc", gammainc), ("gammaincc", gammaincc), ("gammaincinv", gammaincinv),
                   ("gammainccinv", gammainccinv), ("betainc", betainc), ("betaincinv", betaincinv), ("gamma", gamma),
                   ("beta", beta), ("betaln", betaln), ("erfcx", erfcx), ("log_ndtr", log_ndtr), ("ndtri", ndtri)):
    spell_scipy(_name, _op)

spell_scipy("betaincc", lambda a, b, x: ops.betainc(b, a, 1 - x))
spell_scipy("ndtr", lambda x: ops.erfc(x * -math.sqrt(0.5)) / 2)
spell_scipy("log_expit", lambda x: -ops.logaddexp(-x, const(0, x.type)))


@spelled(("scipy.special", "multigammaln"))
def scipy_multigammaln(a: Any, d: Any) -> Value:
    from .spelling import static_int
    size = static_int(d, "the dimension of multigammaln")
    (x,) = promote(a)
    x = x if x.type.is_inexact else cast(x, "float64")
    total = const(size * (size - 1) / 4 * math.log(math.pi), x.type)
    for k in range(size):
        total = total + ops.gammaln(x - k / 2)
    return total
