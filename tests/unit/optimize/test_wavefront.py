"""Rows run as vectors of cells only where each cell still reads what it read before, and where that pays."""

from __future__ import annotations

import numpy as np
import pytest
from table_texts import table

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.wavefront import run_in_waves

ops.load_table()

BOUNDS = [(2, 1, 5), (2, 2, 2), (2, 2, 3), (2, 5, 4), (2, 7, 8), (3, 8, 8), (5, 8, 3), (2, 9, 20), (4, 17, 20),
          (2, 18, 9), (1, 10, 3), (2, 18, 20)]


def dear_table(dear="tanh", **changes):
    """Of twice as dear cells."""
    return table(**{"dear": dear, "again": dear, "write": "a5: f64[n,m] = store(a2, g, i, j) {index=[at,at]}", **changes})


def waves(**changes):
    """The cells that a row is behind the one above it, 0 where the func is as it was; results were compared for rows and
    cells of many numbers, with each wave's rows in either order."""
    func = parse_func(dear_table(**changes))
    result = run_in_waves(func)
    verify(result)
    if result is func:
        return 0
    scope, backwards = {}, {}
    text = emit(result, name="f", decorator=False)
    exec(text, scope)
    exec(text, backwards)
    backwards["abreast"] = lambda *bounds: reversed(range(*bounds))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(20, 22)), rng.normal(size=20)
    for lo, h, w in BOUNDS:
        (wanted,) = evaluate(func, a, b, lo, h, w)
        (found,) = evaluate(result, a, b, lo, h, w)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(scope["f"](a.copy(), b, lo, h, w), wanted)
        np.testing.assert_array_equal(backwards["f"](a.copy(), b, lo, h, w), wanted)
    return 2 if "row * 2" in text else 1


def test_rows_that_wait_for_the_row_above_and_for_themselves():
    assert 1 == waves()
    result = run_in_waves(parse_func(dear_table()))
    loops = [s for s in all_statements(result.body) if isinstance(s, For)]
    assert [False, False, True] == [loop.abreast for loop in loops]
    assert show(result) == show(parse_func(show(result)))


def test_loops_that_count_down():
    assert 1 == waves(rows="h .. 0 step -1", cells="w .. lo step -1", above="i2, j", beside="i, j2")
    assert 2 == waves(rows="h .. 0 step -1", cells="w .. lo step -1", above="i2, j0", beside="i, j2")
    assert 1 == waves(rows="h .. 0 step -1", above="i2, j0")


@pytest.mark.parametrize("above, behind", [
    ("i0, j0", 1), ("i0, j2", 2), ("i0, j3", 0), ("i2, j", 1), ("i2, j2", 1), ("i2, j0", 2)])
def test_how_far_a_row_may_look_ahead(above, behind):
    """A row is as far behind the one above as it looks ahead there; of the row below it reads what is unchanged yet."""
    assert behind == waves(above=above)


@pytest.mark.parametrize("place, behind", [("j3", 1), ("j2", 1), ("j", 1), ("j0", 2), ("j1", 0)])
def test_writes_to_the_row_below(place, behind):
    """They come before what that row does there."""
    assert behind == waves(write=f"""a6: f64[n,m] = store(a2, g, i, j) {{index=[at,at]}}
      a5: f64[n,m] = store(a6, u, i2, {place}) {{index=[at,at]}}""")


@pytest.mark.parametrize("place, behind", [("j", 1), ("j0", 2), ("j1", 0)])
def test_adds_keep_their_order(place, behind):
    assert behind == waves(write=f"""a6: f64[n,m] = add_at(a2, g, i, j) {{index=[at,at]}}
      a5: f64[n,m] = add_at(a6, u, i2, {place}) {{index=[at,at]}}""")


@pytest.mark.parametrize("changes", [
    {"beside": "i0, j0"},                                                       # cells of a row do not wait
    {"dear": "negative"},                                                       # cheap cells
    {"before": "b1: f64 = load(a1, i, 0) {index=[at,at]}"},                     # read before the row's cells
    {"cells": "i .. w step 1"},                                                 # rows of many lengths
    {"rows": "1 .. h step 2"},
])
def test_what_stays_as_it_is(changes):
    assert not waves(**changes)


def test_text_that_imports_nothing_of_ours_goes_over_ranges():
    result = run_in_waves(parse_func(dear_table()))
    assert "in abreast(" in emit(result, name="f")
    text = emit(result, name="f", standalone=True)
    assert "abreast" not in text and "for row in range(" in text


def soft_minimum(x, y):
    n, m = len(x), len(y)
    r = np.full((n + 1, m + 1), 1e3)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            low = np.exp(-r[i - 1, j]) + np.exp(-r[i, j - 1]) + np.exp(-r[i - 1, j - 1])
            r[i, j] = (x[i - 1] - y[j - 1]) ** 2 - np.log(low)
    return r[n, m]


def test_a_soft_minimum_over_a_table():
    """Value and derivatives of dynamic programming, compiled, as plain Python has it, by differences and forwards."""
    value, gradient = gradsmith.jit(soft_minimum), gradsmith.grad(soft_minimum, argnums=(0, 1))
    rng = np.random.default_rng(0)
    for n, m in [(2, 3), (7, 5), (9, 30), (27, 11), (3, 16)]:
        x, y, step = rng.normal(size=n), rng.normal(size=m), 1e-6
        np.testing.assert_allclose(value(x, y), soft_minimum(x, y), rtol=1e-13)
        found = gradient(x, y)
        assert "in abreast(" in gradient.source(x, y)
        for k, v in ((0, x), (1, y)):
            for at in (0, len(v) // 2, len(v) - 1):
                change = step * (np.arange(len(v)) == at)
                up, down = ((x + s * change, y) if k == 0 else (x, y + s * change) for s in (1, -1))
                slope = (soft_minimum(*up) - soft_minimum(*down)) / (2 * step)
                np.testing.assert_allclose(found[k][at], slope, rtol=1e-6, atol=1e-8)
    tangent = gradsmith.jvp(soft_minimum, (x, y), (x + 1, y - 2))[1]
    np.testing.assert_allclose(tangent, found[0] @ (x + 1) + found[1] @ (y - 2), rtol=1e-10)
