"""Compiled functions and derivatives called from people's own `numba.njit` code."""

import os
import subprocess
import sys
from collections import namedtuple

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError, NumbaWarning, TypingError

import gradsmith as gs

Params = namedtuple("Params", "w b")
rate = 0.5


def energy(x, w):
    return np.sum(w * np.sin(x))


slope = gs.grad(energy)


@numba.njit
def step(x, w):
    return x - 0.1 * slope(x, w)


def test_in_every_layout_and_size():
    for n in (0, 1, 3):
        np.testing.assert_allclose(step(np.ones(n), 2 * np.ones(n)), np.ones(n) - 0.2 * np.cos(1.0), rtol=1e-15)
    np.testing.assert_allclose(step(np.ones((4, 2))[:, 0], np.ones(4)), np.ones(4) - 0.1 * np.cos(1.0), rtol=1e-15)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    np.testing.assert_allclose(step(frozen, np.ones(3)), np.ones(3) - 0.1 * np.cos(1.0), rtol=1e-15)
    single = step(np.ones(3, np.float32), np.ones(3, np.float32))
    np.testing.assert_allclose(single, np.ones(3) - 0.1 * np.cos(1.0), rtol=1e-6)


def test_nothing_returned_is_overwritten_by_the_next_call():
    call = numba.njit(lambda x, w: slope(x, w))
    first = call(np.zeros(3), np.ones(3))
    call(np.ones(3), np.ones(3))
    np.testing.assert_array_equal(np.ones(3), first)


def test_values_beside_gradients():
    both = gs.value_and_grad(lambda x: x * x)

    @numba.njit
    def newton(x):
        value, slope = both(x)
        return x - value / slope

    assert 1.0 == newton(2.0)


def test_results_that_are_nested():
    both = gs.value_and_grad(lambda p, x: np.sum(p.w * x) * p.b, argnums=(0, 1))
    call = numba.njit(lambda p, x: both(p, x))
    value, (d_p, d_x) = call(Params(np.ones(2), 3.0), np.array([1.0, 2.0]))
    assert 9.0 == value
    assert type(d_p) is Params
    np.testing.assert_array_equal([3.0, 6.0], d_p.w)
    assert 3.0 == d_p.b
    np.testing.assert_array_equal([3.0, 3.0], d_x)


def test_keyword_arguments_and_defaults():
    g = gs.grad(lambda x, scale=2.0: scale * x**3)
    assert 6.0 == numba.njit(lambda x: g(x))(1.0)
    assert 9.0 == numba.njit(lambda x: g(x, scale=3.0))(1.0)
    assert 9.0 == numba.njit(lambda x: g(scale=3.0, x=x))(1.0)
    with pytest.raises(TypingError, match="is called with other"):
        numba.njit(lambda x: g(x, other=3.0))(1.0)


def test_inside_a_parallel_loop():
    g = gs.grad(lambda x: np.sin(x) * rate)

    @numba.njit(parallel=True)
    def slopes(x, out):
        for i in numba.prange(len(x)):
            out[i] = g(x[i])

    x, out = np.linspace(0.0, 1.0, 200), np.empty(200)
    slopes(x, out)
    np.testing.assert_allclose(rate * np.cos(x), out, rtol=1e-14)


def test_batches():
    rows = gs.vmap(energy, in_axes=(0, None))
    x = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(np.sin(x).sum(-1), numba.njit(lambda x, w: rows(x, w))(x, np.ones(3)), rtol=1e-14)


def test_what_is_read_from_outside_is_read_at_every_call():
    global rate
    data = np.arange(3.0)
    g = gs.grad(lambda x: rate * np.sum(data * x))
    call = numba.njit(lambda x: g(x))
    rate = 0.5
    np.testing.assert_array_equal([0.0, 0.5, 1.0], call(np.ones(3)))
    rate = 2.0
    data = np.array([1.0, 1.0, 3.0])
    np.testing.assert_array_equal([2.0, 2.0, 6.0], call(np.ones(3)))
    data[0] = 7.0
    np.testing.assert_array_equal([14.0, 2.0, 6.0], call(np.ones(3)))
    rate = 2
    with pytest.raises(TypeError, match="reads rate, which was of type float64 .* and is now of type int64"):
        call(np.ones(3))
    rate = 0.5


def test_exceptions_leave_compiled_code():
    g = gs.grad(lambda x, i: x[i] ** 2)
    call = numba.njit(lambda x, i: g(x, i))
    np.testing.assert_array_equal([0.0, 2.0], call(np.ones(2), 1))
    with pytest.raises(IndexError):
        call(np.ones(2), 2)


def test_sizes_that_were_taken_for_equal():
    add = gs.jit(lambda a, b: a + b)
    call = numba.njit(lambda a, b: add(a, b))
    np.testing.assert_array_equal([2.0, 2.0], call(np.ones(2), np.ones(2)))
    with pytest.raises(Exception, match="some that it took for equal differ"):
        call(np.ones(1), np.ones(2))


@pytest.mark.parametrize("fun, arg, message", [
    (lambda x: {"x": x}, 1.0, "returns a dict: in compiled code, it must return"),
    (lambda x: "text", 1.0, "returns 'text', which compiled code cannot hold"),
    (lambda x: x, "text", "must be numbers, arrays or tuples of them, not unicode_type"),
    (lambda x: x, np.array(["2020"], "M8[D]"), "must be numbers or arrays of them, not datetime64"),
    (lambda x: np.median(x, keepdims=3, nothing=2), np.ones(2), "error.E"),
])
def test_what_compiled_code_cannot_call(fun, arg, message):
    compiled = gs.jit(fun)
    with pytest.raises(TypingError, match=message):
        numba.njit(lambda x: compiled(x))(arg)


def test_callers_are_not_cached_by_numba(tmp_path):
    """It would not see that the function behind has changed."""
    program = tmp_path / "program.py"
    program.write_text(
        "import numba, numpy as np, gradsmith\n"
        "g = gradsmith.grad(lambda x: np.sum(x ** 2))\n"
        "@numba.njit(cache=True)\n"
        "def direct(x): return g(x)\n"
        "between = numba.njit(lambda x: g(x))\n"
        "@numba.njit(cache=True)\n"
        "def indirect(x): return between(x)\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import program as made
    finally:
        sys.path.remove(str(tmp_path))
    with pytest.warns(NumbaWarning, match="Cannot cache compiled function \"direct\""):
        np.testing.assert_array_equal([2.0], made.direct(np.ones(1)))
    with pytest.raises(NumbaError, match="leave out cache=True"):
        made.indirect(np.ones(1))
    assert not list(tmp_path.rglob("*.nbc"))


def test_that_numba_lets_go_of_a_function():
    """A caller may outlive the name of the Function that it calls."""
    def made():
        g = gs.grad(lambda x: x**3)
        return numba.njit(lambda x: g(x))
    call = made()
    assert 12.0 == call(2.0)
    assert 12.0 == call(np.float32(2.0))


def test_without_compiled_code():
    """NUMBA_DISABLE_JIT=1 runs all of it in Python."""
    program = ("import numba, gradsmith\n"
               "g = gradsmith.grad(lambda x: x ** 3, source='lambda x: x ** 3')\n"
               "print(numba.njit(lambda x: g(x))(2.0))")
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
                          capture_output=True, text=True)
    assert "12.0" == done.stdout.strip(), done.stderr
