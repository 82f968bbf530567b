# golden: grad
import numpy as np


def running_sum(x: "f64[n]"):
    return np.sum(np.cumsum(x) ** 2)
