"""Programs as people write them, traced and compared with running them."""

import dataclasses
import functools
import math
from functools import partial

import numpy as np
import pytest
from numpy import exp, log
from scipy.special import expit
from tracing import check, traced

RNG = np.random.default_rng(0)


def sample(*shape):
    return RNG.normal(size=shape)


def softmax(z, axis=-1):
    z = z - z.max(axis=axis, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)


def mlp(params, x):
    *hidden, last = params
    for w, b in hidden:
        x = np.tanh(x @ w + b)
    w, b = last
    return x @ w + b


def test_mlp():
    def loss(params, x, labels):
        logits = mlp(params, x)
        p = softmax(logits)
        n = x.shape[0]
        return -np.mean(np.log(p[np.arange(n), labels])) + 1e-3 * sum(np.sum(w ** 2) for w, _ in params)

    sizes = [4, 8, 5, 3]
    params = [(sample(m, n), sample(n)) for m, n in zip(sizes[:-1], sizes[1:])]
    found = check(loss, params, sample(6, 4), np.array([0, 1, 2, 0, 1, 2]))
    assert len({s for p in found.func.params for d in p.type.shape for s in [str(d)]}) <= 5


def test_logistic_regression():
    def loss(w, b, x, y, l2=1e-2):
        z = x.dot(w) + b
        return np.mean(np.logaddexp(0.0, z) - y * z) + 0.5 * l2 * np.dot(w, w)

    check(loss, sample(3), 0.5, sample(7, 3), (sample(7) > 0).astype(float))


def test_attention():
    def attention(q, k, v, heads):
        def split(t):
            return t.reshape(t.shape[0], heads, t.shape[1] // heads).transpose(1, 0, 2)

        q, k, v = map(split, (q, k, v))
        scores = np.einsum("hid,hjd->hij", q, k) / math.sqrt(q.shape[-1])
        mask = np.tril(np.ones((q.shape[1], q.shape[1]), dtype=bool))
        weights = softmax(np.where(mask, scores, -1e9))
        out = weights @ v
        return out.transpose(1, 0, 2).reshape(out.shape[1], -1)

    check(attention, sample(5, 8), sample(5, 8), sample(5, 8), 2, fixed=True)
    check(attention, sample(5, 8), sample(5, 8), sample(5, 8), 2)


def test_recurrent_cell_unrolled():
    class Cell:
        def __init__(self, w, u, b):
            self.w, self.u, self.b = w, u, b

        def __call__(self, h, x):
            return np.tanh(self.w @ x + self.u @ h + self.b)

    def run(params, xs):
        cell = Cell(**params)
        h = np.zeros(params["b"].shape)
        for x in xs:
            h = cell(h, x)
        return h, np.stack([h, h * 2])

    check(run, {"w": sample(3, 2), "u": sample(3, 3), "b": sample(3)}, [sample(2), sample(2)])


def test_gaussian_process():
    def nll(theta, x, y):
        length, noise = np.exp(theta)
        gram = np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2 / length ** 2) + noise * np.eye(len(x))
        chol = np.linalg.cholesky(gram)
        alpha = np.linalg.solve(gram, y)
        return 0.5 * y @ alpha + np.log(np.diag(chol)).sum() + 0.5 * len(x) * np.log(2 * np.pi)

    check(nll, np.array([0.1, -0.3]), sample(4), sample(4))


def test_polynomials_and_series():
    def horner(coefficients, x):
        return functools.reduce(lambda acc, c: acc * x + c, coefficients, 0.0)

    def series(x, terms=8):
        total, term = 0.0, 1.0
        for k in range(1, terms + 1):
            total += term
            term *= x / k
        return total

    check(horner, [1.0, -2.0, 3.0], 0.5)
    check(series, 1.3)


def test_rosenbrock_forms():
    def vector(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def scalars(p):
        x, y = p
        return (1 - x) ** 2 + 100 * (y - x * x) ** 2

    check(vector, sample(6))
    check(scalars, sample(2))


def test_from_imports_and_scipy():
    def f(x):
        return log(1 + exp(x)) + expit(x)

    check(f, sample(4))


def test_normalisations_and_statistics():
    def f(x, gamma):
        mean, var = x.mean(axis=0), x.var(axis=0)
        y = gamma * (x - mean) / np.sqrt(var + 1e-5)
        return y, np.linalg.norm(y), np.median(x), np.clip(x, -1, 1).std()

    check(f, sample(5, 3), sample(3))


@dataclasses.dataclass
class Spring:
    k: float
    rest: float

    def force(self, a, b):
        d = b - a
        r = np.sqrt(np.sum(d * d))
        return self.k * (r - self.rest) * d / r


def test_physics_with_objects():
    def step(springs, positions, velocities, dt=0.01):
        forces = [np.zeros(2) for _ in positions]
        for (i, j), spring in springs.items():
            f = spring.force(positions[i], positions[j])
            forces[i] = forces[i] + f
            forces[j] = forces[j] - f
        velocities = [v + dt * f for v, f in zip(velocities, forces)]
        return [p + dt * v for p, v in zip(positions, velocities)], velocities

    check(step, {(0, 1): Spring(1.0, 0.5), (1, 2): Spring(2.0, 0.3)}, [sample(2) for _ in range(3)],
          [sample(2) for _ in range(3)])


def test_higher_order_functions():
    def compose(*fs):
        return lambda x: functools.reduce(lambda value, f: f(value), fs, x)

    def runge_kutta(f, y, t, h):
        k1 = f(y, t)
        k2 = f(y + h / 2 * k1, t + h / 2)
        k3 = f(y + h / 2 * k2, t + h / 2)
        k4 = f(y + h * k3, t + h)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def f(y, rate):
        step = partial(runge_kutta, lambda y, t: -rate * y + np.sin(t), h=0.1)
        for k in range(3):
            y = step(y, t=0.1 * k)
        return compose(np.tanh, lambda v: v * 2, np.sum)(y)

    check(f, sample(3), 0.7)


def test_finite_differences_in_place():
    def heat(u, steps):
        u = u.copy()
        for _ in range(steps):
            new = u.copy()
            new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u = new
        lap = np.zeros_like(u)
        lap[1:-1] = np.diff(u, 2)
        return u, lap

    check(heat, sample(8), 3)


def test_householder_by_hand():
    def f(a):
        r = a.copy()
        n = 3
        for k in range(n):
            v = r[k:, k].copy()
            v[0] += np.sign(v[0]) * np.linalg.norm(v)
            v /= np.linalg.norm(v)
            r[k:, k:] -= 2.0 * np.outer(v, v @ r[k:, k:])
        return r

    check(f, sample(4, 3), fixed=True)


@pytest.mark.parametrize("fixed", [True, False])
def test_shapes(fixed):
    def f(x):
        n, m = x.shape
        flat = x.reshape(n * m)
        halves = np.split(x, [1], axis=0)
        return (flat, x.reshape(-1, 1), x.T.reshape(m, -1), np.concatenate([x, x], axis=1), np.stack([x, x]).shape,
                np.zeros((n, 2 * m)), np.arange(n), np.ones(n + m), halves, np.tile(x, (2, 1)), x.size, np.eye(n) * 2)

    check(f, sample(3, 4), fixed=fixed)


def test_tracing_is_fast():
    import time

    def f(params, x):
        y = mlp(params, x)
        for _ in range(3):
            p = softmax(y)
            y = np.log(p + 1e-9) * np.exp(-p) + np.sum(p, axis=0)
            y = np.where(y > 0, y, 0.1 * y)
        return np.mean(y ** 2)

    params = [(sample(4, 8), sample(8)), (sample(8, 4), sample(4))]
    traced(f, params, sample(5, 4), fixed=True)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        traced(f, params, sample(5, 4), fixed=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.2
