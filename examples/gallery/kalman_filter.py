"""Variances of a state-space model, by maximum likelihood through a Kalman filter.

The yearly flow of the Nile at Aswan, 1871-1970, as a level that wanders and is measured with noise:

    y[t] = level[t] + e[t],   e ~ N(0, H)            level[t + 1] = level[t] + w[t],   w ~ N(0, Q)

This is the running example of Durbin and Koopman, *Time Series Analysis by State Space Methods* (2nd ed., 2012), who
find H = 15099 and Q = 1469 (section 2.10).  The filter is a loop over years that writes into arrays.  `value_and_grad`
of it drives the optimiser, `hessian` gives standard errors, and one `grad` with respect to the data is the smoother.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import figures
import numpy as np
from figures import BLACK, BLUE, GRAY, ORANGE, RED
from scipy.optimize import minimize

import gradsmith

FLOW = np.array([        # 10^8 cubic metres
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831,
    726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845,
    944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918,
    986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740], dtype=float)
YEARS = np.arange(1871, 1971)


def kalman_filter(y, H, Q):
    """For each year but the first, which starts the filter: the mean and variance of the level given the years before,
    and the error of the prediction with its variance."""
    n = len(y) - 1
    mean, variance = np.empty(n), np.empty(n)
    error, spread = np.empty(n), np.empty(n)
    a, P = y[0], H                          # nothing was known before
    for t in range(n):
        mean[t], variance[t] = a, P + Q
        error[t] = y[t + 1] - mean[t]
        spread[t] = variance[t] + H
        gain = variance[t] / spread[t]
        a = mean[t] + gain * error[t]
        P = variance[t] * (1.0 - gain)
    return mean, variance, error, spread


def negative_log_likelihood(theta, y):
    """theta: logarithms of H and Q, which makes them positive."""
    _, _, error, spread = kalman_filter(y, np.exp(theta[0]), np.exp(theta[1]))
    return 0.5 * np.sum(np.log(2.0 * np.pi * spread) + error**2 / spread)


objective = gradsmith.value_and_grad(negative_log_likelihood)


@dataclass
class Found:
    H: float
    Q: float
    covariance: Any         # of the logarithms of H and Q
    smoothed: Any           # the level given all measurements
    deviation: Any          # its standard deviation
    contour: Any            # log-likelihoods over a grid of (log H, log Q), relative to the largest
    grid: Any

    def __str__(self) -> str:
        low, high = np.exp(1.645 * np.sqrt(np.diag(self.covariance)))
        return (f"H = {self.H:.0f} (90%: a factor of {low:.2f} up and down), Q = {self.Q:.1f} ({high:.2f}); "
                "Durbin and Koopman: 15099, 1469.1")


def solve(points: int = 41) -> Found:
    best = minimize(objective, np.log([1e4, 1e3]), args=(FLOW,), jac=True, method="BFGS", tol=1e-8)
    H, Q = np.exp(best.x)
    covariance = np.linalg.inv(gradsmith.hessian(negative_log_likelihood)(best.x, FLOW))

    # With y ~ N(m, S), the slope of the log-likelihood in y is -S^-1 (y - m), and the noise e is expected at
    # H S^-1 (y - m), with variance H - H^2 S^-1: the smoother is a gradient, and its variance a Hessian.
    smoothed = FLOW - H * gradsmith.grad(negative_log_likelihood, argnums=1)(best.x, FLOW)
    curvature = gradsmith.hessian(negative_log_likelihood, argnums=1)(best.x, FLOW)
    deviation = np.sqrt(H - H**2 * np.diag(curvature))

    grid = best.x[:, None] + np.linspace(-1.0, 1.0, points) * np.array([[1.1], [3.0]])
    pairs = np.stack(np.meshgrid(*grid), axis=-1)
    over_grid = gradsmith.vmap(gradsmith.vmap(negative_log_likelihood, in_axes=(0, None)), in_axes=(0, None))
    return Found(H, Q, covariance, smoothed, deviation, best.fun - over_grid(pairs, FLOW), grid)


def draw(found: Found) -> Any:
    figure, (left, right) = figures.panels(1.7, 1.0)
    left.plot(YEARS, FLOW, ".", color=GRAY, ms=4, label="measured")
    left.plot(YEARS, found.smoothed, color=BLUE, label="smoothed level")
    left.fill_between(YEARS, found.smoothed - 1.645 * found.deviation, found.smoothed + 1.645 * found.deviation,
                      color=BLUE, alpha=0.2, lw=0, label="90% of its distribution")
    left.axvline(1898.5, color=BLACK, lw=0.8, ls=":")
    left.annotate("the first dam\nis begun", (1899.5, 1330), fontsize=8, va="top")
    left.set(xlabel="year", ylabel=r"flow ($10^8\,\mathrm{m}^3$ per year)", title="The Nile at Aswan")
    left.legend(loc="lower left", fontsize=8)

    levels = [-4.61, -2.30, -0.5]          # of a chi-squared distribution with two degrees of freedom
    right.contour(*np.exp(found.grid), found.contour, levels=levels, colors=[BLUE], linewidths=[0.7, 1.2, 1.7],
                  linestyles="solid")
    right.plot([], color=BLUE, label="39%, 90%, 99%")
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.sqrt(4.61) * np.stack([np.cos(turn), np.sin(turn)])
    ellipse = np.log([[found.H], [found.Q]]) + np.linalg.cholesky(found.covariance) @ circle
    right.plot(*np.exp(ellipse), "--", color=ORANGE, lw=1.2, label="90%, from the Hessian")
    right.plot(found.H, found.Q, "o", color=ORANGE, label="maximum likelihood")
    right.plot(15099, 1469.1, "x", color=RED, ms=8, label="Durbin and Koopman")
    right.set(xscale="log", yscale="log", ylim=(20.0, 1.5e4), title="Log-likelihood",
              xlabel=r"$H$, variance of the noise ($10^{16}\,\mathrm{m}^6$)",
              ylabel=r"$Q$, variance of the steps ($10^{16}\,\mathrm{m}^6$)")
    right.set_xticks([6e3, 1e4, 2e4, 4e4], ["6 000", "10 000", "20 000", "40 000"])
    right.set_yticks([1e2, 1e3, 1e4], ["100", "1 000", "10 000"])
    right.minorticks_off()
    right.legend(loc="lower left", fontsize=7.5)
    return figure


SMALL = {"points": 7}

if __name__ == "__main__":
    figures.main(solve, draw, SMALL)
