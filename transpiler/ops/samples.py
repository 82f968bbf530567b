"""Ready-made samples for elementwise rows: smooth points in a range, and corners at given values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Sample, grid, sample

FLOATS = ("float64", "float32")


def between(low: float, high: float, *, arity: int = 1, dtypes: Sequence[str] = FLOATS, **params: Any) -> list[Sample]:
    """`arity` operands of distinct values in [low, high): a vector per dtype, and a float64 scalar."""
    found = [sample(*(grid(7, low=low, high=high, dtype=d, seed=k) for k in range(arity)), **params) for d in dtypes]
    return [*found, sample(*(grid(low=low, high=high, dtype=dtypes[0], seed=k + 10) for k in range(arity)), **params)]


def corner(*operands: Sequence[float], dtype: str = "float64", **params: Any) -> Sample:
    """Operands given element by element, at a kink, tie, pole or edge of the domain."""
    return sample(*(np.array(o, dtype) for o in operands), corner=True, **params)


def complex_plane(arity: int = 1, scale: float = 1.0, **params: Any) -> Sample:
    """Points off the axes in the complex plane, with real and imaginary parts in [-scale, scale)."""
    parts = [grid(6, low=-scale, high=scale, seed=20 + k) + 1j * grid(6, low=-scale, high=scale, seed=40 + k)
             for k in range(arity)]
    return sample(*parts, **params)


def integers(low: int, high: int, *, arity: int = 1, dtypes: Sequence[str] = ("int64",), **params: Any) -> list[Sample]:
    """Whole numbers in [low, high), in a vector per dtype."""
    draws = [np.random.default_rng([7, k]).integers(low, high, 7) for k in range(arity)]
    return [sample(*(d.astype(dtype) for d in draws), **params) for dtype in dtypes]


def truths(arity: int = 1) -> Sample:
    """Every combination of truth values."""
    rows = np.array([[bool(n >> k & 1) for n in range(2 ** arity)] for k in range(arity)])
    return sample(*rows)
