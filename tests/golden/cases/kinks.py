# golden: grad
import numpy as np


def kinks(x: "f64[n]"):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0) + np.clip(x, -1.0, 1.0) + np.maximum(x, 0.0) + np.abs(x))
