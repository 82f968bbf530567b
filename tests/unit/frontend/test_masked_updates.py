"""`x[mask] op= value`: what is selected is read before the value is computed, which may write to the array or the mask."""

from __future__ import annotations

import numpy as np
import pytest
from loose import check_values


def change(a):
    a[0] = a[0] * 2.0 + 1.0
    a[2] = 7.0
    return a[1]


def spread(a):
    if np.sum(a) > 0.1:
        a[a > 0.1] = np.sum(a)
    return -0.2


def turn(mask):
    mask[0] = not mask[0]
    mask[1] = not mask[1]
    return 0.5


def an_array(x):
    x = x.copy()
    x[x > 0.5] += change(x)
    return x


def what_a_mask_leaves_out(x):
    x = x.copy()
    x[~(x > 0.5)] -= change(x)
    return x


def a_view(x):
    x = x.copy()
    a = x.reshape(2, 2)
    a[~(a > 0.3)] += spread(a.T.T[1])
    a[a > 0.3] *= spread(a[0])
    return x


def in_a_loop(x):
    a = x.reshape(2, 2).copy()
    for _ in range(len(x)):
        a[~(a > 0.3)] += spread(a[1]) * a[0, 0]
    return a


def rows(x):
    a, mask = np.stack([x, x * 2.0], axis=1), x > 0.0
    a[mask, 1] += spread(a[1])
    a[mask] -= spread(a[0]) * np.ones(2)
    return a


def columns(x):
    a, mask = np.stack([x, x * 2.0]), x > 0.0
    a[:, mask] += spread(a[1])
    a[0, mask] -= spread(a[0])
    return a


def the_mask_itself(x):
    x = x.copy()
    mask = x > 0.0
    x[mask] += turn(mask)
    x[mask] *= turn(mask) * np.arange(2.0)
    return x


@pytest.mark.parametrize("f", [an_array, what_a_mask_leaves_out, a_view, in_a_loop, rows, columns, the_mask_itself],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [[0.6, -0.3, -0.4, 0.9], [-0.6, 0.7, 0.8, -0.2]], ids=str)
def test_updates(f, x):
    check_values(f, np.array(x))
