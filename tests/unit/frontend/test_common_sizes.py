"""Sizes that values decide: of results of lanes, which must agree, and of results that have cotangents."""

import numpy as np
import pytest

import gradsmith as gs

rng = np.random.default_rng(3)
A = rng.normal(size=(3, 6))
V = A[0]
PLACES = np.array([0, 3, 4])


def window(x, k):
    return x[k:k + 2] * x[k]


def positive(x):
    return x[x > 0] * 2.0


def doubled(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 0:
            kept.append(x[i] * 2.0)
    return np.array(kept)


def rows(x):
    """Of as many columns as there are positive numbers, which a loop counts."""
    count = 0
    for i in range(len(x)):
        if x[i] > 0:
            count += 1
    y = np.zeros((2, count))
    for i in range(2):
        y[i] = x[:count] ** 2
    return y


def test_windows_at_places_of_a_batch():
    wanted = np.stack([window(x, k) for x, k in zip(A, PLACES)])
    batched = gs.vmap(window)
    np.testing.assert_array_equal(wanted, batched(A, PLACES))
    np.testing.assert_array_equal(wanted.T, gs.vmap(window, out_axes=1)(A, PLACES))
    twice = gs.vmap(gs.vmap(window, in_axes=(None, 0)), in_axes=(0, None))(A, PLACES[:2])
    np.testing.assert_array_equal([[window(x, k) for k in PLACES[:2]] for x in A], twice)
    slopes = [gs.jacfwd(window)(x, int(k)) for x, k in zip(A, PLACES)]
    np.testing.assert_allclose(gs.vmap(gs.jacfwd(window))(A, PLACES), slopes, rtol=1e-14)
    by_rows = gs.jacrev(lambda x: batched(x, PLACES))(A)
    np.testing.assert_allclose(gs.jacfwd(lambda x: batched(x, PLACES))(A), by_rows, rtol=1e-14)
    np.testing.assert_allclose([by_rows[k, :, k] for k in range(3)], slopes, rtol=1e-14)


@pytest.mark.parametrize("pick", [positive, doubled])
def test_elements_that_each_lane_picks(pick):
    x = np.array([[1.0, -1.0, 2.0], [3.0, 4.0, -5.0]])
    np.testing.assert_array_equal([[2.0, 4.0], [6.0, 8.0]], gs.vmap(pick)(x))
    slope = gs.grad(lambda x: np.sum(gs.vmap(pick)(x) ** 2))(x)
    np.testing.assert_allclose(slope, np.where(x > 0, 8.0 * x, 0.0), rtol=1e-14)
    with pytest.raises(ValueError, match=r"agree on the size of a result.*lane 1"):
        gs.vmap(pick)(np.array([[1.0, -1.0], [2.0, 2.0]]))


def test_no_lanes_tell_no_size():
    with pytest.raises(gs.TranspileError, match="there are none"):
        gs.vmap(window)(A[:0], PLACES[:0])


def test_cotangents_of_results_whose_sizes_values_decide():
    count = int(np.sum(V > 0))
    ct = rng.normal(size=(2, count))
    wanted = np.zeros(6)
    wanted[:count] = 2.0 * V[:count] * ct.sum(axis=0)
    np.testing.assert_allclose(gs.vjp(rows, V)[1](ct)[0], wanted, rtol=1e-14)
    inside = gs.jit(lambda x, ct: gs.vjp(rows, x)[1](ct)[0])
    np.testing.assert_allclose(inside(V, ct), wanted, rtol=1e-14)
    np.testing.assert_allclose(gs.jacrev(rows)(V), gs.jacfwd(rows)(V), rtol=1e-14)
    np.testing.assert_allclose(np.einsum("ij,ijk->k", ct, gs.jacrev(rows)(V)), wanted, rtol=1e-13)
    picked = gs.jit(lambda x, ct: gs.vjp(positive, x)[1](ct)[0])
    np.testing.assert_allclose(picked(V, ct[0])[V > 0], 2.0 * ct[0], rtol=1e-14)
    with pytest.raises(ValueError, match="shapes do not fit"):
        inside(V, np.ones((2, count + 1)))


def test_stablehlo_needs_sizes_that_are_numbers():
    with pytest.raises(gs.TranspileError, match="StableHLO needs every size as a number"):
        gs.stablehlo(gs.vmap(window))(A, PLACES)
