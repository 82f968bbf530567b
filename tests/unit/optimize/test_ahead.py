"""Dear values that wait for nothing are computed before the loops that wait, bit for bit as in them."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.ahead import TRIPS, compute_ahead

ops.load_table()

SUM = """
func f(x: f64[n], lo: i64, hi: i64) -> (f64, f64[n]):
  s: f64, y: f64[n] = for i: i64 in {range} carry (t: f64 = 0.25, z: f64[n] = x):
    v: f64 = load({read}, i) {{index=[at]}}
    e: f64 = {dear}(v)
    w: f64 = multiply(e, v)
    u: f64 = {add}(t, w)
    z2: f64[n] = store(z, u, i) {{index=[at]}}
    yield u, z2
  return s, y
"""


def ahead(text, *args):
    """Whether the pass did something; what it gives must be the same, bit for bit."""
    func = parse_func(text)
    result = compute_ahead(func)
    verify(result)
    for want, got in zip(evaluate(func, *args), evaluate(result, *args), strict=True):
        np.testing.assert_array_equal(got, want)
    return any(isinstance(s, For) and s.abreast for s in all_statements(result.body))


@pytest.mark.parametrize("trips", [0, 1, 2, 7, TRIPS - 1, TRIPS, TRIPS + 1, 3 * TRIPS + 5])
@pytest.mark.parametrize("range, lowest", [("lo .. hi step 1", 2), ("lo .. hi step 3", 2), ("hi .. lo step -1", 1),
                                           ("hi .. lo step -2", 0)])
def test_sums_in_order(range, lowest, trips):
    step = abs(int(range.split()[-1]))
    x = np.random.default_rng(0).normal(size=4 + step * (trips + 1))
    text = SUM.format(range=range, read="x", dear="exp", add="add")
    assert ahead(text, x, lowest, lowest + step * trips)


@pytest.mark.parametrize("changed", [
    {"read": "z"},              # of the array that the loop writes to
    {"dear": "negative"},       # cheap
    {"dear": "sqrt"} if ops.sqrt.cost <= 4 else {"dear": "negative"},
])
def test_what_waits_or_is_cheap_stays(changed):
    wanted = {"range": "lo .. hi step 1", "read": "x", "dear": "exp", "add": "add", **changed}
    assert not ahead(SUM.format(**wanted), np.linspace(0.1, 0.9, 20), 1, 18)


def test_sums_in_any_order_are_vectorised_as_they_are():
    text = """
func f(x: f64[n], lo: i64, hi: i64) -> (f64):
  s: f64 = for i: i64 in lo .. hi step 1 carry (t: f64 = 0.0):
    v: f64 = load(x, i) {index=[at]}
    e: f64 = exp(v)
    u: f64 = accumulate(t, e)
    yield u
  return s
"""
    assert not ahead(text, np.linspace(0.1, 0.9, 20), 1, 18)


def likelihood(x, w, b):
    total = 0.0
    for i in range(x.shape[0]):
        z = b
        for j in range(x.shape[1]):
            z += w[j] * np.tanh(x[i, j])
        total += np.log1p(np.exp(-z)) + 0.5 * total * np.sin(z)
    return total


def filtered(x, w, b):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0] - 1, 0, -1):
        y[i - 1] = b * y[i] + np.exp(-x[i, 0] ** 2) * w[0]
        if y[i - 1] > 0.9:
            y[i - 1] -= np.cos(y[i])
    return np.sum(y * y)


@pytest.mark.parametrize("fun", [likelihood, filtered], ids=lambda f: f.__name__)
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_compiled(fun, rows):
    rng = np.random.default_rng(rows)
    x, w, b = 0.3 * rng.normal(size=(rows, 9)), rng.normal(size=9) / 9, 0.4
    np.testing.assert_allclose(gradsmith.jit(fun)(x, w, b), fun(x, w, b), rtol=1e-12)
    gradient = gradsmith.grad(fun, argnums=(0, 1, 2))(x, w, b)
    for k in range(3):
        args = [x.astype(complex), w.astype(complex), complex(b)]
        direction = np.ones_like(args[k])
        args[k] = args[k] + 1e-25j * direction
        with np.errstate(all="ignore"):
            step = fun_complex(fun)(*args).imag / 1e-25
        np.testing.assert_allclose(np.sum(gradient[k]), step, rtol=1e-9, atol=1e-9)


def fun_complex(fun):
    """The function on complex numbers, compared by their real parts."""
    import inspect
    text = inspect.getsource(fun).replace("> 0.9", ".real > 0.9").replace("np.zeros(", "np.zeros(dtype=complex, shape=")
    space = {"np": np}
    exec(text, space)
    return space[fun.__name__]
