"""Derivatives inside derivatives, where the inner function sees the outer variable by another way than its argument.

d/dx [x d/dy (x y^2 at y = x)] = d/dx 2 x^3 = 6 x^2, by every way in and in every pair of modes.
"""

import dataclasses

import numpy as np
import pytest
from tracing import run, traced

import gradsmith
from gradsmith import custom_jvp, custom_vjp


def by_vjp(f):
    return lambda x: gradsmith.vjp(f, x)[1](1.0)[0]


def by_linearize(f):
    return lambda x: gradsmith.linearize(f, x)[1](1.0)


MODES = {
    "grad": gradsmith.grad,
    "jvp": lambda f: lambda x: gradsmith.jvp(f, (x,), (1.0,))[1],
    "vjp": by_vjp,
    "linearize": by_linearize,
    "jacfwd": gradsmith.jacfwd,
    "batch": lambda f: lambda x: gradsmith.vmap(gradsmith.grad(f))(np.array([x, 2.0 * x]))[0],
}


@dataclasses.dataclass
class Held:
    value: object


def as_it_is(x):
    return lambda y: x * y * y


def in_an_array(x):
    a = np.zeros(2)
    a[1] = x
    return lambda y: a[1] * y * y


def in_a_dict(x):
    d = {"x": x}
    return lambda y: d["x"] * y * y


def in_an_object(x):
    held = Held(x)
    return lambda y: held.value * y * y


def in_a_default_value(x):
    return lambda y, x=x: x * y * y


def in_a_reverse_rule(x):
    f = custom_vjp(lambda y: x * y * y)
    f.defvjp(lambda y: (x * y * y, y), lambda y, ct: (2.0 * x * y * ct,))
    return lambda y: f(y)


def in_a_forward_rule(x):
    f = custom_jvp(lambda y: x * y * y)
    f.defjvp(lambda primals, tangents: (f(primals[0]), 2.0 * x * primals[0] * tangents[0]))
    return lambda y: f(y)


def as_an_argument_of_a_rule(x):
    f = custom_vjp(lambda z, y: z * y * y)
    f.defvjp(lambda z, y: (f(z, y), (z, y)), lambda saved, ct: (saved[1] ** 2 * ct, 2.0 * saved[0] * saved[1] * ct))
    return lambda y: f(x, y)


WAYS = [as_it_is, in_an_array, in_a_dict, in_an_object, in_a_default_value, in_a_reverse_rule, in_a_forward_rule,
        as_an_argument_of_a_rule]


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
def test_every_pair_of_modes(way):
    for outer, outer_mode in MODES.items():
        for inner, inner_mode in MODES.items():
            def f(x, inner_mode=inner_mode):
                return x * inner_mode(way(x))(x)

            found = run(traced(outer_mode(f), 5.0))
            np.testing.assert_allclose(found, 150.0, rtol=1e-12, err_msg=f"{outer} of {inner}")
