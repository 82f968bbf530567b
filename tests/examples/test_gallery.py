"""The gallery at a small size: gradients are right, what is known is found, figures are drawn."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

pytest.importorskip("matplotlib")

import gradsmith

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery"
pytestmark = pytest.mark.slow


def example(name):
    sys.path.insert(0, str(GALLERY))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(GALLERY))


def drawn(module, found, tmp_path):
    """Draws it and looks at the file: a picture with things in it, axes with names and units."""
    figure = module.draw(found)
    for axes in figure.axes:
        assert axes.get_xlabel(), "an axis without a name"
        assert axes.get_ylabel() or axes.get_yticklabels(), "an axis without a name"
    module.figures.save(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 20_000
    assert str(found)


def slope_is_right(fun, value_and_grad, p, *args):
    """Along a random direction, against an extrapolated difference of the function in NumPy; p: an array, or a dict of
    them."""
    rng = np.random.default_rng(0)
    direction = gradsmith.tree.map(lambda x: rng.normal(size=x.shape), p)

    def difference(h):
        ends = [fun(gradsmith.tree.map(lambda x, d: x + s * h * d, p, direction), *args) for s in (1.0, -1.0)]
        return (ends[0] - ends[1]) / (2.0 * h)

    value, slopes = value_and_grad(p, *args)
    np.testing.assert_allclose(value, fun(p, *args), rtol=1e-10)
    slope = sum(map(np.vdot, gradsmith.tree.leaves(slopes), gradsmith.tree.leaves(direction)))
    np.testing.assert_allclose(slope, (4.0 * difference(1e-3) - difference(2e-3)) / 3.0, rtol=1e-6)


def test_neural_ode(tmp_path):
    module = example("neural_ode")
    found = module.solve(**module.SMALL)
    drawn(module, found, tmp_path)
    assert found.losses[-1] < 0.02 * found.losses[0]
    assert found.field_error() < 0.2
    rng = np.random.default_rng(0)
    windows = module.rollout(module.pendulum, rng.normal(size=(3, 2)), 0.1, 4)
    slope_is_right(module.loss, module.loss_and_slopes, module.initial(rng, 4), windows, 0.1)


def test_the_solver_is_of_fourth_order():
    module = example("neural_ode")
    x0 = np.array([[1.0, 0.5]])
    ends = [module.rollout(module.pendulum, x0, 1.0 / n, n)[-1] for n in (10, 20, 40)]
    order = np.log2(np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(ends[1] - ends[2]))
    assert abs(order - 4.0) < 0.3


def test_kalman_filter(tmp_path):
    module = example("kalman_filter")
    found = module.solve(**module.SMALL)
    drawn(module, found, tmp_path)
    np.testing.assert_allclose([found.H, found.Q], [15099.0, 1469.1], rtol=1e-4)
    mean, deviation = smoother(module, found.H, found.Q)
    np.testing.assert_allclose(found.smoothed, mean, rtol=1e-6)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-4)
    slope_is_right(module.negative_log_likelihood, module.objective, np.log([1e4, 1e3]), module.FLOW)


def smoother(module, H, Q):
    """The Rauch-Tung-Striebel recursion, which runs back over the years."""
    mean, variance, error, spread = module.kalman_filter(module.FLOW, H, Q)
    gain = variance / spread
    filtered = np.concatenate([module.FLOW[:1], mean + gain * error])
    filtered_variance = np.concatenate([[H], variance * (1.0 - gain)])
    smoothed, smoothed_variance = filtered.copy(), filtered_variance.copy()
    for t in range(len(mean) - 1, -1, -1):
        back = filtered_variance[t] / variance[t]
        smoothed[t] = filtered[t] + back * (smoothed[t + 1] - mean[t])
        smoothed_variance[t] = filtered_variance[t] + back**2 * (smoothed_variance[t + 1] - variance[t])
    return smoothed, np.sqrt(smoothed_variance)


def test_gaussian_process(tmp_path):
    module = example("gaussian_process")
    found = module.solve(**module.SMALL)
    drawn(module, found, tmp_path)
    assert np.all(np.abs(np.log(found.p / module.TRUTH)) < 3.5 * np.log(found.factor))
    assert np.mean(np.abs(found.mean - found.signal) < 3.0 * found.deviation) > 0.95
    slopes = np.gradient(found.mean, found.at)
    assert np.corrcoef(slopes[1:-1], found.slope[1:-1])[0, 1] > 0.98
    rng = np.random.default_rng(0)
    slope_is_right(module.negative_log_likelihood, module.objective, 0.1 * rng.normal(size=5), np.linspace(0.0, 2.0, 7),
                   rng.normal(size=7))


def test_hamiltonian_monte_carlo(tmp_path):
    module = example("hamiltonian_monte_carlo")
    found = module.solve(**module.SMALL)
    drawn(module, found, tmp_path)
    (mean, deviation), (exact_mean, exact_deviation) = found.moments()
    np.testing.assert_allclose(mean, exact_mean, atol=0.3)
    np.testing.assert_allclose(deviation, exact_deviation, rtol=0.1)
    assert found.r_hat() < 1.05
    assert 0.8 < found.rate <= 1.0
    q, p = np.linspace(-0.5, 0.5, 10), np.linspace(1.0, -1.0, 10)
    back = module.leapfrog(*map(np.asarray, module.leapfrog(q, p, 0.1, 5)[:1]), -module.leapfrog(q, p, 0.1, 5)[1], 0.1, 5)
    np.testing.assert_allclose(back[0], q, rtol=1e-10, err_msg="leapfrog steps can be walked back")


def test_the_quadrature():
    """Against SciPy's, of the marginal density of tau at one place."""
    module = example("hamiltonian_monte_carlo")
    _, _, tau, of_tau = module.quadrature(200)

    def density(tau):
        def joint(mu):
            variance = module.S**2 + tau**2
            return np.exp(-0.5 * np.sum((module.Y - mu) ** 2 / variance + np.log(variance)) - 0.5 * (mu / 10.0) ** 2
                          + 20.0) / (1.0 + (tau / 5.0) ** 2)
        return quad(joint, -60.0, 70.0, points=[7.0])[0]

    ratio = density(tau[20]) / density(tau[60])
    assert abs(of_tau[20] / of_tau[60] / ratio - 1.0) < 1e-3


def test_heat_equation(tmp_path):
    module = example("heat_equation")
    found = module.solve(**module.SMALL)
    drawn(module, found, tmp_path)
    assert 0.8 < found.chi2 < 1.2
    off = np.abs(np.log(found.k / module.true_conductivity(found.x)))
    assert np.median(off) < 0.06
    assert np.mean(off < 2.6 * np.log(found.factor)) > 0.9
    setting = (np.full((3, 8), 21.0), module.SMALL["every"], 600.0, 3 * module.SMALL["every"], np.arange(8) // 2)
    slope_is_right(module.misfit, module.objective, np.log(np.linspace(30.0, 50.0, 6)), *setting)


def test_the_heat_equation_conserves_energy():
    module = example("heat_equation")
    k = np.full(10, np.log(45.0))
    recorded = module.simulate(k, 3600.0 * 200.0, 20_000, np.arange(10))
    steady = module.HOT + (module.COLD - module.HOT) * (np.arange(10) + 0.5) / 10
    np.testing.assert_allclose(recorded[-1], steady, atol=1e-2)
