"""Recursion that the running function ends: values, derivatives of both modes and orders, lanes, and what is refused."""

import dataclasses

import numpy as np
import pytest
from loose import check_values
from recursive import calls, difference
from tracing import failure, run, traced

from gradsmith import grad
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.library import transformed
from gradsmith.transpiler.ir.nodes import Call
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize.fuse_calls import fuse_mutual_calls
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap


def fib(n, x):
    if n < 2:
        return x
    return fib(n - 1, x) + np.sin(fib(n - 2, x))


def power(n, x):
    if n == 0:
        return 1.0
    half = power(n // 2, x)
    return half * half if n % 2 == 0 else half * half * x


def legendre(n, x):
    if n == 0:
        return 1.0
    if n == 1:
        return x
    return ((2 * n - 1) * x * legendre(n - 1, x) - (n - 1) * legendre(n - 2, x)) / n


def chebyshev(n, x):
    return 1.0 if n == 0 else x if n == 1 else 2 * x * chebyshev(n - 1, x) - chebyshev(n - 2, x)


def is_even(n, x):
    return x if n == 0 else is_odd(n - 1, x * x)


def is_odd(n, x):
    return 0.5 * x if n == 0 else is_even(n - 1, x + 1.0)


def first(n, x):
    return x if n <= 0 else second(n - 1, x * 1.5) + third(n - 2, x)


def second(n, x):
    return x * x if n <= 0 else third(n - 1, x + 1.0) - first(n - 2, x)


def third(n, x):
    return np.sin(x) if n <= 0 else np.cos(first(n - 1, x)) * second(n - 3, x)


def in_a_loop(n, x):
    total = 0.0
    for k in range(n):
        total = total + fib(k, x) * np.cos(total)
    return total


def loop_inside(n, x):
    total = x
    for k in range(n):
        total = total + 0.1 * loop_inside(k, x) ** 2
    return total


def early(n, x):
    for k in range(n):
        if x > 3.0:
            return x * early(k, x - 1.0)
        x = x * 1.2
    return x


def dicts(n, x):
    if n == 0:
        return {"a": x, "b": (1, x * x)}
    rest = dicts(n - 1, x * 1.1)
    return {"a": rest["a"] + x, "b": (rest["b"][0] + n, rest["b"][1] * x)}


def of_dicts(n, x):
    found = dicts(n, x)
    return found["a"] * found["b"][1] + found["b"][0]


def keywords(n, x, *, scale=2.0, shift=0.5):
    return x * shift if n <= 0 else scale * keywords(n - 1, np.tanh(x), shift=shift * x)


def nested_call(n, x):
    return x if n <= 0 else nested_call(n - 1, nested_call(n - 2, 0.5 * x) + 0.1)


class Chain:
    def __init__(self, weight):
        self.weight = weight

    def run(self, n, x):
        return x if n == 0 else self.weight * self.run(n - 1, np.tanh(x))


def method(n, x):
    return Chain(x * 2.0).run(n, x)


def nonlocal_count(n, x):
    total = x

    def go(k, y):
        nonlocal total
        total = total + y * y
        if k > 0:
            go(k - 1, np.sin(y))
            go(k - 2, y * 0.5)

    go(n, x)
    return total


SCALARS = [fib, power, legendre, chebyshev, is_even, first, in_a_loop, loop_inside, early, of_dicts, keywords,
           nested_call, method, nonlocal_count]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("fn", SCALARS, ids=lambda fn: fn.__name__)
def test_values_and_first_derivatives(fn, n):
    x = 0.7
    trace = check_values(fn, n, x)
    assert calls(trace)
    forward = transformed(trace.func, lambda f: jvp(f, [False, True]))
    reverse = transformed(trace.func, lambda f: vjp(f, [False, True]))
    for derived in (forward, reverse):
        verify(derived)
        value, slope = evaluate(derived, n, x, 1.0)
        assert pytest.approx(fn(n, x), rel=1e-12) == value
        assert pytest.approx(difference(fn, n, x), rel=1e-7, abs=1e-9) == slope
    assert pytest.approx(evaluate(forward, n, x, 1.0)[1], rel=1e-12) == evaluate(reverse, n, x, 1.0)[1]


@pytest.mark.parametrize("fn", SCALARS, ids=lambda fn: fn.__name__)
def test_second_derivatives_in_every_order(fn):
    n, x = 4, 0.7
    trace = traced(fn, n, x)
    found = []
    for inner in (jvp, vjp):
        one = transformed(trace.func, lambda f, inner=inner: inner(f, [False, True]))
        for outer in (jvp, vjp):
            two = transformed(one, lambda f, outer=outer: outer(f, [False, True, False]))
            verify(two)
            seeds = (1.0,) if outer is jvp else (0.0, 1.0)
            found.append(evaluate(two, n, x, 1.0, *seeds)[-1])
    slope = transformed(trace.func, lambda f: jvp(f, [False, True]))
    expected = difference(lambda n, x: evaluate(slope, n, x, 1.0)[1], n, x)
    assert [pytest.approx(expected, rel=1e-7, abs=1e-8)] * 4 == found
    np.testing.assert_allclose(found, found[0], rtol=1e-10)


@pytest.mark.parametrize("fn", SCALARS, ids=lambda fn: fn.__name__)
def test_lanes_recur_as_deep_as_they_need(fn):
    trace = traced(fn, 3, 0.7)
    batched = transformed(trace.func, lambda f: vmap(f, [True, True], 4))
    verify(batched)
    n, x = np.array([0, 1, 4, 3]), np.array([0.7, 1.1, 0.3, 0.9])
    np.testing.assert_allclose(evaluate(batched, n, x)[0], [fn(int(k), float(v)) for k, v in zip(n, x)], rtol=1e-12)


def test_circles_of_funcs_become_one_func():
    trace = traced(first, 5, 0.7)
    one = fuse_mutual_calls(trace.func)
    verify(one)
    assert len(trace.func.funcs) > 2
    assert 2 == len(one.funcs)
    for n in range(6):
        assert pytest.approx(first(n, 0.7), rel=1e-12) == evaluate(one, n, 0.7)[0]
    slope = transformed(trace.func, lambda f: vjp(f, [False, True]))
    fused = fuse_mutual_calls(slope)
    verify(fused)
    assert evaluate(slope, 5, 0.7, 1.0) == evaluate(fused, 5, 0.7, 1.0)


# ---------------------------------------------------------------------------------------------------------------
# what is known while transpiling


def test_what_is_known_is_followed():
    def f(x, n):
        def tree(y, depth):
            if depth == 0:
                return y
            return tree(y * 2.0, depth - 1) if y > 1.0 else tree(y + 1.0, depth - 1)

        return tree(x, 3) * n

    assert not calls(check_values(f, 0.7, 3))


def test_a_static_limit_of_many_calls_becomes_an_argument():
    def integral(f, a, b, whole, limit=50):
        m = 0.5 * (a + b)
        left, right = (m - a) * f(0.5 * (a + m)), (b - m) * f(0.5 * (m + b))
        error = left + right - whole
        if limit == 0 or abs(error) < 1e-4:
            return left + right
        return integral(f, a, m, left, limit - 1) + integral(f, m, b, right, limit - 1)

    def f(n, w):
        return integral(lambda x: np.exp(w * x), 0.0, 1.0 * n, 0.0)

    trace = check_values(f, 2, 0.8)
    assert calls(trace)
    assert pytest.approx(difference(f, 2, 0.8, 1e-7), rel=1e-3) == evaluate(
        transformed(trace.func, lambda g: jvp(g, [False, True])), 2, 0.8, 1.0)[1]


def test_calls_of_one_kind_share_a_func():
    def f(n, x):
        return power(n, x) + power(n + 1, x * 2.0)

    trace = check_values(f, 3, 0.7)
    assert 2 == len(trace.func.funcs)


def test_calls_of_closures_with_other_surroundings_do_not():
    def f(n, x):
        total = 0.0
        for scale in (1.0, x):
            def go(k, scale=scale):
                return scale * x if k == 0 else go(k - 1) * scale

            total = total + go(n)
        return total

    check_values(f, 3, 0.7)


def test_an_int_that_becomes_a_float():
    def total(n, x):
        return 0 if n == 0 else total(n - 1, x) + x

    trace = check_values(total, 4, 0.5)
    assert ["float64"] == [r.dtype for r in trace.func.results]


def test_ackermann_and_gcd():
    def ackermann(m, n):
        if m == 0:
            return n + 1
        return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))

    def gcd(a, b):
        return a if b == 0 else gcd(b, a % b)

    check_values(ackermann, 2, 3)
    check_values(gcd, 84, 36)
    check_values(gcd, 17, 0)


@dataclasses.dataclass
class Pair:
    a: float
    b: float


def test_objects_and_tuples_go_through():
    def f(n, x):
        def step(k, pair):
            if k == 0:
                return pair
            last = step(k - 1, Pair(pair.b, pair.a + pair.b))
            return Pair(last.a * 0.5, last.b)

        found = step(n, Pair(x, 1.0))
        return found.a, found.b

    check_values(f, 4, 0.7)


def test_lambdas():
    def f(n, x):
        factorial = lambda k: 1.0 if k == 0 else k * x * factorial(k - 1)    # noqa: E731
        return factorial(n)

    check_values(f, 5, 0.7)


def test_exceptions_of_the_user():
    def f(n, x):
        if n < 0:
            raise ValueError("below zero")
        return x if n == 0 else f(n - 2, x)

    check_values(f, 4, 0.7)
    check_values(f, 3, 0.7)


# ---------------------------------------------------------------------------------------------------------------
# what is refused


def test_recursion_without_end_at_run_time():
    def f(n, x):
        return x if n == 0 else f(n - 1, x) + 1.0

    trace = traced(f, 3, 0.5)
    for derived in (trace.func, transformed(trace.func, lambda g: vjp(g, [False, True]))):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            evaluate(derived, -1, 0.5, *([1.0] if derived is not trace.func else []))


def test_recursion_on_every_way():
    def f(n, x):
        if n > 0:
            return f(n - 1, x)
        return f(n + 1, x)

    problem = failure(f, 3, 0.5)
    assert isinstance(problem, RecursionError)
    assert "calls itself on every way" in str(problem)


def test_arguments_that_do_not_settle():
    def f(n, x):
        return 0.0 if n == 0 else f(n - 1, (x, x))

    problem = failure(f, 3, 0.5)
    assert problem.code == "E130"
    assert "do not settle" in str(problem)


def test_sizes_that_grow():
    def f(n, x):
        if n == 0:
            return np.sum(x)
        return f(n - 1, np.outer(x, x))

    check_values(f, 2, np.array([0.5, 0.7, 1.5]))


def test_axes_that_become_more():
    def f(n, x):
        if n == 0:
            return np.sum(x)
        return f(n - 1, x[None])

    assert failure(f, 3, np.ones(3)).code == "E130"


def test_an_array_known_by_two_names_is_not_written_to():
    def f(x, n):
        def go(a, b, k):
            if k > 0:
                a[0] = a[0] + b[0]
                go(a, b, k - 1)

        y = x.copy()
        z = x.copy()
        go(y, z, n)
        go(y, y, n)
        return y

    assert failure(f, np.ones(3), 3).code == "E123"


def test_a_list_that_grows():
    def f(n, x):
        found = []

        def go(k):
            found.append(x * k)
            if k > 0:
                go(k - 1)

        go(n)
        return found[0]

    assert failure(f, 3, 0.5).code == "E126"


def test_a_derivative_of_itself():
    def f(n, x):
        return np.sin(x) if n == 0 else grad(lambda y: f(n - 1, y))(x)

    problem = failure(f, 3, 0.5)
    assert problem.code == "E204"
    assert "inside itself" in str(problem)
    check_values(lambda x: f(0, x), 0.5)


def test_only_what_is_called_is_kept():
    trace = traced(in_a_loop, 3, 0.5)
    assert {"in_a_loop", "fib"} == {func.name for func in trace.func.funcs}
    called = {stmt.func for func in trace.func.funcs for stmt in all_statements(func.body) if isinstance(stmt, Call)}
    assert {"fib"} == called
    assert isinstance(run(trace), float)
