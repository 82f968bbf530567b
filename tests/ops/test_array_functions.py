"""Derivatives of NumPy's array functions, all the way down: against differences, and the same once lowered and emitted.

Sizes are named, as they are for users.
"""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ops.spelling import find_spelling
from gradsmith.transpiler.pipeline import run
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()

V = np.array([0.7, -1.3, 2.1, 0.4, -0.6])
M = np.array([[0.7, -1.3, 2.1], [0.4, -0.6, 1.9]])
N = np.array([[0.7, np.nan, 2.1], [np.nan, np.nan, 1.9]])

CASES = {
    "sum": (np.sum, M, {"axis": 0}),
    "sum where": (np.sum, M, {"axis": 1, "initial": 2.0, "where": np.array([True, False, True])}),
    "prod": (np.prod, M, {"axis": 1}),
    "prod of all": (np.prod, M, {}),
    "max": (np.max, M, {"axis": 0, "keepdims": True}),
    "max initial": (np.max, M, {"axis": 0, "initial": 0.5}),
    "mean": (np.mean, M, {"axis": -1}),
    "mean where": (np.mean, M, {"axis": 1, "where": np.array([True, False, True])}),
    "var": (np.var, M, {"axis": 1, "ddof": 1}),
    "std": (np.std, M, {}),
    "average": (np.average, M, {"axis": 1, "weights": np.array([1.0, 2.0, 0.5])}),
    "median of many": (np.median, V, {}),
    "median of rows": (np.median, M, {"axis": 0}),
    "quantile": (np.quantile, M, {"q": 0.3, "axis": 1}),
    "quantiles": (np.quantile, V, {"q": [0.1, 0.6]}),
    "nanmedian": (np.nanmedian, N, {"axis": 1}),
    "ptp": (np.ptp, M, {"axis": 1}),
    "nansum": (np.nansum, N, {"axis": 0}),
    "nanmean": (np.nanmean, N, {"axis": 1}),
    "nanmax": (np.nanmax, N, {"axis": 1}),
    "nanvar": (np.nanvar, N, {}),
    "logaddexp.reduce": ((np.logaddexp, "reduce"), M, {"axis": 1}),
    "logsumexp": (("scipy.special", "logsumexp"), M, {"axis": 0, "b": np.array([1.0, 2.0, 0.5])}),
    "cumsum": (np.cumsum, M, {"axis": 0}),
    "cumsum flat": (np.cumsum, M, {}),
    "cumprod": (np.cumprod, M, {"axis": 1}),
    "maximum.accumulate": ((np.maximum, "accumulate"), V, {}),
    "sort": (np.sort, M, {"axis": 0}),
    "diff": (np.diff, V, {"n": 2}),
    "gradient": (np.gradient, V, {"edge_order": 1}),
    "trapezoid": (np.trapezoid, M, {"dx": 0.5}),
    "reshape": (np.reshape, M, {"shape": (-1,)}),
    "reshape F": (np.ravel, M, {"order": "F"}),
    "transpose": (np.transpose, M, {}),
    "flip": (np.flip, M, {}),
    "roll": (np.roll, M, {"shift": 1, "axis": 1}),
    "roll flat": (np.roll, M, {"shift": -2}),
    "rot90": (np.rot90, M, {}),
    "repeat": (np.repeat, M, {"repeats": 2, "axis": 0}),
    "tile": (np.tile, M, {"reps": (2, 3)}),
    "broadcast_to": (np.broadcast_to, V, {"shape": (3, 5)}),
    "pad": (np.pad, M, {"pad_width": ((1, 2), (0, 1))}),
    "pad reflect": (np.pad, M, {"pad_width": 1, "mode": "reflect"}),
    "pad wrap": (np.pad, V, {"pad_width": 2, "mode": "wrap"}),
    "pad edge": (np.pad, V, {"pad_width": 2, "mode": "edge"}),
    "diag": (np.diag, V, {"k": 1}),
    "diagonal": (np.diagonal, M, {"offset": 1}),
    "trace": (np.trace, M, {}),
    "tril": (np.tril, M, {"k": -1}),
    "vander": (np.vander, V, {"N": 3}),
    "linspace": (np.linspace, V, {"stop": 2.0, "num": 4}),
}


def spelled_func(key, x, options):
    """x -> sum(weights * key(x)), and the same in numbers."""
    sizes = tuple(symbol(f"n{d}") for d in x.shape)

    def body(value):
        result = find_spelling(key)(value, **options)
        weights = ops.add(ops.sin(ops.convert(ops.iota(shape=(*result.shape, 1), axis=result.rank, dtype="int64")
                                              if not result.rank else linear_index(result.shape), dtype="float64")), 0.3)
        return (ops.sum(ops.reshape(weights, shape=result.shape) * result, axes=tuple(range(result.rank))),)

    func = build_func("f", [("x", Type("float64", sizes))], body)
    verify(func)
    return func


def linear_index(shape):
    """The position of each element in C order."""
    total = None
    for axis in range(len(shape)):
        part = ops.iota(shape=shape, axis=axis, dtype="int64")
        total = part if total is None else ops.add(ops.multiply(total, 7), part)
    return total


def difference(func, x):
    """The gradient by central differences; NaN stays where it is."""
    found = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        h = 1e-6
        up, down = x.copy(), x.copy()
        up[place] += h
        down[place] -= h
        found[place] = (evaluate(func, up)[0] - evaluate(func, down)[0]) / (2 * h)
    return found


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    key, x, options = CASES[name]
    func = spelled_func(key, x, options)
    gradient = vjp(func, [True])
    verify(gradient)
    value, bar = evaluate(gradient, x, 1.0)
    assert np.isfinite(value)
    np.testing.assert_allclose(bar, difference(func, x), rtol=1e-6, atol=1e-7)
    second = jvp(gradient, [True, False])
    verify(second)
    along = np.cos(np.arange(x.size)).reshape(x.shape)
    bar_along = evaluate(second, x, 1.0, along)[-1]
    h = 1e-6
    moved = [evaluate(gradient, x + s * h * along, 1.0)[1] for s in (1, -1)]
    np.testing.assert_allclose(bar_along, (moved[0] - moved[1]) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_lowered_and_emitted(name):
    key, x, options = CASES[name]
    gradient = vjp(spelled_func(key, x, options), [True])
    expected = evaluate(gradient, x, 1.0)
    lowered = run(gradient)
    for want, got in zip(expected, evaluate(lowered, x, 1.0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    namespace = {}
    exec(compile(emit(lowered, name="main", decorator=False), "<emitted>", "exec"), namespace)
    for want, got in zip(expected, namespace["main"](x, 1.0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


# ---------------------------------------------------------------------------------------------------------------
# kinks and edges


def gradient_at(key, x, **options):
    sizes = tuple(symbol(f"n{d}") if d > 1 else d for d in np.shape(x))
    func = build_func("f", [("x", Type("float64", sizes))], lambda v: (find_spelling(key)(v, **options),))
    value, bar = evaluate(vjp(func, [True]), np.asarray(x, float), 1.0)
    return value, bar.tolist()


def test_std_at_zero_variance():
    assert (0.0, [0.0, 0.0, 0.0]) == gradient_at(np.std, [2.0, 2.0, 2.0])
    assert (0.0, [0.0, 0.0, 0.0]) == gradient_at(np.var, [2.0, 2.0, 2.0])


def test_ties_share():
    assert (2.0, [0.5, 0.0, 0.5]) == gradient_at(np.max, [2.0, 1.0, 2.0])
    assert (1.0, [0.5, 0.5, 0.0]) == gradient_at((np.minimum, "reduce"), [1.0, 1.0, 2.0])
    assert (2.0, [0.5, 0.0, 0.5]) == gradient_at(np.nanmax, [2.0, np.nan, 2.0])
    assert (3.0, [0.25, 0.25, 0.0]) == gradient_at(np.max, [3.0, 3.0, 0.0], initial=3.0)


def test_products_with_zeros():
    assert (0.0, [0.0, 6.0, 0.0]) == gradient_at(np.prod, [2.0, 0.0, 3.0])
    assert (0.0, [0.0, 0.0, 0.0]) == gradient_at(np.prod, [0.0, 0.0, 3.0])


def test_log_sum_exp_of_nothing():
    assert (1.0, [0.0, 1.0]) == gradient_at((np.logaddexp, "reduce"), [-np.inf, 1.0])
    assert (-np.inf, [0.0, 0.0]) == gradient_at((np.logaddexp, "reduce"), [-np.inf, -np.inf])


def test_nan_gets_no_gradient():
    assert (3.0, [1.0, 0.0, 1.0]) == gradient_at(np.nansum, [1.0, np.nan, 2.0])
    assert (1.5, [0.5, 0.0, 0.5]) == gradient_at(np.nanmean, [1.0, np.nan, 2.0])
    value, bar = gradient_at(np.nanmean, [np.nan, np.nan])
    assert np.isnan(value)
    assert [0.0, 0.0] == bar
