"""The emitted text, line by line, and what it computes."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from unit.emit.programs import MATRIX, VECTOR, M, N, agrees, at, func, get, load, put, run, shows, source

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.build import (
    building,
    check,
    choose,
    const,
    current,
    for_loop,
    int_const,
    located,
    size_value,
    while_loop,
)
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.index import At, New, Span
from gradsmith.transpiler.ir.nodes import Block, Call, Func, Module, Var
from gradsmith.transpiler.ir.types import BOOL, F64, I64, Type
from gradsmith.transpiler.ops.base import RuleError

ZERO = int_const(0)
F32 = Type("float32")


def sum_logistic():
    def body(x):
        def step(i, d):
            e = ops.exp(-get(x, i))
            s = ops.divide(1.0, 1.0 + e)
            return [put(d, e * s * s, i)]
        with located(at(4)):
            return for_loop(ZERO, size_value(N), [ops.empty(shape=(N,), dtype="float64")], step, hints=["d_x"],
                            parallel=True)
    return func("sum_logistic_grad", {"x": VECTOR}, body)


def test_fused_loop_as_in_the_design():
    expected = '''
        """Gradient of sum_logistic (model.py)."""

        import numpy as np
        from numba import njit

        from gradsmith.kernels import exp


        @njit(cache=True, nogil=True, error_model="numpy")
        def sum_logistic_grad(x):
            n = x.shape[0]
            d_x = np.empty(n)
            for i in range(n):
                e = exp(-x[i])                          # model.py:4
                q = 1.0 / (1.0 + e)                     # model.py:4
                d_x[i] = e * q * q                      # model.py:4
            return d_x
        '''
    assert textwrap.dedent(expected).lstrip() == emit(sum_logistic(), doc="Gradient of sum_logistic (model.py).")
    agrees(sum_logistic(), np.linspace(-3, 3, 7))


def test_parallel_variant():
    text = emit(sum_logistic(), parallel=True)
    assert "from numba import njit, prange" in text
    assert 'error_model="numpy", parallel=True)' in text
    assert "for i in prange(n):" in text


def logistic_map():
    def body(x, r, n, ct):
        tape = ops.empty(shape=(N,), dtype="float64")

        def forward(t, tape, x):
            y = put(tape, x, t)
            with located(at(4)):
                return [y, r * x * (1.0 - x)]

        tape, x_end = for_loop(ZERO, n, [tape, x], forward, index="t", hints=["x_tape", "x"])

        def backward(t, d_x, d_r):
            x_t = get(tape, t)
            with located(at(4)):
                return [d_x * r * (1.0 - 2.0 * x_t), d_r + d_x * x_t * (1.0 - x_t)]

        d_x, d_r = for_loop(n - 1, int_const(-1), [ct, const(0.0, F64)], backward, step=-1, index="t",
                            hints=["d_x", "d_r"])
        return x_end, d_x, d_r
    return func("logistic_map_vjp", {"x": F64, "r": F64, "n": I64, "ct": F64}, body)


def test_taped_loop_as_in_the_design():
    text = textwrap.dedent('''
        def logistic_map_vjp(x, r, n, ct):
            x_tape = np.empty(n)
            for t in range(n):
                x_tape[t] = x
                x = r * x * (1.0 - x)                   # model.py:4
            d_x = ct
            d_r = 0.0
            for t in range(n - 1, -1, -1):
                x_t = x_tape[t]
                d_r += d_x * x_t * (1.0 - x_t)          # model.py:4
                d_x = d_x * r * (1.0 - 2.0 * x_t)       # model.py:4
            return x, d_x, d_r
        ''')
    whole = emit(logistic_map(), decorator=False)
    assert text.strip() == whole[whole.index("def "):].strip()
    agrees(logistic_map(), 0.3, 3.1, 5, 1.0)
    agrees(logistic_map(), 0.3, 3.1, 5, 1.0, compiled=True)


def test_conditional_expression():
    def body(x):
        (y,) = choose(x > 0.0, lambda: [ops.exp(x)], lambda: [const(0.0, F64)], "y")
        return [y * 2.0]
    f = func("f", {"x": F64}, body)
    shows("""
        def f(x):
            return (exp(x) if x > 0.0 else 0.0) * 2.0
        """, f)
    agrees(f, 4.0)
    agrees(f, -4.0)


def test_branch_with_several_results():
    def body(x):
        def then():
            e = ops.exp(x)
            return [e * e, e + 1.0]
        a, b = choose(x > 0.0, then, lambda: [x, const(2.0, F64)], "a")
        return a, b, a + b
    f = func("f", {"x": F64}, body)
    shows("""
        def f(x):
            if x > 0.0:
                e = exp(x)
                a = e * e
                a_1 = e + 1.0
            else:
                a = x
                a_1 = 2.0
            return a, a_1, a + a_1
        """, f)
    agrees(f, 1.0)
    agrees(f, -1.0)


def test_while_loop():
    f = func("halvings", {"x": F64}, lambda x: while_loop([x, ZERO], lambda x, k: x > 1.0, lambda x, k: [
        x * 0.5, k + 1], hints=["x", "k"]))
    shows("""
        def halvings(x):
            k = 0
            while x > 1.0:
                x *= 0.5
                k += 1
            return x, k
        """, f)
    agrees(f, 100.0)


def test_while_condition_of_several_statements():
    def cond(x):
        e = ops.exp(x)
        return e * e + e > 3.0
    f = func("f", {"x": F64}, lambda x: while_loop([x], cond, lambda x: [x - 1.0], hints=["x"]))
    shows("""
        def f(x):
            while True:
                e = exp(x)
                if not e * e + e > 3.0:
                    break
                x -= 1.0
            return x
        """, f)
    agrees(f, 4.0)


def test_check():
    def body(x, k):
        with located(at(7)):
            check(k < size_value(N), "IndexError", "index k is out of bounds")
            return [get(x, k)]
    f = func("f", {"x": VECTOR, "k": I64}, body)
    text = emit(f, decorator=False)
    assert '    if not k < n:\n        raise IndexError("index k is out of bounds [model.py:7]")  # model.py:7\n' in text
    agrees(f, np.arange(3.0), 1)
    with pytest.raises(IndexError, match="index k"):
        run(f, np.arange(3.0), 3)
    with pytest.raises(IndexError, match="index k"):
        run(f, np.arange(3.0), 3, compiled=True)


def test_float32_stays_float32():
    def body(x, n):
        def step(i, total, y):
            v = get(x, i)
            return [total + ops.int_power(v, n=2) * 0.1 / 3.0, put(y, ops.scale(v, v) - 0.5, i)]
        return for_loop(ZERO, n, [const(0.0, F32), ops.empty(shape=(N,), dtype="float32")], step,
                        hints=["total", "y"])
    f = func("f", {"x": Type("float32", (N,)), "n": I64}, body)
    shows("""
        def f(x, n):
            y = np.empty(n, np.float32)
            total = np.float32(0.0)
            for i in range(n):
                x_i = x[i]
                y[i] = (np.float32(0.0) if x_i == 0.0 else x_i * x_i) - np.float32(0.5)
                total += x_i * x_i * np.float32(0.1) / np.float32(3.0)
            return total, y
        """, f)
    x = np.linspace(-1, 1, 9).astype("float32")
    agrees(f, x, 9)
    agrees(f, x, 9, compiled=True)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "int64"])
def test_integers_wrap_around(dtype):
    top = np.iinfo(dtype).max
    number = Type(dtype)
    f = func("f", {"a": number, "b": number}, lambda a, b: (a + b, a * b, a - b, -a, ops.invert(a), a + 3))
    with np.errstate(all="ignore"):
        args = np.dtype(dtype).type(top - 1), np.dtype(dtype).type(5)
        agrees(f, *args)
        agrees(f, *args, compiled=True)


def test_constants():
    values = [(np.inf, F64), (-np.inf, F64), (-0.0, F64), (0.1, F32), (True, BOOL), (-3, I64), (2**63 - 1, I64),
              (-2**63, I64), (2**64 - 1, Type("uint64")), (-7, Type("int8")), (1 - 2j, Type("complex128")),
              (complex(-0.0, 1.5), Type("complex64")), (3.4028235e38, F32), (1e-45, F32)]
    f = func("f", {"x": F64}, lambda x: [*(const(v, t) for v, t in values), x])
    agrees(f, 1.0, compiled=True)
    text = source(f)
    assert "np.float32(0.1)" in text and "return np.inf, -np.inf, -0.0," in text
    found = load(source(f, standalone=True), "f")(1.0)
    assert np.signbit(found[2]) and np.signbit(np.complex64(found[11]).real)


def test_shaped_constants():
    def body(x):
        zeros = put(const(0.0, MATRIX), 1.0, ZERO, ZERO)
        return zeros, put(const(2.5, Type("float32", (N,))), 1.0, ZERO), const(-0.0, Type("float64", (3,))), const(
            True, Type("bool", (N, 2)))
    f = func("f", {"x": MATRIX}, body)
    shows("""
        def f(x):
            n = x.shape[0]
            m = x.shape[1]
            A = np.zeros((n, m))
            A[0, 0] = 1.0
            B = np.full(n, 2.5, np.float32)
            B[0] = np.float32(1.0)
            return A, B, np.full(3, -0.0), np.ones((n, 2), np.bool_)
        """, f)
    agrees(f, np.ones((2, 3)))
    agrees(f, np.ones((2, 3)), compiled=True)


def test_long_expressions_get_names():
    def body(x, y):
        total = x
        for k in range(30):
            total = total * y + ops.sin(x) if k % 3 else ops.exp(total)
        return [total]
    f = func("f", {"x": F64, "y": F64}, body)
    text = source(f, comments=True)
    assert max(map(len, text.splitlines())) < 110
    agrees(f, 0.1, 0.2)


def test_a_loop_in_which_its_array_has_to_be_copied_is_not_parallel():
    """What was there is read after it was written over: a trip writes to a copy, in which others' writes are lost."""
    def body(x):
        def step(i, d):
            first = put(d, get(d, i) * 2.0, i)
            second = put(first, get(first, i) + get(d, i), i)
            return [put(second, get(second, i) + 1.0, i)]
        start = ops.empty(shape=(N,), dtype="float64")
        filled = for_loop(ZERO, size_value(N), [start], lambda i, d: [put(d, get(x, i), i)])
        return for_loop(ZERO, size_value(N), filled, step, parallel=True)
    f = func("f", {"x": VECTOR}, body)
    text = source(f, parallel=True)
    assert "prange" not in text and ".copy()" in text
    agrees(f, np.arange(5.0), parallel=True, decorator="@njit(parallel=True)")


def test_parallel_sum_is_an_augmented_assignment():
    def body(x):
        return for_loop(ZERO, size_value(N), [const(0.0, F64)], lambda i, total: [total + get(x, i) * 2.0],
                        hints=["total"], parallel=True)
    f = func("f", {"x": VECTOR}, body)
    text = source(f, parallel=True)
    assert "    for i in prange(n):\n        total += x[i] * 2.0\n" in text
    agrees(f, np.arange(5.0), compiled=True, exact=False, parallel=True, decorator="@njit(parallel=True)")


def test_parallel_sum_made_in_an_inner_loop():
    def body(A):
        def rows(i, total):
            return for_loop(ZERO, size_value(M), [total], lambda j, total: [total + get(A, i, j)], hints=["total"])
        return for_loop(ZERO, size_value(N), [const(1.5, F64)], rows, hints=["total"], parallel=True)
    f = func("f", {"A": MATRIX}, body)
    shows("""
        def f(A):
            n = A.shape[0]
            m = A.shape[1]
            total = 1.5
            for chunk in prange(64):
                total1 = 0.0
                for i in range(chunk * n // 64, (chunk + 1) * n // 64):
                    for j in range(m):
                        total1 += A[i, j]
                total += total1
            return total
        """, f, parallel=True)
    x = np.arange(6.0).reshape(2, 3)
    agrees(f, x)
    agrees(f, x, compiled=True, parallel=True, decorator="@njit(parallel=True)")


def test_names_do_not_shadow():
    def body(lambda_, exp, sum_):
        e = ops.exp(exp)
        return [e * e + lambda_ + sum_]
    f = func("np", {"lambda": F64, "exp": F64, "sum": F64}, body)
    shows("""
        def np_(lambda_, exp_, sum_):
            e = exp(exp_)
            return e * e + lambda_ + sum_
        """, f)


def test_sizes_named_after_scalars():
    f = func("f", {"k": I64}, lambda k: [put(const(0.0, Type("float64", (2 * symbol("k", 0),))), 1.0, ZERO)])
    assert "np.zeros(2 * k)" in source(f)
    agrees(f, 3)


def test_calls_between_functions():
    n, acc = Var("n", I64), Var("acc", F64)
    with building() as b:
        (r,) = choose(n > 0, lambda: _call_countdown(n, acc), lambda: [acc], "r")
    countdown = Func("countdown", (n, acc), Block(tuple(b.stmts), (r,)))
    x = Var("x", F64)
    y = Var("y", F64)
    main = Func("main", (x,), Block((Call((y,), "countdown", (int_const(3), x), at(9)),), (y,)))
    module = Module((main, countdown))
    agrees(module, 1.0)
    assert "    y = countdown(np.int64(3), x)               # model.py:9\n" in emit(module)


def _call_countdown(n, acc):
    b = current()
    less = n - 1
    more = acc * 2.0
    out = b.var(F64, "out")
    b.stmts.append(Call((out,), "countdown", (less, more), None))
    return [out]


def test_guards_and_arrays_of_rank_0():
    f = func("f", {"x": VECTOR, "s": F64}, lambda x, s: [get(x, size_value(N) - 1) * s])
    text = emit(f, zero_d=["s"], guards=[("n > 1 and x.shape[0] < 9", 'GuardFailed("n")')],
                imports=["from somewhere import GuardFailed"], decorator=False)
    assert textwrap.dedent('''
        from somewhere import GuardFailed


        def f(x, s):
            s = s[()]
            n = x.shape[0]
            if not (n > 1 and x.shape[0] < 9):
                raise GuardFailed("n")
            return x[n - 1] * s
        ''').lstrip() == text


def test_kernels_that_fill_their_result():
    def body(a, b):
        c = ops.dot_general(ops.transpose(a, axes=(1, 0)), b, contract=((1,), (0,)), batch=((), ()))
        return [c]
    f = func("f", {"a": MATRIX, "b": MATRIX}, body)
    shows("""
        def f(a, b):
            m = a.shape[1]
            D = np.empty((m, m))
            gemm(a.T, b, D)
            return D
        """, f)


def test_equal_input_gives_equal_text():
    assert emit(logistic_map()) == emit(logistic_map())


def test_python_floats_divide_as_numpy_does():
    def body(x, y, n):
        (total,) = for_loop(ZERO, n, [const(0.0, F64)], lambda i, total: [total + x], hints=["total"])
        (count,) = for_loop(ZERO, n, [const(0.0, F64)], lambda i, count: [count + 1.0], hints=["count"])
        return x / total, 1.0 / count, y * 2.0
    f = func("f", {"x": F64, "y": F64, "n": I64}, body)
    shows("""
        def f(x, y, n):
            x = np.float64(x)
            total = 0.0
            for i in range(n):
                total += x
            count = 0.0
            for i in range(n):
                count += 1.0
            return x / total, np.float64(1.0) / count, y * 2.0
        """, f)
    agrees(f, 3.0, 1.0, 0)
    agrees(f, 3.0, 1.0, 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_spans(compiled):
    def body(A, k):
        whole = ops.load(A, index=(Span(0, N), Span(0, M)))
        parts = [ops.load(A, k, index=(At(), Span(0, M))), ops.load(A, index=(Span(1, N - 1), Span(M - 1, M, -1))),
                 ops.load(A, k, index=(Span(None, 2), New(), Span(0, 2, 2))),
                 ops.load(A, k, index=(Span(None, 2, -1), Span(1, 2))),
                 ops.load(A, index=(Span(N - 1, N, -1), Span(0, 0)))]
        row = ops.store(A, const(7.0, Type("float64", (M,))), k, index=(At(), Span(0, M)))
        column = ops.add_at(A, ops.load(A, index=(Span(0, N), Span(0, 1))), index=(Span(0, N), Span(1, 1)))
        return [whole, *parts, row, column]
    f = func("f", {"A": MATRIX, "k": I64}, body)
    agrees(f, np.arange(12.0).reshape(3, 4), 1, compiled=compiled)


def test_standalone_text_imports_nothing_of_ours():
    f = func("f", {"x": F64, "y": F32}, lambda x, y: [ops.exp(x) * ops.expit(x), ops.expit(y)])
    shows("""
        def f(x, y):
            return np.exp(x) * (1.0 / (1.0 + np.exp(-x))), np.float32(1.0) / (np.float32(1.0) + np.exp(-y))
        """, f, standalone=True)
    with pytest.raises(RuleError, match="erfinv has no equivalent"):
        source(func("g", {"x": F64}, lambda x: [ops.erfinv(x)]), standalone=True)


def test_text_does_not_depend_on_the_order_of_sets():
    program = ("import sys; from unit.emit.test_python import *; "
               "sys.stdout.write(emit(logistic_map()) + emit(sum_logistic(), parallel=True))")
    texts = {subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                            cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONHASHSEED": seed}).stdout
             for seed in ("1", "2")}
    assert len(texts) == 1 and "def logistic_map_vjp" in texts.pop()


def test_a_loop_that_may_raise_is_not_parallel():
    def step(i, y):
        check(i < int_const(2), "ValueError", "too far")
        return [put(y, 1.0, i)]
    f = func("f", {"x": VECTOR}, lambda x: for_loop(ZERO, size_value(N), [const(0.0, VECTOR)], step, parallel=True))
    assert "prange" not in source(f, parallel=True)


def test_names_in_parallel_functions_are_no_versions_of_each_other():
    """Numba calls the second `x` of a parallel function `x_1`, and does not compile one that has another `x_1`."""
    def body(x, n):
        def twice(_, y):
            made = for_loop(ZERO, n, [ops.empty(shape=(symbol("n", 0),), dtype="float64")], lambda i, x: [
                put(x, get(y, i) * 2.0, i)], hints=["x"], parallel=True)
            return made
        return for_loop(ZERO, const(3, I64), [x], twice, hints=["x"])
    f = func("f", {"x": Type("float64", (symbol("n", 0),)), "n": I64}, body)
    assert not re.search(r"\bx_\d", source(f, parallel=True))
    agrees(f, np.arange(4.0), 4, compiled=True, parallel=True, decorator="@njit(parallel=True)")
