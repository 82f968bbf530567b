"""Random numbers from explicit keys, as JAX has them: the same key gives the same numbers on every machine.

Streams are those of JAX's Threefry-2x32 in its classic form (`jax_threefry_partitionable=False`): keys, bits, integers,
uniform and normal numbers and permutations are equal to JAX's bit by bit, other distributions up to the last digits of
the functions that they are made with.  Dtypes are JAX's defaults, float32 and int32, unless `dtype` says otherwise;
arrays that are passed in (probabilities, logits) keep theirs.

A key is an array of two uint32 words.  Use a key once: `key, subkey = split(key)`.

    key = random.PRNGKey(0)
    x = random.normal(key, (10,))

All functions are usable inside transpiled functions, with keys and parameters known at run time, and batched over keys:
each lane gets the numbers that its key alone gives.  Numbers are differentiable with respect to the parameters of their
distribution: by the formula that they are made with, or where they are drawn by rejection (`gamma` and all that is made
of it) through the distribution function (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

from .distributions.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from .distributions.counts import binomial, poisson
from .distributions.gamma import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    t,
)
from .distributions.keys import PRNGKey, bits, clone, fold_in, key, key_data, split, wrap_key_data
from .distributions.matrices import multivariate_normal, orthogonal
from .distributions.selection import bernoulli, categorical, choice, geometric, permutation, rademacher
from .distributions.uniform import randint, uniform

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "clone",
    "dirichlet", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data",
    "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal", "pareto",
    "permutation", "poisson", "rademacher", "randint", "rayleigh", "split", "t", "triangular", "truncated_normal",
    "uniform", "wald", "weibull_min", "wrap_key_data",
]
