"""Terms with a cotangent in common are added up before they are multiplied with it."""

from __future__ import annotations

import linecache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.factor import add_partials_first
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()
COUNTER = iter(range(10**6))


def factored(body, args=(0.7, -0.4, 1.3, 2.5), dtype="f64"):
    """The body's text after the pass, with its value compared; d, a, b and c are scalars, the result is r."""
    lines = "".join(f"  {line}\n" for line in body.split("; "))
    func = parse_func(f"func f(d: f64, a: f64, b: f64, c: f64) -> (f64):\n{lines}  return r\n".replace("f64", dtype))
    result = add_partials_first(func)
    verify(result)
    (want,), (got,) = evaluate(func, *args), evaluate(result, *args)
    np.testing.assert_allclose(got, want, rtol=1e-14)
    return show(result)


@pytest.mark.parametrize("body, scales", [
    ("t: f64 = scale(d, a); u: f64 = scale(d, b); r: f64 = add(t, u)", 1),
    ("t: f64 = scale(d, a); u: f64 = scale(d, b); r: f64 = subtract(t, u)", 1),
    ("t: f64 = scale(d, a); u: f64 = scale(d, b); v: f64 = subtract(t, u); r: f64 = negative(v)", 1),
    ("t: f64 = scale(d, a); u: f64 = scale(t, b); v: f64 = scale(d, c); r: f64 = add(u, v)", 1),
    ("t: f64 = scale(d, a); u: f64 = multiply(t, -2.0); v: f64 = scale(d, c); w: f64 = add(u, v); "
     "r: f64 = subtract(w, d)", 1),
    ("t: f64 = scale(d, a); u: f64 = scale(c, b); v: f64 = scale(d, b); w: f64 = add(t, u); r: f64 = add(w, v)", 2),
    ("t: f64 = scale(d, a); r: f64 = add(t, c)", 1),
    ("t: f64 = scale(d, a); u: f64 = scale(c, b); r: f64 = add(t, u)", 2),
])
def test_one_product_for_each_number(body, scales):
    assert factored(body).count("scale(") == scales


def test_infinite_partials_meet_zeros():
    body = "t: f64 = scale(d, a); u: f64 = scale(d, b); r: f64 = add(t, u)"
    assert factored(body, (0.0, np.inf, 1.0, 1.0)).count("scale(") == 1
    assert factored(body, (0.0, np.inf, -np.inf, 1.0)).count("scale(") == 1


@pytest.mark.parametrize("partial", ["divide(b, c)", "sqrt(c)", "log(b)"])
def test_partials_that_may_be_infinite_are_not_multiplied(partial):
    """0 * inf would be a NaN where the inner product's zero meets the outer partial."""
    body = f"p: f64 = {partial}; t: f64 = scale(d, a); u: f64 = scale(t, p); v: f64 = scale(d, c); r: f64 = add(u, v)"
    assert factored(body, (0.7, 0.4, 1.3, 2.5)).count("scale(") == 3


def test_what_is_used_elsewhere_stays():
    body = ("t: f64 = scale(d, a); u: f64 = scale(d, b); v: f64 = add(t, u); w: f64 = multiply(t, c); "
            "r: f64 = subtract(v, w)")
    assert factored(body).count("scale(") == 2


def test_float32_keeps_its_order():
    body = "t: f64 = scale(d, a); u: f64 = scale(d, b); r: f64 = add(t, u)"
    assert factored(body, tuple(map(np.float32, (0.7, -0.4, 1.3, 2.5))), "f32").count("scale(") == 2


EXPRESSIONS = st.recursive(st.sampled_from(["u[i]", "u[i - 1]", "u[i + 1]", "k[i]", "c", "2.0"]), lambda inner: st.tuples(
    inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"), max_leaves=7)


@given(EXPRESSIONS)
@settings(max_examples=60, deadline=None)
def test_gradients_of_random_expressions(text):
    lines = ["def f(u, k, c):\n", "    v = np.zeros_like(u)\n", "    for i in range(1, len(u) - 1):\n",
             f"        v[i] = {text}\n", "    return np.sum(v * v)\n"]
    name = f"<factor {next(COUNTER)}>"
    linecache.cache[name] = (1, None, lines, name)
    space = {"np": np}
    exec(compile("".join(lines), name, "exec"), space)
    array = Type("float64", (symbol("n"),))
    leaves = [Leaf(array, "u"), Leaf(array, "k"), Leaf(Type("float64", ()), "c")]
    func = vjp(trace(space["f"], leaves).func, [True, True, True])
    rng = np.random.default_rng(0)
    args = [rng.normal(size=9), rng.normal(size=9), 0.3, 1.0]
    args[0][4] = 0.0
    before, after = pipeline.run(func, stop="gather"), pipeline.run(func, stop="factor")
    for want, got in zip(evaluate(before, *args), evaluate(after, *args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
