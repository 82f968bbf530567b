"""A loop that is counted and the loop that counts it become one, whose tapes grow."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.ir.build import build_func, choose, for_loop, int_const, while_loop
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.nodes import Check, For, While
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.grow_tapes import ROOM, ROOM_OF_ARRAYS, grow_tapes
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

ops.load_table()


def numbers():
    def step(x):
        return [x - 0.01 * ops.sin(x)]
    return build_func("f", [("a", F64)], lambda a: while_loop([a], lambda x: x > 0.3, step))


def arrays():
    def step(x, n):
        return [x * ops.cos(x * 0.1), n * 1.01]
    return build_func("f", [("a", Type("float64", (3,)))],
                      lambda a: while_loop([a, ops.sum(a, axes=(0,))], lambda x, n: n < 3.5, step))


def branches():
    def step(x):
        return choose(x > 1.0, lambda: [x * 0.9 + 0.001 * x * x], lambda: [x - 0.01 * ops.sin(x)])
    return build_func("f", [("a", F64)], lambda a: while_loop([a], lambda x: x > 0.3, step))


def loops(func):
    """The loops that may run for ever, and the others."""
    found = list(all_statements(func.body))
    return sum(isinstance(s, While) for s in found), sum(isinstance(s, For) for s in found)


def grown(func, *args):
    before = pipeline.run(func, stop="fuse")
    after = grow_tapes(before)
    verify(after)
    for want, got in zip(evaluate(before, *args), evaluate(after, *args), strict=True):
        np.testing.assert_array_equal(want, got)
    assert grow_tapes(after) is after
    return before, after


@pytest.mark.parametrize("start", [0.2, 0.301, 0.35, 1.8])
@pytest.mark.parametrize("make", [numbers, branches])
def test_trips(make, start):
    """From none to more than the room to begin with, and than twice that."""
    before, after = grown(vjp(make(), [True]), start, 1.0)
    assert ((1, 2), (1, 1)) == (loops(before), loops(after))


def test_the_room_is_doubled():
    lengths = set()
    evaluate(pipeline.run(vjp(numbers(), [True]), stop="fuse"), 1.8, 1.0,
             watch=lambda stmt, args, results: lengths.update(np.size(r) for r in results))
    assert max(lengths) > 2 * ROOM


def test_rows_that_are_arrays():
    a = np.array([0.3, 0.4, 0.2])
    before, after = grown(vjp(arrays(), [True]), a, np.ones(3), 1.0)
    assert ((1, 2), (1, 1)) == (loops(before), loops(after))
    assert f"{ROOM_OF_ARRAYS}" in str([s.inits for s in all_statements(after.body) if isinstance(s, While)])


def test_tapes_of_tangents_side_by_side():
    """Their rows lie along another axis, as in a Hessian: the trips are counted beforehand."""
    backward = vjp(numbers(), [True])
    forward = jvp(backward, [True, False])
    hessian = vmap(forward, [False, False, True], 2)
    grown(hessian, 1.8, 1.0, np.array([1.0, -2.0]))


def test_equal_values_are_computed_and_carried_once():
    _, after = grown(vjp(numbers(), [True]), 0.9, 1.0)
    (loop,) = [s for s in all_statements(after.body) if isinstance(s, While)]
    assert ["sin"] == [s.op.name for s in all_statements(loop.body) if getattr(s, "op", None) is ops.sin]
    assert 1 == sum(c.type == F64 for c in loop.carries)


def test_what_an_arm_computes_is_out_of_reach_behind_it():
    def step(x):
        (y,) = choose(x > 1.0, lambda: [ops.sin(x) * 0.5], lambda: [x - 0.01])
        return [y * (1.0 - 0.01 * ops.sin(x))]
    grown(vjp(build_func("f", [("a", F64)], lambda a: while_loop([a], lambda x: x > 0.3, step)), [True]), 1.8, 1.0)


def test_second_derivatives_of_what_was_counted():
    once = vjp(numbers(), [True])
    grown(jvp(once, [True, False]), 0.5, 1.0, 1.0)
    grown(vjp(once, [True, False]), 0.5, 1.0, 1.0, 1.0)


def test_a_tape_that_does_not_fit_names_the_loop():
    _, after = grown(vjp(numbers(), [True]), 0.9, 1.0)
    (too_long,) = [s for s in all_statements(after.body) if isinstance(s, Check)]
    assert ("MemoryError", "what the derivative keeps of each trip of the loop does not fit in memory") == (
        too_long.kind, too_long.message)


COUNTED = """
func f(x: f64) -> (f64{more}) where m >= 0:
  y: f64, n: i64 = while carry (a: f64 = x, c: i64 = 0):
    cond:
      p: bool = less(a, 9.0)
      yield p
    do:
      b: f64 = add(a, 1.0)
      d: i64 = add(c, {step})
      yield b, d
  m: i64 = maximum(n, 0)
  e: f64[m] = empty() {{shape=(m,), dtype="float64"}}
  z: f64, t: f64[m] = for k: i64 in 0 .. n step 1 carry (g: f64 = {start}, u: f64[m] = e):
    w: f64[m] = store(u, g, k) {{index=[at]}}
    h: f64 = add(g, {value})
    yield h, w
  s: f64 = sum(t) {{axes=(0,)}}
  return s{results}
"""


@pytest.mark.parametrize("parts, carried", [
    ({}, 1),
    ({"value": "2.0"}, 2),                                      # goes on as something else
    ({"start": "2.0"}, 2),                                      # begins as something else
    ({"more": ", f64", "results": ", z"}, 1),
])
def test_whatever_the_second_computes(parts, carried):
    func = parse_func(COUNTED.format(**{"step": "1", "value": "1.0", "start": "x", "more": "", "results": "", **parts}))
    after = grow_tapes(func)
    verify(after)
    assert evaluate(func, 0.5) == evaluate(after, 0.5)
    (loop,) = [s for s in all_statements(after.body) if isinstance(s, While)]
    assert carried == sum(c.type == F64 for c in loop.carries)


@pytest.mark.parametrize("parts", [{"step": "2"}, {"start": "y"}, {"value": "y"}])
def test_what_stays(parts):
    """Steps other than 1, and what needs the last values of the first loop."""
    func = parse_func(COUNTED.format(**{"step": "1", "value": "1.0", "start": "x", "more": "", "results": "", **parts}))
    assert grow_tapes(func) is func


def smoothing():
    """A loop over elements inside."""
    def step(x):
        def element(i, y):
            return [ops.store(y, ops.sin(ops.load(y, i, index=(At(),))) * 0.9, i, index=(At(),))]
        return for_loop(int_const(0), int_const(3), [x], element, index="i", hints=["y"])
    return build_func("f", [("a", Type("float64", (3,)))],
                      lambda a: while_loop([a], lambda x: ops.load(x, int_const(1), index=(At(),)) > 0.1, step))


def test_loops_inside_run_once():
    before, after = grown(vjp(smoothing(), [True]), np.array([0.7, 0.5, 0.9]), np.ones(3))
    (loop,) = [s for s in all_statements(after.body) if isinstance(s, While)]
    counts = [sum(getattr(s, "op", None) is ops.sin for s in all_statements(f.body)) for f in (before, after)]
    assert [2, 1] == counts
    assert 1 == sum(c.type.shape == (3,) for c in loop.carries)


def test_loops_inside_that_differ_both_run():
    """What a carry depends on counts as well: here what is added begins as another number."""
    func = parse_func(LOOPS.format(other="8.0"))
    after = grow_tapes(func)
    verify(after)
    assert evaluate(func, 0.5) == evaluate(after, 0.5)
    (outer,) = [s for s in all_statements(after.body) if isinstance(s, While)]
    assert 2 == sum(isinstance(s, For) for s in all_statements(outer.body))
    same = grow_tapes(parse_func(LOOPS.format(other="3.0")))
    (outer,) = [s for s in all_statements(same.body) if isinstance(s, While)]
    assert 1 == sum(isinstance(s, For) for s in all_statements(outer.body))


LOOPS = """
func f(x: f64) -> (f64, f64) where m >= 0:
  y: f64, n: i64 = while carry (a: f64 = x, c: i64 = 0):
    cond:
      p: bool = less(a, 90.0)
      yield p
    do:
      b: f64, o: f64 = for i: i64 in 0 .. 3 step 1 carry (q: f64 = a, r: f64 = 3.0):
        v: f64 = add(q, r)
        j: f64 = add(r, 0.5)
        yield v, j
      d: i64 = add(c, 1)
      yield b, d
  m: i64 = maximum(n, 0)
  e: f64[m] = empty() {{shape=(m,), dtype="float64"}}
  z: f64, t: f64[m] = for k: i64 in 0 .. n step 1 carry (g: f64 = x, u: f64[m] = e):
    w: f64[m] = store(u, g, k) {{index=[at]}}
    bb: f64, oo: f64 = for ii: i64 in 0 .. 3 step 1 carry (qq: f64 = g, rr: f64 = {other}):
      vv: f64 = add(qq, rr)
      jj: f64 = add(rr, 0.5)
      yield vv, jj
    yield bb, w
  s: f64 = sum(t) {{axes=(0,)}}
  return s, z
"""
