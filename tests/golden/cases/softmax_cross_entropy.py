# golden: value_and_grad
import numpy as np


def softmax_cross_entropy(scores: "f64[n,k]", target: "f64[n,k]"):
    top = np.max(scores, axis=1, keepdims=True)
    shifted = scores - top
    log_total = np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(np.sum(target * (shifted - log_total), axis=1))
