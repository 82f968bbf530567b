"""Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011),
counted as JAX's classic streams are.

A key is two words.  A stream of n words is the encryption of the counters 0, 1, ..., n - 1, the first half of them
being the left words of the blocks and the second half the right ones; an odd count is filled up with one 0, whose
word is dropped.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit
from numba.core import types
from numba.extending import intrinsic

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA  # of the key schedule, in the paper's version 1.1
WORD = 0xFFFFFFFF
BLOCK = 1 << 14  # words of each half that NumPy encrypts together: they stay in the cache


def threefry(key: Any, out: Any) -> None:
    """Fill `out`, uint32 of shape (n,) or (m, n), with the stream of `key`, of shape (2,) or (m, 2)."""
    if out.ndim == 1:
        half = (out.size + 1) // 2
        counters = np.arange(2 * half, dtype=np.uint32)
        if out.size % 2:
            counters[-1] = 0
        encrypt(key, counters[:half], counters[half:])
        out[:] = counters[: out.size]
    else:
        for lane in range(out.shape[0]):
            threefry(key[lane], out[lane])


def fold_in(key: Any, word: Any, out: Any) -> None:
    """Put into `out`, of shape (2,) or (m, 2), the block of the counters 0 and `word`, one for each key."""
    if out.ndim == 1:
        left, right = np.zeros(1, np.uint32), np.array([word], np.uint32)
        encrypt(key, left, right)
        out[0], out[1] = left[0], right[0]
    else:
        for lane in range(out.shape[0]):
            fold_in(key[lane], word[lane], out[lane])


def encrypt(key: Any, left: Any, right: Any) -> None:
    """Replace the counters (left[i], right[i]) by their encryption under `key`, of shape (2,)."""
    first, second = int(key[0]), int(key[1])
    schedule = (first, second, first ^ second ^ PARITY)
    for start in range(0, left.size, BLOCK):
        _encrypt_block(schedule, left[start : start + BLOCK], right[start : start + BLOCK])


def _encrypt_block(schedule: tuple[int, int, int], x: Any, y: Any) -> None:
    word = np.uint32
    scratch = np.empty_like(x)
    x += word(schedule[0])
    y += word(schedule[1])
    for step in range(5):
        for rotation in ROTATIONS[step % 2]:
            x += y
            np.left_shift(y, word(rotation), out=scratch)
            np.right_shift(y, word(32 - rotation), out=y)
            y |= scratch
            y ^= x
        x += word(schedule[(step + 1) % 3])
        y += word((schedule[(step + 2) % 3] + step + 1) & WORD)


def _emit_encrypted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The same for one block, in words of 32 bits."""
    word = ir.IntType(32)
    first, second, x, y = arguments
    schedule = (first, second, builder.xor(builder.xor(first, second), word(PARITY)))
    x, y = builder.add(x, first), builder.add(y, second)
    for step in range(5):
        for rotation in ROTATIONS[step % 2]:
            x = builder.add(x, y)
            y = builder.or_(builder.shl(y, word(rotation)), builder.lshr(y, word(32 - rotation)))
            y = builder.xor(y, x)
        x = builder.add(x, schedule[(step + 1) % 3])
        y = builder.add(y, builder.add(schedule[(step + 2) % 3], word(step + 1)))
    return context.make_tuple(builder, signature.return_type, [x, y])


def _type_encrypted(typing: Any, first: Any, second: Any, left: Any, right: Any) -> Any:
    return types.UniTuple(types.uint32, 2)(*[types.uint32] * 4), _emit_encrypted


def _block(first: Any, second: Any, left: Any, right: Any) -> tuple[Any, Any]:
    x, y = np.array([left], np.uint32), np.array([right], np.uint32)
    encrypt((first, second), x, y)
    return x[0], y[0]


# Of two counters under the two words of a key.
encrypted: Any = _block if config.DISABLE_JIT else intrinsic(_type_encrypted)  # type: ignore[attr-defined]


@njit(cache=True, nogil=True)
def _fill(first: Any, second: Any, out: Any) -> None:
    blocks = out.size // 2
    half = out.size - blocks
    left, right = out[:blocks], out[half:]
    for i in range(blocks):
        left[i], right[i] = encrypted(first, second, np.uint32(i), np.uint32(half + i))
    if half > blocks:
        out[blocks], _ = encrypted(first, second, np.uint32(blocks), np.uint32(0))


@njit(cache=True, nogil=True)
def _threefry(key: Any, out: Any) -> None:
    if out.ndim == 1:
        _fill(key[0], key[1], out)
    else:
        for lane in range(out.shape[0]):
            _fill(key[lane, 0], key[lane, 1], out[lane])


@njit(cache=True, nogil=True)
def _fold_in(key: Any, word: Any, out: Any) -> None:
    if out.ndim == 1:
        out[0], out[1] = encrypted(key[0], key[1], np.uint32(0), np.uint32(word))
    else:
        for lane in range(out.shape[0]):
            out[lane, 0], out[lane, 1] = encrypted(key[lane, 0], key[lane, 1], np.uint32(0), np.uint32(word[lane]))


if not config.DISABLE_JIT:  # type: ignore[attr-defined]
    threefry, fold_in = _threefry, _fold_in
