"""Pullbacks and linear maps that were made outside are called in transpiled code."""

import numpy as np
import pytest

import gradsmith
from gradsmith import grad, jit, jvp, linearize, vjp, vmap

X = np.array([1.0, 2.0, 3.0])


def rows(x):
    return np.sin(x) * x[0]


JACOBIAN = np.diag(np.cos(X) * X[0]) + np.outer(np.sin(X), [1.0, 0.0, 0.0])


def test_batches_and_derivatives_of_pullbacks():
    _, pull = vjp(rows, X)
    _, push = linearize(rows, X)
    np.testing.assert_allclose(JACOBIAN, vmap(pull)(np.eye(3))[0])
    np.testing.assert_allclose(JACOBIAN.T, vmap(push)(np.eye(3)))
    np.testing.assert_allclose(JACOBIAN, vmap(push, in_axes=1, out_axes=1)(np.eye(3)))
    np.testing.assert_allclose(JACOBIAN, gradsmith.jacfwd(push)(X))
    twice, back = vjp(lambda ct: pull(ct)[0], X)                          # the transpose of the transpose
    np.testing.assert_allclose(JACOBIAN.T @ X, twice)
    np.testing.assert_allclose(JACOBIAN @ X, back(X)[0])
    np.testing.assert_allclose(JACOBIAN.T @ X, jvp(lambda ct: pull(ct)[0], (X,), (X,))[1])
    np.testing.assert_allclose(2 * JACOBIAN @ (JACOBIAN.T @ X), grad(lambda ct: np.sum(pull(ct)[0] ** 2))(X))


def test_trees_and_residuals_are_read_anew():
    def tree(p, k):
        return {"a": p["w"] * p["b"], "n": k, "b": (np.sum(p["w"] ** 2),)}

    here = {}

    @jit
    def scaled(ct):
        return here["pull"](ct)[0]["w"] * 2

    ct = {"a": np.ones(3), "n": 0, "b": (0.5,)}
    for b in (2.0, 5.0):
        _, here["pull"] = vjp(lambda p: tree(p, 7), {"w": X, "b": b})
        np.testing.assert_allclose(scaled(ct), 2 * (b + X))


def test_what_does_not_fit():
    _, pull = vjp(rows, X)
    with pytest.raises(ValueError, match=r"a cotangent of shape \(n\) for a value of shape \(3,\)"):
        jit(pull)(np.ones(4))
    with pytest.raises(TypeError, match="structure of the function's result"):
        jit(vjp(lambda x: (x, x), X)[1])(X)
    with pytest.raises(TypeError, match="a complex number for a real one"):
        jit(pull)(1j * X)
