"""Known indices of arrays whose size only the running function has are checked when it runs."""

from __future__ import annotations

import numpy as np
import pytest
from loose import check_values


def element(x, n):
    y = np.zeros(n[0])
    return y[3]


def stored(x, n):
    y = np.zeros(n[0])
    y[3] = 1.0
    return y


def from_the_end(x, n):
    return x[:n[0]][-4]


def in_a_branch(x, n):
    y = np.zeros(n[0] + 1)
    if x[0] < 5.0:
        y[[0, 3, 0]] = 1.5
    return y


def in_a_loop(x, n):
    total = 0.0
    y = np.ones((n[0], n[0]))
    for _ in range(n[0]):
        total += y[3, -1] + y[[0, 3]][1, 0] + y[:, 2][3]
    return total


def an_array_of_places(x, n):
    return np.ones(n[0])[np.array([-4, -1])]


def of_parts(x, n):
    y = np.cumsum(np.ones(n[0]))
    return y[::2][1] + y[1:][2] + y[::-1][3] + np.take(y, 3) + y.flat[3]


def of_a_list(x, n):
    numbers = [x[i] for i in range(n[0])]
    return numbers[3] + numbers[-4]


def of_what_a_mask_selects(x, n):
    y = x[x > 0.9 - 0.3 * n[0]]
    return y[1] + y[-2]


@pytest.mark.parametrize("f", [element, stored, from_the_end, in_a_branch, in_a_loop, an_array_of_places, of_parts,
                               of_a_list, of_what_a_mask_selects], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 2, 3, 4, 7])
def test_as_in_python(f, n):
    check_values(f, np.linspace(-0.5, 0.9, 7), np.array([n]))
