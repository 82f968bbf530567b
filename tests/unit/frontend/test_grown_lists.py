"""Lists that loops append to: carried as an array and a length, then read, summed and turned into arrays."""

import numpy as np
import pytest
from loose import check_values
from tracing import failure

from gradsmith import jit

TRIPS = pytest.mark.parametrize("n", [0, 1, 2, 3, 7])


@TRIPS
def test_one_element_a_trip(n):
    def f(x, n):
        path = [x]
        for i in range(n):
            x = 0.5 * x * x + i
            path.append(x)
        return np.array(path), len(path), sum(path), path[0], path[-1]

    check_values(f, 0.5, n)


@pytest.mark.parametrize("x", [[1.0, -1.0, 2.0], [-1.0, -2.0], []])
def test_elements_of_some_trips(x):
    def f(x):
        out = [1.5]
        for v in x:
            if v > 0:
                out.append(v * 2)
        s = 0.0
        for w in out:
            s += w
        return s, len(out), max(out)

    check_values(f, np.array(x))


@TRIPS
def test_several_elements_and_break(n):
    def f(x, n):
        xs = []
        for i in range(n):
            if i % 2 == 0:
                xs.append(x + i)
            else:
                xs.append(x - i)
                xs.append(0.5)
            if i > 3:
                break
        t = 0.0
        for k, v in enumerate(xs):
            t = t * 0.5 + v * k
        return t, max(xs) if len(xs) > 0 else 0.0

    check_values(f, 0.5, n)


def test_rows():
    def f(x):
        rows = []
        for row in x:
            rows.append(row * 2.0)
        return np.array(rows)

    check_values(f, np.arange(6.0).reshape(3, 2))


def test_compiled():
    def f(x, n):
        out = []
        for i in range(n):
            if x * i < 3.0:
                out.append(x * i)
        return np.sum(np.array(out) ** 2)

    compiled = jit(f)
    for n in (0, 1, 2, 5):
        np.testing.assert_allclose(compiled(0.7, n), f(0.7, n))


@TRIPS
def test_a_while_that_appends(n):
    def f(x, n):
        out = []
        while x < n:
            x = x + 1.0
            out.append(x)
        return np.array(out)

    check_values(f, 1.0, n)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_lists_of_known_length_are_given_back(n):
    def f(x):
        squares = [v * v for v in x]
        trail = []
        for v in x:
            trail.append((v, 2.0 * v))
        return {"squares": squares, "trail": trail}, [v + 1.0 for v in x]

    check_values(f, np.arange(1.0, n + 1))
    assert [2.0, 4.0] == jit(lambda x: [2.0 * v for v in x])(np.array([1.0, 2.0]))


def test_what_is_refused():
    def returned(x, n):
        out = []
        for _ in range(n):
            out.append(x)
        return out

    def mixed(x, n):
        out = []
        for _ in range(n):
            out.append(x)
            out.append("text")
        return len(out)

    assert failure(returned, 1.0, 3).code == "E111"
    assert failure(mixed, 1.0, 3).code == "E122"
