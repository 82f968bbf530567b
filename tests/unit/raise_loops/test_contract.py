"""Sums of products become products of matrices."""

from __future__ import annotations

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.raise_loops.contract import contract_sums

ops.load_table()


def test_a_product_of_what_was_a_sum_itself():
    func = parse_func("""
func f(a: f64[3,4], b: f64[4,5], c: f64[5]) -> (f64[3]):
  x: f64[3,4,5] = broadcast(a) {shape=(3,4,5), axes=(0,1)}
  y: f64[3,4,5] = broadcast(b) {shape=(3,4,5), axes=(1,2)}
  z: f64[3,4,5] = multiply(x, y)
  s: f64[3,5] = sum(z) {axes=(1,)}
  d: f64[3,5] = broadcast(c) {shape=(3,5), axes=(1,)}
  e: f64[3,5] = multiply(s, d)
  r: f64[3] = sum(e) {axes=(1,)}
  return r
""")
    result = contract_sums(func)
    verify(result)
    generator = np.random.default_rng(0)
    args = [generator.normal(size=shape) for shape in ((3, 4), (4, 5), (5,))]
    np.testing.assert_allclose(evaluate(func, *args)[0], evaluate(result, *args)[0], rtol=1e-14)
