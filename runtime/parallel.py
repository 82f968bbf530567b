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
TRIALS = 4          # parallel calls after which the slower version is given up
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
    is nothing to gain), which stays only if its own first calls are faster."""
    return _Adaptive(serial, make_parallel).call if is_available() else serial


class _Adaptive:
    """Chooses between two versions of one function.  Times are the least seen for each element of the argument."""

    def __init__(self, serial: Callable[..., Any], make_parallel: Callable[[], Callable[..., Any] | None]) -> None:
        self.serial, self.make_parallel = serial, make_parallel
        self.parallel: Callable[..., Any] | None = None
        self.threshold = LARGE
        self.long_calls = 0
        self.trials = TRIALS
        self.best = {"serial": float("inf"), "parallel": float("inf")}
        self.lock = Lock()

    def call(self, *args: Any) -> Any:
        size = 0
        for x in args:
            if type(x) is ndarray and x.size > size:
                size = x.size
        if size < self.threshold or _state["forked"]:
            return self.serial(*args)
        if self.parallel is not None:
            return self.parallel(*args) if self.trials == 0 else self._try(self.parallel, args, size)
        if self.long_calls >= PATIENCE:
            return self.serial(*args)
        result, seconds = self._timed("serial", self.serial, args, size)
        if seconds > LONG:
            with self.lock:
                self.long_calls += 1
                asked = self.long_calls == PATIENCE
            if asked:
                self.parallel = self.make_parallel()
                self.threshold = max(LARGE, size // 2)
                logger.debug("calls on %d elements or more are parallel", self.threshold)
        return result

    def _timed(self, version: str, function: Callable[..., Any], args: tuple[Any, ...], size: int) -> tuple[Any, float]:
        start = perf_counter()
        result = function(*args)
        seconds = perf_counter() - start
        self.best[version] = min(self.best[version], seconds / size)
        return result, seconds

    def _try(self, parallel: Callable[..., Any], args: tuple[Any, ...], size: int) -> Any:
        """One of the first parallel calls; after the last the slower version is given up."""
        result, _ = self._timed("parallel", parallel, args, size)
        with self.lock:
            self.trials -= self.trials > 0
            if self.trials == 0 and self.best["parallel"] > self.best["serial"]:
                logger.debug("the parallel version is no faster here: serial calls from now on")
                self.parallel = None
        return result
