"""The parallel version of a specialisation, compiled when it is first worth it.

A function whose calls take long is compiled a second time with its parallel loops over `prange`.  Which version serves
a call is measured, for each size of the arguments on its own: a few calls are made with either, and the parallel one
has to be clearly faster.  It goes on being watched, since threads that wait for each other on cores with other work may
take many times longer; what it lost is tried again later, seldom enough that the trials cost next to nothing.
`GRADSMITH_PARALLEL=0` turns all this off.  It is also off where Numba has no thread-safe threading layer or one thread
only, and in a forked child (OpenMP does not survive a fork).
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
LONG_SMALL = 2e-3   # the same for arguments with few elements, of which there are many calls that seem long once
LARGE = 20_000      # elements: what is few
PATIENCE = 2        # such calls before the parallel version is compiled or tried
TRIALS = 3          # parallel calls before the two versions are compared
GAIN = 0.9          # the parallel version stays if its best call takes at most this part of the other's
SLOW, STRIKES = 1.5, 3      # so much slower, so many times in a row: the serial version serves again
MANY, WAKING = 8, 0.02      # at once where one takes so many times longer, and more seconds than threads take to start
SHARE = 64          # seconds without a new trial for each second that one has taken
SAMPLE = 15         # of calls while all are short, one in SAMPLE + 1 is looked at
SIZES = 64          # sizes of arguments that are remembered

_state = {"forked": False}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _state.update(forked=True))


@remember
def is_available() -> bool:
    """Whether more than one thread may be used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if os.environ.get("GRADSMITH_PARALLEL", "1") == "0" or min(cores, _threads()) < 2:
        return False
    return any(find_spec(f"numba.np.ufunc.{pool}") is not None for pool in ("tbbpool", "omppool"))


def _threads() -> int:
    """How many threads Numba would use."""
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() else os.cpu_count() or 1


def cores_are_free() -> bool:
    """Whether hardly any other thread of the machine is running now; True where the system does not tell."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            running = int(file.read().split()[3].split("/")[0])
    except OSError:
        return True
    return running - 1 <= (os.cpu_count() or 1) // 8


def adaptive(serial: Callable[..., Any], make_parallel: Callable[[], Callable[..., Any] | None]) -> Callable[..., Any]:
    """`serial`, watched: after `PATIENCE` long calls `make_parallel()` is asked for the parallel version (None: there
    is nothing to gain), which serves the sizes of arguments at which it is faster."""
    return _Adaptive(serial, make_parallel).call if is_available() else serial


class _Choice:
    """Which version serves arguments of one size.  best, fastest: the least seconds of a serial and a parallel call."""

    def __init__(self) -> None:
        self.long_calls = 0
        self.best = self.fastest = float("inf")
        self.trials = 0             # parallel calls still to make before the two are compared
        self.turn = False           # while they are tried: whether the next call is a parallel one
        self.parallel = False
        self.strikes = 0
        self.lost = 0.0             # seconds that the latest trial has taken
        self.again = 0.0            # when there may be another

    def is_due(self, now: float) -> bool:
        """After a long serial call: whether the parallel version is to be tried, which begins with this."""
        if self.trials or now < self.again:
            return False
        self.long_calls += 1
        if self.long_calls < PATIENCE or not cores_are_free():
            return False
        self.trials, self.fastest, self.lost, self.turn = TRIALS, float("inf"), 0.0, True
        return True

    def after_serial(self, seconds: float) -> None:
        self.best = min(self.best, seconds)
        self.turn = True

    def after_parallel(self, seconds: float, now: float) -> None:
        self.fastest = min(self.fastest, seconds)
        if self.trials:
            self.trials, self.turn = self.trials - 1, False
            self.lost += seconds
            if seconds > max(MANY * self.best, WAKING):
                self.trials = 0             # the cores have other work
            if not self.trials:
                self.parallel = self.fastest < GAIN * self.best
                self.strikes = 0
                self.again = now + SHARE * self.lost
        else:
            is_slow, is_stuck = seconds > SLOW * self.best, seconds > max(MANY * self.best, WAKING)
            self.strikes = STRIKES if is_stuck else self.strikes + 1 if is_slow else 0
            if self.strikes >= STRIKES:
                self.parallel, self.again, self.long_calls = False, now + SHARE * seconds, 0
                self.best = float("inf")    # the machine is another now


class _Adaptive:
    """Chooses between two versions of one function."""

    def __init__(self, serial: Callable[..., Any], make_parallel: Callable[[], Callable[..., Any] | None]) -> None:
        self.serial, self.make_parallel = serial, make_parallel
        self.parallel: Callable[..., Any] | None = None
        self.asked = False
        self.calls = 0
        self.short = 0                  # calls on no more elements were short, when one was looked at
        self.choices: dict[tuple[int, ...], _Choice] = {}
        self.lock = Lock()

    def call(self, *args: Any) -> Any:
        if _state["forked"] or (self.asked and self.parallel is None):
            return self.serial(*args)
        elements = 1
        for x in args:
            if type(x) is ndarray and x.size > elements:
                elements = x.size
        if elements <= self.short:
            self.calls += 1
            if self.calls & SAMPLE:
                return self.serial(*args)
        key = (elements.bit_length(), *(x.bit_length() for x in args if type(x) is int))
        choice = self.choices.get(key)
        if choice is None:
            choice = self._new(key)
        if self.parallel is not None and (choice.parallel or (choice.trials and choice.turn)):
            return self._parallel(self.parallel, args, choice)
        return self._serial(args, choice, elements)

    def _new(self, key: tuple[int, ...]) -> _Choice:
        with self.lock:
            if len(self.choices) >= SIZES:
                self.choices.clear()
            return self.choices.setdefault(key, _Choice())

    def _parallel(self, parallel: Callable[..., Any], args: tuple[Any, ...], choice: _Choice) -> Any:
        start = perf_counter()
        result = parallel(*args)
        now = perf_counter()
        was = choice.parallel
        with self.lock:
            choice.after_parallel(now - start, now)
        if was != choice.parallel:
            logger.debug("calls of this size are %s from now on: %.3g s, at best %.3g s with one thread",
                         "parallel" if choice.parallel else "serial", now - start, choice.best)
        return result

    def _serial(self, args: tuple[Any, ...], choice: _Choice, elements: int) -> Any:
        start = perf_counter()
        result = self.serial(*args)
        now = perf_counter()
        is_long = now - start > (LONG if elements >= LARGE else LONG_SMALL)
        with self.lock:
            choice.after_serial(now - start)
            if is_long:
                self.short = min(self.short, elements - 1)
            elif not self.asked:
                self.short = max(self.short, elements)
            ask = is_long and choice.is_due(now) and not self.asked
            self.asked |= ask
        if ask:
            self.parallel = self.make_parallel()
        return result
