"""Globals and closures of Functions: read at each call, on the fast path and on the slow one."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.kernels.guard import Miss

rate = 2.0
table = np.ones(3)


def is_fast(made, *args):
    """Whether the fast path serves this call."""
    try:
        made._fast(*args)
    except (Miss, TypeError):
        return False
    return True


def helper(x):
    return x + 1


def uses_globals(x):
    return rate * np.sum(table * helper(x))


def test_globals_are_read_at_call_time(monkeypatch):
    made, x = gs.jit(uses_globals), np.ones(3)
    assert 12.0 == made(x)
    monkeypatch.setitem(globals(), "rate", 3.0)
    assert 18.0 == made(x) and is_fast(made, x)
    for other in (np.float32(3.0), 3, np.float64(3.0), np.array(3.0), np.array([3.0]), True):
        monkeypatch.setitem(globals(), "rate", other)
        expected = uses_globals(x)
        got = made(x)
        assert type(expected) is type(got) and np.shape(expected) == np.shape(got), other
        np.testing.assert_allclose(expected, got)
    monkeypatch.setitem(globals(), "rate", 1.0)
    for other in (np.arange(3.0), np.ones(3, np.float32), np.ones(1), np.ones((2, 3)), np.ones((3, 3))[:, 0], 2.0,
                  np.ones(3, int)):
        monkeypatch.setitem(globals(), "table", other)
        assert uses_globals(x) == made(x)
    monkeypatch.setitem(globals(), "helper", lambda x: x * 5)
    assert uses_globals(x) == made(x)
    monkeypatch.setitem(globals(), "rate", None)
    with pytest.raises(TypeError, match="NoneType"):
        made(x)
    monkeypatch.delitem(globals(), "rate")
    with pytest.raises(NameError, match="rate"):
        made(x)
    monkeypatch.setitem(globals(), "rate", 1.0)
    assert uses_globals(x) == made(x)


def test_captured_arrays_change_in_place():
    weights = np.ones(3)
    made = gs.grad(lambda x: np.sum(weights * x))
    x = np.ones(3)
    np.testing.assert_allclose(weights, made(x))
    weights[:] = 5.0
    np.testing.assert_allclose(weights, made(x))
    assert not np.shares_memory(weights, made(x))


def test_closures_are_read_at_call_time():
    def make(k):
        def f(x):
            return k * x

        def change(to):
            nonlocal k
            k = to
        return gs.jit(f), change

    (one, change), (two, _) = make(2.0), make(3.0)
    assert (4.0, 6.0) == (one(2.0), two(2.0))
    change(np.float32(5.0))
    assert np.float64 is type(one(np.float64(2.0))) and 10.0 == one(2.0)
    change((7.0,)[0])
    assert 14.0 == one(2.0)


def test_loops_that_make_functions_share_code():
    made = [gs.grad(lambda x, k=k: np.sum(x * k) ** 2) for k in (1.0, 2.0)]
    made += [gs.grad((lambda k: lambda x: np.sum(x * k) ** 2)(k)) for k in (1.0, 2.0)]
    x = np.ones(2)
    for one, k in zip(made, (1.0, 2.0, 1.0, 2.0), strict=True):
        np.testing.assert_allclose(one(x), 4 * k * k * np.ones(2))
    entries = {id(one._specialisations[0].entry) for one in made[2:]}
    assert 1 == len(entries), "the same generated module is compiled once"
