"""Matrices factored and equations solved by loops over elements, as textbooks and PolyBench have it."""

from __future__ import annotations

import numpy as np


def cholesky(a):
    """a: (n, n), of which the lower triangle is read and overwritten.  The log-determinant and a sum of squares."""
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    total = 0.0
    for i in range(n):
        for j in range(i + 1):
            total += a[i, j] * a[i, j] * (1.0 + j)
    return total


def lu(a):
    """a: (n, n), diagonally dominant: factored in place, without pivots."""
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(a * a)


def gram_schmidt(a):
    """a: (m, n).  Modified Gram-Schmidt, column after column."""
    a = a.copy()
    m, n = a.shape
    q = np.zeros((m, n))
    r = np.zeros((n, n))
    for k in range(n):
        norm = 0.0
        for i in range(m):
            norm += a[i, k] * a[i, k]
        r[k, k] = np.sqrt(norm)
        for i in range(m):
            q[i, k] = a[i, k] / r[k, k]
        for j in range(k + 1, n):
            for i in range(m):
                r[k, j] += q[i, k] * a[i, j]
            for i in range(m):
                a[i, j] -= q[i, k] * r[k, j]
    total = 0.0
    for i in range(n):
        for j in range(i, n):
            total += r[i, j] * r[i, j] * (1.0 + j)
    return total + np.sum(q[0] * q[1])


def durbin(r):
    """r: (n,).  The Yule-Walker equations by Levinson and Durbin."""
    n = r.shape[0]
    y = np.zeros(n)
    z = np.zeros(n)
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, n):
        beta = (1.0 - alpha * alpha) * beta
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return np.sum(y * y)


def triangular_solve(l, b):
    """l: (n, n), lower triangular, b: (n,)."""
    n = b.shape[0]
    x = np.zeros(n)
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= l[i, j] * x[j]
        x[i] /= l[i, i]
    return np.sum(x * x)


def tridiagonal_solve(a, b, c, d):
    """a, b, c, d: (n,): below, on and above the diagonal, and the right side.  Thomas's algorithm."""
    n = b.shape[0]
    p = np.zeros(n)
    q = np.zeros(n)
    p[0] = c[0] / b[0]
    q[0] = d[0] / b[0]
    for i in range(1, n):
        pivot = b[i] - a[i] * p[i - 1]
        p[i] = c[i] / pivot
        q[i] = (d[i] - a[i] * q[i - 1]) / pivot
    x = np.zeros(n)
    x[n - 1] = q[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = q[i] - p[i] * x[i + 1]
    return np.sum(x * x)
