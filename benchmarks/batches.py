"""Batches: what is measured of `vmap`, and of many steps in one compiled call.

Each side is written as its library wants it: plain Python on ours, `lax` on JAX's where it needs that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = tuple[Any, ...]
LANES, STEPS = 1_000_000, 10_000


@dataclass(frozen=True)
class Batch:
    """ours() and theirs() make the function of each side, from its library's modules; inputs() its arguments.

    limit: the ratio that must be reached.  beside: what ours is compared with, if not JAX.
    """

    name: str
    ours: Callable[[], Callable[..., Any]]
    theirs: Callable[[], Callable[..., Any]]
    inputs: Callable[[], Inputs]
    limit: float
    beside: str = "JAX"


def apply(matrix, vector):
    return matrix @ vector


def matrix_and_vectors() -> Inputs:
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 100)), rng.normal(size=(10, 100))


def our_products():
    import gradsmith
    return gradsmith.vmap(apply, in_axes=(None, 0))


def their_products():
    import jax
    return jax.jit(jax.vmap(apply, in_axes=(None, 0)))


def product_by_hand():
    import gradsmith
    return gradsmith.jit(lambda matrix, vectors: vectors @ matrix.T)


def network(np):
    def loss(w1, b1, w2, b2, x, y):
        hidden = np.tanh(x @ w1 + b1)
        return np.mean((hidden @ w2 + b2 - y) ** 2)
    return loss


NETWORK_AXES = (None, None, None, None, 0, 0)


def our_network():
    import gradsmith
    return gradsmith.vmap(gradsmith.grad(network(np), argnums=(0, 1, 2, 3)), in_axes=NETWORK_AXES)


def their_network():
    import jax
    return jax.jit(jax.vmap(jax.grad(network(jax.numpy), argnums=(0, 1, 2, 3)), in_axes=NETWORK_AXES))


def network_and_examples() -> Inputs:
    rng = np.random.default_rng(0)
    sizes = [(20, 30), (30,), (30, 5), (5,), (1000, 20), (1000, 5)]
    return tuple(0.3 * rng.normal(size=size) for size in sizes)


def escape(x, y):
    a = b = 0.0
    trips = 0
    while a * a + b * b <= 4.0 and trips < 100:
        a, b = a * a - b * b + x, 2.0 * a * b + y
        trips += 1
    return trips


def our_escape():
    import gradsmith
    return gradsmith.vmap(escape)


def their_escape():
    import jax

    def escape(x, y):
        def goes_on(state):
            a, b, trips = state
            return (a * a + b * b <= 4.0) & (trips < 100)

        def step(state):
            a, b, trips = state
            return a * a - b * b + x, 2.0 * a * b + y, trips + 1

        return jax.lax.while_loop(goes_on, step, (0.0, 0.0, 0))[2]

    return jax.jit(jax.vmap(escape))


def plane() -> Inputs:
    side = int(LANES ** 0.5)
    x, y = np.meshgrid(np.linspace(-2.0, 1.0, side), np.linspace(-1.5, 1.5, side))
    return x.ravel(), y.ravel()


def kepler(mean, eccentricity):
    anomaly, change = mean, 1.0
    while abs(change) > 1e-12:
        change = (anomaly - eccentricity * np.sin(anomaly) - mean) / (1.0 - eccentricity * np.cos(anomaly))
        anomaly -= change
    return anomaly


def our_kepler():
    import gradsmith
    return gradsmith.vmap(kepler)


def their_kepler():
    import jax

    def kepler(mean, eccentricity):
        def step(state):
            anomaly, _ = state
            change = (anomaly - eccentricity * jax.numpy.sin(anomaly) - mean) / (
                1.0 - eccentricity * jax.numpy.cos(anomaly))
            return anomaly - change, change

        return jax.lax.while_loop(lambda state: abs(state[1]) > 1e-12, step, (mean, 1.0))[0]

    return jax.jit(jax.vmap(kepler))


def orbits() -> Inputs:
    rng = np.random.default_rng(0)
    return rng.uniform(0.1, 6.2, LANES), rng.uniform(0.0, 0.9, LANES)


def squared_error(w, b, x, y):
    return ((x * w + b - y) ** 2).mean()


def our_steps():
    import gradsmith

    def fit(w, b, x, y, rate):
        for _ in range(STEPS):
            d_w, d_b = gradsmith.grad(squared_error, argnums=(0, 1))(w, b, x, y)
            w, b = w - rate * d_w, b - rate * d_b
        return w, b

    return gradsmith.jit(fit)


def their_steps():
    import jax

    def fit(w, b, x, y, rate):
        def step(_, state):
            d_w, d_b = jax.grad(squared_error, argnums=(0, 1))(*state, x, y)
            return state[0] - rate * d_w, state[1] - rate * d_b

        return jax.lax.fori_loop(0, STEPS, step, (w, b))

    return jax.jit(fit)


def line_and_points() -> Inputs:
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    return 0.0, 0.0, x, 3.0 * x + 2.0 + 0.1 * rng.normal(size=100), 0.01


BATCHES = {batch.name: batch for batch in (
    Batch("150x100 matrix times 10 vectors", our_products, their_products, matrix_and_vectors, 1.0),
    Batch("150x100 matrix times 10 vectors, the product by hand", our_products, product_by_hand, matrix_and_vectors,
          1.1, "the product written by hand"),
    Batch("gradients of a network, 1000 examples", our_network, their_network, network_and_examples, 1.0),
    Batch("Mandelbrot escape, 1e6 lanes", our_escape, their_escape, plane, 0.5),
    Batch("Newton for Kepler's equation, 1e6 lanes", our_kepler, their_kepler, orbits, 0.5),
    Batch("10,000 steps of a linear regression", our_steps, their_steps, line_and_points, 0.5),
)}
