"""Tapes whose rows get shorter lie without gaps, and hold what they held."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.pack import pack_tapes

ops.load_table()

TAPE = """
func f(x: f64[n,m], n_1: i64) -> (f64[n,m]):
  t: f64[n,n,m] = empty() {{shape=(n, n, m), dtype="float64"}}
  rows: i64 = size() {{dim=n}}
  long: i64 = size() {{dim=m}}
  a: f64[n,n,m] = for i: i64 in 0 .. rows step 1 carry (b: f64[n,n,m] = t):
    c: f64[n,n,m] = for j: i64 in 0 .. rows step 1 carry (d: f64[n,n,m] = b):
      e: f64[n,n,m] = for k: i64 in {written} carry (g: f64[n,n,m] = d):
        v: f64 = load(x, j, k) {{index=[at, at]}}
        q: i64 = subtract(k, {from_})
        h: f64[n,n,m] = store(g, v, i, j, q) {{index=[at, at, at]}}
        yield h
      yield e
    yield c
  y: f64[n,m] = for i_1: i64 in rows_1 .. -1 step -1 carry (z: f64[n,m] = x):
    w: f64[n,m] = for j_1: i64 in 0 .. rows step 1 carry (u: f64[n,m] = z):
      r: f64[n,m] = for k_1: i64 in {read} carry (s: f64[n,m] = u):
        q_1: i64 = subtract(k_1, i_1)
        o: f64 = load(a, i_1, j_1, q_1) {{index=[at, at, at]}}
        p: f64 = multiply(o, 2.0)
        l: f64[n,m] = add_at(s, p, j_1, k_1) {{index=[at, at]}}
        yield l
      yield r
    yield w
  return y
""".replace("  a: f64", "  rows_1: i64 = subtract(rows, 1)\n  last: i64 = subtract(long, 1)\n  a: f64", 1).replace(
    "    c: f64", "    before: i64 = subtract(i, 1)\n    c: f64", 1).replace(
    "    w: f64", "    after: i64 = add(i_1, 1)\n    w: f64", 1)


def packed(written="i .. long step 1", read="i_1 .. long step 1", from_="i"):
    func = parse_func(TAPE.format(written=written, read=read, from_=from_))
    result = pack_tapes(func)
    verify(result)
    for shape in ((3, 4), (4, 4), (2, 7)):
        x = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_array_equal(*(evaluate(f, x, 0)[0] for f in (func, result)))
    return "f64[n,m*n]" in show(result)


def test_rows_that_get_shorter():
    assert packed()
    assert packed(written="last .. before step -1")


def test_rows_of_which_some_are_used_otherwise_stay():
    assert not packed(written="0 .. long step 1", from_="0")        # of full length
    assert not packed(read="i_1 .. last step 1")                    # of another length
    assert not packed(read="after .. long step 1")                  # from another place on


def eliminated(a):
    a = a.copy()
    n = a.shape[0]
    total = 0.0
    for k in range(n):
        for i in range(n):
            for j in range(k + 1, n):
                total += np.sin(a[i, j]) * a[k, k]
                a[i, j] -= 0.1 * a[i, k] * a[i, j] ** 2
    return total + np.sum(a * a)


def grown(a):
    a = a.copy()
    total = 0.0
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(k):
                a[i, j] = np.cos(a[i, j]) * a[i, k] + a[i, j]
    return total + np.sum(a * a)


@pytest.mark.parametrize("n", [2, 3, 6, 9])
@pytest.mark.parametrize("fun", [eliminated, grown], ids=lambda f: f.__name__)
def test_gradients(fun, n):
    a = np.random.default_rng(n).normal(size=(n, n))
    slopes = np.empty_like(a)
    for place in np.ndindex(a.shape):
        moved = a.astype(complex)
        moved[place] += 1e-25j
        slopes[place] = fun(moved).imag / 1e-25
    gradient = gradsmith.grad(fun)
    np.testing.assert_allclose(gradient(a), slopes, rtol=1e-11, atol=1e-12)
    if n == 3:
        h = 1e-6
        bend = [(gradient(a + h * e) - gradient(a - h * e)) / (2 * h)
                for e in np.eye(9).reshape(9, 3, 3)]
        np.testing.assert_allclose(gradsmith.hessian(fun)(a).reshape(9, 3, 3), bend, rtol=1e-5, atol=1e-6)
