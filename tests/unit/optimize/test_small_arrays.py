"""Arrays of a few elements as scalars: the same values and derivatives, and no such array left."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.pipeline import scalars_all

ops.load_table()


def state(x, steps):
    """A damped oscillator, its state in an array."""
    s = np.array([x[0], x[1]])
    for _ in range(steps):
        d = np.array([s[1], -np.sin(s[0]) - 0.1 * s[1]])
        s = s + 0.1 * d
    return s @ s


def matrix(x, steps):
    """Products of 2 x 2 matrices, written in place."""
    m = np.eye(2)
    for k in range(steps):
        r = np.zeros((2, 2))
        for i in range(2):
            for j in range(2):
                r[i, j] += m[i, 0] * x[j] + m[i, 1] * np.cos(x[1 - j])
        m = r
    return np.sum(m * m)


def branches(x, steps):
    s = np.zeros(3)
    for k in range(steps):
        if s[0] > x[0]:
            s[1] -= x[1]
            s[0] = 0.5 * s[1]
        else:
            s = s + np.array([x[0], x[1], s[1]])
        if s[2] > 50.0:
            break
    return s[0] * s[1] + s[2]


def until(x, steps):
    s = np.array([x[0], 1.0])
    while s[1] < steps:
        s = np.array([s[0] * x[1] + 0.3, s[1] + 1.0])
    return s[0] ** 2 + s[1]


def found_at_run_time(x, steps):
    """The place is known at run time alone: the array stays."""
    s = np.zeros(2)
    for k in range(steps):
        s[k % 2] += x[k % 2] * s[(k + 1) % 2] + 1.0
    return s @ x


def rows(x, steps):
    """Rows of a matrix, of a size that is not known, get the elements of a small array."""
    v = np.outer(np.append(x, x), np.array([1.0, 2.0, 3.0]))
    for _ in range(steps):
        for i in range(v.shape[0]):
            push = np.zeros(3)
            for j in range(v.shape[0]):
                push += np.sin(v[j] - v[i])
            v[i] += 0.1 * push
    return np.sum(v * v)


FUNCTIONS = [rows, state, matrix, branches, until, found_at_run_time]
X = np.array([0.7, -0.4])


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_derivatives(fun):
    gradient, second = gradsmith.grad(fun), gradsmith.hessian(fun)
    for steps in (0, 1, 2, 3, 7):
        np.testing.assert_allclose(gradsmith.jit(fun)(X, steps), fun(X, steps), rtol=1e-13)
        slopes, bends = [], []
        for e in 1e-6 * np.eye(2):
            slopes.append((fun(X + e, steps) - fun(X - e, steps)) / 2e-6)
            bends.append((gradient(X + e, steps) - gradient(X - e, steps)) / 2e-6)
        np.testing.assert_allclose(gradient(X, steps), slopes, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(second(X, steps), bends, rtol=1e-5, atol=1e-6)
        v = np.array([0.3, 1.1])
        np.testing.assert_allclose(gradsmith.jvp(lambda x: fun(x, steps), (X,), (v,))[1], gradient(X, steps) @ v,
                                   rtol=1e-12, atol=1e-14)


def test_rows_are_written_in_place():
    source = gradsmith.jit(rows).source(X, 3)
    assert not re.findall(r"^ {8,}.*\.copy\(\)", source, re.M) and "push_" in source


@pytest.mark.parametrize("fun", [state, matrix, branches, until], ids=lambda f: f.__name__)
def test_no_array_is_left(fun):
    source = gradsmith.jit(fun).source(X, 3)
    assert re.findall(r"= (?:empty\((?!128\))|zeros).*|\.copy\(\)", source) == []     # but what `ahead` makes


def test_an_array_whose_places_are_not_known_stays():
    assert "zeros(2)" in gradsmith.jit(found_at_run_time).source(X, 3)


RETURNED = """
func f(x: f64, y: f64) -> (f64[2], f64):
  a: f64[2] = empty() {shape=(2,), dtype="float64"}
  b: f64[2] = store(a, x, 0) {index=[at]}
  c: f64[2] = store(b, y, 1) {index=[at]}
  d: f64[2] = for i: i64 in 0 .. 2 step 1 carry (e: f64[2] = 0.0:f64[2]):
    v: f64 = load(c, i) {index=[at]}
    w: f64 = multiply(v, v)
    g: f64[2] = store(e, w, i) {index=[at]}
    yield g
  s: f64 = load(c, 1) {index=[at]}
  return d, s
"""


def test_what_is_returned_stays_an_array():
    func = parse_func(RETURNED)
    result = scalars_all(func)
    verify(result)
    for want, got in zip(evaluate(func, 2.0, 3.0), evaluate(result, 2.0, 3.0), strict=True):
        np.testing.assert_array_equal(want, got)
    text = show(result)
    assert "empty" not in text and "for" not in text and text.count("store(") == 2


def selected(x):
    y = x[x > 0.0]
    return np.sum(y * y) + len(y)


def test_sizes_that_a_short_loop_counts_stay():
    """Of one element each, in a batch of one: the loop that counts those selected is short."""
    x = np.array([[0.5], [-1.0]])
    for rows in (x, x[:1]):
        np.testing.assert_allclose(gradsmith.vmap(selected)(rows), [selected(row) for row in rows])
        np.testing.assert_allclose(gradsmith.vmap(gradsmith.grad(selected))(rows), 2 * np.maximum(rows, 0.0))
