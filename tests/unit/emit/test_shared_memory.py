"""Which values share memory in the emitted text, and where arrays are copied."""


import numpy as np
import pytest
from unit.emit.programs import MATRIX, VECTOR, M, N, agrees, func, get, put, shows, source

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import (
    choose,
    const,
    for_loop,
    int_const,
    size_value,
)
from gradsmith.transpiler.ir.index import Span
from gradsmith.transpiler.ir.types import BOOL, F64, I64, Type

ZERO = int_const(0)
F32 = Type("float32")


def test_swapped_carries_are_assigned_at_once():
    f = func("fibonacci", {"n": I64}, lambda n: for_loop(ZERO, n, [ZERO, int_const(1)], lambda i, a, b: [b, a + b],
                                                         hints=["a", "b"])[:1])
    shows("""
        def fibonacci(n):
            a = 0
            b = 1
            for i in range(n):
                a, b = b, a + b
            return a
        """, f)
    agrees(f, 10)


def test_a_carry_read_after_its_next_value_is_made():
    def body(x, n):
        def step(i, x, total):
            return [x * 2.0, total + x]
        return for_loop(ZERO, n, [x, const(0.0, F64)], step, hints=["x", "total"])
    f = func("f", {"x": F64, "n": I64}, body)
    shows("""
        def f(x, n):
            total = 0.0
            for i in range(n):
                total += x
                x *= 2.0
            return x, total
        """, f)
    agrees(f, 1.5, 4)


def test_nested_loops_over_one_array():
    def body(A):
        def rows(i, A):
            return for_loop(ZERO, size_value(M), [A], lambda j, A: [put(A, get(A, i, j) * 2.0, i, j)], hints=["A"])
        return for_loop(ZERO, size_value(N), [A], rows, hints=["A"])
    f = func("twice", {"A": MATRIX}, body)
    shows("""
        def twice(A):
            n = A.shape[0]
            m = A.shape[1]
            A = A.copy()
            for i in range(n):
                for j in range(m):
                    A[i, j] *= 2.0
            return A
        """, f)
    agrees(f, np.arange(6.0).reshape(2, 3))


def test_a_value_read_after_it_was_stored_to_is_copied():
    def body(x):
        y = put(x, 1.0, ZERO)
        z = put(y, 2.0, int_const(1))
        return z, get(y, int_const(1)), get(x, ZERO)
    f = func("f", {"x": VECTOR}, body)
    shows("""
        def f(x):
            x_1 = x.copy()
            x_1[0] = 1.0
            x_2 = x_1.copy()
            x_2[1] = 2.0
            return x_2, x_1[1], x[0]
        """, f)
    agrees(f, np.array([5.0, 6.0, 7.0]))


def test_an_element_does_not_move_across_a_store():
    def body(x):
        x = put(x, 0.5, int_const(2))
        old = get(x, ZERO)
        x = put(x, 3.0, ZERO)
        return x, old
    f = func("f", {"x": VECTOR}, body)
    shows("""
        def f(x):
            x = x.copy()
            x[2] = 0.5
            x_0 = x[0]
            x[0] = 3.0
            return x, x_0
        """, f)
    agrees(f, np.array([5.0, 6.0, 7.0]))


def test_a_view_keeps_its_array_from_being_overwritten():
    def body(n):
        x = ops.transpose(const(1.0, Type("float64", (2, 3))), axes=(0, 1))
        x = put(const(1.0, Type("float64", (2, 3))), 4.0, ZERO, ZERO)
        v = ops.transpose(x, axes=(1, 0))
        y = put(x, 2.0, ZERO, ZERO)
        return y, get(v, ZERO, ZERO), v
    f = func("f", {"n": I64}, body)
    assert "copy()" in source(f)
    agrees(f, 3)


def test_one_branch_stores():
    def body(x, p):
        x = put(x, 9.0, ZERO)
        (y,) = choose(p, lambda: [put(x, 1.0, int_const(1))], lambda: [x], "x")
        return y
    f = func("f", {"x": VECTOR, "p": BOOL}, lambda x, p: [body(x, p)])
    shows("""
        def f(x, p):
            x = x.copy()
            x[0] = 9.0
            if p:
                x[1] = 1.0
            return x
        """, f)
    for p in (True, False):
        agrees(f, np.arange(3.0), p)


def test_a_parameter_joined_with_a_new_array_is_copied():
    def body(x, p):
        return choose(p, lambda: [put(const(0.0, VECTOR), 1.0, ZERO)], lambda: [x], "y")
    f = func("f", {"x": VECTOR, "p": BOOL}, body)
    for p in (True, False):
        agrees(f, np.arange(3.0), p)
        agrees(f, np.arange(3.0), p, compiled=True)


def test_ping_pong_buffers_are_exchanged_without_copies():
    def body(x, k):
        def sweep(t, u, v):
            (v,) = for_loop(ZERO, size_value(N), [v], lambda i, v: [put(v, get(u, i) * 0.5, i)], hints=["v"])
            return [v, u]
        u = put(x, 8.0, ZERO)
        return for_loop(ZERO, k, [u, ops.empty(shape=(N,), dtype="float64")], sweep, index="t", hints=["u", "v"])[:1]
    f = func("f", {"x": VECTOR, "k": I64}, body)
    shows("""
        def f(x, k):
            n = x.shape[0]
            x = x.copy()
            x[0] = 8.0
            v = np.empty(n)
            for t in range(k):
                for i in range(n):
                    v[i] = x[i] * 0.5
                x, v = v, x
            return x
        """, f)
    for k in range(4):
        agrees(f, np.arange(3.0), k)
        agrees(f, np.arange(3.0), k, compiled=k == 3)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_any_layout_meet_in_branches_and_loops(compiled):
    def body(A, B, p, k):
        (C,) = choose(p, lambda: [put(A, 1.0, ZERO, ZERO)], lambda: [ops.transpose(B, axes=(1, 0))], "C")
        (D,) = for_loop(ZERO, k, [A], lambda i, D: [ops.transpose(put(D, 2.0, i, ZERO), axes=(1, 0))], hints=["D"])
        return C, D
    square = Type("float64", (N, N))
    f = func("f", {"A": square, "B": square, "p": BOOL, "k": I64}, body)
    A = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    for p in (True, False):
        agrees(f, A, A[::-1], p, 2, compiled=compiled)
        if not compiled:
            agrees(f, A.T, A, p, 2)


def test_results_that_are_one_array_are_two():
    f = func("f", {"x": VECTOR}, lambda x: [x, x, (y := put(x, 1.0, ZERO)), y, ops.load(y, index=(Span(1, 2),))])
    shows("""
        def f(x):
            x_1 = x.copy()
            x_1[0] = 1.0
            return x.copy(), x.copy(), x_1, x_1.copy(), x_1[1:3].copy()
        """, f)
    agrees(f, np.arange(3.0))


def test_a_loop_that_changes_its_array_for_another_is_not_parallel():
    def body(x):
        return for_loop(ZERO, size_value(N), [put(x, 1.0, ZERO), const(0.0, VECTOR)], lambda i, a, b: [b, a],
                        hints=["a", "b"], parallel=True)[:1]
    f = func("f", {"x": VECTOR}, body)
    assert "prange" not in source(f, parallel=True)
    agrees(f, np.arange(3.0), parallel=True)


def test_a_view_is_made_contiguous_before_it_is_reshaped():
    f = func("f", {"a": MATRIX}, lambda a: [ops.reshape(ops.transpose(a, axes=(1, 0)), shape=(N * M,))])
    assert "reshaped(a.T, (" in source(f)
    agrees(f, np.arange(6.0).reshape(2, 3))
    agrees(f, np.arange(6.0).reshape(2, 3), compiled=True)
