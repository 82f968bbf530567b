# golden: grad(argnums=(0, 1))
# golden: grad standalone
# golden: jvp
"""Functions whose derivative is given: a rule for the reverse mode in a loop, and one for the forward mode."""

import numpy as np

import gradsmith


@gradsmith.custom_vjp
def log1pexp(x):
    return np.log(1.0 + np.exp(x))


def log1pexp_fwd(x):
    return np.log(1.0 + np.exp(x)), x


def log1pexp_bwd(x, ct):
    return (ct / (1.0 + np.exp(-x)),)


log1pexp.defvjp(log1pexp_fwd, log1pexp_bwd)


@gradsmith.custom_jvp
def saturated(x, limit):
    return np.minimum(x, limit)


@saturated.defjvp
def saturated_jvp(primals, tangents):
    x, limit = primals
    t_x, t_limit = tangents
    return saturated(x, limit), np.where(x < limit, t_x, t_limit)


def custom_rules(x: "f64[n]", limit: "f64"):
    total = 0.0
    for i in range(len(x)):
        total = saturated(total + log1pexp(x[i]), limit)
    return total
