"""The merge sort against NumPy's, compiled."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from gradsmith.kernels import argsort, sort


@njit
def sorted_copy(x, axis):
    return sort(x, axis)


@njit
def order(x, axis):
    return argsort(x, axis)


def with_ties(shape, dtype):
    return np.random.default_rng(7).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "bool"])
def test_sorts_every_axis(dtype):
    for shape in ((0,), (1,), (15,), (16,), (17,), (1000,)):
        x = with_ties(shape, dtype)
        np.testing.assert_array_equal(np.sort(x), sorted_copy(x, 0))
        np.testing.assert_array_equal(np.argsort(x, kind="stable"), order(x, 0))
    for shape in ((3, 40), (0, 3), (3, 0)):
        x = with_ties(shape, dtype)
        for axis in (0, 1):
            np.testing.assert_array_equal(np.sort(x, axis), sorted_copy(x, axis))
            np.testing.assert_array_equal(np.argsort(x, axis, kind="stable"), order(x, axis))


def test_nan_comes_last():
    x = np.array([3.0, np.nan, -np.inf, 0.0, np.nan, np.inf, -0.0, 1.0])
    np.testing.assert_array_equal(np.sort(x), sorted_copy(x, 0))
    np.testing.assert_array_equal(np.argsort(x, kind="stable"), order(x, 0))
    long = np.where(np.arange(100) % 7 == 0, np.nan, np.cos(np.arange(100)))
    np.testing.assert_array_equal(np.sort(long), sorted_copy(long, 0))
    np.testing.assert_array_equal(np.argsort(long, kind="stable"), order(long, 0))


def test_layouts_and_argument_left_alone():
    x = np.asfortranarray(with_ties((20, 5), "float64"))
    before = x.copy()
    for view in (x, x[::-1, ::2], x.T):
        for axis in (0, 1):
            np.testing.assert_array_equal(np.sort(view, axis), sorted_copy(view, axis))
            np.testing.assert_array_equal(np.argsort(view, axis, kind="stable"), order(view, axis))
    np.testing.assert_array_equal(before, x)
