"""Recursive functions compiled: under every transform, without an end, in parallel lanes, and in a second process."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gradsmith as gs


def power(n, x):
    if n == 0:
        return 1.0
    half = power(n // 2, x)
    return half * half if n % 2 == 0 else half * half * x


def pairwise(x):
    if len(x) == 1:
        return np.sin(x[0])
    middle = len(x) // 2
    return pairwise(x[:middle]) * pairwise(x[middle:])


def endless(n, x):
    return x if n == 0 else endless(n - 1, x * 1.0001)


def endless_with_arrays(n, x):
    if n == 0:
        return np.sum(x)
    a = np.sin(x)
    b = np.outer(a, a)
    return endless_with_arrays(n - 1, np.cumsum(x) @ b) + np.sum(np.sort(a))


def test_a_number():
    n, x = 11, 1.1
    assert pytest.approx(x ** n) == gs.jit(power)(n, x)
    value, slope = gs.value_and_grad(power, argnums=1)(n, x)
    assert (pytest.approx(x ** n), pytest.approx(n * x ** (n - 1))) == (value, slope)
    assert pytest.approx(n * (n - 1) * x ** (n - 2)) == gs.hessian(power, argnums=1)(n, x)
    counts = np.array([0, 3, 11])
    np.testing.assert_allclose(gs.vmap(gs.grad(power, argnums=1), in_axes=(0, None))(counts, x),
                               counts * x ** (counts - 1.0))


def test_an_array_of_any_size():
    gradient, compiled = gs.grad(pairwise), gs.jit(pairwise)
    for size in (1, 2, 5, 300):
        x = np.linspace(1.0, 2.0, size)
        expected = np.prod(np.sin(x)) * np.cos(x) / np.sin(x)
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-12)
        assert pytest.approx(pairwise(x)) == compiled(x)
    x = np.linspace(1.0, 2.0, 12)[::2]
    np.testing.assert_allclose(gradient(x), np.prod(np.sin(x)) * np.cos(x) / np.sin(x), rtol=1e-12)


def test_value_and_linear_rest():
    x = np.array([1.0, 1.2, 0.7])
    expected = np.prod(np.sin(x)) * np.cos(x) / np.sin(x)
    value, pullback = gs.vjp(pairwise, x)
    assert pytest.approx(np.prod(np.sin(x))) == value
    np.testing.assert_allclose(pullback(2.0)[0], 2.0 * expected)
    value, push = gs.linearize(pairwise, x)
    assert pytest.approx(np.prod(np.sin(x))) == value
    assert pytest.approx(np.sum(expected)) == push(np.ones(3))


@pytest.mark.parametrize("fn, x", [(endless, 1.0), (endless_with_arrays, np.ones(3))])
def test_recursion_without_end(fn, x):
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        gs.jit(fn)(-1, x)
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        gs.grad(fn, argnums=1)(-1, x)
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        gs.vmap(fn)(np.array([3, -1]), np.stack([x, x]))
    assert np.isfinite(gs.jit(fn)(900 if fn is endless else 3, x))


def test_a_recursion_written_in_place_changes_the_callers_array():
    def reverse(a, lo, hi):
        if lo < hi:
            a[lo], a[hi] = a[hi], a[lo]
            reverse(a, lo + 1, hi - 1)

    x = np.arange(5.0)
    gs.jit(reverse)(x, 0, 4)
    np.testing.assert_array_equal([4.0, 3.0, 2.0, 1.0, 0.0], x)


PROGRAM = """
    import numpy as np
    import gradsmith as gs
    from gradsmith import cache

    def a(n, x):
        return x if n <= 0 else b(n - 1, x * 1.5) + a(n - 2, x)

    def b(n, x):
        return x * x if n <= 0 else a(n - 1, x + 1.0) * b(n - 2, x)

    def total(x):
        return x[0] if len(x) == 1 else total(x[:len(x) // 2]) + total(x[len(x) // 2:]) ** 2

    print(gs.grad(a, argnums=1)(5, 0.7))
    print(gs.grad(total)(np.arange(10.0)[::2]))
    print(cache.account.compiled)
"""


def test_a_second_process_compiles_nothing(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (subprocess.run([sys.executable, str(file)], env=environment, text=True, capture_output=True,
                                    check=True).stdout.splitlines() for _ in range(2))
    assert first[:-1] == second[:-1]
    assert int(first[-1]) > 0
    assert "0" == second[-1]
