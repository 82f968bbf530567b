"""Numba's registries, without what gradsmith never asks of them."""

from __future__ import annotations

import functools
import importlib
import sys


@functools.cache
def load_registries() -> None:
    """Load what Numba loads before its first compilation, without SciPy's linear algebra.

    Numba makes sure of SciPy while it imports its array functions; generated code calls BLAS by other ways
    (`kernels.blas`), and importing `scipy.linalg` takes longer than all the rest.  Numba makes sure again whenever a
    function really uses its linear algebra.
    """
    import numba.np.linalg

    ensure = getattr(numba.np.linalg, "ensure_blas", None)
    if ensure is None or "numba.np.arraymath" in sys.modules:
        return
    numba.np.linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        numba.np.linalg.ensure_blas = ensure
