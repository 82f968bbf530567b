"""Elementwise work is done before axes are merged."""

from __future__ import annotations

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.dead_code import drop_dead_code
from gradsmith.transpiler.optimize.sink import sink_merges
from gradsmith.transpiler.pipeline import run

ops.load_table()


def sunk(text):
    func = parse_func(text)
    result = drop_dead_code(sink_merges(func))
    verify(result)
    x = np.arange(6.0).reshape(2, 3)
    for want, got in zip(evaluate(func, x), evaluate(result, x), strict=True):
        np.testing.assert_array_equal(want, got)
    return result


def test_the_example_of_the_module():
    result = sunk("""
func f(x: f64[n,m]) -> (f64[m*n]):
  a: f64[m*n] = reshape(x) {shape=(m*n,)}
  b: f64[m*n] = multiply(a, 2.0:f64[m*n])
  return b
""")
    assert "multiply(x, 2.0:f64[n,m])" in show(result)
    assert sink_merges(result) is result


def test_two_merges_of_one_shape_and_a_number():
    result = sunk("""
func f(x: f64[n,m]) -> (f64[m*n]):
  s: f64 = sum(x) {axes=(0, 1)}
  e: f64[n,m] = exp(x)
  a: f64[m*n] = reshape(x) {shape=(m*n,)}
  b: f64[m*n] = reshape(e) {shape=(m*n,)}
  c: f64[m*n] = broadcast(s) {shape=(m*n,), axes=()}
  d: f64[m*n] = multiply(a, b)
  g: f64[m*n] = add(d, c)
  return g
""")
    assert 1 == show(result).count("reshape")


def test_what_did_not_go_through_one_merge_stays():
    func = parse_func("""
func f(x: f64[n,m], y: f64[m*n]) -> (f64[m*n], f64[n,1,m]):
  a: f64[m*n] = reshape(x) {shape=(m*n,)}
  b: f64[m*n] = multiply(a, y)
  c: f64[n,1,m] = reshape(x) {shape=(n, 1, m)}
  d: f64[n,1,m] = exp(c)
  return b, d
""")
    assert sink_merges(func) is func


def test_a_merge_is_written_where_its_elements_go():
    func = parse_func("""
func f(x: f64[n,m]) -> (f64[m*n]):
  a: f64[m*n] = reshape(x) {shape=(m*n,)}
  b: f64[m*n] = exp(a)
  return b
""")
    text = show(run(func))
    assert "remainder" not in text
    assert "floor_divide" not in text
