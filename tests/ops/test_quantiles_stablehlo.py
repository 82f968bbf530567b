"""Special functions that are written out in StableHLO, far from where the laws look: in tails and at large shapes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import gradsmith

pytest.importorskip("jax")
from gradsmith import xla

pytestmark = pytest.mark.xla
RNG = np.random.default_rng(5)
WIDE = np.concatenate([np.linspace(-26, 30, 60), [0.0, np.inf, -np.inf, np.nan]])
PROBABILITIES = np.concatenate([RNG.random(30), 10 ** RNG.uniform(-290, 0, 30), 1 - 10 ** RNG.uniform(-15, 0, 30),
                                [0.0, 1.0, 0.5, -1.0, 2.0, np.nan]])
A, B = 10 ** RNG.uniform(-1, 3, (2, PROBABILITIES.size))


def normal(x, p):
    return special.erfcx(x), special.log_ndtr(x), special.ndtri(p)


def gamma(a, p):
    return special.gammaincinv(a, p), special.gammainccinv(a, p)


def beta(a, b, p):
    return (special.betaincinv(a, b, p),)


@pytest.mark.parametrize("fun, args", [(normal, (WIDE, PROBABILITIES)), (gamma, (A, PROBABILITIES)),
                                       (beta, (A, B, PROBABILITIES))])
def test_tails(fun, args):
    found = xla.run(gradsmith.stablehlo(fun)(*args), *args, optimise=False)
    for expected, result in zip(fun(*args), found, strict=True):
        is_number = ~np.isnan(expected)
        if fun is not beta:                             # SciPy's own gives NaN in some tails
            np.testing.assert_array_equal(is_number, ~np.isnan(result))
        normal_range = is_number & (np.abs(expected) > 1e-300)
        np.testing.assert_allclose(result[normal_range], expected[normal_range], rtol=1e-12)
