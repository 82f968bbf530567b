"""A program as Python runs it, and its value, derivatives in both modes and batch as gradsmith does.

All through the IR's evaluator, so that hundreds of programs take seconds.  What Python raises must be raised in all of
them, with the same type and message.
"""

import copy
import functools

import numpy as np
import pytest
from tracing import run, traced

import gradsmith


def total(result):
    """One number that depends on all of a result."""
    if isinstance(result, (tuple, list)):
        s = 0.0
        for k, part in enumerate(result):
            s = s + (k + 1) * total(part)
        return s
    return np.sum(result)


def is_float(x):
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


def outcome(action):
    """("value", what it gives) or ("raises", the exception)."""
    try:
        with np.errstate(all="ignore"):
            return "value", action()
    except Exception as problem:
        return "raises", problem


def runs(f, *args):
    return lambda: run(traced(f, *copy.deepcopy(args)))


def parts_of(result):
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in parts_of(part)]
    return [result]


def assert_same(expected, actual, tolerance=1e-9):
    expected, actual = parts_of(expected), parts_of(actual)
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual):
        assert np.shape(e) == np.shape(a)
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def assert_raises_same(expected, kind, actual):
    assert kind == "raises", f"no exception: {actual!r} instead of {expected!r}"
    assert isinstance(actual, type(expected)), f"{actual!r} instead of {expected!r}"
    text, *_ = str(expected).splitlines() or [""]
    if not (isinstance(expected, AssertionError) and text.startswith("assert ")):      # what pytest adds to it
        assert text in str(actual)


def differences(f, args, k, step=1e-5):
    """Central differences of `total` of the result by the k-th argument."""
    def at(place, h):
        moved = list(copy.deepcopy(args))
        if isinstance(moved[k], float):
            moved[k] += h
        else:
            moved[k][place] += h
        with np.errstate(all="ignore"):
            return float(total(f(*moved)))

    if isinstance(args[k], float):
        return (at(None, step) - at(None, -step)) / (2 * step)
    found = np.zeros(args[k].shape)
    for place in np.ndindex(*args[k].shape):
        found[place] = (at(place, step) - at(place, -step)) / (2 * step)
    return found


def check_everywhere(f, *args, batch=True):
    """Value, gradient, forward mode and batch at these arguments agree with running the function."""
    floats = tuple(k for k, a in enumerate(args) if is_float(a))
    kind, expected = outcome(lambda: f(*copy.deepcopy(args)))
    slope = gradsmith.grad(lambda *xs: 1.0 * total(f(*xs)), argnums=floats)
    if kind == "raises":
        for g in (f, slope):
            assert_raises_same(expected, *outcome(runs(g, *args)))
    else:
        assert_same(expected, run(traced(f, *copy.deepcopy(args))))
        bars = run(traced(slope, *copy.deepcopy(args)))
        for k, bar in zip(floats, bars):
            np.testing.assert_allclose(bar, differences(f, args, k), rtol=1e-5, atol=1e-6)
        check_forward(f, args, floats, bars)
    if batch:
        check_batch(f, args, floats)


def check_forward(f, args, floats, bars):
    rng = np.random.default_rng(0)
    tangents = tuple(rng.normal(size=np.shape(args[k])) if isinstance(args[k], np.ndarray) else float(rng.normal())
                     for k in floats)

    def moved(*xs):
        whole = list(args)
        for k, x in zip(floats, xs):
            whole[k] = x
        return 1.0 * total(f(*whole))

    _, found = run(traced(lambda xs, ts: gradsmith.jvp(moved, xs, ts), tuple(args[k] for k in floats), tangents))
    np.testing.assert_allclose(found, sum(np.sum(b * t) for b, t in zip(bars, tangents)), rtol=1e-8, atol=1e-8)


def check_batch(f, args, floats, lanes=3):
    """vmap over moved arguments against a loop."""
    rng = np.random.default_rng(1)
    columns = [[a if m == 0 or k not in floats else type(a)(a + 0.7 * rng.normal()) if isinstance(a, float)
                else a + 0.7 * rng.normal(size=a.shape) for m in range(lanes)] for k, a in enumerate(args)]
    singles = [outcome(functools.partial(f, *copy.deepcopy(row))) for row in zip(*columns)]
    batched = gradsmith.vmap(f, in_axes=tuple(0 if k in floats else None for k in range(len(args))))
    found = outcome(runs(batched, *(np.stack(c) if k in floats else c[0] for k, c in enumerate(columns))))
    failed = next((problem for kind, problem in singles if kind == "raises"), None)
    if failed is not None:
        assert_raises_same(failed, *found)
        return
    kind, together = found
    if kind == "raises":
        raise together
    for lane, (_, expected) in enumerate(singles):
        assert_same(expected, [part[lane] for part in parts_of(together)] if isinstance(expected, (tuple, list))
                    else together[lane])


TRIPS = (0, 1, 2, 3, 7)


def ramp(n):
    """n numbers of both signs, none of them 0."""
    return np.arange(1.0, n + 1) * 0.37 - 0.9


def ramps():
    """Arguments of a function of one array, for loops of few and more trips."""
    return [(ramp(n),) for n in TRIPS]


def trips(x):
    """Arguments of a function of a number and how often to do something."""
    return [(x, n) for n in TRIPS]


def collect(programs):
    """A decorator that adds a program with its arguments to those to be checked; in a batch, the last ones alone."""
    def program(*arguments):
        def put(f):
            programs.extend(pytest.param(f, args, k == len(arguments) - 1, id=f"{f.__name__}-{k}")
                            for k, args in enumerate(arguments))
            return f

        return put

    return program
