"""Gradients of loop kernels: how long ours takes beside JAX's, one written by hand and the function itself.

Each side runs in a process of its own; they take turns in short rounds, and the least time of each counts.  All
gradients are compared with ours before anything is timed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter

import numpy as np

from loops.kernel import KERNELS, Kernel
from loops.sides import sides

PROGRAM = Path(__file__).with_name("sides.py")
TOLERANCE = 1e-8        # of gradients, relative to the greatest element
Run = Callable[[int], float]


@dataclass(frozen=True)
class Times:
    """Seconds a call.  primal and gradient are ours; naive_ours is ours at the size that the naive form can bear."""

    kernel: str
    primal: float
    gradient: float
    jax: dict[str, float]
    hand: float | None = None
    naive: float | None = None
    naive_ours: float | None = None

    @property
    def best(self) -> str:
        """The fastest of JAX's forms."""
        return min(self.jax, key=self.jax.__getitem__)

    @property
    def faster_than_jax(self) -> float:
        return self.jax[self.best] / self.gradient

    @property
    def faster_than_naive(self) -> float | None:
        return None if self.naive is None or self.naive_ours is None else self.naive / self.naive_ours

    @property
    def of_hand(self) -> float | None:
        return None if self.hand is None else self.gradient / self.hand

    @property
    def of_primal(self) -> float:
        return self.gradient / self.primal


@contextmanager
def process(kernel: Kernel, side: str, size: tuple[int, ...], result: Path) -> Iterator[Run]:
    """A side that is ready to be timed; its gradient is in the file `result`."""
    words = [sys.executable, str(PROGRAM), kernel.name, side, ",".join(map(str, size)), str(result)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        stdin, stdout = child.stdin, child.stdout
        assert stdin is not None and stdout is not None

        def run(count: int) -> float:
            stdin.write(f"{count}\n")
            stdin.flush()
            return float(stdout.readline())

        if stdout.readline().strip() != "ready":
            raise RuntimeError(f"{side} of {kernel.name} failed")
        yield run
        stdin.close()


def require_same(ours: Path, other: Path, what: str) -> None:
    with np.load(ours) as left, np.load(other) as right:
        assert left.files == right.files, what
        for key in left.files:
            a, b = left[key], right[key]
            assert a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}"
            error = np.abs(a - b).max() / np.abs(b).max()
            assert error <= TOLERANCE, f"{what}: gradients differ by {error:.1e}"


def least(runs: Sequence[Run], seconds: float) -> list[float]:
    """The least seconds a call of each, within about `seconds` for each, at least two rounds."""
    best = [run(1) for run in runs]
    counts = [max(1, round(0.02 / max(b, 1e-7))) for b in best]
    start, rounds = perf_counter(), 0
    while rounds < 2 or perf_counter() - start < seconds * len(runs):
        best = [min(b, run(count) / count) for b, run, count in zip(best, runs, counts)]
        rounds += 1
    return best


def together(kernel: Kernel, names: Sequence[str], size: tuple[int, ...], seconds: float) -> dict[str, float]:
    """Seconds a call of each side at one size, `ours` among them."""
    with tempfile.TemporaryDirectory(prefix="gradsmith-bench-") as folder, ExitStack() as stack:
        files = {name: Path(folder) / f"{k}.npz" for k, name in enumerate(names)}
        runs = [stack.enter_context(process(kernel, name, size, files[name])) for name in names]
        for name in names:
            if name not in ("ours", "primal"):
                require_same(files["ours"], files[name], f"{kernel.name}, {name}")
        return dict(zip(names, least(runs, seconds)))


def measure(kernel: Kernel, seconds: float, quick: bool = False) -> Times:
    size, naive_size = (kernel.least, kernel.least) if quick else (kernel.size, kernel.naive_size)
    found = together(kernel, ["ours", "primal", *sides(kernel), *(["hand"] if kernel.by_hand else [])], size, seconds)
    naive = together(kernel, ["ours", kernel.naive], naive_size, seconds / 2) if kernel.naive else {}
    return Times(kernel.name, found["primal"], found["ours"], {name: found[name] for name in sides(kernel)},
                 found.get("hand"), naive.get(kernel.naive), naive.get("ours"))


def measure_all(names: Iterable[str] = (), seconds: float = 1.0, quick: bool = False) -> Iterator[Times]:
    for name in names or KERNELS:
        yield measure(KERNELS[name], seconds, quick)


def summary(found: Sequence[Times]) -> dict[str, float]:
    """How it stands with the bars over all kernels."""
    return {"geometric mean of JAX's best / ours": geometric_mean(t.faster_than_jax for t in found),
            "least of JAX's best / ours": min(t.faster_than_jax for t in found),
            "median of gradient / primal": median(t.of_primal for t in found)}
