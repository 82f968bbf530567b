"""Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011)
on NumPy arrays, counted as JAX's classic streams are.

A key is two words.  A stream of n words is the encryption of the counters 0, 1, ..., n - 1, the first half of them
being the left words of the blocks and the second half the right ones; an odd count is filled up with one 0, whose
word is dropped.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA             # of the key schedule, in the paper's version 1.1
WORD = 0xFFFFFFFF
BLOCK = 1 << 14                 # words of each half that are encrypted together: they stay in the cache


def encrypt(key: Words, left: Words, right: Words) -> None:
    """Replace the counters (left[i], right[i]) by their encryption under `key`, of shape (2,)."""
    first, second = int(key[0]), int(key[1])
    schedule = (first, second, first ^ second ^ PARITY)
    for start in range(0, left.size, BLOCK):
        _encrypt_block(schedule, left[start:start + BLOCK], right[start:start + BLOCK])


def _encrypt_block(schedule: tuple[int, int, int], x: Words, y: Words) -> None:
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


def words(key: Words, count: int) -> Words:
    """`count` words of the stream of `key`."""
    if count > WORD:
        raise ValueError(f"{count} random words are more than one key gives; split the key")
    half = (count + 1) // 2
    stream = np.arange(2 * half, dtype=np.uint32)
    if count % 2:
        stream[-1] = 0
    encrypt(key, stream[:half], stream[half:])
    return stream[:count]


def random_bits(key: Words, width: int, count: int) -> npt.NDArray[np.unsignedinteger]:
    """`count` unsigned integers of 8, 16, 32 or 64 bits, every one of them as likely."""
    stream = words(key, -(-width * count // 32))
    if width == 64:
        return (stream[:count].astype(np.uint64) << np.uint64(32)) | stream[count:]
    if width == 32:
        return stream
    # The low bits of a word come first.
    return stream.astype("<u4").view(f"<u{width // 8}").astype(f"u{width // 8}")[:count]


def seed(value: int, bits: int = 64) -> Words:
    """The key of a seed of so many bits, of which the high word comes first."""
    value &= (1 << bits) - 1
    return np.array([value >> 32, value & WORD], np.uint32)


def split(key: Words, count: int) -> Words:
    """Keys of shape (count, 2)."""
    return words(key, 2 * count).reshape(count, 2)


def fold_in(key: Words, data: int) -> Words:
    """A key made of a key and 32 bits of data."""
    left, right = np.zeros(1, np.uint32), np.array([data & WORD], np.uint32)
    encrypt(key, left, right)
    return np.concatenate([left, right])
