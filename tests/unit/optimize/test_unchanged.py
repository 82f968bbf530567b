"""What a loop carries without changing it is no carry."""

from __future__ import annotations

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For, While
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.unchanged import drop_unchanged

ops.load_table()


def dropped(text):
    func = parse_func(text)
    result = drop_unchanged(func)
    verify(result)
    a = np.arange(1.0, 5.0)
    for want, got in zip(evaluate(func, a), evaluate(result, a), strict=True):
        np.testing.assert_array_equal(want, got)
    assert drop_unchanged(result) is result
    return [len(s.carries) for s in all_statements(result.body) if isinstance(s, (For, While))]


def test_through_loops_inside():
    """A loop that changes nothing lets the loop around it change nothing."""
    assert [1, 1] == dropped("""
func f(a: f64[n]) -> (f64[n], f64):
  b: f64[n], s: f64 = for i: i64 in 0 .. 3 step 1 carry (c: f64[n] = a, t: f64 = 0.0):
    d: f64[n], u: f64 = for j: i64 in 0 .. 2 step 1 carry (e: f64[n] = c, w: f64 = t):
      v: f64 = load(e, j) {index=[at]}
      x: f64 = add(w, v)
      yield e, x
    yield d, u
  return b, s
""")


def test_while():
    assert [1] == dropped("""
func f(a: f64[n]) -> (f64, f64):
  s: f64, r: f64 = while carry (t: f64 = 0.0, q: f64 = 8.0):
    cond:
      p: bool = less(t, q)
      yield p
    do:
      u: f64 = add(t, 3.0)
      yield u, q
  return s, r
""")


def test_what_changes_stays():
    assert [2] == dropped("""
func f(a: f64[n]) -> (f64, f64):
  s: f64, r: f64 = for i: i64 in 0 .. 3 step 1 carry (t: f64 = 1.0, q: f64 = 2.0):
    yield q, t
  return s, r
""")
