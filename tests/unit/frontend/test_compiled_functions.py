"""Functions that Numba has compiled: dispatchers are the Python functions that they wrap, `vectorize` is elementwise."""

import math

import numba
import numpy as np
import pytest
from numba.typed import List

import gradsmith as gs

X = np.linspace(-0.5, 1.5, 5)


@numba.njit
def wave(a):
    return math.sin(a) * a


@numba.njit(cache=True, fastmath=True)
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += wave(x[i])
    return s


@numba.njit(parallel=True)
def total_in_parallel(x):
    s = 0.0
    for i in numba.prange(x.shape[0]):
        s += wave(x[i])
    return s


@numba.njit("float64(float64[:])")
def total_of_signature(x):
    parts = np.empty_like(x)
    for i in numba.prange(0, len(x)):
        parts[i] = wave(x[i])
    return parts.sum()


@numba.njit
def total_of_list(x):
    found = List()
    for k in numba.literal_unroll((1, 2)):
        found.append(k * np.sum(x * np.sin(x)))
    return found[1] - found[0]


@pytest.mark.parametrize("fun", [total, total_in_parallel, total_of_signature, total_of_list],
                         ids=lambda f: f.py_func.__name__)
def test_dispatchers(fun):
    slope = np.sin(X) + X * np.cos(X)
    np.testing.assert_allclose(gs.grad(fun)(X), slope, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(gs.vmap(fun)(np.stack([X, -X])), [fun(X), fun(-X)], rtol=1e-13)
    np.testing.assert_allclose(gs.jvp(fun, (X,), (np.ones(5),))[1], slope.sum(), rtol=1e-13)


def test_second_derivatives_of_a_dispatcher():
    np.testing.assert_allclose(np.diag(gs.hessian(total_in_parallel)(X)), 2 * np.cos(X) - X * np.sin(X), rtol=1e-12)


def test_dispatchers_that_call_derivatives():
    slope = gs.grad(numba.njit(lambda x: x**3))
    by_slope = numba.njit(lambda x: slope(x) * x)
    assert 24.0 == by_slope(2.0) == gs.jit(by_slope)(2.0)
    assert 36.0 == gs.grad(by_slope)(2.0)
    assert 18.0 == gs.grad(gs.grad(by_slope))(1.0)


def test_dispatchers_that_write_and_recurse():
    @numba.njit
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert 12.0 == gs.grad(power)(2.0, 3)

    @numba.njit
    def fill(x):
        x[0] = 5.0
        return np.sum(x)

    x = np.ones(3)
    assert 7.0 == gs.jit(fill)(x)
    assert 5.0 == x[0]


def test_callbacks_for_c():
    @numba.cfunc("float64(float64)")
    def square(a):
        return a * a

    assert 6.0 == gs.grad(square)(3.0)


# --- vectorize ----------------------------------------------------------------------------------------------------


@numba.vectorize
def ramp(a, b):
    return a * b if a > 0 else -b


@numba.vectorize(["float32(float32)", "float64(float64)"])
def square_or_itself(a):
    return a * a if a > 0.5 else a


def test_vectorized_values_and_derivatives():
    b = np.array([[1.0], [2.0]])
    expected = np.asarray(ramp(X, b))
    found = gs.jit(lambda x, b: ramp(x, b))(X, b)
    np.testing.assert_array_equal(expected, found)
    assert -2.0 == gs.jit(ramp)(-1.0, 2.0)
    d_x, d_b = gs.grad(lambda x, b: np.sum(ramp(x, b)), argnums=(0, 1))(X, b)
    np.testing.assert_allclose(d_x, np.where(X > 0, 3.0, 0.0))
    np.testing.assert_allclose(d_b[:, 0], np.full(2, np.sum(np.where(X > 0, X, -1.0))))
    np.testing.assert_allclose(gs.vmap(ramp, in_axes=(0, None))(X, 2.0), np.asarray(ramp(X, 2.0)))
    assert 0 == gs.jit(ramp)(np.zeros(0), 1.0).size


@pytest.mark.parametrize("x", [X.astype(np.float32), X, np.arange(3), 2.0, 2, np.float32(0.25)])
def test_vectorized_for_signatures(x):
    expected = square_or_itself(x)
    found = gs.jit(square_or_itself)(x)
    assert expected.dtype == found.dtype
    np.testing.assert_array_equal(expected, found)


# --- what is refused ----------------------------------------------------------------------------------------------


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def summed(a, out):
    out[0] = a.sum()


@numba.stencil
def difference(a):
    return a[1] - a[0]


@numba.njit
def in_python(x):
    with numba.objmode(y="float64"):
        y = 1.0
    return x * y


@pytest.mark.parametrize("fun, message, instead", [
    (summed, "a numba.guvectorize function is not supported", "gradsmith.vmap"),
    (lambda x: np.sum(summed(x)), "a numba.guvectorize function is not supported", "gradsmith.vmap"),
    (lambda x: np.sum(difference(x)), "a numba.stencil is not supported", "shifted slices"),
    (lambda x: np.sum(np.vectorize(math.sin)(x)), "np.vectorize, whose dtype follows from the first element",
     "numba.vectorize"),
    (lambda x: np.sum(np.vectorize(lambda a: a * x[0])(x)), "np.vectorize, whose dtype", "gradsmith.vmap"),
    (lambda x: np.sum(x) * numba.get_num_threads(), "numba's `get_num_threads` is not supported", "pass in"),
    (in_python, "is not supported", "pass in"),
    (lambda x: ramp(x, 1.0, out=x), "out= of a numba.vectorize function", "assign"),
])
def test_what_is_refused(fun, message, instead):
    with pytest.raises(NotImplementedError) as found:
        gs.jit(fun)(X)
    assert message in str(found.value) and instead in str(found.value)
    assert "site-packages" not in str(found.value)
