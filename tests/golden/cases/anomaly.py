# golden: vmap
import numpy as np


def anomaly(mean: float, eccentricity: float):
    found, change = mean, 1.0
    while abs(change) > 1e-12:
        change = (found - eccentricity * np.sin(found) - mean) / (1.0 - eccentricity * np.cos(found))
        found -= change
    return found
