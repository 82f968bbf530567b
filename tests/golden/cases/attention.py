# golden: vjp
import numpy as np


def attention(q: "f64[b,n,d]", k: "f64[b,m,d]", v: "f64[b,m,e]"):
    scores = np.einsum("bnd,bmd->bnm", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = weights / np.sum(weights, axis=-1, keepdims=True)
    return np.einsum("bnm,bme->bne", weights, v)
