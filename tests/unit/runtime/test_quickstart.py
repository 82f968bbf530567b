"""A first hour with the library, with the imports that JAX users write."""

import numpy as onp
import pytest

import gradsmith.numpy as np
from gradsmith import (
    Array,
    device_put,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    random,
    tree,
    value_and_grad,
    vjp,
    vmap,
)


def softplus(x, sharpness=2.0):
    return np.log1p(np.exp(sharpness * x)) / sharpness


@jit
def compiled_softplus(x, sharpness=2.0):
    return np.log1p(np.exp(sharpness * x)) / sharpness


def energy(x):
    return np.sum(np.tanh(x) ** 2)


def test_products_of_random_matrices():
    x = random.normal(random.PRNGKey(1), (40, 30), dtype=np.float32)
    y = np.dot(x, x.T).block_until_ready()
    assert np.float32 == y.dtype
    onp.testing.assert_allclose(y, onp.asarray(x) @ onp.asarray(x).T, rtol=1e-4, atol=1e-4)
    onp.testing.assert_array_equal(np.dot(device_put(onp.asarray(x)), x.T), y)


def test_a_function_with_and_without_jit():
    x = random.uniform(random.PRNGKey(2), (1000,), minval=-2.0, maxval=2.0)
    eager, compiled = softplus(x), jit(softplus)(x).block_until_ready()
    assert (np.float32, np.float32) == (eager.dtype, compiled.dtype)
    onp.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)
    onp.testing.assert_allclose(compiled_softplus(x), eager, rtol=1e-5, atol=1e-6)
    onp.testing.assert_allclose(compiled_softplus(x, sharpness=1.0), softplus(x, 1.0), rtol=1e-5, atol=1e-6)


def test_gradient_against_differences():
    x = np.linspace(-1.0, 1.0, 4)
    differences = [(energy(x + 1e-6 * e) - energy(x - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    onp.testing.assert_allclose(grad(energy)(x), np.array(differences), rtol=1e-6, atol=1e-9)


def test_orders_and_transforms_compose():
    third = grad(jit(grad(jit(grad(np.sin)))))
    onp.testing.assert_allclose(float(third(0.3)), -onp.cos(0.3), rtol=1e-12)


def test_modes_agree():
    x = np.arange(3.0)
    value, pull = vjp(energy, x)
    same, tangent = jvp(energy, (x,), (np.ones(3),))
    onp.testing.assert_allclose(float(same), float(value), rtol=1e-12)
    onp.testing.assert_allclose(float(tangent), onp.sum(pull(1.0)[0]), rtol=1e-12)
    onp.testing.assert_allclose(jit(jacfwd(jacrev(energy)))(x), hessian(energy)(x), rtol=1e-10, atol=1e-12)


weights = random.normal(random.PRNGKey(3), (5, 4))
batch = random.normal(random.PRNGKey(4), (6, 4))


def apply_weights(v):
    return np.dot(weights, v)


@jit
def apply_to_batch(vs):
    return vmap(apply_weights)(vs)


@pytest.mark.parametrize("apply", [lambda vs: np.stack([apply_weights(v) for v in vs]), apply_to_batch,
                                   vmap(apply_weights), jit(lambda vs: np.dot(vs, weights.T))])
def test_batches(apply):
    found = apply(batch)
    assert (6, 5) == found.shape
    assert (Array, np.float32) == (type(found), found.dtype)
    onp.testing.assert_allclose(found, onp.asarray(batch) @ onp.asarray(weights).T, rtol=2e-5, atol=2e-5)


def test_partial_and_mixed_derivatives_through_lambdas():
    def f(x, y):
        return x ** 3 * y + np.sin(y)

    x, y = np.array(2.0), np.array(0.5)
    both = grad(f, argnums=[0, 1])
    by_x = lambda x, y: both(x, y)[0]
    mixed = grad(by_x, argnums=[0, 1])(x, y)
    onp.testing.assert_allclose([float(v) for v in mixed], [6 * 2 * 0.5, 3 * 4], rtol=1e-12)
    (xx, xy), (yx, yy) = hessian(f, [0, 1])(x, y)
    onp.testing.assert_allclose([float(v) for v in (xx, xy, yx, yy)], [6, 12, 12, -onp.sin(0.5)], rtol=1e-12)


def test_a_training_loop_on_a_tree_of_parameters():
    rng = onp.random.default_rng(0)
    x = rng.uniform(-2, 2, 50)
    y = 3.0 * x + 0.5

    @jit
    def loss(params, x, y):
        return ((params["slope"] * x + params["offset"] - y) ** 2).mean()

    @jit
    def step(params, x, y):
        value, slopes = value_and_grad(loss)(params, x, y)
        return value, tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    start = {"slope": np.array(1.0), "offset": np.array(0.0)}
    params = start
    losses = []
    for _ in range(200):
        value, params = step(params, x, y)
        losses.append(float(value.block_until_ready()))
    onp.testing.assert_allclose([params["slope"], params["offset"]], [3.0, 0.5], rtol=1e-6)
    assert losses[-1] < 1e-10 < losses[0]
    assert [1.0, 0.0] == [float(v) for v in start.values()]
