"""What is cleared and then added to is stored to, also where the adding is the next trip's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.optimize.stepping import compare, made, steps

STOPS = ("ascend", "clear_late")
TURNS = {
    "linear": "for i in range(1, len(u) - 1):\n    v[i] = u[i - 1] - c * u[i + 1]\nu, v = v, u",
    "squares": "for i in range(1, len(u) - 1):\n    v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1])\nu, v = v, u",
    "downwards": "for i in range(len(u) - 2, 0, -1):\n    v[i] = u[i] * u[i + 1] - c * u[i - 1]\nu, v = v, u",
    "there and back": "for i in range(1, len(u) - 1):\n    v[i] = u[i] * u[i + 1] - c * u[i - 1]\n"
                      "for i in range(2, len(u) - 2):\n    u[i] = v[i - 1] * v[i + 1]",
    "far": "for i in range(2, len(u) - 1):\n    v[i] = k[i] * u[i - 2] + u[i + 1] * u[i + 1]\nu, v = v, u",
}


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("after", ["return np.sum(u * u)", "return np.sum(u * v * v)"])
def test_steps_that_take_turns(name, trips, after):
    assert compare(made(TURNS[name], every=None, after=after), (11,), STOPS, trips=trips, rtol=1e-13)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("name", TURNS)
def test_segments_and_few_elements(name, n):
    assert compare(made(TURNS[name], before="v = k * k", after="return np.sum(u * v)"), (n,), STOPS, rtol=1e-13)


def test_a_read_of_what_is_cleared_keeps_it():
    step = "for i in range(1, len(u) - 1):\n    v[i] = u[i] * u[i + 1] + v[i]\nu, v = v, u"
    assert not compare(made(step, every=None), (11,), STOPS)


@given(steps(), st.integers(12, 40), st.sampled_from([None, 1, 3]), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_random_steps(step, n, every, trips):
    fun = made(step, before="v = u * u; w = 1.0 - u", every=every, after="return np.sum(u * v * w)")
    compare(fun, (n,), STOPS, trips=trips, rtol=1e-13)
