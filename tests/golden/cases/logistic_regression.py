# golden: value_and_grad(argnums=(0, 1))
import numpy as np

STRENGTH = 0.01


def logistic_regression(w: "f64[m]", b: float, x: "f64[n,m]", y: "f64[n]"):
    margin = y * (x @ w + b)
    return np.mean(np.log1p(np.exp(-margin))) + STRENGTH * np.sum(w * w)
