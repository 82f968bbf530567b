"""Loops on run-time values: what is carried, how they end, indices without checks, and what is refused."""

import numpy as np
import pytest
from loose import check_values
from tracing import failure

from gradsmith.transpiler.ir.nodes import Check, For, While
from gradsmith.transpiler.ir.walk import all_statements

TRIPS = pytest.mark.parametrize("n", [0, 1, 2, 3, 7])


def count(trace, kind):
    return sum(isinstance(stmt, kind) for stmt in all_statements(trace.func.body))


@TRIPS
def test_a_sum(n):
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s

    trace = check_values(f, np.arange(1.0, n + 1.0))
    assert count(trace, Check) == 0
    assert n == 0 or count(trace, For) == 1


@TRIPS
def test_a_counted_loop(n):
    def f(x, n):
        y = x
        for _ in range(n):
            y = np.exp(-y) * x
        return y

    check_values(f, 0.7, n)


@TRIPS
def test_elements_written_from_elements(n):
    def f(x):
        y = np.zeros_like(x)
        for i in range(1, x.shape[0]):
            y[i] = x[i] + 0.5 * y[i - 1]
        return np.sum(y), y

    assert count(check_values(f, np.arange(float(n))), Check) == 0


@TRIPS
def test_buffers_that_change_places(n):
    def f(x, n):
        u, v = x.copy(), np.zeros_like(x)
        for _ in range(n):
            for i in range(1, len(u) - 1):
                v[i] = 0.5 * (u[i - 1] + u[i + 1])
            u, v = v, u
        return u, v

    assert count(check_values(f, np.arange(5.0) ** 2, n), Check) == 0


@pytest.mark.parametrize("a", [2.0, 1.0, 0.3])
def test_while(a):
    def f(a):
        x = a
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    check_values(f, a)


@pytest.mark.parametrize("x", [0.0, 2.0, 200.0])
def test_break(x):
    def f(x):
        n = 0
        while x < 100.0:
            x = x * x + 1.0
            n += 1
            if n > 4:
                break
        else:
            n += 100
        return x, n

    check_values(f, x)


@pytest.mark.parametrize("x", [[1.0, 3.0, -2.0], [1.0, 6.0, -1.0], [1.0, 2.0], []])
def test_break_return_and_else(x):
    def f(x):
        for i in range(len(x)):
            if x[i] < 0:
                break
            if x[i] > 5:
                return -1.0
        else:
            return 77.0
        return x[i]

    check_values(f, np.array(x))


@TRIPS
def test_continue(n):
    def f(x):
        s = 0.0
        for v in x:
            if v < 2.0:
                continue
            s += v
            if s > 9:
                continue
            s *= 2
        return s

    check_values(f, np.arange(float(n)))


@TRIPS
def test_enumerate_zip_reversed(n):
    def f(x):
        t = 0.0
        for k, (a, b) in enumerate(zip(x, x[1:])):
            t = t + a * b * k
        for r in reversed(range(len(x))):
            t = t * 0.5 + x[r]
        for v in reversed(x):
            t = t * 0.5 + v
        return t

    check_values(f, np.arange(1.0, n + 1.0))


@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 4), (4, 2), (0, 3)])
def test_dependent_bounds_and_rows(shape):
    def f(x):
        rows, cols = x.shape
        total = 0.0
        for i in range(rows):
            for j in range(i, cols):
                total = total + x[i, j] * x[i, j]
        for row in x:
            total += np.sum(row * row)
        return total

    assert count(check_values(f, np.arange(float(np.prod(shape))).reshape(shape)), Check) == 0


@TRIPS
def test_variables_first_set_in_the_loop(n):
    def f(x, n):
        for i in range(n):
            if i > 0:
                last = x[i] * before  # noqa: F821
            else:
                last = 0.0
            before = x[i]  # noqa: F841
        return last + i

    check_values(f, np.arange(1.0, 8.0), n)


@TRIPS
def test_containers_are_carried(n):
    def f(x, n):
        state = (x, 0)
        total = {"sum": 0.0, "count": 0}
        pair = [1.0, 2.0]
        for k in range(n):
            state = (state[0] * 0.5, state[1] + k)
            total["sum"] += state[0]
            total["count"] += 1
            pair = [pair[1], pair[0] + x]
        return state, total, pair

    check_values(f, 0.7, n)


@pytest.mark.parametrize("x", [[1.0, 5.0, 2.0], [3.0]])
def test_a_variable_that_begins_as_none(x):
    def f(x):
        best = None
        for v in x:
            if best is None or v > best:
                best = v
        if best is not None:
            best = best * 2.0
        return best

    check_values(f, np.array(x))


def test_a_variable_that_stays_none():
    def f(x, n):
        last = None
        for _ in range(n):
            last = x
        return last + 1.0

    check_values(f, 1.0, 2)
    check_values(f, 1.0, 0)


@TRIPS
def test_an_int_that_becomes_a_float(n):
    def f(x, n):
        s = 0
        for _ in range(n):
            s = s + x
        return s * 1.0

    check_values(f, 0.25, n)


@TRIPS
@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_run_time_steps(n, step):
    def f(n, step):
        s = 0
        for i in range(n, 4, step):
            s = 3 * s + i
        return s

    check_values(f, n, step)


@TRIPS
def test_slices_that_move(n):
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += np.sum(x[:i]) + np.sum(x[i:]) + np.sum(x[max(0, i - 2):i + 1]) + np.sum(x[i::-1]) + np.sum(x[-i:])
        return s

    check_values(f, np.arange(1.0, 6.0), n)


def test_loops_over_static_values_need_no_code():
    def f(x):
        k = 0
        for i in range(4):
            k += i
        return np.zeros(k) + x

    assert count(check_values(f, 1.0), For) == 0


def test_known_bounds_stay_a_loop():
    def f(x):
        for i in range(1000):
            x = np.sin(x) + i
        i = 0
        while i < 1000:
            x = np.cos(x)
            i += 1
        return x

    trace = check_values(f, 0.5)
    assert count(trace, For) == 1
    assert count(trace, While) == 1


def test_unrolled_where_the_index_must_be_known():
    def f(x):
        parts = [x, x * 2, x * 3]
        total = 0.0
        for i in range(3):
            total = total + parts[i] * (i + 1)
            if total > 20.0:
                break
        return total

    for x in (1.0, 5.0):
        assert count(check_values(f, x), For) == 0


def test_an_index_out_of_range_is_found_by_the_run():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += x[i]
        return s

    assert count(check_values(f, np.ones(3), 4), Check) == 1
    within = check_values(f, np.ones(3), 3)
    assert count(within, Check) == 0
    assert ["a0_n0 - n >= 0"] == [str(guard) for guard in within.shape_guards if "n" in str(guard)][-1:]


def test_raise_in_a_loop():
    def f(x):
        s = 0.0
        for v in x:
            if v < 0:
                raise ArithmeticError("negative")
            s += np.sqrt(v)
        return s

    check_values(f, np.array([1.0, 4.0]))
    check_values(f, np.array([1.0, -4.0]))


def test_calls_that_change_what_is_outside():
    def f(x, n):
        count = 0

        def push(y, v):
            nonlocal count
            count += 1
            y[count % 2] += v

        y = np.zeros(2)
        for i in range(n):
            push(y, x * i)
        return y, count

    for n in (0, 1, 2, 3):
        check_values(f, 0.5, n)


def test_what_cannot_be_carried():
    def grows(x, n):
        y = x * 1.0
        for _ in range(n):
            y = np.concatenate([y, y])
        return y

    def kinds(x, n):
        y = 1.0
        for _ in range(n):
            y = "text" if y == 1.0 else 2.0
        return y

    def endless(x, n):
        while True:
            x = x * 0.5

    def ambiguous(x, n):
        y = x * 1.0
        z = y
        for _ in range(n):
            y = y * 2.0
        y[0] = 1.0
        return y, z

    x = np.ones(3)
    assert failure(grows, x, 3).code == "E122"
    assert failure(kinds, x, 3).code in ("E121", "E122")
    assert failure(endless, x, 3).code == "E125"
    assert failure(ambiguous, x, 3).code == "E123"


def test_compilers_and_parallel_ranges_mean_their_function():
    import numba

    @numba.njit
    def inner(x):
        s = 0.0
        for i in numba.prange(len(x)):
            s += x[i] * x[i]
        return s

    def f(x):
        return inner(x) * 2.0

    check_values(f, np.arange(4.0))


def test_an_iterator_that_goes_on_in_every_trip_is_refused():
    import gradsmith

    def f(x, n):
        weights = iter([1.0, 2.0, 3.0])
        total = next(weights) * x
        for _ in range(n):
            total += next(weights)
        return total

    with pytest.raises(NotImplementedError, match="how far an iterator is would be another thing in every trip"):
        gradsmith.jit(f)(2.0, 2)
