"""Time stepping on grids, as PolyBench has it, in the Python that one writes for NumPy or Numba."""

from __future__ import annotations

import numpy as np


def jacobi_1d(a, steps):
    """a: (n,).  Three-point averages, to and fro between two arrays."""
    a = a.copy()
    b = a.copy()
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3
        for i in range(1, n - 1):
            a[i] = (b[i - 1] + b[i] + b[i + 1]) / 3
    return np.sum(a * a)


def jacobi_2d(a, steps):
    """a: (n, n).  Five-point averages, by slices."""
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(a * a)


def gauss_seidel(a, steps):
    """a: (n, n).  Nine-point averages in place: each element sees those before it as they are now."""
    a = a.copy()
    n, m = a.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = (a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                           + a[i, j - 1] + a[i, j] + a[i, j + 1]
                           + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]) / 9
    return np.sum(a * a)


def heat_3d(a, steps):
    """a: (n, n, n).  The heat equation, by slices."""
    a = a.copy()
    for _ in range(steps):
        c = a[1:-1, 1:-1, 1:-1]
        a[1:-1, 1:-1, 1:-1] = (0.125 * (a[2:, 1:-1, 1:-1] - 2 * c + a[:-2, 1:-1, 1:-1])
                               + 0.125 * (a[1:-1, 2:, 1:-1] - 2 * c + a[1:-1, :-2, 1:-1])
                               + 0.125 * (a[1:-1, 1:-1, 2:] - 2 * c + a[1:-1, 1:-1, :-2]) + c)
    return np.sum(a * a)


def fdtd_2d(ex, ey, hz, pulse):
    """ex, ey, hz: (n, m), pulse: (steps,).  Electric and magnetic fields, one after the other."""
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(pulse.shape[0]):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return np.sum(hz * hz)


def adi(u, steps):
    """u: (n, n).  Alternating directions: tridiagonal solves along columns, then along rows."""
    n = u.shape[0]
    a = -1.0 * n * n / steps
    b = 1.0 - 2 * a
    d = -0.5 * n * n / steps
    e = 1.0 - 2 * d
    u = u.copy()
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    q = np.zeros((n, n))
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = ((-d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1])
                           / (a * p[i, j - 1] + b))
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                q[i, j] = ((-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1])
                           / (d * p[i, j - 1] + e))
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]
    return np.sum(u * u)
