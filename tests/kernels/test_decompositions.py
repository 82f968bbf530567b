"""Decompositions compiled, over dtypes, layouts and sizes: NumPy's results to the sign, and its errors."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from gradsmith.kernels import decompositions as d

SHAPES = [(1, 1), (3, 3), (5, 2), (2, 5), (1, 4), (4, 1), (0, 3), (3, 0), (12, 7)]
TOLERANCE = {np.float64: 1e-11, np.float32: 2e-4}
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@njit(nogil=True, error_model="numpy")
def general(a):
    m, n = a.shape
    k = min(m, n)
    u, s, vt = np.empty((m, k), a.dtype), np.empty(k, a.dtype), np.empty((k, n), a.dtype)
    d_svd(a, u, s, vt)
    values = np.empty(k, a.dtype)
    d_singular_values(a, values)
    q, r = np.empty((m, k), a.dtype), np.empty((k, n), a.dtype)
    d_qr(a, q, r)
    p = np.empty((n, m), a.dtype)
    d_pinv(a, 1e-15, p)
    return u, s, vt, values, q, r, p


@njit(nogil=True, error_model="numpy")
def symmetric(a, lower):
    n = len(a)
    w, v, values = np.empty(n, a.dtype), np.empty((n, n), a.dtype), np.empty(n, a.dtype)
    d_eigh(a, lower, w, v)
    d_eigvalsh(a, lower, values)
    return w, v, values


@njit(nogil=True, error_model="numpy")
def stacks(a):
    b, m, n = a.shape
    k = min(m, n)
    u, s, vt = np.empty((b, m, k), a.dtype), np.empty((b, k), a.dtype), np.empty((b, k, n), a.dtype)
    d_stacked_svd(a, u, s, vt)
    p = np.empty((b, n, m), a.dtype)
    d_stacked_pinv(a, 1e-15, p)
    return u, s, vt, p


d_svd, d_singular_values, d_qr, d_pinv = d.svd, d.singular_values, d.qr, d.pinv
d_eigh, d_eigvalsh, d_stacked_svd, d_stacked_pinv = d.eigh, d.eigvalsh, d.stacked_svd, d.stacked_pinv


def matrix(shape, dtype):
    return np.random.default_rng(shape[-1]).normal(size=shape).astype(dtype)


def layouts(a):
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    return a, np.asfortranarray(a), wide[..., ::2], a[::-1].copy()[::-1]


def assert_all_close(expected, actual, dtype):
    for want, got in zip(expected, actual, strict=True):
        assert want.shape == got.shape
        assert want.dtype == got.dtype
        np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_general_matrices(shape, dtype):
    a = matrix(shape, dtype)
    expected = (*np.linalg.svd(a, full_matrices=False), np.linalg.svd(a, compute_uv=False), *np.linalg.qr(a), np.linalg.pinv(a))
    for form in layouts(a):
        assert_all_close(expected, general(form), dtype)
        assert np.array_equal(form, a)
    assert_all_close(expected, general.py_func(a), dtype)


@every_dtype
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_symmetric_matrices(n, dtype):
    """The other triangle is not read."""
    a = matrix((n, n), dtype)
    for lower in (True, False):
        triangle = "L" if lower else "U"
        expected = (*np.linalg.eigh(a, triangle), np.linalg.eigvalsh(a, triangle))
        for form in layouts(a):
            assert_all_close(expected, symmetric(form, lower), dtype)


@every_dtype
def test_stacks(dtype):
    a = matrix((3, 4, 2), dtype)
    expected = (*np.linalg.svd(a, full_matrices=False), np.linalg.pinv(a))
    for form in layouts(a):
        assert_all_close(expected, stacks(form), dtype)


def test_errors():
    for function, args, message in ((general, (np.full((3, 3), np.nan),), "SVD did not converge"),
                                    (symmetric, (np.full((3, 3), np.nan), True), "Eigenvalues did not converge"),
                                    (symmetric, (np.zeros((2, 3)), True), "must be square")):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            function(*args)
    with pytest.raises(TypingError, match="takes arrays of"):
        general(np.zeros((2, 2), np.int64))
