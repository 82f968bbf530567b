"""The ten lines of the README."""

import numpy as np

import gradsmith


def energy(x, k):
    stretch = np.diff(x)
    return 0.5 * k * np.sum(stretch**2) + np.sum(np.log1p(x**2))


x = np.array([0.0, 1.0, 3.0])
force = gradsmith.grad(energy)
print(force(x, 2.0))
print(gradsmith.hessian(energy)(x, 2.0))
print(force.source(x, 2.0))
