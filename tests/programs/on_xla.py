"""A program, its gradient and a second derivative as one StableHLO module that XLA's CPU client runs: the results are
those of the evaluator, and the error flag is set where that raises."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradsmith
from gradsmith import xla
from gradsmith.to_stablehlo import described
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.ir.evaluate import evaluate

from .checks import LARGE, STEEP, Disagreement, close
from .oracle import Oracle
from .writer import Program

TRIPS = (2, 7, 2, 0)


def check_on_xla(program: Program, order: int = 2, name: str = "<program on xla>") -> bool:
    """Whether it could be compared.  TranspileError: it cannot be written."""
    oracle = Oracle(program.source, name)
    try:
        return _compared(oracle.function, program.arguments(TRIPS[program.seed % len(TRIPS)]), order)
    finally:
        oracle.close()


def _compared(function: Any, args: list[Any], order: int) -> bool:
    def total(x: Any, A: Any, c: Any, n: Any, q: Any) -> Any:
        return _total(function(x, A, c, n, q))

    def slope(x: Any, A: Any, c: Any, n: Any, q: Any) -> Any:
        return _total(gradsmith.grad(total, argnums=(0, 1, 2))(x, A, c, n, q))

    def everything(x: Any, A: Any, c: Any, n: Any, q: Any) -> Any:
        found = [function(x.copy(), A.copy(), c, n, q), gradsmith.grad(total, argnums=(0, 1, 2))(x, A, c, n, q)]
        return found + ([gradsmith.grad(slope, argnums=(0, 2))(x, A, c, n, q)] if order > 1 else [])

    made = gradsmith.stablehlo(everything, checked=True, max_trips=64).lower(*args)
    *found, flag = xla.run(made.text, *made.arrays(), optimise=False)
    given = described(args, {})
    traced = trace(everything, given.args)
    known = {id(leaf) for leaf, _ in traced.static_args}
    values = [v for v, leaf in zip(given.values, given.leaves, strict=True) if id(leaf) not in known]
    try:
        with np.errstate(all="ignore"):
            expected = evaluate(traced.func, *values, *(capture.get() for capture in traced.captures))
    except Exception as raised:         # noqa: BLE001  (whatever the evaluator raises is what is compared)
        if int(flag) == 0 or made.failures[int(flag) - 1].kind != type(raised).__name__:
            raise Disagreement(f"flag {int(flag)} of {made.failures} where {raised!r} is raised") from raised
        return False
    if int(flag):
        raise Disagreement(f"{made.failures[int(flag) - 1]}, which nothing raises")
    if not all(np.all(np.abs(e) < (LARGE if k == 0 else STEEP)) for k, e in enumerate(expected)):
        return False
    close(expected, found, "StableHLO", 1e-8, 1e-8)
    return True


def _total(tree: Any) -> Any:
    if isinstance(tree, (tuple, list)):
        found = 0.0
        for part in tree:
            found = found + _total(part)
        return found
    return np.sum(np.sin(tree * 0.7))
