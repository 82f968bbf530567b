"""Loops that are counted first, and the loops that count them."""

from __future__ import annotations

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import build_func, while_loop
from gradsmith.transpiler.ir.nodes import For, While
from gradsmith.transpiler.ir.types import F64
from gradsmith.transpiler.transforms.counted import count_trips, counting_pairs

ops.load_table()


def test_loops_that_an_earlier_derivative_counted_are_no_pairs():
    func = build_func("f", [("a", F64)], lambda a: while_loop([a], lambda x: x > 1.0, lambda x: [0.5 * ops.sin(x)]))
    counted, counts = count_trips(func, lambda stmt: True)
    (pair,) = counting_pairs(counted, counts).items()
    assert [For, While] == [type(stmt) for stmt in pair]
    again, none = count_trips(counted, lambda stmt: False)
    assert again is counted
    assert {} == counting_pairs(again, none)
