"""What is measured: each function in plain NumPy, the same one for JAX, and its inputs.

The text is one for both, `np` is NumPy or `jax.numpy`; nothing is written in a way that suits either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Inputs = Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class Model:
    """make(np) gives the function; inputs() its arguments, the same every time.  transform and argnums of what is
    measured."""

    name: str
    make: Callable[[ModuleType], Callable[..., Any]]
    inputs: Inputs
    argnums: int | tuple[int, ...] = 0
    transform: str = "grad"


def two_scalars(np):
    def wave(x, y):
        return x * np.sin(y) + x * x * y
    return wave


def ten_elements(np):
    def energy(x):
        return np.sum(x * np.tanh(x))
    return energy


def sum_logistic(np):
    def sum_logistic(x):
        return np.sum(1.0 / (1.0 + np.exp(-x)))
    return sum_logistic


def selu(np):
    def selu(x):
        return np.sum(1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)))
    return selu


def mlp(np):
    def mlp_loss(w1, b1, w2, b2, x, y):
        hidden = np.tanh(x @ w1 + b1)
        return np.mean((hidden @ w2 + b2 - y) ** 2)
    return mlp_loss


def logistic_regression(np):
    def regression_loss(w, b, x, y):
        margin = (x @ w + b) * y
        return np.mean(np.log1p(np.exp(-margin))) + 0.005 * np.sum(w * w)
    return regression_loss


def log_likelihood(np):
    def log_likelihood(w, x, y):
        margin = (x @ w) * y
        return np.mean(np.log(1.0 + np.exp(-margin)))
    return log_likelihood


def cross_entropy(np):
    def cross_entropy(scores, target):
        shifted = scores - np.max(scores, axis=1, keepdims=True)
        log_total = np.log(np.sum(np.exp(shifted), axis=1))
        return np.mean(log_total - np.sum(shifted * target, axis=1))
    return cross_entropy


def _normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def _mlp_inputs() -> tuple[Any, ...]:
    return (_normal(20, 30) / 5, np.zeros(30), _normal(30, 5) / 5, np.zeros(5), _normal(64, 20), _normal(64, 5))


def _regression_inputs() -> tuple[Any, ...]:
    return _normal(10), 0.0, _normal(200, 10), np.sign(_normal(200))


def _likelihood_inputs(count: int) -> tuple[Any, ...]:
    return _normal(100) / 10, _normal(count, 100), np.sign(_normal(count))


def _cross_entropy_inputs() -> tuple[Any, ...]:
    target = np.eye(100)[np.random.default_rng(3).integers(0, 100, 10_000)]
    return _normal(10_000, 100), target


MODELS = {m.name: m for m in (
    Model("two scalars", two_scalars, lambda: (0.5, 1.5)),
    Model("10 elements", ten_elements, lambda: (_normal(10),)),
    Model("sum_logistic", sum_logistic, lambda: (_normal(1_000_000),)),
    Model("selu, float32", selu, lambda: (_normal(1_000_000).astype(np.float32),)),
    Model("mlp", mlp, _mlp_inputs, (0, 1, 2, 3)),
    Model("logistic regression", logistic_regression, _regression_inputs, (0, 1)),
    Model("hessian of logistic regression", log_likelihood, lambda: _likelihood_inputs(1000), transform="hessian"),
    Model("hessian of logistic regression, few", log_likelihood, lambda: _likelihood_inputs(200), transform="hessian"),
    Model("cross-entropy", cross_entropy, _cross_entropy_inputs),
)}
