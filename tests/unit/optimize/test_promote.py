"""Elements that a loop works on are kept in scalars, where no other of its accesses can be to the same element."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For, If
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.promote import promote

ops.load_table()


def promoted(text, *args):
    """The func after the pass, which has the same values, also as emitted text; every loop is run for real."""
    func = parse_func(text)
    result = promote(func)
    verify(result)
    wanted = evaluate(func, *args)
    for want, got in zip(wanted, evaluate(result, *args), strict=True):
        np.testing.assert_array_equal(want, got)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    found = scope["f"](*args)
    for want, got in zip(wanted, found if len(wanted) > 1 else (found,), strict=True):
        np.testing.assert_array_equal(want, got)
    assert promote(result) is result
    return result, result is func


def scalars(func):
    """How many scalars of floats each innermost loop carries."""
    return [sum(not c.type.shape and c.type.dtype == "float64" for c in s.carries)
            for s in all_statements(func.body) if isinstance(s, For)
            and not any(isinstance(inner, For) for inner in all_statements(s.body))]


ROWS = """
func f(a: f64[n,n]) -> (f64[n,n]):
  m: i64 = size() {{dim=n}}
  b: f64[n,n] = for i: i64 in 0 .. m step 1 carry (c: f64[n,n] = a):
    d: f64[n,n] = for j: i64 in 0 .. i step 1 carry (e: f64[n,n] = c):
      g: f64[n,n] = for k: i64 in {range} carry (h: f64[n,n] = e):
        v: f64 = load(h, {read}) {{index=[at, at]}}
        u: f64 = load(h, i, j) {{index=[at, at]}}
        w: f64 = subtract(u, v)
        x: f64[n,n] = store(h, w, i, j) {{index=[at, at]}}
        yield x
      yield g
    yield d
  return b
"""
SQUARE = np.arange(1.0, 17.0).reshape(4, 4) ** 1.5


@pytest.mark.parametrize("range", ["0 .. j step 1", "j .. 0 step -1"])
@pytest.mark.parametrize("read", ["j, k", "k, k"])
def test_other_rows(read, range):
    """k <= j < i: the rows j and k are not row i.  Where k makes no trip, nothing is loaded or stored."""
    func, _ = promoted(ROWS.format(read=read, range=range), SQUARE)
    assert scalars(func) == [1]
    assert any(isinstance(s, If) for s in all_statements(func.body))


def test_other_columns():
    func, _ = promoted(ROWS.format(read="i, k", range="0 .. j step 1"), SQUARE)
    assert scalars(func) == [1]


@pytest.mark.parametrize("read, range", [
    ("i, k", "j .. 0 step -1"),     # the first k is j
    ("i, k", "0 .. m step 1"),
    ("k, j", "0 .. m step 1"),
    ("k, k", "0 .. m step 1"),
])
def test_what_may_be_the_same_element_stays(read, range):
    assert promoted(ROWS.format(read=read, range=range), SQUARE)[1]


def test_no_test_where_the_place_is_read_anyway():
    func, _ = promoted("""
func f(a: f64[n], j: i64) -> (f64[n], f64):
  p: f64 = load(a, j) {index=[at]}
  b: f64[n] = for k: i64 in 0 .. j step 1 carry (c: f64[n] = a):
    v: f64 = load(c, k) {index=[at]}
    d: f64[n] = add_at(c, v, j) {index=[at]}
    yield d
  return b, p
""", np.arange(5.0), 3)
    assert scalars(func) == [1] and not any(isinstance(s, If) for s in all_statements(func.body))


def test_versions_of_the_array():
    """A load after a store at the place reads what was stored; one of the array before, what was there."""
    func, _ = promoted("""
func f(a: f64[n]) -> (f64[n]):
  b: f64[n] = for k: i64 in 1 .. 4 step 1 carry (c: f64[n] = a):
    u: f64 = load(c, 0:i64) {index=[at]}
    v: f64 = load(c, k) {index=[at]}
    w: f64 = multiply(u, v)
    d: f64[n] = store(c, w, 0:i64) {index=[at]}
    e: f64 = load(d, 0:i64) {index=[at]}
    g: f64 = load(c, 0:i64) {index=[at]}
    h: f64 = add(e, g)
    x: f64[n] = store(d, h, k) {index=[at]}
    y: f64[n] = add_at(x, g, 0:i64) {index=[at]}
    yield y
  return b
""", np.arange(2.0, 7.0))
    assert scalars(func) == [1]


def test_two_places_of_one_array():
    func, _ = promoted("""
func f(a: f64[n]) -> (f64[n]):
  b: f64[n] = for k: i64 in 2 .. 5 step 1 carry (c: f64[n] = a):
    v: f64 = load(c, k) {index=[at]}
    d: f64[n] = add_at(c, v, 0:i64) {index=[at]}
    e: f64[n] = add_at(d, v, 1:i64) {index=[at]}
    yield e
  return b
""", np.arange(2.0, 7.0))
    assert scalars(func) == [2]


def test_a_place_that_is_only_read():
    """Its value stays what it was before the loop, which writes elsewhere."""
    func, _ = promoted("""
func f(a: f64[n]) -> (f64[n]):
  b: f64[n] = for k: i64 in 1 .. 5 step 1 carry (c: f64[n] = a):
    u: f64 = load(c, 0:i64) {index=[at]}
    e: f64[n] = add_at(c, u, k) {index=[at]}
    yield e
  return b
""", np.arange(2.0, 7.0))
    assert promote(func) is func
    assert not any(s.op.access == "load" for loop in all_statements(func.body) if isinstance(loop, For)
                   for s in loop.body.stmts)


@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_sums_of_what_is_only_added(k):
    """The loop adds to element 1 in every trip, also in the one in which the other element is that one."""
    func, _ = promoted("""
func f(a: f64[n], k: i64) -> (f64[n]):
  p: i64 = add(k, -1)
  b: f64[n] = for j: i64 in 0 .. k step 1 carry (c: f64[n] = a):
    v: f64 = load(a, j) {index=[at]}
    d: f64[n] = add_at(c, v, p) {index=[at]}
    e: f64[n] = add_at(d, v, j) {index=[at]}
    yield e
  return b
""", np.arange(2.0, 7.0), k)
    assert scalars(func) == [1] and any(isinstance(s, If) for s in all_statements(func.body))


def test_an_array_that_begins_as_a_constant():
    func, _ = promoted("""
func f(a: f64[n]) -> (f64[n]):
  b: f64[n] = for k: i64 in 1 .. 5 step 1 carry (c: f64[n] = 0.0:f64[n]):
    u: f64 = load(a, k) {index=[at]}
    e: f64[n] = add_at(c, u, 0:i64) {index=[at]}
    yield e
  return b
""", np.arange(2.0, 7.0))
    assert scalars(func) == [1]


def test_what_else_the_loop_does_with_the_array():
    """A value of the whole array, or a second name of it, sees every store."""
    for use, carries, result in (("s: f64 = sum(e) {axes=(0,)}\n    t2: f64 = add(t, s)", "t: f64 = 0.0", "t2"),
                                 ("t2: f64[n] = add(e, e)", "t: f64[n] = a", "t2")):
        kind = "f64" if "sum" in use else "f64[n]"
        func = parse_func(f"""
func f(a: f64[n]) -> (f64[n], {kind}):
  b: f64[n], r: {kind} = for k: i64 in 1 .. 4 step 1 carry (c: f64[n] = a, {carries}):
    v: f64 = load(c, k) {{index=[at]}}
    e: f64[n] = add_at(c, v, 0:i64) {{index=[at]}}
    {use}
    yield e, {result}
  return b, r
""")
        assert promote(func) is func
