"""Loops that add to neighbours add to one element a trip; loops side by side that add to one array become one."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.dead_code import drop_dead_code
from gradsmith.transpiler.optimize.fuse_adds import fuse_adds
from gradsmith.transpiler.optimize.gather import gather_adds

ops.load_table()


def same(func, result, *args):
    """Both give the same, the result also as emitted text; sums may round differently."""
    verify(result)
    wanted = evaluate(func, *args)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    found = scope["f"](*args)
    for other in (evaluate(result, *args), found if len(wanted) > 1 else (found,)):
        for want, got in zip(wanted, other, strict=True):
            assert np.shape(want) == np.shape(got)
            np.testing.assert_allclose(got, want, rtol=1e-13)


def loops(func):
    return [s for s in all_statements(func.body) if isinstance(s, For)]


def adds(loop):
    return sum(s.op.access == "add_at" for s in loop.body.stmts if hasattr(s, "op"))


STENCIL = """
func f(a: f64[n], b: f64[n], lo: i64, hi: i64) -> (f64[n], f64[n], f64):
  c: f64[n], d: f64[n], t: f64 = for j: i64 in {range} carry (x: f64[n] = a, y: f64[n] = b, s: f64 = 0.0):
    v: f64 = load(x, j) {{index=[at]}}
    x2: f64[n] = store(x, {stored}, j) {{index=[at]}}
    w: f64 = multiply(v, 0.5)
    k: i64 = add(j, 1)
    y2: f64[n] = add_at(y, v, k) {{index=[at]}}
    y3: f64[n] = add_at(y2, w, j) {{index=[at]}}
    l: i64 = subtract(j, 2)
    y4: f64[n] = add_at(y3, v, l) {{index=[at]}}
    s2: f64 = add(s, v)
    yield x2, y4, s2
  return c, d, t
"""


@pytest.mark.parametrize("stored", ["0.0", "w"])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("lo, hi", [(2, 2), (2, 1), (2, 3), (2, 4), (2, 5), (2, 6), (3, 11), (2, 11)])
def test_neighbours(lo, hi, forward, stored):
    """Any number of trips, also fewer than neighbours; what the loop writes itself is read before."""
    if stored == "w":       # what is stored is computed before
        text = STENCIL.replace("    x2: f64[n] = store(x, {stored}, j) {{index=[at]}}\n", "").replace(
            "    k: i64", "    x2: f64[n] = store(x, {stored}, j) {{index=[at]}}\n    k: i64")
    else:
        text = STENCIL
    func = parse_func(text.format(stored=stored, range="lo .. hi step 1" if forward else "hi .. lo step -1"))
    result = gather_adds(func)
    assert result is not func
    a, b = np.arange(1.0, 13.0) ** 1.5, np.arange(12.0)
    same(func, result, a, b, *((lo, hi) if forward else (lo - 1, hi - 1)))
    assert 1 in map(adds, loops(result))


def test_what_depends_on_other_trips_stays():
    """A sum that is added; an element that the next trip reads as this one left it; one that the loop adds to."""
    for change in (("add_at(y, v, k)", "add_at(y, s, k)"), ("v: f64 = load(x, j)", "v: f64 = load(x, 0:i64)"),
                   ("v: f64 = load(x, j)", "v: f64 = load(y, j)"), ("store(x, 0.0, j)", "store(x, 0.0, 3:i64)")):
        text = STENCIL.format(stored="0.0", range="lo .. hi step 1")
        assert change[0] in text
        func = parse_func(text.replace(*change))
        assert gather_adds(func) is func


ROWS = """
func f(a: f64[n,m], b: f64[n,m]) -> (f64[n,m]):
  t: i64 = size() {dim=n - 2}
  u: i64 = size() {dim=m - 2}
  c: f64[n,m] = for i: i64 in 0 .. t step 1 carry (x: f64[n,m] = b):
    p: i64 = add(i, 1)
    d: f64[n,m] = for j: i64 in 0 .. u step 1 carry (y: f64[n,m] = x):
      q: i64 = add(j, 2)
      v: f64 = load(a, p, q) {index=[at, at]}
      y2: f64[n,m] = add_at(y, v, i, j) {index=[at, at]}
      y3: f64[n,m] = add_at(y2, v, p, q) {index=[at, at]}
      w: f64 = exp(v)
      y4: f64[n,m] = add_at(y3, w, i, q) {index=[at, at]}
      yield y4
    yield d
  return c
"""


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (3, 4), (4, 5), (7, 9)])
def test_rows_side_by_side(shape):
    """Sums for each of the rows that a trip adds to."""
    func = parse_func(ROWS)
    result = gather_adds(func)
    a, b = (np.random.default_rng(k).normal(size=shape) for k in range(2))
    same(func, result, a, b)
    assert 2 in map(adds, loops(result))


def test_rows_that_may_be_one():
    func = parse_func(ROWS.replace("a: f64[n,m], b: f64[n,m])", "a: f64[n,m], b: f64[n,m], r: i64)").replace(
        "add_at(y3, w, i, q)", "add_at(y3, w, r, q)"))
    assert gather_adds(func) is func


NESTS = """
func f(a: f64[n,m], b: f64[n,m]) -> (f64[n,m]):
  t: i64 = size() {{dim=n - 1}}
  c: f64[n,m] = for i: i64 in 0 .. t step 1 carry (x: f64[n,m] = b):
    d: f64[n,m] = for j: i64 in 0 .. t step 1 carry (y: f64[n,m] = x):
      v: f64 = load(a, i, j) {{index=[at, at]}}
      y2: f64[n,m] = add_at(y, v, i, j) {{index=[at, at]}}
      yield y2
    yield d
  {between}
  e: f64[n,m] = for k: i64 in 0 .. t step 1 carry (z: f64[n,m] = c):
    p: i64 = add(k, 1)
    g: f64[n,m] = for l: i64 in 0 .. t step 1 carry (o: f64[n,m] = z):
      w: f64 = load({array}, k, l) {{index=[at, at]}}
      o2: f64[n,m] = {write}(o, w, p, l) {{index=[at, at]}}
      yield o2
    yield g
  return {result}
"""


def test_nests_become_one():
    func = parse_func(NESTS.format(between="s: f64 = exp(1.0)", array="a", write="add_at", result="e"))
    result = drop_dead_code(fuse_adds(fuse_adds(func)))       # loops inside are for the second round
    a, b = (np.random.default_rng(k).normal(size=(4, 5)) for k in range(2))
    same(func, result, a, b)
    assert len(loops(result)) == 2 and max(map(adds, loops(result))) == 2


@pytest.mark.parametrize("array, write, result", [
    ("c", "add_at", "e"),       # the second reads what the first gave
    ("a", "store", "e"),        # it does not add
    ("a", "add_at", "c"),       # somebody sees what the first gave
])
def test_nests_that_stay(array, write, result):
    func = parse_func(NESTS.format(between="s: f64 = exp(1.0)", array=array, write=write, result=result))
    assert fuse_adds(func) is func


@pytest.mark.parametrize("place, fused", [("add(j, 3)", True), ("subtract(s, j)", False), ("add(s, j)", False)])
def test_innermost_loops_stay_vectorised(place, fused):
    """Loops that add to elements at a distance that is not known would not gather."""
    func = parse_func(f"""
func f(a: f64[n], b: f64[n], s: i64) -> (f64[n]):
  c: f64[n] = for i: i64 in 0 .. 4 step 1 carry (x: f64[n] = a):
    v: f64 = load(b, i) {{index=[at]}}
    y: f64[n] = add_at(x, v, i) {{index=[at]}}
    yield y
  d: f64[n] = for j: i64 in 0 .. 4 step 1 carry (z: f64[n] = c):
    k: i64 = {place}
    w: f64 = load(b, j) {{index=[at]}}
    o: f64[n] = add_at(z, w, k) {{index=[at]}}
    yield o
  return d
""")
    result = fuse_adds(func)
    assert (result is func) is not fused
    same(func, result, np.arange(9.0), np.arange(9.0) ** 1.5, 4)


DEAR = """
func f(a: f64[n], b: f64[n], lo: i64, hi: i64) -> (f64[n]):
  d: f64[n] = for j: i64 in {range} carry (y: f64[n] = b):
    v: f64 = load(a, j) {{index=[at]}}
    w: f64 = cos(v)
    x: f64 = multiply(w, 0.5)
    k: i64 = add(j, 1)
    y2: f64[n] = add_at(y, w, k) {{index=[at]}}
    l: i64 = subtract(j, 1)
    y3: f64[n] = add_at(y2, x, l) {{index=[at]}}
    e: f64 = exp(v)
    y4: f64[n] = add_at(y3, e, j) {{index=[at]}}
    yield y4
  return d
"""


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("range", ["lo .. hi step 1", "hi .. lo step -1"])
def test_what_is_dear_is_computed_once_for_all_neighbours(range, trips):
    func = parse_func(DEAR.format(range=range))
    result = drop_dead_code(gather_adds(func))
    lo = 2 if "-1" not in range else 1
    same(func, result, np.linspace(0.1, 0.9, 12), np.linspace(1.0, 2.0, 12), lo, lo + trips)
    (choice,) = [s for s in result.body.stmts if hasattr(s, "then")]
    names = [s.op.name for s in all_statements(choice.then) if hasattr(s, "op")]
    assert names.count("cos") == 1 and names.count("exp") <= 3      # what one add needs alone is computed for it
