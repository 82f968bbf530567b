"""Segments run again for a part of the elements at a time: where that may be, and that every element stays the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.optimize.stepping import compare as compared
from unit.optimize.stepping import made, steps

from gradsmith.transpiler.optimize import parts


def compare(fun, shape, wanted=(0,)):
    """Whether it runs in parts; then all elements must be the same as before."""
    return compared(fun, shape, ("scalars", "parts"), wanted)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    for name in ("BYTES", "NEAR", "FEWEST"):
        monkeypatch.setattr(parts, name, 1)


LOCAL = {
    "slices": "u[1:-1] = u[1:-1] + c * u[1:-1] * (u[2:] - u[:-2])",
    "far": "u[3:-2] = np.sin(u[:-5]) * u[5:] + u[3:-2]",
    "elements": "for i in range(1, len(u) - 1):\n    v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1])\nu, v = v, u",
    "downwards": "for i in range(len(u) - 2, 0, -1):\n    v[i] = u[i] * u[i + 1] - c * u[i - 1]\nu, v = v, u",
    "coefficients": "u[1:] = u[1:] + k[1:] * np.tanh(u[:-1])",
    "borders": "u[1:-1] = u[1:-1] * u[2:] + c * u[:-2]\nu[0] = u[1] * u[2]\nu[-1] = np.cos(u[-3])",
    "fixed ends": "u[1:-1] = u[1:-1] * u[2:] + c * u[:-2]\nu[0] = 0.0\nu[-1] = c",
    "two fields": "v[:-1] = v[:-1] + c * (u[1:] - u[:-1]) * u[1:]\nu[1:] = u[1:] + c * v[1:] * (v[1:] - v[:-1])",
    "branches": "for i in range(1, len(u) - 1):\n    v[i] = u[i - 1] ** 2 if u[i] > 0.1 else np.exp(-u[i + 1])\n"
                "u, v = v, u",
    "two passes": "u[1:] = u[1:] * u[:-1]\nu[:-1] = np.sin(u[:-1]) + c * u[1:]",
    "size": "u = u * u + 1.0 / len(u)",
    "time": "u[1:-1] = u[1:-1] + c * np.cos(0.1 * t) * u[1:-1] * u[2:]",
}
LOCAL_2D = {
    "slices": "u[1:-1, 1:-1] = u[1:-1, 1:-1] + c * u[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 2:])",
    "elements": "for i in range(1, u.shape[0] - 1):\n    for j in range(1, u.shape[1] - 1):\n"
                "        v[i, j] = u[i, j] + c * u[i, j] * (u[i + 1, j] - u[i - 1, j - 1])\nu, v = v, u",
    "along rows": "for i in range(u.shape[0]):\n    for j in range(1, u.shape[1]):\n        u[i, j] += c * u[i, j - 1] ** 2",
}
NOT_LOCAL = {
    "round": "u[1:-1] = u[1:-1] * u[2:] + c * u[:-2]\nu[0] = u[-2]\nu[-1] = u[1]",
    "turned": "u = u * np.roll(u, 1)",
    "sum": "u = u * np.sum(u) * c",
    "norm": "u[1:] = u[1:] * u[:-1] / (1 + np.max(np.abs(u)))",
    "recurrence": "for i in range(1, len(u)):\n    u[i] = u[i] * c + u[i - 1] ** 2",
    "backwards": "for i in range(len(u) - 2, -1, -1):\n    u[i] = u[i] * c + u[i + 1] ** 2",
    "position": "for i in range(len(u)):\n    u[i] = u[i] * u[i] + 0.01 * i",
    "mirrored": "u = u * u[::-1]",
    "one element": "u = u * u[3] * c",
    "one for all": "u = u * u[0]",
    "sorted": "u = np.sort(u) * u",
    "halves": "h = len(u) // 2\nu[:h] = u[:h] * u[len(u) - h:]",
    "every other": "u[::2] = u[::2] ** 2 * c",
}


@pytest.mark.parametrize("n", [6, 47, 120])
@pytest.mark.parametrize("name", LOCAL)
def test_steps_on_neighbours(name, n):
    assert compare(made(LOCAL[name]), (n,))


@pytest.mark.parametrize("shape", [(6, 4), (120, 5), (70, 7)])
@pytest.mark.parametrize("name", LOCAL_2D)
def test_rows(name, shape):
    assert compare(made(LOCAL_2D[name]), shape)


@pytest.mark.parametrize("name", NOT_LOCAL)
def test_what_is_not_local_stays_whole(name):
    assert not compare(made(NOT_LOCAL[name]), (120,))


def test_sums_over_elements_stay_whole(monkeypatch):
    monkeypatch.setattr(parts, "FEWEST", 100)       # steps that only run forwards sum nothing up
    fun = made(LOCAL["slices"])
    assert compare(fun, (120,), (0,)) and not compare(fun, (120,), (0, 2))


@given(steps(), st.integers(12, 150), st.sampled_from([1, 2, 3, 6]))
@settings(max_examples=60, deadline=None)
def test_random_steps(step, n, every):
    compare(made(step, before="v = u * u; w = 1.0 - u", every=every, after="return np.sum(u * v * w)"), (n,))
