"""Views of arrays in compiled code: the same memory where it can be, any layout, any dtype, nothing leaked."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from gradsmith.kernels.views import permuted, reshaped

X = np.arange(60.0).reshape(3, 4, 5)


@njit
def swap_last(x):
    return permuted(x, (0, 2, 1))


@njit
def as_matrix(x, n):
    return reshaped(x, (n, x.size // n))


@njit
def flat(x):
    return reshaped(x, (x.size,))


@njit
def number(x):
    return reshaped(x, ())


def test_axes_in_another_order():
    for x in (X, np.asfortranarray(X), X[:, ::-2], X[:0]):
        np.testing.assert_array_equal(np.transpose(x, (0, 2, 1)), swap_last(x))
        np.testing.assert_array_equal(np.transpose(x, (0, 2, 1)), permuted(x, (0, 2, 1)))
    assert np.shares_memory(X, swap_last(X))


def test_another_shape():
    for x in (X, X.copy()[:, ::-1], np.asfortranarray(X), X.transpose(2, 0, 1)):
        np.testing.assert_array_equal(x.reshape(12, 5), as_matrix(x, 12))
        np.testing.assert_array_equal(x.reshape(12, 5), reshaped(x, (12, 5)))
    assert np.shares_memory(X, as_matrix(X, 12))
    assert as_matrix(X.T, 12).flags.c_contiguous


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_any_dtype_and_size(dtype):
    for x in (np.ones((2, 3)), np.ones((0, 3)), np.ones((3, 0)).T, np.arange(6).reshape(2, 3).T, np.ones(())):
        x = x.astype(dtype)
        np.testing.assert_array_equal(x.ravel(), flat(x))
        assert flat(x).dtype == x.dtype
    assert number(np.ones((1, 1), dtype)).shape == ()


def test_another_number_of_elements_is_refused():
    @njit
    def wrong(x):
        return reshaped(x, (7,))

    with pytest.raises(ValueError, match="cannot reshape"):
        wrong(X)


def test_wrong_axes_are_refused():
    with pytest.raises(TypingError, match="axes"):
        njit(lambda x: permuted(x, (0, 1, 1)))(X)


def test_memory_outlives_its_first_owner():
    rows = as_matrix(np.full((3, 4, 5), 2.0)[:, ::-1], 12)
    columns = swap_last(np.full((3, 4, 5), 3.0))
    assert (rows == 2.0).all()
    assert (columns == 3.0).all()
