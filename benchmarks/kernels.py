"""Time the elementary functions: ours, the C library's through Numba, and NumPy's.

    python benchmarks/kernels.py                    # every function
    python benchmarks/kernels.py exp sin --size 1000

Nanoseconds an element, one thread, the best of several runs; and the cold compile time of a loop around ours against
one around the C library's.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, types

from gradsmith import kernels

NAMES = [
    *("exp", "exp2", "expm1", "expit", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
    *("arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("power", "cbrt", "hypot"),
]
BINARY = {"arctan2", "power", "hypot"}
RANGES = {
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctanh": (-1, 1),
    "arccosh": (1, 10),
    "log1p": (-0.9, 10),
} | dict.fromkeys(("log", "log2", "log10", "power"), (0.01, 10))
MATH_NAMES = {"arctan2": "atan2", "power": "pow"}
NUMBA_TYPES = {np.float64: types.float64, np.float32: types.float32}


@njit(error_model="numpy")
def expit_by_library(x):
    return 1 / (1 + math.exp(-x))


def library_function(name: str) -> Callable[..., Any]:
    """What a Numba user would call."""
    if name == "expit":
        return expit_by_library
    if name in ("exp2", "cbrt"):
        return getattr(np, name)  # Numba has no math.exp2 or math.cbrt
    name = MATH_NAMES.get(name, name.replace("arc", "a"))
    return getattr(math, name)


def loop(function: Callable[..., Any], is_binary: bool) -> Any:
    if is_binary:

        @njit(error_model="numpy")
        def run(x, y, out):
            for i in range(x.shape[0]):
                out[i] = function(x[i], y[i])
    else:

        @njit(error_model="numpy")
        def run(x, out):
            for i in range(x.shape[0]):
                out[i] = function(x[i])

    return run


def seconds(function: Callable[..., Any], *arguments: Any, runs: int = 7) -> float:
    """The best of several runs."""
    best = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def compile_seconds(run: Any, dtype: type, arrays: int) -> float:
    array = types.Array(NUMBA_TYPES[dtype], 1, "C")
    start = time.perf_counter()
    run.compile((array,) * arrays)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Found:
    """Nanoseconds an element, and seconds of compilation."""

    ours: float
    library: float
    numpy: float
    compile_ours: float
    compile_library: float


def measure(name: str, dtype: type, size: int) -> Found:
    is_binary = name in BINARY
    generator = np.random.default_rng(1)
    low, high = RANGES.get(name, (-10, 10))
    inputs = [generator.uniform(low, high, size).astype(dtype) for _ in range(2 if is_binary else 1)]
    arguments = [*inputs, np.empty(size, dtype)]
    ours, theirs = loop(getattr(kernels, name), is_binary), loop(library_function(name), is_binary)
    compile_ours, compile_theirs = (compile_seconds(run, dtype, len(arguments)) for run in (ours, theirs))
    repeat = max(1, 100_000 // size)

    def again(function: Callable[..., Any], *arguments: Any) -> None:
        for _ in range(repeat):
            function(*arguments)

    per_element = 1e9 / (size * repeat)
    own = seconds(again, ours, *arguments) * per_element
    library = seconds(again, theirs, *arguments) * per_element
    numpy = seconds(again, getattr(np, name), *arguments) * per_element if hasattr(np, name) else math.nan
    return Found(own, library, numpy, compile_ours, compile_theirs)


def line(name: str, dtype: type, found: Found) -> str:
    return (
        f"{name:8} {dtype.__name__}  {found.ours:6.2f} {found.library:6.2f} {found.numpy:6.2f}"
        f"  {found.library / found.ours:5.1f}x   {found.compile_ours * 1e3:5.0f} {found.compile_library * 1e3:5.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    compile_seconds(loop(math.sqrt, False), np.float64, 2)  # Numba's own first-use costs
    print("                    ns: ours   libm  numpy  ratio   compile ms: ours, libm")
    for name in options.names:
        for dtype in (np.float64, np.float32):
            print(line(name, dtype, measure(name, dtype, options.size)), flush=True)


if __name__ == "__main__":
    main()
