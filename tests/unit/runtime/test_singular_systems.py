"""What NumPy finds singular is singular: small systems are factored as OpenBLAS does, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs

determinant = gs.jit(lambda a: np.linalg.det(a))
solution = gs.jit(lambda a, b: np.linalg.solve(a, b))


def is_singular(solve, a, b):
    try:
        solve(a, b)
    except np.linalg.LinAlgError:
        return True
    return False


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_as_in_numpy(n):
    generator = np.random.default_rng(n)
    found = 0
    for _ in range(100):
        a, b = generator.integers(-1, 2, (n, n)).astype(float), generator.normal(size=n)
        np.testing.assert_allclose(determinant(a), np.linalg.det(a), rtol=1e-12, atol=1e-13)
        assert (np.linalg.det(a) == 0.0) == (determinant(a) == 0.0)
        assert is_singular(np.linalg.solve, a, b) == is_singular(solution, a, b)
        found += is_singular(np.linalg.solve, a, b)
    assert found


def test_the_best_known_one():
    a = np.arange(1.0, 10.0).reshape(3, 3)
    assert determinant(a) == np.linalg.det(a)
