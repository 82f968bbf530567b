"""`functional(f)`: what `f` wrote is a result, under every transform."""

import numpy as np
import pytest

import gradsmith
from gradsmith import functional


def step(x, v, dt):
    x += dt * v
    for i in range(1, len(v)):
        v[i] -= dt * x[i] * v[i - 1]


def steps(x, v):
    """Returns nothing."""
    step(x, v, 0.1)
    step(x, v, 0.2)


def after(x, v):
    """The same by hand."""
    x, v = x.copy(), v.copy()
    steps(x, v)
    return x, v


X, V = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])


def test_results_and_arguments():
    x, v = X.copy(), V.copy()
    result, written = functional(steps)(x, v)
    assert result is None
    assert ["x", "v"] == list(written)
    np.testing.assert_allclose(after(X, V), (written["x"], written["v"]), rtol=1e-14)
    np.testing.assert_array_equal((X, V), (x, v))


def test_derivatives_of_a_function_that_returns_nothing():
    fun = functional(steps)
    for jacobian in (gradsmith.jacrev, gradsmith.jacfwd):
        nothing, found = jacobian(fun, (0, 1))(X, V)
        assert nothing is None
        for k, name in enumerate(("x", "v")):
            for n, wrt in enumerate((X, V)):
                expected = np.empty((3, 3))
                for j in range(3):
                    moved = [X.astype(complex), V.astype(complex)]
                    moved[n][j] += 1e-30j
                    expected[:, j] = after(*moved)[k].imag / 1e-30
                assert expected.shape == found[name][n].shape
                np.testing.assert_allclose(found[name][n], expected, rtol=1e-12, atol=1e-13)


def test_vjp_and_jvp_are_adjoint():
    value, pullback = gradsmith.vjp(functional(steps), X, V)
    ct = {"x": np.array([1.0, -2.0, 0.5]), "v": np.array([0.3, 1.0, 2.0])}
    bars = pullback((None, ct))
    _, (_, moved) = gradsmith.jvp(functional(steps), (X, V), (V, X))
    assert value[0] is None
    np.testing.assert_allclose(sum(np.sum(ct[k] * moved[k]) for k in ct), bars[0] @ V + bars[1] @ X, rtol=1e-12)


def test_second_order():
    def loss(x, v):
        _, written = functional(steps)(x, v)
        return np.sum(written["v"] ** 2) + written["x"][0]

    hessian = gradsmith.hessian(loss)(X, V)
    for j in range(3):
        h = np.zeros(3)
        h[j] = 1e-6
        expected = (gradsmith.grad(loss)(X + h, V) - gradsmith.grad(loss)(X - h, V)) / 2e-6
        np.testing.assert_allclose(hessian[:, j], expected, rtol=1e-6, atol=1e-8)


def test_batches():
    x, v = np.stack([X, X + 1.0]), np.stack([V, 2.0 * V])
    _, written = gradsmith.vmap(functional(steps))(x, v)
    for k in range(2):
        np.testing.assert_allclose(after(x[k], v[k]), (written["x"][k], written["v"][k]), rtol=1e-14)


def test_containers_names_and_results():
    def f(params, scale, *rest, k=1.0):
        if scale > 0.0:
            params["a"][0] = scale * k
            params = {"a": params["a"] * 2.0}
        else:
            rest[1][...] = 0.0
        return params["a"].sum()

    for args, keywords in ((({"a": X}, 2.0, V, X), {}), (({"a": X}, -2.0, V, X), {"k": 3.0})):
        copies = {"a": X.copy()}, args[1], V.copy(), X.copy()
        expected = f(*copies, **keywords)
        result, written = functional(f)(*args, **keywords)
        assert expected == result
        assert ["params", "rest"] == list(written)
        np.testing.assert_array_equal(copies[0]["a"], written["params"]["a"])
        np.testing.assert_array_equal(copies[2:], written["rest"])


def test_nothing_written():
    assert (3.0, {}) == functional(lambda x: x + 1.0)(2.0)


def test_the_same_array_twice_is_two():
    def f(a, b):
        a[0] = 9.0
        return b[0]

    result, written = functional(f)(X, X)
    assert X[0] == result
    np.testing.assert_array_equal([9.0, *X[1:]], written["a"])


def test_inside_of_compiled_code():
    def f(x):
        _, written = functional(steps)(x, x)
        x[0] = written["v"][2]
        return x

    x = X.copy()
    expected = after(X, X)[1][2]
    np.testing.assert_allclose([expected, *X[1:]], gradsmith.jit(f)(x), rtol=1e-14)
    np.testing.assert_allclose([expected, *X[1:]], x, rtol=1e-14)


TABLE = np.zeros(3)


def test_writes_to_what_is_no_argument_are_refused():
    def f(x):
        TABLE[0] = x
        return x

    outer = np.zeros(2)

    def g(x):
        def h(y):
            local[0] = y
            return y

        local = np.zeros(2)
        return functional(h)(x)[0] + local[0]

    def k(x):
        outer[0] = x
        return x

    for fun in (functional(f), g, functional(k)):
        with pytest.raises(NotImplementedError, match="writes to an array"):
            gradsmith.jit(fun)(1.0)


def test_as_a_decorator():
    @functional
    def f(x):
        x *= 2.0

    np.testing.assert_array_equal([2.0, 4.0, 6.0], f(X)[1]["x"])
