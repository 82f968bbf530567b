# golden: grad(argnums=(0, 1))
import numpy as np


def solve(a: "f64[n,n]", b: "f64[n]"):
    x = np.linalg.solve(a, b)
    return x @ x
