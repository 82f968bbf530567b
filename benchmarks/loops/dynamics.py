"""Systems stepped through time, root finding and a tree of prices."""

from __future__ import annotations

import numpy as np


def n_body(position, velocity, mass, steps):
    """position, velocity: (n, 3), mass: (n,).  Gravity, softened, by a symplectic Euler scheme."""
    x = position.copy()
    v = velocity.copy()
    n = mass.shape[0]
    for _ in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                dx = x[j, 0] - x[i, 0]
                dy = x[j, 1] - x[i, 1]
                dz = x[j, 2] - x[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 0.01
                pull = mass[j] / (r2 * np.sqrt(r2))
                ax += pull * dx
                ay += pull * dy
                az += pull * dz
            v[i, 0] += 0.01 * ax
            v[i, 1] += 0.01 * ay
            v[i, 2] += 0.01 * az
        for i in range(n):
            for k in range(3):
                x[i, k] += 0.01 * v[i, k]
    return np.sum(x * x)


def _lorenz(x, y, z, sigma, rho, beta):
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def lorenz(x, y, z, sigma, rho, beta, steps):
    """Scalars.  The Lorenz system by the classical Runge-Kutta scheme."""
    h = 0.0005
    for _ in range(steps):
        kx1, ky1, kz1 = _lorenz(x, y, z, sigma, rho, beta)
        kx2, ky2, kz2 = _lorenz(x + h / 2 * kx1, y + h / 2 * ky1, z + h / 2 * kz1, sigma, rho, beta)
        kx3, ky3, kz3 = _lorenz(x + h / 2 * kx2, y + h / 2 * ky2, z + h / 2 * kz2, sigma, rho, beta)
        kx4, ky4, kz4 = _lorenz(x + h * kx3, y + h * ky3, z + h * kz3, sigma, rho, beta)
        x += h / 6 * (kx1 + 2 * kx2 + 2 * kx3 + kx4)
        y += h / 6 * (ky1 + 2 * ky2 + 2 * ky3 + ky4)
        z += h / 6 * (kz1 + 2 * kz2 + 2 * kz3 + kz4)
    return x * x + y * y + z * z


def logistic_map(x, r, steps):
    """Scalars; r below the onset of chaos, so that the gradient means something."""
    total = 0.0
    for _ in range(steps):
        x = r * x * (1.0 - x)
        total += x
    return total / steps


def kepler(mean, eccentricity):
    """mean, eccentricity: (n,).  Kepler's equation, each one by Newton's method until it is solved."""
    total = 0.0
    for i in range(mean.shape[0]):
        m, e = mean[i], eccentricity[i]
        anomaly = m
        delta = 1.0
        while abs(delta) > 1e-12:
            delta = (anomaly - e * np.sin(anomaly) - m) / (1.0 - e * np.cos(anomaly))
            anomaly -= delta
        total += np.cos(anomaly)
    return total


def binomial_tree(spot, strike, rate, sigma, time, steps):
    """Scalars.  An American put on a recombining tree, whose values are overwritten level after level."""
    dt = time / steps
    up = np.exp(sigma * np.sqrt(dt))
    discount = np.exp(-rate * dt)
    p = (np.exp(rate * dt) - 1.0 / up) / (up - 1.0 / up)
    value = np.zeros(steps + 1)
    price = np.zeros(steps + 1)
    for j in range(steps + 1):
        price[j] = spot * up ** (2.0 * j - steps)
        value[j] = max(strike - price[j], 0.0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            price[j] *= up
            hold = discount * (p * value[j + 1] + (1.0 - p) * value[j])
            value[j] = max(hold, strike - price[j])
    return value[0]
