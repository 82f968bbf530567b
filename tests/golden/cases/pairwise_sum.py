# golden: grad
import numpy as np


def pairwise_sum(x: "f64[n]"):
    if len(x) == 1:
        return np.sin(x[0])
    middle = len(x) // 2
    return pairwise_sum(x[:middle]) + pairwise_sum(x[middle:]) ** 2
