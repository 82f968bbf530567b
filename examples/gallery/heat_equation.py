"""An inverse problem for the heat equation: the conductivity along a rod, from a few thermometers.

A rod of one metre is at 20 degrees Celsius. One end is heated, the other is kept cold. From the temperatures at eight
places over six hours, with a noise of 0.2 K, the conductivity k(x) is found, which nobody can measure inside:

    c dT/dt = d/dx (k(x) dT/dx)

The simulation is a finite-volume scheme with explicit steps: loops that write into an array in place, as it would be
written in Fortran.  `value_and_grad` of the misfit runs the adjoint simulation backwards in time; the optimiser is
SciPy's L-BFGS-B.  The Hessian at the solution gives the uncertainty (Laplace's approximation; Tarantola, *Inverse
Problem Theory*, 2005, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import figures
import numpy as np
from figures import BLACK, BLUE, GRAY
from matplotlib import colormaps
from scipy.optimize import minimize

import gradsmith

LENGTH, HEAT_CAPACITY = 1.0, 3.4e6          # m, J/(m^3 K): that of steel
HOT, COLD, START = 80.0, 5.0, 20.0          # degrees Celsius
NOISE = 0.2                                 # K
SMOOTHNESS = 0.15                           # of log k from cell to cell, per root of a tenth of the rod


def simulate(log_k, seconds, steps, sensors):
    """Temperatures at the cells `sensors` after every step; log_k: the logarithm of k in each cell."""
    n = len(log_k)
    dx, dt = LENGTH / n, seconds / steps
    k = np.exp(log_k)
    T = np.full(n, START)
    flux = np.empty(n + 1)
    recorded = np.empty((steps, len(sensors)))
    for step in range(steps):
        flux[0] = 2.0 * k[0] * (HOT - T[0]) / dx
        for i in range(1, n):
            between = 2.0 * k[i - 1] * k[i] / (k[i - 1] + k[i])         # two halves in a row
            flux[i] = between * (T[i - 1] - T[i]) / dx
        flux[n] = 2.0 * k[n - 1] * (T[n - 1] - COLD) / dx
        for i in range(n):
            T[i] += dt / (HEAT_CAPACITY * dx) * (flux[i] - flux[i + 1])
        for j in range(len(sensors)):
            recorded[step, j] = T[sensors[j]]
    return recorded


def misfit(log_k, measured, every, seconds, steps, sensors):
    """The negative logarithm of the posterior density, up to a constant."""
    recorded = simulate(log_k, seconds, steps, sensors)[every - 1::every]
    roughness = np.diff(log_k) / (SMOOTHNESS * np.sqrt(10.0 / len(log_k)))
    return 0.5 * np.sum(((recorded - measured) / NOISE) ** 2) + 0.5 * np.sum(roughness**2)


def true_conductivity(x):
    """W/(m K): steel, with a stretch that has gone bad."""
    return 45.0 - 18.0 / (1.0 + ((x - 0.35) / 0.09) ** 4) + 12.0 * np.tanh((x - 0.7) / 0.08)


objective = gradsmith.value_and_grad(misfit)


@dataclass
class Found:
    x: Any
    k: Any
    factor: Any             # a standard deviation of log k, as a factor
    sensors: Any
    times: Any
    measured: Any
    fitted: Any
    chi2: float             # of the data: about one for each measurement
    evaluations: int

    def __str__(self) -> str:
        off = np.abs(np.log(self.k / true_conductivity(self.x)))
        return (f"k is off by {100 * np.median(off):.1f}% (median), {np.mean(off < 1.96 * np.log(self.factor)):.0%} "
                f"within 95% bounds; chi2 {self.chi2:.2f} per measurement, {self.evaluations} evaluations")


def solve(n: int = 40, steps: int = 3000, every: int = 50, hours: float = 6.0) -> Found:
    rng = np.random.default_rng(3)
    x = (np.arange(n) + 0.5) * LENGTH / n
    sensors = np.linspace(0.06 * n, 0.94 * n - 1, 8).round().astype(int)
    setting = (every, 3600.0 * hours, steps, sensors)
    exact = simulate(np.log(true_conductivity(x)), *setting[1:])[every - 1::every]
    measured = exact + NOISE * rng.normal(size=exact.shape)

    best = minimize(objective, np.full(n, np.log(45.0)), args=(measured, *setting), jac=True, method="L-BFGS-B",
                    options={"maxiter": 400, "maxfun": 600})
    posterior = np.linalg.inv(gradsmith.hessian(misfit)(best.x, measured, *setting))
    fitted = gradsmith.jit(simulate)(best.x, *setting[1:])[every - 1::every]
    times = hours * np.arange(1, len(measured) + 1) / len(measured)
    return Found(x, np.exp(best.x), np.exp(np.sqrt(np.diag(posterior))), sensors, times, measured, fitted,
                 float(np.mean(((fitted - measured) / NOISE) ** 2)), best.nfev)


def draw(found: Found) -> Any:
    figure, (left, right) = figures.panels(1.0, 1.0)
    colours = colormaps["viridis"](np.linspace(0.05, 0.9, len(found.sensors)))
    for j, colour in enumerate(colours):
        left.plot(found.times, found.measured[:, j], ".", color=colour, ms=3)
        left.plot(found.times, found.fitted[:, j], color=colour, lw=1.2)
        left.annotate(f"{100 * found.x[found.sensors[j]]:.0f} cm", (found.times[-1], found.fitted[-1, j]), (4, -3),
                      textcoords="offset points", color=colour, fontsize=8)
    left.set(xlabel="time (hours)", ylabel="temperature (°C)", title="Thermometers, measured and fitted")

    right.fill_between(found.x, found.k * found.factor**-1.96, found.k * found.factor**1.96, color=BLUE, alpha=0.22,
                       lw=0, label="95%")
    right.plot(found.x, found.k, color=BLUE, label="estimate")
    fine = np.linspace(0.0, LENGTH, 400)
    right.plot(fine, true_conductivity(fine), color=BLACK, ls="--", lw=1.0, label="truth")
    right.plot(found.x[found.sensors], np.full(len(found.sensors), 2.0), "^", color=GRAY, ms=5, label="thermometers")
    right.set(xlabel="place along the rod (m)", ylabel="conductivity (W/(m K))", title="Conductivity", ylim=(0.0, None))
    right.legend(ncols=2, fontsize=8, loc="upper left")
    return figure


SMALL = {"n": 16, "steps": 400, "every": 20, "hours": 4.0}

if __name__ == "__main__":
    figures.main(solve, draw, SMALL)
