# golden: grad
import numpy as np

import gradsmith


def gradient_penalty(w: "f64[n]", x: "f64[n]"):
    slope = gradsmith.grad(lambda x: np.sum(np.sin(w * x)))(x)
    return np.sum(slope * slope)
