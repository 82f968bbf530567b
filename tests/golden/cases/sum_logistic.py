# golden: grad
# golden: grad float32
# golden: vjp
import numpy as np


def sum_logistic(x: "f64[n]"):
    return np.sum(1.0 / (1.0 + np.exp(-x)))
