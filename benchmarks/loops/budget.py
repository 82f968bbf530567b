"""The gradient of many steps over many cells within a budget of memory, beside the steps themselves.

Each is written with slices and with loops over elements: a linear step, whose adjoint needs no states, and Burgers'
equation, whose adjoint needs them all.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import gradsmith

BYTES = 200_000_000
CELLS = 100_000


def heat_by_slices(u, steps, c):
    u = u.copy()
    for _ in gradsmith.checkpoint(range(steps), memory=BYTES):
        u[1:-1] = u[1:-1] + c * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def heat_by_elements(u, steps, c):
    u = u.copy()
    v = u.copy()
    for _ in gradsmith.checkpoint(range(steps), memory=BYTES):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + c * (u[i + 1] - 2 * u[i] + u[i - 1])
        u, v = v, u
    return np.sum(u * u)


def burgers_by_slices(u, steps, c):
    u = u.copy()
    for _ in gradsmith.checkpoint(range(steps), memory=BYTES):
        u[1:-1] = u[1:-1] - c * u[1:-1] * (u[2:] - u[:-2]) + c * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def burgers_by_elements(u, steps, c):
    u = u.copy()
    v = u.copy()
    for _ in gradsmith.checkpoint(range(steps), memory=BYTES):
        for i in range(1, len(u) - 1):
            v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1]) + c * (u[i + 1] - 2 * u[i] + u[i - 1])
        u, v = v, u
    return np.sum(u * u)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "heat, slices": heat_by_slices, "heat, elements": heat_by_elements,
    "Burgers, slices": burgers_by_slices, "Burgers, elements": burgers_by_elements}


def times(name: str, steps: int, rounds: int = 2) -> dict[str, float]:
    """Seconds of the function and of its gradient, the least of some rounds in turns; without end where the budget does
    not do."""
    u = 0.1 * np.random.default_rng(0).normal(size=CELLS)
    both = {"primal": gradsmith.jit(FUNCTIONS[name]), "gradient": gradsmith.grad(FUNCTIONS[name])}
    least = dict.fromkeys(both, float("inf"))
    for function in both.values():
        function(u, 2, 0.1)
    for _ in range(rounds):
        for what, function in both.items():
            start = perf_counter()
            try:
                function(u, steps, 0.1)
            except MemoryError:
                continue
            least[what] = min(least[what], perf_counter() - start)
    return least
