"""Random numbers that are drawn by rejection: gamma and what is made of it, poisson, binomial."""

import numpy as np
import pytest
from scipy import special, stats

from gradsmith import grad, jit, random, value_and_grad, vmap

KEY = random.PRNGKey(5)
SHAPES = np.array([0.05, 0.4, 1.0, 2.5, 40.0])
RATES = np.array([0.0, 0.3, 5.0, 9.9, 10.0, 50.0, 2000.0])
TRIALS, CHANCES = np.array([0.0, 5.0, 100.0, 1000.0, 30.0]), np.array([0.5, 0.3, 0.2, 0.7, 1.0])


# JAX's numbers for KEY with classic streams and 64-bit types, written down because it takes long to compile them.
JAXS = {
    "gamma": [3.785760718582137e-14, 1.2010485575299619, 0.16428766792753854, 1.0586462312707412, 43.663659438022904],
    "loggamma": [-30.904944452769147, 0.18319497319641062, -1.8061363150180174, 0.05699095157462619, 3.7765161643300074],
    "beta": [0.0021374435699110764, 0.2369169931525086, 0.004402183887506726, 0.8305699140164788, 0.9790042295183305],
    "dirichlet": [8.214264308049322e-16, 0.026060100021449487, 0.003564679405874504, 0.022970284174840976,
                  0.9474049363978343],
    "t": [-1.2024662649839546, -3.2087932786780486, -2.259492480021205, 0.4612184677243312, -1.0583474238543191],
    "poisson": [0, 0, 10, 10, 5, 45, 2048],
    "binomial": [0.0, 2.0, 21.0, 706.0, 30.0],
}


def test_numbers_are_jaxs_to_rounding():
    for name, *args in (("gamma", SHAPES), ("loggamma", SHAPES), ("beta", SHAPES, 1.5), ("dirichlet", SHAPES),
                        ("t", SHAPES, (5,))):
        np.testing.assert_allclose(getattr(random, name)(KEY, *args, dtype=np.float64), JAXS[name], rtol=1e-12)
    assert JAXS["poisson"] == random.poisson(KEY, RATES).tolist()
    assert JAXS["binomial"] == random.binomial(KEY, TRIALS, CHANCES).tolist()


def test_distributions():
    count = (4000,)
    for found, law in (
        (random.gamma(KEY, 0.3, count, np.float64), stats.gamma(0.3)),
        (random.gamma(KEY, 7.0, count), stats.gamma(7.0)),
        (np.exp(random.loggamma(KEY, 1.3, count)), stats.gamma(1.3)),
        (random.beta(KEY, 0.5, 2.5, count), stats.beta(0.5, 2.5)),
        (random.dirichlet(KEY, np.array([0.7, 1.0, 2.0]), count)[:, 1], stats.beta(1.0, 2.7)),
        (random.chisquare(KEY, 3.0, count), stats.chi2(3.0)),
        (random.t(KEY, 4.0, count), stats.t(4.0)),
        (random.f(KEY, 4.0, 9.0, count), stats.f(4.0, 9.0)),
        (random.generalized_normal(KEY, 1.5, count), stats.gennorm(1.5)),
        (np.sum(random.ball(KEY, 3, 2.0, count) ** 2, axis=1) ** 1.5, stats.uniform()),
        (random.maxwell(KEY, count), stats.maxwell()),
        (random.wald(KEY, 1.7, count), stats.invgauss(1.7)),
        (random.rayleigh(KEY, 2.0, count), stats.rayleigh(scale=2.0)),
        (random.pareto(KEY, 3.0, count), stats.pareto(3.0)),
        (random.triangular(KEY, -1.0, 0.0, 2.0, count), stats.triang(1 / 3, -1.0, 3.0)),
        (random.weibull_min(KEY, 2.0, 1.5, count), stats.weibull_min(1.5, scale=2.0)),
    ):
        assert stats.kstest(np.asarray(found, np.float64), law.cdf).pvalue > 1e-3, law.dist.name


def test_distributions_of_whole_numbers():
    count = 4000
    for found, law in (
        (random.poisson(KEY, 3.0, (count,)), stats.poisson(3.0)),
        (random.poisson(KEY, 25.0, (count,)), stats.poisson(25.0)),
        (random.binomial(KEY, 12, 0.3, (count,)), stats.binom(12, 0.3)),
        (random.binomial(KEY, 90, 0.7, (count,)), stats.binom(90, 0.7)),
        (random.geometric(KEY, 0.3, (count,)), stats.geom(0.3)),
    ):
        edges = np.unique(law.ppf([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])).clip(0)
        places = np.searchsorted(edges, np.asarray(found), side="left")
        seen = np.bincount(places, minlength=len(edges) + 1)
        expected = count * np.diff([0.0, *law.cdf(edges), 1.0])
        seen, expected = seen[expected > 5], expected[expected > 5]
        assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-3, law.dist.name


def everything(key, a, rates):
    return random.gamma(key, a), random.dirichlet(key, a, dtype=np.float64), random.poisson(key, rates)


def test_inside_and_in_lanes():
    inside, batched = jit(everything)(KEY, SHAPES, RATES), vmap(everything, in_axes=(0, None, 0))(
        random.split(KEY, 2), SHAPES, np.stack([RATES, RATES[::-1]]))
    for want, got in zip(everything(KEY, SHAPES, RATES), inside, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    for lane, (key, rates) in enumerate(zip(random.split(KEY, 2), (RATES, RATES[::-1]))):
        for want, got in zip(everything(key, SHAPES, rates), batched, strict=True):
            np.testing.assert_allclose(got[lane], want, rtol=1e-14)


@pytest.mark.parametrize("a", [0.05, 0.7, 3.0, 60.0])
def test_gamma_numbers_move_as_quantiles_do(a):
    x, slope = value_and_grad(lambda a: random.gamma(KEY, a, (), np.float64))(a)
    p, step = special.gammainc(a, x), 1e-4
    quantiles = [special.gammaincinv(a * (1 + k * step), p) for k in (-2, -1, 1, 2)]
    expected = np.dot([1, -8, 8, -1], quantiles) / (12 * a * step)
    np.testing.assert_allclose(slope, expected, rtol=1e-8)
    log_slope = grad(lambda a: random.loggamma(KEY, a, (), np.float64))(a)
    np.testing.assert_allclose(log_slope, slope / x, rtol=1e-12)


def test_second_derivatives_follow_the_quantile():
    a = 2.3
    first = grad(lambda a: random.gamma(KEY, a, (), np.float64))
    p, step = special.gammainc(a, random.gamma(KEY, a, (), np.float64)), 1e-3
    quantiles = [special.gammaincinv(a + k * step, p) for k in (-1, 0, 1)]
    np.testing.assert_allclose(grad(first)(a), np.dot([1, -2, 1], quantiles) / step**2, rtol=1e-4)


def test_the_mean_of_slopes_is_the_slope_of_the_mean():
    """E[x] = a for gamma, a / (a + b) for beta, alpha / sum(alpha) for dirichlet."""
    count = 20000
    gamma = grad(lambda a: np.mean(random.gamma(KEY, a, (count,), np.float64)))(1.7)
    np.testing.assert_allclose(gamma, 1.0, rtol=0.03)
    beta = grad(lambda a: np.mean(random.beta(KEY, a, 2.0, (count,), np.float64)))(0.8)
    np.testing.assert_allclose(beta, 2.0 / 2.8**2, rtol=0.03)
    alpha = np.array([0.5, 1.0, 1.5])
    dirichlet = grad(lambda alpha: np.mean(random.dirichlet(KEY, alpha, (count,), np.float64)[:, 0]))(alpha)
    np.testing.assert_allclose(dirichlet, [2.5 / 9, -0.5 / 9, -0.5 / 9], atol=0.004)


def test_edges():
    assert np.all(np.isnan(random.gamma(KEY, np.array([0.0, -1.0, np.nan]))))
    assert np.all(np.isfinite(random.loggamma(KEY, np.full(50, 1e-4))))
    assert grad(lambda a: np.sum(random.gamma(KEY, a, dtype=np.float64)))(np.array([1e-5]))[0] >= 0.0
    assert random.poisson(KEY, 0.0).tolist() == 0
    np.testing.assert_array_equal(random.binomial(KEY, np.array([-1.0, 3.0, 3.0, 3.0]), np.array([0.5, -0.1, 0.0, 1.0])),
                                  [np.nan, np.nan, 0.0, 3.0])
    with pytest.raises(ValueError, match="broadcast"):
        random.gamma(KEY, np.ones(3), (2,))
    with pytest.raises(ValueError, match="alpha.ndim"):
        random.dirichlet(KEY, 1.0)
    with pytest.raises(ValueError, match="float32 or float64"):
        random.beta(KEY, 1.0, 1.0, dtype=np.int32)
