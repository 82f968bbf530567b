"""Loops inside of loops that hand arrays around, or run again: only what somebody reads of them is there on the way
back, and nothing of their blocks."""

import numba
import numpy as np
import pytest

import gradsmith

X = np.array([[0.3, -0.4, 0.9, 0.2], [0.7, 0.1, -0.6, 0.5]])


@pytest.fixture(autouse=True)
def plain_python(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)


def exchanged(x):
    total = 0.0
    for r in range(len(x)):
        a = x[r] * 1.0
        b = np.zeros_like(a)
        for _ in range(3):
            for i in range(1, len(a) - 1):
                b[i] = a[i] + np.sin(a[i - 1]) * a[i + 1]
            a, b = b, a
        total += np.sum(a * a) + np.sum(b**3)
    return total


def exchanged_in_segments(x):
    a, b = x[0] * 1.0, x[1] * x[0]
    for t in gradsmith.checkpoint(range(4), every=2):
        a[t] *= b[t]
        a, b = b, a
    return np.sum(a * a) + np.sum(b)


def growing_parts(x):
    total = 0.0
    for r in range(len(x)):
        a = x[r] * 1.0
        for t in range(1, len(a)):
            a[:t] *= a[t]
            a[t] += np.sum(a[:t])
        total += np.sum(a)
    return total


def differences(function, x):
    found = np.zeros(np.shape(function(x)) + x.shape)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-5
        found[(..., *at)] = (function(x + step) - function(x - step)) / 2e-5
    return found


@pytest.mark.parametrize(("function", "size"), [(exchanged, 4), (exchanged, 1), (exchanged_in_segments, 4),
                                                (growing_parts, 4), (growing_parts, 1)])
def test_derivatives(function, size):
    x = X[:, :size].copy()
    gradient = gradsmith.grad(function)
    np.testing.assert_allclose(gradient(x), differences(function, x), atol=1e-8)
    np.testing.assert_allclose(gradsmith.hessian(function)(x), differences(gradient, x), atol=1e-7)
    np.testing.assert_allclose(gradsmith.jacrev(gradient)(x), differences(gradient, x), atol=1e-7)


def test_batches_of_exchanging_loops():
    def one(x):
        return exchanged(x[None])

    for x in (X, X[:, :1].copy()):
        whole = gradsmith.grad(lambda x: np.sum(gradsmith.vmap(one)(x)))
        np.testing.assert_allclose(whole(x), gradsmith.grad(exchanged)(x), atol=1e-13)


def step(a, b):
    for i in range(1, len(a) - 1):
        b[i] = a[i] * (1.0 - 0.3 * (a[i + 1] - a[i - 1]))
    return b, a


def with_one_made_anew(x, y):
    a, b = x * 1.0, y * 1.0
    for _ in range(3):
        c = np.empty_like(b)
        c[0] = b[0]
        c[-1] = b[-1]
        b = c
        for _ in range(3):
            a, b = step(a, b)
    return np.sum(a * a)


def with_one_made_anew_in_a_branch(x, y):
    a, b = x * 1.0, y * 1.0
    for t in range(3):
        if x[0] > 0.2 * t:
            b = np.cos(b)
            for _ in range(3):
                a, b = step(a, b)
        else:
            for _ in range(2):
                a, b = step(a, b)
    return np.sum(a * a)


@pytest.mark.parametrize("function", [with_one_made_anew, with_one_made_anew_in_a_branch])
def test_one_of_those_handed_around_is_made_anew(function):
    """What comes out of the loop inside may be in its memory."""
    x, y = np.random.default_rng(0).uniform(0.1, 0.5, (2, 7))
    want = differences(lambda x: function(x, y), x), differences(lambda y: function(x, y), y)
    for expected, found in zip(want, gradsmith.grad(function, argnums=(0, 1))(x, y), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)
