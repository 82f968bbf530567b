"""NumPy functions as primitives of JAX: values, derivatives of every order and mode, batches, compiled and not."""

import os
from collections import namedtuple

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
import jax.numpy as jnp
from unit.runtime.beside_jax import XS, W, X, same, theirs
from unit.runtime.pendulum import pendulum as program

from gradsmith.jax import function

pytestmark = pytest.mark.jax
State = namedtuple("State", "x v")


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with jax.enable_x64(request.param):
        yield request.param


pendulum = function(program)


def test_values_and_gradients(x64):
    """At once and compiled."""
    def first(f):
        return lambda x, w: f(x, w)[0]

    x, w = jnp.asarray(X), jnp.asarray(W)
    expected = jax.jit(jax.value_and_grad(first(theirs), (0, 1)))(x, w)
    same(jax.value_and_grad(first(pendulum), (0, 1))(x, w), expected)
    same(jax.jit(jax.value_and_grad(first(pendulum), (0, 1)))(x, w), expected)
    same(jax.jit(jax.vmap(jax.grad(first(pendulum)), (0, None)))(jnp.asarray(XS), w),
         jax.jit(jax.vmap(jax.grad(first(theirs)), (0, None)))(jnp.asarray(XS), w))
    same(jax.jit(pendulum)(x, w), jax.jit(theirs)(x, w))


wave = function(lambda x, w: np.sum(np.sin(x) * w))


def their_wave(x, w):
    return jnp.sum(jnp.sin(x) * w)


@pytest.mark.parametrize("of", [
    jax.hessian, lambda f: jax.jacrev(jax.grad(f), 1), lambda f: jax.jacfwd(jax.jacfwd(f)),
    lambda f: jax.jacfwd(jax.jacrev(jax.grad(f))), lambda f: jax.grad(jax.checkpoint(f)),
    lambda f: lambda x, w: jax.jvp(f, (x, w), (w, x)), lambda f: lambda x, w: jax.linearize(f, x, w)[1](w, x),
], ids=["hessian", "reverse", "forward", "third", "checkpoint", "jvp", "linearize"])
def test_transforms(of):
    same(jax.jit(of(wave))(X, W), jax.jit(of(their_wave))(X, W))


@pytest.mark.parametrize("of", [
    lambda f: lambda xs, w: jax.grad(lambda w: jax.vmap(f, (0, None))(xs, w).sum())(w),
    lambda f: lambda xs, w: jax.vmap(f, (1, None))(xs.T, w),
    lambda f: lambda xs, w: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(xs, xs),
    lambda f: lambda xs, w: jax.lax.scan(lambda c, x: (c + f(x, w), jax.grad(f)(x, w)), w[0], xs),
], ids=["gradient of a batch", "another axis", "twice", "scan"])
def test_batches_and_loops(of):
    same(jax.jit(of(wave))(XS, W), jax.jit(of(their_wave))(XS, W))


def test_numbers_that_jax_knows():
    def slope(f):
        return jax.grad(jax.checkpoint(lambda x: f(x, 2.0)))(X)

    same(slope(wave), slope(their_wave))


def test_trees_known_arguments_and_integers():
    @function
    def step(state, options, n, mode="euler"):
        x, v = state
        for _ in range(n):
            x, v = x + options["dt"] * v, v - options["dt"] * x
        if mode == "shifted":
            x = x + 1.0
        return {"state": State(x, v), "first": np.argmax(x), "mode": mode}

    x = jnp.asarray([1.0, 2.0])

    def loss(x, dt):
        found = step(State(x, x), {"dt": dt}, 2, mode="shifted")
        assert isinstance(found["state"], State) and "shifted" == found["mode"]
        return found["state"].x.sum() + found["first"]

    slope, d_dt = jax.jit(jax.grad(loss, (0, 1)))(x, 0.1)
    np.testing.assert_allclose(slope, np.full(2, 1.0 + 2 * 0.1 - 0.1**2), rtol=1e-6)
    np.testing.assert_allclose(d_dt, np.sum(2 * x - 2 * 0.1 * x), rtol=1e-5)
    assert 1 == int(step(State(x, x), {"dt": 0.1}, jnp.asarray(3))["first"])


def test_arguments_of_one_value_and_other_types():
    fun = function(lambda x, n: x * n)
    assert np.int32 == fun(jnp.asarray(3), 1).dtype or np.int64 == fun(jnp.asarray(3), 1).dtype
    assert 3.0 == fun(jnp.asarray(3.0), 1)
    assert 3.0 == fun(jnp.asarray(3.0), True)
    assert 3.0 == fun(3.0, 1.0)


def test_dtypes_are_as_in_numpy(x64):
    fun = function(lambda x: (x.astype(np.float64) * 2.0, np.arange(3), x > 0.0))
    wide, counted, flags = fun(jnp.ones(2, jnp.float32))
    assert (np.float64 if x64 else np.float32) == wide.dtype
    assert (np.int64 if x64 else np.int32) == counted.dtype
    assert np.bool_ == flags.dtype


def test_complex_gradients_are_jaxs_own():
    z = jnp.asarray([1.0 + 2.0j, -0.5j])
    same(jax.jit(jax.grad(function(lambda z: np.sum(z**3)), holomorphic=True))(z), 3.0 * z**2)
    same(jax.jit(jax.grad(function(lambda z: np.sum(np.abs(z) ** 2))))(z), 2.0 * z.conj())


def test_arrays_are_not_written_to():
    @function
    def fill(x):
        x[0] = 7.0
        return np.sum(x**2)

    x = jnp.asarray([1.0, 2.0])
    assert 53.0 == fill(x) == jax.jit(fill)(x)
    np.testing.assert_array_equal([1.0, 2.0], x)
    np.testing.assert_array_equal([0.0, 4.0], jax.grad(fill)(x))


def test_results_do_not_share_memory():
    x = np.array([1.0, 2.0], np.float32)
    found = function(lambda x: x)(x)
    x[0] = 9.0
    assert 1.0 == found[0]


def test_large_arrays_and_two_calls_in_one_program():
    fun = function(lambda x: np.sum(np.sin(x) ** 2))
    x = jnp.ones(500_000)
    found = jax.jit(lambda x: jax.grad(lambda x: fun(x) + fun(2.0 * x))(x))(x)
    np.testing.assert_allclose(found, np.full(500_000, np.sin(2.0) + 2 * np.sin(4.0)), rtol=1e-4)


def test_an_integer_result_alone_has_no_derivative():
    fun = function(lambda x: (np.sum(x**2), np.argmax(x)))
    value, tangent = jax.jvp(fun, (jnp.ones(2),), (jnp.ones(2),))
    assert 4.0 == tangent[0]
    assert jax.dtypes.float0 == tangent[1].dtype


def test_what_is_refused():
    with pytest.raises(ValueError, match="via='magic': gradsmith.jax.function knows 'callback', 'stablehlo'"):
        function(np.sin, via="magic")
    with pytest.raises(TypeError, match="depends on values"):
        function(lambda x: x[x > 0])(jnp.ones(3))
    with pytest.raises(TypeError, match="no counterpart in NumPy"):
        function(lambda x: x)(jax.random.key(0))
    with pytest.raises(TypeError, match="bfloat16"):
        function(lambda x: x)(jnp.ones(3, jnp.bfloat16))
    with pytest.raises(IndexError, match="out of bounds"):
        function(lambda x, i: x[i])(jnp.ones(2), jnp.asarray(5))
    with pytest.raises(Exception, match="out of bounds"):
        jax.jit(function(lambda x, i: x[i]))(jnp.ones(2), jnp.asarray(5)).block_until_ready()
