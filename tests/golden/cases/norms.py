# golden: grad
import numpy as np


def norms(v: "f64[n]"):
    return np.linalg.norm(v) + np.linalg.norm(v, 1) + np.linalg.norm(v, np.inf)
