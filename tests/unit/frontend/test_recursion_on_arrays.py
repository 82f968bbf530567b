"""Recursion over arrays of any size: divided, written to in place, captured."""


import numpy as np
import pytest
from loose import check_values
from recursive import calls, difference

from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.library import transformed
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp


def pairwise(x):
    if len(x) == 1:
        return x[0] * x[0]
    middle = len(x) // 2
    return pairwise(x[:middle]) + np.sin(pairwise(x[middle:]))


def merge_sort(x):
    if len(x) <= 1:
        return x
    middle = len(x) // 2
    a, b = merge_sort(x[:middle]), merge_sort(x[middle:])
    out = np.empty(len(x))
    i = j = 0
    for k in range(len(x)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def weighted_sort(x):
    return np.sum(merge_sort(x * x) * np.arange(1.0, len(x) + 1.0))


def quick_sort(a, lo, hi):
    if lo < hi:
        pivot, i = a[hi], lo
        for j in range(lo, hi):
            if a[j] < pivot:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        quick_sort(a, lo, i - 1)
        quick_sort(a, i + 1, hi)


def sorted_in_place(x):
    y = np.sin(x)
    quick_sort(y, 0, len(y) - 1)
    return np.sum(y * np.arange(1.0, len(y) + 1.0))


def continued_fraction(x):
    def rest(k):
        return x[k] if k == len(x) - 1 else x[k] + 1.0 / rest(k + 1)

    return rest(int(0.0 * x[0]))


def returned(a, k):
    if k < len(a):
        a[k] = a[k] ** 2
        return returned(a, k + 1)
    return a


def returns_its_argument(x):
    y = x.copy()
    z = returned(y, int(0.0 * x[0]))
    z[0] = z[0] * 3.0
    return np.sum(y * z)


def captured_array(x):
    bins = np.zeros(3)

    def go(k, scale):
        bins[k % 3] += scale * x[k]
        if k > 0:
            go(k - 1, scale * 0.5 + bins[0])

    go(len(x) - 1, 1.0)
    return np.sum(bins * np.array([1.0, 2.0, 3.0]))


def row_by_row(x):
    table = np.outer(x, x)

    def norm(rows):
        if rows.shape[0] == 1:
            return np.sqrt(np.sum(rows ** 2))
        half = rows.shape[0] // 2
        return norm(rows[:half]) * norm(rows[half:])

    return norm(table + 1.0)


def backtracking(x):
    used = np.zeros(len(x))

    def visit(left, product):
        if left == 0:
            return product
        total = 0.0
        for k in range(len(x)):
            if used[k] == 0.0:
                used[k] = 1.0
                total += visit(left - 1, product * x[k])
                used[k] = 0.0
        return total

    return visit(int(2.5 + 0.0 * x[0]), 1.0)


ARRAYS = [pairwise, weighted_sort, sorted_in_place, continued_fraction, returns_its_argument, captured_array, row_by_row,
          backtracking]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("fn", ARRAYS, ids=lambda fn: fn.__name__)
def test_arrays(fn, size):
    if fn is backtracking and size == 1:
        size = 4
    x = np.random.default_rng(size).uniform(0.5, 1.5, size)
    trace = check_values(fn, x)
    if size == 7:
        assert calls(trace)
    reverse = transformed(trace.func, lambda f: vjp(f, [True]))
    forward = transformed(trace.func, lambda f: jvp(f, [True]))
    verify(reverse)
    verify(forward)
    _, gradient = evaluate(reverse, x, 1.0)
    expected = [difference(lambda _, e, k=k: fn(np.where(np.arange(size) == k, x + e, x)), 0, 0.0) for k in range(size)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    tangent = np.random.default_rng(1).normal(size=size)
    assert pytest.approx(np.dot(gradient, tangent), rel=1e-11, abs=1e-12) == evaluate(forward, x, tangent)[1]


def test_one_func_serves_all_sizes():
    trace = check_values(pairwise, np.arange(11.0))
    assert 2 == len(trace.func.funcs)
    for size in (2, 3, 16, 37):
        x = np.linspace(0.0, 1.0, size)
        assert pytest.approx(pairwise(x), rel=1e-13) == evaluate(trace.func, x)[0]
