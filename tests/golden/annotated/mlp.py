# annotate: value_and_grad
import numpy as np


def mlp(params: "{w1: f64[m,h], b1: f64[h], w2: f64[h,k], b2: f64[k]}", x: "f64[n,m]", y: "f64[n,k]"):
    scale = 2.0 * np.pi
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    target = np.sin(scale * y)
    error = hidden @ params["w2"] + params["b2"] - target
    return np.mean(error ** 2)
