"""Run many random programs and say how they fared.

    python tests/programs/run.py --count 50000 --jobs 2

Each chunk of programs follows from its number alone, so `--first` goes on where another run ended.  A program about
which gradsmith is wrong is shrunk and printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from programs.checks import check
from programs.compiled import check_compiled
from programs.writer import Program, programs

CHUNK = 100


def run_chunk(number: int, count: int = CHUNK, compiled_every: int = 0, shrink: bool = True) -> Counter[str]:
    """Check `count` programs that follow from `number`.  What came of them, counted.

    Raises what the (shrunk) program that failed raises, with its text as a note.
    """
    found: Counter[str] = Counter()
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, phases=phases, report_multiple_bugs=False,
              print_blob=False, suppress_health_check=list(HealthCheck))
    @given(programs(), st.integers(0, 999))
    def one(program: Program, thorough: int) -> None:
        found["programs"] += 1
        try:
            outcome = check(program, thorough=thorough)
            if compiled_every and thorough % compiled_every == 0 and outcome.points and not outcome.refused:
                found["compiled"] += bool(check_compiled(program))
        except Exception as problem:
            problem.add_note(f"{program}# thorough={thorough}")
            raise
        found[f"refused {outcome.refused}" if outcome.refused else outcome.message or "compared"] += 1
        found["trip counts with derivatives"] += outcome.points
        found.update(outcome.done)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one()
    return found


def _reported(job: tuple[int, int, int]) -> tuple[int, Counter[str], str]:
    number, count, compiled_every = job
    try:
        return number, run_chunk(number, count, compiled_every), ""
    except Exception as problem:
        return number, Counter(failed=1), "\n".join([f"{type(problem).__name__}: {problem}", *problem.__notes__])


def _chunks(first: int, count: int, compiled_every: int) -> Iterator[tuple[int, int, int]]:
    for number in range((count + CHUNK - 1) // CHUNK):
        yield first + number, min(CHUNK, count - number * CHUNK), compiled_every


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how many programs")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--first", type=int, default=1000, help="the number of the first chunk")
    parser.add_argument("--compiled-every", type=int, default=0, metavar="N", help="compile every Nth through Numba too")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    failures = []
    start = time.perf_counter()
    with multiprocessing.Pool(options.jobs, maxtasksperchild=20) as pool:
        jobs = _chunks(options.first, options.count, options.compiled_every)
        for number, counts, failure in pool.imap_unordered(_reported, jobs):
            total += counts
            if failure:
                failures.append(failure)
                print(f"\nchunk {number}:\n{failure}\n", flush=True)
            print(f"{total['programs']} programs, {len(failures)} failed chunks, {time.perf_counter() - start:.0f} s", end="\r",
                  flush=True)
    print("\n" + "\n".join(f"{count:8} {what}" for what, count in total.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
