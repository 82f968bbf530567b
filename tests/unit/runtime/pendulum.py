"""One program for all libraries that functions go into."""

import numpy as np


def pendulum(x, w):
    """A loop, a branch and writes in place."""
    total = 0.0
    y = x.copy()
    for i in range(len(x)):
        if x[i] > 0:
            y[i] = np.sin(x[i]) * w[i]
        total += y[i] ** 2
    return total, y
