"""Decompositions inside of loops, branches and called functions, at and away from results that coincide."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs


def by_vectors(a, n):
    total = 0.0
    for i in range(n):
        w, v = np.linalg.eigh(a + i * np.eye(3))
        total += np.sum(np.exp(w) * v[0] ** 2)
    return total


def by_values(a, n):
    total = 0.0
    for i in range(n):
        w, v = np.linalg.eigh(a + i * np.eye(3))
        total += np.sum(np.exp(w))
    return total


def by_singular_values(a, n):
    total = 0.0
    for i in range(n):
        u, s, vt = np.linalg.svd(a + i * np.eye(3))
        total += np.sum(s ** 2)
    return total


def once(a):
    w, v = np.linalg.eigh(a)
    return np.sum(np.exp(w) * v[0] ** 2)


@pytest.fixture
def symmetric():
    a = np.random.default_rng(0).normal(size=(3, 3))
    return a + a.T


def derivatives(function, a, d):
    return (np.sum(gs.grad(function)(a, 2) * d), gs.jvp(lambda a: function(a, 2), (a,), (d,))[1],
            (function(a + 1e-6 * d, 2) - function(a - 1e-6 * d, 2)) / 2e-6)


@pytest.mark.parametrize("function", [by_vectors, by_values, by_singular_values])
def test_apart(function, symmetric):
    reverse, forward, difference = derivatives(function, symmetric, symmetric)
    np.testing.assert_allclose([reverse, forward], difference, rtol=1e-6)


@pytest.mark.parametrize("function", [by_values, by_singular_values])
def test_values_alone_may_coincide(function, symmetric):
    reverse, forward, difference = derivatives(function, np.eye(3), symmetric)
    np.testing.assert_allclose([reverse, forward], difference, rtol=1e-6)


def test_coinciding_is_an_error_where_vectors_are_used(symmetric):
    with pytest.raises(FloatingPointError, match="eigh: results coincide"):
        gs.grad(by_vectors)(np.eye(3), 2)
    with pytest.raises(FloatingPointError, match="eigh: results coincide"):
        gs.jvp(lambda a: by_vectors(a, 2), (np.eye(3),), (symmetric,))


def test_outside_it_is_exact_and_in_a_called_function_an_error():
    np.testing.assert_allclose(gs.grad(once)(np.eye(3)), np.diag([np.e, 0, 0]), atol=1e-12)
    called = gs.checkpoint(once)
    with pytest.raises(FloatingPointError, match="eigh: results coincide"):
        gs.grad(lambda a: called(a))(np.eye(3))
