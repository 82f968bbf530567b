# golden: grad(argnums=(0, 1))
import numpy as np


def concatenation(a: "f64[n]", b: "f64[m]"):
    both = np.concatenate([a, 2.0 * b, a])
    return np.sum(both * both)
