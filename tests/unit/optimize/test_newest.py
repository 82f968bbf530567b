"""Loops that overwrite an array read what they are about to write from the new one."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.newest import read_newest

ops.load_table()


def newest(text):
    """The func after the pass; arrays are (4, 4), so that every index of the texts is in range."""
    func = parse_func(text)
    result = read_newest(func)
    verify(result)
    a = np.arange(1.0, 17.0).reshape(4, 4)
    for want, got in zip(evaluate(func, a), evaluate(result, a), strict=True):
        np.testing.assert_array_equal(want, got)
    return show(result), result is func


NEST = """
func f(a: f64[n,n]) -> (f64[n,n]):
  b: f64[n,n] = for i: i64 in 0 .. 3 step 1 carry (c: f64[n,n] = a):
    d: f64[n,n] = for j: i64 in 0 .. 3 step 1 carry (e: f64[n,n] = c):
      k: i64 = add(i, 1)
      l: i64 = add(j, 1)
      v: f64 = load({array}, {read}) {{index=[at, at]}}
      w: f64 = multiply(v, 2.0)
      g: f64[n,n] = {write}(e, w, {place}) {{index=[at, at]}}
      yield g
    yield d
  return b
"""


@pytest.mark.parametrize("write", ["store", "add_at"])
@pytest.mark.parametrize("place", ["k, j", "i, j", "l, i", "k, l"])
def test_the_place_that_is_written(place, write):
    text, _ = newest(NEST.format(array="a", read=place, place=place, write=write))
    assert "load(e" in text and "load(a" not in text


@pytest.mark.parametrize("read, place", [
    ("i, j", "k, j"),           # written by an earlier trip
    ("i, i", "i, i"),           # by all trips of the inner loop
    ("i, 0:i64", "i, 0:i64"),
])
def test_other_places_are_read_as_they_were(read, place):
    text, same = newest(NEST.format(array="a", read=read, place=place, write="store"))
    assert same and "load(a" in text


def test_two_writes_of_one_trip():
    """What the first of them wrote is not what was there."""
    _, same = newest("""
func f(a: f64[n,n]) -> (f64[n,n]):
  b: f64[n,n] = for i: i64 in 0 .. 3 step 1 carry (c: f64[n,n] = a):
    v: f64 = load(a, i, i) {index=[at, at]}
    g: f64[n,n] = store(c, 5.0, i, i) {index=[at, at]}
    h: f64[n,n] = add_at(g, v, i, i) {index=[at, at]}
    yield h
  return b
""")
    assert same


def test_a_loop_around_comes_back():
    """In the second trip of the outer loop the place is written already."""
    text = """
func f(a: f64[n,n]) -> (f64[n,n]):
  b: f64[n,n] = for t: i64 in 0 .. 2 step 1 carry (c: f64[n,n] = a):
    d: f64[n,n] = for i: i64 in 0 .. 3 step 1 carry (e: f64[n,n] = c):
      v: f64 = load({array}, i, 0:i64) {{index=[at, at]}}
      w: f64 = multiply(v, 2.0)
      g: f64[n,n] = store(e, w, i, 0:i64) {{index=[at, at]}}
      yield g
    yield d
  return b
"""
    assert newest(text.format(array="a"))[1]
    assert "load(e" in newest(text.format(array="c"))[0]
