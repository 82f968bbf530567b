"""Arrays that nobody else sees have the axis last along which the innermost loops go."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Let
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.lay_out import lay_out

ops.load_table()

SOURCE = """
func f(x: f64[n,m], h: i64, w: i64) -> ({result}):
  t0: f64[m,n,3] = {begin}
  t3: f64[m,n,3] = for i: i64 in 0 .. h step 1 carry (t1: f64[m,n,3] = t0):
    t2: f64[m,n,3] = for j: i64 in 0 .. w step 1 carry (t4: f64[m,n,3] = t1):
      v: f64 = load(x, i, j) {{index=[at,at]}}
      p: bool = greater(v, 0.0)
      t8: f64[m,n,3] = if p:
        t5: f64[m,n,3] = store(t4, v, j, i, 1) {{index=[at,at,at]}}
        yield t5
      else:
        yield t4
      t9: f64[m,n,3] = store(t8, 2.0, j, i, {other}) {{index=[at,at,at]}}
      yield t9
    yield t2
  s: f64 = load(t3, 1, 0, 1) {{index=[at,at,at]}}
  return {returned}
"""


def laid_out(func, *args):
    """The place of the first store, after results were compared."""
    result = lay_out(func)
    verify(result)
    wanted = evaluate(func, *args)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    emitted = scope["f"](*args)
    for found in (evaluate(result, *args)[0], emitted):
        np.testing.assert_array_equal(found, wanted[0])
    store = next(s for s in all_statements(result.body) if isinstance(s, Let) and s.op.access == "store")
    return [str(v) if not hasattr(v, "name") else v.name for v in store.args[2:]], store.target.type.shape


@pytest.mark.parametrize("begin", ['empty() {shape=(m,n,3), dtype="float64"}', "zeros"])
def test_the_axis_of_the_innermost_loop_comes_last(begin):
    x = np.random.default_rng(0).uniform(1, 2, size=(4, 5))
    text = SOURCE.format(result="f64", begin=begin, other=0, returned="s")
    if begin == "zeros":
        text = text.replace("  t0: f64[m,n,3] = zeros\n", "").replace("t1: f64[m,n,3] = t0", "t1: f64[m,n,3] = 0.0:f64[m,n,3]")
    place, shape = laid_out(parse_func(text), x, 4, 5)
    assert ["i", "1", "j"] == [p.split(":")[0] for p in place]
    assert ["n", "3", "m"] == list(map(str, shape))


def test_what_others_see_stays():
    text = SOURCE.format(result="f64[m,n,3]", begin='empty() {shape=(m,n,3), dtype="float64"}', other=0, returned="t3")
    func = parse_func(text)
    assert lay_out(func) is func


POINTS = """
func f(x: f64[n,3], steps: i64, w: i64) -> (f64[n,3]{effect}){writes}:
  x4: f64[n,3] = for t: i64 in 0 .. steps step 1 carry (x1: f64[n,3] = x):
    x3: f64[n,3] = for i: i64 in 0 .. w step 1 carry (x2: f64[n,3] = x1):
      x8: f64[n,3] = for j: i64 in 0 .. w step 1 carry (x5: f64[n,3] = x2):
        a: f64 = load(x5, i, 1) {{index=[at,at]}}
        x6: f64[n,3] = add_at(x5, a, j, 0) {{index=[at,at]}}
        x7: f64[n,3] = add_at(x6, 1.0, j, 2) {{index=[at,at]}}
        yield x7
      yield x8
    yield x3
  return x4{effect_of}
"""


def test_what_is_copied_anyhow_and_what_is_returned_are_turned():
    """Points, with their coordinates as rows inside; the caller's array and the result have rows of points."""
    func = parse_func(POINTS.format(effect="", writes="", effect_of=""))
    x = np.random.default_rng(0).normal(size=(4, 3))
    before = x.copy()
    place, shape = laid_out(func, x, 2, 4)
    assert ["3", "n"] == list(map(str, shape))
    np.testing.assert_array_equal(before, x)
    result = lay_out(func)
    assert func.results[0].type == result.results[0].type


def test_memory_of_the_caller_stays():
    func = parse_func(POINTS.format(effect=", f64[n,3]", writes=" writes (x)", effect_of=", x4"))
    assert lay_out(func) is func


def test_what_is_only_read_is_not_copied():
    func = parse_func("""
func f(x: f64[n,m], steps: i64, w: i64) -> (f64):
  s4: f64 = for t: i64 in 0 .. steps step 1 carry (s1: f64 = 0.0):
    s3: f64 = for i: i64 in 0 .. w step 1 carry (s2: f64 = s1):
      s7: f64 = for j: i64 in 0 .. w step 1 carry (s5: f64 = s2):
        a: f64 = load(x, j, 1) {index=[at,at]}
        s6: f64 = add(s5, a)
        yield s6
      yield s7
    yield s3
  return s4
""")
    assert lay_out(func) is func


def test_a_few_trips_count_little():
    """The loop over three coordinates goes along rows, but the loop over points does so more often."""
    func = parse_func(POINTS.format(effect="", writes="", effect_of="").replace("x8: f64", """x12: f64[n,3] = for k: i64 in 0 .. 3 step 1 carry (x9: f64[n,3] = x2):
        x10: f64[n,3] = add_at(x9, 1.0, i, k) {index=[at,at]}
        x11: f64[n,3] = add_at(x10, 2.0, i, k) {index=[at,at]}
        yield x11
      x8: f64""").replace("x5: f64[n,3] = x2", "x5: f64[n,3] = x12"))
    x = np.random.default_rng(0).normal(size=(4, 3))
    assert ["3", "n"] == list(map(str, laid_out(func, x, 2, 4)[1]))


def test_tapes_of_turned_loops():
    """The columns that modified Gram-Schmidt takes are read and saved along rows; values as those of differences."""
    def orthogonal(a):
        a = a.copy()
        m, n = a.shape
        q, r = np.zeros((m, n)), np.zeros((n, n))
        for k in range(n):
            for i in range(m):
                r[k, k] += a[i, k] * a[i, k]
            for i in range(m):
                q[i, k] = a[i, k] / np.sqrt(r[k, k])
            for j in range(k + 1, n):
                for i in range(m):
                    r[k, j] += q[i, k] * a[i, j]
                for i in range(m):
                    a[i, j] -= q[i, k] * r[k, j]
        return np.sum(r * r * r) + np.sum(q[0] * q[1])

    a, step = np.random.default_rng(1).normal(size=(5, 3)), 1e-6
    gradient = gradsmith.grad(orthogonal)
    found = gradient(a)
    for place in np.ndindex(a.shape):
        shift = np.zeros_like(a)
        shift[place] = step
        slope = (orthogonal(a + shift) - orthogonal(a - shift)) / (2 * step)
        np.testing.assert_allclose(found[place], slope, rtol=1e-5, atol=1e-6)
    lines = gradient.source(a).splitlines()
    at = next(k for k, line in enumerate(lines) if "a_3_i_tape[" in line and "] = " in line)
    loop = next(line for line in lines[at::-1] if "for " in line)
    last = lines[at].split("]")[0].split(", ")[-1].split(" + ")[-1]     # behind where the row begins
    last = next((line for line in lines[at::-1] if line.strip().startswith(f"{last} = ")), last)
    assert loop.split("for ")[1].split(" ")[0] in last
