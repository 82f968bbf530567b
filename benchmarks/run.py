"""Measure gradsmith beside JAX on this machine's CPU, in float64, and compare with what it must reach.

    python benchmarks/run.py                      # everything, some minutes
    python benchmarks/run.py overhead warm        # only these
    python benchmarks/run.py loops --only cholesky,lu
    python benchmarks/run.py --quick              # does it run at all: figures mean little
    python benchmarks/run.py --json FILE          # the rows, for machines

Times are the least of several rounds in which both sides, each in a process of its own, take turns; ratios are ours
/ JAX's, less is better.  First calls are in new processes; their CPU time, of all threads, says more than the clock
where others use the machine.  The exit status is 0 whatever the figures are, unless `--strict`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from jacobians import measure_jacobians
from loops import compare, table
from loops.scaling import measure_scaling
from measures import FULL, MEASURES, QUICK, SECONDS, Row
from rich.console import Console
from rich.text import Text


def number(x: float | None, unit: str) -> str:
    if x is None:
        return ""
    x *= SECONDS.get(unit, 1.0)
    digits = 0 if x >= 100 or (not unit and x == int(x)) else 1 if x >= 10 else 2
    return f"{x:.{digits}f} {unit}".rstrip()


HEADS = ["", "ours", "theirs", "ratio", "bar", ""]


def cells(row: Row) -> list[str]:
    mark = "" if row.ok is None else "pass" if row.ok else "MISSED"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    return [row.measure, number(row.ours, row.unit), number(row.theirs, row.unit), ratio, row.bar, mark]


def show(console: Console, rows: Sequence[Row]) -> None:
    """One table a group, with notes under their rows; on a terminal, what misses its bar is red."""
    for group in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == group]
        table = [HEADS, *map(cells, own)]
        widths = [max(len(line[k]) for line in table) for k in range(len(HEADS))]
        console.print(Text(group, "bold"))
        for row, line in zip([None, *own], table):
            aligned = (text.rjust(w) if k in (1, 2, 3) else text.ljust(w)
                       for k, (text, w) in enumerate(zip(line, widths)))
            console.print(Text("  " + "  ".join(aligned).rstrip(), "dim" if row is None else
                               "red" if row.ok is False else ""))
            if row is not None and row.note:
                console.print(Text(f"    {row.note}", "dim"))
        console.print()


@contextmanager
def progress(console: Console, what: str) -> Iterator[None]:
    """A spinner on a terminal, nothing in a pipe."""
    if not console.is_terminal:
        yield
        return
    with console.status(f"measuring {what}"):
        yield


LOOPS, GROWTH, JACOBIANS = "loops", "growth", "jacobians"
NAMES = [*MEASURES, JACOBIANS, LOOPS, GROWTH]
ELSEWHERE = {GROWTH: lambda effort: measure_scaling(effort is QUICK), JACOBIANS: measure_jacobians}


def measured(name: str, console: Console, options: argparse.Namespace) -> list[Row]:
    """The rows of one measure, which has been printed."""
    if name == LOOPS:
        found = []
        for kernel in options.only or compare.KERNELS:
            with progress(console, f"{name}: {kernel}, {len(found) + 1} of {len(options.only or compare.KERNELS)}"):
                found += compare.measure_all([kernel], 0.1 if options.quick else 1.0, options.quick)
        table.show(console, found)
        return table.rows(found)
    with progress(console, name):
        rows = (ELSEWHERE | MEASURES)[name](QUICK if options.quick else FULL)
    show(console, rows)
    return rows


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    load = os.getloadavg() if hasattr(os, "getloadavg") else (float("nan"),) * 3
    return {"cores": os.cpu_count(), "load": [round(x, 1) for x in load], "machine": platform.machine(),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "llvmlite", "jax")}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    parser.add_argument("--json", metavar="FILE", help="write the rows there, too; - for standard output alone")
    parser.add_argument("--only", metavar="KERNELS", type=lambda text: text.split(","), default=[],
                        help="of the loops, these alone, with commas")
    parser.add_argument("--strict", action="store_true", help="exit status 1 where a bar is missed")
    options = parser.parse_args()
    for what, given, known in (("measure", options.measures, NAMES), ("kernel", options.only, compare.KERNELS)):
        if unknown := set(given) - set(known):
            parser.error(f"no {what} {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

    console = Console(file=sys.stderr if options.json == "-" else None, highlight=False, soft_wrap=True)
    about = machine()
    if options.json != "-":
        print(", ".join(f"{k} {v}" for k, v in about.items()) + "\n", flush=True)
    rows: list[Row] = []
    for name in options.measures or NAMES:
        rows += measured(name, console, options)
    missed = [row for row in rows if row.ok is False]
    if options.json:
        text = json.dumps({"machine": about, "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}, indent=1)
        print(text) if options.json == "-" else Path(options.json).write_text(text + "\n")
    if options.json != "-":
        print(f"{sum(row.ok is True for row in rows)} bars reached, {len(missed)} missed")
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
