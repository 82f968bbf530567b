"""Lanes with dear trips, side by side."""

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For, If
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.abreast import run_abreast

ops.load_table()

WHILE = """
func f(x: f64[n]) -> (f64[n]):
  n_1: i64 = size() {dim=n}
  out: f64[n] = empty() {shape=(n,), dtype="float64"}
  y: f64[n] = for lane: i64 in 0 .. n_1 step 1 carry (o: f64[n] = out) parallel:
    a: f64 = load(x, lane) {index=[at]}
    b: f64 = add(a, 1.0:f64)
    v: f64 = while carry (c: f64 = b):
      cond:
        p: bool = greater(c, 0.1:f64)
        yield p
      do:
        s: f64 = SOMETHING(c)
        t: f64 = multiply(s, 0.5:f64)
        e: f64 = FURTHER(t)
        u: f64 = multiply(e, 0.4:f64)
        yield u
    w: f64 = multiply(v, b)
    o_1: f64[n] = store(o, w, lane) {index=[at]}
    yield o_1
  return y
"""

FOR = """
func f(x: f64[n], c: f64[3]) -> (f64[n]):
  n_1: i64 = size() {dim=n}
  out: f64[n] = empty() {shape=(n,), dtype="float64"}
  y: f64[n] = for lane: i64 in 0 .. n_1 step 1 carry (o: f64[n] = out) parallel:
    a: f64 = load(x, lane) {index=[at]}
    v: f64 = for k: i64 in 0 .. 3 step 1 carry (s: f64 = a):
      d: f64 = load(c, k) {index=[at]}
      e: f64 = sin(s)
      g: f64 = exp(e)
      h: f64 = HOW(g, d)
      yield h
    o_1: f64[n] = store(o, v, lane) {index=[at]}
    yield o_1
  return y
"""


def loops(func):
    return [s for s in all_statements(func.body) if isinstance(s, For)]


@pytest.mark.parametrize("count", [2, 63, 64, 65, 200])
def test_lanes_that_wait_keep_what_they_have(count):
    func = parse_func(WHILE.replace("SOMETHING", "sin").replace("FURTHER", "tanh"))
    abreast = run_abreast(func)
    verify(abreast)
    assert any(isinstance(s, If) for s in all_statements(abreast.body)) and len(loops(abreast)) == 4
    x = np.random.default_rng(count).uniform(-2, 3, count)
    np.testing.assert_array_equal(evaluate(func, x)[0], evaluate(abreast, x)[0])


def test_lanes_that_make_the_same_trips():
    func = parse_func(FOR.replace("HOW", "multiply"))
    abreast = run_abreast(func)
    verify(abreast)
    assert not any(isinstance(s, If) for s in all_statements(abreast.body)) and len(loops(abreast)) == 5
    x, c = np.random.default_rng(1).normal(size=130), np.array([0.5, -0.25, 0.1])
    np.testing.assert_array_equal(evaluate(func, x, c)[0], evaluate(abreast, x, c)[0])


def test_what_would_gain_nothing_stays():
    cheap = parse_func(WHILE.replace("SOMETHING", "absolute").replace("FURTHER", "negative"))
    assert run_abreast(cheap) is cheap
    a_sum = parse_func(FOR.replace("HOW", "accumulate"))        # vectorised along its own loop
    assert run_abreast(a_sum) is a_sum
