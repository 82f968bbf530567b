# golden: grad
import numpy as np


def running_product(x: "f64[n]"):
    return np.prod(x) + np.sum(np.cumprod(x))
