"""Branches, loops and checks in StableHLO: what they look like, and that XLA computes what NumPy does."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from unit.emit.run_by_xla import TRIPS, assert_equal_trees, lowered, on_xla, run

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.stablehlo import emit_stablehlo
from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.ir import build
from gradsmith.transpiler.ir.build import build_func, const
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.nodes import Block, Call, Const, Func, Module, Var
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.types import BOOL, F64, I64

ops.load_table()


# ---------------------------------------------------------------------------------------------------------------
# the text


def test_a_loop_with_a_branch_reads_like_its_ir():
    func = parse_func(textwrap.dedent("""\
        func decay(x: f64, n: i64) -> (f64):
          y: f64 = for i: i64 in 0:i64 .. n step 1:i64 carry (z: f64 = x):
            high: bool = greater(z, 1.0:f64)
            next: f64 = if high:
              half: f64 = multiply(z, 0.5:f64)
              yield half
            else:
              yield z
            yield next
          return y
        """))
    assert emit_stablehlo(func) == textwrap.dedent("""\
        module @decay {
          func.func public @main(%x: tensor<f64>, %n: tensor<i64>) -> tensor<f64> {
            %c = stablehlo.constant dense<0> : tensor<i64>
            %0, %y = stablehlo.while(%i = %c, %z = %x) : tensor<i64>, tensor<f64> cond {
              %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
              stablehlo.return %1 : tensor<i1>
            } do {
              %c_1 = stablehlo.constant dense<1.0> : tensor<f64>
              %high = stablehlo.compare GT, %z, %c_1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
              %next = "stablehlo.if"(%high) ({
                %c_2 = stablehlo.constant dense<0.5> : tensor<f64>
                %half = stablehlo.multiply %z, %c_2 : tensor<f64>
                stablehlo.return %half : tensor<f64>
              }, {
                stablehlo.return %z : tensor<f64>
              }) : (tensor<i1>) -> tensor<f64>
              %c_3 = stablehlo.constant dense<1> : tensor<i64>
              %2 = stablehlo.add %i, %c_3 : tensor<i64>
              stablehlo.return %2, %next : tensor<i64>, tensor<f64>
            }
            return %y : tensor<f64>
          }
        }
        """)


def test_a_branch_that_is_known_is_no_branch():
    func = build_func("f", [("x", F64)], lambda x: build.choose(Const(False, BOOL), lambda: (ops.sin(x),),
                                                                lambda: (ops.cos(x),)))
    assert "stablehlo.if" not in emit_stablehlo(func) and "cosine" in emit_stablehlo(func)


def test_calls_are_written_in_place():
    x, y, z = Var("x", F64), Var("y", F64), Var("z", F64)
    inner = build_func("g", [("u", F64)], lambda u: (ops.sin(u),))
    func = Func("f", (x,), Block((Call((y,), "g", (x,)), Call((z,), "g", (y,))), (z,)))
    assert emit_stablehlo(Module((func, inner))).count("sine") == 2


def test_recursion_shows_the_line():
    def power(x, n):
        return 1.0 if n <= 0 else x * power(x, n - 1)

    with pytest.raises(TranspileError, match="calls itself as often as its values say") as refused:
        gradsmith.stablehlo(power)(2.0, gradsmith.i64)
    assert refused.value.code == "E207"
    assert "x * power(x, n - 1)" in str(refused.value)


@pytest.mark.xla
def test_recursion_that_ends_while_compiling_is_unrolled():
    def power(x, n):
        return 1.0 if n <= 0 else x * power(x, n - 1)

    for fun in (power, gradsmith.jit(power, static_argnums=1)):
        assert on_xla(fun, 2.0, 3) == 8.0


def factors(a):
    """LU factors, column by column, of which each has a size of its own."""
    a, n = a.copy(), a.shape[0]
    for k in range(n - 1):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return np.sum(np.log(np.abs(np.diag(a))))


@pytest.mark.xla
def test_loops_whose_arrays_change_their_size_are_written_out():
    a = np.random.default_rng(0).normal(size=(4, 4)) + 4 * np.eye(4)
    made = lowered(gradsmith.value_and_grad(factors), a)
    assert "while" not in made.text
    value, slope = run(made.text, a)
    np.testing.assert_allclose(value, np.linalg.slogdet(a)[1], rtol=1e-13)
    np.testing.assert_allclose(slope, np.linalg.inv(a).T, rtol=1e-12)


def test_arrays_of_run_time_sizes_are_refused_with_the_line():
    def head(x, n):
        total = 0.0
        while total < 10:
            total = total + np.linalg.det(x[:n, :n])
            n = n + 1
        return total

    with pytest.raises(TranspileError, match="run-time value, is used as a whole by det") as refused:
        gradsmith.stablehlo(head)("f64[8, 8]", gradsmith.i64)
    assert "np.linalg.det(x[:n, :n])" in str(refused.value)

    def few(x):
        return x[:np.argmax(x)]

    with pytest.raises(TranspileError, match="the result .* follows from a run-time value"):
        gradsmith.stablehlo(few)("f64[8]")


# ---------------------------------------------------------------------------------------------------------------
# values and derivatives, for every number of trips


def branches_in_a_loop(x, n):
    y = x
    for i in range(n):
        if y[0] > 0.5:
            y = y * 0.7
        else:
            y = np.sin(y) + 0.3 * i
    return np.sum(y ** 2)


def writes_in_a_loop(x, n):
    a = x.copy()
    for i in range(n):
        a[i % 3] = a[(i + 1) % 3] * a[-1] + 0.1
        a[1:] += 0.2 * np.sin(a[:2])
    return np.sum(a * a)


def backwards_by_two(x, n):
    total = 0.0
    for i in range(n - 1, -1, -2):
        total = total * x[i % 3] + x[0]
    return total


def leaves_early(x, n):
    total = 0.0
    for i in range(n):
        if total > 1.5:
            break
        if x[i % 3] < 0:
            continue
        total = total + x[i % 3] * total + 0.5
    else:
        total = total * 2
    return total


def halves_until_small(x, n):
    y, count = x, 0
    while np.sum(y * y) > 0.1 and count < n:
        y = y * 0.6
        count += 1
    return np.sum(y) + count


PROGRAMS = (branches_in_a_loop, writes_in_a_loop, backwards_by_two, leaves_early, halves_until_small)


@pytest.mark.xla
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_for_every_number_of_trips(program):
    x = np.array([0.4, -0.3, 0.9])
    made = lowered(program, x, 3)
    for n in TRIPS:
        (got,) = run(made.text, x, np.int64(n))
        np.testing.assert_allclose(got, program(x, n), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# refusals


def test_a_size_that_only_the_running_function_knows():
    def body(x):
        (n,) = build.while_loop((x,), lambda v: v < 10, lambda v: (v + 1,), hints=("count",))
        return (ops.sum(ops.iota(shape=(symbol(n.name, 0),), axis=0, dtype="int64"), axes=(0,)),)

    with pytest.raises(Exception, match="is known only while the function runs"):
        emit_stablehlo(build_func("f", [("x", I64)], body))


# ---------------------------------------------------------------------------------------------------------------
# derivatives, whose tapes have room for all trips


@pytest.mark.xla
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_for_every_number_of_trips(program):
    """One module each: trips are a part of it where a tape has a slot for each."""
    x = np.array([0.4, -0.3, 0.9])
    grad = gradsmith.value_and_grad(program)
    for n in TRIPS:
        assert_equal_trees(grad(x, n), on_xla(grad, x, n), 1e-11)


@pytest.mark.xla
def test_second_derivatives():
    x = np.array([0.4, -0.3, 0.9])
    for program in (branches_in_a_loop, leaves_early):
        hessian = gradsmith.hessian(program)
        assert_equal_trees(hessian(x, 3), on_xla(hessian, x, 3), 1e-10)


def grows(x):
    while x < 20:
        x = x * (2 + np.sin(x)) + 0.5
    return x


def test_a_loop_without_a_bound_asks_for_one():
    with pytest.raises(TranspileError) as refused:
        gradsmith.stablehlo(gradsmith.grad(grows))(1.0)
    assert "is known only while the function runs" in str(refused.value) and "max_trips=100" in str(refused.value)


def inserted_in_order(x):
    x = x.copy()
    for i in range(1, 4):
        v, j = x[i], i - 1
        while j >= 0 and x[j] > v:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = v * np.sin(v)
    return np.sum(x * np.arange(4.0))


def along_diagonals(x):
    a = np.outer(x, x) + 0.5
    for _ in range(2):
        for d in range(7):
            for i in range(max(0, d - 3), min(4, d + 1)):
                if i > 0 and d - i > 0:
                    a[i, d - i] += a[i - 1, d - i] * a[i, d - i - 1] * 0.1
    return np.sum(np.sin(a))


@pytest.mark.xla
@pytest.mark.parametrize("program", [inserted_in_order, along_diagonals])
def test_room_that_follows_from_the_loops_around(program):
    """A condition with `and`, whose second part is computed only where the first holds; the most trips of any."""
    grad = gradsmith.grad(program)
    x = np.array([0.9, 0.4, 0.7, 0.1])
    assert_equal_trees(grad(x), on_xla(grad, x), 1e-11)


def test_a_tape_without_a_size_has_the_place_of_its_loop():
    def program(x, n):
        for _ in range(n[0], n[1]):
            x = x * np.sin(x)
        return x

    with pytest.raises(TranspileError) as refused:
        gradsmith.stablehlo(gradsmith.grad(program))(0.5, np.array([2, 4]))
    assert "for _ in range(n[0], n[1]):" in str(refused.value)


def returns_when_counted(x):
    k = 0
    while True:
        x = np.sin(x) * x
        k += 1
        if k > 4 or x > 3.0:
            return x


def breaks_before_the_work(x):
    k = 12
    while True:
        if k <= 3:
            break
        x = np.sin(x) * x
        k -= 2
        if x > 3.0:
            break
    return x


def counts_unevenly(x):
    n = 0
    while x > 1e-3 and not n > 7:
        x, n = x * 0.7, n + 1
        if x < 0.4:
            x, n = x * x, n + 2
    return x


@pytest.mark.xla
@pytest.mark.parametrize("program, most", [(returns_when_counted, 5), (breaks_before_the_work, 6), (counts_unevenly, 8)])
def test_bounds_that_counters_give(program, most):
    """The last trip of a loop that `break` ends may be one more than those after which it goes on."""
    grad = gradsmith.value_and_grad(program)
    made = lowered(grad, 1.3)
    assert f"tensor<{most}xf64>" in made.text
    for x in (1.3, 0.6, 40.0):
        assert_equal_trees(grad(x), made.rebuilt(run(made.text, np.float64(x))), 1e-11)


@pytest.mark.xla
@pytest.mark.parametrize("start, trips", [(1.0, 0), (0.5, 2)])
def test_steps_of_loops_that_make_no_trip(start, trips):
    def integral(c):
        x, s = start, 0.0
        while x < 1.0:
            s, x = s + np.exp(-c * x), x + 0.25
        return s

    grad = gradsmith.value_and_grad(integral)
    made = lowered(grad, 1.2, raise_loops=False)
    assert f"tensor<{trips}xf64>" in made.text
    assert_equal_trees(grad(1.2), made.rebuilt(run(made.text, np.float64(1.2))), 1e-13)


@pytest.mark.xla
def test_a_bound_that_is_given():
    grad = gradsmith.value_and_grad(grows)
    for x in (0.3, 4.0, 30.0):
        assert_equal_trees(grad(x), on_xla(grad, x, max_trips=10), 1e-11)


@pytest.mark.xla
def test_a_bound_that_was_too_low():
    grad = gradsmith.value_and_grad(grows)
    assert all(np.isnan(v) for v in on_xla(grad, 0.3, max_trips=2))
    made = lowered(grad, 0.3, max_trips=2, checked=True)
    *_, flag = run(made.text, *made.arrays())
    assert "more often than max_trips = 2" in str(made.failures[int(flag) - 1])


@pytest.mark.xla
def test_trips_that_xla_counts_wrongly():
    """It takes 0, 2, .. below 1 for no trip and 3, 5, .. below 2 for one, whatever the loop is written as."""
    from gradsmith import xla
    ranges = [(lo, hi, step) for lo in (0, 3) for hi in range(-1, 5) for step in (1, 2, 3, -1, -2)]

    def body(x):
        results = []
        for lo, hi, step in ranges:
            def ahead(i, total, hi=hi, step=step):
                return i < hi if step > 0 else i > hi

            results += build.for_loop(const(lo, I64), const(hi, I64), (x,), lambda i, total: (total + 1.0,), step=step)
            results.append(build.while_loop((const(lo, I64), x), ahead, lambda i, total, step=step: (
                i + step, total + 1.0))[1])
        return results

    found = xla.run(emit_stablehlo(build_func("f", [("x", F64)], body)), np.float64(0))
    assert [float(len(range(*r))) for r in ranges for _ in range(2)] == [float(v) for v in found]


def matrix_power(a, n):
    found = np.eye(a.shape[0])
    while n > 0:
        if n % 2 == 1:
            found = found @ a
        a, n = a @ a, n // 2
    return np.trace(found)


@pytest.mark.xla
def test_a_loop_on_a_number_that_is_known_is_counted():
    """Its steps are halved, not counted: it is run while compiling."""
    a = np.random.default_rng(0).normal(size=(3, 3))
    grad = gradsmith.grad(matrix_power)
    made = lowered(grad, a, 5)
    assert "tensor<3x3x3xf64>" in made.text
    assert_equal_trees(grad(a, 5), made.rebuilt(run(made.text, a)), 1e-11)


@pytest.mark.xla
def test_max_trips_bounds_loops_that_an_array_bounds():
    def nested(x, q):
        s = 0.0
        for k in range(len(q)):
            for i in range(q[k]):
                s = np.sin(s * x[i]) + x[i]
        return s

    x, q = np.array([0.5, -1.0, 2.0, 0.3]), np.array([3, 2, 4])
    for most, code in ((4, 0), (3, 2)):
        made = lowered(gradsmith.grad(nested), x, q, checked=True, max_trips=most)
        slope, flag = run(made.text, x, q)
        assert code == flag
        if not code:
            np.testing.assert_allclose(slope, gradsmith.grad(nested)(x, q), rtol=1e-13)
        else:
            assert "more often than max_trips = 3" in made.failures[code - 1].message


def test_known_numbers_are_results_as_constants():
    def known(x):
        return x * 2, (3, "text", None), np.float32(0.5)

    made = lowered(known, 1.5)
    assert ("result[0]", "result[1][0]", "result[2]") == made.results
    assert "tensor<i64> {jax.result_info" in made.text
    assert (3.0, (3, "text", None), np.float32(0.5)) == made.rebuilt([np.float64(3.0), np.int64(3), np.float32(0.5)])
