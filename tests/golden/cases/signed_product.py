# golden: vmap(in_axes=(None, 0))
import numpy as np


def signed_product(m: "f64[n,n]", x: "f64[n]"):
    if np.sum(x) > 0:
        return m @ x
    return m.T @ x
