"""The measures: how each is taken.  What a measure gives is a list of `Row`s; `run.py` prints them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

FIRST_CALL = Path(__file__).with_name("first_call.py")
WORKER = Path(__file__).with_name("worker.py")
SECONDS = {"s": 1.0, "ms": 1e3, "µs": 1e6}


@dataclass(frozen=True)
class Row:
    """ours and theirs: seconds (or plain numbers, unit ""); theirs is None where there is nothing beside it.

    bar: what must hold, as people read it; ok: whether it does, None where no bar is set.
    """

    group: str
    measure: str
    ours: float
    theirs: float | None
    unit: str
    bar: str = ""
    ok: bool | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs


@dataclass(frozen=True)
class Effort:
    """rounds: of interleaved timing.  seconds: that one round of one side takes, about.  processes: fresh ones for
    each first call."""

    rounds: int
    seconds: float
    processes: int


FULL, QUICK = Effort(200, 0.01, 5), Effort(2, 0.01, 1)     # rounds short enough to find quiet moments


# ---------------------------------------------------------------------------------------------------------------
# calls of what is compiled


@contextmanager
def worker(kind: str, name: str, folder: str) -> Iterator[tuple[Callable[[int], float], Path]]:
    """A process that makes calls on demand and tells the seconds; and the file with its gradient."""
    result = Path(folder) / f"{kind}.npz"
    process = subprocess.Popen([sys.executable, str(WORKER), kind, name, str(result)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def run(count: int) -> float:
        stdin.write(f"{count}\n")
        stdin.flush()
        return float(stdout.readline())

    try:
        if stdout.readline().strip() != "ready":
            raise RuntimeError(f"{kind} failed on {name}")
        yield run, result
    finally:
        stdin.close()
        process.wait()


def require_same(ours: Path, theirs: Path, name: str) -> None:
    """Both gave the same gradient, shapes first."""
    with np.load(ours) as left, np.load(theirs) as right:
        assert left.files == right.files, name
        for key in left.files:
            a, b = left[key], right[key]
            assert a.shape == b.shape, f"{name}: {a.shape} and {b.shape}"
            tolerance = 1e-4 if a.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(), err_msg=name)


def best_times(first: Callable[[int], float], second: Callable[[int], float], effort: Effort) -> tuple[float, float]:
    """The least seconds a call of each took, in rounds that take turns.  Each runs n calls and tells the seconds."""
    counts, best = [], []
    for run in (first, second):
        count = 1
        while (seconds := run(count)) < effort.seconds / 4 and count < 1_000_000:
            count *= 4
        counts.append(max(1, round(count * effort.seconds / max(seconds, 1e-9))))
        best.append(seconds / count)
    for _ in range(effort.rounds):
        for k, run in enumerate((first, second)):
            best[k] = min(best[k], run(counts[k]) / counts[k])
    return best[0], best[1]


def call_times(name: str, effort: Effort) -> tuple[float, float]:
    """Seconds a call of our gradient and of JAX's, each in a process of its own."""
    with (tempfile.TemporaryDirectory(prefix="gradsmith-bench-") as folder,
          worker("ours", name, folder) as (ours, own), worker("jax", name, folder) as (theirs, other)):
        require_same(own, other, name)
        return best_times(ours, theirs, effort)


def overhead(effort: Effort) -> list[Row]:
    """Calls whose own work is next to nothing."""
    rows = []
    for name, limit, factor in (("two scalars", 0.6e-6, 10), ("10 elements", 1.5e-6, None)):
        ours, theirs = call_times(name, effort)
        ok = ours <= limit and (factor is None or theirs >= factor * ours)
        bar = f"≤ {limit * 1e6:.1f} µs" + (f", ≤ {1 / factor:.1f}x" if factor else "")
        rows.append(Row("call", f"gradient of {name}", ours, theirs, "µs", bar, ok))
    return rows


def work(effort: Effort) -> list[Row]:
    """Calls that are mostly work."""
    rows = []
    for name, size, limit in (("sum_logistic", "1e6 float64", 1.0), ("selu, float32", "1e6", 1.0),
                              ("mlp", "64x20 -> 30 -> 5", 0.6), ("logistic regression", "200x10", None),
                              ("cross-entropy", "10000x100", 1.0)):
        ours, theirs = call_times(name, effort)
        unit = "ms" if min(ours, theirs) > 1e-3 else "µs"
        rows.append(Row("work", f"gradient of {name}, {size}", ours, theirs, unit,
                        "" if limit is None else f"≤ {limit}x", None if limit is None else ours <= limit * theirs))
    return rows


def batches(effort: Effort) -> list[Row]:
    """vmap, and many steps in one compiled call."""
    from batches import BATCHES
    few = replace(effort, rounds=min(effort.rounds, 20))         # some calls of JAX's take a second
    rows = []
    for name, batch in BATCHES.items():
        ours, theirs = call_times(name, few)
        rows.append(Row("batches", name, ours, theirs, "ms" if min(ours, theirs) > 1e-3 else "µs", f"≤ {batch.limit}x",
                        ours <= batch.limit * theirs, "" if batch.beside == "JAX" else f"beside {batch.beside}"))
    return rows


# ---------------------------------------------------------------------------------------------------------------
# first calls


@contextmanager
def empty_cache() -> Iterator[dict[str, str]]:
    """An environment whose cache folder is new and empty, and in which Python keeps bytecode as it usually does."""
    with tempfile.TemporaryDirectory(prefix="gradsmith-bench-") as folder:
        yield {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"GRADSMITH_CACHE_DIR": folder}


def in_new_process(kind: str, name: str, environment: dict[str, str], after: str | None = None) -> dict[str, Any]:
    words = [sys.executable, str(FIRST_CALL), kind, name, *(["--after", after] if after else [])]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def first_calls(effort: Effort) -> list[Row]:
    """Nothing cached: the first function of a process, and one after another function."""
    rows: list[Row] = []
    imports: tuple[list[float], list[float]] = [], []
    with empty_cache() as environment:
        in_new_process("ours", "mlp", environment)      # writes whatever bytecode is not there yet
    for after in (None, "10 elements"):
        for name in ("sum_logistic", "mlp", "logistic regression"):
            own, other = [], []
            for _ in range(effort.processes):
                with empty_cache() as environment:
                    own.append(in_new_process("ours", name, environment, after))
                    other.append(in_new_process("jax", name, environment, after))
            for seconds, runs in zip(imports, (own, other)):
                seconds += [run["import"] for run in runs]
            stages = {s: min(run["stages"][s] for run in own) for s in own[0]["stages"]}
            note = ", ".join(f"{s} {1e3 * seconds:.0f}" for s, seconds in stages.items()) + " ms"
            group = "first call, cold" if after is None else "first call after another function's"
            for clock in ("wall", "cpu"):
                ours, theirs = min(r[clock] for r in own), min(r[clock] for r in other)
                rows.append(Row(group, f"{name}, {clock} time", ours, theirs, "ms", "≤ 1.5x", ours <= 1.5 * theirs,
                                note if clock == "wall" else ""))
    rows.append(Row("import of the library", "wall time, NumPy there already", min(imports[0]), min(imports[1]), "ms"))
    return rows


def warm_calls(effort: Effort) -> list[Row]:
    """A second process, with everything in the cache: from having imported Numba to having the result."""
    rows = []
    for name in ("sum_logistic", "mlp", "logistic regression"):
        with empty_cache() as environment:
            in_new_process("ours", name, environment)
            in_new_process("warm", name, environment)      # writes bytecode of whatever was never imported
            runs = [in_new_process("warm", name, environment) for _ in range(effort.processes)]
        note = (f"of it import gradsmith {1e3 * min(r['import'] for r in runs):.0f} ms; "
                f"import numba itself {1e3 * min(r['numba'] for r in runs):.0f} ms; "
                f"median {1e3 * median(r['wall'] for r in runs):.0f} ms")
        for clock in ("wall", "cpu"):
            seconds = min(r[clock] for r in runs)
            rows.append(Row("first call, warm cache", f"{name}, {clock} time", seconds, None, "ms", "≤ 450 ms",
                            seconds <= 0.45, note if clock == "wall" else ""))
    return rows


def lengths(effort: Effort) -> list[Row]:
    """How many compilations serve many lengths, ranks and layouts being the same."""
    import gradsmith
    made: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("compiled"):
                made.append(record.getMessage())

    logger, listener = logging.getLogger("gradsmith"), Listener()
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    try:
        gradient = gradsmith.grad(lambda x, w: np.sum(np.tanh(x @ w) ** 2))
        sizes = [(2, 3), (3, 2), (10, 10), (117, 33), (1000, 7), (5, 900)]
        for n, m in sizes:
            gradient(np.ones((n, m)), np.ones(m))
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
    count = len(made)
    return [Row("compilations", f"{len(sizes)} shapes of one dtype, rank and layout", count, None, "", "= 1",
                count == 1)]


# ---------------------------------------------------------------------------------------------------------------
# kernels


def kernels(effort: Effort) -> list[Row]:
    """Elementary functions beside the C library's through Numba, one thread."""
    import kernels as table
    rows = []
    bars = {"exp", "log", "sin", "cos", "tanh", "power"}
    for name in bars if effort is QUICK else table.NAMES:
        for dtype in (np.float64, np.float32):
            found = table.measure(name, dtype, 10_000 if effort is QUICK else 1_000_000)
            has_bar = name in bars
            rows.append(Row("kernels (beside libm), ns an element", f"{name}, {dtype.__name__}", found.ours,
                            found.library, "", "≤ 0.33x" if has_bar else "",
                            3 * found.ours <= found.library if has_bar else None))
    return rows


# ---------------------------------------------------------------------------------------------------------------
# StableHLO


def stablehlo(effort: Effort) -> list[Row]:
    """Our modules beside JAX's, compiled by XLA."""
    import xla
    return xla.beside_jax(effort)


Measure = Callable[[Effort], list[Row]]
MEASURES: dict[str, Measure] = {"overhead": overhead, "work": work, "batches": batches, "lengths": lengths,
                                "first": first_calls, "warm": warm_calls, "kernels": kernels, "xla": stablehlo}
