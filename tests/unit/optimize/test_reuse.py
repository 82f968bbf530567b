"""What each trip of a loop allocates anew is allocated before the loop, where no trip sees another's."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For, Let
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.reuse import reuse_memory

ops.load_table()

LOOP = """
func f(a: f64[n]) -> (f64[n]):
  b: f64[n] = for i: i64 in 0 .. 3 step 1 carry (c: f64[n] = a){mark}:
    e: f64[{size}] = empty() {{shape=({size},), dtype="float64"}}
    d: f64[{size}] = for j: i64 in 0 .. {trips} step 1 carry (g: f64[{size}] = e):
      v: f64 = load(c, j) {{index=[at]}}
      w: f64 = multiply(v, 2.0)
      h: f64[{size}] = store(g, w, j) {{index=[at]}}
      yield h
{rest}
  return b
"""
READ = """    x: f64 = load(d, 0) {index=[at]}
    y: f64[n] = store(c, x, i) {index=[at]}
    yield y"""


def allocations(func):
    """How many loops stand around each allocation."""
    def visit(block, depth):
        for stmt in block.stmts:
            if isinstance(stmt, Let) and stmt.op.is_unset:
                yield depth
            if isinstance(stmt, For):
                yield from visit(stmt.body, depth + 1)
    return list(visit(func.body, 0))


def reused(**parts):
    func = parse_func(LOOP.format(**{"mark": "", "size": "n", "trips": "4", "rest": READ, **parts}))
    result = reuse_memory(func)
    verify(result)
    a = np.arange(1.0, 5.0)
    for want, got in zip(evaluate(func, a), evaluate(result, a), strict=True):
        np.testing.assert_array_equal(want, got)
    assert [1] == allocations(func)
    return allocations(result)


def test_scratch_of_a_trip():
    assert [0] == reused()


def test_scratch_that_a_kernel_reads():
    """What it gives is memory of its own."""
    assert [0] == reused(rest="    y: f64[n] = sort(d) {axis=0}\n    yield y")


def test_scratch_of_which_a_view_is_left():
    assert [1] == reused(rest="    y: f64[n] = transpose(d) {axes=(0,)}\n    yield y")


@pytest.mark.parametrize("parts", [
    {"mark": " parallel"},                                                          # trips run at the same time
    {"rest": "    yield d"},                                                        # the next trip has it
    {"rest": READ.replace("x: f64 = load(d, 0)", "z: f64[n] = store(e, 1.0, 0) {index=[at]}\n    x: f64 = load(z, 0)")},
], ids=["parallel", "carried", "two versions"])
def test_what_stays(parts):
    assert [1] == reused(**parts)


def test_sizes_that_differ_stay():
    text = LOOP.format(mark="", size="k", trips="k", rest=READ).replace(
        "    e: f64[k]", "    k: i64 = add(i, 1)\n    e: f64[k]")
    func = parse_func(text)
    assert reuse_memory(func) is func


def test_out_of_several_loops():
    func = parse_func("""
func f(a: f64[n]) -> (f64):
  s: f64 = for i: i64 in 0 .. 3 step 1 carry (t: f64 = 0.0):
    u: f64 = for j: i64 in 0 .. 2 step 1 carry (v: f64 = t):
      e: f64[n] = empty() {shape=(n,), dtype="float64"}
      x: f64 = load(a, j) {index=[at]}
      d: f64[n] = store(e, x, i) {index=[at]}
      y: f64 = load(d, i) {index=[at]}
      w: f64 = add(v, y)
      yield w
    yield u
  return s
""")
    result = reuse_memory(func)
    verify(result)
    assert ([2], [0]) == (allocations(func), allocations(result))
    assert evaluate(func, np.arange(4.0)) == evaluate(result, np.arange(4.0))
    assert reuse_memory(result) is result
    assert any(isinstance(s, For) and len(s.carries) == 2 for s in all_statements(result.body))
