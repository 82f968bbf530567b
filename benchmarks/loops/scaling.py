"""How time, memory, compilation and generated text grow: with the trips of a loop, and with branches in it.

    python benchmarks/loops/scaling.py WHAT TRIPS

prints, as JSON, what `measure_scaling` asks of a fresh process.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measures import Row

from loops.stencils import jacobi_2d

GROUP = "growth"
CELLS = 1500        # of the stencil, along each axis: its arrays are large beside what a process holds anyway


def recurrence(x):
    """x: (n,).  Each element squared into the next."""
    n = x.shape[0]
    y = np.zeros(n)
    y[0] = x[0]
    for i in range(1, n):
        y[i] = x[i] + 0.5 * y[i - 1] ** 2
    return np.sum(y)


def ten_trips(x):
    for _ in range(10):
        x = np.sin(x) + 0.1 * x * x
    return x


def thousand_trips(x):
    for _ in range(1000):
        x = np.sin(x) + 0.1 * x * x
    return x


def hundred_thousand_trips(x):
    for _ in range(100_000):
        x = np.sin(x) + 0.1 * x * x
    return x


LITERAL_TRIPS = {10: ten_trips, 1000: thousand_trips, 100_000: hundred_thousand_trips}


def chain(count: int) -> str:
    """A function with `count` branches on run-time values, one after another, in a loop."""
    branches = "".join(f"""\
        if x > {0.1 + k / 100}:
            x = x * {0.9 + k / 1000} - 0.1 * y
        else:
            y = y + 0.{k + 1} * x
""" for k in range(count))
    return f"def chained(x, y, n):\n    for _ in range(n):\n{branches}    return x + y\n"


# ---------------------------------------------------------------------------------------------------------------
# in fresh processes


def peak(reset: bool = False) -> int:
    """The most memory that this process has had resident, in bytes; on Linux, since it was last reset."""
    status = Path("/proc/self/status")
    if reset and status.exists():
        Path("/proc/self/clear_refs").write_text("5")
    if status.exists():
        return 1024 * int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    import resource
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(function: Callable[..., Any], small: tuple[Any, ...], arguments: tuple[Any, ...]) -> dict[str, float]:
    """Bytes above what was there before the call, which is made once the gradient is compiled."""
    import gradsmith
    gradient = gradsmith.grad(function)
    gradient(*small)
    before = peak(reset=True)
    gradient(*arguments)
    return {"bytes": peak() - before}


def trips(n: int) -> dict[str, float]:
    import gradsmith
    x = np.random.default_rng(0).uniform(0, 0.4, n)
    found = memory(recurrence, (x[:100],), (x,))
    gradient = gradsmith.grad(recurrence)
    times = []
    for _ in range(20):
        start = perf_counter()
        gradient(x)
        times.append(perf_counter() - start)
    return found | {"seconds": min(times)}


def stencil(steps: int) -> dict[str, float]:
    grid = np.random.default_rng(0).normal(size=(CELLS, CELLS))
    return memory(jacobi_2d, (grid[:5, :5].copy(), 1), (grid, steps))


def first_call(count: int) -> dict[str, float]:
    import gradsmith
    gradsmith.grad(lambda x: x * x)(1.0)        # loads what any first call loads
    gradient = gradsmith.grad(LITERAL_TRIPS[count])
    start = perf_counter()
    gradient(0.3)
    return {"seconds": perf_counter() - start, "lines": len(gradient.source(0.3).splitlines())}


def branches(count: int) -> dict[str, float]:
    import gradsmith
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chained.py"
        path.write_text(chain(count))
        spec = importlib.util.spec_from_file_location("chained", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return {"lines": len(gradsmith.grad(module.chained, argnums=(0, 1)).source(0.5, 0.5, 3).splitlines())}


def budgeted(name: str, steps: int) -> dict[str, float]:
    from loops.budget import times
    return times(name, steps)


BUDGETED = ("heat, slices", "heat, elements", "Burgers, slices", "Burgers, elements")
IN_PROCESS: dict[str, Callable[[int], dict[str, float]]] = {
    "trips": trips, "stencil": stencil, "first_call": first_call, "branches": branches} | {
        name: partial(budgeted, name) for name in BUDGETED}


def fresh(what: str, count: int, **variables: str) -> dict[str, float]:
    """variables: of the process's environment."""
    from measures import empty_cache
    with empty_cache() as environment:
        done = subprocess.run([sys.executable, __file__, what, str(count)], env=environment | variables,
                              capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


# ---------------------------------------------------------------------------------------------------------------
# rows; `theirs` is the same measure at the size that it is compared with


def measure_scaling(quick: bool = False) -> list[Row]:
    rows: list[Row] = []
    counts = (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000)
    for n in counts:
        found = fresh("trips", n)
        if n == counts[0]:
            each = found["seconds"] / n
        rows.append(Row(GROUP, f"y[i] = x[i] + 0.5*y[i-1]**2, {n} trips: ns a trip", 1e9 * found["seconds"] / n,
                        1e9 * each, "", "≤ 2x", found["seconds"] <= 2 * n * each))
        if n >= 100_000:        # pages are coarser than what fewer need
            rows.append(Row(GROUP, f"y[i] = x[i] + 0.5*y[i-1]**2, {n} trips: bytes a trip", found["bytes"] / n, None,
                            "", "≤ 48", found["bytes"] <= 48 * n))
    few = fresh("stencil", 2)["bytes"]
    for steps in (4,) if quick else (10, 50):
        many = fresh("stencil", steps)["bytes"]
        rows.append(Row(GROUP, f"Jacobi 2-D, {CELLS}x{CELLS}: MB for {steps} steps, beside 2", many / 1e6, few / 1e6,
                        "", "≤ 1.2x", many <= 1.2 * few))
    for name in BUDGETED[:1] if quick else BUDGETED:
        steps = 50 if quick else 10_000
        found = fresh(name, steps, GRADSMITH_PARALLEL="0")
        rows.append(Row(GROUP, f"{name}: gradient of {steps} steps over 1e5 cells in 200 MB, beside the steps",
                        found["gradient"], found["primal"], "ms", "≤ 4x", found["gradient"] <= 4 * found["primal"]))
    ten = fresh("first_call", 10)
    for count in (1000,) if quick else (1000, 100_000):
        found = fresh("first_call", count)
        rows.append(Row(GROUP, f"first call of a loop of {count} trips, beside 10", found["seconds"], ten["seconds"],
                        "ms", "≤ 1.3x", found["seconds"] <= 1.3 * ten["seconds"]))
        rows.append(Row(GROUP, f"generated lines for {count} trips, beside 10", found["lines"], ten["lines"], "",
                        "= 1x", found["lines"] == ten["lines"]))
    five = fresh("branches", 5)["lines"]
    for count in (10,) if quick else (10, 25):
        lines = fresh("branches", count)["lines"]
        rows.append(Row(GROUP, f"generated lines for {count} chained ifs, beside {count}/5 of those for 5", lines,
                        five * count / 5, "", "≤ 1.1x", lines <= 1.1 * five * count / 5))
    return rows


if __name__ == "__main__":
    print(json.dumps(IN_PROCESS[sys.argv[1]](int(sys.argv[2]))))
