"""Chains of shifted elementwise statements: each link reads the one before at several places, and computing it anew
at each of them would double the work from link to link."""

import re

import numpy as np

import gradsmith


def shrinking(x):
    for u in [0.5] * 12:
        x = x[1:] - u * x[:-1]
    return x


def rolled(x):
    for u in [0.1] * 6:
        x = x + u * (np.roll(x, 1) + np.roll(x, -1) - 2 * x)
    return x


def broadcast(x, y):
    return np.sum((x[:, None] - y[None]) ** 2 * x[::-1][:, None])


def test_the_generated_text_grows_with_the_chain():
    x = np.linspace(0, 1, 40)
    for function in (shrinking, rolled):
        compiled = gradsmith.jit(function)
        np.testing.assert_allclose(compiled(x), function(x), atol=1e-14)
        assert len(compiled.source(x)) < 12_000


def test_rearranged_arrays_have_gradients_without_scatters():
    x, y = np.linspace(0, 1, 3), np.linspace(1, 2, 4)
    gradient = gradsmith.grad(broadcast)
    d = x[:, None] - y
    expected = (2 * d * x[::-1][:, None]).sum(1) + (d ** 2).sum(1)[::-1]
    np.testing.assert_allclose(gradient(x, y), expected)
    assert ["d_x[i]"] == re.findall(r"(\S+) [-+*/]=", gradient.source(x, y))         # each element is added to where it is


def test_chains_longer_than_the_recursion_limit():
    def chain(x):
        for u in [0.1] * 150:
            x = x * 0.99 + np.where(x > 0, x * u, -x)[None][0]
        return x.sum()

    x = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(gradsmith.jit(chain)(x), chain(x))
