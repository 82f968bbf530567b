"""gradsmith.lax: JAX's control flow called from Python, and what it may do inside transpiled functions."""

import numpy as np
import pytest

from gradsmith import Array, grad, jit, lax, tree


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


X = np.arange(4.0)


@pytest.mark.parametrize("program, args", [
    (lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.5 + i + x, x), (1.5, 0)),
    (lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.5 + i + x, x), (1.5, 3)),
    (lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1.0, c[1] * x), (x, 1.0)), (1.5,)),
    (lambda x: lax.scan(lambda c, v: (c + v, {"y": c * 10 + v}), 0.0, x), (X,)),
    (lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x, reverse=True), (X,)),
    (lambda x, n: lax.scan(lambda c, _: (c * 0.5, c), x, None, length=n), (2.0, 3)),
    (lambda x: lax.map(lambda row: np.sum(row * row), x), (X.reshape(2, 2),)),
    (lambda x, k: lax.switch(k, [lambda v: v, lambda v: v * 2, lambda v: v * 3], x), (2.0, 7)),
    (lambda x, k: lax.switch(k, [lambda v: v, lambda v: v * 2, lambda v: v * 3], x), (2.0, -7)),
    (lambda x: lax.cond(x > 0, lambda v: v * 2, lambda v: -v, x), (1.0,)),
    (lambda x: lax.cond(x > 0, lambda v: v * 2, lambda v: -v, x), (-1.0,)),
])
def test_control_flow_inside_transpiled_functions(program, args):
    expected, actual = tree.leaves(program(*args)), tree.leaves(jit(program)(*args))
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual):
        np.testing.assert_allclose(a, e)


def test_lengths_that_disagree_inside_transpiled_functions():
    with pytest.raises(ValueError, match="length"):
        jit(lambda x, y: lax.scan(lambda c, v: (c, v[0]), 0.0, (x, y)))(np.ones(3), np.ones(4))
