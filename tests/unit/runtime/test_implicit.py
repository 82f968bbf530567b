"""Derivatives by the implicit function theorem, of what solvers find that have none of their own."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "frontend"))
from tracing import run, traced

import gradsmith
from gradsmith import grad, hessian, implicit, jacfwd, jacrev, jvp, vmap
from gradsmith.transpiler.errors import TranspileError
from gradsmith.tree_vectors import ravel


def evaluated(f, *args):
    return run(traced(f, *args))


@implicit.custom_root(lambda x, a: x**3 - a)
def cube_root(start, a):
    """By bisection: its own code has derivative zero."""
    low, high = 0.0, start
    while high - low > 1e-14:
        middle = 0.5 * (low + high)
        if middle**3 < a:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


A = 2.0
FIRST, SECOND = A ** (-2 / 3) / 3, -2 / 9 * A ** (-5 / 3)


def close(expected, actual, tolerance=1e-9):
    assert np.shape(expected) == np.shape(actual)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def test_a_number():
    close(A ** (1 / 3), cube_root(10.0, A))
    close(FIRST, evaluated(grad(cube_root, 1), 10.0, A))
    close(FIRST, evaluated(lambda a: jvp(lambda a: cube_root(10.0, a), (a,), (1.0,))[1], A))
    assert 0.0 == evaluated(grad(cube_root, 0), 10.0, A)
    for second in (grad(grad(cube_root, 1), 1), hessian(cube_root, 1), jacfwd(jacfwd(cube_root, 1), 1),
                   grad(jacfwd(cube_root, 1), 1)):
        close(SECOND, evaluated(second, 10.0, A))


def test_batches_and_loops():
    a = np.array([1.0, 2.0, 5.0])
    close(a ** (-2 / 3) / 3, evaluated(vmap(grad(cube_root, 1), in_axes=(None, 0)), 10.0, a))
    close(a ** (-2 / 3) / 3, evaluated(grad(lambda a: np.sum(vmap(lambda b: cube_root(10.0, b))(a))), a))

    def summed(a, n):
        total = 0.0
        for i in range(n):
            total = total + implicit.root(lambda x, i=i: x**3 - a * (i + 1.0), 1.0) * a
        return total

    close(sum(4 / 3 * (2.0 * k) ** (1 / 3) for k in (1, 2, 3)), evaluated(grad(summed), 2.0, 3))


def test_values_of_the_code_around():
    """They are arguments like others, also where the solver's own code would have another derivative."""
    def newton(a):
        return implicit.root(lambda x: x**3 - a, 1.0)

    def bisection(a):
        return implicit.root(lambda x: x**3 - a, 1.0, solver=lambda start: cube_root(10.0, a))

    for found in (newton, bisection):
        close(FIRST, evaluated(grad(found), A))
        close(SECOND, evaluated(grad(grad(found)), A))


def residual(x, p, k):
    u, v = x["u"], x["v"]
    return {"u": u + 0.1 * u**2 + p["c"] * v - 2.0 * np.ones(2),
            "v": v + 0.1 * v**3 + 0.1 * k * np.sum(u) * p["d"] - np.array([1.0, 2.0])}


START = {"u": np.ones(2), "v": np.ones(2)}
WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0])


def weighed(c, d, k=2):
    return WEIGHTS @ ravel(implicit.newton(residual, START, {"c": c, "d": d}, k))


SOLVES = {"dense": None, "gmres": implicit.gmres, "bicgstab": implicit.bicgstab}


def test_newton_in_python():
    x = implicit.newton(lambda x, a: x**3 - a, 1.0, A)
    close(A ** (1 / 3), x)


@pytest.mark.parametrize("solve", SOLVES)
def test_trees(solve):
    def loss(p, k):
        x = implicit.root(residual, START, p, k, solve=SOLVES[solve])
        return np.sum(WEIGHTS[:2] * x["u"]) + np.sum(WEIGHTS[2:] * x["v"])

    h = 1e-6
    by_c = (weighed(0.5 + h, 0.3) - weighed(0.5 - h, 0.3)) / (2 * h)
    by_d = (weighed(0.5, 0.3 + h) - weighed(0.5, 0.3 - h)) / (2 * h)
    p = {"c": 0.5, "d": 0.3}
    found = evaluated(grad(loss), p, 2)
    close([by_c, by_d], [found["c"], found["d"]], 1e-7)
    close(by_c + 0.5 * by_d, evaluated(lambda p, k: jvp(lambda q: loss(q, k), (p,), ({"c": 1.0, "d": 0.5},))[1], p, 2),
          1e-7)
    h = 1e-3
    second = (weighed(0.5 + h, 0.3) - 2 * weighed(0.5, 0.3) + weighed(0.5 - h, 0.3)) / h**2

    def by_one(c):
        return loss({"c": c, "d": 0.3}, 2)

    dense = (grad(grad(by_one)), hessian(by_one), jacfwd(jacfwd(by_one)), grad(jacfwd(by_one)))
    for composed in dense if solve == "dense" else ():       # `ridge` below is a second derivative without a matrix
        close(second, evaluated(composed, 0.5), 1e-5)


@implicit.custom_fixed_point(lambda x, t: np.cos(x) * t)
def settled(x, t):
    for _ in range(200):
        x = np.cos(x) * t
    return x


def test_fixed_points():
    def slope(t):
        x = settled(1.0, t)
        return np.cos(x) / (1 + np.sin(x) * t)

    close(slope(0.8), evaluated(grad(settled, 1), 1.0, 0.8))
    close(slope(0.8), evaluated(grad(lambda t: implicit.fixed_point(lambda x: np.cos(x) * t, 1.0)), 0.8))
    t = np.array([0.8, 0.5])
    vector = jacrev(lambda t: implicit.fixed_point(lambda x, t: np.cos(x) * t, np.ones(2), t))
    close(np.diag([slope(0.8), slope(0.5)]), evaluated(vector, t))


def test_without_a_start_and_with_aux():
    @implicit.custom_root(lambda x, a: x * x - a, has_start=False, has_aux=True)
    def root_and_steps(a):
        x, steps = a, 0.0
        while abs(x * x - a) > 1e-13:
            x, steps = 0.5 * (x + a / x), steps + a
        return x, steps

    close(2.0, root_and_steps(4.0)[0])
    close(0.25, evaluated(grad(lambda a: root_and_steps(a)[0]), 4.0))
    assert 0.0 == evaluated(grad(lambda a: root_and_steps(a)[1]), 4.0)


def test_ridge_regression_without_a_matrix():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=6)

    @implicit.custom_root(lambda w, lam: x.T @ (x @ w - y) + lam * w, solve=implicit.cg, has_start=False)
    def ridge(lam):
        return implicit.cg(lambda v: x.T @ (x @ v) + lam * v, x.T @ y)

    def by_matrix(lam):
        return np.linalg.solve(x.T @ x + lam * np.eye(3), x.T @ y)

    np.testing.assert_allclose(ridge(0.5), by_matrix(0.5), rtol=1e-10)
    for mode in (jacrev, jacfwd):
        close(evaluated(jacfwd(by_matrix), 0.5), evaluated(mode(ridge), 0.5))
    close(evaluated(jacfwd(jacfwd(by_matrix)), 0.5), evaluated(jacfwd(jacrev(ridge)), 0.5))


def test_linear_solvers_in_python():
    rng = np.random.default_rng(1)
    a = rng.normal(size=(5, 5)) + 4 * np.eye(5)
    b = {"u": rng.normal(size=2), "v": rng.normal(size=3)}
    expected = np.linalg.solve(a, ravel(b))
    for solve in (implicit.gmres, implicit.bicgstab):
        found = solve(lambda y: dict(zip("uv", np.split(a @ ravel(y), [2]))), b)
        np.testing.assert_allclose(ravel(found), expected, rtol=1e-9)
    zero = implicit.gmres(lambda y: a @ y, np.zeros(5))
    np.testing.assert_array_equal(zero, np.zeros(5))
    np.testing.assert_allclose(implicit.cg(lambda y: a @ (a.T @ y), ravel(b)), np.linalg.solve(a @ a.T, ravel(b)),
                               rtol=1e-8)


def test_a_residual_of_another_form():
    @implicit.custom_root(lambda x, a: np.sum(x) - a, has_start=False)
    def halves(a):
        return np.array([0.5, 0.5]) * a

    with pytest.raises(TranspileError, match="structure and the shapes"):
        evaluated(jacrev(halves), 1.0)


def by_iteration(step, start, a):
    for _ in range(200):
        start = step(start, a)
    return start


M = np.array([[0.2 + 0.1j, 0.3], [0.1j, -0.2]])


@pytest.mark.parametrize("step, start, a", [
    (lambda z, a: 0.3 * np.conj(z) ** 2 - a, 0.1 + 0.1j, 0.5 + 0.2j),               # not complex linear
    (lambda z, a: M @ z + 0.1 * np.conj(z) * z + a, np.zeros(2, complex), np.array([0.3 + 1j, 0.2 - 0.1j])),
    (lambda z, a: {"u": 0.3 * np.conj(z["v"]) + a, "v": 0.2 * z["u"] * np.imag(a) + 0.1},
     {"u": np.zeros(1, complex), "v": np.zeros(1, complex)}, 0.5 + 0.2j),
])
def test_complex_unknowns(step, start, a):
    """Of a real function, the derivative by the real part, less i times that by the imaginary part."""
    def size(z):
        return sum([np.sum(np.abs(part) ** 2) for part in gradsmith.tree.leaves(z)])

    step_size = 1e-6
    directions = [(np.reshape(e, np.shape(a)), unit) for e in np.eye(np.size(a)) for unit in (1.0, 1.0j)]
    differences = [sum(sign * size(by_iteration(step, start, a + sign * step_size * unit * e)) for sign in (1, -1))
                   / (2 * step_size) for e, unit in directions]
    expected = np.reshape(np.array(differences[::2]) - 1j * np.array(differences[1::2]), np.shape(a))
    close(expected, evaluated(grad(lambda a, start: size(implicit.fixed_point(step, start, a))), a, start), 1e-7)


def test_compiled():
    gradient = gradsmith.jit(grad(cube_root, 1))
    close(FIRST, gradient(10.0, A))
