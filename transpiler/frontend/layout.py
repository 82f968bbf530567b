"""What is known of arrays' order in memory: it decides whether `reshape` and `ravel` give a view or a copy.

"C": certainly C-contiguous.  "A": anything.  Only writes ask: a reshape that may be either is an error as soon as its
array, or it itself, is written to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.index import At, Item, New, Span
from .values import ArrayRef

# Results that NumPy makes anew in C order, whatever the order of the arguments.
NEW_IN_C_ORDER: frozenset[Any] = frozenset({
    np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.arange, np.linspace, np.ndarray.copy,
    np.outer, np.dot, np.matmul, np.ndarray.dot, np.diagflat, np.indices, np.ndarray.flatten,
})
# Results that follow the order of the arguments.
LIKE_ARGUMENTS: frozenset[Any] = frozenset({
    np.where, np.clip, np.ndarray.clip, np.copy, np.array, np.ndarray.astype, np.zeros_like, np.ones_like, np.full_like,
    np.empty_like, np.nan_to_num, np.round, np.ndarray.round,
})
MAY_COPY: frozenset[Any] = frozenset({np.reshape, np.ndarray.reshape, np.ravel, np.ndarray.ravel, np.ascontiguousarray})
FLATTENING: frozenset[Any] = frozenset({np.ravel, np.ndarray.ravel, np.ascontiguousarray})
KEEP_ORDER: frozenset[Any] = frozenset({
    np.squeeze, np.ndarray.squeeze, np.expand_dims, np.atleast_1d, np.atleast_2d, np.reshape, np.ndarray.reshape,
    np.ravel, np.ndarray.ravel,
})
READ_ONLY: frozenset[Any] = frozenset({np.diagonal, np.ndarray.diagonal, np.diag, np.broadcast_to, np.broadcast_arrays})


def of_array(x: np.ndarray[Any, Any]) -> str:
    return "C" if x.flags.c_contiguous else "A"


def of_result(key: Any, args: tuple[Any, ...], rank: int) -> str:
    """Of a new array that a NumPy function gives."""
    if rank <= 1 or key in NEW_IN_C_ORDER:
        return "C"
    if isinstance(key, np.ufunc) or key in LIKE_ARGUMENTS:
        arrays = [a for a in _arrays(args) if a.rank >= 2]
        return "C" if all(a.layout == "C" for a in arrays) else "A"
    return "A"


def _arrays(x: Any) -> list[ArrayRef]:
    if isinstance(x, ArrayRef):
        return [x]
    return [a for part in x for a in _arrays(part)] if isinstance(x, (list, tuple)) else []


def of_index(base: str, items: tuple[Item, ...], shape: tuple[Any, ...]) -> str:
    """Of the view that a basic index gives."""
    axis, whole_from_here = 0, True
    if base != "C":
        return "A"
    for item in reversed(items):                # from the fastest axis: whole ones, then one run, then single elements
        if isinstance(item, New):
            continue
        axis += 1
        size = shape[len(shape) - axis]
        if isinstance(item, At):
            whole_from_here = False
        elif isinstance(item, Span) and (item.step != 1 or not whole_from_here):
            if item.size != 1:
                return "A"
        elif item.size != size:
            whole_from_here = False
    return "C"


def of_view(key: Any, base: ArrayRef, rank: int) -> str:
    """Of the view that a NumPy function gives."""
    if base.layout == "C" and (key in KEEP_ORDER or (base.rank <= 1 and rank <= 1 and key in (
            np.transpose, np.ndarray.T, np.ndarray.transpose))):
        return "C"
    return "A"


def may_copy(key: Any, base: ArrayRef) -> bool:
    """Whether a function that gives a view where it can may have to copy here."""
    if key not in MAY_COPY or base.layout == "C":
        return False
    return key in FLATTENING or base.rank > 1
