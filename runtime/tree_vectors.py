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
