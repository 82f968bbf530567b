"""What lowering makes on its way takes no name that a size of the running function has."""

import numpy as np

from gradsmith import grad, jit


def joined(x):
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            n += 1
    both = np.concatenate([x[:n], np.array([7.0, 8.0]), x[n:] * 2, x[:n]])
    return np.sum(both ** 2)


def test_places_in_joined_arrays_of_run_time_lengths():
    x = np.array([0.5, -1.0, 2.0, 0.3, -0.2, 1.5])
    np.testing.assert_allclose(jit(joined)(x), joined(x), rtol=1e-14)
    steps = np.eye(6) * 1e-6
    expected = [(joined(x + step) - joined(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(grad(joined)(x), expected, rtol=1e-7)
