"""Normal numbers from random bits, for calls from Python: one compiled loop, with the formulas of `stream_formulas`."""

import math
from typing import Any

import numpy as np
from numba import config, njit

from gradsmith.kernels.stream_formulas import fma, stream_erfinv

SHIFTS = {4: 9, 8: 12}  # bits of a word that are not in a float's fraction, by its bytes


def normal_numbers(words: Any, dtype: Any) -> Any:
    """sqrt(2) erfinv(u) for u uniform between -1 and 1, one for each word of as many bits as `dtype` has."""
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    out = np.empty(words.size, dtype)
    step, root = dtype.type(2.0 ** (SHIFTS[dtype.itemsize] - 8 * dtype.itemsize)), dtype.type(math.sqrt(2))
    _fill(words, words.dtype.type(SHIFTS[dtype.itemsize]), step, low, dtype.type(1) - low, root, out)
    return out


def _numpys(words: Any, shift: Any, step: Any, low: Any, span: Any, root: Any, out: Any) -> None:
    unit = (words >> shift).astype(out.dtype) * step
    out[:] = root * stream_erfinv(np.maximum(low, fma(unit, span, low)))


@njit(cache=True, nogil=True, error_model="numpy")
def _compiled(words: Any, shift: Any, step: Any, low: Any, span: Any, root: Any, out: Any) -> None:
    for i in range(words.size):
        # A fraction's bits fit into a signed integer, which vector units convert; here to the dtype of `out`.
        out[i] = np.int64(words[i] >> shift)
        out[i] = root * stream_erfinv(max(low, fma(out[i] * step, span, low)))


_fill = _numpys if config.DISABLE_JIT else _compiled  # type: ignore[attr-defined]
