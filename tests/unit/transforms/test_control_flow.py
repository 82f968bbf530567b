"""Forward and reverse mode through branches and loops, on hand-built funcs, at first and second order."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.ir.build import build_func, choose, const, for_loop, int_const, size_value, while_loop
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.types import F64, I64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

ops.load_table()
n = symbol("n")
V = Type("float64", (n,))
Z = int_const(0)


def at(a, *i):
    return ops.load(a, *i, index=(At(),) * len(i))


def put(a, v, *i):
    return ops.store(a, v, *i, index=(At(),) * len(i))


def numbers(size, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 0.9, size)


def logistic_map(x, r, k):
    return for_loop(Z, k, [x], lambda i, x: [r * x * (1.0 - x)], hints=["x"])


def recurrence(x):
    y = put(ops.empty(shape=(n,), dtype="float64"), at(x, Z), Z)

    def body(i, y):
        before = at(y, i - 1)
        return [put(y, at(x, i) + 0.5 * before * before, i)]

    (y,) = for_loop(int_const(1), size_value(n), [y], body, hints=["y"])
    return [ops.sum(y, axes=(0,))]


def branch_in_loop(a):
    def body(i, s):
        v = at(a, i)
        return choose(s * v > 0.0, lambda: [s * v], lambda: [s - v])

    return for_loop(Z, size_value(n), [const(1.0, F64)], body, hints=["s"])


def newton(a):
    return while_loop([a], lambda x: ops.absolute(x * x - a) > 1e-12, lambda x: [0.5 * (x + a / x)], hints=["x"])


def triangular(x):
    def outer(i, t):
        return for_loop(i, size_value(n), [t], lambda j, t: [t * 0.9 + ops.sin(at(x, i) * at(x, j) * t)],
                        hints=["t"], index="j")

    return for_loop(Z, size_value(n), [const(1.0, F64)], outer, hints=["t"])


def rebound_array(x, k):
    (y,) = for_loop(Z, k, [x], lambda i, x: [ops.sin(x) * 1.01 + ops.convert(i, dtype="float64") * 0.1], hints=["x"])
    return [ops.sum(y, axes=(0,))]


def loop_in_branch(x, a):
    (r,) = choose(a > 0.0, lambda: for_loop(Z, size_value(n), [a], lambda i, s: [s * at(x, i) + s * s * 0.1],
                                            hints=["s"]),
                  lambda: [ops.sum(x, axes=(0,)) * a])
    return [r * a]


def stencil(x, k):
    m = size_value(n)

    def outer(t, u):
        def inner(i, v):
            return [put(v, at(u, i) + 0.1 * (at(u, i - 1) * at(u, i + 1) - at(u, i)), i)]

        return for_loop(int_const(1), m - 1, [u], inner, hints=["v"])

    (u,) = for_loop(Z, k, [x], outer, hints=["u"], index="t")
    return [ops.sum(u * u, axes=(0,))]


def kepler(e):
    def body(i, total):
        mean = at(e, i)
        (anomaly,) = while_loop([mean], lambda x: ops.absolute(x - 0.3 * ops.sin(x) - mean) > 1e-12,
                                lambda x: [x - (x - 0.3 * ops.sin(x) - mean) / (1.0 - 0.3 * ops.cos(x))])
        return [total + anomaly * anomaly]

    return for_loop(Z, size_value(n), [const(0.0, F64)], body, hints=["total"])


PROGRAMS = {
    **{f"logistic_map {k}": (logistic_map, [("x", F64), ("r", F64), ("k", I64)], [0.3, 3.2, k], [1, 1, 0])
       for k in (0, 1, 2, 3, 7)},
    "recurrence": (recurrence, [("x", V)], [numbers(6)], [1]),
    "branch_in_loop": (branch_in_loop, [("a", V)], [np.array([0.5, -0.3, 0.7, -0.2, 0.9])], [1]),
    "newton": (newton, [("a", F64)], [2.0], [1]),
    "triangular": (triangular, [("x", V)], [numbers(5)], [1]),
    "rebound_array": (rebound_array, [("x", V), ("k", I64)], [numbers(4), 4], [1, 0]),
    "loop_in_branch, taken": (loop_in_branch, [("x", V), ("a", F64)], [numbers(4), 0.7], [1, 1]),
    "loop_in_branch, not taken": (loop_in_branch, [("x", V), ("a", F64)], [numbers(4), -0.7], [1, 1]),
    **{f"stencil {k}": (stencil, [("x", V), ("k", I64)], [numbers(6), k], [1, 0]) for k in (0, 1, 3)},
    "kepler": (kepler, [("e", V)], [numbers(4)], [1]),
}


def difference(func, args, wrt, tangents):
    """The directional derivative by central differences."""
    def moved(h):
        return evaluate(func, *[a + h * t if w else a for a, w, t in zip(args, wrt, tangents, strict=True)])

    return [(a - b) / 2e-6 for a, b in zip(moved(1e-6), moved(-1e-6), strict=True)]


@pytest.fixture(params=PROGRAMS, scope="module")
def program(request):
    build, params, args, wrt = PROGRAMS[request.param]
    func = build_func(build.__name__, params, build)
    verify(func)
    args = [np.float64(a) if isinstance(a, float) else np.int64(a) if isinstance(a, int) else a for a in args]
    rng = np.random.default_rng(1)
    tangents = [np.float64(rng.normal()) if np.ndim(a) == 0 else rng.normal(size=np.shape(a)) for a in args]
    return func, args, [bool(w) for w in wrt], tangents


def only(items, wrt):
    return [x for x, w in zip(items, wrt, strict=True) if w]


def test_forward_mode(program):
    func, args, wrt, tangents = program
    derived = jvp(func, wrt)
    verify(derived)
    count = len(func.results)
    for made in (derived, pipeline.run(derived)):
        slope = evaluate(made, *args, *only(tangents, wrt))[count:]
        np.testing.assert_allclose(slope, difference(func, args, wrt, tangents), rtol=1e-6, atol=1e-9)


def test_reverse_mode(program):
    func, args, wrt, tangents = program
    derived = vjp(func, wrt)
    verify(derived)
    (wanted,) = difference(func, args, wrt, tangents)
    for made in (derived, pipeline.run(derived)):
        bars = evaluate(made, *args, np.float64(1.0))[len(func.results):]
        found = sum(np.sum(b * t) for b, t in zip(bars, only(tangents, wrt), strict=True))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_second_order(program):
    func, args, wrt, tangents = program
    gradient = vjp(func, wrt, cotangents=[const(1.0, F64)])
    forward, reverse = jvp(gradient, wrt), vjp(gradient, wrt)
    verify(forward)
    verify(reverse)
    along = evaluate(forward, *args, *only(tangents, wrt))[len(gradient.results) + 1:]
    for a, b in zip(along, difference(gradient, args, wrt, tangents)[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    cts = [np.float64(0.0), *only(tangents, wrt)]
    for a, b in zip(evaluate(reverse, *args, *cts)[len(gradient.results):], along, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10)


def test_vmap(program):
    func, args, wrt, _ = program
    rng = np.random.default_rng(3)
    lanes = [[a if not w else a * rng.uniform(0.9, 1.1, np.shape(a)) for a, w in zip(args, wrt, strict=True)]
             for _ in range(3)]
    lanes = [[np.float64(a) if w and np.ndim(a) == 0 else a for a, w in zip(lane, wrt, strict=True)] for lane in lanes]
    stacked = [np.stack([lane[k] for lane in lanes]) if w else args[k] for k, w in enumerate(wrt)]
    gradient = vjp(func, wrt, cotangents=[const(1.0, F64)])
    for each in (func, gradient):
        mapped = vmap(each, wrt, 3)
        verify(mapped)
        wanted = [evaluate(each, *lane) for lane in lanes]
        for made in (mapped, pipeline.run(mapped)):
            for k, found in enumerate(evaluate(made, *stacked)):
                np.testing.assert_allclose(found, np.stack([w[k] for w in wanted]), rtol=1e-12, atol=1e-14)
