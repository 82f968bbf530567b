"""Elements that two successive trips work on go from one to the other in a scalar; results are the same to the bit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.hand_on import hand_on

ops.load_table()
UP, DOWN = "1 .. h step 1", "last .. 0 step -1"
SOURCE = """
func f(a: f64[n], b: f64[n], h: i64) -> (f64[n]):
  last: i64 = subtract(h, 1)
  r: f64[n] = for k: i64 in {trips} carry (c0: f64[n] = a):
    below: i64 = subtract(k, 1)
    above: i64 = add(k, 1)
    far: i64 = add(k, 2)
    x: f64 = load(b, k) {{index=[at]}}
{body}
  return r
"""


def handed_on(trips, lines, count):
    """How many scalars the loop then carries, after the results were compared for this count of trips."""
    body = "\n".join("    " + re.sub(r"(load|store|add_at)\[(.*?)\]", r"\1(\2) {index=[at]}", line) for line in lines)
    func = parse_func(SOURCE.format(trips=trips, body=body))
    result = hand_on(func)
    verify(result)
    a, b = np.random.default_rng(3).normal(size=(2, 12))
    (want,) = evaluate(func, a, b, count + 1)
    np.testing.assert_array_equal(evaluate(result, a, b, count + 1)[0], want)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    np.testing.assert_array_equal(scope["f"](a.copy(), b, count + 1), want)
    (loop,) = [s for s in all_statements(result.body) if isinstance(s, For)]
    return sum(not c.type.shape for c in loop.carries)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("trips, lines, scalars", [
    # cleared, and its share added to the next
    (UP, ["v: f64 = load[c0, k]", "w: f64 = multiply(v, x)", "c1: f64[n] = store[c0, 0.0, k]",
          "c2: f64[n] = add_at[c1, w, above]", "yield c2"], 1),
    (DOWN, ["v: f64 = load[c0, k]", "w: f64 = multiply(v, x)", "c1: f64[n] = store[c0, w, k]",
            "c2: f64[n] = add_at[c1, w, below]", "yield c2"], 1),
    # a share added to the one before: no recurrence
    (DOWN, ["v: f64 = load[c0, k]", "w: f64 = multiply(v, x)", "c1: f64[n] = store[c0, w, k]",
            "c2: f64[n] = add_at[c1, v, above]", "yield c2"], 1),
    # the next element is written first, then read again in its own trip
    (UP, ["c1: f64[n] = store[c0, x, above]", "v: f64 = load[c1, k]", "w: f64 = multiply(v, x)",
          "c2: f64[n] = store[c1, w, k]", "u: f64 = load[c2, above]", "z: f64 = add(u, w)",
          "c3: f64[n] = add_at[c2, z, k]", "yield c3"], 1),
    # three in a row
    (DOWN, ["v: f64 = load[c0, k]", "c1: f64[n] = store[c0, x, k]", "c2: f64[n] = add_at[c1, v, above]",
            "c3: f64[n] = add_at[c2, v, below]", "yield c3"], 2),
    # only read by the next trip, and made of other things
    (UP, ["c1: f64[n] = store[c0, x, above]", "v: f64 = load[c1, k]", "c2: f64[n] = add_at[c1, v, 0]", "yield c2"], 1),
    # a recurrence that only reads, and elements that no two trips work on
    (UP, ["v: f64 = load[c0, below]", "w: f64 = multiply(v, x)", "c1: f64[n] = store[c0, w, k]", "yield c1"], 0),
    (UP, ["v: f64 = load[c0, above]", "w: f64 = multiply(v, x)", "c1: f64[n] = store[c0, w, k]", "yield c1"], 0),
    # two trips on
    (UP, ["v: f64 = load[c0, k]", "c1: f64[n] = store[c0, x, k]", "c2: f64[n] = add_at[c1, v, far]", "yield c2"], 0),
])
def test_the_same_to_the_bit(trips, lines, scalars, count):
    assert scalars == handed_on(trips, lines, count)


def test_an_element_somewhere_is_not_taken_for_another():
    """The place `h` may be that of any trip."""
    lines = ["v: f64 = load[c0, k]", "c1: f64[n] = store[c0, x, k]", "u: f64 = load[c1, {}]",
             "c2: f64[n] = add_at[c1, v, above]", "w: f64 = multiply(u, v)", "c3: f64[n] = add_at[c2, w, k]", "yield c3"]
    assert 0 == handed_on(UP, [line.format("3") for line in lines], 5)
    assert 1 == handed_on(UP, [line.format("0") for line in lines], 5)


def test_an_adjoint_without_a_recurrence():
    """The adjoint of `v[i] = f(v[i], v[i + 1])`, counting up, and the derivative of that."""
    def tree(v, up):
        v = v.copy()
        for last in range(v.shape[0] - 1, 0, -1):
            for i in range(last):
                v[i] = np.maximum(0.4 * v[i] + 0.5 * v[i + 1] * v[i + 1], up * v[i])
        return v[0]

    v, step = np.random.default_rng(4).uniform(1, 2, size=6), 1e-6
    d_v, d_up = gradsmith.grad(tree, argnums=(0, 1))(v, 0.7)
    for i in range(6):
        shift = step * np.eye(6)[i]
        np.testing.assert_allclose(d_v[i], (tree(v + shift, 0.7) - tree(v - shift, 0.7)) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(d_up, (tree(v, 0.7 + step) - tree(v, 0.7 - step)) / (2 * step), atol=1e-7)
    hessian = gradsmith.hessian(tree)(v, 0.7)
    for i in range(6):
        shift = step * np.eye(6)[i]
        both = [gradsmith.grad(tree)(v + s * shift, 0.7) for s in (1, -1)]
        np.testing.assert_allclose(hessian[i], (both[0] - both[1]) / (2 * step), atol=1e-6)
