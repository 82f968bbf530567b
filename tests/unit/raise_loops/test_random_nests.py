"""Random loop nests give what they gave, raised or not: by the evaluator, and for the value by Python itself."""

from __future__ import annotations

import linecache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.raise_loops.comparing import assert_same, func_of, raised
from unit.raise_loops.nests import LENGTH, SIDE, nest

from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.ir.evaluate import evaluate

SIGNATURE = f"f64[{LENGTH}], f64[{LENGTH}], f64[{SIDE},{SIDE}], i64[{LENGTH}], f64"
COPYING = """
def f(A, B, M, P, c):
    A, B, M = A.copy(), B.copy(), M.copy()
    return g(A, B, M, P, c)
"""


def made(source, seed):
    """The function of a source, whose text can be found."""
    name = f"<nest {seed} {len(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"np": np}
    exec(compile(source, name, "exec"), scope)
    return scope["f"]


def numbers(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=LENGTH), rng.normal(size=LENGTH), rng.normal(size=(SIDE, SIDE)),
            rng.integers(0, SIDE, LENGTH), np.float64(rng.normal())]


def check_value(seed, keeps):
    function = made(nest(seed), seed)
    func = func_of(function, SIGNATURE)
    args = numbers(seed)
    mine = [np.array(a) for a in args[:3]]
    wanted = function(*mine, *args[3:])
    for want, got in zip(wanted[:3], evaluate(func, *args)):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    after, _ = raised(func, keeps=keeps)
    assert_same(func, after, args)


def check_gradient(seed):
    function = made(nest(seed).replace("def f(", "def g(") + COPYING, seed)
    try:
        func = func_of(function, SIGNATURE, "vjp(argnums=(0, 1, 2, 4))")
    except TranspileError as refused:
        assert refused.problems[0].code == "E406"       # a result that is known has no cotangent
        return
    rng = np.random.default_rng(seed + 1)
    args = [*numbers(seed), *(np.asarray(rng.normal(size=p.type.shape))[()] for p in func.params[5:])]
    after, _ = raised(func)
    assert_same(func, after, args, rtol=1e-11)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), keeps=st.booleans())
def test_the_value_stays(seed, keeps):
    check_value(seed, keeps)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31))
def test_the_gradient_stays(seed):
    check_gradient(seed)


# A load of an older version behind a write, one trip only, places defined inside, overlapping spans written backwards,
# and a condition of a write lost in another branch.
@pytest.mark.parametrize("seed", [473, 516, 681, 62, 9])
def test_values_that_were_wrong_once(seed):
    check_value(seed, keeps=seed % 2 == 0)


@pytest.mark.parametrize("seed", [15, 228, 331, 382])
def test_gradients_that_were_wrong_once(seed):
    check_gradient(seed)
