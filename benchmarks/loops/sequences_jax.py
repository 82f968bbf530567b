"""The same likelihoods and distances for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def kalman(f, h, q, r, observed):
    return _kalman(f, h, q, r, observed, lambda step: step)


def kalman_again(f, h, q, r, observed):
    return _kalman(f, h, q, r, observed, jax.checkpoint)


def _kalman(f, h, q, r, observed, wrap):
    d = f.shape[0]

    def step(state, seen):
        mean, cov, total = state
        mean = f @ mean
        cov = f @ cov @ f.T + q
        innovation = seen - h @ mean
        s = h @ cov @ h.T + r
        gain = jnp.linalg.solve(s, h @ cov).T
        total = total - 0.5 * (innovation @ jnp.linalg.solve(s, innovation) + jnp.log(jnp.linalg.det(s)))
        return (mean + gain @ innovation, cov - gain @ h @ cov, total), None
    (_, _, total), _ = lax.scan(wrap(step), (jnp.zeros(d), jnp.eye(d), jnp.zeros(())), observed)
    return total


def kalman_explicit(f, h, q, r, observed):
    """Two observed quantities: the inverse of a 2x2 matrix written out, no calls of LAPACK."""
    d = f.shape[0]

    def step(state, seen):
        mean, cov, total = state
        mean = f @ mean
        cov = f @ cov @ f.T + q
        innovation = seen - h @ mean
        hc = h @ cov
        s = hc @ h.T + r
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
        gain = (inverse @ hc).T
        total = total - 0.5 * (innovation @ inverse @ innovation + jnp.log(det))
        return (mean + gain @ innovation, cov - gain @ hc, total), None
    (_, _, total), _ = lax.scan(step, (jnp.zeros(d), jnp.eye(d), jnp.zeros(())), observed)
    return total


def hmm_forward(initial, transition, emission, observed):
    def step(state, k):
        alpha, total = state
        alpha = (alpha @ transition) * emission[:, k]
        norm = jnp.sum(alpha)
        return (alpha / norm, total + jnp.log(norm)), None
    first = initial * emission[:, observed[0]]
    (_, total), _ = lax.scan(step, (first, jnp.zeros(())), observed[1:])
    return total


def hmm_forward_gathered(initial, transition, emission, observed):
    """All emissions are gathered before the scan, so that the scan's adjoint scatters nothing."""
    emitted = emission.T[observed]

    def step(state, e):
        alpha, total = state
        alpha = (alpha @ transition) * e
        norm = jnp.sum(alpha)
        return (alpha / norm, total + jnp.log(norm)), None
    (_, total), _ = lax.scan(step, (initial * emitted[0], jnp.zeros(())), emitted[1:])
    return total


def _soft_minimum(a, b, c, gamma):
    low = jnp.minimum(a, jnp.minimum(b, c))
    return low - gamma * jnp.log(jnp.exp((low - a) / gamma) + jnp.exp((low - b) / gamma) + jnp.exp((low - c) / gamma))


def soft_dtw_diagonals(x, y, gamma):
    """Anti-diagonals as vectors: element i of diagonal k is r[i, k - i]."""
    n, m = x.shape[0], y.shape[0]
    i = jnp.arange(n + 1)
    far = jnp.full(n + 1, 1e10)
    down = lambda v: jnp.concatenate([v[:1] * 0 + 1e10, v[:-1]])

    def step(state, k):
        before, last = state                     # diagonals k - 2 and k - 1
        j = k - i
        cost = (x[jnp.maximum(i - 1, 0)] - y[jnp.clip(j - 1, 0, m - 1)]) ** 2
        new = cost + _soft_minimum(down(before), down(last), last, gamma)
        new = jnp.where((i >= 1) & (j >= 1) & (j <= m), new, 1e10)
        return (last, new), None
    (_, last), _ = lax.scan(step, (far.at[0].set(0.0), far), jnp.arange(2, n + m + 1))
    return last[n]


def soft_dtw_rows(x, y, gamma):
    """A scan over rows, in it one over the row's elements."""
    m = y.shape[0]

    def row(above, xi):
        def element(left, given):
            corner, up, yj = given
            new = (xi - yj) ** 2 + _soft_minimum(corner, up, left, gamma)
            return new, new
        _, inner = lax.scan(element, jnp.asarray(1e10), (above[:-1], above[1:], y))
        return jnp.concatenate([jnp.full(1, 1e10), inner]), None
    last, _ = lax.scan(row, jnp.full(m + 1, 1e10).at[0].set(0.0), x)
    return last[m]


def soft_dtw_at(x, y, gamma):
    n, m = x.shape[0], y.shape[0]
    r = jnp.full((n + 1, m + 1), 1e10).at[0, 0].set(0.0)

    def element(i, j, r):
        new = (x[i - 1] - y[j - 1]) ** 2 + _soft_minimum(r[i - 1, j - 1], r[i - 1, j], r[i, j - 1], gamma)
        return r.at[i, j].set(new)
    r = lax.fori_loop(1, n + 1, lambda i, r: lax.fori_loop(1, m + 1, lambda j, r: element(i, j, r), r), r)
    return r[n, m]
