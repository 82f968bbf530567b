"""Sizes that do not fit where a branch or loop is not reached, or once by mistake, do not spoil other calls."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs


def model(x, y, use_y):
    s = np.sum(x ** 2)
    if use_y > 0:
        s = s + np.sum(x * y)
    return s


def residual(w, a, y, steps):
    loss = 0.0
    for _ in range(steps):
        r = a @ w - y
        loss += np.sum(r * r)
        w = w - 0.1 * a.T @ r
    return loss


def power(a, x, k=2):
    for _ in range(k):
        x = a @ x
    return x


@pytest.mark.parametrize("transform", [gs.grad, gs.jit])
def test_a_branch_that_is_not_taken(transform):
    made = transform(model)
    fits = made(np.ones(3), np.ones(3), 1.0)
    np.testing.assert_array_equal(made(np.ones(3), np.ones(5), 0.0), transform(lambda x: np.sum(x ** 2))(np.ones(3)))
    np.testing.assert_array_equal(made(np.ones(3), np.ones(3), 1.0), fits)
    with pytest.raises(ValueError, match=r"could not be broadcast together with shapes \(n,\) \(m,\)"):
        made(np.ones(4), np.ones(6), 1.0)
    assert np.isfinite(made(np.ones(6), np.ones(6), 1.0)).all()


def test_one_mistake():
    gradient = gs.grad(residual)
    a, w = np.ones((3, 2)), np.ones(2)
    right = gradient(w, a, np.ones(3), 2)
    with pytest.raises(ValueError, match="could not be broadcast"):
        gradient(w, a, np.ones(4), 2)
    np.testing.assert_array_equal(gradient(w, a, np.ones(3), 2), right)


def test_a_loop_that_always_fails():
    with pytest.raises(ValueError, match="not aligned"):
        gs.jit(power)(np.eye(4), np.ones(3))


def unpacked(x, use_x):
    total = 1.0
    if use_x > 0:
        a, b = x
        total = total + a * b
    return total


def stacked(x, y, use_y):
    total = np.sum(x)
    if use_y > 0:
        total = total + np.sum(np.stack([x, y]))
    return total


def test_what_unpacks_and_joins():
    f = gs.jit(unpacked)
    assert f(np.ones(3), 0.0) == 1.0
    assert f(np.ones(2), 1.0) == 2.0
    g = gs.jit(stacked)
    assert g(np.ones(3), np.ones(4), 0.0) == 3.0
    assert g(np.ones(3), np.ones(3), 1.0) == 9.0
