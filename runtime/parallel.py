"""The parallel version of a specialisation, compiled when it is first worth it.

A function whose calls take long is compiled a second time with its parallel loops over `prange`; from then on calls
on arrays of about that size or more go to it, smaller ones to the serial version.  `GRADSMITH_PARALLEL=0` turns this
off.  It is also off where Numba has no thread-safe threading layer, and in a forked child (OpenMP does not survive
a fork).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache as remember
from importlib.util import find_spec
from threading import Lock
from time import perf_counter
from typing import Any

from numpy import ndarray

from .log import logger

LONG = 4e-4         # seconds: a serial call of this length may gain more than threads cost
PATIENCE = 2        # such calls before the parallel version is compiled
LARGE = 20_000      # elements: smaller calls are never parallel, however long they seem on a busy machine

_state = {"forked": False}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _state.update(forked=True))


@remember
def is_available() -> bool:
    """Whether more than one thread may be used."""
    if os.environ.get("GRADSMITH_PARALLEL", "1") == "0" or (os.cpu_count() or 1) < 2:
        return False
    return any(find_spec(f"numba.np.ufunc.{pool}") is not None for pool in ("tbbpool", "omppool"))


def adaptive(serial: Callable[..., Any], make_parallel: Callable[[], Callable[..., Any] | None]) -> Callable[..., Any]:
    """`serial`, watched: after `PATIENCE` long calls `make_parallel()` is asked for the parallel version (None: there
    is nothing to gain)."""
    if not is_available():
        return serial
    parallel: Callable[..., Any] | None = None
    threshold = LARGE
    long_calls = 0
    lock = Lock()

    def call(*args: Any) -> Any:
        nonlocal parallel, threshold, long_calls
        size = 0
        for x in args:
            if type(x) is ndarray and x.size > size:
                size = x.size
        if size < threshold or _state["forked"]:
            return serial(*args)
        if parallel is not None:
            return parallel(*args)
        if long_calls >= PATIENCE:
            return serial(*args)
        start = perf_counter()
        result = serial(*args)
        if perf_counter() - start > LONG:
            with lock:
                long_calls += 1
                asked = long_calls == PATIENCE
            if asked:
                parallel = make_parallel()
                threshold = max(LARGE, size // 2)
                logger.debug("calls on %d elements or more are parallel", threshold)
        return result

    return call
