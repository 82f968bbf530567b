"""Stencils, convolutions and pooling as loops over elements."""

from __future__ import annotations

import numpy as np


def jacobi_1d(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])
    return A


def jacobi_2d(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])
    return A


def heat_3d(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    B[i, j, k] = (0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                                  + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                                  + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1]) + A[i, j, k])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    A[i, j, k] = (0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                                  + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                                  + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1]) + B[i, j, k])
    return A


def fdtd_2d(ex, ey, hz, fict):
    nx, ny = ex.shape
    for t in range(fict.shape[0]):
        for j in range(ny):
            ey[0, j] = fict[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return hz


def conv2d(x, w):
    h = x.shape[0] - w.shape[0] + 1
    v = x.shape[1] - w.shape[1] + 1
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            s = 0.0
            for di in range(w.shape[0]):
                for dj in range(w.shape[1]):
                    s += x[i + di, j + dj] * w[di, dj]
            y[i, j] = s
    return y


def conv2d_same(x, w):
    h, v = x.shape
    p, q = w.shape[0] // 2, w.shape[1] // 2
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            s = 0.0
            for di in range(w.shape[0]):
                for dj in range(w.shape[1]):
                    a = i + di - p
                    b = j + dj - q
                    if 0 <= a and a < h and 0 <= b and b < v:
                        s += x[a, b] * w[di, dj]
            y[i, j] = s
    return y


def conv2d_channels(x, w):
    channels, h, v = x.shape
    outs, _, kh, kw = w.shape
    y = np.zeros((outs, h - kh + 1, v - kw + 1))
    for o in range(outs):
        for i in range(h - kh + 1):
            for j in range(v - kw + 1):
                for c in range(channels):
                    for di in range(kh):
                        for dj in range(kw):
                            y[o, i, j] += x[c, i + di, j + dj] * w[o, c, di, dj]
    return y


def conv_strided(x, w):
    n = (x.shape[0] - w.shape[0]) // 2 + 1
    y = np.zeros(n)
    for i in range(n):
        for k in range(w.shape[0]):
            y[i] += x[2 * i + k] * w[k]
    return y


def average_pool(x):
    h, v = x.shape[0] // 2, x.shape[1] // 2
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            s = 0.0
            for a in range(2):
                for b in range(2):
                    s += x[2 * i + a, 2 * j + b]
            y[i, j] = s / 4.0
    return y


def max_pool(x):
    h, v = x.shape[0] // 2, x.shape[1] // 2
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            m = -np.inf
            for a in range(2):
                for b in range(2):
                    m = np.maximum(m, x[2 * i + a, 2 * j + b])
            y[i, j] = m
    return y
