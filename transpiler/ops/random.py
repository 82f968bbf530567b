"""Operations that random numbers are made of: Threefry's words, and the formulas by which they become JAX's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.dims import same_size
from ..ir.nodes import Value
from ..ir.types import Type
from .base import Op, RuleError, Sample, batch_all, sample
from .families import Lowering, NoGradient, elementwise, register
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
