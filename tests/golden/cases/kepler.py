"""A loop that ends when it has found what it looks for: it runs once, and saves on tapes that grow."""
# golden: grad

import numpy as np


def kepler(m: float, e: float) -> float:
    u = m
    while True:
        d = (u - e * np.sin(u) - m) / (1.0 - e * np.cos(u))
        u -= d
        if abs(d) < 1e-9:
            return u
