"""Simplification is exact: random expressions keep every bit of their values, the signs of zeros among them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import build_func, const
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.optimize.simplify import simplify

ops.load_table()
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -3.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])
X, Y = (side.ravel() for side in np.meshgrid(EDGES, EDGES))
VECTOR = F64.with_shape(X.shape)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.25, 3.0)


def expression(draw, leaves, depth):
    """A random value made of the leaves."""
    if depth == 0:
        return draw.choice(leaves) if draw.random() < 0.6 else const(draw.choice(NUMBERS), leaves[0].type)
    kind = draw.choice(["add", "subtract", "multiply", "divide", "negative", "negative", "absolute", "select", "select", "exp"])

    def part():
        return expression(draw, leaves, depth - 1)

    if kind in ("negative", "absolute", "exp"):
        return getattr(ops, kind)(part())
    if kind == "select":
        cond = draw.choice([leaves[0] > 0, ops.logical_not(leaves[0] > 0), leaves[1].eq(leaves[0])])
        return ops.select(cond, part(), part())
    return getattr(ops, kind)(part(), part())


def simplified(func):
    while True:
        after = simplify(func)
        if after is func:
            return func
        func = after


def bits(array):
    return np.where(np.isnan(array), np.nan, array).view("int64")


@pytest.mark.parametrize("seed", range(400))
def test_random_expressions_keep_every_bit(seed):
    draw = random.Random(seed)
    func = build_func("f", [("x", VECTOR), ("y", VECTOR)], lambda *xs: (expression(draw, xs, 4),))
    after = simplified(func)
    (want,), (got,) = evaluate(func, X, Y), evaluate(after, X, Y)
    different = bits(want) != bits(got)
    assert not np.any(different), f"{show(func)}\n{show(after)}\nat {X[different][0]}, {Y[different][0]}: {got[different][0]}, not {want[different][0]}"


@pytest.mark.parametrize("seed", range(100))
def test_random_integer_expressions_keep_every_bit(seed):
    draw = random.Random(seed)
    x = np.array([0, 1, -1, 5, -7, 127, -128], "int8")
    kind = Type("int8", x.shape)

    def build(a, b, depth):
        if depth == 0:
            return draw.choice([a, b]) if draw.random() < 0.6 else const(draw.choice([0, 1, -1, 2, -3]), a.type)
        name = draw.choice(["add", "subtract", "multiply", "negative", "absolute", "bitwise_and", "invert"])
        parts = [build(a, b, depth - 1) for _ in range(1 if name in ("negative", "absolute", "invert") else 2)]
        return getattr(ops, name)(*parts)

    func = build_func("f", [("x", kind), ("y", kind)], lambda a, b: (build(a, b, 4),))
    assert np.array_equal(evaluate(func, x, x[::-1].copy())[0], evaluate(simplified(func), x, x[::-1].copy())[0]), show(func)


def test_scale_keeps_its_zeros():
    """A plain product takes its place only where no NaN can arise."""
    def masked(x, y):
        return (ops.scale(ops.select(x > 0, const(0.0, x.type), y), ops.exp(x)), ops.scale(x, const(2.0, x.type)),
                ops.scale(const(3.0, x.type), y), ops.scale(const(0.0, x.type), y), ops.scale(x, y))

    func = build_func("f", [("x", VECTOR), ("y", VECTOR)], masked)
    for want, got in zip(evaluate(func, X, Y), evaluate(simplified(func), X, Y), strict=True):
        assert np.array_equal(want, got, equal_nan=True)
