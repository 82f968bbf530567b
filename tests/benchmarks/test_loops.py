"""The loop kernels at their least size: all gradients agree.  How fast they are is not tested here."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from loops.compare import TOLERANCE, Times, summary
from loops.kernel import KERNELS
from loops.sides import as_arrays, side, sides
from loops.table import rows

import gradsmith


def require_same(expected, actual):
    assert [a.shape for a in expected] == [a.shape for a in actual]
    for a, b in zip(expected, actual):
        np.testing.assert_allclose(b, a, rtol=0, atol=TOLERANCE * np.abs(a).max())


@pytest.mark.jax
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_agree_with_jax(name):
    pytest.importorskip("jax")
    kernel = KERNELS[name]
    ours = as_arrays(side(kernel, "ours", kernel.least)())
    for form in [*sides(kernel), *([kernel.naive] if kernel.naive else [])]:
        require_same(as_arrays(side(kernel, form, kernel.least)()), ours)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.by_hand])
def test_gradients_agree_with_those_by_hand(name):
    kernel = KERNELS[name]
    require_same(as_arrays(side(kernel, "hand", kernel.least)()), as_arrays(side(kernel, "ours", kernel.least)()))


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_python(name):
    kernel = KERNELS[name]
    arguments = kernel.arguments(*kernel.least)
    np.testing.assert_allclose(gradsmith.jit(kernel.function)(*arguments), kernel.function(*arguments), rtol=1e-12)


def test_what_is_made_of_times():
    """JAX's best is its fastest form; the naive form is compared at its own size."""
    found = Times("k", primal=1.0, gradient=3.0, jax={"scan": 9.0, "vectorised": 6.0}, hand=2.0, naive=50.0,
                  naive_ours=1.0)
    assert (found.best, found.faster_than_jax, found.faster_than_naive, found.of_hand, found.of_primal) == \
        ("vectorised", 2.0, 50.0, 1.5, 3.0)
    assert list(summary([found]).values()) == [2.0, 2.0, 3.0]
    assert [True, False, False, None, False, True, True] == [row.ok for row in rows([found])]
