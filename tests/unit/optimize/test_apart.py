"""What a loop reads beside what it overwrites is read from the new array."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.apart import read_apart

ops.load_table()

A = np.arange(1.0, 26.0).reshape(5, 5)


def apart(text):
    """The func after the pass, with its meaning compared; arrays are (5, 5)."""
    func = parse_func(text)
    result = read_apart(func)
    verify(result)
    for want, got in zip(evaluate(func, A), evaluate(result, A), strict=True):
        np.testing.assert_array_equal(want, got)
    return show(result), result is func


ROW = """
func f(x: f64[n,n]) -> (f64[n,n]):
  a: f64[n,n] = for t: i64 in 0 .. 3 step 1 carry (b: f64[n,n] = x):
    up: i64 = add(t, 1)
    c: f64[n,n] = for i: i64 in 0 .. 4 step 1 carry (d: f64[n,n] = b){parallel}:
      j: i64 = add(i, 1)
      v: f64 = load(b, {read}) {{index=[at, at]}}
      w: f64 = multiply(v, 2.0)
      e: f64[n,n] = {write}(d, w, {place}) {{index=[at, at]}}
      yield e
    yield c
  return a
"""


@pytest.mark.parametrize("write", ["store", "add_at"])
@pytest.mark.parametrize("read, place", [
    ("t, i", "up, i"),          # another row
    ("up, j", "t, i"),
    ("i, t", "i, up"),          # another column
    ("t, t", "j, up"),          # one element of another column
    ("t, i", "t, i"),           # the place itself
    ("t, j", "t, i"),           # a place that is written later
])
def test_places_that_are_not_written_before(read, place, write):
    text, _ = apart(ROW.format(read=read, place=place, write=write, parallel=""))
    assert "load(d" in text and "load(b" not in text


@pytest.mark.parametrize("read, place", [
    ("t, i", "t, j"),           # written by the trip before
    ("t, t", "t, i"),           # by one of them
    ("i, t", "t, j"),           # where row and column cross
])
def test_places_that_may_be_written_before_are_read_as_they_were(read, place):
    text, same = apart(ROW.format(read=read, place=place, write="store", parallel=""))
    assert same and "load(b" in text


def test_a_row_is_not_parallel_any_more_where_its_order_counts():
    text, _ = apart(ROW.format(read="t, j", place="t, i", write="store", parallel=" parallel"))
    assert "load(d" in text and "parallel" not in text
    text, _ = apart(ROW.format(read="t, i", place="up, i", write="store", parallel=" parallel"))
    assert "load(d" in text and "parallel" in text


LATER = """
func f(x: f64[n,n]) -> (f64, f64[n,n]):
  b: f64[n,n] = multiply(x, x)
  c: f64[n,n] = for i: i64 in 0 .. 4 step 1 carry (d: f64[n,n] = b):
    v: f64 = load(b, 0, i) {index=[at, at]}
    e: f64[n,n] = store(d, v, 1, i) {index=[at, at]}
    yield e
  s: f64 = load(b, 1, 1) {index=[at, at]}
  return s, c
"""


def test_an_array_that_is_read_later_is_left():
    _, same = apart(LATER)
    assert same


NEST = """
func f(x: f64[n,n]) -> (f64[n,n]):
  b: f64[n,n] = multiply(x, x)
  c: f64[n,n] = for i: i64 in 1 .. 5 step 1 carry (d: f64[n,n] = b):
    u: f64 = load(b, i, 0) {{index=[at, at]}}
    e: f64[n,n] = for j: i64 in 1 .. 5 step 1 carry (g: f64[n,n] = d):
      s: f64 = for k: i64 in 0 .. {end} step 1 carry (q: f64 = u):
        v: f64 = load(b, 0, k) {{index=[at, at]}}
        r: f64 = add(q, v)
        yield r
      h: f64[n,n] = store(g, s, i, j) {{index=[at, at]}}
      yield h
    yield e
  return c
"""


def test_reads_at_each_level_and_in_loops_beside():
    text, _ = apart(NEST.format(end=5))
    assert "load(d, i, 0" in text and "load(g, 0:i64, k" in text and "load(b" not in text


def test_all_reads_or_none():
    text, same = apart(NEST.format(end=5).replace("load(b, 0, k)", "load(b, k, 1)"))
    assert same and "load(b, i, 0" in text


ON_A_TAPE = """
func f(x: f64[5,5]) -> (f64[5,5], f64[3,5,5]):
  tape: f64[3,5,5] = empty() {{shape=(3,5,5), dtype="float64"}}
  cleared: f64[3,5,5] = for p: i64 in 0 .. 3 step 1 carry (q: f64[3,5,5] = tape):
    r: f64[3,5,5] = for p_1: i64 in 0 .. 5 step 1 carry (q_1: f64[3,5,5] = q):
      r_1: f64[3,5,5] = for p_2: i64 in 0 .. 5 step 1 carry (q_2: f64[3,5,5] = q_1):
        r_2: f64[3,5,5] = store(q_2, 0.0, p, p_1, p_2) {{index=[at, at, at]}}
        yield r_2
      yield r_1
    yield r
  a, saved = for t: i64 in 0 .. 3 step 1 carry (b: f64[5,5] = x, s: f64[3,5,5] = cleared):
    s_1: f64[3,5,5] = for i: i64 in 0 .. 5 step 1 carry (s_2: f64[3,5,5] = s):
      s_3: f64[3,5,5] = for j: i64 in 0 .. {end} step 1 carry (s_4: f64[3,5,5] = s_2):
        v: f64 = load(b, i, j) {{index=[at, at]}}
        s_5: f64[3,5,5] = store(s_4, v, t, {place}) {{index=[at, at, at]}}
        yield s_5
      yield s_3
    c: f64[5,5] = for k: i64 in 1 .. 5 step 1 carry (d: f64[5,5] = b):
      l: i64 = subtract(k, 1)
      w: f64 = load(b, l, t) {{index=[at, at]}}
      y: f64 = multiply(w, 2.0)
      e: f64[5,5] = store(d, y, k, t) {{index=[at, at]}}
      yield e{more}
    yield c, {last}
  return a, saved
"""


def test_a_copy_on_a_tape_is_read_instead():
    text, _ = apart(ON_A_TAPE.format(end="5", place="i, j", more="", last="s_1").replace(
        "a, saved = for", "a: f64[5,5], saved: f64[3,5,5] = for"))
    assert "load(s_1, t, l, t)" in text and text.count("load(b") == 1


@pytest.mark.parametrize("end, place, more, last", [
    ("3", "i, j", "", "s_1"),       # not all of it
    ("5", "j, i", "", "s_1"),       # in another order
    ("5", "i, j", "\n    s_6: f64[3,5,5] = store(s_1, 0.0, t, 0, 0) {index=[at, at, at]}", "s_6"),     # changed
])
def test_what_is_no_copy_is_not_read_instead(end, place, more, last):
    _, same = apart(ON_A_TAPE.format(end=end, place=place, more=more, last=last).replace(
        "a, saved = for", "a: f64[5,5], saved: f64[3,5,5] = for"))
    assert same
