"""What an argument is to hold is computed in its own memory where that changes nothing."""

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.settle import settle

ops.load_table()

SCALE = """func scale(x: f64[n]) -> (f64[n]) writes (x):
  e: f64[n] = empty() {shape=(n,), dtype="float64"}
  n_0: i64 = size() {dim=n}
  y: f64[n] = for i: i64 in 0 .. n_0 step 1 carry (y_1: f64[n] = e):
    BODY
  return y
"""
SAME = """x_i: f64 = load(x, i) {index=[at]}
    t: f64 = multiply(x_i, 2.0:f64)
    y_2: f64[n] = store(y_1, t, i) {index=[at]}
    yield y_2"""
TURNED = """j: i64 = subtract(n_0, i)
    k: i64 = subtract(j, 1:i64)
    x_i: f64 = load(x, k) {index=[at]}
    y_2: f64[n] = store(y_1, x_i, i) {index=[at]}
    yield y_2"""
AFTER = """y_2: f64[n] = store(y_1, 2.0:f64, i) {index=[at]}
    x_i: f64 = load(x, i) {index=[at]}
    t: f64 = load(y_2, i) {index=[at]}
    u: f64 = add(x_i, t)
    y_3: f64[n] = store(y_2, u, i) {index=[at]}
    yield y_3"""
CONSTANT = """x_i: f64 = load(x, 0:i64) {index=[at]}
    y_2: f64[n] = store(y_1, x_i, i) {index=[at]}
    yield y_2"""
TABLE = """func f(x: f64[n,m], b: f64[m]) -> (f64[n,m]) writes (x):
  e: f64[n,m] = empty() {shape=(n,m), dtype="float64"}
  n_0: i64 = size() {dim=n}
  m_0: i64 = size() {dim=m}
  y: f64[n,m] = for i: i64 in 0 .. n_0 step 1 carry (y_1: f64[n,m] = e) parallel:
    y_4: f64[n,m] = for j: i64 in 0 .. m_0 step 1 carry (y_2: f64[n,m] = y_1):
      x_i: f64 = load(x, i, j) {index=[at, at]}
      b_i: f64 = load(b, j) {index=[at]}
      t: f64 = multiply(x_i, b_i)
      y_3: f64[n,m] = store(y_2, t, i, j) {index=[at, at]}
      yield y_3
    yield y_4
  return y
"""
X, TWO, B = np.array([1.0, -2.0, 3.0]), np.arange(6.0).reshape(2, 3), np.array([2.0, 0.5, -1.0])


def run(func, *args):
    """The text, run on copies: what the first argument holds afterwards."""
    args = [np.array(a) for a in args]
    namespace = {}
    text = emit(func, decorator=False, comments=False)
    exec(compile(text, "<emitted>", "exec"), namespace)
    assert namespace[func.name](*args) is None
    return args[0], text


@pytest.mark.parametrize("text, args, settles", [
    (SCALE.replace("BODY", SAME), (X,), True), (TABLE, (TWO, B), True), (SCALE.replace("BODY", TURNED), (X,), False),
    (SCALE.replace("BODY", AFTER), (X,), False), (SCALE.replace("BODY", CONSTANT), (X,), False),
    (SCALE.replace("BODY", SAME).replace("return y", "x_0: f64 = load(x, 0:i64) {index=[at]}\n  return x_0, y").replace(
        "-> (f64[n])", "-> (f64, f64[n])"), (X,), False),
], ids=["same place", "matrix", "turned", "read after the store", "another place", "read after the loop"])
def test_settling(text, args, settles):
    func = parse(text)
    verify(func)
    after = settle(func)
    verify(after)
    assert (after is not func) is settles
    for want, have in zip(evaluate(func, *args), evaluate(after, *args), strict=True):
        np.testing.assert_array_equal(want, have)
    if len(func.results) == 1:
        changed, written = run(after, *args)
        np.testing.assert_array_equal(evaluate(func, *args)[0], changed)
        assert ("np.empty" in written) is not settles


def test_the_text_form():
    assert "load(y_1, i)" in show(settle(parse(SCALE.replace("BODY", SAME))))
    assert "empty" not in show(settle(parse(SCALE.replace("BODY", SAME))))


SUM = """func total(u: f64[k,n], w: i64) -> (f64[n]{more}):
  n_0: i64 = size() {{dim=n}}
  s: f64[n]{more_type} = for t: i64 in 0 .. w step 1 carry (s_1: f64[n] = 0.0:f64[n]{carry}){parallel}:
    {before}
    e: f64[n] = empty() {{shape=(n,), dtype="float64"}}
    s_4: f64[n] = for i: i64 in 0 .. n_0 step 1 carry (s_2: f64[n] = e):
      a: f64 = load({array}, {place}) {{index=[at]}}
      b: f64 = load(u, t, i) {{index=[at, at]}}
      c: f64 = add(a, b)
      s_3: f64[n] = store(s_2, c, i) {{index=[at]}}
      yield s_3
    {after}
    yield s_4{next}
  return s{result}
"""
PLAIN = dict.fromkeys(("more", "more_type", "carry", "parallel", "before", "after", "next", "result"), "") | {
    "array": "s_1", "place": "i"}
LAST = {"more": ", f64", "more_type": ", z: f64", "carry": ", z_1: f64 = 0.0", "next": ", z_2", "result": ", z"}


@pytest.mark.parametrize("changes, settles", [
    ({}, True),
    ({"before": "z_0: f64 = load(s_1, 0:i64) {index=[at]}"}, True),
    ({"before": "g: f64[n] = sort(s_1) {axis=0}", "array": "g"}, True),
    ({"place": "0:i64"}, False),
    ({**LAST, "before": "z_2: f64 = load(s_1, 0:i64) {index=[at]}"}, True),
    ({**LAST, "after": "z_2: f64 = load(s_1, 0:i64) {index=[at]}"}, False),
    ({"before": "g: f64[n] = transpose(s_1) {axes=(0,)}", "array": "g"}, False),
    ({"parallel": " parallel"}, False),
], ids=["a sum", "read before", "made for it", "another place", "read before, kept", "read afterwards", "a view", "parallel"])
def test_what_a_trip_makes_of_an_array_that_is_over(changes, settles):
    func = parse(SUM.format(**PLAIN | changes))
    verify(func)
    after = settle(func)
    verify(after)
    assert (after is not func) is settles
    assert ("empty" in show(after)) is not settles
    u = np.random.default_rng(0).normal(size=(3, 4))
    namespace = {}
    exec(compile(emit(after, decorator=False, comments=False), "<emitted>", "exec"), namespace)
    for w in (0, 1, 3):
        wanted = evaluate(func, u, w)
        text = namespace["total"](u, w)
        for found in (evaluate(after, u, w), text if isinstance(text, tuple) else (text,)):
            for want, have in zip(wanted, found, strict=True):
                np.testing.assert_array_equal(want, have)


def test_an_array_from_outside_of_the_loop_stays():
    """The next trip needs it again."""
    text = SUM.format(**PLAIN | {"array": "h"}).replace("  s: f64[n] = for", "  h: f64[n] = sort(g) {axis=0}\n  s: f64[n] = for", 1)
    func = parse(text.replace("u: f64[k,n]", "u: f64[k,n], g: f64[n]"))
    verify(func)
    assert settle(func) is func
