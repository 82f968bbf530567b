# golden: vmap(in_axes=(None, 0, None))
import numpy as np


def settling(m: "f64[n,n]", x: "f64[n]", steps: int):
    for k in range(steps):
        x = np.tanh(m @ x)
        if k % 2:
            x = 0.5 * x
    return x
