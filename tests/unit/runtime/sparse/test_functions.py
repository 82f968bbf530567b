"""sparse_jacobian and sparse_hessian beside their dense siblings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from unit.runtime.containers import Model, Pair

import gradsmith as gs


def same(expected: Any, actual: Any) -> None:
    """The containers of the dense derivative, with its numbers in matrices of its dtype."""
    if sparse.issparse(actual):
        assert "csr" == actual.format
        assert np.asarray(expected).dtype == actual.dtype
        np.testing.assert_allclose(actual.toarray(), np.reshape(expected, actual.shape), rtol=1e-11, atol=1e-12)
    elif isinstance(expected, dict):
        assert list(expected) == list(actual)
        for key in expected:
            same(expected[key], actual[key])
    elif isinstance(expected, (tuple, list)):
        assert type(expected) is type(actual) and len(expected) == len(actual)
        for left, right in zip(expected, actual):
            same(left, right)
    elif isinstance(expected, Model):
        same((expected.weights, expected.rate), (actual.weights, actual.rate))
    else:
        assert expected == actual


PLACES = np.array([3, 1, 1, 4, 0])


def everything(x):
    """Gathers, writes in place, loops, branches, scans, products, reductions: a bit of each."""
    n = len(x)
    y = np.zeros(2 * n)
    y[:n] = x[::-1] * 2.0
    y[PLACES] += np.sin(x[PLACES])
    for i in range(1, n):
        y[n + i] = x[i] * x[i - 1] - np.cos(y[i])
    if x[0] > 0:
        y[0] = x[2] ** 2
    grid = np.reshape(y[:4], (2, 2)).T
    return np.concatenate([y, np.cumsum(x[:3]), grid[0] * grid[1], [np.sum(x[-2:] ** 2)], np.where(x > 0, x, x[0])[2:4]])


def chain(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_jacobian_beside_the_dense_one():
    found, dense = gs.sparse_jacobian(everything), gs.jacfwd(everything)
    for seed, size in ((0, 6), (1, 6), (2, 9)):
        x = np.random.default_rng(seed).normal(size=size)
        for values in (x, -x):                                # the other way of the branch; the other side of `where`
            same(dense(values), found(values))
    assert found(x).nnz < 0.4 * dense(x).size


def test_hessian_beside_the_dense_one():
    found, dense = gs.sparse_hessian(chain), gs.hessian(chain)
    for size in (2, 3, 40):
        x = np.random.default_rng(size).normal(size=size)
        same(dense(x), found(x))
        assert 3 * size - 2 == found(x).nnz
    assert (3, 0) == found.passes(x)
    spread = gs.sparse_hessian(lambda x: x[0] * np.sum(x[1:] ** 2))
    same(gs.hessian(lambda x: x[0] * np.sum(x[1:] ** 2))(x), spread(x))
    assert (2, 0) == spread.passes(x)


def test_patterns_that_depend_on_data_are_found_anew():
    def function(x, places):
        return x[places] * x[np.argmax(x)]

    found = gs.sparse_jacobian(function)
    x, places = np.array([1.0, 3.0, 2.0]), np.array([0, 1, 0, 2])
    for values, at in ((x, places), (x, places), (-x, places), (x, places[::-1].copy()), (x, places)):
        same(gs.jacfwd(function)(values, at), found(values, at))
    places[:] = 1                                             # changed in place
    same(gs.jacfwd(function)(x, places), found(x, places))


def test_patterns_are_kept_where_they_cannot_change():
    found = gs.sparse_jacobian(chained)
    x = np.linspace(0.0, 1.0, 7)
    found(x)
    (plan,) = found._plans
    found(x + 1.0)
    assert plan is found._plans[0] and 1 == len(found._plans)
    assert {} == plan.values
    found(x[:-1])
    found(x)
    assert 2 == len(found._plans)


def chained(x):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i] * x[i - 1]
    return y


scale, order = 2.0, np.array([0, 2, 1])


def test_captured_values_are_read_anew(monkeypatch):
    found = gs.sparse_jacobian(lambda x: x[order] * scale)
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(2.0 * np.eye(3)[order], found(x).toarray())
    monkeypatch.setitem(globals(), "scale", 5.0)
    monkeypatch.setitem(globals(), "order", np.array([1, 1, 0]))
    np.testing.assert_array_equal(5.0 * np.eye(3)[[1, 1, 0]], found(x).toarray())


def test_results_whose_length_the_function_finds_out():
    def products(x):
        found = []
        for v in x:
            if v > 0:
                found.append(v * x[0])
            if len(found) == 3:
                break
        return np.array(found)

    found = gs.sparse_jacobian(products)
    x = np.array([1.0, -2.0, 3.0, 4.0, -5.0, 6.0])
    np.testing.assert_array_equal(
        [[2, 0, 0, 0, 0, 0], [3, 0, 1, 0, 0, 0], [4, 0, 0, 1, 0, 0]], found(x).toarray())
    np.testing.assert_array_equal([[2, -1, 0, 0, 0, 0], [5, 0, 0, 0, -1, 0]], found(-x).toarray())


def test_a_matrix_belongs_to_the_caller():
    found = gs.sparse_jacobian(chained)
    x = np.array([0.0, 1.0, 2.0])
    expected = found(x).toarray()
    matrix = found(x)
    matrix.eliminate_zeros()
    matrix.data[:], matrix.indices[:] = 7.0, 0
    np.testing.assert_array_equal(expected, found(x).toarray())


@pytest.mark.parametrize("size", [0, 1, 2])
def test_few_elements(size):
    x = np.arange(1.0, size + 1.0)
    same(np.diag(2 * x), gs.sparse_jacobian(lambda x: x**2)(x))
    same(np.zeros((0, size)), gs.sparse_jacobian(lambda x: x[:0])(x))
    same(np.diag(2.0 * np.ones(size)), gs.sparse_hessian(lambda x: np.sum(x**2))(x))


def test_trees():
    def function(p, m):
        return {"a": p[0][1:] * p[0][:-1], "b": [np.sum(p[1]["k"]), (p[0][0], 3.0)], "c": "text", "d": Pair(
            m.rate * m.weights, [np.arange(2)]), "e": Model(m.weights**2, None)}

    args = ((np.array([1.0, 2.0, 4.0]), {"k": np.ones((2, 2)), "j": 2.0}), Model(np.float32([1.0, 2.0]), np.float32(3)))
    for argnums in (0, 1, (1, 0), [-1]):
        same(gs.jacfwd(function, argnums)(*args), gs.sparse_jacobian(function, argnums)(*args))


def test_hessians_of_trees():
    def function(p, q):
        return np.sum(p["a"] ** 2 * p["b"][0]) + np.sum(q[1:] * q[:-1]) * p["b"][1]

    args = {"a": np.arange(3.0), "b": np.array([2.0, 3.0])}, np.arange(4.0)
    for argnums in (0, (1, 0)):
        same(gs.hessian(function, argnums)(*args), gs.sparse_hessian(function, argnums)(*args))


def test_aux():
    x = np.array([1.0, 2.0])
    matrix, aux = gs.sparse_jacobian(lambda x: (x**2, {"twice": 2 * x, "n": 3}), has_aux=True)(x)
    same(np.diag(2 * x), matrix)
    assert [2.0, 4.0] == aux["twice"].tolist() and 3 == aux["n"]
    matrix, aux = gs.sparse_jacobian(lambda x: (np.ones(2), 2 * x), has_aux=True)(x)
    assert 0 == matrix.nnz and [2.0, 4.0] == aux.tolist()
    matrix, aux = gs.sparse_hessian(lambda x: (np.sum(x**3), 2 * x), has_aux=True)(x)
    same(np.diag(6 * x), matrix)
    assert [2.0, 4.0] == aux.tolist()


def test_complex_results():
    x = np.array([1.0, 2.0, 3.0])
    def function(x):
        return np.append(x[1:] * 1j, np.sum(x))

    found = gs.sparse_jacobian(function)
    same(gs.jacfwd(function)(x), found(x))
    assert 0 == found.passes(x).cotangents


def test_recursion_and_printing(capsys):
    def halved(x, n):
        if n == 0:
            return x
        return 0.5 * halved(x, n - 1)

    def function(x, n):
        print("n is", n)
        return np.append(halved(x, n), x[0] ** 2)

    x = np.array([1.0, 2.0])
    found = gs.sparse_jacobian(function)
    assert 5 == found.sparsity(x, 3).nnz      # all of what a recursive function gives depends on all that it gets
    assert "" == capsys.readouterr().out
    np.testing.assert_allclose([[0.125, 0.0], [0.0, 0.125], [2.0, 0.0]], found(x, 3).toarray())
    assert "n is 3\n" == capsys.readouterr().out


def test_given_sparsity_and_chunks():
    x = np.random.default_rng(0).normal(size=30)

    def function(x):
        return x[2:] * x[1:-1] * x[:-2]

    expected = gs.jacfwd(function)(x)
    found = gs.sparse_jacobian(function)
    pattern = found.sparsity(x)
    assert np.bool_ == pattern.dtype and 84 == pattern.nnz
    for given_pattern in (pattern, pattern.toarray(), sparse.csc_matrix(pattern)):
        same(expected, gs.sparse_jacobian(function, sparsity=given_pattern)(x))
    for chunk in (1, 2, 7):
        same(expected, gs.sparse_jacobian(function, chunk=chunk)(x))
    with pytest.raises(ValueError, match=r"shape \(2, 2\), but there are 28 rows and 30 columns"):
        gs.sparse_jacobian(function, sparsity=np.eye(2))(x)


def test_refusals():
    x = np.ones(2)
    for call, kind, text in (
            (lambda: gs.sparse_jacobian(np.sin)(np.arange(2)), TypeError, "array of dtype int64"),
            (lambda: gs.sparse_jacobian(lambda p: p["a"] * p["k"])({"a": x, "k": 2}), TypeError, r"p\['k'\], which is"),
            (lambda: gs.sparse_jacobian(np.sin)(x + 1j), TypeError, "sparse_jacobian with respect to a complex"),
            (lambda: gs.sparse_jacobian(np.sin, 1)(x), ValueError, "argnums of sparse_jacobian names argument 1"),
            (lambda: gs.sparse_jacobian(np.sin, chunk=0), ValueError, "chunk of sparse_jacobian"),
            (lambda: gs.sparse_jacobian(3), TypeError, "takes a function"),
            (lambda: gs.sparse_jacobian(lambda x, *, k: x * k)(x, k=1.0), TypeError, "by position, and k has none"),
            (lambda: gs.sparse_hessian(np.sin)(x), TypeError, "one number"),
            (lambda: gs.jit(lambda x: gs.sparse_jacobian(np.sin)(x))(x), NotImplementedError, "transpiled code"),
    ):
        with pytest.raises(kind, match=text):
            call()


def indexed(x, read, written, added):
    y = np.zeros(len(read))
    y[written] = np.sin(x[read])
    np.add.at(y, added, x[read] * x[added])
    total = 0.0
    for i in range(len(read)):
        total = total + y[read[i]] if written[i] % 2 == 0 else y[i] * x[i]
        y[i] = total
    return y


INDEXED = gs.sparse_jacobian(indexed), gs.jacfwd(indexed)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 80), st.integers(0, 2**31))
def test_random_indices(size, seed):
    rng = np.random.default_rng(seed)
    x, spread = rng.normal(size=size), int(rng.integers(1, size + 1))
    read, written, added = (rng.integers(0, spread, size) for _ in range(3))
    found, dense = INDEXED
    same(dense(x, read, written, added), found(x, read, written, added))


@gs.custom_jvp
def soft(x):
    return np.log1p(np.exp(x))


@soft.defjvp
def _soft_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return soft(x), t / (1.0 + np.exp(-x))


@gs.custom_vjp
def rounded(x):
    return np.round(x)


rounded.defvjp(lambda x: (np.round(x), None), lambda _, ct: (ct,))


def test_rules_tell_what_depends_on_what():
    x = np.random.default_rng(0).normal(size=6)

    def with_loop(x):
        y = rounded(2.0 * x)                  # whose own derivative is zero everywhere
        for i in range(1, len(x)):
            y[i] = soft(y[i]) * x[i - 1]
        return y

    found = gs.sparse_jacobian(with_loop)
    same(gs.jacfwd(with_loop)(x), found(x))
    assert 11 == found(x).nnz
    bend = gs.sparse_hessian(lambda x: np.sum(soft(x[1:] * x[:-1])))
    same(gs.hessian(lambda x: np.sum(soft(x[1:] * x[:-1])))(x), bend(x))
    assert 16 == bend(x).nnz


def test_rules_of_a_derivative_that_is_not_linear():
    @gs.custom_vjp
    def limited(x):
        return 3.0 * x

    limited.defvjp(lambda x: (3.0 * x, None), lambda _, ct: (np.clip(3.0 * ct, -1.0, 1.0),))
    same(np.ones((1, 9)), gs.sparse_jacobian(lambda x: np.sum(limited(x)))(np.ones(9)))


def test_arrays_of_other_libraries():
    x = np.array([1.0, 2.0, 3.0])
    found = gs.sparse_jacobian(lambda p: p["a"][1:] * p["a"][:-1])
    expected = found({"a": x})["a"].toarray()
    np.testing.assert_array_equal(expected, found({"a": gs.device_put(x)})["a"].toarray())
    jnp = pytest.importorskip("jax.numpy")
    np.testing.assert_allclose(expected, found({"a": jnp.asarray(x, "float32")})["a"].toarray(), rtol=1e-6)
