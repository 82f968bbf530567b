"""Factorisations and solves for JAX: its library, scans over masked matrices, and the loops with `.at[].set`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def _weighted(l):
    return jnp.sum(l * l * (1.0 + jnp.arange(l.shape[0])))


def cholesky(a):
    """LAPACK reads one triangle, but JAX's rule takes the matrix as symmetric: so it is made of its lower triangle."""
    return _weighted(jnp.linalg.cholesky(jnp.tril(a) + jnp.tril(a, -1).T, symmetrize_input=False))


def cholesky_scan(a):
    """Column after column, each taken off the rest as an outer product."""
    index = jnp.arange(a.shape[0])

    def column(a, j):
        c = jnp.where(index >= j, a[:, j] / jnp.sqrt(a[j, j]), 0.0)
        return a - jnp.outer(c, c), c
    _, columns = lax.scan(column, a, index)
    return _weighted(columns.T)


def cholesky_at(a):
    n = a.shape[0]

    def element(i, j, a):
        def less(k, a):
            return a.at[i, j].add(jnp.where(k < j, -a[i, k] * a[j, k], 0.0))
        a = lax.fori_loop(0, n, less, a)
        return a.at[i, j].set(jnp.where(j < i, a[i, j] / a[j, j], jnp.where(j == i, jnp.sqrt(jnp.abs(a[i, j])),
                                                                              a[i, j])))

    def row(i, a):
        return lax.fori_loop(0, n, lambda j, a: jax.lax.cond(j <= i, lambda: element(i, j, a), lambda: a), a)
    return _weighted(jnp.tril(lax.fori_loop(0, n, row, a)))


def lu(a):
    """Pivots stay where they are in a matrix that is diagonally dominant by columns."""
    packed, _, _ = lax.linalg.lu(a)
    return jnp.sum(packed * packed)


def lu_scan(a):
    index = jnp.arange(a.shape[0])

    def column(a, j):
        c = jnp.where(index > j, a[:, j] / a[j, j], 0.0)
        row = jnp.where(index >= j, a[j], 0.0)
        return a - jnp.outer(c, row), (c, row)
    _, (columns, rows) = lax.scan(column, a, index)
    return jnp.sum(columns ** 2) + jnp.sum(rows ** 2)


def lu_at(a):
    n = a.shape[0]

    def element(i, j, a):
        a = lax.fori_loop(0, n, lambda k, a: a.at[i, j].add(jnp.where(k < jnp.minimum(i, j), -a[i, k] * a[k, j], 0.0)),
                          a)
        return a.at[i, j].set(jnp.where(j < i, a[i, j] / a[j, j], a[i, j]))
    a = lax.fori_loop(0, n, lambda i, a: lax.fori_loop(0, n, lambda j, a: element(i, j, a), a), a)
    return jnp.sum(a * a)


def gram_schmidt(a):
    """LAPACK's factors, with the signs that make the diagonal of R positive."""
    q, r = jnp.linalg.qr(a)
    sign = jnp.sign(jnp.diagonal(r))
    q, r = q * sign, r * sign[:, None]
    return jnp.sum(jnp.triu(r) ** 2 * (1.0 + jnp.arange(r.shape[0]))) + jnp.sum(q[0] * q[1])


def gram_schmidt_scan(a):
    n = a.shape[1]
    index = jnp.arange(n)

    def column(a, k):
        norm = jnp.sqrt(jnp.sum(a[:, k] ** 2))
        q = a[:, k] / norm
        r = jnp.where(index > k, q @ a, 0.0)
        return a - jnp.outer(q, r), (q, r.at[k].set(norm))
    _, (q, r) = lax.scan(column, a, index)
    return jnp.sum(r ** 2 * (1.0 + index)) + jnp.sum(q[:, 0] * q[:, 1])


def _toeplitz(r):
    n = r.shape[0]
    index = jnp.arange(n)
    full = jnp.concatenate([jnp.ones(1), r[:-1]])
    return full[jnp.abs(index[:, None] - index)]


def durbin_solve(r):
    y = jnp.linalg.solve(_toeplitz(r), -r)
    return jnp.sum(y * y)


def durbin_cholesky(r):
    y = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(_toeplitz(r)), -r)
    return jnp.sum(y * y)


def durbin_scan(r):
    n = r.shape[0]
    index = jnp.arange(n)
    turned = jnp.concatenate([r[::-1], jnp.zeros(n)])

    def step(state, k):
        y, alpha, beta = state
        beta = (1 - alpha * alpha) * beta
        back = lax.dynamic_slice(turned, (n - k,), (n,))            # r[k - 1], ..., r[0], then what is masked
        alpha = -(r[k] + jnp.sum(jnp.where(index < k, back * y, 0.0))) / beta
        mirrored = lax.dynamic_slice(jnp.concatenate([y[::-1], jnp.zeros(n)]), (n - k,), (n,))
        y = jnp.where(index < k, y + alpha * mirrored, jnp.where(index == k, alpha, 0.0))
        return (y, alpha, beta), None
    y = jnp.zeros(n).at[0].set(-r[0])
    (y, _, _), _ = lax.scan(step, (y, -r[0], jnp.ones(())), jnp.arange(1, n))
    return jnp.sum(y * y)


def durbin_at(r):
    n = r.shape[0]

    def step(k, state):
        y, z, alpha, beta = state
        beta = (1 - alpha * alpha) * beta
        total = lax.fori_loop(0, n, lambda i, s: s + jnp.where(i < k, r[k - i - 1] * y[i], 0.0), 0.0)
        alpha = -(r[k] + total) / beta
        z = lax.fori_loop(0, n, lambda i, z: z.at[i].set(jnp.where(i < k, y[i] + alpha * y[k - i - 1], z[i])), z)
        y = lax.fori_loop(0, n, lambda i, y: y.at[i].set(jnp.where(i < k, z[i], y[i])), y)
        return y.at[k].set(alpha), z, alpha, beta
    y = jnp.zeros(n).at[0].set(-r[0])
    y, *_ = lax.fori_loop(1, n, step, (y, jnp.zeros(n), -r[0], jnp.ones(())))
    return jnp.sum(y * y)


def triangular_solve(l, b):
    x = jax.scipy.linalg.solve_triangular(l, b, lower=True)
    return jnp.sum(x * x)


def triangular_solve_scan(l, b):
    n = b.shape[0]

    def row(x, given):
        i, line, right = given
        return x.at[i].set((right - line @ x) / line[i]), None
    x, _ = lax.scan(row, jnp.zeros(n), (jnp.arange(n), jnp.tril(l), b))
    return jnp.sum(x * x)


def triangular_solve_at(l, b):
    n = b.shape[0]

    def row(i, x):
        x = x.at[i].set(b[i])
        x = lax.fori_loop(0, n, lambda j, x: x.at[i].add(jnp.where(j < i, -l[i, j] * x[j], 0.0)), x)
        return x.at[i].divide(l[i, i])
    x = lax.fori_loop(0, n, row, jnp.zeros(n))
    return jnp.sum(x * x)


def tridiagonal_solve(a, b, c, d):
    x = lax.linalg.tridiagonal_solve(a.at[0].set(0.0), b, c.at[-1].set(0.0), d[:, None])
    return jnp.sum(x * x)


def tridiagonal_solve_scan(a, b, c, d):
    def forward(state, line):
        p, q = state
        a, b, c, d = line
        pivot = b - a * p
        state = (c / pivot, (d - a * q) / pivot)
        return state, state
    zero = jnp.zeros(())
    _, (p, q) = lax.scan(forward, (zero, zero), (a, b, c, d))

    def backward(x, line):
        p, q = line
        x = q - p * x
        return x, x
    _, x = lax.scan(backward, zero, (p, q), reverse=True)
    return jnp.sum(x * x)


def tridiagonal_solve_at(a, b, c, d):
    n = b.shape[0]

    def forward(i, state):
        p, q = state
        pivot = b[i] - a[i] * p[i - 1]
        return p.at[i].set(c[i] / pivot), q.at[i].set((d[i] - a[i] * q[i - 1]) / pivot)
    zeros = jnp.zeros(n)
    p, q = lax.fori_loop(1, n, forward, (zeros.at[0].set(c[0] / b[0]), zeros.at[0].set(d[0] / b[0])))
    x = zeros.at[n - 1].set(q[n - 1])
    x = lax.fori_loop(0, n - 1, lambda k, x: x.at[n - 2 - k].set(q[n - 2 - k] - p[n - 2 - k] * x[n - 1 - k]), x)
    return jnp.sum(x * x)
