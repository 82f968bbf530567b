"""Nests that add to neighbouring rows add to one row a trip."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For, Let
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.gather_rows import gather_rows

ops.load_table()

NEST = """
func f(w: f64[n,m], d: f64[p,q], lo: i64, hi: i64, cols: i64) -> (f64[p,q]):
  e: f64[p,q] = for j: i64 in {rows} carry (x: f64[p,q] = d):
    j1: i64 = add(j, 1)
    j2: i64 = add(j, 2)
    x4: f64[p,q] = for k: i64 in {columns} carry (y: f64[p,q] = x):
      k1: i64 = add(k, 1)
      v: f64 = load(w, {read}, k) {{index=[at,at]}}
      u: f64 = multiply(v, 0.5)
      y2: f64[p,q] = add_at(y, v, {first}) {{index=[at,at]}}
      y3: f64[p,q] = add_at(y2, u, {second}) {{index=[at,at]}}
      y4: f64[p,q] = add_at(y3, u, {third}) {{index=[at,at]}}
      yield y4
    yield x4
  return e
"""
PLACES = [("j, k1", "j1, k1", "j2, k1"), ("j1, k", "j2, k1", "j1, k1"), ("j2, k", "j, k", "j2, k1"),
          ("j, k", "j, k1", "j2, j")]       # the last reads its column off the row


def text(places, down=False, left=False, read="j"):
    first, second, third = places
    return NEST.format(rows="hi .. lo step -1" if down else "lo .. hi step 1", first=first, second=second, third=third,
                       columns="cols .. -1 step -1" if left else "0 .. cols step 1", read=read)


def adds(func):
    """The most adds to an array in one innermost loop."""
    return max(sum(isinstance(s, Let) and s.op.access == "add_at" for s in loop.body.stmts)
               for loop in all_statements(func.body) if isinstance(loop, For))


def same(func, result, *args):
    verify(result)
    wanted, = evaluate(func, *args)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    for found in (evaluate(result, *args)[0], scope["f"](*args)):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("places", PLACES, ids=" ".join)
@pytest.mark.parametrize("down, left", [(False, False), (True, False), (False, True)])
def test_neighbouring_rows(places, down, left):
    """Any number of trips: none, fewer than the rows that one trip adds to, many."""
    func = parse_func(text(places, down, left))
    result = gather_rows(func)
    assert result is not func
    rng = np.random.default_rng(0)
    w, d = rng.normal(size=(9, 7)), rng.normal(size=(11, 12))
    for lo, hi in ((3, 1), (3, 3), (3, 4), (3, 5), (0, 3), (0, 4), (2, 8), (0, 9)):
        for cols in (0, 1, 6):
            ends = (lo - 1, hi - 1) if down else (lo, hi)
            same(func, result, w, d, *ends, cols - 1 if left else cols)


def test_adds_to_one_element_are_one_add():
    result = gather_rows(parse_func(text(("j, k1", "j1, k1", "j2, k1"))))
    assert 1 == adds(result)


def test_again_along_the_rows_of_planes():
    func = parse_func("""
func f(w: f64[n,n,n], d: f64[p,p,p], h: i64) -> (f64[p,p,p]):
  e: f64[p,p,p] = for i: i64 in 0 .. h step 1 carry (a: f64[p,p,p] = d):
    i1: i64 = add(i, 1)
    a2: f64[p,p,p] = for j: i64 in 0 .. h step 1 carry (b: f64[p,p,p] = a):
      j1: i64 = add(j, 1)
      j2: i64 = add(j, 2)
      b2: f64[p,p,p] = for k: i64 in 0 .. h step 1 carry (c: f64[p,p,p] = b):
        v: f64 = load(w, i, j, k) {index=[at,at,at]}
        c2: f64[p,p,p] = add_at(c, v, i, j1, k) {index=[at,at,at]}
        c3: f64[p,p,p] = add_at(c2, v, i1, j1, k) {index=[at,at,at]}
        c4: f64[p,p,p] = add_at(c3, v, i, j, k) {index=[at,at,at]}
        c5: f64[p,p,p] = add_at(c4, v, i1, j2, k) {index=[at,at,at]}
        yield c5
      yield b2
    yield a2
  return e
""")
    once = gather_rows(func)
    twice = gather_rows(once)
    assert twice is not once and gather_rows(twice) is twice
    assert [4, 3, 1] == [adds(func), adds(once), adds(twice)]
    rng = np.random.default_rng(1)
    for h in (0, 1, 2, 3, 6):
        for result in (once, twice):
            same(func, result, rng.normal(size=(6, 6, 6)), rng.normal(size=(8, 8, 8)), h)


@pytest.mark.parametrize("change", [
    ("load(w, j, k)", "load(y, j, k)"),                 # reads what it adds to
    ("add_at(y2, u, j1, k1)", "store(y2, u, j1, k1)"),
    ("0 .. cols step 1", "0 .. j1 step 1"),             # a triangle
    ("j2, k1", "k, k1"),                                # not at a fixed distance
    ("j2: i64 = add(j, 2)", "j2: i64 = add(j, 9)"),     # far away
])
def test_what_stays(change):
    old = text(("j, k1", "j1, k1", "j2, k1"))
    assert change[0] in old
    func = parse_func(old.replace(*change))
    assert gather_rows(func) is func


def test_one_row_is_left_to_the_innermost_loop():
    func = parse_func(text(("j1, k1", "j1, k", "j1, k1")))
    assert gather_rows(func) is func


def test_columns_that_are_read_differ_from_row_to_row():
    func = parse_func("""
func f(w: f64[n,m], d: f64[p,q], c: i64[n,m], h: i64) -> (f64[p,q]):
  e: f64[p,q] = for j: i64 in 0 .. h step 1 carry (x: f64[p,q] = d):
    j1: i64 = add(j, 1)
    x4: f64[p,q] = for k: i64 in 0 .. 3:i64 step 1 carry (y: f64[p,q] = x):
      v: f64 = load(w, j, k) {index=[at,at]}
      at: i64 = load(c, j, k) {index=[at,at]}
      y2: f64[p,q] = add_at(y, v, j, at) {index=[at,at]}
      y3: f64[p,q] = add_at(y2, v, j1, at) {index=[at,at]}
      yield y3
    yield x4
  return e
""")
    result = gather_rows(func)
    rng = np.random.default_rng(0)
    same(func, result, rng.normal(size=(5, 3)), rng.normal(size=(6, 4)), rng.integers(0, 4, size=(5, 3)), 5)
