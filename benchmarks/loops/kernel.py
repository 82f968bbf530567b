"""What is measured: kernels, the arguments they are called with, and what stands beside each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from loops import dynamics, factorisations, sequences, stencils

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Kernel:
    """function: in NumPy, gives a scalar.  argnums: of the gradient.  arguments(*size): the same every time.

    jax: names of the forms in the module `NAME_jax` beside the function's.  A form is differentiated in reverse mode
    unless it is in `forward` (forward mode is used) or in `gradients` (it is the gradient itself); ints among its
    arguments are static.  naive: the form that a user would write; it is timed at a size of its own, since it is slow.
    by_hand: whether there is a gradient of this name in `by_hand`.
    """

    function: Callable[..., Any]
    argnums: tuple[int, ...]
    arguments: Callable[..., Arguments]
    size: tuple[int, ...]
    least: tuple[int, ...]
    jax: tuple[str, ...]
    forward: tuple[str, ...] = ()
    gradients: tuple[str, ...] = ()
    naive: str = ""
    naive_size: tuple[int, ...] = field(default=())
    by_hand: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__

    def jax_module(self) -> ModuleType:
        return import_module(self.function.__module__ + "_jax")


def _generator(*size: int) -> np.random.Generator:
    return np.random.default_rng([7, *size])


def _normal(*shape: int) -> Any:
    return _generator(*shape).normal(size=shape)


def _grid(n: int, steps: int, rank: int = 2) -> Arguments:
    return _normal(*[n] * rank), steps


def _fields(n: int, m: int, steps: int) -> Arguments:
    return *_generator(n, m).normal(size=(3, n, m)), _normal(steps)


def _definite(n: int) -> Any:
    a = _normal(n, n)
    return a @ a.T / n + np.eye(n)


def _triangular(n: int) -> Arguments:
    return np.tril(_normal(n, n)) / n + np.eye(n), _normal(n)


def _tridiagonal(n: int) -> Arguments:
    a, b, c, d = _generator(n).normal(size=(4, n))
    return a, 5 + 0.3 * b, c, d


def _bodies(n: int, steps: int) -> Arguments:
    return _normal(n, 3), 0.1 * _normal(n, 3), 1 + 0.1 * _normal(n), steps


def _orbits(n: int) -> Arguments:
    generator = _generator(n)
    return generator.uniform(0.1, 3, n), generator.uniform(0, 0.8, n)


def _observations(d: int, p: int, steps: int) -> Arguments:
    return 0.9 * np.eye(d) + 0.05 * _normal(d, d), _normal(p, d), 0.1 * np.eye(d), np.eye(p), _normal(steps, p)


def _symbols(states: int, symbols: int, steps: int) -> Arguments:
    generator = _generator(states, symbols, steps)
    return (generator.dirichlet(np.ones(states)), generator.dirichlet(np.ones(states), states),
            generator.dirichlet(np.ones(symbols), states), generator.integers(0, symbols, steps))


KERNELS = {kernel.name: kernel for kernel in (
    Kernel(stencils.jacobi_1d, (0,), lambda n, t: _grid(n, t, 1), (4000, 500), (20, 3),
           ("jacobi_1d",), naive="jacobi_1d_at", naive_size=(1000, 20)),
    Kernel(stencils.jacobi_2d, (0,), _grid, (250, 100), (8, 3), ("jacobi_2d", "jacobi_2d_padded"),
           naive="jacobi_2d_at", naive_size=(100, 5), by_hand=True),
    Kernel(stencils.gauss_seidel, (0,), _grid, (120, 20), (8, 3), ("gauss_seidel_scan", "gauss_seidel_product"),
           naive="gauss_seidel_at", naive_size=(100, 2)),
    Kernel(stencils.heat_3d, (0,), lambda n, t: _grid(n, t, 3), (40, 100), (6, 3), ("heat_3d",)),
    Kernel(stencils.fdtd_2d, (0, 1, 2, 3), _fields, (200, 240, 100), (6, 7, 3), ("fdtd_2d",)),
    Kernel(stencils.adi, (0,), _grid, (200, 50), (7, 3), ("adi",), naive="adi_at", naive_size=(100, 2)),
    Kernel(factorisations.cholesky, (0,), lambda n: (_definite(n),), (200,), (6,), ("cholesky", "cholesky_scan"),
           naive="cholesky_at", naive_size=(60,), by_hand=True),
    Kernel(factorisations.lu, (0,), lambda n: (_normal(n, n) / n + 2 * np.eye(n),), (200,), (6,), ("lu", "lu_scan"),
           naive="lu_at", naive_size=(60,)),
    Kernel(factorisations.gram_schmidt, (0,), lambda m, n: (_normal(m, n),), (200, 120), (8, 5),
           ("gram_schmidt", "gram_schmidt_scan")),
    Kernel(factorisations.durbin, (0,), lambda n: (0.3 ** np.arange(1, n + 1) + 0.01 * _normal(n) / n,), (400,), (7,),
           ("durbin_solve", "durbin_cholesky", "durbin_scan"), naive="durbin_at", naive_size=(200,)),
    Kernel(factorisations.triangular_solve, (0, 1), _triangular, (1000,), (7,),
           ("triangular_solve", "triangular_solve_scan"), naive="triangular_solve_at", naive_size=(200,)),
    Kernel(factorisations.tridiagonal_solve, (0, 1, 2, 3), _tridiagonal, (100_000,), (9,),
           ("tridiagonal_solve", "tridiagonal_solve_scan"), naive="tridiagonal_solve_at", naive_size=(3000,),
           by_hand=True),
    Kernel(dynamics.n_body, (0, 1, 2), _bodies, (100, 50), (5, 3), ("n_body", "n_body_again")),
    Kernel(dynamics.lorenz, tuple(range(6)), lambda t: (1.0, 2.0, 20.0, 10.0, 28.0, 8 / 3, t), (10_000,), (50,),
           ("lorenz", "lorenz_again"), forward=("lorenz",), by_hand=True),
    Kernel(dynamics.logistic_map, (0, 1), lambda t: (0.3, 3.2, t), (100_000,), (50,), ("logistic_map",),
           forward=("logistic_map",), by_hand=True),
    Kernel(dynamics.kepler, (0, 1), _orbits, (20_000,), (10,), ("kepler_fixed", "kepler_forward"),
           gradients=("kepler_forward",)),
    Kernel(sequences.kalman, (0, 1, 2, 3), _observations, (4, 2, 1000), (4, 2, 10),
           ("kalman", "kalman_again", "kalman_explicit")),
    Kernel(sequences.hmm_forward, (0, 1, 2), _symbols, (32, 20, 2000), (4, 5, 10),
           ("hmm_forward", "hmm_forward_gathered")),
    Kernel(sequences.soft_dtw, (0, 1, 2), lambda n, m: (_normal(n), _normal(m), 0.5), (200, 250), (6, 7),
           ("soft_dtw_diagonals", "soft_dtw_rows"), naive="soft_dtw_at", naive_size=(100, 100), by_hand=True),
    Kernel(dynamics.binomial_tree, tuple(range(5)), lambda t: (100.0, 105.0, 0.05, 0.2, 1.0, t), (1000,), (20,),
           ("binomial_tree", "binomial_tree_again"), forward=("binomial_tree",), naive="binomial_tree_at",
           naive_size=(100,)),
)}
