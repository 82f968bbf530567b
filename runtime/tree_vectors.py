"""Trees of numbers and arrays as vectors, in Python as in transpiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import tree


def ravel(x: Any) -> Any:
    """All elements in one vector."""
    return np.concatenate([np.ravel(leaf) for leaf in tree.leaves(x)])


def unravel(vector: Any, like: Any) -> Any:
    """The tree of the same form with these elements."""
    at, parts = 0, []
    for leaf in tree.leaves(like):
        size = np.size(leaf)
        parts.append(np.reshape(vector[at:at + size], np.shape(leaf)))
        at += size
    pending = iter(parts)
    return tree.map(lambda leaf: next(pending), like)


def is_complex(x: Any) -> bool:
    """Whether an element may be complex."""
    return any(np.asarray(leaf).dtype.kind == "c" for leaf in tree.leaves(x))


def in_reals(x: Any) -> Any:
    """All elements in one real vector: of a complex leaf the real parts, then the imaginary parts."""
    parts = []
    for leaf in tree.leaves(x):
        parts.append(np.ravel(np.real(leaf)))
        if np.asarray(leaf).dtype.kind == "c":
            parts.append(np.ravel(np.imag(leaf)))
    return np.concatenate(parts)


def from_reals(vector: Any, like: Any) -> Any:
    """The tree of the same form and dtypes with these real numbers, as `in_reals` gives them."""
    at, parts = 0, []
    for leaf in tree.leaves(like):
        size, shape = np.size(leaf), np.shape(leaf)
        part = np.reshape(vector[at:at + size], shape)
        at += size
        if np.asarray(leaf).dtype.kind == "c":
            part = part + 1j * np.reshape(vector[at:at + size], shape)
            at += size
        parts.append(part)
    pending = iter(parts)
    return tree.map(lambda leaf: next(pending), like)
