"""Trips of an inner loop that a loop counts for a later one are counted by that one, whose tapes grow and stay."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.ir.build import build_func, choose, const, for_loop, int_const, while_loop
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.nodes import For, Let, While
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements, blocks, map_results
from gradsmith.transpiler.optimize.count_late import count_late
from gradsmith.transpiler.optimize.grow_tapes import ROOM
from gradsmith.transpiler.optimize.keep_room import keep_room
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()

ELEMENTS = Type("float64", (5,))
STARTS = np.array([0.32, 1.7, 0.2, 0.4, 0.9])           # from no trip to more than twice the room to begin with


def falling(x):
    """Where x has fallen below 0.3."""
    (y,) = while_loop([x], lambda x: x > 0.3, lambda x: [x - 0.01 * ops.sin(x)])
    return y


def element(a, *at):
    return ops.load(a, *at, index=(At(),) * len(at))


def total(lo, hi, step, term):
    """A func of an array that adds up a term of each place."""
    def make(a):
        return for_loop(int_const(lo), int_const(hi), [const(0.0, F64)], lambda i, s: [s + term(a, i)], step=step)
    return build_func("f", [("a", ELEMENTS)], make)


def plain(a, i):
    return falling(element(a, i))


def twice(a, i):
    """Two loops, the second of which goes on with what the first has found."""
    x = falling(element(a, i))
    return x * falling(x + 0.5)


def pairs(a, i):
    (s,) = for_loop(int_const(0), int_const(5), [const(0.0, F64)],
                    lambda j, s: [s + falling(element(a, i) * element(a, j))])
    return s


def counts(func):
    """The loops that nothing bounds, and allocations, each with the number of loops around it."""
    def visit(block, depth):
        for stmt in block.stmts:
            if isinstance(stmt, While):
                yield "while", depth
            if isinstance(stmt, Let) and stmt.op.is_unset:
                yield "empty", depth
            for inner in blocks(stmt):
                yield from visit(inner, depth + isinstance(stmt, (For, While)))
    return list(visit(func.body, 0))


def gradient(func, keeps_value=False):
    """As it is before the stage."""
    both = vjp(func, [True], cotangents=[const(1.0, F64)])
    return pipeline.run(both if keeps_value else map_results(both, both.results[1:]), stop="fuse")


def same(before, after):
    verify(after)
    for want, got in zip(evaluate(before, STARTS), evaluate(after, STARTS), strict=True):
        np.testing.assert_array_equal(want, got)


@pytest.mark.parametrize("func, loops", [
    (total(0, 5, 1, plain), 1), (total(1, 5, 1, plain), 1), (total(4, -1, -1, plain), 1), (total(4, 0, -2, plain), 1),
    (total(0, 5, 3, plain), 1), (total(0, 5, 1, twice), 2), (total(0, 5, 1, pairs), 1),
], ids=["all", "later", "down", "every second one down", "every third one", "two loops", "pairs"])
def test_where_iterations_are_independent(func, loops):
    before = gradient(func)
    after = count_late(before)
    same(before, after)
    assert (2, 1) == tuple(sum(isinstance(s, For) for s in f.body.stmts) for f in (before, after))
    joined = pipeline.grow_all(before)
    same(before, joined)
    assert loops == sum(isinstance(s, While) for s in all_statements(joined.body))


def in_an_arm(a, i):
    return choose(element(a, i) > 0.35, lambda: [falling(element(a, i))], lambda: [element(a, i) * 2.0])[0]


def chained():
    """A func each of whose iterations needs the one before."""
    def make(a):
        return for_loop(int_const(0), int_const(5), [element(a, int_const(1))],
                        lambda i, x: [falling(x) + element(a, i)])
    return build_func("f", [("a", ELEMENTS)], make)


@pytest.mark.parametrize("func, keeps_value", [
    (chained(), False), (total(0, 5, 1, in_an_arm), False), (total(0, 5, 1, plain), True),
], ids=["one needs the one before", "in an arm", "the value is asked for, too"])
def test_what_stays(func, keeps_value):
    before = gradient(func, keeps_value)
    assert count_late(before) is before


def test_tapes_stay_with_their_room():
    func = pipeline.run(gradient(total(0, 5, 1, pairs)), stop="abreast")
    assert [2] == [depth for kind, depth in counts(func) if kind == "empty" and depth < 3]
    after = keep_room(func)
    same(func, after)
    assert [0] == [depth for kind, depth in counts(after) if kind == "empty" and depth < 3]
    assert grown(after) == sorted(set(grown(after))) != []
    assert len(grown(func)) > len(grown(after))


def grown(func):
    """The lengths of tapes that were made, but for those to begin with."""
    found: list[int] = []
    evaluate(func, STARTS, watch=lambda stmt, args, results: found.extend(
        np.size(r) for r in results if isinstance(stmt, Let) and stmt.op.is_unset))
    return [n for n in found if n > ROOM]
