"""States that a tape keeps are written straight into its rows, and every element stays what it was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.optimize.stepping import compare, made, steps

STOPS = ("parts", "write_ahead")
AHEAD = {
    "slices": "u[1:-1] = u[1:-1] + c * u[1:-1] * (u[2:] - u[:-2])",
    "elements": "for i in range(1, len(u) - 1):\n    v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1])\nu, v = v, u",
    "downwards": "for i in range(len(u) - 2, 0, -1):\n    v[i] = u[i] * u[i + 1] - c * u[i - 1]\nu, v = v, u",
    "three": "for i in range(1, len(u) - 1):\n    w[i] = u[i] * u[i + 1] + c * v[i - 1]\nu, v, w = w, u, v",
    "new array": "x = np.zeros_like(u)\nx[1:] = u[1:] * u[:-1]\nu = x",
    "borders": "u[1:-1] = u[1:-1] * u[2:] + c * u[:-2]\nu[0] = u[1] * u[2]",
    "number beside": "s += np.sum(u[1:] * u[:-1])\nu[1:-1] = u[1:-1] * u[2:] + c * u[:-2]",
}
AHEAD_2D = {
    "slices": "u[1:-1, 2:-1] = u[1:-1, 2:-1] + c * u[1:-1, 2:-1] * (u[2:, 1:-2] + u[:-2, 3:])",
    "elements": "for i in range(1, u.shape[0] - 1):\n    for j in range(1, u.shape[1] - 1):\n"
                "        v[i, j] = u[i, j] + c * u[i, j] * (u[i + 1, j] - u[i - 1, j - 1])\nu, v = v, u",
}
NOT = {
    "read before": "v[0] = c\nj = min(m, 3)\nx = v[j] * c\nfor i in range(1, len(u) - 1):\n"
                   "    v[i] = u[i] * u[i + 1] + x\nu, v = v, u",
    "own neighbour": "for i in range(1, len(u)):\n    u[i] = u[i] * c + u[i - 1] ** 2",
    "some elements": "u[3] = u[3] * u[4]",
    "branch": "for i in range(1, len(u) - 1):\n    if u[i] > 0:\n        v[i] = u[i] * u[i - 1]\nu, v = v, u",
    "all": "u = u * u + c * k",
    "turned": "u = u * np.roll(u, 1)",
    "read later": "u[1:-1] = u[1:-1] * u[2:] + c\nv = v + u * u",
    "linear": "u[1:-1] = u[2:] + c * u[:-2]",
}


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", AHEAD)
def test_steps(name, trips):
    fun = made(AHEAD[name], before="v = u * k; w = k * k; s = 0.0", every=None, after="return np.sum(u * v * w) + s")
    assert compare(fun, (11,), STOPS, trips=trips)


@pytest.mark.parametrize("name", AHEAD)
def test_steps_in_segments(name):
    assert compare(made(AHEAD[name], before="v = u * k; w = k * k; s = 0.0", after="return np.sum(u * v) + s"), (11,), STOPS)


@pytest.mark.parametrize("shape", [(7, 6), (2, 5), (5, 2), (4, 0)])
@pytest.mark.parametrize("name", AHEAD_2D)
def test_boxes(name, shape):
    assert compare(made(AHEAD_2D[name], every=None), shape, STOPS)


@pytest.mark.parametrize("name", NOT)
def test_what_stays_as_it_is(name):
    assert not compare(made(NOT[name], every=None), (11,), STOPS)


@given(steps(), st.integers(12, 40), st.sampled_from([None, 1, 3]), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_random_steps(step, n, every, trips):
    fun = made(step, before="v = u * u; w = 1.0 - u", every=every, after="return np.sum(u * v * w)")
    compare(fun, (n,), STOPS, trips=trips)
