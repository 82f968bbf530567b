# golden: grad
import numpy as np


def log_det(a: "f64[n,n]"):
    sign, value = np.linalg.slogdet(a)
    return value
