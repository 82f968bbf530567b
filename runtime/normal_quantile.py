"""erf and its inverse on NumPy arrays, for random numbers: close to the numbers that XLA's formulas give.

In float32 erfinv(x) = x P(w) with w = -log(1 - x**2), two polynomials (Giles, "Approximating the erfinv function",
GPU Computing Gems 2, 2010, table 5), each step rounded once as a fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)                  # over w - 2.5 where w < 5
TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682)                                      # over sqrt(w) - 3


def erfinv(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The inverse error function; x in (-1, 1), float32 or float64."""
    if x.dtype != np.float32:
        from scipy.special import erfinv as exact
        return np.asarray(exact(x))
    single = np.float32
    w = -np.log1p(-x * x)
    factor = _polynomial(CENTRAL, w - single(2.5))
    tail = w >= 5
    if tail.any():
        factor[tail] = _polynomial(TAIL, np.sqrt(w[tail]) - single(3))
    return np.asarray(factor * x)


def _polynomial(coefficients: Sequence[float], t: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    found = np.full(np.shape(t), coefficients[0], np.float32)
    wide = np.asarray(t, np.float64)
    for c in coefficients[1:]:
        found = np.asarray(found * wide + np.float64(np.float32(c)), np.float32)
    return found


def erf(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The error function."""
    from scipy.special import erf as exact
    return np.asarray(exact(x))
