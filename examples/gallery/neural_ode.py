"""A neural ordinary differential equation learns the motion of a pendulum with friction from noisy measurements.

The right-hand side of dx/dt = f(x) is a small neural network (Chen et al., *Neural Ordinary Differential Equations*,
2018).  The solver is the classical Runge-Kutta method, a loop over times that writes states into an array; `grad`
differentiates through it, exactly for the steps as they are taken.  Parameters are a dict of arrays, as are
their slopes; the optimiser is Adam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import figures
import numpy as np
from figures import BLACK, BLUE, GRAY, RED

import gradsmith

FRICTION, STIFFNESS = 0.25, 4.0         # 1/s, 1/s^2
NOISE = 0.05                            # rad, rad/s


def pendulum(x):
    """x: angles and angular velocities, a row for each pendulum."""
    return np.stack([x[:, 1], -STIFFNESS * np.sin(x[:, 0]) - FRICTION * x[:, 1]], axis=1)


def network(params, x):
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    hidden = np.tanh(hidden @ params["w2"] + params["b2"])
    return hidden @ params["w3"] + params["b3"]


def rollout(f, x0, dt, steps):
    """States at times 0, dt, 2 dt, ..."""
    states = np.empty((steps + 1, *x0.shape))
    x = states[0] = x0
    for t in range(steps):
        k1 = f(x)
        k2 = f(x + 0.5 * dt * k1)
        k3 = f(x + 0.5 * dt * k2)
        k4 = f(x + dt * k3)
        x = states[t + 1] = x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return states


def loss(params, measured, dt):
    """measured: times, pendulums, (angle, velocity); each window starts at a measurement."""
    states = rollout(lambda x: network(params, x), measured[0], dt, len(measured) - 1)
    return np.mean((states - measured) ** 2)


loss_and_slopes = gradsmith.value_and_grad(loss)


def train(params, windows, dt, epochs, rate):
    """Adam (Kingma and Ba, 2015), a step for all windows; the rate falls to zero."""
    params = {name: p.copy() for name, p in params.items()}
    first = {name: np.zeros_like(p) for name, p in params.items()}
    second = {name: np.zeros_like(p) for name, p in params.items()}
    losses = np.empty(epochs)
    for epoch in range(epochs):
        losses[epoch], slopes = loss_and_slopes(params, windows, dt)
        now = 0.5 * rate * (1.0 + np.cos(np.pi * epoch / epochs))
        for name, slope in slopes.items():
            first[name] += 0.1 * (slope - first[name])
            second[name] += 0.001 * (slope**2 - second[name])
            unbiased = np.sqrt(second[name] / (1.0 - 0.999 ** (epoch + 1)))
            params[name] -= now * first[name] / (1.0 - 0.9 ** (epoch + 1)) / (unbiased + 1e-8)
    return params, losses


def initial(rng, width):
    return {"w1": rng.normal(size=(2, width)) / np.sqrt(2.0), "b1": np.zeros(width),
            "w2": rng.normal(size=(width, width)) / np.sqrt(width), "b2": np.zeros(width),
            "w3": rng.normal(size=(width, 2)) / np.sqrt(width), "b3": np.zeros(2)}


@dataclass
class Found:
    params: Any
    losses: Any
    dt: float
    measured: Any           # times, pendulums, (angle, velocity)
    predicted: Any          # from the first measurement of a pendulum that was not trained on, far beyond
    true: Any
    fields: Any             # on a grid: states, learned and true velocities

    def field_error(self) -> float:
        """Of the learned right-hand side, relative, where there were measurements."""
        _, learned, true = self.fields
        return float(np.sqrt(np.mean((learned - true) ** 2) / np.mean(true**2)))

    def __str__(self) -> str:
        off = np.sqrt(np.mean((self.predicted - self.true) ** 2))
        return (f"loss {self.losses[0]:.3f} -> {self.losses[-1]:.5f} (noise {2 * NOISE**2:.5f}), right-hand side off "
                f"by {self.field_error():.1%}, a new pendulum off by {off:.3f} rad")


def solve(pendulums: int = 12, times: int = 60, window: int = 10, width: int = 24, epochs: int = 3000,
          rate: float = 0.01) -> Found:
    rng = np.random.default_rng(1)
    dt = 0.1
    start = np.stack([rng.uniform(-2.0, 2.0, pendulums), rng.uniform(-2.0, 2.0, pendulums)], axis=1)
    measured = rollout(pendulum, start, dt, times)
    measured = measured + NOISE * rng.normal(size=measured.shape)
    windows = np.concatenate([measured[t:t + window + 1] for t in range(0, times - window + 1, window)], axis=1)
    params, losses = train(initial(rng, width), windows, dt, epochs, rate)

    new = np.array([[1.8, 0.0]])
    predicted = rollout(lambda x: network(params, x), new, dt, 2 * times)[:, 0]
    grid = np.stack(np.meshgrid(np.linspace(-2.0, 2.0, 15), np.linspace(-3.5, 3.5, 15)), axis=-1).reshape(-1, 2)
    grid = grid[0.5 * grid[:, 1] ** 2 - STIFFNESS * np.cos(grid[:, 0]) < -STIFFNESS * np.cos(2.1)]
    return Found(params, losses, dt, measured, predicted, rollout(pendulum, new, dt, 2 * times)[:, 0],
                 (grid, network(params, grid), pendulum(grid)))


def draw(found: Found) -> Any:
    figure, (left, middle, right) = figures.panels(0.8, 1.25, 1.0)
    left.semilogy(found.losses, color=BLUE, lw=1.0)
    left.axhline(2 * NOISE**2, color=BLACK, lw=0.9, ls=":")
    left.annotate("noise of the data", (0.97, 2 * NOISE**2), (0, 3), xycoords=("axes fraction", "data"),
                  textcoords="offset points", ha="right", fontsize=8)
    left.set(xlabel="step of Adam", ylabel="mean squared error", title="Training")

    time = found.dt * np.arange(len(found.true))
    middle.axvspan(0.0, time[-1] / 2, color=GRAY, alpha=0.12, lw=0)
    middle.annotate("times of the training", (0.25, 0.02), xycoords="axes fraction", ha="center", fontsize=8)
    middle.plot(time, found.true[:, 0], color=BLACK, lw=1.0, ls="--", label="true")
    middle.plot(time, found.predicted[:, 0], color=RED, label="learned")
    middle.set(xlabel="time (s)", ylabel="angle (rad)", title="A pendulum not trained on", ylim=(-2.0, 2.4))
    middle.legend(ncols=2, loc="upper right", fontsize=8)

    grid, learned, true = found.fields
    right.plot(found.measured[..., 0], found.measured[..., 1], ".", color=GRAY, ms=1.2, alpha=0.5)
    right.quiver(*grid.T, *true.T, color=BLACK, angles="xy", scale=55.0, width=0.006, label="true")
    right.quiver(*grid.T, *learned.T, color=RED, angles="xy", scale=55.0, width=0.003, label="learned")
    right.set(xlabel="angle (rad)", ylabel="angular velocity (rad/s)", title="Right-hand side", ylim=(-4.3, 5.6))
    right.legend(ncols=2, loc="upper right", fontsize=8)
    return figure


SMALL = {"pendulums": 6, "times": 30, "width": 8, "epochs": 300, "rate": 0.02}

if __name__ == "__main__":
    figures.main(solve, draw, SMALL)
