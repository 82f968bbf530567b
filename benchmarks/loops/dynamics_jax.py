"""The same systems for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def n_body(position, velocity, mass, steps):
    """All pairs at once."""
    return _n_body(position, velocity, mass, steps, lambda step: step)


def n_body_again(position, velocity, mass, steps):
    """Pairs are not saved, but computed again in the reverse sweep."""
    return _n_body(position, velocity, mass, steps, jax.checkpoint)


def _n_body(position, velocity, mass, steps, wrap):
    def step(state, _):
        x, v = state
        d = x[None, :, :] - x[:, None, :]
        r2 = jnp.sum(d * d, axis=-1) + 0.01
        pull = mass[None, :] / (r2 * jnp.sqrt(r2))
        v = v + 0.01 * jnp.einsum("ij,ijk->ik", pull, d)
        return (x + 0.01 * v, v), None
    (x, _), _ = lax.scan(wrap(step), (position, velocity), None, length=steps)
    return jnp.sum(x * x)


def lorenz(x, y, z, sigma, rho, beta, steps):
    return _lorenz(x, y, z, sigma, rho, beta, steps, lambda step: step)


def lorenz_again(x, y, z, sigma, rho, beta, steps):
    """Of each step the state alone is saved; the rest is computed again in the reverse sweep."""
    return _lorenz(x, y, z, sigma, rho, beta, steps, jax.checkpoint)


def _lorenz(x, y, z, sigma, rho, beta, steps, wrap):
    h = 0.0005

    def field(s):
        x, y, z = s
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    def along(s, h, k):
        return tuple(a + h * b for a, b in zip(s, k))

    def step(s, _):
        k1 = field(s)
        k2 = field(along(s, h / 2, k1))
        k3 = field(along(s, h / 2, k2))
        k4 = field(along(s, h, k3))
        return tuple(a + h / 6 * (p + 2 * q + 2 * r + t) for a, p, q, r, t in zip(s, k1, k2, k3, k4)), None
    (x, y, z), _ = lax.scan(wrap(step), (x, y, z), None, length=steps)
    return x * x + y * y + z * z


def logistic_map(x, r, steps):
    def step(state, _):
        x, total = state
        x = r * x * (1 - x)
        return (x, total + x), None
    (_, total), _ = lax.scan(step, (x, 0.0 * x), None, length=steps)
    return total / steps


def kepler_fixed(mean, eccentricity):
    """All at once, as many of Newton's steps as the worst one needs."""
    def step(anomaly, _):
        f = anomaly - eccentricity * jnp.sin(anomaly) - mean
        return anomaly - f / (1 - eccentricity * jnp.cos(anomaly)), None
    anomaly, _ = lax.scan(step, mean, None, length=9)
    return jnp.sum(jnp.cos(anomaly))


def kepler_forward(mean, eccentricity):
    """The gradient: forward mode through the loop, whose elements do not touch each other."""
    def solve(m, e):
        def step(state):
            anomaly, _ = state
            delta = (anomaly - e * jnp.sin(anomaly) - m) / (1 - e * jnp.cos(anomaly))
            return anomaly - delta, delta
        anomaly, _ = lax.while_loop(lambda s: jnp.any(jnp.abs(s[1]) > 1e-12), step, (m, jnp.ones_like(m)))
        return jnp.cos(anomaly)
    ones, zeros = jnp.ones_like(mean), jnp.zeros_like(mean)
    push = lambda dm, de: jax.jvp(solve, (mean, eccentricity), (dm, de))[1]
    by_mean, by_eccentricity = jax.vmap(push)(jnp.stack([ones, zeros]), jnp.stack([zeros, ones]))
    return by_mean, by_eccentricity


def binomial_tree(spot, strike, rate, sigma, time, steps):
    """Levels as vectors of one length, whose tails no longer matter."""
    return _tree(spot, strike, rate, sigma, time, steps, lambda step: step)


def binomial_tree_again(spot, strike, rate, sigma, time, steps):
    return _tree(spot, strike, rate, sigma, time, steps, jax.checkpoint)


def _tree(spot, strike, rate, sigma, time, steps, wrap):
    dt = time / steps
    up = jnp.exp(sigma * jnp.sqrt(dt))
    discount = jnp.exp(-rate * dt)
    p = (jnp.exp(rate * dt) - 1 / up) / (up - 1 / up)
    price = spot * up ** (2.0 * jnp.arange(steps + 1) - steps)
    value = jnp.maximum(strike - price, 0.0)

    def step(state, _):
        value, price = state
        price = price * up
        hold = discount * (p * jnp.concatenate([value[1:], value[-1:]]) + (1 - p) * value)
        return (jnp.maximum(hold, strike - price), price), None
    (value, _), _ = lax.scan(wrap(step), (value, price), None, length=steps)
    return value[0]


def binomial_tree_at(spot, strike, rate, sigma, time, steps):
    dt = time / steps
    up = jnp.exp(sigma * jnp.sqrt(dt))
    discount = jnp.exp(-rate * dt)
    p = (jnp.exp(rate * dt) - 1 / up) / (up - 1 / up)
    price = spot * up ** (2.0 * jnp.arange(steps + 1) - steps)
    value = jnp.maximum(strike - price, 0.0)

    def level(k, state):
        def node(j, state):
            value, price = state
            price = price.at[j].multiply(up)
            hold = discount * (p * value[j + 1] + (1 - p) * value[j])
            return value.at[j].set(jnp.where(j < steps - k, jnp.maximum(hold, strike - price[j]), value[j])), price
        return lax.fori_loop(0, steps, node, state)
    value, _ = lax.fori_loop(0, steps, level, (value, price))
    return value[0]
