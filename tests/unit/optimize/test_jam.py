"""Trips are made at once only where every element still gets the same terms in the same order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.build import Names, building, for_loop, int_const
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Block, For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements, inline, used_names
from gradsmith.transpiler.optimize.jam import TRIPS, jam

ops.load_table()


def twice(func):
    """What the loops of the func do, in a loop around."""
    (array, *_), (result,) = func.params, func.results
    with building(Names(used_names(func))) as b:
        (again,) = for_loop(int_const(0), int_const(2), [array], lambda _, x: inline(func, [x, *func.params[1:]]))
    assert result.type == again.type
    return replace(func, body=Block(tuple(b.stmts), (again,)))


def steps(text, *args, rtol=0.0, nested=True):
    """The steps of the loops that are left; what they compute is the same."""
    func = twice(parse_func(text)) if nested else parse_func(text)
    result = jam(func)
    verify(result)
    wanted = evaluate(func, *args)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    emitted = scope["f"](*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    for found in (evaluate(result, *args), (emitted,)):
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=rtol, atol=0)
    return [abs(s.step.value) for s in all_statements(result.body) if isinstance(s, For)]


ELIMINATION = """
func f(c: f64[n,n], i: i64, h: i64) -> (f64[n,n]):
  d: f64[n,n] = for j: i64 in {outer} carry (x: f64[n,n] = c):
    {before}
    p: i64 = add(j, {distance})
    y: f64[n,n] = for k: i64 in {inner} step 1 carry (z: f64[n,n] = {array}):
      s: f64 = load(z, {place}) {{index=[at,at]}}
      u: f64 = load(z, i, j) {{index=[at,at]}}
      v: f64 = load(z, j, k) {{index=[at,at]}}
      t: f64 = multiply(u, v)
      w: f64 = subtract(s, t)
      z2: f64[n,n] = store(z, w, {place}) {{index=[at,at]}}
      yield z2
    yield y
  return d
"""
FINISH = """e: f64 = load(x, i, j) {index=[at,at]}
    g: f64 = load(x, j, j) {index=[at,at]}
    q: f64 = divide(e, g)
    o: f64[n,n] = store(x, q, i, j) {index=[at,at]}"""


def matrix(n=13):
    return np.random.default_rng(n).normal(size=(n, n)) + 3 * np.eye(n)


@pytest.mark.parametrize("trips", range(10))
def test_rows_taken_from_a_row(trips):
    """With the bounds of the inner loop fixed: below, the row that is worked on is none of those taken from it."""
    text = ELIMINATION.format(outer="0 .. i step 1", inner="i .. h", place="i, k", before="", array="x", distance=1)
    assert TRIPS in steps(text, matrix(), trips, 13)


@pytest.mark.parametrize("trips", range(11))
@pytest.mark.parametrize("end", [11, 2])
def test_a_triangle_with_a_division_before(trips, end):
    """What an element is divided by and what is taken out of those behind it, with few or no elements behind."""
    text = ELIMINATION.format(outer="0 .. i step 1", inner="p .. h", place="i, k", before=FINISH, array="o", distance=1)
    args = matrix(), trips, min(end, 12)
    if trips <= min(end, 12):
        steps(text, *args)
    text = text.replace("p .. h", "p .. i")
    assert TRIPS in steps(text, *args)


@pytest.mark.parametrize("outer, inner, distance, place", [
    ("0 .. i step 1", "p .. i", 0, "i, k"),         # the divisor's own column is taken out, too: of what is divided
    ("0 .. i step 1", "i .. h", 1, "j, k"),         # no element is common to the trips
    ("i .. h step 1", "0 .. h", 1, "i, k"),         # rows are taken from one that they may be
    ("0 .. 6 step 1", "i .. h", 1, "i, k"),         # few trips
    ("0 .. i step 2", "i .. h", 1, "i, k"),
])
def test_left_alone(outer, inner, distance, place):
    before, array = (FINISH, "o") if distance == 0 else ("", "x")
    text = ELIMINATION.format(outer=outer, inner=inner, place=place, before=before, array=array, distance=distance)
    assert TRIPS not in steps(text, matrix(), 8, 13)


def test_only_inside_of_another_loop():
    text = ELIMINATION.format(outer="0 .. i step 1", inner="i .. h", place="i, k", before="", array="x", distance=1)
    assert TRIPS not in steps(text, matrix(), 8, 13, nested=False)


NEIGHBOURS = """
func f(c: f64[n,n], i: i64, h: i64) -> (f64[n,n]):
  d: f64[n,n] = for j: i64 in 1 .. i step 1 carry (x: f64[n,n] = c):
    p: i64 = add(j, 1)
    y: f64[n,n] = for k: i64 in j .. i step 1 carry (z: f64[n,n] = x):
      s: f64 = load(z, {row}, k) {{index=[at,at]}}
      u: f64 = load(z, p, k) {{index=[at,at]}}
      v: f64 = multiply(u, u)
      z2: f64[n,n] = add_at(z, v, {row}, k) {{index=[at,at]}}
      yield z2
    yield y
  return d
"""


@pytest.mark.parametrize("row, jams", [("0", True), ("i", False)])
def test_an_element_that_one_of_the_trips_finds_elsewhere(row, jams):
    """The last of four trips reads row i = j + 1, which all of them add to."""
    assert jams == (TRIPS in steps(NEIGHBOURS.format(row=row), matrix(), 9, 12, rtol=1e-12))


def test_columns_are_left_alone():
    text = NEIGHBOURS.format(row="0").replace("0, k)", "k, 0)").replace("p, k)", "k, p)")
    assert TRIPS not in steps(text, matrix(), 9, 12, rtol=1e-12)


def test_dear_operations_are_left_alone():
    text = NEIGHBOURS.format(row="0").replace("multiply(u, u)", "sin(u)")
    assert TRIPS not in steps(text, matrix(), 9, 12, rtol=1e-12)


def test_a_row_that_is_only_read():
    """Each trip stores to a row of its own: there is one load to save, of three loads and stores."""
    text = ELIMINATION.format(outer="0 .. i step 1", inner="h .. 13", place="j, k", before="", array="x", distance=1)
    text = text.replace("v: f64 = load(z, j, k)", "v: f64 = load(z, i, k)")
    assert TRIPS not in steps(text, matrix(), 8, 10)
    text = text.replace("load(z, j, k)", "load(z, j, i)").replace("store(z, w, j, k)", "store(z, w, j, i)")
    assert TRIPS in steps(text, matrix(), 8, 10)


SUMS = """
func f(c: f64[n], a: f64[n,n], h: i64) -> (f64[n]):
  last: i64 = subtract(h, 1)
  d: f64[n] = for j: i64 in last .. -1 step -1 carry (x: f64[n] = c):
    p: i64 = add(j, 1)
    y: f64[n] = for k: i64 in {inner} step 1 carry (z: f64[n] = x):
      u: f64 = load(z, j) {{index=[at]}}
      v: f64 = load(a, j, k) {{index=[at,at]}}
      t: f64 = multiply(u, v)
      z2: f64[n] = {op}(z, t, k) {{index=[at]}}
      yield z2
    yield y
  return d
"""


@pytest.mark.parametrize("inner, op, jams", [
    ("0 .. j", "add_at", True),         # what later trips read is added to before what they have in common
    ("p .. h", "add_at", True),
    ("0 .. h", "add_at", False),        # each trip reads what all others add to
    ("0 .. p", "add_at", False), ("j .. h", "store", False)])
@pytest.mark.parametrize("size", [0, 1, 4, 5, 11])
def test_the_adjoint_of_a_triangular_product(inner, op, jams, size):
    c, a = np.random.default_rng(0).normal(size=12), np.random.default_rng(1).normal(size=(12, 12))
    assert jams == (TRIPS in steps(SUMS.format(inner=inner, op=op), c, a, size, rtol=1e-10))


def cholesky(a):
    a = a.copy()
    for i in range(a.shape[0]):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    return a


def solved(l, b):
    x = np.zeros(b.shape[0])
    for i in range(b.shape[0]):
        x[i] = b[i]
        for j in range(i):
            x[i] -= l[i, j] * x[j]
        x[i] /= l[i, i]
    return x


@pytest.mark.parametrize("size", [2, 5, 8, 23])
def test_a_factorisation_to_the_bit_and_its_gradient(size):
    a = matrix(size)
    a = a @ a.T + np.eye(size)
    np.testing.assert_array_equal(gradsmith.jit(cholesky)(a), cholesky(a))
    weights = np.tril(np.random.default_rng(0).normal(size=a.shape))

    def f(a, b):
        factor = cholesky(a)
        return np.sum(factor * b) + np.sum(solved(factor, b[0]))

    direction = np.random.default_rng(1).normal(size=a.shape)
    slope = (f(a + 1e-6 * direction, weights) - f(a - 1e-6 * direction, weights)) / 2e-6
    np.testing.assert_allclose(np.sum(gradsmith.grad(f)(a, weights) * direction), slope, rtol=1e-6, atol=1e-7)
