# golden: grad
import numpy as np


def sorted_gap(x: "f64[n]"):
    return np.sum(np.diff(np.sort(x)) ** 2)
