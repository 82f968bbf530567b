"""Parts of arrays that are written over: right values and gradients, and no copy of the whole array in a loop."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradsmith


def rows(a):
    a = a.copy()
    for i in range(1, a.shape[0]):
        a[i] = 0.5 * a[i] + np.sin(a[i - 1])
    return np.sum(a * a)


def columns(a):
    a = a.copy()
    for j in range(a.shape[1] - 2, -1, -1):
        a[:, j] *= a[:, j + 1] + a[0, 0]
    return np.sum(a)


def along_a_row(a):
    a = a.copy()
    for i in range(a.shape[0]):
        a[i, 1:] = a[i, 1:] * a[i, :-1]
        a[i, :-1] += 0.5 * a[i, 1:]
    return np.sum(a * a)


def both_ways(a):
    a = a.copy()
    for i in range(1, a.shape[0] - 1):
        a[i, 1:-1] = a[i - 1, 1:-1] * a[i, :-2] + a[i, 2:] * a[i + 1, 1:-1]
    return np.sum(a * a)


def turned(a):
    a = a.copy()
    for i in range(a.shape[0]):
        a[i] = a[i, ::-1] * a[i]
        a[:, i] += a[i, :a.shape[0]]
    return np.sum(a * a)


def eliminated(a):
    a = a.copy()
    for k in range(a.shape[0] - 1):
        a[k + 1:, k] /= a[k, k] + 4.0
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return np.sum(a * a)


def normalised(a):
    a = a.copy()
    for k in range(a.shape[0]):
        a[k, k:] = a[k, k:] / np.sqrt(1.0 + np.sum(a[k, k:] ** 2))
        a[k + 1:, k:] -= np.outer(a[k + 1:, k:] @ a[k, k:], a[k, k:])
    return np.sum(a * a)


def shrinking(a):
    total = 0.0
    x = a[0].copy()
    for k in range(a.shape[0]):
        y = np.tanh(x[k:] * a[k, k:])
        total = total + np.sum(y * y)
        x[k:] = y
    return total


FUNCTIONS = [rows, columns, along_a_row, both_ways, turned, eliminated, normalised, shrinking]


def slopes(fun, a, step=1e-6):
    found = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        up, down = a.copy(), a.copy()
        up[place] += step
        down[place] -= step
        found[place] = (fun(up) - fun(down)) / (2 * step)
    return found


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients(fun):
    gradient = gradsmith.grad(fun)
    for n in (2, 3, 7):
        a = np.random.default_rng(n).normal(size=(n, n))
        np.testing.assert_allclose(gradsmith.jit(fun)(a), fun(a), rtol=1e-12)
        np.testing.assert_allclose(gradient(a), slopes(fun, a), rtol=1e-6, atol=1e-7)
        v = np.random.default_rng(n + 50).normal(size=(n, n))
        _, along = gradsmith.jvp(fun, (a,), (v,))
        np.testing.assert_allclose(along, np.sum(gradient(a) * v), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda f: f.__name__)
def test_no_array_is_copied_in_a_loop(fun):
    a = np.ones((5, 5))
    for made in (gradsmith.jit(fun), gradsmith.grad(fun)):
        copies = re.findall(r"^ {8,}.*= \w+\.copy\(\)", made.source(a), re.M)
        assert copies == []


def test_a_tape_has_room_for_the_longest_part():
    source = gradsmith.grad(eliminated).source(np.ones((5, 5)))
    assert [line.count(",") for line in re.findall(r"_tape = empty\((.*)\)", source)] == [1]        # and not n x n x n
