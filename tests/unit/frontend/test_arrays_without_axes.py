"""Arrays without axes: other names may share them, and what changes them is seen through all names; NumPy's scalars are
values."""

import numpy as np
import pytest
from everywhere import TRIPS, check_everywhere, collect, ramp
from tracing import run, traced

from gradsmith.transpiler.errors import TranspileError

PROGRAMS = []
program = collect(PROGRAMS)
X = np.array([0.7, -0.3])


def tripled(t):
    t += t + t
    return t


@program((X,))
def chosen(x):
    s = np.where(x[0] > 0, x[0], x[1])
    t = s
    t *= 2
    return s * x[1]


@program((X,))
def handed_to_a_function(x):
    s = np.where(x[0] > x[1], x[0], x[1])
    r = tripled(s)
    return s + r


@program((X,))
def a_scalar_handed_to_a_function(x):
    s = np.float64(x[0])
    r = tripled(s)
    return s + r


@program((X,))
def made(x):
    z, c, a = np.zeros(()), np.copy(x[0]), np.array(x[1])
    y, d, b = z, c, a
    y += x[0]
    d -= 1
    b **= 2
    return z + 2 * c + 3 * a


@program((X,))
def views(x):
    y = x[:1].copy()
    v, w = np.squeeze(y), y.reshape(())
    v *= x[1]
    w += 2
    return y[0] * v + w


@program((X,))
def written(x):
    z = np.full((), x[0])
    z[()] = z * x[1]
    z[...] += 1
    np.add(z, x[0], out=z)
    y = np.asarray(x[1])
    y.fill(x[0])
    return z * y


@program((X,))
def in_a_list_and_a_closure(x):
    s = np.where(x[0] > 0, x[0], x[1])
    known, later = [s], lambda: s * 2
    s += x[1]
    return known[0] * 3 + later()


@program((X,))
def copies(x):
    s = np.where(x[0] > 0, x[0], x[1])
    c, a, p, m = s.copy(), s.astype(float), +s, s * 1
    s += 5
    return c + 2 * a + 3 * p + 4 * m


def ints(x, n):
    k = np.where(n > 1, 1, 0)
    total = np.array(0.0)
    for i in range(k + 1):
        total += x[i] * x[k] + np.sum(x[k:])
    for _ in range(np.array(2)):
        total *= np.zeros((np.array(2), 3)).size
    return total


@pytest.mark.parametrize("n", [1, 2])
def test_ints(n):
    check_everywhere(ints, X, n)


def loops(x, n):
    s, best = np.array(0.0), 0.5
    for i in range(n):
        old = s
        s += x[i % 2]
        if x[i % 2] > 0:
            s -= 2 * x[0]
        best = np.where(best > s, best * x[1], s * best + 1)
    return s + (old if n else 0.0) + best


@pytest.mark.parametrize("n", TRIPS)
def test_loops(n):
    check_everywhere(loops, X, n)


@pytest.mark.parametrize("f, args, batch", PROGRAMS)
def test_programs(f, args, batch):
    check_everywhere(f, *args, batch=batch)


def kinds(x):
    return [float(isinstance(s, np.ndarray)) for s in (
        np.where(x[0] > 0, 1.0, x[0]), np.array(x[0]), np.asarray(x[0]), np.copy(x[0]), x[0], x[0] * 1, np.sin(x[0]),
        np.sum(x), np.squeeze(x[:1]), np.array(1) + 1, np.zeros(()))]


def test_kinds():
    assert run(traced(kinds, X)) == kinds(X)


def test_half_a_number_is_not_added_to_an_int():
    def f(x):
        s = np.array(1)
        s += x[0]
        return s

    with pytest.raises(TranspileError, match="Cannot cast ufunc 'add' output"):
        traced(f, ramp(2))
