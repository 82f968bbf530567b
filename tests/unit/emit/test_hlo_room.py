"""Arrays whose size a run-time value says, which have room for all that there can be: what is beyond decides nothing."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith

pytest.importorskip("jax")
from gradsmith import xla

pytestmark = pytest.mark.xla
X = np.array([0.5, -1.0, 2.0, 0.3, -0.2, 1.5])
NONE_OR_ALL = np.array([-0.5, -1.0, -2.0, -0.3, -0.2, -1.5]), np.abs(X)


def positive(x):
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            n += 1
    return n


def reads(x):
    n = positive(x)
    head, tail = x[:n], x[n:]
    total = np.sum(head) + np.sum(tail ** 2) + np.prod(head) + head @ x[6 - n:]
    return total + np.sum(x[2:n:2]) + np.any(head > 1.9)


def extremes(x):
    n = positive(x)
    return np.max(x[:n + 1]) * np.min(x[:n + 1]) + np.argmax(np.sin(x[:n + 1])) + np.linalg.norm(x[:n + 1])


def writes(x):
    n = positive(x)
    y, z, w = np.zeros(6), np.ones(6), np.ones((2, 6))
    y[:n] = x[:n] * 2 + 1
    z[n:] += x[n:]
    w[1, :n] *= x[6 - n:]
    return y * z + w


def products(x):
    n = positive(x)
    a = np.outer(x, x)
    return np.sum((a[:n, :n] @ x[:n]) ** 2) + np.sum(np.outer(x[:n], x)[:, 1:].T) + np.sum(np.cumsum(x[:n]) ** 2)


def softmax(x):
    n = min(positive(x) + 1, 5)
    e = np.exp(x[:n] - np.max(x[:n]))
    return np.sum(np.log(e / np.sum(e))) + np.var(np.sin(x[:n])) + np.mean(x[:n][::-1] * x[6 - n:])


def joined(x):
    n = positive(x)
    both = np.concatenate([x[:n], np.array([7.0, 8.0]), x[n:] * 2, x[:n]])
    return np.sum(both * both) + both[n] * 3


def grown(x):
    found, alternate = [], []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(np.sin(x[i]))
        if i % 2 == 0:
            alternate.append(x[i])
    return np.sum(np.array(found)) + np.sum(np.array(alternate) * np.array([1.0, 2.0, 3.0]))


def filled(x):
    z = np.zeros(positive(x))
    for i in range(len(z)):
        z[i] = x[i] * 2
    return np.sum(z * z)


def total_of(fun):
    return lambda x: np.sum(np.sin(fun(x)))


@pytest.mark.parametrize("fun", [reads, extremes, writes, products, softmax, joined, grown, filled])
def test_values_and_derivatives(fun):
    total = total_of(fun)
    slope = gradsmith.grad(total)
    second = gradsmith.grad(total_of(slope))

    def all_of(x):
        return fun(x), slope(x), second(x)

    made = gradsmith.stablehlo(all_of, checked=True).lower(X)
    program = gradsmith.jit(all_of)
    for x in (X, *NONE_OR_ALL):
        *found, flag = xla.run(made.text, x, optimise=False)
        assert flag == 0
        for want, got in zip(program(x), found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_lists_that_grow_where_the_index_says_have_a_known_size():
    def evens(x):
        out = []
        for i in range(6):
            if i % 2 == 0:
                out.append(x[i] * 2)
        return np.array(out)

    made = gradsmith.stablehlo(evens).lower(X)
    assert "-> tensor<3xf64>" in made.text or "tensor<3xf64> {jax.result_info" in made.text
    np.testing.assert_array_equal(xla.run(made.text, X)[0], X[::2] * 2)
