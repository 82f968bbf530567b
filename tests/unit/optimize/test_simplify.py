"""Simplification gives a new func and leaves the old one, and its params' names, as they are."""

from __future__ import annotations

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.types import F64
from gradsmith.transpiler.optimize.simplify import simplify

ops.load_table()


def test_nothing_changes_in_the_func_that_is_simplified():
    def body(a, b):
        total = a * b + 0.0
        total.name = "total"
        again = total * 1.0
        again.name = "again"
        return [again * again]

    func = build_func("f", [("a", F64), ("b", F64)], body)
    before = show(func)
    simpler = pipeline.run(func)
    assert before == show(func)
    assert "again" in show(simplify(func)) or "total" in show(simplify(func))
    assert show(simpler) == show(pipeline.run(func))


def test_params_keep_names_that_look_like_stock_names():
    def body(t):
        y = t * 1.0
        y.name = "y"
        return [y * y]

    func = build_func("f", [("t", F64)], body)
    assert ["t"] == [p.name for p in pipeline.run(func).params]
    assert "func f(t: f64)" in show(pipeline.run(func))
