"""Small programs of every kind over a batch: vmap is a loop over the lanes, and so are its derivatives on both sides.

By the evaluator of the IR; what is asked of a program is its values, the gradient of their sum under vmap, and the
gradient of the sum over lanes.
"""

import sys
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit" / "frontend"))
from tracing import run, traced

import gradsmith
from gradsmith import grad, vmap

RNG = np.random.default_rng(1)
LANES = 5
S, X, Q = RNG.normal(size=LANES), RNG.normal(size=(LANES, 6)), RNG.normal(size=(LANES, 4, 6))
M = RNG.normal(size=(LANES, 4, 4))
K, N = np.array([0, 3, 1, 4, 2]), np.array([1, 3, 2, 5, 4])
W = RNG.normal(size=(6, 6))

PROGRAMS = []


def over(*args, axes=None):
    def register(program):
        PROGRAMS.append((program, axes or (0,) * len(args), args))
        return program
    return register


# --- views, writes at the lane's own places -----------------------------------------------------------------------


@over(X, K)
def writes_through_views(x, k):
    y = x.copy()
    view = y[1:5]
    view[k % 4] = 9.0
    view[::-1][0] *= 2.0
    return y


@over(X, K)
def negative_steps(x, k):
    return x[::-1][k] + x[4::-2].sum() + x[-1:-4:-1].prod() + x[-k - 1]


@over(X, K)
def slices_of_the_lanes_own_sizes(x, k):
    y = np.zeros(8)
    y[k:k + 3] = x[:3]
    y[k] += x[k:k + 2].sum()
    return y


@over(X, K, X[0], axes=(0, 0, None))
def fancy_indices(x, k, shared):
    places = np.array([0, 1, 1]) + k // 2
    y = x.copy()
    y[places] += shared[places]
    np.add.at(y, np.array([k, k, 0]), x[:3])
    return y, x[places]


@over(Q, K)
def rows_and_columns(q, k):
    a = q.copy()
    j = k % 4
    a[[0, j]] = a[[j, 0]]
    a[j, k] = 0.0
    a[:, k] += 1.0
    a.T[2][:2] *= 3.0
    row, other = a[j], a[(j + 1) % 4]
    row[:] = other
    other[0] = 7.0
    return a


@over(X)
def masks(x):
    y = x.copy()
    y[x > 0] = 0.0
    y[x < -0.5] *= -1.0
    return y, x[x > 0].sum(), np.sum(x, where=x > 0.1), np.where(x > 0, np.sqrt(np.abs(x)), 0.0)


@over(X)
def insertion_sort(x):
    y = x.copy()
    for i in range(1, 6):
        v, j = y[i], i - 1
        while j >= 0 and y[j] > v:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = v
    return y


# --- lanes that go their own ways ---------------------------------------------------------------------------------


@over(S, N)
def early_return(s, n):
    for i in range(n):
        s = s * 1.5 + 0.1
        if s > 2:
            return s, i
    return -s, n


@over(X)
def loops_with_else(x):
    total = 0.0
    for i in range(6):
        for j in range(i, 6):
            if x[i] * x[j] > 0.5:
                break
            total += x[i] * x[j]
        else:
            total += 1
            continue
        if total < -3:
            break
    return total


@over(S, N)
def stacks(s, n):
    stack = [s]
    for i in range(n):
        stack.append(stack[-1] * 0.5 + i)
    total = 0.0
    while len(stack) > 1:
        total = total * 0.3 + stack.pop()
    return total


@over(S)
def recursion(s):
    def inner(x, depth):
        if abs(x) < 0.1 or depth > 6:
            return x
        return inner(x * 0.5, depth + 1) + 0.1 * inner(-x * 0.3, depth + 2)
    return inner(s, 0)


@dataclass
class Body:
    place: np.ndarray
    speed: float

    def step(self, dt):
        self.place = self.place + dt * self.speed
        self.speed *= 0.9
        return self


@over(X, S, N)
def objects(x, s, n):
    body = Body(x, s)
    for _ in range(n):
        body = body.step(0.1)
    return body.place, body.speed


Pair = namedtuple("Pair", "u v")


@over(X, S, N)
def containers(x, s, n):
    pair = Pair(x * s, s)
    found = {"a": s, "b": np.zeros(3)}
    for i in range(n):
        found["a"] = found["a"] * 1.1
        found["b"][i % 3] += found["a"]
    return pair._replace(v=pair.u.sum()), found["b"]


@over(S, N)
def patterns(s, n):
    match n:
        case 1:
            return s
        case 2 | 3:
            return s * 2
        case k if k > 4:
            return s * k
        case _:
            return -s


@over(S, N)
def closures(s, n):
    total = s

    def add(v):
        nonlocal total
        total = total + v * s

    for i in range(n):
        add(i * s if i % 2 else -1.0)
    return total


@over(X)
def best_so_far(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best


@over(M, S)
def newton(m, s):
    x = np.ones(4) * s
    for _ in range(8):
        step = np.linalg.solve(m + np.diag(3 * x**2) + 20 * np.eye(4), m @ x + x**3 - 1)
        x = x - step
        if np.abs(step).max() < 1e-3:
            break
    return x


@over(M, N)
def powers_of_matrices(m, n):
    power = np.eye(4)
    for _ in range(n):
        power = power @ m * 0.3
    return power


# --- operations and transforms inside -----------------------------------------------------------------------------


@over(Q, X)
def einsums(q, x):
    return np.einsum("ij,j->i", q, x), np.einsum("ij,kj->ik", q, q), np.einsum("...j,j", q, x), np.einsum("i,j->", x, x)


@over(W, X, axes=(None, 0))
def shared_matrix(w, x):
    return np.einsum("ij,i,j", w, x, x), np.tensordot(w, x, 1), x @ w @ x, np.linalg.solve(w + 9 * np.eye(6), x)


@over(Q)
def reductions(q):
    return q.sum(0), q.max(), np.argmin(q, axis=1), q.std(axis=-1), np.median(q, axis=0), np.cumsum(q, axis=1), (q > 0).any()


@over(X)
def derivatives_inside(x):
    return grad(lambda v: (np.sin(v) * v).sum())(x), gradsmith.jacfwd(lambda v: v**2 * v[0])(x)


@over(Q, N)
def batches_inside(q, n):
    def inner(row, scale):
        total = 0.0
        for i in range(n):
            total += row[i] * i * scale
        return total
    return vmap(inner, in_axes=(0, None))(q, q[0, 0])


# --- what is asked ------------------------------------------------------------------------------------------------


def leaves(x):
    if isinstance(x, dict):
        x = tuple(x.values())
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, (tuple, list)) else [x]


def lane(args, axes, k):
    parts = [arg if axis is None else np.take(arg, k, axis=axis) for arg, axis in zip(args, axes)]
    return [x.item() if isinstance(x, np.generic) and x.dtype.kind in "bi" else x for x in parts]


def evaluated(f, *args):
    return run(traced(f, *args))


@pytest.mark.parametrize("program, axes, args", PROGRAMS, ids=[p.__name__ for p, *_ in PROGRAMS])
def test_a_batch_is_a_loop_over_lanes(program, axes, args):
    rows = [leaves(program(*lane(args, axes, k))) for k in range(LANES)]
    found = leaves(evaluated(vmap(program, in_axes=axes), *args))
    for value, *lanes in zip(found, *rows, strict=True):
        np.testing.assert_allclose(value, np.stack(lanes), rtol=1e-10, atol=1e-12)
        assert np.shape(value) == np.shape(np.stack(lanes))
    which = 0 if axes[0] == 0 else 1

    def total(*own):
        return sum([np.sum(np.sin(leaf)) for leaf in leaves(program(*own)) if np.asarray(leaf).dtype.kind == "f"])

    gradient = grad(total, which)
    expected = np.stack([evaluated(gradient, *lane(args, axes, k)) for k in range(LANES)])
    moved = [None if axis is None else -1 for axis in axes]
    last = [arg if axis is None else np.moveaxis(arg, 0, -1) for arg, axis in zip(args, axes)]
    inside = evaluated(vmap(gradient, in_axes=moved, out_axes=-1), *last)
    np.testing.assert_allclose(inside, np.moveaxis(expected, 0, -1), rtol=1e-8, atol=1e-10)
    outside = evaluated(grad(lambda *own: vmap(total, in_axes=axes)(*own).sum(), which), *args)
    np.testing.assert_allclose(outside, expected, rtol=1e-8, atol=1e-10)
