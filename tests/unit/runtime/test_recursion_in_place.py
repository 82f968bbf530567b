"""Functions that call themselves and write to arrays do so in one array, as Python does; so do their derivatives.

What is generated is run by Python, which shares memory as Numba does and needs no compiling.
"""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs


def put(a, i):
    if i >= 0:
        a[i] = a[i] * 2.0 + 1.0
        put(a, i - 1)
        a[i] += a[0]


def multiply(a, b, i):
    if i >= 0:
        a[i] = a[i] * b[i]
        multiply(a, b, i - 1)


def quicksort(a, low, high):
    if low < high:
        i = low
        for j in range(low, high):
            if a[j] < a[high]:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[high] = a[high], a[i]
        quicksort(a, low, i - 1)
        quicksort(a, i + 1, high)


def remembered(x, n, known):
    if known[n] != 0.0:
        return known[n]
    if n < 2:
        return x[n]
    known[n] = remembered(x, n - 1, known) * 0.5 + np.sin(remembered(x, n - 2, known))
    return known[n]


def double_rows(a, i):
    if i < a.shape[0]:
        row = a[i]
        row *= 2.0
        double_rows(a, i + 1)
        row[0] = row[1] * a[0, 1]


def doubled(a, i):
    if i <= 0:
        return a
    b = a.copy()
    b[i] *= 2.0
    return doubled(b, i - 1) + b


def an_alias_is_read_after_it(x, k):
    b = x * 1.0
    c = b
    put(b, k)
    return np.sum(c * x) + b[0]


def each_of_two_arrays(x, k):
    a = x * 1.0
    b = a.copy()
    multiply(a, b, k)
    multiply(b, a, k)
    return np.sum(a * b)


def sorted_by_itself(x, k):
    a = x.copy()
    quicksort(a, k, len(a) - 1)
    return np.sum(a * np.arange(len(a)) ** 2)


def with_a_memory(x, k):
    known = np.zeros(20)
    return remembered(x, k + 3, known) + known[2]


def rows_of_a_matrix(x, k):
    a = x.reshape(2, -1).copy()
    double_rows(a, k - k)
    return np.sum(a * a)


def in_a_loop(x, k):
    total = 0.0
    b = x * 1.0
    for t in range(k + 1):
        c = b * (t + 1.0)
        put(c, t)
        total += np.sum(c) + np.sum(b)
        put(b, 1)
    return total


def in_one_branch(x, k):
    b = x * 1.0
    if k > 1:
        put(b, k)
    else:
        b = b * 3.0
    return np.sum(b * b)


def what_went_in_is_kept(x, k):
    return np.sum(doubled(x, k) * x)


FUNCTIONS = (an_alias_is_read_after_it, each_of_two_arrays, sorted_by_itself, with_a_memory, rows_of_a_matrix, in_a_loop,
             in_one_branch, what_went_in_is_kept)


def by_python(function, *args):
    """The function as Python: the last one of the text that is generated for such arguments."""
    text = function.source(*args).replace("from numba import njit", "def njit(**options): return lambda f: f")
    scope = {}
    exec(compile(text, "<generated>", "exec"), scope)
    return scope[list(scope)[-1]]


def slopes(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    value, gradient = (by_python(transform(f), np.ones(6), 1) for transform in (gs.jit, gs.grad))
    for k in (0, 1, 2, 3):
        x = np.random.default_rng(k).normal(size=6)
        before = x.copy()
        assert f(x.copy(), k) == pytest.approx(value(x, k), rel=1e-12)
        np.testing.assert_allclose(gradient(x, k), slopes(lambda z, k=k: f(z, k), x), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(before, x)


@pytest.mark.parametrize("f", [in_a_loop, sorted_by_itself], ids=lambda f: f.__name__)
def test_second_order(f):
    x = np.random.default_rng(5).normal(size=6)
    gradient = by_python(gs.grad(f), x, 2)
    hessian = by_python(gs.hessian(f), x, 2)(x, 2)
    np.testing.assert_allclose(by_python(gs.jacrev(gs.grad(f)), x, 2)(x, 2), hessian, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(hessian, slopes(lambda z: gradient(z, 2), x), rtol=1e-4, atol=1e-4)


def test_compiled():
    x = np.random.default_rng(3).normal(size=6)
    np.testing.assert_allclose(gs.grad(with_a_memory)(x, 2), slopes(lambda z: with_a_memory(z, 2), x), rtol=1e-5, atol=1e-6)


def tree(x, low, high):
    if high - low == 1:
        return np.sin(x[low])
    middle = (low + high) // 2
    return tree(x, low, middle) * 0.5 + np.tanh(tree(x, middle, high))


def whole_tree(x):
    return tree(x, 0, len(x))


def test_nothing_is_allocated_or_copied_in_each_call():
    x = np.random.default_rng(0).normal(size=9)
    for text in (gs.grad(whole_tree).source(x), gs.jit(sorted_by_itself).source(x, 0)):
        calls = text.split("@njit")[1:-1]
        assert calls and not any(word in call for call in calls for word in ("zeros(", "empty(", "copy("))
    np.testing.assert_allclose(by_python(gs.grad(whole_tree), x)(x), slopes(whole_tree, x), rtol=1e-6)
