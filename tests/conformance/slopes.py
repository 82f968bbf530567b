"""Gradients of the sum of a function's results, by the reverse transform and by central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.transforms.vjp import vjp


def func_of(function: Callable[..., Any], *xs: Any) -> Func:
    types = [(f"x{k}", Type(np.asarray(x).dtype.name, np.shape(x))) for k, x in enumerate(xs)]
    return build_func("f", types, lambda *values: (function(*values),))


def gradient(function: Callable[..., Any], *xs: Any) -> list[Any]:
    """Of the sum of `function(*xs)`, which emits IR, with respect to every argument."""
    func = func_of(function, *xs)
    (result,) = evaluate(func, *xs)
    return list(evaluate(vjp(func, [True] * len(xs)), *xs, np.ones_like(result))[1:])


def hessian(function: Callable[..., Any], x: Any) -> Any:
    """Of a number's second derivatives, (size of x, size of x)."""
    second = vjp(vjp(func_of(function, x), [True]), [True, False])
    rows = []
    for k in range(np.size(x)):
        ct = np.zeros(np.size(x))
        ct[k] = 1.0
        rows.append(np.ravel(evaluate(second, x, np.float64(1.0), np.float64(0.0), ct.reshape(np.shape(x)))[-1]))
    return np.array(rows)


def numerical_gradient(function: Callable[..., Any], *xs: Any, step: float = 1e-6) -> list[Any]:
    """The same by central differences, for a function of NumPy arrays."""
    found = []
    for k, x in enumerate(xs):
        slope = np.zeros(np.shape(x))
        for place in np.ndindex(*np.shape(x)):
            moved = [np.array(x, dtype=float) for _ in range(2)]
            moved[0][place] += step
            moved[1][place] -= step
            high, low = (np.sum(function(*xs[:k], m[()], *xs[k + 1:])) for m in moved)
            slope[place] = (high - low) / (2 * step)
        found.append(slope)
    return found
