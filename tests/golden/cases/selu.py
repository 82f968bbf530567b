# golden: grad
import numpy as np


def selu(x: "f32[n]"):
    alpha, scale = np.float32(1.6732632), np.float32(1.050701)
    return scale * np.sum(np.where(x > 0, x, alpha * (np.exp(x) - 1)))
