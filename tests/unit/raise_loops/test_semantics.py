"""What raising a loop must keep: exceptions, branches not taken, NaN, ints that overflow, the order of writes."""

from __future__ import annotations

import numpy as np
import pytest
from unit.raise_loops import kernels
from unit.raise_loops.comparing import arguments, assert_same, func_of, raised
from unit.raise_loops.kernels import RAISED

from gradsmith.to_stablehlo import raising
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.raise_loops.findings import Outcome


def made(function, signature, transform="jit", *, slow=0, keeps=True):
    """The func before and after; `slow` loops are kept."""
    func = func_of(function, signature, transform)
    after, findings = raised(func, keeps=keeps)
    assert slow == sum(f.is_slow for f in findings), findings
    return func, after


def exactly(func, after, *args):
    for want, got in zip(evaluate(func, *args), evaluate(after, *args), strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


# --- branches ------------------------------------------------------------------------------------------------------


def test_a_branch_not_taken_poisons_nothing():
    func, after = made(kernels.roots_of_positive, "f64[9]", "vjp")
    x = np.array([1.0, -1.0, 0.0, np.nan, np.inf, 4.0, -np.inf, -0.0, 0.25])
    exactly(func, after, x[[0, 1, 2, 5, 7, 8, 1, 1, 0]], np.float64(1.0))
    d_x = evaluate(after, np.where(np.isfinite(x), x, -1.0), np.float64(1.0))[1]
    assert np.all(np.isfinite(d_x))


def test_places_behind_the_ends_are_not_read():
    def neighbours(x):
        y = np.zeros_like(x)
        n = x.shape[0]
        for i in range(n):
            s = 0.0
            if i >= 2:
                s += x[i - 2]
            if i + 3 < n:
                s += x[i + 3]
            y[i] = s
        return y

    x = np.arange(1.0, 8.0)
    exactly(*made(neighbours, "f64[7]"), x)
    exactly(*made(neighbours, "f64[n]"), x)


# --- exceptions ----------------------------------------------------------------------------------------------------


def test_an_index_out_of_range_is_still_an_error():
    func, after = made(kernels.gathered, "f64[5], i64[7]")
    x, places = np.arange(5.0), np.array([0, 4, -5, 3, 2, 1, 0])
    exactly(func, after, x, places)
    places[3] = 5
    for f in (func, after):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 5"):
            evaluate(f, x, places)


def test_the_first_of_two_exceptions_is_raised():
    def two(x, y, p, q):
        s = 0.0
        for i in range(4):
            s += x[p[i]] + y[q[i]]
        return s

    func, after = made(two, "f64[5], f64[6], i64[4], i64[4]")
    x, y, good = np.arange(5.0), np.arange(6.0), np.array([0, 1, 2, 3])
    exactly(func, after, x, y, good, good)
    for p, q, size in ((2, 3, 5), (3, 2, 6), (1, 1, 5)):
        bad = [good.copy(), good.copy()]
        bad[0][p], bad[1][q] = 99, 99
        for f in (func, after):
            with pytest.raises(IndexError, match=f"size {size}"):
                evaluate(f, x, y, *bad)


def test_what_an_exception_leaves_in_arguments_is_kept_if_asked_for():
    def fill(x, y, p):
        for i in range(4):
            x[i] = y[p[i]]

    made(fill, "f64[4], f64[5], i64[4]", slow=1)
    made(fill, "f64[4], f64[5], i64[4]", keeps=False)


# --- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8"])
def test_ints_overflow_as_before(dtype):
    def total(x):
        s = x[0]
        for i in range(1, x.shape[0]):
            s = s * x[i] + x[i]
        t = x[0]
        for i in range(x.shape[0]):
            t += x[i]
        return s, t

    short = {"int32": "i32", "int64": "i64", "uint8": "u8", "int8": "i8"}[dtype]
    func, after = made(total, f"{short}[9]", slow=1)
    exactly(func, after, np.array([np.iinfo(dtype).max, 3, 7, 2, 99, 100, 5, 7, np.iinfo(dtype).min]).astype(dtype))


def test_a_search_skips_nan_and_keeps_the_first_of_equal_ones():
    func, after = made(kernels.best_of, "f64[9]")
    for x in ([np.nan, 1.0, 3.0, np.nan, 3.0, 2.0, -0.0, 0.0, 1.0], [np.nan] * 9, [-0.0, 0.0] * 4 + [-1.0],
              [-np.inf] * 9, [-1e300] * 9):
        exactly(func, after, np.array(x))


def test_a_search_that_takes_equal_ones_keeps_the_last():
    def last(x):
        best, at, steps = x[0], 0, 0.0
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            y[i] = best
            if x[i] >= best:
                best, at = x[i], i
            if i > 2:
                if x[i] <= steps:
                    steps = x[i]
        return y, best, at, steps

    func, after = made(last, "f64[9]")
    for x in ([np.nan, 1.0, 3.0, np.nan, 3.0, 2.0, -0.0, 0.0, 1.0], [2.0, np.nan, 3.0, np.nan, 3.0, 2.0, -0.0, 0.0, 1.0],
              [np.nan] * 9, [-0.0, 0.0] * 4 + [-1.0], [-np.inf] * 9, [np.inf, np.nan] * 4 + [np.inf], [-1e300] * 9):
        exactly(func, after, np.array(x))


def test_a_sign_that_changes_in_each_trip():
    def signs(x, k):
        sign, count = 1.0, 3
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            if x[i] > k:
                sign = -sign
            y[i] = sign
            count = -count
        return y, sign, count

    func, after = made(signs, "f64[9], f64")
    exactly(func, after, np.array([1.0, -2.0, np.nan, 4.0, 5.0, 0.0, 1.0, -1.0, 7.0]), 0.5)


def test_the_running_value_of_a_search():
    def running(x):
        best = x[0]
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            y[i] = best
            if x[i] > best:
                best = x[i]
        return y, best

    func, after = made(running, "f64[9]")
    for x in ([np.nan, 1.0, 3.0, np.nan, 3.0, 2.0, -0.0, 0.0, 1.0], [0.0, -0.0, 1.0, np.nan, 1.0, 2.0, 5.0, 4.0, 9.0]):
        exactly(func, after, np.array(x))


def test_the_first_of_equal_maxima_has_the_derivative_in_either_order():
    def top(x):
        m = x[0]
        for i in range(1, x.shape[0]):
            if x[i] > m:
                m = x[i]
        return m

    x = np.array([1.0, 4.0, 2.0, 4.0, 4.0, 0.0])
    with raising([]):
        before = func_of(top, "f64[6]", "grad")
    _, after = made(top, "f64[6]", "grad")
    for func in (before, after):
        np.testing.assert_array_equal([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], evaluate(func, x)[0])


# --- order ---------------------------------------------------------------------------------------------------------


def test_the_last_write_to_a_place_wins():
    def forwards(p, v):
        y = np.zeros(4)
        for i in range(6):
            y[p[i]] = v[i]
        return y

    def backwards(p, v):
        y = np.zeros(4)
        for i in range(5, -1, -1):
            y[p[i]] = v[i]
        return y

    p, v = np.array([1, 0, 1, 3, 0, 1]), np.arange(1.0, 7.0)
    for function in (forwards, backwards):
        exactly(*made(function, "i64[6], f64[6]"), p, v)


def test_no_trip_leaves_all_as_it_was():
    def nothing(x, n):
        s = 1.5
        for i in range(3, 3):
            s = x[i]
        return s * x[0]

    func, after = made(nothing, "f64[4], i64")
    exactly(func, after, np.arange(1.0, 5.0), np.int64(0))


def test_sizes_of_zero_and_one():
    for function in (kernels.matmul, kernels.running_sum, kernels.saxpy, kernels.jacobi_1d, kernels.covariance):
        signature = {kernels.matmul: "f64[n,k], f64[k,m]", kernels.running_sum: "f64[n]", kernels.covariance: "f64[n,m]",
                     kernels.saxpy: "f64, f64[n], f64[n]", kernels.jacobi_1d: "i64, f64[n], f64[n]"}[function]
        func = func_of(function, signature)
        after, _ = raised(func)
        for size in (0, 1, 2, 3):
            args = [np.int64(2) if p.type.dtype == "int64" else np.asarray(np.arange(1.0, size ** p.type.rank + 1).reshape(
                (size,) * p.type.rank))[()] for p in func.params]
            assert_same(func, after, args)


def test_a_read_of_an_older_version_behind_a_write():
    """As the optimiser leaves it: `v` is read behind the write, from the array as it was before the write."""
    func = parse_func("""
        func f(a: f64[6]) -> (f64[6], f64):
          b: f64[6], s: f64 = for i: i64 in 0 .. 6 step 1 carry (c: f64[6] = a, t: f64 = 0.0):
            d: f64[6] = add_at(c, 1.0, 2) {index=[at]}
            v: f64 = load(c, i) {index=[at]}
            u: f64 = add(t, v)
            yield d, u
          return b, s
    """)
    after, _ = raised(func)
    exactly(func, after, np.arange(6.0))


def test_reasons_name_what_is_in_the_way():
    _, findings = raised(func_of(kernels.gauss_seidel, "f64[7]"))
    (finding,) = findings
    assert finding.outcome is Outcome.KEPT
    assert "each trip needs what the trips before have made of `x`" == finding.reason
    assert finding.loc is not None
    assert finding.loc.source_line == "    for i in range(1, x.shape[0] - 1):"


# --- before or after derivatives -----------------------------------------------------------------------------------

EITHER = [kernels.gemm, kernels.atax, kernels.conv2d, kernels.softmax_rows, kernels.layer_norm, kernels.covariance,
          kernels.pairs_energy, kernels.gathered, kernels.every_third]


@pytest.mark.parametrize("function", EITHER, ids=[f.__name__ for f in EITHER])
def test_derivatives_of_raised_loops_are_those_of_the_loops(function):
    func = func_of(function, RAISED[function], "vjp")
    with raising([]):
        whole = func_of(function, RAISED[function], "vjp")
    assert_same(func, whole, arguments(func), rtol=1e-11)


def test_what_only_a_branch_has_checked_is_not_computed_without_it():
    def powers(x, k):
        y = np.zeros_like(x)
        for i in range(x.shape[0]):
            if k[i] >= 0:
                y[i] = x[i] ** k[i]
        return y

    exactly(*made(powers, "i64[5], i64[5]", slow=1), np.array([2, 3, -2, 5, 0]), np.array([3, -1, 3, 0, 0]))


def test_elimination_keeps_its_outer_loop_alone():
    def lu(A):
        n = A.shape[0]
        for k in range(n):
            for i in range(k + 1, n):
                A[i, k] = A[i, k] / A[k, k]
                for j in range(k + 1, n):
                    A[i, j] = A[i, j] - A[i, k] * A[k, j]
        return A

    func, after = made(lu, "f64[6,6]")
    assert_same(func, after, arguments(func))
