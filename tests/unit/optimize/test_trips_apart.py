"""Which loops are marked as such whose trips are apart, and that values stay what they were."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.ints import Ints
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.independent import is_independent

ops.load_table()
ROWS = {
    "two rows": "for j in range(0, n - 1, 2):\n    for k in range(n):\n        a[j, k] += a[j + 1, k] * b[k, 0]\n"
                "        a[j + 1, k] -= b[j, k]",
    "elimination": "for i in range(n):\n    for j in range(i):\n        for k in range(j + 1, n):\n"
                   "            a[i, k] -= a[i, j] * a[j, k] + b[i, k]",
}
NOT = {
    "next element": "for j in range(n - 1):\n    for k in range(n - 1):\n        a[j, k] += a[j + 1, k] + 0.5 * a[j, k + 1]",
    "one place": "for j in range(n):\n    for k in range(n):\n        a[j, k] += b[k, j]",
    "row or column": "for j in range(n):\n    for k in range(n):\n        a[j, k] += a[k, 0]",
}


def lowered(step, stop="trips_apart", copies=True):
    lines = ["def f(a, b):\n", "    n = a.shape[0]\n", *(["    a = a.copy()\n"] if copies else []),
             *(f"    {line}\n" for line in step.splitlines()), "    return np.sum(a)\n"]
    name = f"<apart {hash(step)}>"
    linecache.cache[name] = (1, None, lines, name)
    space = {"np": np}
    exec(compile("".join(lines), name, "exec"), space)
    n = symbol("n")
    func = trace(space["f"], [Leaf(Type("float64", (n, n)), "a"), Leaf(Type("float64", (n, n)), "b")]).func
    return space["f"], pipeline.run(func, stop=stop)


def marked(func):
    return [s for s in all_statements(func.body) if isinstance(s, For) and s.abreast]


@pytest.mark.parametrize("name", ROWS)
def test_several_rows(name):
    fun, func = lowered(ROWS[name])
    assert marked(func)
    for n in (2, 3, 9, 40):
        a, b = np.random.default_rng(n).normal(size=(2, n, n)) / (8 * n)
        np.testing.assert_allclose(gradsmith.jit(fun)(a, b), fun(a, b), rtol=1e-12)
        np.testing.assert_allclose(*(d(fun)(a, b) for d in (gradsmith.grad, gradsmith.jacfwd)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NOT)
def test_others(name):
    assert not marked(lowered(NOT[name])[1])


def test_not_in_memory_of_the_caller():
    """Its elements may share memory, as `as_strided` gives."""
    assert not marked(lowered(ROWS["two rows"], copies=False)[1])


def test_long_trips():
    step = "for j in range(n):\n    for k in range(1, n - 1):\n        x = b[j, k - 1]\n        y = b[j, k + 1]\n" \
           "        a[j, k] = x * y + (x - y) * (x + y) * 3.0 - x * x * y + y * y * x - (x + 2.0) * (y - 3.0)"
    (loop,) = marked(lowered(step)[1])
    assert is_independent(loop, Ints(lowered(step)[1].body))
    assert not marked(lowered(step.replace("(x + 2.0)", "np.exp(x)"))[1])
