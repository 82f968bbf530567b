# annotate: grad
import numpy as np


def sum_logistic(x: "f64[n]"):
    e = np.exp(-x)
    s = 1.0 / (1.0 + e)
    return np.sum(s * s)
