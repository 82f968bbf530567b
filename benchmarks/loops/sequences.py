"""Likelihoods and distances of sequences."""

from __future__ import annotations

import numpy as np


def kalman(f, h, q, r, observed):
    """f, q: (d, d), h: (p, d), r: (p, p), observed: (steps, p).  The log-likelihood of a linear Gaussian model."""
    d = f.shape[0]
    mean = np.zeros(d)
    cov = np.eye(d)
    total = 0.0
    for t in range(observed.shape[0]):
        mean = f @ mean
        cov = f @ cov @ f.T + q
        innovation = observed[t] - h @ mean
        s = h @ cov @ h.T + r
        gain = np.linalg.solve(s, h @ cov).T
        total -= 0.5 * (innovation @ np.linalg.solve(s, innovation) + np.log(np.linalg.det(s)))
        mean = mean + gain @ innovation
        cov = cov - gain @ h @ cov
    return total


def hmm_forward(initial, transition, emission, observed):
    """initial: (s,), transition: (s, s), emission: (s, symbols), observed: (steps,) ints.  The log-likelihood."""
    alpha = initial * emission[:, observed[0]]
    total = 0.0
    for t in range(1, observed.shape[0]):
        alpha = (alpha @ transition) * emission[:, observed[t]]
        norm = np.sum(alpha)
        total += np.log(norm)
        alpha = alpha / norm
    return total


def soft_dtw(x, y, gamma):
    """x: (n,), y: (m,), gamma: scalar.  Dynamic time warping with a soft minimum (Cuturi and Blondel, 2017)."""
    n, m = x.shape[0], y.shape[0]
    r = np.full((n + 1, m + 1), 1e10)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]
            low = min(a, min(b, c))
            total = np.exp((low - a) / gamma) + np.exp((low - b) / gamma) + np.exp((low - c) / gamma)
            r[i, j] = (x[i - 1] - y[j - 1]) ** 2 + low - gamma * np.log(total)
    return r[n, m]
