"""`gradsmith.checking`: finds what is wrong, accepts what is right, at every kind of argument."""

from dataclasses import dataclass

import numpy as np
import pytest

import gradsmith
from gradsmith.checking import Report, Row, check, check_batch, differences, slope


def loss(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


def test_every_float_argument_is_checked_by_the_complex_step():
    rng = np.random.default_rng(1)
    report = check(loss, rng.normal(size=3), rng.normal(size=(4, 3)))
    assert ["value", "gradient by w", "gradient by x", "forward mode"] == [row.what for row in report.rows]
    assert ["complex step"] * 2 == [row.against for row in report.rows[1:3]]
    assert report
    assert "loss: agrees" in str(report)


def test_argnums():
    report = check(loss, np.ones(3), np.ones((2, 3)), argnums=1)
    assert ["value", "gradient by x", "forward mode"] == [row.what for row in report.rows]


def with_stop(x):
    return np.sum(gradsmith.stop_gradient(x) * x)


def test_a_wrong_gradient_raises_and_says_where():
    with pytest.raises(ArithmeticError, match=r"gradient by x disagrees with complex step .*at x\["):
        check(with_stop, np.array([1.0, 2.0]))
    report = check(with_stop, np.array([1.0, 2.0]), raises=False)
    assert not report
    assert "DISAGREES" in str(report)
    assert [row.what for row in report.rows if not row.agrees] == ["gradient by x"]


def step(u, k):
    u[1:-1] += k * (u[2:] - 2.0 * u[1:-1] + u[:-2])


def test_a_function_that_returns_nothing():
    u = np.linspace(0.0, 1.0, 5) ** 2
    with pytest.raises(TypeError, match=r"(?s)step returns None, so .*\| def step\(u, k\):.*gradsmith\.functional"):
        check(step, u, 0.1)
    assert check(gradsmith.functional(step), u, 0.1)


def rough(x):
    return np.sum(np.maximum(x, 0.5) * np.abs(x))


def test_differences_where_complex_numbers_do_not_serve():
    report = check(rough, np.array([-1.0, 0.2, 0.9]))
    assert "differences" == report.rows[1].against


def vector(x, y):
    return x * y, {"total": np.sum(x)}


def test_results_in_containers():
    assert check(vector, np.array([1.0, 2.0]), 3.0)


def tree(params):
    return np.sum(params["b"] * params["a"][0]) + params["a"][1]


def test_arguments_in_containers_in_any_order_of_keys():
    assert check(tree, {"b": np.ones(3), "a": (2.0, 1.5)})


@dataclass
class Point:
    x: float
    y: float


def at_point(p):
    return p.x * p.y ** 2


def test_dataclasses():
    assert check(at_point, Point(1.5, -2.0))


def test_single_precision_has_wider_tolerances():
    x = np.array([0.5, 1.5], np.float32)
    report = check(with_exp, x)
    assert 1e-3 <= report.rows[1].tolerance


def with_exp(x):
    return np.sum(np.exp(x))


def test_only_some_elements_of_large_arrays():
    assert check(with_exp, np.linspace(-1, 1, 10_000), most=5)


def test_integers_cannot_be_checked():
    with pytest.raises(TypeError, match="int64"):
        check(loss, np.ones(3), np.ones((2, 3), int), argnums=1)
    with pytest.raises(TypeError, match="no float among"):
        check(with_exp, np.arange(3))
    with pytest.raises(ValueError, match="argnums names argument 4"):
        check(with_exp, np.ones(3), argnums=4)


def test_the_arguments_are_left_alone():
    x = np.array([1.0, 2.0])
    check(with_exp, x)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def cubed(x, r):
    return r * x ** 3


def test_batches():
    assert check_batch(cubed, np.linspace(0, 1, 4), 2.0, in_axes=(0, None))
    assert check_batch(vector, np.ones((2, 3)), np.ones((3,)), in_axes=(1, 0))


@pytest.mark.parametrize("function, derivative", [(np.sin, np.cos), (np.exp, np.exp), (lambda x: x ** 5, lambda x: 5 * x ** 4)])
def test_differences_converge(function, derivative):
    found, uncertain = differences(lambda h: function(0.7 + h), 0.02)
    assert abs(found - derivative(0.7)) <= max(uncertain, 1e-15)
    assert uncertain < 1e-10


def test_slopes_say_how_they_were_found():
    assert "complex step" == slope(lambda h: np.sin(0.3 + h), 0.3)[2]
    assert "differences" == slope(lambda h: abs(0.3 + h) ** 3, 0.3)[2]
    assert "differences" == slope(lambda h: float(np.sin(np.real(0.3 + h))), 0.3)[2]


def test_nan_never_agrees():
    assert not Row("gradient", "differences", float("nan"), 1e-7).agrees
    assert not Report("f", [Row("gradient", "differences", float("inf"), 1e-7)])
