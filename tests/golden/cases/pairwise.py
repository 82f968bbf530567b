# golden: grad
import numpy as np


def pairwise(x: "f64[n,d]"):
    difference = x[:, None, :] - x[None, :, :]
    return np.sum(np.exp(-np.sum(difference ** 2, axis=-1)))
