"""jacfwd, jacrev, jacobian, hessian: in chunks, of trees, of complex functions, and beside JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.runtime.containers import Model, Pair

import gradsmith as gs


def same(expected: Any, actual: Any) -> None:
    """The same containers, shapes and dtypes, and nearly the same numbers."""
    assert type(expected) is type(actual)
    if isinstance(expected, dict):
        assert list(expected) == list(actual)
        for key in expected:
            same(expected[key], actual[key])
    elif isinstance(expected, (tuple, list)):
        assert len(expected) == len(actual)
        for left, right in zip(expected, actual):
            same(left, right)
    elif isinstance(expected, np.ndarray):
        assert (expected.shape, expected.dtype) == (actual.shape, actual.dtype)
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)
    else:
        assert expected == actual


def running(x):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = y[i - 1] * np.sin(x[i]) + x[i]
    return y


def outputs(x):
    return {"rows": np.outer(np.sin(x), x), "total": np.sum(x**2), "count": 3}


@pytest.mark.parametrize("transform", [gs.jacfwd, gs.jacrev])
@pytest.mark.parametrize("function", [running, outputs])
def test_chunks_give_the_same(transform, function):
    whole = transform(function)
    for chunk in (1, 5):
        in_chunks = transform(function, chunk=chunk)
        for size in (0, 1, 2, 5, 13)[function is running:]:
            x = np.random.default_rng(size).normal(size=size)
            same(whole(x), in_chunks(x))


def test_hessians_in_chunks():
    def energy(x):
        return np.sum(x**3) * np.sum(np.cos(x))

    for size in (0, 1, 11):
        x = np.random.default_rng(size).normal(size=size)
        same(gs.hessian(energy)(x), gs.hessian(energy, chunk=4)(x))


def test_chunks_inside_other_transforms():
    x = np.random.default_rng(0).normal(size=7)
    nested = gs.jacfwd(gs.jacrev(running, chunk=3), chunk=2)
    same(gs.jacfwd(gs.jacrev(running))(x), nested(x))
    batch = np.stack([x, -x])
    same(np.stack([gs.jacrev(running)(row) for row in batch]), gs.vmap(gs.jacrev(running, chunk=3))(batch))
    same(gs.grad(lambda x: np.sum(gs.jacfwd(running)(x) ** 2))(x),
         gs.grad(lambda x: np.sum(gs.jacfwd(running, chunk=3)(x) ** 2))(x))


@pytest.mark.parametrize("chunk, wrong", [(0, ValueError), (-2, ValueError), (2.0, TypeError), (True, TypeError)])
def test_chunks_that_are_none(chunk, wrong):
    with pytest.raises(wrong, match="chunk of jacrev"):
        gs.jacrev(running, chunk=chunk)(np.ones(3))


def test_a_chunk_holds_no_more_at_a_time():
    """What is between is as large as a chunk: no array of n * n numbers besides the result."""
    source = gs.jacrev(lambda x: np.cumsum(np.sin(x)), chunk=4).source(np.ones(13))
    assert 1 == source.count("empty((n, n))")


def test_jacobian_takes_the_mode_with_fewer_passes():
    def wide(x):
        return np.sin(x[:3])

    def tall(x):
        return np.concatenate([np.sin(x), np.cos(x)])

    x = np.linspace(0.1, 1.0, 7)
    for function, mode in ((wide, gs.jacrev), (tall, gs.jacfwd), (running, gs.jacfwd)):
        expected, actual = (t(function).source(x).split("raise Miss")[1] for t in (mode, gs.jacobian))
        assert expected == actual
        same(mode(function)(x), gs.jacobian(function)(x))


def test_jacobian_decides_for_each_size():
    def product(a, x):
        return a @ np.sin(x)

    jacobian = gs.jacobian(product, argnums=1)
    for shape in ((2, 5), (5, 2), (3, 3)):
        a, x = np.ones(shape), np.linspace(0.0, 1.0, shape[1])
        same(a * np.cos(x), jacobian(a, x))


def test_containers_of_results():
    x = np.array([0.5, 2.0])
    expected = np.diag(2 * x)
    for transform in (gs.jacfwd, gs.jacrev):
        same(Pair(expected, [expected]), transform(lambda x: Pair(x**2, [x**2]))(x))
        model = transform(lambda x: Model(x**2, np.sum(x)))(x)
        assert Model is type(model)
        same(expected, model.weights)
        same(np.ones(2), model.rate)
        model = transform(lambda m: m.weights * m.rate)(Model(x, 3.0))
        same(3.0 * np.eye(2), model.weights)
        same(x, model.rate)


def test_holomorphic_functions():
    z = np.array([1.0 + 2.0j, -0.5j])
    for transform in (gs.jacfwd, gs.jacrev, gs.jacobian):
        same(np.diag(3 * z**2), transform(lambda z: z**3, holomorphic=True)(z))
        with pytest.raises(TypeError, match="holomorphic=True is for complex"):
            transform(lambda x: x**2, holomorphic=True)(z.real)
    same(np.diag(6 * z), gs.hessian(lambda z: np.sum(z**3), holomorphic=True)(z))


def test_complex_numbers_without_holomorphic():
    z = np.array([1.0 + 2.0j, -0.5j])
    with pytest.raises(TypeError, match="jacfwd with respect to a complex argument"):
        gs.jacfwd(lambda z: z**2)(z)
    with pytest.raises(TypeError, match="jacrev of a function with a complex result"):
        gs.jacrev(lambda x: x * 1j)(z.real)
    with pytest.raises(TypeError, match="hessian with respect to a complex argument"):
        gs.hessian(lambda z: np.sum(z**2).real)(z)
    same(1j * np.eye(2), gs.jacfwd(lambda x: x * 1j)(z.real))


def test_jacobian_takes_the_mode_that_complex_numbers_leave():
    x, z = np.array([0.5, -1.0, 2.0]), np.array([1.0 + 2.0j, -0.5j])
    turned = gs.jacobian(lambda x: (1 + 2j) * x[:1] * x[1])(x)                # fewer results, but complex ones
    same(np.array([[(1 + 2j) * x[1], (1 + 2j) * x[0], 0]]), turned)
    lengths = gs.jacobian(lambda z: np.concatenate((np.abs(z) ** 2, z.real)))(z)
    same(np.concatenate((np.diag(2 * z.conj()), np.eye(2))), lengths)
    with pytest.raises(TypeError, match="complex"):
        gs.jacobian(lambda z: z**2)(z)


def test_ints_are_refused_by_name():
    def scaled(x, factor):
        return np.sum(factor * x**2)

    for transform in (gs.jacfwd, gs.jacrev, gs.jacobian, gs.hessian):
        with pytest.raises(TypeError, match=rf"{transform.__name__} with respect to factor, which is a Python int"):
            transform(scaled, argnums=(0, 1))(np.ones(2), 3)
        with pytest.raises(TypeError, match=r"with respect to x, which is an array of dtype int64"):
            transform(scaled)(np.arange(2), 3)


def test_linearize_with_aux():
    def function(x):
        return {"square": x**2}, (np.cumsum(x), 7)

    x, t = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    value, linear, (running_sum, seven) = gs.linearize(function, x, has_aux=True)
    same({"square": x**2}, value)
    same({"square": 2 * x * t}, linear(t))
    same(np.cumsum(x), running_sum)
    assert 7 == seven

    @gs.jit
    def inside(x):
        _, linear, (running_sum, _) = gs.linearize(function, x, has_aux=True)
        return linear(x)["square"] + running_sum

    same(2 * x**2 + np.cumsum(x), inside(x))


def test_vjp_of_a_loop_beside_an_array_as_aux():
    """What only aux needs was missing."""
    def function(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i] ** 2 * i
        return total, x * 2.0

    x = np.array([1.0, 2.0, 3.0])
    value, pullback, aux = gs.vjp(function, x, has_aux=True)
    assert 22.0 == value
    same(2.0 * x, aux)
    same(np.array([0.0, 4.0, 12.0]), pullback(1.0)[0])


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_beside_jax(name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def on(np):
        def function(p, x):
            if name == "hessian":
                return np.sum(np.sin(p["a"]) * x[0]) + np.sum(p["b"][0] ** 3), {"aux": x[1]}
            return (np.outer(np.sin(p["a"]), x[0]), [np.sum(p["b"][0] ** 2)]), {"aux": x[1]}
        return function

    args = ({"a": np.array([1.0, 2.0]), "b": [np.float32([3.0, 1.0])]}, (np.linspace(0.0, 1.0, 3)[:2], np.arange(3)))
    for argnums in (0, (0,), [0]):
        ours = getattr(gs, name)(on(np), argnums, has_aux=True)(*args)
        theirs = getattr(jax, name)(on(jax.numpy), argnums, has_aux=True)(*args)
        same(jax.tree.map(np.asarray, theirs), jax.tree.map(np.asarray, ours))


@pytest.mark.parametrize("transform", [gs.jacfwd, gs.jacrev])
@pytest.mark.parametrize("chunk", [None, 2])
def test_results_whose_length_the_function_finds_out(transform, chunk):
    """The size of the result was not known where the Jacobian was put together."""
    def positive(x):
        found = []
        for v in x:
            if v > 0:
                found.append(v * x[0])
        return np.array(found)

    x = np.array([1.0, -2.0, 3.0, 4.0, -5.0])
    expected = np.array([[2.0, 0, 0, 0, 0], [3.0, 0, 1.0, 0, 0], [4.0, 0, 0, 1.0, 0]])
    same(expected, transform(positive, chunk=chunk)(x))


def test_derivatives_print_once(capsys):
    def function(p):
        print("at", p["a"][0])
        return (p["a"] ** 2, np.sum(p["b"])), p["a"]

    p = {"a": np.array([1.0, 2.0, 3.0]), "b": 2.0}
    for transform in (gs.jacfwd, gs.jacrev):
        for options in ({}, {"has_aux": True}, {"chunk": 2}):
            transform(function, **options)(p)
            assert "at 1.0\n" == capsys.readouterr().out
    gs.hessian(lambda p: np.sum(function(p)[0][0]))(p)
    assert "at 1.0\n" == capsys.readouterr().out


def test_products_with_unit_vectors_only_pick():
    def loss(w, x):
        return np.sum(np.log(1.0 + np.exp(x @ w)))

    w, x = np.linspace(-1.0, 1.0, 5), np.random.default_rng(0).normal(size=(7, 5))
    for chunk in (None, 2):
        source = gs.hessian(loss, chunk=chunk).source(w, x)
        assert 1 == source.count(" gemm(")
        sigmoid = 1.0 / (1.0 + np.exp(-x @ w))
        same(x.T @ np.diag(sigmoid * (1.0 - sigmoid)) @ x, gs.hessian(loss, chunk=chunk)(w, x))
    picked = gs.jacfwd(lambda w: x @ w)
    same(x, picked(w))
    assert "gem" not in picked.source(w)
    with np.errstate(all="ignore"):
        infinite = np.full((6, 12), np.inf)
        same(infinite, gs.jacfwd(lambda w: infinite @ w)(np.ones(12)))         # not inf * 0
