"""Loops around rows of which each element waits for the one before are split, and made side by side then."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.jam import jam
from gradsmith.transpiler.optimize.split_loops import split_loops

ops.load_table()

ROWS = """
func f(c: f64[n,n], w: f64[n,n], h: i64) -> (f64[n,n], f64[n,n]):
  d: f64[n,n], u: f64[n,n] = for j: i64 in 1 .. h step 1 carry (x: f64[n,n] = c, y: f64[n,n] = w):
    p: i64 = add(j, 1)
    x3: f64[n,n] = for k: i64 in 1 .. h step 1 carry (x1: f64[n,n] = x):
      m: i64 = subtract(k, 1)
      a: f64 = load(x1, j, m) {{index=[at,at]}}
      b: f64 = multiply(a, 0.5)
      x2: f64[n,n] = add_at(x1, b, j, k) {{index=[at,at]}}
      yield x2
    v: f64 = load(x3, j, 2) {{index=[at,at]}}
    y1: f64[n,n] = store(y, v, j, 0) {{index=[at,at]}}
    y4: f64[n,n] = for l: i64 in 1 .. h step 1 carry (y2: f64[n,n] = y1):
      q: i64 = subtract(l, 1)
      e: f64 = load(y2, {row}, q) {{index=[at,at]}}
      g: f64 = load(x3, {other}, l) {{index=[at,at]}}
      s: f64 = multiply(e, g)
      y3: f64[n,n] = store(y2, s, j, l) {{index=[at,at]}}
      yield y3
    yield x3, y4
  return d, u
"""


@pytest.mark.parametrize("row, other, splits, jams", [
    ("j", "j", True, True),
    ("j", "p", False, False),       # what a later trip of the first loop writes is read
    ("p", "j", True, True),
])
def test_rows(row, other, splits, jams):
    func = parse_func(ROWS.format(row=row, other=other))
    split = split_loops(func)
    assert splits == (split is not func)
    jammed = jam(split)
    steps = {s.step.value for s in jammed.body.stmts if isinstance(s, For)}
    assert jams == (4 in steps)
    c, w = np.random.default_rng(0).normal(size=(2, 12, 12))
    for h in (0, 1, 2, 5, 9, 11):
        for other_func in (split, jammed):
            verify(other_func)
            for expected, actual in zip(evaluate(func, c, w, h), evaluate(other_func, c, w, h), strict=True):
                np.testing.assert_array_equal(expected, actual)


def test_what_waits_for_nothing_is_left_alone():
    text = ROWS.format(row="j", other="j").replace("load(x1, j, m)", "load(x1, j, k)").replace("load(y2, j, q)", "load(y2, j, l)")
    func = parse_func(text)
    assert split_loops(func) is func
