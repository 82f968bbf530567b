"""Loops that are gone through a second time, written out: what the first attempt read is read again."""

import numpy as np
import pytest

import gradsmith

A = np.arange(12.0).reshape(3, 4) / 9 - 1.1
X = np.array([0.3, 0.2])


def left_early(x, a, n):
    s = 0.5
    column = a[:, (n + 1) % 4]
    for _ in range(3):
        if np.sum(column) + s > 0.1:
            return np.sin(x[0])
        column = np.cumsum(column) * 0.3
    else:
        column[0] *= np.cos(s)
    return s + np.sum(a * 2.0) + np.sum(column) * x[1]


def in_a_loop(x, a, n):
    s = x[0]
    for k in range(n):
        column = a[:, (k + 1) % 4]
        for _ in range(3):
            if np.sum(column) + s > 0.1:
                return np.sin(x[0]) * s
            column = np.cumsum(column) * 0.3
        else:
            for _ in range(n):
                column[0] *= np.cos(s)
        s = s + column[0]
    return s + np.sum(a * 2.0)


def views_read_before(x, a, n):
    row = a[n]
    total = np.sum(row)
    for k in range(2):
        if np.sum(row) > 5.0:
            return total
        row = np.outer(x, row)[k]
    else:
        row[0] = total
    return np.sum(row) + a[n, 1]


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("fun", [left_early, in_a_loop, views_read_before], ids=lambda f: f.__name__)
def test_what_was_taken_back_is_not_used(fun, n):
    np.testing.assert_allclose(gradsmith.jit(fun)(X, A.copy(), n), fun(X, A.copy(), n), rtol=1e-13)
    gradient = gradsmith.grad(fun, argnums=(0, 1))(X, A, n)
    step = 1e-6
    for got, k, point in ((gradient[0], 0, X), (gradient[1], 1, A)):
        for place in np.ndindex(point.shape):
            ends = []
            for sign in (1, -1):
                args = [X.copy(), A.copy(), n]
                args[k][place] += sign * step
                ends.append(fun(*args))
            np.testing.assert_allclose(got[place], (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-7)
