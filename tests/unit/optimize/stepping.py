"""Functions of many steps over arrays, and what stages of the pipeline make of their gradients."""

from __future__ import annotations

import linecache

import numpy as np
from hypothesis import strategies as st

import gradsmith
from gradsmith.transpiler import pipeline
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.transforms.vjp import vjp

STEPS = 6
COUNTER = iter(range(10**6))


def made(step, before="v = u.copy()", every=3, after="return np.sum(u * u * u)"):
    """A function of m steps, in segments of `every` if that is a number."""
    body = "".join(f"        {line}\n" for line in step.splitlines())
    trips = "range(m)" if every is None else f"gradsmith.checkpoint(range({STEPS}), every={every})"
    lines = ["def f(u, k, c, m):\n", "    u = u.copy()\n", *(f"    {line}\n" for line in before.split("; ")),
             f"    for t in {trips}:\n", *body.splitlines(True), f"    {after}\n"]
    name = f"<steps {next(COUNTER)}>"
    linecache.cache[name] = (1, None, lines, name)
    space = {"np": np, "gradsmith": gradsmith}
    exec(compile("".join(lines), name, "exec"), space)
    return space["f"]


def stages(fun, rank, stops, wanted=(0,)):
    """The gradient as it is after some stages."""
    sizes = [symbol("n"), symbol("p", 0)][:rank]
    leaves = [Leaf(Type("float64", tuple(sizes)), "u"), Leaf(Type("float64", tuple(sizes)), "k"),
              Leaf(Type("float64", ()), "c"), Leaf(Type("int64", ()), "m")]
    func = vjp(trace(fun, leaves).func, [k in wanted for k in range(4)])
    return [pipeline.run(func, stop=stop) for stop in stops]


def compare(fun, shape, stops, wanted=(0,), trips=STEPS, rtol=0.0):
    """Whether the second stage has something else than the first; all elements must be the same (rtol: nearly)."""
    rng = np.random.default_rng(sum(shape))
    before, after = stages(fun, len(shape), stops, wanted)
    args = [0.5 * rng.normal(size=shape), rng.normal(size=shape), 0.1, trips, 1.0]
    for want, got in zip(evaluate(before, *args), evaluate(after, *args), strict=True):
        np.testing.assert_allclose(got, want, rtol, rtol * np.max(np.abs(want), initial=0.0))
    return show(before) != show(after)


OFFSETS = st.integers(-3, 3)
TERMS = st.sampled_from(["{a} * {b}", "np.sin({a}) + {b}", "c * {a}", "k[i] * {a}", "{a} * {a} - {b}",
                         "({a} if {b} > 0 else c)"])


@st.composite
def steps(draw):
    """A step over elements, with borders treated in one of some ways."""
    lo, hi = draw(st.integers(3, 5)), draw(st.integers(3, 5))
    term = draw(TERMS)
    arrays = draw(st.lists(st.sampled_from("uv"), min_size=2, max_size=2))
    a, b = (f"{x}[i + {draw(OFFSETS)}]" for x in arrays)
    target, other = draw(st.sampled_from(["vu", "wv", "wu"]))
    at = draw(OFFSETS)
    if target in arrays:
        arrays = ["u" if x == target else x for x in arrays]
        a, b = (f"{x}[i + {draw(OFFSETS)}]" for x in arrays)
    lines = [f"for i in range({lo}, len(u) - {hi}):",
             f"    {target}[i + {at}] = 0.5 * np.tanh({term.format(a=a, b=b)})"]
    lines += draw(st.sampled_from([[], ["u[0] = u[1] * c"], ["v[-1] = v[-2] * u[-3]"], ["u[1] = 0.0"]]))
    lines.append(draw(st.sampled_from(["u, v = v, u", "u, w = w, u", "u, v, w = w, u, v", "pass"])))
    return "\n".join(lines)
