"""Raised loops, and derivatives of raised loops, as XLA runs them, beside what Python and our own derivatives give."""

from __future__ import annotations

import numpy as np
import pytest
from unit.raise_loops import kernels
from unit.raise_loops.comparing import arguments, func_of
from unit.raise_loops.kernels import RAISED

import gradsmith

pytest.importorskip("jaxlib")
COMPILED = [kernels.gemm, kernels.atax, kernels.jacobi_1d, kernels.jacobi_2d, kernels.conv2d, kernels.conv2d_same,
            kernels.softmax, kernels.mean_and_variance, kernels.covariance, kernels.floyd_warshall, kernels.histogram,
            kernels.running_sum, kernels.best_of, kernels.differences]
DERIVED = [kernels.matmul, kernels.atax, kernels.conv2d_same, kernels.softmax, kernels.layer_norm, kernels.pairs_energy]


def flat(results):
    return [np.asarray(r) for r in (results if isinstance(results, (tuple, list)) else [results])]


@pytest.mark.xla
@pytest.mark.parametrize("function", COMPILED, ids=[f.__name__ for f in COMPILED])
def test_the_value(function):
    args = arguments(func_of(function, RAISED[function]))
    lowered = gradsmith.stablehlo(function).lower(*args)
    assert lowered.loops
    assert [] == [str(f) for f in lowered.loops if f.is_slow]
    found = gradsmith.xla.run(lowered.text, *lowered.arrays())
    wanted = flat(function(*(np.array(a) if np.ndim(a) else a for a in args)))
    for want, got in zip(wanted, found):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


def derivative(function):
    def loss(*args):
        total = 0.0
        results = function(*args)
        for k, result in enumerate(results if isinstance(results, tuple) else (results,)):
            total = total + np.sum(np.sin(result + k))
        return total

    return gradsmith.grad(loss, argnums=0)


@pytest.mark.xla
@pytest.mark.parametrize("function", DERIVED, ids=[f.__name__ for f in DERIVED])
def test_the_derivative_of_a_raised_loop(function):
    args = arguments(func_of(function, RAISED[function]))
    lowered = gradsmith.stablehlo(derivative(function)).lower(*args)
    assert [] == [str(f) for f in lowered.loops if f.is_slow]
    assert "stablehlo.while" not in lowered.text
    (found,) = gradsmith.xla.run(lowered.text, *lowered.arrays())
    np.testing.assert_allclose(found, derivative(function)(*args), rtol=1e-11, atol=1e-12)


def test_a_product_and_both_of_its_derivatives_are_dot_generals():
    def loss(A, B):
        return np.sum(kernels.matmul(A, B) ** 2)

    text = gradsmith.stablehlo(gradsmith.grad(loss, argnums=(0, 1)))("f32[64,32]", "f32[32,16]")
    assert 3 == text.count("stablehlo.dot_general")
    assert "stablehlo.while" not in text


def test_loops_stay_where_that_is_asked_for():
    assert "stablehlo.while" in gradsmith.stablehlo(kernels.matmul, raise_loops=False)("f64[4,5]", "f64[5,6]")
