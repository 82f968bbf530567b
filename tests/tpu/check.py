"""Compile all drawn modules with the TPU compiler, ahead of time: `make tpu-check`.

    python tests/tpu/check.py [--topology v5e:2x2] [--only TEXT] [--jobs 2] [--anew]

No TPU is needed.  What was compiled before is known by a hash of its text, the compiler's version and the topology, in
build/tpu-check.json; a module that crashed the compiler counts as refused.  Status 1 if a module is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "build" / "tpu-check.json"


@dataclass(frozen=True)
class Result:
    """problem: the compiler's words where it refuses.  optimal: its estimate of the time of one run, in seconds."""

    name: str
    problem: str | None
    seconds: float
    flops: float = 0.0
    optimal: float = 0.0


def compiled(name: str, text: str, topology: str) -> Result:
    """In a process of its own kind: libtpu is loaded, and its crash is not ours."""
    from gradsmith.xla import XlaError, compile_for_tpu
    start = time.perf_counter()
    try:
        made = compile_for_tpu(text, topology)
    except XlaError as refused:
        return Result(name, str(refused)[:2000], time.perf_counter() - start)
    return Result(name, None, time.perf_counter() - start, made.costs.get("flops", 0.0),
                  made.costs.get("optimal_seconds", 0.0))


def run(modules: Sequence[tuple[str, str]], topology: str, jobs: int) -> Iterator[Result]:
    """Results as they come.  When a process dies, the modules that it may have died of are tried alone."""
    waiting = list(modules)
    suspects: list[tuple[str, str]] = []
    while waiting or suspects:
        alone = bool(suspects)
        source, count = (suspects, 1) if alone else (waiting, jobs)
        running: dict[Future[Result], tuple[str, str]] = {}
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            broken = False
            while (source and not broken) or running:
                while source and len(running) < count and not broken:
                    name, text = source.pop(0)
                    running[pool.submit(compiled, name, text, topology)] = (name, text)
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    module = running.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        broken = True
                        if alone:
                            yield Result(module[0], "the compiler crashed", 0.0)
                        else:
                            suspects.append(module)


def key_of(text: str, topology: str) -> str:
    version = importlib.metadata.version("libtpu")
    return hashlib.sha256(f"{version}\n{topology}\n{text}".encode()).hexdigest()[:32]


def known_results() -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(RESULTS.read_text())
    except (OSError, ValueError):
        return {}
    return found


def save(known: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=RESULTS.parent)
    with os.fdopen(handle, "w") as file:
        json.dump(known, file)
    os.replace(temporary, RESULTS)


def drawn_modules() -> list[Any]:
    sys.path.insert(0, str(HERE.parent))                # as pytest has it: modules of the tests name each other so
    spec = importlib.util.spec_from_file_location("tpu_modules", HERE / "modules.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tpu_modules"] = module
    spec.loader.exec_module(module)
    return list(module.drawn())


def check(modules: Sequence[Any], topology: str, jobs: int, anew: bool) -> tuple[list[Result], int]:
    """Results in the order of the modules, and how many were known."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    known = {} if anew else known_results()
    keys = {m.name: key_of(m.text, topology) for m in modules}
    results = {m.name: Result(**{**known[keys[m.name]], "name": m.name}) for m in modules if keys[m.name] in known}
    count = len(results)
    new = [(m.name, m.text) for m in modules if m.name not in results]
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(new))
        for number, result in enumerate(run(new, topology, jobs)):
            results[result.name] = result
            known[keys[result.name]] = asdict(result)
            bar.update(task, advance=1, description=result.name)
            if number % 20 == 19:
                save(known)
    save(known)
    return [results[m.name] for m in modules], count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="v5e:2x2")
    parser.add_argument("--only", help="modules whose names have this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--anew", action="store_true", help="compile what was compiled before, too")
    options = parser.parse_args()
    everything = [m for m in drawn_modules() if not options.only or options.only in m.name]
    modules = [m for m in everything if m.text is not None]
    results, known = check(modules, options.topology, options.jobs, options.anew)
    for left in everything:
        if left.text is None:
            print(f"not written: {left.name}: {left.reason}")
    refused = [r for r in results if r.problem is not None]
    for result in refused:
        print(f"refused: {result.name}: {result.problem}")
    groups = Counter(r.name.split()[0] for r in results)
    print(f"{len(results) - len(refused)} of {len(results)} modules compile for TPU {options.topology} with libtpu "
          f"{importlib.metadata.version('libtpu')} ({', '.join(f'{n} {g}' for g, n in groups.items())}); "
          f"{known} known before, {sum(r.seconds for r in results):.0f} s of compiling in all")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
