"""Derivatives of decompositions, compiled: against differences and JAX, and where values coincide."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import build_func, const, for_loop, int_const, size_value
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At, Span
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ops.matrices import outer
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()

RNG = np.random.default_rng(5)
W = RNG.normal(size=(4, 4))
GENERAL = RNG.normal(size=(3, 3)) + np.eye(3)


def differences(f, a, step=1e-3):
    """Central differences, extrapolated twice."""
    found = np.zeros_like(a)
    for at in np.ndindex(*a.shape):
        e = np.zeros_like(a)
        e[at] = 1.0
        rows = [(f(a + h * e) - f(a - h * e)) / (2 * h) for h in (step, step / 2, step / 4)]
        rows = [(4 * fine - coarse) / 3 for coarse, fine in zip(rows, rows[1:])]
        found[at] = (16 * rows[1] - rows[0]) / 15
    return found


def check(f, a, want=None, rtol=1e-7):
    want = differences(f, a) if want is None else want
    value, slope = gradsmith.value_and_grad(f)(a)
    np.testing.assert_allclose(value, f(a), rtol=1e-12, atol=1e-13)
    assert slope.shape == a.shape
    np.testing.assert_allclose(slope, want, rtol=rtol, atol=rtol)
    t = np.random.default_rng(1).normal(size=a.shape)
    np.testing.assert_allclose(gradsmith.jvp(f, (a,), (t,))[1], np.sum(want * t), rtol=10 * rtol, atol=10 * rtol)


def rebuilt(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.sum(((u * s) @ vt) * W[: a.shape[0], : a.shape[1]])


def rebuilt_squares(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.sum(((u * s) @ vt) ** 2)


def polar(a):
    u, _, vt = np.linalg.svd(a)
    return np.sum((u @ vt) * W[: a.shape[0], : a.shape[1]])


def root(a):
    w, v = np.linalg.eigh(a + a.T)
    return np.sum(((v * np.sqrt(w)) @ v.T) * W[: a.shape[0], : a.shape[1]])


def root_of_lower(a):
    w, v = np.linalg.eigh(a)
    return np.sum((v * np.exp(w)) @ v.T * W[: a.shape[0], : a.shape[1]])


def root_in_a_loop():
    """The same as IR, summed in a loop over the eigenvalues."""
    n = symbol("n")
    matrix = Type("float64", (n, n))

    def body(a, weights):
        w, v = ops.eigh(a, lower=True)

        def step(k, total):
            column = ops.load(v, k, index=(Span(0, n), At()))
            size = ops.exp(ops.load(w, k, index=(At(),)))
            part = outer(column, column, False) * ops.broadcast(size, shape=(n, n), axes=())
            return (total + ops.sum(part * weights, axes=(0, 1)),)

        return for_loop(int_const(0), size_value(n), (const(0.0, F64),), step)

    return build_func("f", [("a", matrix), ("weights", matrix)], body)


DEGENERATE = {"equal": np.eye(3), "two equal": np.diag([1.0, 1.0, 2.0, 3.0]), "general": GENERAL,
              "nearly equal": np.diag([1.0, 1.0 + 1e-11, 2.0])}


@pytest.mark.parametrize("a", [*DEGENERATE.values(), RNG.normal(size=(3, 2)), RNG.normal(size=(2, 3)), np.zeros((3, 2)),
                               np.ones((3, 3)), np.diag([1.0, 1.0, 0.0, 0.0])])
def test_a_matrix_rebuilt_from_its_svd(a):
    """Also where singular values are equal or 0."""
    check(rebuilt, a, W[: a.shape[0], : a.shape[1]])
    check(rebuilt_squares, a, 2 * a)


@pytest.mark.parametrize("a", DEGENERATE.values(), ids=DEGENERATE)
def test_polar_factor(a):
    check(polar, a)


@pytest.mark.parametrize("a", [*list(DEGENERATE.values())[:2], 3 * np.eye(3) + GENERAL @ GENERAL.T, np.eye(1)])
def test_functions_of_symmetric_matrices(a):
    check(root, a)


@pytest.mark.parametrize("a", [np.eye(3), GENERAL + GENERAL.T, np.diag([1.0, 2.0, 2.0])])
def test_vectors_used_in_a_loop(a):
    func, weights = root_in_a_loop(), W[:3, :3]
    want, t = differences(root_of_lower, a), np.random.default_rng(1).normal(size=a.shape)
    found = evaluate(vjp(func, [True, False]), a, weights, np.float64(1.0))[-1]
    np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-7)
    slope = evaluate(jvp(func, [True, False]), a, weights, t)[-1]
    np.testing.assert_allclose(slope, np.sum(want * t), rtol=1e-6)


@pytest.mark.parametrize("a", [np.eye(3), np.zeros((2, 2)), GENERAL + GENERAL.T, np.diag([1.0, 2.0, 2.0])])
def test_the_lower_triangle_is_what_eigh_reads(a):
    check(root_of_lower, a)
    assert not np.triu(gradsmith.grad(root_of_lower)(a), 1).any()


def spectral(a):
    return np.sum(np.linalg.eigvalsh(a + a.T) ** 3)


@pytest.mark.parametrize("a", [np.eye(3), GENERAL])
def test_second_derivatives_of_functions_of_eigenvalues(a):
    """Sum of cubes of the eigenvalues of s = a + a.T: slope 6 s @ s."""
    s = a + a.T
    check(spectral, a, 6 * s @ s)
    t = np.random.default_rng(2).normal(size=a.shape)
    want = 6 * ((t + t.T) @ s + s @ (t + t.T))
    np.testing.assert_allclose(gradsmith.hvp(spectral, (a,), (t,))[0], want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function, a", [
    (root, 3 * np.eye(3) + GENERAL @ GENERAL.T), (root, np.eye(3)), (root, np.diag([1.0, 2.0, 2.0])),
    (polar, GENERAL), (polar, np.eye(3)), (polar, np.diag([1.0, 1.0, 2.0])),
])
def test_second_derivatives_through_vectors(function, a):
    """Also where values coincide."""
    t = np.random.default_rng(2).normal(size=a.shape)
    slope, step = gradsmith.grad(function), 1e-3
    rows = [(slope(a + h * t) - slope(a - h * t)) / (2 * h) for h in (step, step / 2)]
    want = (4 * rows[1] - rows[0]) / 3
    np.testing.assert_allclose(gradsmith.hvp(function, (a,), (t,))[0], want, rtol=1e-6, atol=1e-6)


def test_singular_values_alone():
    for a in (GENERAL, RNG.normal(size=(3, 4))):
        check(lambda a: np.sum(np.linalg.svd(a, compute_uv=False) * np.array([3.0, 2.0, 1.0])), a)
    check(lambda a: np.linalg.norm(a, ord="nuc"), GENERAL)
    check(lambda a: np.linalg.cond(a), GENERAL)


def test_qr():
    def f(a):
        q, r = np.linalg.qr(a)
        return np.sum(np.sin(q)) + np.sum(r * np.cos(r))

    for a in (GENERAL, RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4))):
        check(f, a, rtol=1e-6)


def test_pinv():
    def f(a):
        return np.sum(np.sin(np.linalg.pinv(a)))

    for a in (GENERAL, RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4))):
        check(f, a, rtol=1e-6)


def test_stacks_and_batches():
    a = RNG.normal(size=(5, 3, 3))

    def of_stack(a):
        u, s, vt = np.linalg.svd(a)
        return np.sum(u[:, :, :1] * s[:, None, :1] * vt[:, :1, :])

    check(of_stack, a, rtol=1e-6)
    slopes = gradsmith.vmap(gradsmith.grad(polar))(a)
    np.testing.assert_allclose(slopes, [gradsmith.grad(polar)(x) for x in a], rtol=1e-10)


def test_in_single_precision():
    a = np.diag([1.0, 1.0, 2.0]).astype(np.float32)
    slope = gradsmith.grad(rebuilt_squares)(a)
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, 2 * a, rtol=1e-5, atol=1e-5)


def test_nan_is_an_error():
    with pytest.raises(np.linalg.LinAlgError, match="SVD did not converge"):
        gradsmith.jit(rebuilt_squares)(np.full((2, 2), np.nan))


@pytest.mark.jax
def test_against_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    with jax.enable_x64():
        def theirs(a):
            u, s, vt = jnp.linalg.svd(a, full_matrices=False)
            q, r = jnp.linalg.qr(a)
            return jnp.sum(jnp.abs(u) * s) + jnp.sum(vt ** 3 * jnp.sign(vt)) + jnp.sum(jnp.abs(q)) + jnp.sum(r ** 2)

        for shape in ((3, 3), (4, 2)):
            a = np.random.default_rng(9).normal(size=shape)
            want = jax.grad(theirs)(a)

            def ours(a):
                u, s, vt = np.linalg.svd(a, full_matrices=False)
                q, r = np.linalg.qr(a)
                return np.sum(np.abs(u) * s) + np.sum(vt ** 3 * np.sign(vt)) + np.sum(np.abs(q)) + np.sum(r ** 2)

            np.testing.assert_allclose(gradsmith.grad(ours)(a), want, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("fun, slope", [
    (lambda x: np.sum(np.linalg.eigh(x)[1] * np.exp(np.linalg.eigh(x)[0]) @ np.linalg.eigh(x)[1].T),
     np.exp(1.0) * np.array([[1.0, 0.0], [2.0, 1.0]])),
    (lambda x: np.sum(np.linalg.eigh(x)[1] * np.exp(np.linalg.eigvalsh(x)) @ np.linalg.eigh(x)[1].T),
     np.exp(1.0) * np.array([[1.0, 0.0], [2.0, 1.0]])),
    (lambda x: np.sum(np.linalg.svd(x)[0] * np.linalg.svd(x)[1] ** 3 @ np.linalg.svd(x)[2]), np.full((2, 2), 3.0)),
    (lambda x: np.sum(np.linalg.eigh(x)[1] * np.exp(np.linalg.eigh(1.0 * x)[0]) @ np.linalg.eigh(x + 0.0)[1].T),
     np.exp(1.0) * np.array([[1.0, 0.0], [2.0, 1.0]])),
], ids=["eigh", "eigvalsh", "svd", "of matrices computed apart"])
def test_a_function_of_equal_decompositions_at_equal_values(fun, slope):
    """It is smooth in the results of all calls together, not in those of each."""
    np.testing.assert_allclose(gradsmith.grad(fun)(np.eye(2)), slope, rtol=1e-12, atol=1e-12)
    forward = [[gradsmith.jvp(fun, (np.eye(2),), (one,))[1] for one in row] for row in np.eye(4).reshape(2, 2, 2, 2)]
    np.testing.assert_allclose(forward, slope, rtol=1e-12, atol=1e-12)
