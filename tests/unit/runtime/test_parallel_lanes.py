"""Parallel loops over lanes of which some raise."""

import numpy as np
import pytest

import gradsmith
from gradsmith.specialise import _or_serial

RNG = np.random.default_rng(0)
LANES = 50


def settled(a, b, k):
    """Checks, a routine that raises, and an array of the lane's own, behind a loop that only some lanes run."""
    n, place, seen = 0, k, np.zeros(3)
    while b[0] > 0.05 and n < 20:
        b = 0.4 * np.linalg.solve(a, b)
        place += 3
        seen[n % 3] += b[min(place, 9) - 6]
        if b[1] > 4.0:
            raise ValueError(f"{n} trips, {b[1]:.1f}")
        n += 1
    return seen.sum() + place, n


@pytest.fixture(scope="module")
def versions():
    made = gradsmith.vmap(settled).lower(*arguments())
    return made.entry, made.parallel_entry()


def arguments():
    a = np.eye(4) + 0.1 * RNG.normal(size=(LANES, 4, 4))
    return a, RNG.uniform(0.5, 1.0, (LANES, 4)), RNG.integers(0, 7, LANES)


def test_values(versions):
    serial, parallel = versions
    args = arguments()
    for a, b in zip(serial(*args), parallel(*args), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("change, kind", [
    (lambda a, b, k: b.__setitem__([9, 7], [1.0, 90.0, 0.0, 0.0]), ValueError),
    (lambda a, b, k: a.__setitem__([31, 30], 0.0), np.linalg.LinAlgError),
])
def test_exceptions_leave_the_loop(versions, change, kind):
    args = arguments()
    change(*args)
    for version in versions:
        with pytest.raises(kind) as raised:
            version(*args)
        assert kind is np.linalg.LinAlgError or raised.value.args[-1] == 7


def test_long_calls_raise_the_users_exception(monkeypatch):
    """The run time takes the parallel version for long calls; what it raises names the first lane."""
    for name, value in {"LONG": -1.0, "LARGE": 0, "GAIN": 1e9, "is_available": lambda: True,
                        "cores_are_free": lambda: True}.items():
        monkeypatch.setattr(f"gradsmith.parallel.{name}", value)
    called = []
    monkeypatch.setattr("gradsmith.specialise._or_serial", lambda parallel, serial: lambda *args: called.append(
        args) or _or_serial(parallel, serial)(*args))
    batched, args = gradsmith.vmap(lambda a, b, k: settled(a, b, k)[0]), arguments()
    results = [batched(*args) for _ in range(4)]
    assert len(called) == 1
    for result in results[1:]:
        np.testing.assert_array_equal(results[0], result)
    args[1][[40, 20]] = 1.0, 90.0, 0.0, 0.0
    with pytest.raises(ValueError, match=r"0 trips, .* \(in lane 20\)"):
        batched(*args)
    with pytest.raises(IndexError, match=r"out of bounds .* \(in lane 3\)"):
        batched(*args[:2], np.where(np.arange(LANES) == 3, -(2 ** 40), args[2]))
