"""Gamma numbers from keys, one key for each: by rejection from normal numbers (Marsaglia and Tsang, "A simple method
for generating gamma variables", 2000), drawn from the stream of the key as JAX draws them.

For a < 1, a number with shape a + 1 is multiplied by a power of a uniform one; `log_gamma_draw` adds its logarithm
instead, which does not underflow. Uniform and normal numbers are made in the dtype of `a`, the rest in float64.
"""

import math
from typing import Any

import numpy as np
from numba import config, njit

from gradsmith.kernels.random_words import encrypted
from gradsmith.kernels.stream_formulas import fma, stream_erfinv


def compiled(function: Any) -> Any:
    return function if config.DISABLE_JIT else njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore


@compiled
def unit_32(first: Any, second: Any) -> Any:
    """The first uniform number of a key, in float32."""
    word, _ = encrypted(first, second, np.uint32(0), np.uint32(0))
    return np.float32(np.int64(word >> np.uint32(9))) * np.float32(2.0**-23)


@compiled
def unit_64(first: Any, second: Any) -> Any:
    """The same in float64."""
    high, low = encrypted(first, second, np.uint32(0), np.uint32(1))
    return np.float64(np.int64(high) * 1048576 + (np.int64(low) >> 12)) * 2.0**-52


@compiled
def normal_32(first: Any, second: Any) -> Any:
    low = np.float32(-0.99999994)
    u = fma(unit_32(first, second), np.float32(1.0) - low, low)
    return np.float32(1.4142135) * stream_erfinv(max(low, u))


@compiled
def normal_64(first: Any, second: Any) -> Any:
    low = -0.9999999999999999
    u = fma(unit_64(first, second), 1.0 - low, low)
    return 1.4142135623730951 * stream_erfinv(max(low, u))


@compiled
def marsaglia_tsang(first: Any, second: Any, d: float, is_single: bool) -> float:
    """A number v for which d v has the gamma distribution of shape d + 1/3."""
    c = 1.0 / 3.0 / math.sqrt(d)
    while True:
        # Three keys: the next one, that of the normal number and that of the uniform one.
        x0, y0 = encrypted(first, second, np.uint32(0), np.uint32(3))
        x1, y1 = encrypted(first, second, np.uint32(1), np.uint32(4))
        x2, y2 = encrypted(first, second, np.uint32(2), np.uint32(5))
        first, second, left, right = x0, x1, x2, y0
        x = 0.0
        v = -1.0
        while v <= 0.0:
            a0, b0 = encrypted(left, right, np.uint32(0), np.uint32(2))
            a1, b1 = encrypted(left, right, np.uint32(1), np.uint32(3))
            left, right = a0, a1
            x = float(normal_32(b0, b1)) if is_single else float(normal_64(b0, b1))
            v = 1.0 + x * c
        u = float(unit_32(y1, y2)) if is_single else float(unit_64(y1, y2))
        square, cube = x * x, v * v * v
        if u < 1.0 - 0.0331 * (square * square):
            return cube
        if math.log(u) < 0.5 * square + d * (1.0 - cube + math.log(cube)):
            return cube


@compiled
def gamma_draw(first: Any, second: Any, a: float, is_log: bool, is_single: bool) -> float:
    """A number of the gamma distribution of shape `a`, or its logarithm; `is_single`: from numbers of float32."""
    if not a > 0.0:
        return math.nan
    x0, y0 = encrypted(first, second, np.uint32(0), np.uint32(2))
    x1, y1 = encrypted(first, second, np.uint32(1), np.uint32(3))
    d = (a if a >= 1.0 else a + 1.0) - 1.0 / 3.0
    v = marsaglia_tsang(x0, x1, d, is_single)
    u = float(unit_32(y0, y1)) if is_single else float(unit_64(y0, y1))
    if is_log:
        boost = 0.0 if a >= 1.0 or u == 0.0 else math.log1p(-u) / a
        return math.log(d) + math.log(v) + boost
    return d * v * (1.0 if a >= 1.0 else math.pow(1.0 - u, 1.0 / a))


@compiled
def _fill(keys: Any, a: Any, is_log: bool, is_single: bool, out: Any) -> None:
    for i in range(out.size):
        out[i] = gamma_draw(keys[i, 0], keys[i, 1], float(a[i]), is_log, is_single)


def gamma_draws(keys: Any, a: Any, is_log: bool) -> Any:
    """Numbers of the shapes `a` (or their logarithms), one for each of as many keys."""
    out = np.empty(a.size, a.dtype)
    _fill(keys, a.astype(np.float64), is_log, a.dtype == np.float32, out)
    return out
