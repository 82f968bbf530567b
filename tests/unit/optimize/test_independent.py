"""Which loops are parallel, and that their trips may come in any order."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.independent import mark_independent

ops.load_table()
RNG = np.random.default_rng(0)


def kinds(transform, function, *args):
    """The loops of the parallel version, in the order of the text: P parallel, s serial.  Its values are compared with
    the serial version's, with parallel trips from the last to the first."""
    spec = transform(function).lower(*args)
    func = pipeline.run(spec.trace.func, stages=pipeline.PARALLEL_STAGES)
    text = emit(func, name="f", decorator=False, parallel=True)
    scope = {"prange": lambda *bounds: reversed(range(*bounds))}
    exec(compile(text, "<f>", "exec"), scope)
    expected, found = spec.entry(*args), scope["f"](*args)
    for e, f in zip(*(x if isinstance(x, tuple) else (x,) for x in (expected, found)), strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-13, atol=1e-15)
    return "".join("P" if kind == "prange" else "s" for kind in re.findall(r"for \w+ in (p?range)\(", text))


def sweeps(a, b, steps):
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.5 * a[i, j] + 0.25 * (a[i - 1, j] + a[i, j + 1])
        for i in range(a.shape[0] - 2, 0, -1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = b[i, j]
    return a


def jacobi(a, steps):
    return sweeps(a.copy(), a.copy(), steps)


def test_sweeps_in_a_time_loop():
    assert "sPsPs" == kinds(gradsmith.jit, jacobi, RNG.normal(size=(12, 9)), 3)


def test_sweeps_of_the_reverse_mode():
    def loss(a, steps):
        return np.sum(jacobi(a, steps) ** 2)

    found = kinds(gradsmith.grad, loss, RNG.normal(size=(12, 9)), 3)
    assert found.startswith("sPsPsPs")
    assert found[7:9] == "sP" and found[9:].count("P") >= 1, "the time loop backwards, and its sweeps"


def seidel(a, steps):
    a = a.copy()
    for _ in range(steps):
        for i in range(1, a.shape[0]):
            for j in range(1, a.shape[1]):
                a[i, j] += 0.5 * (a[i - 1, j] + a[i, j - 1])
    return a


def test_each_row_needs_the_one_before():
    assert "sss" == kinds(gradsmith.jit, seidel, RNG.normal(size=(8, 7)), 2)


def shortest(d):
    d = d.copy()
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            if i != k:
                for j in range(d.shape[0]):
                    d[i, j] = d[i, j] + d[i, k] * d[k, j]
    return d


def test_what_a_condition_says_is_not_seen():
    """Rows are independent since row k stands still, which places alone do not tell."""
    assert "sss" == kinds(gradsmith.jit, shortest, RNG.normal(size=(9, 9)))


def lanes(x):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y, n = x[i], 0
        while y * y > 0.1 and n < 50:
            y = y - 0.1 * np.sin(y)
            n += 1
        out[i] = y
    return out


def test_lanes_with_loops_of_their_own():
    assert "P" == kinds(gradsmith.jit, lanes, RNG.normal(size=30))
    spec = gradsmith.grad(lambda x: np.sum(lanes(x))).lower(RNG.normal(size=30))
    func = pipeline.run(spec.trace.func, stages=pipeline.PARALLEL_STAGES)
    assert all(s.parallel for s in func.body.stmts if isinstance(s, For)), "tapes are a lane's own"


def scaled(x, s, steps):
    out = np.zeros((x.shape[0], steps))
    for i in range(x.shape[0]):
        y = x[i]
        for t in range(steps):
            y = s * np.cos(y)
            out[i, t] = y
    return out


def test_what_all_lanes_share_is_summed():
    x = RNG.normal(size=40)
    found = kinds(lambda f: gradsmith.grad(f, argnums=(0, 1)), lambda x, s, t: np.sum(scaled(x, s, t)), x, 0.7, 6)
    assert found.count("P") == 3, "what reaches the results, and both sweeps"


FUNC = """
func f(a: f64[n], b: f64[n], h: i64) -> (f64[n]):
  first: i64 = subtract(h, 1)
  r: f64[n] = for k: i64 in {bounds} carry (c: f64[n] = a):
    v: f64 = load({read}, {place}) {{index=[at]}}
    w: f64 = multiply(v, 2.0)
    d: f64[n] = {write}(c, w, {target}) {{index=[at]}}
    yield d
  return r
"""


@pytest.mark.parametrize("bounds, read, place, write, target, expected", [
    ("0 .. h step 1", "c", "k", "store", "k", True),
    ("first .. -1 step -1", "c", "k", "store", "k", True),
    ("0 .. h step 3", "b", "h", "add_at", "k", True),
    ("first .. 0 step -2", "c", "k", "store", "k", True),
    ("0 .. h step 1", "b", "k", "store", "h", False),
    ("0 .. h step 1", "b", "k", "add_at", "h", False),
    ("0 .. h step 1", "c", "h", "store", "k", True),
    ("0 .. h step 1", "c", "first", "store", "k", False),
    ("0 .. 3 step 1", "c", "k", "store", "k", False)])
def test_places(bounds, read, place, write, target, expected):
    """What lies behind all that is written may be read; adds to one place are no trip's own; a few trips stay."""
    func = parse_func(FUNC.format(bounds=bounds, read=read, place=place, write=write, target=target))
    marked = mark_independent(func)
    verify(marked)
    a, b = RNG.normal(size=(2, 9))
    for h in (0, 1, 2, 7, 8):
        np.testing.assert_array_equal(*(evaluate(one, a, b, h)[0] for one in (func, marked)))
    assert expected == any(getattr(s, "parallel", False) for s in marked.body.stmts)


SUM = """
func f(a: f64[n], h: i64) -> (f64):
  r: f64 = for k: i64 in 0 .. h step 1 carry (c: f64 = 0.0):
    v: f64 = load(a, k) {{index=[at]}}
    w: f64 = {what}
    d: f64 = {op}(c, w)
    yield d
  return r
"""


@pytest.mark.parametrize("op, what, expected", [
    ("accumulate", "multiply(v, v)", True), ("add", "multiply(v, v)", False), ("accumulate", "multiply(v, c)", False)])
def test_sums(op, what, expected):
    marked = mark_independent(parse_func(SUM.format(op=op, what=what)))
    assert expected == marked.body.stmts[-1].parallel


def test_blocks_of_columns():
    """Steps other than 1 count by 1, and blocks of different trips have no column in common."""
    func = parse_func("""
func f(a: f64[n, m]) -> (f64[n, m]):
  n_1: i64 = size() {dim=n}
  m_1: i64 = size() {dim=m}
  r: f64[n, m] = for j: i64 in 0 .. m_1 step 32 carry (c: f64[n, m] = a):
    e: i64 = add(j, 32)
    low: i64 = minimum(e, m_1)
    s: f64[n, m] = for i: i64 in 1 .. n_1 step 1 carry (d: f64[n, m] = c):
      z: i64 = subtract(i, 1)
      t: f64[n, m] = for k: i64 in j .. low step 1 carry (g: f64[n, m] = d):
        v: f64 = load(g, z, k) {index=[at, at]}
        u: f64[n, m] = add_at(g, v, i, k) {index=[at, at]}
        yield u
      yield t
    yield s
  return r
""")
    marked = mark_independent(func)
    verify(marked)
    loop = marked.body.stmts[-1]
    assert loop.parallel and 1 == loop.step.value
    a = RNG.normal(size=(3, 70))
    np.testing.assert_array_equal(*(evaluate(one, a)[0] for one in (func, marked)))
