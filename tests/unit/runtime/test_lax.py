"""gradsmith.lax: JAX's control flow called from Python, and what it may do inside transpiled functions."""

import numpy as np
import pytest

from gradsmith import Array, grad, jit, lax


def test_loops_from_python():
    assert 10 == lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    assert 7 == lax.fori_loop(5, 5, lambda i, total: total + i, 7)
    assert 128 == lax.while_loop(lambda v: v < 100, lambda v: 2 * v, 1)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_from_python(reverse):
    xs = {"x": np.arange(4.0)}
    carry, ys = lax.scan(lambda c, x: (c + x["x"], {"y": c * 10 + x["x"]}), 0.0, xs, reverse=reverse)
    expected, carries = np.zeros(4), 0.0
    for k in (range(4) if not reverse else range(3, -1, -1)):
        expected[k], carries = carries * 10 + k, carries + k
    assert carries == carry
    assert type(ys["y"]) is Array
    np.testing.assert_array_equal(ys["y"], expected)


def test_scan_over_no_arrays_and_map():
    carry, ys = lax.scan(lambda c, _: (c + 1, c), 0, None, length=3)
    assert 3 == carry
    assert [0, 1, 2] == ys.tolist()
    assert [0, 1, 4] == lax.map(lambda x: x * x, np.arange(3)).tolist()
    with pytest.raises(ValueError, match="lengths"):
        lax.scan(lambda c, x: (c, x), 0, (np.ones(3), np.ones(4)))
    with pytest.raises(ValueError, match="lengths"):
        lax.scan(lambda c, x: (c, x), 0, None)


def test_choices_from_python():
    assert 2 == lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1)
    assert 0 == lax.cond(np.bool_(False), lambda x: x + 1, lambda x: x - 1, 1)
    assert "b" == lax.switch(7, [lambda: "a", lambda: "b"])
    assert "a" == lax.switch(-7, [lambda: "a", lambda: "b"])
    assert [1, -2] == lax.select(np.array([True, False]), np.array([1, 2]), np.array([-1, -2])).tolist()
    with pytest.raises(TypeError, match="same shapes"):
        lax.select(True, np.ones(2), np.ones(3))
    with pytest.raises(TypeError, match="which"):
        lax.select(np.array([True]), np.ones(2), np.ones(2))


def test_choices_inside_transpiled_functions():
    x = np.array([-1.0, 2.0])
    np.testing.assert_array_equal(jit(lambda x: lax.cond(x.ndim == 1, lambda a: a * 2, lambda a: a, x))(x), 2 * x)
    np.testing.assert_array_equal(jit(lambda x: lax.select(x > 0, x, 3 * x))(x), [-3, 2])
    np.testing.assert_array_equal(grad(lambda x: np.sum(lax.select(x > 0, x, 3 * x)))(x), [3, 1])
    np.testing.assert_array_equal(grad(lambda x: np.sum(x * lax.stop_gradient(x)))(x), x)


@pytest.mark.parametrize("loop", [
    lambda x: lax.fori_loop(0, 5, lambda i, c: c + x, x),
    lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: c + 1, x),
    lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x),
    lambda x: lax.map(lambda y: y, x),
])
def test_loops_inside_transpiled_functions_are_refused_at_the_users_line(loop):
    with pytest.raises(NotImplementedError, match=r"lax\.\w+ inside a transpiled function(.|\n)*test_lax.py"):
        jit(loop)(np.ones(3))
