# annotate: grad
import numpy as np


def growth(x: "f64", r: "f64", n: "i64"):
    total = 0.0
    for t in range(n):
        weight = np.exp(-0.1 * t)
        x = r * x * (1.0 - x)
        total += weight * x
    return total
