"""Loops read elements of a row where the row is."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.dead_code import drop_dead_code
from gradsmith.transpiler.optimize.rows import read_rows

ops.load_table()

TEXT = """
func f(a: f64[n,n], k: i64) -> (f64{more_results}):
  row: f64[{size}] = load({array}, {scalars}) {{index=[{index}]}}
  s: f64 = for i: i64 in 0 .. 2 step 1 carry (t: f64 = 0.0):
    v: f64 = load(row, i) {{index=[at]}}
    w: f64 = multiply(v, 2.0)
    u: f64 = add(t, w)
    yield u
{more}  return s{results}
"""


def read(**parts):
    """The func after the pass, without what nobody reads, and whether that changed anything."""
    func = parse_func(TEXT.format(**{"size": "n", "array": "a", "scalars": "k", "index": "at, span(0; n; 1)", "more": "",
                                     "results": "", "more_results": "", **parts}))
    result = read_rows(func)
    verify(result)
    a = np.arange(1.0, 17.0).reshape(4, 4)
    for want, got in zip(evaluate(func, a, 2), evaluate(result, a, 2), strict=True):
        np.testing.assert_array_equal(want, got)
    return show(drop_dead_code(result)), result is func


@pytest.mark.parametrize("parts", [
    {},
    {"index": "at, span(1; 3; 1)", "size": "3"},
    {"index": "at, span(3; 4; -1)", "size": "4"},
    {"index": "at, span(?; 3; 1)", "size": "3", "scalars": "k, 1:i64"},
])
def test_rows(parts):
    text, same = read(**parts)
    assert not same and "load(a" in text and "load(row" not in text and "row:" not in text


@pytest.mark.parametrize("parts", [
    {"index": "span(0; n; 1), at"},                                                     # a column
    {"results": ", row", "more_results": ", f64[n]"},                                   # needed whole
    {"more": "  b: f64[n,n] = store(a, s, k, k) {index=[at, at]}\n", "results": ", b",  # a is written over
     "more_results": ", f64[n,n]"},
])
def test_what_stays(parts):
    text, same = read(**parts)
    assert same and "load(row" in text


def test_a_row_whose_position_is_an_element_of_a_row():
    func = parse_func("""
func f(a: f64[n,n], places: i64[n]) -> (f64):
  some: i64[2] = load(places) {index=[span(0; 2; 1)]}
  total: f64 = for j: i64 in 0 .. 2 step 1 carry (s: f64 = 0.0):
    k: i64 = load(some, j) {index=[at]}
    row: f64[n] = load(a, k) {index=[at, span(0; n; 1)]}
    r: f64 = for i: i64 in 0 .. 2 step 1 carry (t: f64 = s):
      v: f64 = load(row, i) {index=[at]}
      u: f64 = add(t, v)
      yield u
    yield r
  return total
""")
    result = read_rows(func)
    verify(result)
    text = show(drop_dead_code(result))
    assert "load(row" not in text and "load(some" not in text
    args = np.arange(16.0).reshape(4, 4), np.array([2, 1, 0, 0])
    assert evaluate(func, *args) == evaluate(result, *args)


def test_rows_of_what_needs_no_array():
    """A product of which one row is read is computed for that row alone."""
    text = TEXT.format(size="n", array="b", scalars="k", index="at, span(0; n; 1)", more="", results="", more_results="")
    func = parse_func(text.replace("  row:", "  b: f64[n,n] = multiply(a, 2.0:f64[n,n])\n  row:", 1))
    assert read_rows(func) is func
