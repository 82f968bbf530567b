# golden: grad
# golden: value_and_grad
# golden: hvp
import numpy as np


def energy(x: "f64[n]"):
    return np.sum(x * np.tanh(x))
