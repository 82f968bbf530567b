# golden: grad
# golden: jvp
import numpy as np


def variance(x: "f64[n,m]"):
    return np.sum(np.var(x, axis=0) / (1.0 + np.mean(x, axis=0)))
