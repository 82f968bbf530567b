"""Loops over lanes as operations on all lanes: the text, values and derivatives of batches whose lanes branch."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For, While
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.transforms.masked import mask_lanes

ops.load_table()
LANES = np.array([0.1, 2.0, 5.0, 20.0, -3.0])


def masked(fun, *args, max_trips=None, **options):
    """The func in masked form, as StableHLO is written from it."""
    made = gradsmith.stablehlo(fun, max_trips=max_trips, **options).lower(*args)
    return made.func


def loops_in(func):
    return [s for s in all_statements(func.body) if isinstance(s, (For, While))]


def assert_like_compiled(fun, *args, max_trips=30, rtol=1e-12):
    """The masked form has no loop over lanes, and says what the compiled function says."""
    func = masked(fun, *args, max_trips=max_trips)
    verify(func)
    assert not any(isinstance(s, For) and s.parallel for s in loops_in(func)), show(func)
    found = evaluate(func, *[np.asarray(a)[()] for a in args])
    for want, got in zip(gradsmith.tree.leaves(fun(*args)), found, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-14)
    return func


# ---------------------------------------------------------------------------------------------------------------
# the text


def test_a_loop_over_lanes_of_a_while_loop():
    func = parse_func(textwrap.dedent("""\
        func f(x: f64[4]) -> (f64[4]):
          out: f64[4] = empty() {shape=(4,), dtype="float64"}
          y: f64[4] = for lane: i64 in 0:i64 .. 4:i64 step 1:i64 carry (row: f64[4] = out) parallel:
            a: f64 = load(x, lane) {index=[at]}
            b: f64 = while carry (v: f64 = a):
              cond:
                low: bool = less(v, 10.0:f64)
                yield low
              do:
                doubled: f64 = multiply(v, 2.0:f64)
                yield doubled
            stored: f64[4] = store(row, b, lane) {index=[at]}
            yield stored
          return y
        """))
    assert show(pipeline.tidy(mask_lanes(func))) == textwrap.dedent("""\
        func f(x: f64[4]) -> (f64[4]):
          low_1: bool[4] = less(x, 10.0:f64[4])
          b_1: f64[4], going_1: bool[4] = while carry (v_1: f64[4] = x, going: bool[4] = low_1):
            cond:
              t_2: bool = any(going) {axes=(0,)}
              yield t_2
            do:
              doubled_1: f64[4] = multiply(v_1, 2.0:f64[4])
              v_2: f64[4] = select(going, doubled_1, v_1)
              low_2: bool[4] = less(v_2, 10.0:f64[4])
              t_6: bool[4] = logical_and(going, low_2)
              yield v_2, t_6
          return b_1
        """)


def test_a_loop_whose_lanes_do_not_branch_stays():
    func = parse_func(textwrap.dedent("""\
        func f(x: f64[4]) -> (f64[4]):
          y: f64[4] = for lane: i64 in 0:i64 .. 4:i64 step 1:i64 carry (row: f64[4] = x) parallel:
            a: f64 = load(x, lane) {index=[at]}
            stored: f64[4] = store(row, a, lane) {index=[at]}
            yield stored
          return y
        """))
    assert mask_lanes(func) is func


@pytest.mark.parametrize("change", ["store(row, b, 0:i64) {index=[at]}", "store(row, b, other) {index=[at]}"])
def test_a_loop_that_writes_elsewhere_stays(change):
    func = parse_func(textwrap.dedent(f"""\
        func f(x: f64[4], other: i64) -> (f64[4]):
          y: f64[4] = for lane: i64 in 0:i64 .. 4:i64 step 1:i64 carry (row: f64[4] = x) parallel:
            a: f64 = load(x, lane) {{index=[at]}}
            high: bool = greater(a, 0.0:f64)
            b: f64 = if high:
              t: f64 = sqrt(a)
              yield t
            else:
              yield a
            stored: f64[4] = {change}
            yield stored
          return y
        """))
    assert mask_lanes(func) is func


# ---------------------------------------------------------------------------------------------------------------
# programs


def grows(x, w):
    y = x
    while y < 10:
        if y > 3:
            y = y * w
        else:
            y = y + np.sin(y) + 1.5
    return y


def safe_root(x, w):
    return np.sqrt(x) * w if x > 0 else x * w


def picks(x, w):
    """Indices that only the lanes that come there have in range."""
    table = np.array([1.0, 2.0, 4.0]) * w
    i = int(x)
    return table[i] * x if 0 <= i < 3 else x


def writes(x, w):
    a = np.zeros(4) + w
    for i in range(4):
        if x > i:
            a[i] = a[i - 1] * x + 1
        else:
            a[3 - i] += 0.1 * x
    return np.sum(a * a)


def leaves_early(x, w):
    total = x * 0
    for i in range(6):
        total = total + x * w
        if total > 12:
            break
        if x < 0:
            continue
        total = total * 1.1 + i
    return total


def trips_of_its_own(x, w):
    y = x
    for _ in range(int(abs(x))):
        y = y * 0.5 + w
    return y


def nested(x, w):
    y = x
    for _ in range(2):
        while y < 6:
            y = y * y + w if y > 1 else y + 2.0
        y = y - 5.0
    return y


PROGRAMS = (grows, safe_root, picks, writes, leaves_early, trips_of_its_own, nested)


@pytest.mark.parametrize("program", PROGRAMS)
def test_batches(program):
    assert_like_compiled(gradsmith.vmap(program, in_axes=(0, None)), LANES, 1.5)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_each_lane(program):
    fun = gradsmith.vmap(gradsmith.grad(program, argnums=(0, 1)), in_axes=(0, None))
    assert_like_compiled(fun, LANES, 1.5, rtol=1e-10)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_the_whole_batch(program):
    """Lanes then add to what all of them share."""
    def total(w, x):
        return np.sum(gradsmith.vmap(program, in_axes=(0, None))(x, w))

    assert_like_compiled(gradsmith.grad(total, argnums=(0, 1)), 1.5, LANES, rtol=1e-10)


def test_the_side_not_taken_poisons_nothing():
    x = np.array([-4.0, 0.0, 4.0, 9.0])
    func = masked(gradsmith.vmap(gradsmith.grad(safe_root), in_axes=(0, None)), x, 2.0)
    (slopes,) = evaluate(func, x, np.float64(2.0))
    np.testing.assert_allclose(slopes, [2.0, 2.0, 0.5, 1 / 3])


def test_second_derivatives():
    fun = gradsmith.vmap(gradsmith.grad(gradsmith.grad(leaves_early)), in_axes=(0, None))
    assert_like_compiled(fun, LANES, 1.5, rtol=1e-9)


def test_batches_of_batches():
    x = np.array([[0.5, 4.0, 12.0], [-1.0, 2.0, 30.0]])
    fun = gradsmith.vmap(gradsmith.vmap(grows, in_axes=(0, None)), in_axes=(0, None))
    assert_like_compiled(fun, x, 1.5)


def test_lanes_may_be_kept_as_loops():
    func = masked(gradsmith.vmap(grows, in_axes=(0, None)), LANES, 1.5, mask_lanes=False)
    assert any(isinstance(s, For) and s.parallel for s in loops_in(func))


@pytest.mark.xla
def test_on_xla():
    """All programs and their gradients in one module, with checks."""
    pytest.importorskip("jax")
    from gradsmith import xla

    def everything(x, w):
        return [gradsmith.vmap(gradsmith.value_and_grad(p), in_axes=(0, None))(x, w) for p in PROGRAMS]

    made = gradsmith.stablehlo(everything, max_trips=30, checked=True).lower(LANES, 1.5)
    *found, flag = xla.run(made.text, *made.arrays(), optimise=False)
    assert int(flag) == 0
    for want, got in zip(gradsmith.tree.leaves(gradsmith.jit(everything)(LANES, 1.5)), found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
