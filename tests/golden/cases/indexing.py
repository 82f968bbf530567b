# golden: grad
import numpy as np


def indexing(x: "f64[n,m]", rows: "i64[k]"):
    return np.sum(x[rows] ** 2) + np.sum(x[1:, ::-2]) + x[0, -1]
