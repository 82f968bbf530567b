"""Rows run a few at a time only where every cell still reads what it read before, and where that pays."""

from __future__ import annotations

import numpy as np
import pytest
from table_texts import table

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Const, For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.stagger import ROWS, stagger

ops.load_table()

def staggered(**changes):
    """Whether the pass changed the func, whose results were compared for rows and cells of many numbers."""
    func = parse_func(table(**changes))
    result = stagger(func)
    verify(result)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(10, 11)), rng.normal(size=10)
    for lo, h, w in [(2, 1, 5), (2, 2, 2), (2, 2, 3), (2, 5, 4), (2, 7, 8), (3, 8, 8), (5, 8, 3), (7, 6, 8), (2, 7, 5)]:
        (wanted,) = evaluate(func, a, b, lo, h, w)
        (found,) = evaluate(result, a, b, lo, h, w)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(scope["f"](a.copy(), b, lo, h, w), wanted)
    return result is not func


def test_rows_that_wait_for_the_row_above_and_for_themselves():
    assert staggered()
    func = stagger(parse_func(table()))
    outer = next(s for s in all_statements(func.body) if isinstance(s, For))
    assert isinstance(outer.step, Const) and ROWS == outer.step.value


def test_loops_that_count_down():
    assert staggered(rows="h .. 0 step -1", cells="w .. lo step -1", above="i2, j", beside="i, j2")


@pytest.mark.parametrize("above, may", [("i0, j2", True), ("i0, j3", False), ("i2, j2", True), ("i2, j3", True), ("i2, j0", True)])
def test_how_far_a_row_may_look_ahead(above, may):
    """One cell in the row above, which is one ahead; of the row below what it has not changed yet."""
    assert may == staggered(above=above)


@pytest.mark.parametrize("place, may", [("j3", True), ("j2", True), ("j0", True), ("j1", False)])
def test_writes_to_the_row_below(place, may):
    """They come before what that row does there; it is one cell behind."""
    assert may == staggered(write=f"""a6: f64[n,m] = store(a2, e, i, j) {{index=[at,at]}}
      a5: f64[n,m] = store(a6, u, i2, {place}) {{index=[at,at]}}""")


@pytest.mark.parametrize("changes", [
    {"beside": "i0, j0"},                                                       # cells of a row do not wait
    {"dear": "negative"},                                                       # a short chain
    {"before": "b1: f64 = load(a1, i, 0) {index=[at,at]}"},                     # read before the row's cells
    {"rows": "1 .. h step 1", "cells": "i .. w step 1"},                        # rows of many lengths
    {"rows": "1 .. h step 2"},
])
def test_what_stays_as_it_is(changes):
    assert not staggered(**changes)


@pytest.mark.parametrize("place, may", [("j0", True), ("j1", False)])
def test_adds_keep_their_order(place, may):
    assert may == staggered(write=f"""a6: f64[n,m] = add_at(a2, e, i, j) {{index=[at,at]}}
      a5: f64[n,m] = add_at(a6, u, i2, {place}) {{index=[at,at]}}""")


def test_a_soft_minimum_over_a_table():
    """Value and derivatives of dynamic programming, as of differences."""
    def cost(x, y):
        n, m = len(x), len(y)
        r = np.full((n + 1, m + 1), 1e3)
        r[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                low = np.exp(-r[i - 1, j]) + np.exp(-r[i, j - 1]) + np.exp(-r[i - 1, j - 1])
                r[i, j] = (x[i - 1] - y[j - 1]) ** 2 - np.log(low)
        return r[n, m]

    rng = np.random.default_rng(0)
    x, y, step = rng.normal(size=7), rng.normal(size=5), 1e-6
    gradient = gradsmith.grad(cost, argnums=(0, 1))
    found = gradient(x, y)
    assert "in abreast(" in gradient.source(x, y)
    for which, z in enumerate((x, y)):
        for k in range(len(z)):
            shifted = [[v.copy() for v in (x, y)] for _ in range(2)]
            shifted[0][which][k] += step
            shifted[1][which][k] -= step
            slope = (cost(*shifted[0]) - cost(*shifted[1])) / (2 * step)
            np.testing.assert_allclose(found[which][k], slope, rtol=1e-6, atol=1e-8)
