"""Parting a func in two keeps what it computes."""

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import substitute, symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.split import split
from gradsmith.transpiler.transforms.vjp import vjp


def layer(w, x):
    return np.tanh(x @ w) + np.sum(w)


def spread(w, x):
    return (x * w)[1:] + w[0]


def constant(w, x):
    return x * 2.0 + 1.0


def nothing(w, x):
    x[0] += w


@pytest.mark.parametrize("fun", [layer, spread, constant, nothing])
@pytest.mark.parametrize("mode", [vjp, jvp])
def test_both_parts_together_are_the_whole(fun, mode):
    ops.load_table()
    func = trace(fun, (Leaf(Type("float64", (symbol("k"),))), Leaf(Type("float64", (symbol("m"), symbol("k")))))).func
    whole = mode(func, (True, True))
    late = [False, False, *[True] * (len(whole.params) - 2)]
    halves = split(whole, late, len(func.results))
    verify(halves.first), verify(halves.second)
    rng = np.random.default_rng(0)
    sizes = {"m": 4, "k": 3}
    args = [rng.normal(size=lengths(p.type.shape, sizes)) for p in whole.params]
    first = evaluate(halves.first, *args[:2])
    value, residuals = first[:len(func.results)], first[len(func.results):]
    for expected, actual in zip(evaluate(whole, *args), (*value, *evaluate(halves.second, *residuals, *args[2:])),
                                strict=True):
        assert np.shape(expected) == np.shape(actual)
        np.testing.assert_allclose(expected, actual)


def lengths(shape, sizes):
    """The shape's lengths where the named sizes are these."""
    return tuple(substitute(d, sizes) for d in shape)


def test_rearrangements_are_made_again():
    func = trace(layer, (Leaf(Type("float64", (symbol("k"),))), Leaf(Type("float64", (symbol("m"), symbol("k")))))).func
    halves = split(vjp(func, (True, True)), (False, False, True), 1)
    assert all(r.type.rank < 2 or r in halves.first.params for r in halves.residuals)


def test_early_results_may_not_wait():
    func = trace(constant, (Leaf(Type("float64")), Leaf(Type("float64")))).func
    with pytest.raises(ValueError, match="wanted first depends on a late"):
        split(func, (True, True), 1)
