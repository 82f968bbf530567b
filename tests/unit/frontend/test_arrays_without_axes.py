"""Arrays without axes: other names may share them, and what changes them is seen through all names; NumPy's scalars are
values."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.special
from everywhere import TRIPS, check_everywhere, collect, ramp
from tracing import run, traced

from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.frontend.views import VIEWS, gives_array
from gradsmith.transpiler.ops.spelling import find_spelling

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


@program((X,))
def products_of_all_axes(x):
    s, p = np.tensordot(x, x, 1), scipy.special.polygamma(1, np.abs(x[0]))
    t, q = s, p
    t *= 2
    q += x[1]
    return s * p


@program((X,))
def differences_of_order_zero(x):
    y = x.copy()
    d = np.diff(y, n=0)
    d[0] = 5 * x[1]
    return y[0] + d[1]


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


OPERANDS = {"scalar": np.float64(0.5), "vector": X, "matrix": np.array([[2.0, 0.3], [0.1, 1.0]]), "one": X[:1], "0": 0,
            "()": ()}
# Of which they make an array of another kind than the types of the operands tell.
IN_PLACE = {np.put, np.place, np.putmask, np.copyto, np.fill_diagonal, np.random.shuffle}


def functions_that_numpy_has():
    for module in (np, np.linalg, scipy.special):
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type) and find_spelling(function) is not None and (
                    function not in VIEWS | IN_PLACE):
                yield pytest.param(function, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", functions_that_numpy_has())
def test_what_gives_arrays_without_axes_is_known(function):
    """Of all functions, called with one or two operands of some kinds each."""
    for count in (1, 2):
        for kinds in itertools.product(OPERANDS, repeat=count):
            operands = [OPERANDS[kind] for kind in kinds]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    result = function(*operands)
                except Exception:       # not for such operands
                    continue
            if isinstance(result, (np.ndarray, np.generic)) and not result.ndim:
                assert isinstance(result, np.ndarray) == gives_array(function, operands), kinds
