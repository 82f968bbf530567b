"""What derivatives are at kinks, ties, poles and removable singularities, in both modes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

from gradsmith.transpiler import ops
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import F64
from gradsmith.transpiler.ir.walk import map_results
from gradsmith.transpiler.ops.spelling import as_value, find_spelling
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()
INF = math.inf


def slopes(function, *at):
    """Partial derivatives of a function of spelled calls at scalars, after checking that both modes agree."""
    func = build_func("f", [(f"x{k}", F64) for k in range(len(at))], lambda *xs: (as_value(function(*xs)),))
    moving = [True] * len(at)
    values = [np.float64(x) for x in at]
    reverse = evaluate(vjp(func, moving), *values, np.float64(1.0))[1:]
    for k, expected in enumerate(reverse):
        tangents = [np.float64(j == k) for j in range(len(at))]
        forward = evaluate(jvp(func, moving), *values, *tangents)[1]
        assert forward == expected or (np.isnan(forward) and np.isnan(expected))
    return tuple(float(x) for x in reverse)


def spelled(function, *fixed):
    """The spelling of a NumPy function, with further fixed arguments."""
    return lambda *xs: find_spelling(function)(*xs, *fixed)


def where(cond, a, b):
    return find_spelling(np.where)(cond, a, b)


@pytest.mark.parametrize("function, at, expected", [
    (spelled(np.abs), (0.0,), (0.0,)),
    (spelled(np.abs), (-0.0,), (0.0,)),
    (spelled(np.maximum), (1.0, 1.0), (0.5, 0.5)),
    (spelled(np.minimum), (1.0, 1.0), (0.5, 0.5)),
    (spelled(np.fmax), (1.0, 1.0), (0.5, 0.5)),
    (spelled(np.fmax), (1.0, math.nan), (1.0, 0.0)),
    (spelled(np.fmin), (math.nan, 1.0), (0.0, 1.0)),
    (spelled(np.maximum, 0.0), (0.0,), (0.5,)),
    (spelled(np.clip, 0.0, 1.0), (0.0,), (0.5,)),
    (spelled(np.clip, 0.0, 1.0), (1.0,), (0.5,)),
    (spelled(np.clip, 0.0, 1.0), (0.5,), (1.0,)),
    (spelled(np.clip, None, 1.0), (2.0,), (0.0,)),
    (spelled(np.sqrt), (0.0,), (INF,)),
    (spelled(np.power, 0.5), (0.0,), (INF,)),
    (spelled(np.power, 0.5), (4.0,), (0.25,)),
    (spelled(np.power, 2), (0.0,), (0.0,)),
    (spelled(np.power, 2), (-3.0,), (-6.0,)),
    (spelled(np.power, 3), (-2.0,), (12.0,)),
    (spelled(np.power, 1), (0.0,), (1.0,)),
    (spelled(np.power, 0), (0.0,), (0.0,)),
    (spelled(np.power, -1), (2.0,), (-0.25,)),
    (spelled(np.power, -2), (-1.0,), (2.0,)),
    (spelled(np.power), (0.0, 0.0), (0.0, 0.0)),
    (spelled(np.power), (0.0, 1.0), (1.0, 0.0)),
    (spelled(np.power), (0.0, 2.0), (0.0, 0.0)),
    (spelled(np.power), (2.0, 3.0), (12.0, 8.0 * math.log(2.0))),
    (lambda x: find_spelling(np.power)(x, ops.convert(x * 0 + 3, dtype="int64")), (-2.0,), (12.0,)),
    (spelled(np.hypot), (0.0, 0.0), (0.0, 0.0)),
    (spelled(np.hypot), (3.0, 4.0), (0.6, 0.8)),
    (spelled(np.hypot), (3e200, 4e200), (0.6, 0.8)),
    (spelled(np.arctan2), (0.0, 0.0), (0.0, 0.0)),
    (spelled(np.arctan2), (1e-200, 1e-200), (0.5e200, -0.5e200)),
    (spelled(np.logaddexp), (-INF, -INF), (0.5, 0.5)),
    (spelled(np.logaddexp), (-INF, 1.0), (0.0, 1.0)),
    (spelled(np.logaddexp), (1000.0, 1000.0), (0.5, 0.5)),
    (spelled(np.logaddexp2), (3.0, 3.0), (0.5, 0.5)),
    (spelled(np.tanh), (1000.0,), (0.0,)),
    (spelled(scipy.special.expit), (-800.0,), (0.0,)),
    (spelled(scipy.special.xlogy), (0.0, 0.0), (-INF, 0.0)),
    (spelled(scipy.special.xlogy), (0.0, 2.0), (math.log(2.0), 0.0)),
    (spelled(scipy.special.xlog1py), (0.0, -1.0), (-INF, 0.0)),
    (spelled(scipy.special.entr), (0.0,), (INF,)),
    (spelled(np.copysign), (0.0, -1.0), (0.0, 0.0)),
    (spelled(np.copysign), (2.0, -1.0), (-1.0, 0.0)),
    (spelled(np.nextafter), (1.0, 2.0), (1.0, 0.0)),
    (spelled(np.heaviside), (0.0, 0.5), (0.0, 1.0)),
    (spelled(np.nan_to_num), (math.nan,), (0.0,)),
    (spelled(np.nan_to_num), (INF,), (0.0,)),
    (spelled(np.nan_to_num), (2.0,), (1.0,)),
    (spelled(np.floor), (2.0,), (0.0,)),
    (spelled(np.remainder, 3.0), (4.0,), (1.0,)),
    (spelled(np.remainder), (-4.0, 3.0), (1.0, 2.0)),
    (spelled(np.fmod), (-4.0, 3.0), (1.0, 1.0)),
    (spelled(np.sinc), (0.0,), (0.0,)),
    (lambda x: where(x > 0, spelled(np.sqrt)(x), 0.0), (0.0,), (0.0,)),
    (lambda x: where(x < 1, 3 * x, spelled(np.sqrt)(x)), (0.0,), (3.0,)),
    (lambda x: where(x <= 0, spelled(np.exp)(x), 1 + 5 * x), (1000.0,), (5.0,)),
    (lambda x: where(x > 0, spelled(np.log)(x) * x, 0.0), (0.0,), (0.0,)),
    (lambda x, y: where(x * x + y * y > 0, spelled(np.arctan2)(y, x), 0.0), (0.0, 0.0), (0.0, 0.0)),
    (lambda x: spelled(np.minimum, 0.0)(x) - spelled(np.log1p)(spelled(np.exp)(-spelled(np.abs)(x))), (0.0,), (0.5,)),
    (lambda x: spelled(np.minimum, 5.0)(spelled(np.exp)(x)), (1000.0,), (0.0,)),
])
def test_slopes(function, at, expected):
    found = slopes(function, *at)
    assert found == pytest.approx(expected, rel=1e-14)


def nested(function, order):
    """The derivative of that order, by forward over forward, as a function of a number."""
    func = build_func("f", [("x", F64)], lambda x: (as_value(function(x)),))
    for _ in range(order):
        pushed = jvp(func, [True, *[False] * (len(func.params) - 1)])
        func = map_results(pushed, pushed.results[-1:])
    return lambda x: float(evaluate(func, np.float64(x), *[np.float64(1.0)] * order)[0])


@pytest.mark.parametrize("order, at_zero", [(0, 1.0), (1, 0.0), (2, -math.pi ** 2 / 3), (3, 0.0), (4, math.pi ** 4 / 5),
                                            (6, -math.pi ** 6 / 7)])
def test_derivatives_of_sinc_at_zero(order, at_zero):
    assert nested(spelled(np.sinc), order)(0.0) == pytest.approx(at_zero, rel=1e-14, abs=1e-14)


def test_slope_of_sinc_just_beside_zero():
    assert nested(spelled(np.sinc), 1)(1e-8) == pytest.approx(-math.pi ** 2 * 1e-8 / 3, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_powers_at_zero_to_any_order(order):
    """x ** 2 and x ** 3 by integer, float and array exponents."""
    for exponent in (2, 3.0, np.float64(3.0), np.array(2.0)):
        falling = math.prod(float(exponent) - k for k in range(order))
        expected = falling * (1.0 if float(exponent) == order else 0.0)
        assert nested(spelled(np.power, exponent), order)(0.0) == expected


def test_second_derivative_of_logaddexp_at_a_tie():
    assert nested(spelled(np.logaddexp, 0.5), 2)(0.5) == pytest.approx(0.25, rel=1e-14)


def test_second_derivative_of_xlogy_where_its_factor_is_zero():
    mixed = nested(lambda x: spelled(scipy.special.xlogy)(x, 2.0 + x), 2)
    assert mixed(0.0) == pytest.approx(2 / 2.0, rel=1e-14)


def test_derivatives_beyond_the_kernels_are_refused():
    func = build_func("f", [("x", F64)], lambda x: (ops.sinc_derivative(x, n=20),))
    with pytest.raises(RuleError, match=r"order 21 of np.sinc is not supported"):
        jvp(func, [True])
