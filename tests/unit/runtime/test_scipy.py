"""What SciPy calls with functions and derivatives: optimisers, root finders, integrators."""

import numpy as np
import pytest
from scipy import integrate, optimize

import gradsmith as gs


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


def ellipse(x, scale, center):
    return np.sum(scale * (x - center) ** 2)


def residuals(p, t, y):
    return p[0] * np.exp(-p[1] * t) - y


def van_der_pol(t, y, mu):
    return np.array([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


value_and_grad = gs.value_and_grad(rosenbrock)
hessian = gs.hessian(rosenbrock)
START = np.array([0.8, 1.2, 0.7])


@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"])
def test_gradient_methods(method):
    found = optimize.minimize(value_and_grad, START, jac=True, method=method, tol=1e-10)
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-4)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr", "dogleg"])
def test_methods_with_hessians(method):
    start = np.array([0.9, 0.8, 0.6])            # where it is positive definite, as dogleg needs it
    found = optimize.minimize(value_and_grad, start, jac=True, hess=hessian, method=method, tol=1e-8)
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-4)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-constr"])
def test_methods_with_products(method):
    found = optimize.minimize(value_and_grad, START, jac=True, method=method, tol=1e-8,
                              hessp=lambda x, v: gs.hvp(rosenbrock, x, v))
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-4)


def test_further_arguments_and_bounds():
    center = np.array([1.0, 2.0])
    fun = gs.value_and_grad(ellipse)
    found = optimize.minimize(fun, np.zeros(2), args=(3.0, center), jac=True)
    np.testing.assert_allclose(found.x, center, rtol=1e-6)
    bounded = optimize.minimize(fun, [0, 0], args=(3, center), jac=True, bounds=[(0.0, 1.5)] * 2)
    np.testing.assert_allclose(bounded.x, [1.0, 1.5], rtol=1e-6)


def test_constraints():
    level = optimize.NonlinearConstraint(gs.jit(lambda x: np.sum(x**2)), 1.0, 1.0, jac=gs.grad(lambda x: np.sum(x**2)))
    found = optimize.minimize(gs.value_and_grad(lambda x: np.sum(x)), np.array([-1.0, 0.5]), jac=True,
                              method="trust-constr", hess=gs.hessian(lambda x: np.sum(x)), constraints=[level])
    np.testing.assert_allclose(found.x, [-np.sqrt(0.5)] * 2, atol=1e-4)
    line = {"type": "eq", "fun": gs.jit(lambda x: x[0] - x[1]), "jac": gs.grad(lambda x: x[0] - x[1])}
    found = optimize.minimize(gs.value_and_grad(ellipse), np.zeros(2), args=(1.0, np.array([0.0, 1.0])), jac=True,
                              method="SLSQP", constraints=[line])
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-8)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    t = np.linspace(0.0, 3.0, 20)
    found = optimize.least_squares(gs.jit(residuals), [1.0, 1.0], jac=gs.jacobian(residuals), method=method,
                                   args=(t, 2.0 * np.exp(-1.3 * t)))
    np.testing.assert_allclose(found.x, [2.0, 1.3], rtol=1e-6)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_roots(method):
    def equations(x):
        return np.array([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])

    found = optimize.root(gs.jit(equations), [0.0, 0.0], jac=gs.jacobian(equations), method=method)
    np.testing.assert_allclose(found.x, [0.8411639, 0.1588361], rtol=1e-6)


def test_roots_of_one_equation():
    def cube(x):
        return x**3 - 2.0

    for root in (optimize.root_scalar(gs.value_and_grad(cube), x0=1.0, fprime=True, method="newton").root,
                 optimize.newton(gs.jit(cube), 1.0, fprime=gs.grad(cube), fprime2=gs.grad(gs.grad(cube))),
                 optimize.brentq(gs.jit(cube), 0.0, 2.0)):
        assert root == pytest.approx(2.0 ** (1 / 3), rel=1e-8)


@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF", "LSODA"])
def test_integrators(method):
    options = {} if method == "RK45" else {"jac": gs.jacobian(van_der_pol, argnums=1)}
    plain = integrate.solve_ivp(van_der_pol, (0.0, 2.0), [2.0, 0.0], args=(5.0,), method=method)
    found = integrate.solve_ivp(gs.jit(van_der_pol), (0.0, 2.0), [2.0, 0.0], args=(5.0,), method=method, **options)
    assert found.success
    np.testing.assert_allclose(plain.y[:, -1], found.y[:, -1], rtol=2e-2)


def test_quadrature():
    assert np.sin(1.0) == pytest.approx(integrate.quad(gs.grad(lambda x: np.sin(x)), 0.0, 1.0)[0], rel=1e-12)


def test_gradients_are_what_scipy_checks():
    assert optimize.check_grad(gs.jit(rosenbrock), gs.grad(rosenbrock), START) < 1e-4


# --- results belong to the caller ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fun", [
    gs.jit(lambda x: x * 2.0), gs.jit(lambda x: x), gs.jit(lambda x: x[::-1]), gs.grad(rosenbrock),
    gs.grad(lambda x: 3.0 * np.sum(x)), gs.jacobian(lambda x: x), gs.hessian(rosenbrock),
    gs.vmap(lambda a: a + 1.0), gs.jit(lambda x: (x, x)), gs.vmap(gs.grad(lambda a: a * a)),
])
def test_no_result_shares_memory(fun):
    """Neither with another result, nor with what it was called with; writes to results change no later ones."""
    x, y = np.array([0.5, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    first, again, other = fun(x), fun(x), fun(y)
    kept = [np.array(part) for part in _parts(first)]
    parts = [*_parts(first), *_parts(again), *_parts(other)]
    for k, part in enumerate(parts):
        assert not np.shares_memory(part, x)
        assert not any(np.shares_memory(part, earlier) for earlier in parts[:k])
    for part in parts:
        part[...] = -1.0
    for expected, part in zip(kept, _parts(fun(x)), strict=True):
        np.testing.assert_array_equal(expected, part)


def test_no_constant_of_a_function_is_given_away():
    table = np.arange(3.0)
    fun = gs.jit(lambda x: (table, np.eye(2)))
    first, eye = fun(1.0)
    first[:], eye[:] = 7.0, 7.0
    np.testing.assert_array_equal([0.0, 1.0, 2.0], table)
    np.testing.assert_array_equal([0.0, 1.0, 2.0], fun(1.0)[0])
    np.testing.assert_array_equal(np.eye(2), fun(1.0)[1])


def test_pullbacks_keep_nothing_of_the_caller():
    x = np.array([1.0, 2.0])
    value, pullback = gs.vjp(lambda x: x**2, x)
    x[:] = 0.0
    value[:] = 0.0
    (first,) = pullback(np.ones(2))
    np.testing.assert_array_equal([2.0, 4.0], first)
    first[:] = 0.0
    np.testing.assert_array_equal([2.0, 4.0], pullback(np.ones(2))[0])


def _parts(result):
    return result if isinstance(result, tuple) else (result,)
