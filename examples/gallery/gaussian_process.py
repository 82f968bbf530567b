"""Gaussian process regression: kernel parameters by maximum marginal likelihood, and slopes of the prediction.

Irregular measurements of a signal with a slow trend and a yearly cycle, as in records of the atmosphere. The kernel is
the sum of a squared exponential and a locally periodic one (Rasmussen and Williams, *Gaussian Processes for Machine
Learning*, 2006, section 5.4.3).  The data are drawn from such a process, so that what is found can be compared with the
truth.

The marginal likelihood is written with NumPy's Cholesky factorisation and is differentiated through it.  The slope of
the predicted mean, with its uncertainty, comes from the kernel's own derivatives: `grad` of the kernel, under `vmap`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import figures
import numpy as np
from figures import BLACK, BLUE, GRAY, ORANGE
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

import gradsmith

NAMES = ("trend", "trend length", "cycle", "cycle length", "noise")
LABELS = ("trend size", "trend length", "cycle size", "cycle shape", "noise")
TRUTH = np.array([2.0, 2.5, 1.0, 1.0, 0.2])        # sizes in ppm, lengths in years


def kernel(s, t, p):
    """The covariance of the signal at times s and t.  p: sizes and lengths."""
    apart = s - t
    trend = p[0] ** 2 * np.exp(-0.5 * (apart / p[1]) ** 2)
    cycle = p[2] ** 2 * np.exp(-2.0 * (np.sin(np.pi * apart) / p[3]) ** 2 - 0.5 * (apart / 20.0) ** 2)
    return trend + cycle


def covariance(t, p):
    return kernel(t[:, None], t[None, :], p) + p[4] ** 2 * np.eye(len(t))


def negative_log_likelihood(theta, t, y):
    """theta: the logarithms of the parameters."""
    L = np.linalg.cholesky(covariance(t, np.exp(theta)))
    z = solve_triangular(L, y, lower=True)
    return 0.5 * z @ z + np.sum(np.log(np.diag(L))) + 0.5 * len(y) * np.log(2.0 * np.pi)


objective = gradsmith.value_and_grad(negative_log_likelihood)

# Between the signal at times s and its slope at times t, and between slopes: derivatives of the kernel.
slope_of_kernel = gradsmith.vmap(gradsmith.vmap(gradsmith.grad(kernel, 1), (0, None, None)), (None, 0, None))
variance_of_slope = gradsmith.vmap(gradsmith.grad(lambda t, s, p: gradsmith.grad(kernel, 0)(s, t, p)), (0, 0, None))


def predicted(cross, variance, L, y):
    """Mean and standard deviation, given covariances with the measurements."""
    half = solve_triangular(L, cross.T, lower=True)
    return half.T @ solve_triangular(L, y, lower=True), np.sqrt(variance - np.sum(half**2, axis=0))


@dataclass
class Found:
    p: Any
    factor: Any             # by which each parameter may be off: a standard deviation of its logarithm
    t: Any
    y: Any
    at: Any                 # the times of predictions
    signal: Any             # the truth there
    mean: Any
    deviation: Any
    slope: Any
    slope_deviation: Any
    steps: int

    def __str__(self) -> str:
        return ", ".join(f"{name} {p:.2f} (truth {true}, factor {factor:.2f})" for name, p, true, factor in zip(
            NAMES, self.p, TRUTH, self.factor)) + f"; {self.steps} evaluations"


def solve(n: int = 140, points: int = 600, years: float = 8.0) -> Found:
    rng = np.random.default_rng(4)
    at = np.linspace(0.0, years, points)
    t = np.sort(np.concatenate([rng.uniform(0.0, 0.55 * years, n // 2), rng.uniform(0.68 * years, years, n - n // 2)]))
    every = np.concatenate([t, at])
    draws = np.linalg.cholesky(kernel(every[:, None], every[None, :], TRUTH) + 1e-8 * np.eye(len(every))) @ rng.normal(
        size=len(every))
    y = draws[:n] + TRUTH[4] * rng.normal(size=n)

    best = minimize(objective, np.zeros(5), args=(t, y), jac=True, method="L-BFGS-B", bounds=[(-4.0, 4.0)] * 5)
    p = np.exp(best.x)
    factor = np.exp(np.sqrt(np.diag(np.linalg.inv(gradsmith.hessian(negative_log_likelihood)(best.x, t, y)))))

    L = np.linalg.cholesky(covariance(t, p))
    mean, deviation = predicted(kernel(at[:, None], t[None, :], p), kernel(0.0, 0.0, p), L, y)
    slope, slope_deviation = predicted(slope_of_kernel(t, at, p), variance_of_slope(at, at, p), L, y)
    return Found(p, factor, t, y, at, draws[n:], mean, deviation, slope, slope_deviation, best.nfev)


def draw(found: Found) -> Any:
    figure, (left, middle, right) = figures.panels(1.35, 1.0, 0.75)
    for axes, mean, deviation, what in ((left, found.mean, found.deviation, "prediction"),
                                        (middle, found.slope, found.slope_deviation, "its slope")):
        axes.fill_between(found.at, mean - 1.96 * deviation, mean + 1.96 * deviation, color=BLUE, alpha=0.22, lw=0,
                          label="95%")
        axes.plot(found.at, mean, color=BLUE, label=what)
    left.plot(found.at, found.signal, color=BLACK, lw=0.8, ls="--", label="truth")
    left.plot(found.t, found.y, ".", color=GRAY, ms=3.5, label="measured")
    left.set(xlabel="time (years)", ylabel="concentration (ppm)", title="Prediction")
    left.legend(fontsize=7.5, ncols=2)
    middle.plot(found.at, np.gradient(found.signal, found.at), color=BLACK, lw=0.8, ls="--", label="truth")
    middle.set(xlabel="time (years)", ylabel="slope (ppm per year)", title="Slope of the prediction",
               xlim=np.array([0.4, 0.9]) * found.at[-1])

    rows = np.arange(len(NAMES))[::-1]
    right.errorbar(found.p / TRUTH, rows, xerr=[found.p / TRUTH * (1.0 - found.factor**-1.96),
                                                found.p / TRUTH * (found.factor**1.96 - 1.0)],
                   fmt="o", color=ORANGE, ms=5, capsize=2.5, lw=1.2)
    right.axvline(1.0, color=BLACK, lw=0.8, ls="--")
    right.set(xscale="log", xlabel="estimate / truth", title="Parameters, 95%")
    right.set_yticks(rows, LABELS)
    right.set_xticks([0.5, 1.0, 2.0, 4.0], ["0.5", "1", "2", "4"])
    right.minorticks_off()
    return figure


SMALL = {"n": 30, "points": 40, "years": 4.0}

if __name__ == "__main__":
    figures.main(solve, draw, SMALL)
