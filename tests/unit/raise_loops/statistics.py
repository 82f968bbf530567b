"""Normalisations, covariances and distances as loops over elements."""

from __future__ import annotations

import numpy as np


def softmax(x):
    m = x[0]
    for i in range(1, x.shape[0]):
        if x[i] > m:
            m = x[i]
    s = 0.0
    e = np.empty_like(x)
    for i in range(x.shape[0]):
        e[i] = np.exp(x[i] - m)
        s += e[i]
    for i in range(x.shape[0]):
        e[i] /= s
    return e


def softmax_rows(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        m = -np.inf
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - m)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def mean_and_variance(x):
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        total += x[i]
    mean = total / n
    squares = 0.0
    for i in range(n):
        squares += (x[i] - mean) ** 2
    return mean, squares / n


def layer_norm(x, g, b):
    y = np.empty_like(x)
    n = x.shape[1]
    for i in range(x.shape[0]):
        m = 0.0
        for j in range(n):
            m += x[i, j]
        m /= n
        v = 0.0
        for j in range(n):
            v += (x[i, j] - m) * (x[i, j] - m)
        r = 1.0 / np.sqrt(v / n + 1e-5)
        for j in range(n):
            y[i, j] = (x[i, j] - m) * r * g[j] + b[j]
    return y


def covariance(data):
    n, m = data.shape
    mean = np.zeros(m)
    for j in range(m):
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    cov = np.zeros((m, m))
    for i in range(m):
        for j in range(i, m):
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]
    return cov


def correlation(data):
    n, m = data.shape
    mean = np.zeros(m)
    dev = np.zeros(m)
    for j in range(m):
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        for i in range(n):
            dev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        dev[j] = np.sqrt(dev[j] / n)
        if dev[j] <= 0.1:
            dev[j] = 1.0
    for i in range(n):
        for j in range(m):
            data[i, j] = (data[i, j] - mean[j]) / (np.sqrt(float(n)) * dev[j])
    corr = np.zeros((m, m))
    for i in range(m):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
    return corr


def distances(x, y):
    d = np.zeros((x.shape[0], y.shape[0]))
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                t = x[i, k] - y[j, k]
                s += t * t
            d[i, j] = np.sqrt(s)
    return d


def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = np.minimum(path[i, j], path[i, k] + path[k, j])
    return path
