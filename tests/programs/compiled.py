"""A program as users run it: transformed by gradsmith, compiled through Numba, called."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import gradsmith
from gradsmith.transpiler.errors import TranspileError

from .checks import MARGIN, STEEP, Disagreement, close, dot, rounding_decides
from .oracle import Oracle, flat
from .writer import Program

TRIPS = (0, 2, 7)


def check_compiled(program: Program, name: str = "<compiled program>") -> int:
    """Compare `jit`, `jvp` and `vjp` with Python.  At how many trip counts."""
    oracle = Oracle(program.source, name)
    function = oracle.function
    compared = 0
    try:
        value = gradsmith.jit(function)
        for trips in TRIPS:
            args = program.arguments(trips)
            expected, raised = oracle.value(args)
            if raised is not None or expected is None:
                continue
            mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
            found = flat(value(*mine))
            function(*theirs)
            try:
                close(expected, found, "jit")
                close(theirs, mine, "what jit left in its arguments")
            except Disagreement:
                if rounding_decides(oracle, args, expected):
                    continue
                raise
            tangents = program.tangents()
            slopes = oracle.along(args, tangents)
            if slopes.margin < MARGIN or not all(np.all(np.abs(t) < STEEP) for t in slopes.tangents):
                continue
            _derivatives(function, args, tangents, slopes.tangents)
            compared += 1
    except TranspileError as problem:       # which array is written to may follow from ints that only the trace knows
        if problem.code != "E123" or not program.fixed:
            raise
    finally:
        oracle.close()
    return compared


def _derivatives(function: Any, args: list[Any], tangents: list[Any], slopes: list[Any]) -> None:
    kept = copy.deepcopy(args)

    def of_floats(x: Any, A: Any, c: Any) -> Any:
        return function(x, A, c, args[3], args[4])

    moving = [t for t in tangents if t is not None]
    _, moved = gradsmith.jvp(of_floats, tuple(args[:3]), tuple(moving))
    close(slopes, flat(moved), "jvp", 1e-8, 1e-8)
    rng = np.random.default_rng(len(slopes))
    result, pullback = gradsmith.vjp(of_floats, *args[:3])
    cts = [rng.normal(size=np.shape(r)) if np.ndim(r) else float(rng.normal()) for r in flat(result)]
    bars = flat(pullback(tuple(cts) if isinstance(result, tuple) else cts[0]))
    close([dot(cts, slopes)], [dot(bars, moving)], "vjp", 1e-7, 1e-7)
    close(kept, args, "arguments of derivatives", 0.0, 0.0)
