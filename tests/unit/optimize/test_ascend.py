"""Loops that count down count up where no trip needs what another one leaves."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.ascend import ascend

ops.load_table()


def steps(text, *args):
    func = parse_func(text)
    result = ascend(func)
    verify(result)
    for want, got in zip(evaluate(func, *args), evaluate(result, *args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    return [s.step.value for s in all_statements(result.body) if isinstance(s, For)]


ROW = """
func f(a: f64[n], b: f64[n], h: i64) -> (f64[n]):
  first: i64 = subtract(h, 1)
  r: f64[n] = for k: i64 in first .. {last} step -1 carry (c: f64[n] = a):
    v: f64 = load({read}, {place}) {{index=[at]}}
    w: f64 = multiply(v, 2.0)
    d: f64[n] = {write}(c, w, k) {{index=[at]}}
    yield d
  return r
"""


@pytest.mark.parametrize("read, place, write, step", [
    ("c", "k", "store", 1), ("b", "k", "add_at", 1), ("b", "0", "add_at", 1),
    ("c", "0", "store", -1), ("c", "h", "add_at", 1), ("c", "first", "add_at", -1)])
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_elements_of_one_row(read, place, write, step, trips):
    a, b = np.random.default_rng(0).normal(size=(2, 8))
    text = ROW.format(read=read, place=place, write=write, last=-1)
    assert [step] == steps(text, a, b, trips)


SUM = """
func f(a: f64[n], h: i64) -> (f64):
  first: i64 = subtract(h, 1)
  r: f64 = for k: i64 in first .. -1 step -1 carry (c: f64 = 0.0):
    v: f64 = load(a, k) {{index=[at]}}
    w: f64 = {what}
    d: f64 = {op}(c, w)
    yield d
  return r
"""


@pytest.mark.parametrize("op, what, step", [
    ("accumulate", "multiply(v, v)", 1), ("add", "multiply(v, v)", -1), ("accumulate", "multiply(v, c)", -1)])
def test_only_sums_in_any_order(op, what, step):
    """An addition of the user's stays in its place, and so does a sum that its own terms depend on."""
    assert [step] == steps(SUM.format(op=op, what=what), np.arange(1.0, 6.0), 5)


def test_the_adjoint_of_a_triangle():
    """What a row is, less what the rows above have: inner loops of the adjoint count up, recurrences count down."""
    def triangle(a):
        for i in range(a.shape[0]):
            for j in range(i):
                for k in range(j):
                    a[i, j] -= a[i, k] * a[j, k]
                a[i, j] = a[i, j] / a[j, j]
        return np.sum(a * a)

    def f(a):
        return triangle(a.copy())

    a = np.random.default_rng(1).normal(size=(6, 6)) / 4 + 2 * np.eye(6)
    found, step = gradsmith.grad(f)(a), 1e-6
    for i, j in ((0, 0), (3, 1), (5, 2), (5, 4)):
        shift = np.zeros_like(a)
        shift[i, j] = step
        np.testing.assert_allclose(found[i, j], (f(a + shift) - f(a - shift)) / (2 * step), rtol=1e-6, atol=1e-8)
    loops = [line for line in gradsmith.grad(f).source(a).splitlines() if "for " in line]
    start = max(at for at, loop in enumerate(loops) if loop.startswith("    for "))
    inner = {"i": False, "four j": False, "l, one by one": False, "k": True, "k of four": True, "j": False, "k of j": True}
    assert list(inner.values()) == [re.search(r", -\d+\):", loop) is None for loop in loops[start:]]
