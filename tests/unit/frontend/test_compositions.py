"""Transforms of transforms of small programs: a sample of the pairs and triples, others by `test_compositions.py SECONDS`.

A transform is an operator on functions of one number here, which differentiates so many times.  So what any composition
gives is known: the derivative of that order of the program, which is found by `grad` alone, and by differences.
"""

import functools
import itertools
import random
import sys
import time

import numpy as np
import pytest
from tracing import run, traced

import gradsmith
from gradsmith import custom_jvp, custom_vjp

# --- programs ----------------------------------------------------------------------------------------------------


def straight(x):
    return np.sin(x) * x + np.exp(-x * x)


def loop(x):
    y = x
    for i in range(3):
        y = y * np.sin(x) + i * x
    return y


def while_loop(x):
    y = x
    while y < 2.0:
        y = 1.5 * y + 0.3 * np.sin(y)
    return y * x


def branch(x):
    if x * x > 0.5:
        return np.cos(2.0 * x) * x
    return x**3


def in_place(x):
    a = np.zeros(4)
    a[0] = x
    for i in range(1, 4):
        a[i] = 0.5 * a[i - 1] * x + np.sin(a[i - 1])
    a[1:3] *= x
    return np.sum(a * a)


def captured(x):
    scale = {"w": np.array([x, 2.0 * x])}

    def inner(y):
        return np.sum(scale["w"] * np.sin(y)) * y

    return gradsmith.grad(inner)(0.5 * x) + inner(x)


@custom_vjp
def reverse_rule(x, y):
    return np.sin(x) * y


reverse_rule.defvjp(lambda x, y: (reverse_rule(x, y), (x, y)),
                    lambda saved, ct: (np.cos(saved[0]) * saved[1] * ct, np.sin(saved[0]) * ct))


@custom_jvp
def forward_rule(x, y):
    return np.sin(x) * y


@forward_rule.defjvp
def _forward_rule(primals, tangents):
    (x, y), (t_x, t_y) = primals, tangents
    return forward_rule(x, y), np.cos(x) * y * t_x + np.sin(x) * t_y


def with_rules(x):
    y = x
    for i in range(2):
        y = reverse_rule(y, x) + forward_rule(x, y) * i
    return y


PROGRAMS = [straight, loop, while_loop, branch, in_place, captured, with_rules]

# --- operators: how often each differentiates, and what it makes of a function of one number -----------------------


def by_vjp(f):
    def pulled(x):
        _, pullback = gradsmith.vjp(f, x)
        return pullback(1.0)[0]
    return pulled


def by_linearize(f):
    def pushed(x):
        _, push = gradsmith.linearize(f, x)
        return push(1.0)
    return pushed


def with_own_vjp(f):
    own = custom_vjp(f)
    own.defvjp(lambda x: (f(x), gradsmith.grad(f)(x)), lambda slope, ct: (slope * ct,))
    return own


def with_own_jvp(f):
    own = custom_jvp(f)
    own.defjvp(lambda primals, tangents: (f(primals[0]), gradsmith.jvp(f, primals, tangents)[1]))
    return own


OPERATORS = {
    "jit": (0, gradsmith.jit),
    "checkpoint": (0, gradsmith.checkpoint),
    "vmap": (0, lambda f: lambda x: gradsmith.vmap(f)(np.array([x, x + 0.25]))[0]),
    "vmap of one": (0, lambda f: lambda x: gradsmith.vmap(lambda y, z: f(y) + 0.0 * z, in_axes=(None, 0))(
        x, np.array([1.0, 2.0]))[1]),
    "custom_vjp": (0, with_own_vjp),
    "custom_jvp": (0, with_own_jvp),
    "grad": (1, gradsmith.grad),
    "value_and_grad": (1, lambda f: lambda x: gradsmith.value_and_grad(f)(x)[1]),
    "vjp": (1, by_vjp),
    "jvp": (1, lambda f: lambda x: gradsmith.jvp(f, (x,), (1.0,))[1]),
    "linearize": (1, by_linearize),
    "jacfwd": (1, gradsmith.jacfwd),
    "jacrev": (1, gradsmith.jacrev),
    "hessian": (2, gradsmith.hessian),
    "hvp": (2, lambda f: lambda x: gradsmith.hvp(f, x, 1.0)),
    "gradient of a batch": (1, lambda f: lambda x: gradsmith.grad(
        lambda v: np.sum(gradsmith.vmap(f)(v)))(np.array([x, x + 0.25]))[0]),
}
PAIRS = list(itertools.product(OPERATORS, repeat=2))
TRIPLES = [t for t in itertools.product(OPERATORS, repeat=3) if sum(OPERATORS[n][0] for n in t) <= 4]
SAMPLE = random.Random(0).sample(TRIPLES, 12)
AT = 0.8


@functools.cache
def derivative(program, order):
    """By `grad` alone."""
    f = program
    for _ in range(order):
        f = gradsmith.grad(f)
    return float(run(traced(f, AT)))


def assert_composed(program, names):
    f, order = program, 0
    for name in reversed(names):
        f = OPERATORS[name][1](f)
        order += OPERATORS[name][0]
    found = run(traced(f, AT))
    assert () == np.shape(found)
    expected = derivative(program, order)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * (1 + abs(expected)), err_msg=" of ".join(names))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_derivatives_are_those_of_differences(program):
    values = {}
    for order in range(4):
        f = program
        for _ in range(order):
            f = gradsmith.grad(f)
        values[order] = f
    step = 1e-5
    for order in range(3):
        above, below = (float(run(traced(values[order], AT + d))) for d in (step, -step))
        np.testing.assert_allclose(derivative(program, order + 1), (above - below) / (2 * step), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("outer", OPERATORS)
def test_pairs(program, outer):
    rank = (PROGRAMS.index(program) + list(OPERATORS).index(outer)) % 8
    for number, (first, second) in enumerate(PAIRS):
        if first == outer and number % 8 == rank:
            assert_composed(program, (first, second))


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_triples(names):
    assert_composed(PROGRAMS[SAMPLE.index(names) % len(PROGRAMS)], names)


def test_tapes_of_rules_that_differ_from_lane_to_lane():
    """The forward part of the rule saves what a while loop makes, in each lane as much as it takes there."""
    assert_composed(while_loop, ("gradient of a batch", "custom_jvp", "value_and_grad"))


def main(seconds):
    """Random compositions until the time is up."""
    rng, start = random.Random(), time.monotonic()
    while time.monotonic() - start < seconds:
        program, names = rng.choice(PROGRAMS), rng.choice([*PAIRS, *TRIPLES])
        print(program.__name__, " of ".join(names))
        assert_composed(program, names)


if __name__ == "__main__":
    main(float(sys.argv[1]))
