# golden: grad
import numpy as np

scale = 2.0
weights = np.array([1.0, 2.0, 3.0])


def captured(x: "f64[n]"):
    return scale * np.sum(weights * np.sin(x))
