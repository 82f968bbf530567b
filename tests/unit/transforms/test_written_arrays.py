"""Reverse mode through arrays written in place: values read back, put back, run again or saved, whichever is cheapest.

Each program reads before and after it writes; gradients are compared with differences, with forward mode, and once
more derived both ways.
"""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs


def gauss_seidel(u, k):
    u = u.copy()
    n = u.shape[0]
    for t in range(k):
        for i in range(1, n - 1):
            u[i] = np.sin(u[i - 1] * u[i + 1]) + 0.3 * u[i] ** 2
    return np.sum(u * u)


def swap(u, k):
    a = u.copy()
    b = 0.5 * u
    n = u.shape[0]
    for t in range(k):
        for i in range(1, n - 1):
            b[i] = a[i - 1] * a[i + 1] + 0.1 * a[i] ** 2
        a, b = b, a
    return np.sum(a * a) + b[1]


def lu(A, k):
    A = A.copy()
    n = A.shape[0]
    for j in range(n):
        for i in range(j + 1, n):
            A[i, j] = A[i, j] / A[j, j]
            for l in range(j + 1, n):
                A[i, l] -= A[i, j] * A[j, l]
    s = 0.0
    for i in range(n):
        s += np.log(np.abs(A[i, i])) + A[i, 0] ** 2
    return s


def lu2(A, k):
    A = A.copy()
    n = A.shape[0]
    for j in range(n):
        A[j + 1:, j] /= A[j, j]
        A[j + 1:, j + 1:] -= A[j + 1:, j:j + 1] * A[j, j + 1:]
    return np.sum(A * A)


def cond(u, k):
    u = u.copy()
    n = u.shape[0]
    for t in range(k):
        for i in range(n - 1):
            if u[i] > 0.3:
                u[i + 1] = u[i] * u[i + 1]
            else:
                u[i] = np.cos(u[i + 1]) * u[i]
                u[0] = u[0] * u[i] + 0.1
    return np.sum(np.sin(u))


def readback(u, k):
    u = u.copy()
    s = 0.0
    for t in range(k):
        a = u[0] * u[1]
        u[0] = a * a
        b = u[0] * a
        u[1] = np.sin(b) + u[1]
        s += b * a * u[1]
    return s


def rows(A, k):
    A = A.copy()
    n = A.shape[0]
    for t in range(k):
        for i in range(1, n):
            A[i] = A[i - 1] * A[i] + np.tanh(A[i])
        A[0, ::-1] = A[n - 1] * A[0]
    return np.sum(A)


def gram(A, k):
    Q = A.copy()
    n = A.shape[0]
    for j in range(n):
        for l in range(j):
            d = 0.0
            for i in range(n):
                d += Q[i, l] * Q[i, j]
            for i in range(n):
                Q[i, j] -= d * Q[i, l]
        s = 0.0
        for i in range(n):
            s += Q[i, j] ** 2
        s = np.sqrt(s)
        for i in range(n):
            Q[i, j] /= s
    return np.sum(Q * np.cos(Q))


def inner_new(u, k):
    n = u.shape[0]
    x = u.copy()
    for t in range(k):
        y = np.zeros(n)
        for i in range(1, n):
            y[i] = x[i] * y[i - 1] + np.sin(x[i - 1])
        for i in range(n):
            x[i] = np.tanh(y[i] * y[i]) + x[i]
    return np.sum(x)


def newton(u, k):
    s = 0.0
    for i in range(u.shape[0]):
        z = 1.0 + u[i]
        while abs(z * z - 2.0 - u[i]) > 1e-9:
            z = z - (z * z - 2.0 - u[i]) / (2 * z)
        s += z * u[i]
        for j in range(i):
            z = z * np.sin(z) + u[j]
        s += z
    return s


def early(u, k):
    u = u.copy()
    n = u.shape[0]
    for t in range(k):
        for i in range(n):
            if u[i] > 2.0:
                break
            u[i] = u[i] * u[(i + 1) % n] + 0.5
        if u[0] > 3.0:
            return np.sum(u * u)
    return np.sum(u)


def durbin(u, k):
    n = u.shape[0]
    y = np.zeros(n)
    z = np.zeros(n)
    r = 0.3 * u
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k2 in range(1, n):
        beta = (1 - alpha * alpha) * beta
        s = 0.0
        for i in range(k2):
            s += r[k2 - i - 1] * y[i]
        alpha = -(r[k2] + s) / beta
        for i in range(k2):
            z[i] = y[i] + alpha * y[k2 - i - 1]
        for i in range(k2):
            y[i] = z[i]
        y[k2] = alpha
    return np.sum(y * y)


def indexed(u, k):
    u = u.copy()
    n = u.shape[0]
    for t in range(k):
        j = (t * 3) % n
        u[j] = u[j] * u[(j + 1) % n]
        i = 0
        while i < n - 1:
            u[i] = u[i] * u[j] + 0.1 * u[i + 1]
            i += 2
    return np.sum(u ** 3)


def aug(u, k):
    u = u.copy()
    n = u.shape[0]
    w = np.zeros(n)
    for t in range(k):
        for i in range(n):
            w[i] += u[i] * w[i - 1] + u[i]
            u[i] *= 0.5 * w[n - 1 - i] + 0.1
    return np.sum(w * u)


def table(u, k):
    n = 4 * k + 1
    y = np.zeros(n)
    y[0] = 1.0
    for i in range(1, n):
        y[i] = np.dot(u[:min(i, 3)], y[max(0, i - 3):i][::-1]) * 0.5
    return np.sum(y * y)


def in_arms(u, k):
    y = u * 1.0
    for i in range(k % 4):
        if y[i] > -9.0:
            if k > 0:
                y[i] *= y[i + 1]
            y[0] *= y[i] * y[1]
    if k < 9:
        y[1] *= y[0]
    return np.sum(np.sin(y))


def array_of_a_trip(u, k):
    s = 0.0
    for i in range(k % 5):
        y = u * u[i]
        if k > 0:
            y[1] *= y[0]
            y[i] *= y[1]
        s += np.sum(np.sin(y))
    return s


def checkpointed(u, k):
    u = u.copy()
    v = u.copy()
    n = u.shape[0]
    for t in gs.checkpoint(range(2, k + 2), memory=1e6):
        for i in range(1, n - 1):
            v[i] = np.sin(u[i - 1] * u[i + 1]) + t * 0.1 * u[i] ** 2
        for i in range(1, n - 1):
            u[i] = v[i]
    return np.sum(u * u)


def checkpointed_slices(u, k):
    u = u.copy()
    for _ in gs.checkpoint(range(k), every=3):
        u[1:-1] = u[1:-1] - 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return np.sum(u * u)


def checkpointed_number(u, k):
    x = u[0]
    for t in gs.checkpoint(range(k, 0, -1)):
        x = 3.2 * x * (1 - x) + 0.01 * t
    return x * x


TRIPS = (0, 1, 2, 3, 7)
VECTORS = [gauss_seidel, swap, cond, readback, inner_new, early, indexed, aug, in_arms, array_of_a_trip,
           checkpointed, checkpointed_slices, checkpointed_number]
ONCE = [newton, durbin, table]
MATRICES = [lu, lu2, gram]
CASES = [*((f, k) for f in VECTORS for k in TRIPS), *((f, 1) for f in (*ONCE, *MATRICES)),
         *((rows, k) for k in (0, 1, 2, 3))]


@pytest.fixture(autouse=True)
def in_python(monkeypatch):
    """The generated source as it stands, without waiting for the compiler."""
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)


@pytest.mark.parametrize("function, k", CASES, ids=[f"{f.__name__} {k}" for f, k in CASES])
def test_gradient(function, k):
    rng = np.random.default_rng(k)
    if function in (*MATRICES, rows):
        x = rng.uniform(0.2, 0.9, (5, 5)) + (5 * np.eye(5) if function is not rows else 0.0)
    else:
        x = rng.uniform(0.2, 0.9, 5)
    d = rng.normal(size=x.shape)
    before = x.copy()
    gradient = gs.grad(function)
    g = gradient(x, k)
    np.testing.assert_array_equal(x, before)
    difference = (function(x + 1e-6 * d, k) - function(x - 1e-6 * d, k)) / 2e-6
    np.testing.assert_allclose(np.sum(g * d), difference, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gs.jvp(lambda x: function(x, k), (x,), (d,))[1], np.sum(g * d), rtol=1e-9, atol=1e-12)
    forward = gs.jvp(lambda x: gs.grad(function)(x, k), (x,), (d,))[1]
    reverse = gs.grad(lambda x: np.sum(gs.grad(function)(x, k) * d))(x)
    np.testing.assert_allclose(reverse, forward, rtol=1e-8, atol=1e-10)
    second = (gradient(x + 1e-6 * d, k) - gradient(x - 1e-6 * d, k)) / 2e-6
    np.testing.assert_allclose(forward, second, rtol=1e-4, atol=1e-5)


def rows_swapped(u, k):
    s = u[0]
    rows = np.outer(u, u)
    for a, b in zip(rows, rows):
        for _ in range(k):
            for j in range(2):
                a, b = b, a
                s = np.sin(s * a[j]) + b[0]
    return s


def handed_around(u, k):
    s = u[0]
    y = u * 1.0
    for _ in range(k % 4):
        a, b = y * s, y * 2.0
        for i in range(3):
            a[i] = np.sin(b[i] * a[0])
            a, b = b, a
            y[i] *= a[1]
        s += a[0]
    return s


@pytest.mark.parametrize("k", TRIPS)
@pytest.mark.parametrize("function", [rows_swapped, handed_around])
def test_arrays_handed_around_in_inner_loops(function, k):
    test_gradient(function, k)
