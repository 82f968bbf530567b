"""What reversed loops save and what they compute again."""

from __future__ import annotations

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import build_func, const, for_loop, int_const, size_value, while_loop
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.nodes import Let
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()
n = symbol("n")


def gradient(body, params):
    func = build_func("f", params, body)
    derived = vjp(func, [True] + [False] * (len(params) - 1), cotangents=[const(1, F64)])
    verify(derived)
    return derived


def count(func, name):
    return sum(isinstance(s, Let) and s.op.name == name for s in all_statements(func.body))


def test_an_exponential_on_the_way_is_saved():
    """Each is waited for, and costs more than a number saved and read again."""
    made = gradient(lambda x, k: for_loop(int_const(0), k, [x], lambda i, x: [ops.exp(-x * 0.5) + x]),
                    [("x", F64), ("k", Type("int64"))])
    assert 1 == count(made, "exp") and 1 == count(made, "empty")


def test_one_beside_the_way_is_computed_again():
    """Nothing but the sum follows from it: to save it would mean to compute it in a loop of its own."""
    def body(x):
        def trip(i, s):
            here = ops.load(x, i, index=(At(),))
            return [s + ops.exp(-here * here)]
        return for_loop(int_const(0), size_value(n), [const(0, F64)], trip)

    made = gradient(body, [("x", Type("float64", (n,)))])
    assert 2 == count(made, "exp") and 0 == count(made, "empty")


def test_a_partial_that_the_function_has_computed():
    """Of sin(x), cos(x); of either there is one, whose value is saved."""
    made = gradient(lambda x, k: for_loop(int_const(0), k, [x], lambda i, x: [x + ops.sin(x) * ops.cos(x)]),
                    [("x", F64), ("k", Type("int64"))])
    assert 1 == count(made, "sin") and 1 == count(made, "cos")


def test_a_loop_that_runs_again_saves_more_than_its_state():
    """The inner loop's trips are not known, so it runs again in the reverse sweep, on tapes that are used over."""
    def body(x):
        def trip(i, s):
            (y,) = while_loop([ops.load(x, i, index=(At(),))], lambda y: y > 0.1,
                              lambda y: [0.3 * ops.sin(y) * ops.cos(y)])
            return [s + y * y]
        return for_loop(int_const(0), size_value(n), [const(0, F64)], trip)

    made = gradient(body, [("x", Type("float64", (n,)))])
    assert 2 == count(made, "sin") and 2 == count(made, "cos")          # when counted, and when run again
    x = np.array([0.7, 0.4, 1.2])

    def derivative(y):
        slope = 1.0
        while y > 0.1:
            slope *= 0.3 * np.cos(2 * y)
            y = 0.15 * np.sin(2 * y)
        return 2 * y * slope

    np.testing.assert_allclose(evaluate(made, x)[-1], [derivative(y) for y in x], rtol=1e-13)
