"""Operations that random numbers are made of: Threefry's words, and the formulas by which they become JAX's numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import same_size
from ..ir.nodes import Value
from ..ir.types import Type
from .base import Into, Op, RuleError, Sample, batch_all, sample
from .families import Elementwise, Lowering, NoGradient, elementwise, register
from .incomplete_stablehlo import gamma_draw_hlo
from .samples import between, corner
from .special import scipy_reference

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA             # of the key schedule
WORD = 0xFFFFFFFF


def _check_keys(keys: Type) -> None:
    if keys.dtype != "uint32" or keys.rank not in (1, 2) or not same_size(keys.shape[-1], 2):
        raise RuleError(f"a random key is two uint32 words, not {keys}", kind=TypeError, code="E309")


@register
class Threefry(NoGradient, Op):
    """`count` words of the stream of a key, or of each key in a matrix: Threefry-2x32 in 20 rounds, counted as JAX's
    classic streams are."""

    name = "threefry"
    lowering = Lowering.KERNEL
    short = "words"
    kernel = "threefry({0}, {out})"

    def infer(self, keys: Type, *, count: Any) -> Type:
        _check_keys(keys)
        return keys.with_shape((*keys.shape[:-1], count))

    def reference(self, keys: Any, *, count: int) -> Any:
        lanes = [_stream(key, count) for key in keys.reshape(-1, 2)]
        return np.array(lanes, np.uint32).reshape(*keys.shape[:-1], count)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, count: Any, **params: Any) -> Value:
        keys = args[0]
        if keys.rank == 2:
            return self(keys, count=count)
        flat = ops.reshape(keys, shape=(keys.shape[0] * keys.shape[1], 2))
        return ops.reshape(self(flat, count=count), shape=(*keys.shape[:2], count))

    def stablehlo(self, h: Any, keys: Any, *, count: int) -> Any:
        lanes, half = keys.type.shape[:-1], (count + 1) // 2
        block = Type("uint32", (*lanes, half))
        if not count:
            return h.constant(0, Type("uint32", (*lanes, 0)))

        def part(k: int) -> Any:
            word = h.slice(keys, [0] * len(lanes) + [k], [*lanes, k + 1], [1] * (len(lanes) + 1))
            return h.broadcast(h.reshape(word, lanes), block.shape, range(len(lanes)))

        left = h.iota(block, len(lanes))
        right = h.op("add", left, h.constant(half, block))
        if count % 2:
            right = h.select(h.compare("LT", right, h.constant(count, block)), right, h.constant(0, block))
        x, y = _encrypted_hlo(h, part(0), part(1), left, right)
        both = h.concatenate([x, y], len(lanes))
        return h.slice(both, [0] * (len(lanes) + 1), [*lanes, count], [1] * (len(lanes) + 1))

    def samples(self) -> list[Sample]:
        keys = np.array([[0, 0], [3, 4], [WORD, 7]], np.uint32)
        return [sample(keys[1], count=n) for n in (1, 2, 7, 40)] + [sample(keys, count=5), sample(keys[0], count=0),
                                                                    sample(keys[2], count=4)]


@register
class FoldIn(NoGradient, Op):
    """A key made of a key and a word, or of each row of a matrix of keys and a vector of words: the block whose
    counters are 0 and the word."""

    name = "fold_in"
    lowering = Lowering.KERNEL
    short = "key"
    kernel = "fold_in({0}, {1}, {out})"

    def infer(self, keys: Type, data: Type, **params: Any) -> Type:
        _check_keys(keys)
        if data.dtype != "uint32" or data.shape != keys.shape[:-1]:
            raise RuleError(f"fold_in takes a uint32 number, not {data}", kind=TypeError, code="E309")
        return keys

    def reference(self, keys: Any, data: Any, **params: Any) -> Any:
        pairs = zip(keys.reshape(-1, 2), np.reshape(data, -1))
        lanes = [_block(int(key[0]), int(key[1]), 0, int(word)) for key, word in pairs]
        return np.array(lanes, np.uint32).reshape(keys.shape)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Value:
        keys, data = batch_all(args, batched)
        if keys.rank == 2:
            return self(keys, data)
        lanes = keys.shape[0] * keys.shape[1]
        found = self(ops.reshape(keys, shape=(lanes, 2)), ops.reshape(data, shape=(lanes,)))
        return ops.reshape(found, shape=keys.shape)

    def stablehlo(self, h: Any, keys: Any, data: Any, **params: Any) -> Any:
        lanes = data.type.shape
        ones, starts = [1] * (len(lanes) + 1), [0] * len(lanes)
        first, second = (h.reshape(h.slice(keys, [*starts, k], [*lanes, k + 1], ones), lanes) for k in range(2))
        both = [h.broadcast(word, (*lanes, 1), range(len(lanes)))
                for word in _encrypted_hlo(h, first, second, h.constant(0, data.type), data)]
        return h.concatenate(both, len(lanes))

    def samples(self) -> list[Sample]:
        keys = np.array([[0, 0], [3, 4], [WORD, 7]], np.uint32)
        return [sample(keys[1], np.uint32(5)), sample(keys, np.array([0, WORD, 9], np.uint32))]


def _encrypted_hlo(h: Any, first: Any, second: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Blocks of the counters x and y."""
    def number(value: int) -> Any:
        return h.constant(value, x.type)

    schedule = [first, second, h.op("xor", h.op("xor", first, second), number(PARITY))]
    x, y = h.op("add", x, first), h.op("add", y, second)
    for step in range(5):
        for rotation in ROTATIONS[step % 2]:
            x = h.op("add", x, y)
            y = h.op("or", h.op("shift_left", y, number(rotation)),
                     h.op("shift_right_logical", y, number(32 - rotation)))
            y = h.op("xor", y, x)
        x = h.op("add", x, schedule[(step + 1) % 3])
        y = h.op("add", y, h.op("add", schedule[(step + 2) % 3], number(step + 1)))
    return x, y


def _stream(key: Any, count: int) -> list[int]:
    half = (count + 1) // 2
    pairs = [(i, half + i if half + i < count else 0) for i in range(half)]
    blocks = [_block(int(key[0]), int(key[1]), *pair) for pair in pairs]
    return [*(x for x, _ in blocks), *(y for _, y in blocks)][:count]


def _block(first: int, second: int, x: int, y: int) -> tuple[int, int]:
    """One block, in Python's integers."""
    schedule = (first, second, first ^ second ^ PARITY)
    x, y = (x + first) & WORD, (y + second) & WORD
    for step in range(5):
        for rotation in ROTATIONS[step % 2]:
            x = (x + y) & WORD
            y = ((y << rotation | y >> (32 - rotation)) & WORD) ^ x
        x, y = (x + schedule[(step + 1) % 3]) & WORD, (y + schedule[(step + 2) % 3] + step + 1) & WORD
    return x, y


def _fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding where long doubles have the digits for it, with hardly more elsewhere."""
    with np.errstate(all="ignore"):
        wide = x.astype("longdouble") * y.astype("longdouble") + z.astype("longdouble")
        return wide.astype(x.dtype)[()]


fma = elementwise(
    "fma", _fused, partials=lambda x, y, z, r: (y, x, 1), scalar="fma({0}, {1}, {2})",
    stablehlo=lambda h, x, y, z: h.op("add", h.op("multiply", x, y), z), kinds="f", cost=2,
    samples=[*between(-2, 2, arity=3)], doc="x * y + z, rounded once.")

stream_erfinv = elementwise(
    "stream_erfinv", scipy_reference("erfinv"),
    partials=lambda x, r: (np.sqrt(np.pi).item() / 2 * ops.exp(r * r),), singular=(0,), scalar="stream_erfinv({0})",
    stablehlo="chlo.erf_inv", kinds="f", cost=25, samples=[*between(-0.9, 0.9), corner([-1.0, 0.0, 1.0])],
    doc="The inverse of erf on [-1, 1] by the formula that XLA has: random.normal is to give JAX's numbers.")


@register
class GammaDraw(Elementwise):
    """Numbers of the gamma distribution of shape a, or their logarithms (`log`), one for each key of two words.

    They are drawn by rejection, so the derivative by a is that of a quantile, at the probability where the number is
    (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018), not that of the formula.
    """

    name = "gamma_draw"
    kinds = "uf"
    cost = 2000
    short = "g"

    def infer(self, first: Type, second: Type, a: Type, *, log: bool, **params: Any) -> Type:  # type: ignore[override]
        super().infer(first, second, a)
        if first.dtype != "uint32" or second.dtype != "uint32" or a.kind != "f":
            raise RuleError(f"gamma_draw takes two words and a float, not {first}, {second} and {a}", kind=TypeError,
                            code="E309")
        return a

    def reference(self, first: Any, second: Any, a: Any, *, log: bool) -> Any:  # type: ignore[override]
        points = zip(np.ravel(first).tolist(), np.ravel(second).tolist(), np.ravel(a).tolist())
        found = [_gamma_number(*point, log, a.dtype.itemsize) for point in points]
        return np.array(found, a.dtype).reshape(np.shape(a))[()]

    @staticmethod
    def scalar(first: Type, second: Type, a: Type, *, log: bool) -> str:
        if a.dtype == "float64":
            return f"gamma_draw({{0}}, {{1}}, {{2}}, {log}, False)"
        return f"np.float32(gamma_draw({{0}}, {{1}}, np.float64({{2}}), {log}, True))"

    def stablehlo(self, h: Any, first: Any, second: Any, a: Any, *, log: bool) -> Any:  # type: ignore[override]
        return gamma_draw_hlo(h, _encrypted_hlo, first, second, a, log)

    @staticmethod
    def _slope(a: Value, result: Value, log: bool) -> Value:
        if log:
            return ops.log_gamma_slope(a, result, order=1)
        by_shape = result * ops.log_gamma_slope(a, ops.log(result), order=1)
        return ops.select(result.eq(0), const(0, a.type), by_shape)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
            log: bool, **params: Any) -> Any:
        if tangents[2] is None:
            return None
        return self._product(tangents[2], self._slope(args[2], result, log), True, forward=True)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *,  # type: ignore[override]
            log: bool, **params: Any) -> list[Value | Into | None]:
        return [None, None, self._product(ct, self._slope(args[2], result, log), True) if wanted[2] else None]

    def samples(self) -> list[Sample]:
        """Corners, since the numbers jump where another trial is taken."""
        words = np.arange(1, 9, dtype=np.uint32)
        shapes = np.array([0.05, 0.3, 0.9, 1.0, 1.5, 4.0, 30.0, 2.0])
        return [sample(words, words[::-1].copy(), shapes.astype(d), log=log, corner=True)
                for log, d in ((False, "float64"), (True, "float64"), (False, "float32"))]


def _split(key: tuple[int, int], count: int) -> list[tuple[int, int]]:
    stream = _stream(key, 2 * count)
    return list(zip(stream[::2], stream[1::2]))


def _unit(key: tuple[int, int], size: int) -> float:
    if size == 4:
        return (_stream(key, 1)[0] >> 9) * 2.0 ** -23
    high, low = _stream(key, 2)
    return ((high << 32 | low) >> 12) * 2.0 ** -52


def _normal(key: tuple[int, int], size: int) -> float:
    from scipy import special

    low = -1 + 2.0 ** (-24 if size == 4 else -53)
    kind = np.float32 if size == 4 else np.float64
    u = kind(max(low, _unit(key, size) * (1 - low) + low))
    return float(math.sqrt(2) * special.erfinv(np.float64(u)))


def _gamma_number(first: int, second: int, a: float, log: bool, size: int) -> float:
    """As kernels.rejection has it."""
    if not a > 0:
        return math.nan
    key, last = _split((first, second), 2)
    d = (a if a >= 1 else a + 1) - 1 / 3
    while True:
        key, of_normal, of_unit = _split(key, 3)
        x, v = 0.0, -1.0
        while v <= 0:
            of_normal, one = _split(of_normal, 2)
            x = _normal(one, size)
            v = (1 + x / (3 * math.sqrt(d))) ** 3
        u = _unit(of_unit, size)
        if u < 1 - 0.0331 * x ** 4 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            break
    u = _unit(last, size)
    if log:
        return math.log(d) + math.log(v) + (0.0 if a >= 1 else math.log1p(-u) / a)
    return d * v * (1.0 if a >= 1 else (1 - u) ** (1 / a))
