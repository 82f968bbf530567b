# golden: grad
import numpy as np


def complex_modulus(z: "c128[n]"):
    return np.sum(np.abs(z) ** 2)
