"""Checks in StableHLO: what is left out, and what the error flag tells."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from unit.emit.run_by_xla import TRIPS, lowered, run

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.stablehlo import emit_module, emit_stablehlo
from gradsmith.transpiler.ir import build
from gradsmith.transpiler.ir.build import build_func, const
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Check
from gradsmith.transpiler.ir.types import F64, I64

ops.load_table()


def test_checks_are_left_out_unless_asked_for():
    def first(x, i):
        if i < 0:
            raise ValueError("negative")
        return x[i]

    assert "error" not in lowered(first, np.ones(3), 1).text
    assert [f.kind for f in lowered(first, np.ones(3), 1, checked=True).failures] == ["ValueError", "IndexError"]


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
UNKNOWN = np.array([[np.nan, 2.0], [2.0, 1.0]])


@pytest.mark.xla
def test_the_flag_says_which_matrix_is_singular():
    def all_of(a, b, c, t, s):
        d = np.linalg.inv(a)
        if d[0, 0] > 3.0:
            d = np.linalg.solve(b, d)
        return d, np.linalg.cholesky(c), scipy.linalg.solve_triangular(t, d), np.linalg.svd(s, compute_uv=False)

    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    made = lowered(all_of, *[good] * 5, checked=True)
    said = [f"{f.kind}: {f.message}" for f in made.failures]
    singular = "LinAlgError: Singular matrix"
    expected = [singular, singular, "LinAlgError: Matrix is not positive definite", singular,
                "LinAlgError: SVD did not converge"]
    assert expected == said
    steep = good / 10
    for args, code in [([good] * 5, 0), ([good, SINGULAR, good, good, good], 0), ([SINGULAR, *[good] * 4], 1),
                       ([steep, SINGULAR, good, good, good], 2), ([good, good, INDEFINITE, good, UNKNOWN], 3),
                       ([good, good, UNKNOWN, good, good], 0), ([good, good, good, np.diag([1.0, 0.0]), good], 4),
                       ([*[good] * 4, UNKNOWN], 5)]:
        assert code == run(made.text, *args)[-1]


@pytest.mark.xla
def test_lanes_that_do_not_come_to_a_matrix_do_not_raise():
    def choose(a, b):
        if b[0] > 0.0:
            return np.linalg.solve(a, b)
        return b

    a = np.stack([np.eye(2), SINGULAR, np.eye(2)])
    made = lowered(gradsmith.vmap(choose), a, np.ones((3, 2)), checked=True)
    for second, code in ((1.0, 1), (-1.0, 0)):
        b = np.array([[1.0, 1.0], [second, 2.0], [3.0, 3.0]])
        found, flag = run(made.text, a, b)
        assert code == flag
        np.testing.assert_array_equal(found[[0, 2]], b[[0, 2]])


@pytest.mark.xla
def test_the_flag_says_what_failed_first():
    def body(x, n):
        def step(i, acc):
            build.check(acc < 5.0, "ValueError", "too big")
            return build.choose(acc > 2.0, lambda: (checked(acc), ), lambda: (acc + 1.0,))

        def checked(acc):
            build.check(acc < 4.0, "OverflowError", "far too big")
            return acc * 2.0

        (y,) = build.for_loop(const(0, I64), n, (x,), step)
        build.check(y < 3.0, "RuntimeError", "at the end")
        return (y,)

    func = build_func("f", [("x", F64), ("n", I64)], body)
    made = emit_module(func, checked=True)
    assert [(f.code, f.kind) for f in made.failures] == [(1, "ValueError"), (2, "OverflowError"), (3, "RuntimeError")]
    kinds = {0: None, **{f.code: f.kind for f in made.failures}}
    for x in (0.5, 3.0, 4.5, 5.5):
        for n in TRIPS:
            y, flag = run(made.text, np.float64(x), np.int64(n))
            try:
                (expected,) = evaluate(func, x, n)
                assert (expected, None) == (y, kinds[int(flag)])
            except Exception as raised:         # noqa: BLE001  (whatever the evaluator raises is what is compared)
                assert type(raised).__name__ == kinds[int(flag)]


@pytest.mark.xla
def test_a_loop_ends_when_its_check_has_failed():
    """It would not end otherwise, also where the check stands in its condition."""
    def in_body(x):
        return build.while_loop((x,), lambda v: v < 1.0, lambda v: (positive(v),))

    def in_cond(x):
        return build.while_loop((x,), lambda v: positive(v) < 1.0, lambda v: (v,))

    def positive(v):
        build.check(v > 0.0, "ValueError", "not positive")
        return v * 2.0

    for body in (in_body, in_cond):
        text = emit_stablehlo(build_func("f", [("x", F64)], body), checked=True)
        assert int(run(text, np.float64(-1.0))[1]) == 1
        assert int(run(text, np.float64(0.7))[1]) == 0


@pytest.mark.xla
def test_indices_out_of_range():
    def pick(x, i):
        return x[i] * 2

    made = lowered(gradsmith.value_and_grad(pick), np.arange(4.0), 2, checked=True)
    (failure,) = made.failures
    assert failure.kind == "IndexError" and failure.loc is not None
    for i in range(-6, 6):
        value, grad, flag = run(made.text, np.arange(4.0), np.int64(i))
        assert int(flag) == (0 if -4 <= i < 4 else 1)
        if not flag:
            assert value == 2 * np.arange(4.0)[i] and grad[i] == 2


def test_printing_is_left_out():
    def body(x):
        b = build.current()
        b.stmts.append(Check(x > 0.0, "print", "{}", values=(x,)))
        return (x,)

    func = build_func("f", [("x", F64)], body)
    assert emit_module(func, checked=True).failures == ()
