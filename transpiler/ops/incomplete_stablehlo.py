"""Incomplete gamma functions, their derivatives by the shape, and gamma numbers, as StableHLO: loops over whole arrays
that run until the last element has settled.

The formulas are those of `kernels.incomplete_slopes` and `kernels.rejection`, in the dtype of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 20000


@dataclass(frozen=True)
class Number:
    """A value of StableHLO with Python's operators; Python's numbers become constants of its type."""

    h: Any
    value: Any

    def of(self, x: Any) -> Any:
        return x.value if isinstance(x, Number) else self.h.constant(x, self.value.type)

    def filled(self, number: float) -> Number:
        """An array of its type of equal elements."""
        return Number(self.h, self.of(number))

    def _op(self, name: str, *operands: Any) -> Number:
        return Number(self.h, self.h.op(name, *map(self.of, operands)))

    def __add__(self, other: Any) -> Number:
        return self._op("add", self, other)

    def __radd__(self, other: Any) -> Number:
        return self._op("add", other, self)

    def __sub__(self, other: Any) -> Number:
        return self._op("subtract", self, other)

    def __rsub__(self, other: Any) -> Number:
        return self._op("subtract", other, self)

    def __mul__(self, other: Any) -> Number:
        return self._op("multiply", self, other)

    def __rmul__(self, other: Any) -> Number:
        return self._op("multiply", other, self)

    def __truediv__(self, other: Any) -> Number:
        return self._op("divide", self, other)

    def __rtruediv__(self, other: Any) -> Number:
        return self._op("divide", other, self)

    def __neg__(self) -> Number:
        return self._op("negate", self)

    def __abs__(self) -> Number:
        return self._op("abs", self)

    def __and__(self, other: Number) -> Number:
        return self._op("and", self, other)

    def __or__(self, other: Number) -> Number:
        return self._op("or", self, other)

    def __invert__(self) -> Number:
        return self._op("not", self)

    def compare(self, direction: str, other: Any) -> Number:
        return Number(self.h, self.h.compare(direction, self.value, self.of(other)))

    def __lt__(self, other: Any) -> Number:
        return self.compare("LT", other)

    def __le__(self, other: Any) -> Number:
        return self.compare("LE", other)

    def __gt__(self, other: Any) -> Number:
        return self.compare("GT", other)

    def __ge__(self, other: Any) -> Number:
        return self.compare("GE", other)

    def equals(self, other: Any) -> Number:
        return self.compare("EQ", other)

    def call(self, name: str) -> Number:
        """An elementwise function of StableHLO or CHLO."""
        return Number(self.h, self.h.op(name, self.value, type=self.value.type))


def where(condition: Number, chosen: Any, otherwise: Any) -> Number:
    like = chosen if isinstance(chosen, Number) else otherwise
    return Number(like.h, like.h.select(condition.value, like.of(chosen), like.of(otherwise)))


def trigamma(x: Number) -> Number:
    return Number(x.h, x.h.op("chlo.polygamma", x.h.constant(1, x.value.type), x.value, type=x.value.type))


def repeat(state: Sequence[Number], step: Callable[..., Sequence[Number]], longest: int = LONGEST) -> list[Number]:
    """`step(trip, *state)` until the last of the state, whether an element has settled, holds everywhere.  Elements
    that have settled keep what they are."""
    h = state[0].h
    kind = state[0].value.type.with_dtype("float64").scalar
    trip = Number(h, h.constant(1, kind))

    def goes_on(_: Any, trip: Any, *values: Any) -> Any:
        settled = values[-1]
        axes = tuple(range(len(settled.type.shape)))
        everywhere = h.reduce("and", settled, True, axes) if axes else settled
        return (~Number(h, everywhere) & (Number(h, trip) < longest)).value

    def body(_: Any, trip: Any, *values: Any) -> list[Any]:
        now = [Number(h, v) for v in values]
        new = step(Number(h, trip), *now)
        kept = [where(now[-1], old, fresh) for old, fresh in zip(now[:-1], new[:-1])]
        return [(Number(h, trip) + 1).value, *(v.value for v in kept), (now[-1] | new[-1]).value]

    found = h.while_loop([trip.value, *(s.value for s in state)], goes_on, body)
    return [Number(h, v) for v in found[1:]]


def spread(trip: Number, like: Number) -> Number:
    """The number of the trip as an array of the type of `like`."""
    h, kind = trip.h, like.value.type
    return Number(h, h.broadcast(h.convert(trip.value, kind.dtype), kind.shape, ()))


def lower_sums(a: Number, x: Number, log_x: Number, where_: Number) -> list[Number]:
    """P(a, x) / f and its first two derivatives by a, where `where_` holds: the series."""
    eps = 2e-17 if a.value.type.dtype == "float64" else 1e-8
    term = 1 / a
    offset, bend = log_x - (a + 1).call("chlo.digamma"), trigamma(a + 1)
    start = [term, offset, bend, term, term * offset, term * (offset * offset - bend), ~where_]

    def step(trip: Number, term: Number, offset: Number, bend: Number, s0: Number, s1: Number, s2: Number,
             _: Number) -> list[Number]:
        part = 1 / (a + spread(trip, a))
        term = term * x * part
        offset, bend = offset - part, bend - part * part
        s0, s1, s2 = s0 + term, s1 + term * offset, s2 + term * (offset * offset - bend)
        least = where(abs(s1) < abs(s2), abs(s1), abs(s2))
        settled = (term * (offset * offset + 1) <= eps * least) | term.equals(0)
        return [term, offset, bend, s0, s1, s2, settled]

    return repeat(start, step)[3:6]


def upper_fraction(a: Number, x: Number, where_: Number) -> list[Number]:
    """(1 - P(a, x)) / f and its first two derivatives by a, where `where_` holds: Lentz's continued fraction."""
    is_double = a.value.type.dtype == "float64"
    eps, tiny = (3e-16, 1e-300) if is_double else (2e-7, 1e-30)
    zero = a * 0
    b = where(where_, x + 1 - a, zero + 1)
    d = 1 / b
    d1, d2 = d * d, 2 * d * d * d
    start = [b, zero + 1 / tiny, zero, zero, d, d1, d2, d, d1, d2, ~where_]

    def step(trip: Number, b: Number, c: Number, c1: Number, c2: Number, d: Number, d1: Number, d2: Number, h0: Number,
             h1: Number, h2: Number, _: Number) -> list[Number]:
        i = spread(trip, a)
        top = -i * (i - a)
        b = b + 2
        e, e1, e2 = b + top * d, i * d + top * d1 - 1, 2 * i * d1 + top * d2
        d = 1 / e
        d1, d2 = -e1 * d * d, (2 * e1 * e1 * d - e2) * d * d
        r = 1 / c
        r1, r2 = -c1 * r * r, (2 * c1 * c1 * r - c2) * r * r
        c, c1, c2 = b + top * r, i * r + top * r1 - 1, 2 * i * r1 + top * r2
        q, q1, q2 = d * c, d1 * c + d * c1, d2 * c + 2 * d1 * c1 + d * c2
        h0, h1, h2 = h0 * q, h1 * q + h0 * q1, h2 * q + 2 * h1 * q1 + h0 * q2
        settled = (abs(q - 1) < eps) & (abs(h0 * q1) <= eps * abs(h1)) & (abs(h0 * q2) <= eps * abs(h2))
        return [b, c, c1, c2, d, d1, d2, h0, h1, h2, settled]

    return repeat(start, step)[7:10]


def _finite_inside(a: Number, x: Number) -> Number:
    return (a > 0) & (x > 0) & (x < float("inf"))


def gamma_slopes(a: Number, x: Number, log_x: Number) -> tuple[Number, Number, Number, Number, Number]:
    """P / f below a + 1, (1 - P) / f above it, whether it is below, and the first two derivatives of P by a over f."""
    inside = _finite_inside(a, x)
    a, x, log_x = where(inside, a, 1), where(inside, x, 1), where(inside, log_x, 0)
    is_low = x <= a + 1
    sums = lower_sums(a, x, log_x, is_low)
    c, c1, c2 = upper_fraction(a, x, ~is_low)
    slope = log_x - a.call("chlo.digamma")
    first = where(is_low, sums[1], -(slope * c + c1))
    second = where(is_low, sums[2], -((slope * slope - trigamma(a)) * c + 2 * slope * c1 + c2))
    return sums[0], c, is_low, first, second


def lower_sum(a: Number, x: Number, where_: Number) -> Number:
    """P(a, x) / f where `where_` holds: the series alone."""
    eps = 2e-17 if a.value.type.dtype == "float64" else 1e-8
    term = 1 / a

    def step(trip: Number, term: Number, total: Number, _: Number) -> list[Number]:
        term = term * x / (a + spread(trip, a))
        return [term, total + term, term <= eps * total]

    return repeat([term, term, ~where_], step)[1]


def upper_ratio(a: Number, x: Number, where_: Number) -> Number:
    """(1 - P(a, x)) / f where `where_` holds: the continued fraction alone."""
    is_double = a.value.type.dtype == "float64"
    eps, tiny = (3e-16, 1e-300) if is_double else (2e-7, 1e-30)
    b = where(where_, x + 1 - a, 1)
    d = 1 / b

    def step(trip: Number, b: Number, c: Number, d: Number, ratio: Number, _: Number) -> list[Number]:
        i = spread(trip, a)
        top, b = -i * (i - a), b + 2
        d, c = 1 / (b + top * d), b + top / c
        return [b, c, d, ratio * (d * c), abs(d * c - 1) < eps]

    return repeat([b, a.filled(1 / tiny), d, d, ~where_], step)[3]


def stirling_error(a: Number) -> Number:
    """log(gamma(a + 1)) - log(sqrt(2 pi a) (a / e)**a) for a >= 10: Stirling's series."""
    inverse = 1 / a
    square, total = inverse * inverse, a.filled(-691 / 360360)
    for coefficient in (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        total = coefficient + square * total
    return total * inverse


def deviance(a: Number, x: Number, log_ratio: Number) -> Number:
    """a log(a / x) + x - a without cancellation where a and x are close (Loader, "Fast and accurate computation of
    binomial probabilities", 2000).  log_ratio: log(a / x)."""
    v = (a - x) / (a + x)
    square, total = v * v, a.filled(1 / 19)
    for odd in range(17, 1, -2):
        total = 1 / odd + square * total
    near = (a - x) * v + 2 * a * v * square * total
    return where(abs(v) < 0.1, near, a * log_ratio + x - a)


def log_factor(a: Number, x: Number, log_x: Number) -> Number:
    """The logarithm of x**a exp(-x) / gamma(a), whose terms cancel where a is large."""
    large = where(a > 10, a, 10)
    around = -deviance(large, x, large.call("log") - log_x) - stirling_error(large)
    small = a * log_x - x - a.call("chlo.lgamma")
    return where(a > 10, around + 0.5 * (large * (0.5 / math.pi)).call("log"), small)


def _factor(a: Number, x: Number) -> Number:
    """x**a exp(-x) / gamma(a)."""
    return log_factor(a, x, x.call("log")).call("exponential")


def gammainc_hlo(h: Any, a: Any, x: Any, upper: bool = False) -> Any:
    a, x = Number(h, a), Number(h, x)
    inside = _finite_inside(a, x)
    shape, place = where(inside, a, 1), where(inside, x, 1)
    is_low, factor = place <= shape + 1, _factor(shape, place)
    low, high = factor * lower_sum(shape, place, is_low), factor * upper_ratio(shape, place, ~is_low)
    found = where(is_low, 1 - low, high) if upper else where(is_low, low, 1 - high)
    is_end, is_zero = x.equals(float("inf")), x.equals(0)
    found = where(is_end, 0.0 if upper else 1.0, where(is_zero, 1.0 if upper else 0.0, found))
    return where((a > 0) & (x >= 0), found, float("nan")).value


def gammainc_slope_hlo(h: Any, a: Any, x: Any, order: int) -> Any:
    a, x = Number(h, a), Number(h, x)
    *_, first, second = gamma_slopes(a, x, x.call("log"))
    found = _factor(a, x) * (first if order == 1 else second)
    found = where(_finite_inside(a, x), found, 0.0)
    return where((a > 0) & (x >= 0), found, float("nan")).value


def log_gamma_slope_hlo(h: Any, a: Any, y: Any, order: int) -> Any:
    a, y = Number(h, a), Number(h, y)
    *_, first, second = gamma_slopes(a, y.call("exponential"), y)
    return where(a > 0, -(first if order == 1 else second), float("nan")).value


def gamma_draw_hlo(h: Any, encrypted: Callable[..., tuple[Any, Any]], first: Any, second: Any, a: Any,
                   log: bool) -> Any:
    """encrypted(h, first, second, x, y): the blocks of two counters under keys."""
    kind = a.type
    is_single = kind.dtype == "float32"

    def words(key: tuple[Any, Any], x: int, y: int) -> tuple[Any, Any]:
        return encrypted(h, *key, h.constant(x, key[0].type), h.constant(y, key[0].type))

    def unit(key: tuple[Any, Any]) -> Number:
        if is_single:
            word, _ = words(key, 0, 0)
            high = h.op("shift_right_logical", word, h.constant(9, word.type))
            return Number(h, h.convert(high, "float32")) * 2.0 ** -23
        high, low = (h.convert(w, "uint64") for w in words(key, 0, 1))
        both = h.op("or", h.op("shift_left", high, h.constant(32, high.type)), low)
        high = h.op("shift_right_logical", both, h.constant(12, both.type))
        return Number(h, h.convert(high, "float64")) * 2.0 ** -52

    def normal(key: tuple[Any, Any]) -> Number:
        low = -1 + 2.0 ** (-24 if is_single else -53)
        u = unit(key) * (1 - low) + low
        return where(u > low, u, low).call("chlo.erf_inv") * 2.0 ** 0.5

    def keys(key: tuple[Any, Any], count: int) -> list[tuple[Any, Any]]:
        blocks = [words(key, i, count + i) for i in range(count)]
        stream = [x for x, _ in blocks] + [y for _, y in blocks]
        return [(stream[2 * i], stream[2 * i + 1]) for i in range(count)]

    shape = Number(h, a)
    is_valid = shape > 0
    safe = where(is_valid, shape, 1)
    key, last = keys((first, second), 2)
    d = where(safe >= 1, safe, safe + 1) - 1 / 3
    c = 1 / (3 * d.call("sqrt"))

    def normal_above(key: tuple[Any, Any]) -> tuple[Number, Number]:
        """The first normal number x of the key's chain with 1 + x c > 0."""
        def step(_: Number, left: Number, right: Number, x: Number, v: Number, __: Number) -> list[Number]:
            follower, own = keys((left.value, right.value), 2)
            x = normal(own)
            v = 1 + x * c
            return [Number(h, follower[0]), Number(h, follower[1]), x, v, v > 0]
        nothing = safe * 0
        start = [Number(h, key[0]), Number(h, key[1]), nothing, nothing - 1, nothing > 1]
        return tuple(repeat(start, step)[2:4])  # type: ignore[return-value]

    def trial(_: Number, left: Number, right: Number, cube: Number, __: Number) -> list[Number]:
        following, of_normal, of_unit = keys((left.value, right.value), 3)
        x, v = normal_above(of_normal)
        u, square, cube = unit(of_unit), x * x, v * v * v
        accept = (u < 1 - 0.0331 * (square * square)) | (
            u.call("log") < 0.5 * square + d * (1 - cube + cube.call("log")))
        return [Number(h, following[0]), Number(h, following[1]), cube, accept]

    cube = repeat([Number(h, key[0]), Number(h, key[1]), safe * 0 + 1, ~is_valid], trial)[2]
    u = unit(last)
    if log:
        boost = where((safe >= 1) | u.equals(0), 0.0, (-u).call("log_plus_one") / safe)
        found = d.call("log") + cube.call("log") + boost
    else:
        boost = ((-u).call("log_plus_one") / safe).call("exponential")
        found = d * cube * where(safe >= 1, 1.0, boost)
    return where(is_valid, found, float("nan")).value

