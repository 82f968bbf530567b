"""Incomplete gamma and beta functions and their slopes against mpmath, at few points of every region."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from gradsmith.kernels.incomplete_slopes import betainc_slope, gammainc_slope, log_gamma_slope

GAMMA_POINTS = [(0.02, 0.4), (0.3, 1e-6), (0.3, 2.0), (1.5, 0.1), (1.5, 9.0), (8.0, 8.5), (40.0, 25.0), (150.0, 160.0),
                (1200.0, 1230.0), (3.0, 700.0)]  # fmt: skip
BETA_POINTS = [(0.2, 0.4, 0.01), (0.2, 3.0, 0.9), (1.5, 2.5, 0.4), (2.0, 0.3, 0.95), (20.0, 35.0, 0.3),
               (90.0, 140.0, 0.42), (1.0, 60.0, 0.001)]  # fmt: skip


def gamma_derivative(order, a, x):
    """Through the smaller of P and 1 - P."""
    if x < a:
        return mp.diff(lambda t: mp.gammainc(t, 0, mpf(x), regularized=True), mpf(a), order)
    return -mp.diff(lambda t: mp.gammainc(t, mpf(x), mp.inf, regularized=True), mpf(a), order)


def beta_derivative(orders, a, b, x):
    return mp.diff(lambda s, t: mp.betainc(s, t, 0, mpf(x), regularized=True), (mpf(a), mpf(b)), orders)


def relative(expected, actual):
    return float(abs((mpf(actual) - expected) / expected))


@pytest.fixture(autouse=True)
def forty_digits():
    with mp.workdps(40):
        yield


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("a, x", GAMMA_POINTS)
def test_gamma_by_its_shape(order, a, x):
    expected = gamma_derivative(order, a, x)
    assert relative(expected, gammainc_slope(order, a, x)) < (1e-13 if order == 1 else 2e-12)
    density = mpf(x) ** mpf(a) * mp.exp(-mpf(x)) / mp.gamma(mpf(a))
    assert relative(-expected / density, log_gamma_slope(order, a, math.log(x))) < 2e-12


@pytest.mark.parametrize("orders", [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)])
@pytest.mark.parametrize("a, b, x", BETA_POINTS)
def test_beta_by_its_shapes(orders, a, b, x):
    expected = beta_derivative(orders, a, b, x)
    assert relative(expected, betainc_slope(*orders, a, b, x)) < (1e-13 if sum(orders) == 1 else 3e-12)


def test_edges():
    for x in (0.0, math.inf):
        assert gammainc_slope(1, 2.0, x) == 0.0
    for x in (0.0, 1.0):
        assert betainc_slope(1, 0, 2.0, 3.0, x) == 0.0
    for a, x in ((-1.0, 2.0), (0.0, 2.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.nan)):
        assert np.isnan(gammainc_slope(1, a, x))
    for at in ((0.0, 1.0, 0.5), (1.0, -1.0, 0.5), (1.0, 1.0, 1.5), (1.0, math.nan, 0.5), (1.0, 1.0, math.nan)):
        assert np.isnan(betainc_slope(1, 0, *at))
