"""Gradients as an expert writes them for Numba: value thrown away, loops in memory order, nothing saved needlessly."""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(error_model="numpy", nogil=True)


@compiled
def jacobi_2d(a, steps):
    """Adjoints of inner elements are gathered; what reaches the frame, which both arrays share, is kept apart."""
    n, m = a.shape
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])
    frame = np.zeros((n, m))
    d = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            if 0 < i < n - 1 and 0 < j < m - 1:
                d[i, j] = 2.0 * a[i, j]
            else:
                frame[i, j] = 2.0 * a[i, j]
    other = np.zeros((n, m))
    for _ in range(2 * steps):
        for j in range(1, m - 1):
            frame[0, j] += 0.2 * d[1, j]
            frame[n - 1, j] += 0.2 * d[n - 2, j]
        for i in range(1, n - 1):
            frame[i, 0] += 0.2 * d[i, 1]
            frame[i, m - 1] += 0.2 * d[i, m - 2]
            for j in range(1, m - 1):
                other[i, j] = 0.2 * (d[i, j] + d[i, j - 1] + d[i, j + 1] + d[i + 1, j] + d[i - 1, j])
        d, other = other, d
    for i in range(n):
        for j in range(m):
            d[i, j] += frame[i, j]
    return d


@compiled
def cholesky(a):
    """The factor is all that is needed; its adjoint becomes that of `a` in place."""
    n = a.shape[0]
    l = a.copy()
    for i in range(n):
        for j in range(i):
            s = l[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            l[i, j] = s / l[j, j]
        s = l[i, i]
        for k in range(i):
            s -= l[i, k] * l[i, k]
        l[i, i] = np.sqrt(s)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            d[i, j] = 2.0 * l[i, j] * (1.0 + j)
    for i in range(n - 1, -1, -1):
        t = 0.5 * d[i, i] / l[i, i]
        d[i, i] = t
        for k in range(i):
            d[i, k] -= 2.0 * t * l[i, k]
        for j in range(i - 1, -1, -1):
            t = d[i, j] / l[j, j]
            d[i, j] = t
            d[j, j] -= t * l[i, j]
            for k in range(j):
                d[i, k] -= t * l[j, k]
                d[j, k] -= t * l[i, k]
    return d


@compiled
def logistic_map(x, r, steps):
    tape = np.empty(steps)
    for t in range(steps):
        tape[t] = x
        x = r * x * (1.0 - x)
    seed = 1.0 / steps
    d_x, d_r = 0.0, 0.0
    for t in range(steps - 1, -1, -1):
        d_x += seed
        x = tape[t]
        d_r += d_x * x * (1.0 - x)
        d_x *= r * (1.0 - 2.0 * x)
    return d_x, d_r


@compiled
def _lorenz(x, y, z, sigma, rho, beta):
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


@compiled
def lorenz(x, y, z, sigma, rho, beta, steps):
    """The state is saved, stages are computed again."""
    h = 0.0005
    xs, ys, zs = np.empty(steps), np.empty(steps), np.empty(steps)
    for t in range(steps):
        xs[t], ys[t], zs[t] = x, y, z
        x1, y1, z1 = _lorenz(x, y, z, sigma, rho, beta)
        x2, y2, z2 = _lorenz(x + h / 2 * x1, y + h / 2 * y1, z + h / 2 * z1, sigma, rho, beta)
        x3, y3, z3 = _lorenz(x + h / 2 * x2, y + h / 2 * y2, z + h / 2 * z2, sigma, rho, beta)
        x4, y4, z4 = _lorenz(x + h * x3, y + h * y3, z + h * z3, sigma, rho, beta)
        x += h / 6 * (x1 + 2 * x2 + 2 * x3 + x4)
        y += h / 6 * (y1 + 2 * y2 + 2 * y3 + y4)
        z += h / 6 * (z1 + 2 * z2 + 2 * z3 + z4)
    dx, dy, dz = 2 * x, 2 * y, 2 * z
    d_sigma = d_rho = d_beta = 0.0
    for t in range(steps - 1, -1, -1):
        x, y, z = xs[t], ys[t], zs[t]
        x1, y1, z1 = _lorenz(x, y, z, sigma, rho, beta)
        u2, v2, w2 = x + h / 2 * x1, y + h / 2 * y1, z + h / 2 * z1
        x2, y2, z2 = _lorenz(u2, v2, w2, sigma, rho, beta)
        u3, v3, w3 = x + h / 2 * x2, y + h / 2 * y2, z + h / 2 * z2
        x3, y3, z3 = _lorenz(u3, v3, w3, sigma, rho, beta)
        u4, v4, w4 = x + h * x3, y + h * y3, z + h * z3
        ex, ey, ez = h / 6 * dx, h / 6 * dy, h / 6 * dz             # adjoint of the slopes of stage 4
        d_sigma += ex * (v4 - u4)
        d_rho += ey * u4
        d_beta -= ez * w4
        gx, gy, gz = ey * (rho - w4) + ez * v4 - ex * sigma, ex * sigma - ey + ez * u4, -ey * u4 - ez * beta
        dx, dy, dz = dx + gx, dy + gy, dz + gz
        ex, ey, ez = 2 * ex + h * gx, 2 * ey + h * gy, 2 * ez + h * gz
        tx, ty, tz = h / 6 * (dx - gx), h / 6 * (dy - gy), h / 6 * (dz - gz)
        d_sigma += ex * (v3 - u3)
        d_rho += ey * u3
        d_beta -= ez * w3
        gx, gy, gz = ey * (rho - w3) + ez * v3 - ex * sigma, ex * sigma - ey + ez * u3, -ey * u3 - ez * beta
        dx, dy, dz = dx + gx, dy + gy, dz + gz
        ex, ey, ez = 2 * tx + h / 2 * gx, 2 * ty + h / 2 * gy, 2 * tz + h / 2 * gz
        d_sigma += ex * (v2 - u2)
        d_rho += ey * u2
        d_beta -= ez * w2
        gx, gy, gz = ey * (rho - w2) + ez * v2 - ex * sigma, ex * sigma - ey + ez * u2, -ey * u2 - ez * beta
        dx, dy, dz = dx + gx, dy + gy, dz + gz
        ex, ey, ez = tx + h / 2 * gx, ty + h / 2 * gy, tz + h / 2 * gz
        d_sigma += ex * (y - x)
        d_rho += ey * x
        d_beta -= ez * z
        gx, gy, gz = ey * (rho - z) + ez * y - ex * sigma, ex * sigma - ey + ez * x, -ey * x - ez * beta
        dx, dy, dz = dx + gx, dy + gy, dz + gz
    return dx, dy, dz, d_sigma, d_rho, d_beta


@compiled
def tridiagonal_solve(a, b, c, d):
    """What the first sweep keeps is what the second reads; pivots are computed again."""
    n = b.shape[0]
    p, q, x = np.empty(n), np.empty(n), np.empty(n)
    p[0] = c[0] / b[0]
    q[0] = d[0] / b[0]
    for i in range(1, n):
        pivot = b[i] - a[i] * p[i - 1]
        p[i] = c[i] / pivot
        q[i] = (d[i] - a[i] * q[i - 1]) / pivot
    x[n - 1] = q[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = q[i] - p[i] * x[i + 1]
    d_p, d_q = np.empty(n), np.empty(n)
    carried = 0.0
    for i in range(n - 1):
        carried += 2.0 * x[i]
        d_q[i] = carried
        d_p[i] = -carried * x[i + 1]
        carried = -carried * p[i]
    d_q[n - 1] = carried + 2.0 * x[n - 1]
    d_p[n - 1] = 0.0
    d_a, d_b, d_c, d_d = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n - 1, 0, -1):
        pivot = b[i] - a[i] * p[i - 1]
        u = d_q[i] / pivot
        w = d_p[i] / pivot
        d_pivot = -u * q[i] - w * p[i]
        d_c[i] = w
        d_d[i] = u
        d_b[i] = d_pivot
        d_a[i] = -u * q[i - 1] - d_pivot * p[i - 1]
        d_q[i - 1] -= u * a[i]
        d_p[i - 1] -= d_pivot * a[i]
    d_a[0] = 0.0
    d_d[0] = d_q[0] / b[0]
    d_c[0] = d_p[0] / b[0]
    d_b[0] = -(d_d[0] * q[0] + d_c[0] * p[0])
    return d_a, d_b, d_c, d_d


@compiled
def soft_dtw(x, y, gamma):
    """Weights of the soft minimum are kept; the adjoint of each cell is gathered from the three after it."""
    n, m = x.shape[0], y.shape[0]
    r = np.full((n + 1, m + 1), 1e10)
    r[0, 0] = 0.0
    corner = np.zeros((n + 2, m + 2))
    above = np.zeros((n + 2, m + 2))
    left = np.zeros((n + 2, m + 2))
    slope = np.empty((n + 1, m + 1))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]
            low = min(a, min(b, c))
            u, v, w = np.exp((low - a) / gamma), np.exp((low - b) / gamma), np.exp((low - c) / gamma)
            total = u + v + w
            log = np.log(total)
            u, v, w = u / total, v / total, w / total
            corner[i, j], above[i, j], left[i, j] = u, v, w
            slope[i, j] = (u * (low - a) + v * (low - b) + w * (low - c)) / gamma - log
            r[i, j] = (x[i - 1] - y[j - 1]) ** 2 + low - gamma * log
    e = np.zeros((n + 2, m + 2))
    d_x, d_y, d_gamma = np.zeros(n), np.zeros(m), 0.0
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            if i == n and j == m:
                e[i, j] = 1.0
            else:
                e[i, j] = (e[i + 1, j + 1] * corner[i + 1, j + 1] + e[i + 1, j] * above[i + 1, j]
                           + e[i, j + 1] * left[i, j + 1])
            t = 2.0 * (x[i - 1] - y[j - 1]) * e[i, j]
            d_x[i - 1] += t
            d_y[j - 1] -= t
            d_gamma += e[i, j] * slope[i, j]
    return d_x, d_y, d_gamma
