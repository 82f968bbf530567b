"""Reversed loops in which an adjoint waits for less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import Names, build_func, building, const, for_loop, int_const
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import used_names
from gradsmith.transpiler.transforms.short_chains import shorten_chains

ops.load_table()
TRIPS = int_const(5)
ARRAY = Type("float64", (6,))


def loop_of(body, carries, *, params=(("a", F64), ("b", F64))):
    """A func that begins with one loop whose carries are adjoints, and the loop."""
    types = [*params, *((f"d_{k}", t) for k, t in enumerate(carries))]
    func = build_func("f", types, lambda *p: for_loop(
        int_const(0), TRIPS, p[len(params):], lambda i, *d: body(i, *p[:len(params)], *d)))
    (loop,) = func.body.stmts
    assert isinstance(loop, For)
    return func, loop


def shortened(func, loop):
    with building(Names(used_names(func))):
        new = shorten_chains(loop, len(loop.carries))
    made = replace(func, body=replace(func.body, stmts=(new,)))
    verify(made)
    return made, new


def names_of(loop):
    return [let.op.name for let in loop.body.stmts]


def test_the_adjoint_comes_last_into_a_product():
    func, loop = loop_of(lambda i, a, b, d: [d * a * b], [F64])
    made, new = shortened(func, loop)
    first, second = new.body.stmts
    assert (loop.carries[0] not in first.args) and loop.carries[0] in second.args
    args = 1.5, 0.25, 2.0
    np.testing.assert_allclose(evaluate(made, *args), evaluate(func, *args), rtol=1e-14)


def test_terms_of_one_source_become_one():
    func, loop = loop_of(lambda i, a, b, d: [d * a * b - d * b + d], [F64])
    made, new = shortened(func, loop)
    assert 1 == sum(loop.carries[0] in let.args for let in new.body.stmts)
    args = 1.5, 0.25, 2.0
    np.testing.assert_allclose(evaluate(made, *args), evaluate(func, *args), rtol=1e-14)


def test_what_is_added_to_a_sum_is_added_up_before():
    func, loop = loop_of(lambda i, a, b, d, s: [d * a, s + d * a + d * b + d], [F64, F64])
    made, new = shortened(func, loop)
    assert 1 == sum(loop.carries[1] in let.args for let in new.body.stmts)
    args = 1.5, 0.25, 2.0, 7.0
    np.testing.assert_allclose(evaluate(made, *args), evaluate(func, *args), rtol=1e-14)


def test_adjoints_in_arrays():
    def body(i, a, b, d):
        here = ops.load(d, i, index=(At(),))
        return [ops.add_at(d, here * a * b * a, i + 1, index=(At(),))]

    func, loop = loop_of(body, [ARRAY])
    made, new = shortened(func, loop)
    (read,) = [let.target for let in new.body.stmts if let.op.access == "load"]
    (product,) = [let for let in new.body.stmts if read in let.args]
    assert [product.target] == [let.args[1] for let in new.body.stmts if let.op.access == "add_at"]
    args = 1.5, 0.25, np.arange(6.0)
    np.testing.assert_allclose(evaluate(made, *args), evaluate(func, *args), rtol=1e-14)


@pytest.mark.parametrize("read, written", [(0, 0), (1, 0)])
def test_what_no_later_trip_reads_is_no_chain(read, written):
    def body(i, a, b, d):
        here = ops.load(d, i + read, index=(At(),))
        return [ops.add_at(d, here * a * b * a, i + written, index=(At(),))]

    func, loop = loop_of(body, [ARRAY])
    assert loop is shortened(func, loop)[1]


@pytest.mark.parametrize("reads_first", [True, False])
def test_a_place_that_one_trip_comes_by_is_no_chain(reads_first):
    """As in the adjoint of `a[j] -= a[k] * b`, for all k: what is read is put back, what is added to is not read again."""
    def body(i, a, b, d):
        read, written = (int_const(0), i) if reads_first else (i, int_const(0))
        here = ops.load(d, read, index=(At(),))
        return [ops.add_at(d, here * a * b * a, written, index=(At(),))]

    func, loop = loop_of(body, [ARRAY])
    assert loop is shortened(func, loop)[1]


def test_one_place_in_all_trips_is_a_chain():
    def body(i, a, b, d):
        here = ops.load(d, 2, index=(At(),))
        return [ops.store(d, here * a * b * a, 2, index=(At(),))]

    func, loop = loop_of(body, [ARRAY])
    assert loop is not shortened(func, loop)[1]


def test_zeros_and_what_is_not_taken_hide_what_is_infinite():
    def body(i, a, b, d):
        return [ops.scale(ops.scale(d, a), b)]

    func, loop = loop_of(body, [F64])
    made, new = shortened(func, loop)
    assert new is not loop
    assert [0.0] == list(evaluate(made, np.inf, 1.0, 0.0))          # a zero of the adjoint
    assert [0.0] == list(evaluate(made, 0.0, np.inf, 1.0))          # and one on the way

    func, loop = loop_of(lambda i, a, b, d: [d * a * b], [F64])
    made, new = shortened(func, loop)
    assert new is not loop
    assert [0.0] == list(evaluate(made, 1e200, 1e200, 0.0))         # where the product of the factors is infinite

    def masked(i, a, b, d):
        return [ops.select(a > 1.0, d * a * b, 0.0)]

    func, loop = loop_of(masked, [F64])
    made, new = shortened(func, loop)
    assert new is not loop
    assert [0.0] == list(evaluate(made, 0.5, 2.0, np.nan))


def test_single_precision_and_loops_full_of_work_stay():
    single = Type("float32")
    func, loop = loop_of(lambda i, a, b, d: [d * a * b], [single], params=(("a", single), ("b", single)))
    assert loop is shortened(func, loop)[1]

    def busy(i, a, b, d):
        for _ in range(30):
            a = ops.exp(a)
        return [d * b * a]

    func, loop = loop_of(busy, [F64])
    assert loop is shortened(func, loop)[1]


def test_what_is_not_linear_is_no_combination():
    func, loop = loop_of(lambda i, a, b, d: [ops.sin(d * a * b) * a * b], [F64])
    made, new = shortened(func, loop)
    assert "sin" in names_of(new)
    args = 1.5, 0.25, 0.7
    np.testing.assert_allclose(evaluate(made, *args), evaluate(func, *args), rtol=1e-14)


def test_constants_added_begin_anew():
    func, loop = loop_of(lambda i, a, b, d: [(d * a * b + const(1, F64)) * b * a], [F64])
    made, new = shortened(func, loop)
    assert new is not loop
    args = 1.5, 0.25, 0.7
    np.testing.assert_allclose(evaluate(made, *args), evaluate(func, *args), rtol=1e-14)
