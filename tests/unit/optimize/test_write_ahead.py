"""States that a tape keeps are written straight into its rows, and every element stays what it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.optimize.stepping import compare, made, steps

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.write_ahead import write_ahead

ops.load_table()

STOPS = ("parts", "write_ahead")
AHEAD = {
    "slices": "u[1:-1] = u[1:-1] + c * u[1:-1] * (u[2:] - u[:-2])",
    "elements": "for i in range(1, len(u) - 1):\n    v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1])\nu, v = v, u",
    "downwards": "for i in range(len(u) - 2, 0, -1):\n    v[i] = u[i] * u[i + 1] - c * u[i - 1]\nu, v = v, u",
    "three": "for i in range(1, len(u) - 1):\n    w[i] = u[i] * u[i + 1] + c * v[i - 1]\nu, v, w = w, u, v",
    "new array": "x = np.zeros_like(u)\nx[1:] = u[1:] * u[:-1]\nu = x",
    "borders": "u[1:-1] = u[1:-1] * u[2:] + c * u[:-2]\nu[0] = u[1] * u[2]",
    "number beside": "s += np.sum(u[1:] * u[:-1])\nu[1:-1] = u[1:-1] * u[2:] + c * u[:-2]",
}
AHEAD_2D = {
    "slices": "u[1:-1, 2:-1] = u[1:-1, 2:-1] + c * u[1:-1, 2:-1] * (u[2:, 1:-2] + u[:-2, 3:])",
    "elements": "for i in range(1, u.shape[0] - 1):\n    for j in range(1, u.shape[1] - 1):\n"
                "        v[i, j] = u[i, j] + c * u[i, j] * (u[i + 1, j] - u[i - 1, j - 1])\nu, v = v, u",
}
NOT = {
    "read before": "v[0] = c\nj = min(m, 3)\nx = v[j] * c\nfor i in range(1, len(u) - 1):\n"
                   "    v[i] = u[i] * u[i + 1] + x\nu, v = v, u",
    "own neighbour": "for i in range(1, len(u)):\n    u[i] = u[i] * c + u[i - 1] ** 2",
    "some elements": "u[3] = u[3] * u[4]",
    "branch": "for i in range(1, len(u) - 1):\n    if u[i] > 0:\n        v[i] = u[i] * u[i - 1]\nu, v = v, u",
    "all": "u = u * u + c * k",
    "turned": "u = u * np.roll(u, 1)",
    "read later": "u[1:-1] = u[1:-1] * u[2:] + c\nv = v + u * u",
    "linear": "u[1:-1] = u[2:] + c * u[:-2]",
}


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", AHEAD)
def test_steps(name, trips):
    fun = made(AHEAD[name], before="v = u * k; w = k * k; s = 0.0", every=None, after="return np.sum(u * v * w) + s")
    assert compare(fun, (11,), STOPS, trips=trips)


@pytest.mark.parametrize("name", AHEAD)
def test_steps_in_segments(name):
    assert compare(made(AHEAD[name], before="v = u * k; w = k * k; s = 0.0", after="return np.sum(u * v) + s"), (11,), STOPS)


@pytest.mark.parametrize("shape", [(7, 6), (2, 5), (5, 2), (4, 0)])
@pytest.mark.parametrize("name", AHEAD_2D)
def test_boxes(name, shape):
    assert compare(made(AHEAD_2D[name], every=None), shape, STOPS)


@pytest.mark.parametrize("name", NOT)
def test_what_stays_as_it_is(name):
    assert not compare(made(NOT[name], every=None), (11,), STOPS)


@given(steps(), st.integers(12, 40), st.sampled_from([None, 1, 3]), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_random_steps(step, n, every, trips):
    fun = made(step, before="v = u * u; w = 1.0 - u", every=every, after="return np.sum(u * v * w)")
    compare(fun, (n,), STOPS, trips=trips)


OLDER = """
func f(u: f64[n], m: i64) -> (f64[n], f64) where m >= 4:
  t: f64[m,n] = empty() {{shape=(m, n), dtype="float64"}}
  size: i64 = size() {{dim=n}}
  end: i64 = subtract(size, 1)
  last: f64[n], tape: f64[m,n], total: f64 = for k: i64 in 0 .. m step 1 carry (v: f64[n] = u, t_1: f64[m,n] = t, s: f64 = 0.0:f64):
    t_2: f64[m,n] = for i: i64 in 0 .. size step 1 carry (t_3: f64[m,n] = t_1):
      x: f64 = load(v, i) {{index=[at]}}
      t_4: f64[m,n] = store(t_3, x, k, i) {{index=[at, at]}}
      yield t_4
    w: f64[n] = for i_1: i64 in 1 .. end step 1 carry (w_1: f64[n] = v):
      y: f64 = load(w_1, i_1) {{index=[at]}}
      z: f64 = multiply(y, 0.5:f64)
      w_2: f64[n] = store(w_1, z, i_1) {{index=[at]}}
      yield w_2
    q: f64[n] = store(w, 2.0:f64, 1) {{index=[at]}}
    r: f64 = load({read}, 1) {{index=[at]}}
    s_1: f64 = add(s, r)
    yield q, t_2, s_1
  return last, total
"""


@pytest.mark.parametrize("read, fits", [("q", True), ("w", False), ("v", True)])
def test_an_older_version_is_not_read_from_the_row_of_the_new_one(read, fits):
    func = parse_func(OLDER.format(read=read))
    changed = write_ahead(func)
    verify(changed)
    assert (changed is not func) is fits
    for u in (np.arange(2.0), np.arange(3.0) + 1.0, np.arange(8.0)):
        for want, got in zip(evaluate(func, u, 5), evaluate(changed, u, 5), strict=True):
            np.testing.assert_array_equal(got, want)
