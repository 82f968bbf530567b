"""Jacobians of results that are one value, or that are numbers known while transpiling."""

import numpy as np
import pytest

import gradsmith


@pytest.mark.parametrize("transform", [gradsmith.jacrev, gradsmith.jacfwd])
def test_a_value_returned_twice(transform):
    def twice(x):
        y = x * x
        return y, {"again": y, "x": x, "and": x}

    jacobian, others = transform(twice)(np.array([1.0, 2.0]))
    expected = np.diag([2.0, 4.0])
    np.testing.assert_array_equal(jacobian, expected)
    np.testing.assert_array_equal(others["again"], expected)
    np.testing.assert_array_equal(others["x"], np.eye(2))
    np.testing.assert_array_equal(others["and"], np.eye(2))


@pytest.mark.parametrize("transform", [gradsmith.jacrev, gradsmith.jacfwd])
def test_numbers_have_zero_jacobians(transform):
    def numbers(x, w):
        return 2.0, [np.sum(x), 1], "text"

    first, (second, third), text = transform(numbers, argnums=(0, 1))(np.ones(3), {"a": 1.0})
    np.testing.assert_array_equal(first[0], np.zeros(3))
    np.testing.assert_array_equal(first[1]["a"], 0.0)
    np.testing.assert_array_equal(second[0], np.ones(3))
    np.testing.assert_array_equal(third[0], np.zeros(3))
    assert "text" == text


def test_hessians_of_numbers():
    assert (3, 3) == gradsmith.hessian(lambda x: 0.0)(np.ones(3)).shape
    assert (0, 0) == gradsmith.hessian(lambda x: sum(v * v for v in x))(np.zeros(0)).shape
