"""The stencils for JAX: what one who knows it writes, and the loops as they stand with `.at[].set`."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def over(steps, step, *state):
    """The state after `steps` steps; step: state -> state."""
    return lax.scan(lambda s, _: (step(*s), None), state, None, length=steps)[0]


def jacobi_1d(a, steps):
    def step(a, b):
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3)
        return a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3), b
    a, _ = over(steps, step, a, a)
    return jnp.sum(a * a)


def jacobi_1d_at(a, steps):
    n = a.shape[0]

    def step(_, state):
        a, b = state
        b = lax.fori_loop(1, n - 1, lambda i, b: b.at[i].set((a[i - 1] + a[i] + a[i + 1]) / 3), b)
        a = lax.fori_loop(1, n - 1, lambda i, a: a.at[i].set((b[i - 1] + b[i] + b[i + 1]) / 3), a)
        return a, b
    a, _ = lax.fori_loop(0, steps, step, (a, a))
    return jnp.sum(a * a)


def jacobi_2d(a, steps):
    def five(a):
        return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])

    def step(a, b):
        b = b.at[1:-1, 1:-1].set(five(a))
        return a.at[1:-1, 1:-1].set(five(b)), b
    a, _ = over(steps, step, a, a)
    return jnp.sum(a * a)


def jacobi_2d_padded(a, steps):
    """The frame never changes: the inner part alone is carried, and padded for each step."""
    def half(inner):
        a = frame + jnp.pad(inner, 1)
        return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])

    frame = a.at[1:-1, 1:-1].set(0.0)
    inner, = over(steps, lambda inner: (half(half(inner)),), a[1:-1, 1:-1])
    return jnp.sum(inner * inner) + jnp.sum(frame * frame)


def jacobi_2d_at(a, steps):
    n, m = a.shape

    def sweep(source, target):
        def element(i, j, target):
            return target.at[i, j].set(0.2 * (source[i, j] + source[i, j - 1] + source[i, j + 1] + source[i + 1, j]
                                              + source[i - 1, j]))
        return lax.fori_loop(1, n - 1, lambda i, t: lax.fori_loop(1, m - 1, lambda j, t: element(i, j, t), t), target)

    def step(_, state):
        a, b = state
        b = sweep(a, b)
        return sweep(b, a), b
    a, _ = lax.fori_loop(0, steps, step, (a, a))
    return jnp.sum(a * a)


def gauss_seidel_scan(a, steps):
    """A scan over rows, in it one over the elements of the row, which carries the element before."""
    def row(above, rows):
        here, below = rows
        known = above[:-2] + above[1:-1] + above[2:] + here[1:-1] + here[2:] + below[:-2] + below[1:-1] + below[2:]

        def element(left, c):
            left = (left + c) / 9
            return left, left
        _, inner = lax.scan(element, here[0], known)
        new = here.at[1:-1].set(inner)
        return new, new

    def step(a):
        _, inner = lax.scan(row, a[0], (a[1:-1], a[2:]))
        return (a.at[1:-1].set(inner),)
    a, = over(steps, step, a)
    return jnp.sum(a * a)


def gauss_seidel_product(a, steps):
    """A row is a linear recurrence: a product with the inverse of a bidiagonal matrix."""
    m = a.shape[1] - 2
    k = jnp.arange(m)
    inverse = jnp.where(k[:, None] >= k, (1 / 9.0) ** (k[:, None] - k + 1), 0.0)

    def row(above, rows):
        here, below = rows
        known = above[:-2] + above[1:-1] + above[2:] + here[1:-1] + here[2:] + below[:-2] + below[1:-1] + below[2:]
        new = here.at[1:-1].set(inverse @ known.at[0].add(here[0]))
        return new, new

    def step(a):
        _, inner = lax.scan(row, a[0], (a[1:-1], a[2:]))
        return (a.at[1:-1].set(inner),)
    a, = over(steps, step, a)
    return jnp.sum(a * a)


def gauss_seidel_at(a, steps):
    n, m = a.shape

    def element(i, j, a):
        return a.at[i, j].set((a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j] + a[i, j + 1]
                               + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]) / 9)

    def step(_, a):
        return lax.fori_loop(1, n - 1, lambda i, a: lax.fori_loop(1, m - 1, lambda j, a: element(i, j, a), a), a)
    a = lax.fori_loop(0, steps, step, a)
    return jnp.sum(a * a)


def heat_3d(a, steps):
    def step(a):
        c = a[1:-1, 1:-1, 1:-1]
        return (a.at[1:-1, 1:-1, 1:-1].set(0.125 * (a[2:, 1:-1, 1:-1] - 2 * c + a[:-2, 1:-1, 1:-1])
                                           + 0.125 * (a[1:-1, 2:, 1:-1] - 2 * c + a[1:-1, :-2, 1:-1])
                                           + 0.125 * (a[1:-1, 1:-1, 2:] - 2 * c + a[1:-1, 1:-1, :-2]) + c),)
    a, = over(steps, step, a)
    return jnp.sum(a * a)


def fdtd_2d(ex, ey, hz, pulse):
    def step(state, p):
        ex, ey, hz = state
        ey = jnp.concatenate([jnp.full((1, ey.shape[1]), p), ey[1:] - 0.5 * (hz[1:] - hz[:-1])])
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return (ex, ey, hz), None
    (_, _, hz), _ = lax.scan(step, (ex, ey, hz), pulse)
    return jnp.sum(hz * hz)


def adi(u, steps):
    """Lines are solved side by side, a scan along them; the coefficients p do not depend on the line."""
    n = u.shape[0]
    a = -1.0 * n * n / steps
    b = 1.0 - 2 * a
    d = -0.5 * n * n / steps
    e = 1.0 - 2 * d

    def coefficients(a, b):
        return lax.scan(lambda p, _: (-a / (a * p + b), p), 0.0, None, length=n - 1)[1]

    def sweep(right, a, b, p):
        """right: (lines, n - 2).  The solution with 1 at both ends: (lines, n)."""
        ends = jnp.ones(right.shape[0])

        def forward(q, given):
            r, p = given
            q = (r - a * q) / (a * p + b)
            return q, q
        _, q = lax.scan(forward, ends, (right.T, p[:-1]))

        def backward(v, given):
            q, p = given
            v = p * v + q
            return v, v
        _, v = lax.scan(backward, ends, (q, p[1:]), reverse=True)
        return jnp.concatenate([ends[:, None], v.T, ends[:, None]], axis=1)

    p, r = coefficients(a, b), coefficients(d, e)

    def step(u, v):
        w = (-d * u[1:-1, :-2] + (1 + 2 * d) * u[1:-1, 1:-1] - d * u[1:-1, 2:]).T
        v = v.at[:, 1:-1].set(sweep(w, a, b, p).T)
        w = -a * v[:-2, 1:-1] + (1 + 2 * a) * v[1:-1, 1:-1] - a * v[2:, 1:-1]
        return u.at[1:-1].set(sweep(w, d, e, r)), v
    u, _ = over(steps, step, u, jnp.zeros_like(u))
    return jnp.sum(u * u)


def adi_at(u, steps):
    n = u.shape[0]
    a = -1.0 * n * n / steps
    b = 1.0 - 2 * a
    d = -0.5 * n * n / steps
    e = 1.0 - 2 * d

    def columns(i, state):
        u, v, p, q = state
        v, p, q = v.at[0, i].set(1.0), p.at[i, 0].set(0.0), q.at[i, 0].set(1.0)

        def forward(j, pq):
            p, q = pq
            new = (-d * u[j, i - 1] + (1 + 2 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]) / (a * p[i, j - 1] + b)
            return p.at[i, j].set(-a / (a * p[i, j - 1] + b)), q.at[i, j].set(new)
        p, q = lax.fori_loop(1, n - 1, forward, (p, q))
        v = v.at[n - 1, i].set(1.0)
        v = lax.fori_loop(1, n - 1, lambda k, v: v.at[n - 1 - k, i].set(p[i, n - 1 - k] * v[n - k, i]
                                                                      + q[i, n - 1 - k]), v)
        return u, v, p, q

    def rows(i, state):
        u, v, p, q = state
        u, p, q = u.at[i, 0].set(1.0), p.at[i, 0].set(0.0), q.at[i, 0].set(1.0)

        def forward(j, pq):
            p, q = pq
            new = (-a * v[i - 1, j] + (1 + 2 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]) / (d * p[i, j - 1] + e)
            return p.at[i, j].set(-d / (d * p[i, j - 1] + e)), q.at[i, j].set(new)
        p, q = lax.fori_loop(1, n - 1, forward, (p, q))
        u = u.at[i, n - 1].set(1.0)
        u = lax.fori_loop(1, n - 1, lambda k, u: u.at[i, n - 1 - k].set(p[i, n - 1 - k] * u[i, n - k]
                                                                      + q[i, n - 1 - k]), u)
        return u, v, p, q

    zeros = jnp.zeros((n, n))
    state = (u, zeros, zeros, zeros)
    u, *_ = lax.fori_loop(0, steps, lambda _, s: lax.fori_loop(1, n - 1, rows, lax.fori_loop(1, n - 1, columns, s)),
                          state)
    return jnp.sum(u * u)
