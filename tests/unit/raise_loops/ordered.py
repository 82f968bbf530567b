"""Loops that need the order of their trips."""

from __future__ import annotations

import numpy as np


def gauss_seidel(x):
    for i in range(1, x.shape[0] - 1):
        x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0
    return x


def recurrence(x, a):
    s = 0.0
    for i in range(x.shape[0]):
        s = a * s * s + x[i]
    return s


def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])
    return A


def swaps(x, places):
    for i in range(places.shape[0]):
        x[i] = x[places[i]]
    return x


def self_scatter(x, places):
    for i in range(places.shape[0]):
        x[places[i]] = x[i] + 1.0
    return x


def smoothed(x):
    for i in range(1, x.shape[0]):
        x[i] = 0.9 * x[i - 1] + 0.1 * x[i]
    return x


def until_negative(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            break
        s += x[i]
    return s
