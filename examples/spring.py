"""Fit the stiffness and damping of a spring to an observed motion: derivatives through a time-stepping loop.

The simulation is a plain loop that writes into an array and stops early when the motion has died down; nothing in it
is written for differentiation.  Newton's method uses the gradient and the Hessian.
"""

import argparse

import numpy as np

import gradsmith


def simulate(stiffness, damping, steps):
    """Positions of a unit mass that is let go at 1, by the semi-implicit Euler method; f64[steps]."""
    positions = np.zeros(steps)
    position, speed = 1.0, 0.0
    for step in range(steps):
        speed -= 0.05 * (stiffness * position + damping * speed)
        position += 0.05 * speed
        positions[step] = position
        if abs(position) + abs(speed) < 1e-6:
            break
    return positions


def misfit(parameters, observed):
    """Mean squared distance from the observed positions."""
    simulated = simulate(parameters[0], parameters[1], len(observed))
    return np.mean((simulated - observed) ** 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400, help="of the simulation")
    options = parser.parse_args()
    truth = np.array([2.0, 0.3])
    noise = np.random.default_rng(1).normal(size=options.steps)
    observed = simulate(*truth, options.steps) + 1e-3 * noise

    gradient, hessian = gradsmith.grad(misfit), gradsmith.hessian(misfit)
    parameters = np.array([1.9, 0.4])
    for iteration in range(8):
        slope = gradient(parameters, observed)
        print(f"{iteration}: stiffness {parameters[0]:.6f}, damping {parameters[1]:.6f}, "
              f"size of the gradient {np.linalg.norm(slope):.1e}")
        if np.linalg.norm(slope) < 1e-12:
            break
        parameters = parameters - np.linalg.solve(hessian(parameters, observed), slope)
    print(f"largest error {np.max(np.abs(parameters - truth)):.1e}")


if __name__ == "__main__":
    main()
