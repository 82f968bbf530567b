"""Recursive calls that change what is around them, and the ways in which values go in and out: compared with Python,
with differences, forward mode with reverse mode, and to the second order."""

import numpy as np
import pytest
from loose import check_values
from tracing import failure, traced

from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.library import transformed
from gradsmith.transpiler.ir.nodes import Module
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

X = np.array([1.5, 2.5, 0.5, 3.0])
TABLE = np.array([1.0, 2.0, 3.0])
PROGRAMS = []


def program(*args):
    def add(fn):
        PROGRAMS.append(pytest.param(fn, args, id=fn.__name__))
        return fn

    return add


@program(4, 0.7)
def list_elements(n, x):
    state = [0.0, x]

    def go(k):
        state[0] = state[0] + state[1]
        state[1] = state[1] * 1.1
        if k > 0:
            go(k - 1)

    go(n)
    return state[0], state[1]


class Counter:
    def __init__(self):
        self.count = 0
        self.total = 0.0

    def go(self, k, x):
        self.count += 1
        self.total = self.total + x
        if k > 0:
            self.go(k - 1, x * 0.5)


@program(4, 0.7)
def fields(n, x):
    counter = Counter()
    counter.go(n, x)
    return counter.count, counter.total


@program(3, 0.7)
def a_variable_around_changes_between_calls(n, x):
    scale = 2.0

    def go(k):
        return scale * x if k == 0 else go(k - 1) + scale

    a = go(n)
    scale = x * 5.0
    return a, go(n)


@program(3, X)
def an_array_around_changes_between_calls(n, x):
    y = x.copy()

    def go(k):
        return y[0] if k == 0 else go(k - 1) * y[1]

    a = go(n)
    y[1] = 7.0
    return a, go(n)


@program(3, X)
def views_written(n, x):
    y = x.copy()

    def go(a, k):
        if k > 0:
            a[0] *= 2.0
            go(a[1:], k - 1)
            a[0] += np.sum(a)

    go(y, n)
    return y


@program(3, X)
def arguments_change_places(n, x):
    def go(a, b, k):
        if k > 0:
            a[0] = a[0] + b[1]
            go(b, a, k - 1)

    y, z = x.copy(), 2.0 * x
    go(y, z, n)
    return y, z


@program(3, X)
def one_array_twice(n, x):
    def go(a, b, k):
        return np.sum(a * b) if k == 0 else go(b, a * 0.5, k - 1)

    return go(x, x, n)


def of_table(n, x):
    return x * TABLE[n % 3] if n <= 0 else of_table(n - 1, x) + TABLE[n % 3]


@program(5, 0.5)
def a_global_array(n, x):
    return of_table(n, x)


@program(3, X)
def an_argument_that_may_be_none(n, x):
    def go(k, total=None):
        if total is None:
            total = np.zeros(4)
        total = total + x * k
        return total if k == 0 else go(k - 1, total)

    return go(n)


@program(5, 0.7)
def two_kinds_of_calls(n, x):
    def go(k, y, mode):
        if k == 0:
            return y
        return go(k - 1, y * 2.0, "b") if mode == "a" else go(k - 1, y + 1.0, "a")

    return go(n, x, "a")


@program(4, 0.7)
def a_condition_of_a_loop(n, x):
    def go(k):
        return x if k <= 0 else go(k - 1) + 0.3

    total, j = 0.0, 0
    while go(j) < 2.0 * n * x:
        total += go(j)
        j += 1
    return total, j


@program(4, 0.7)
def a_comprehension(n, x):
    return x if n <= 0 else sum([a_comprehension(n - 1, y) for y in (x * 0.5, 2.0 * x)])


@program(4, 0.7)
def starred(n, *xs):
    return sum(xs) if n <= 0 else starred(n - 1, *[v * 1.1 for v in xs])


@program(4, X)
def tuples_with_arrays(n, x):
    if n == 0:
        return x * 2.0, np.sum(x)
    a, s = tuples_with_arrays(n - 1, x + 1.0)
    return a * a * 0.1, s + a[0]


@program(4, 0.7)
def writes_in_some_cases(n, x):
    history = np.zeros(5)

    def go(k, y):
        if y > 1.0:
            history[k] = y
            y = y - 1.0
        if k == 0:
            return y
        rest = go(k - 1, y * 1.7)
        if rest < 0.5:
            history[k] += rest
        return rest

    last = go(n, x)
    return history, last


@program(3, X)
def a_function_goes_through(n, x):
    def apply(f, k, y):
        return f(y) if k == 0 else apply(f, k - 1, f(y))

    return apply(lambda z: np.sin(z) * x, n, x)


@program(3, X, np.arange(16.0).reshape(4, 4) * 0.05)
def sizes_that_a_product_wants_equal(n, x, w):
    def layer(k, h):
        return h if k == 0 else layer(k - 1, np.tanh(w @ h))

    return layer(n, x)


@program(X, 5)
def a_power_of_a_matrix(x, n):
    def power(a, k):
        if k == 0:
            return np.eye(a.shape[0])
        half = power(a, k // 2)
        half = half @ half
        return half @ a if k % 2 else half

    return power(np.outer(x, x) * 0.1, n)


@program(3, X)
def strided_halves(n, x):
    def f(a):
        m = a.shape[0]
        if m <= 1:
            return a
        even, odd = f(a[::2]), f(a[1::2])
        out = np.empty(m)
        for k in range(m // 2):
            out[k] = even[k] + 0.5 * odd[k]
            out[k + m // 2] = even[k] - 0.5 * odd[k]
        return out

    return f(x) * n


@program(3, 0.5)
def a_recursion_in_a_recursion(n, x):
    def outer(k, y):
        def inner(j, z):
            return z if j == 0 else inner(j - 1, z * y)

        return inner(k, 1.0) if k == 0 else outer(k - 1, y + 1.0) + inner(k, y)

    return outer(n, x)


@program(3, 0.5)
def closures_that_call_each_other(n, x):
    def a(k, y):
        return y if k <= 0 else b(k - 1, y) + a(k - 2, y * x)

    def b(k, y):
        return y * y if k <= 0 else a(k - 1, y + x) * b(k - 2, y)

    return a(n, x) + b(n, x)


@program(2, X)
def permutations(n, x):
    best = np.zeros(1)
    y = x.copy()

    def go(k):
        if k >= n + 1:
            total = 0.0
            for i in range(len(y)):
                total += y[i] * (i + 1)
            if total > best[0]:
                best[0] = total
            return
        for i in range(k, len(y)):
            y[k], y[i] = y[i], y[k]
            go(k + 1)
            y[k], y[i] = y[i], y[k]

    go(int(0.0 * x[0]))
    return best[0], y


@program(3, 0.3)
def a_walrus(n, x):
    return x if n == 0 else (y := a_walrus(n - 1, x)) * y + x


def weighted(values, weights):
    return sum(np.sum(v * w) for v, w in zip(values, weights, strict=True))


@pytest.mark.parametrize("fn, args", PROGRAMS)
def test_programs(fn, args):
    trace = check_values(fn, *args)
    assert isinstance(trace.func, Module)
    values = [leaf.example for leaf in trace.leaves] + [capture.get() for capture in trace.captures]
    wrt = [np.asarray(v).dtype.kind == "f" for v in values]
    base = evaluate(trace.func, *values)
    real = [k for k, r in enumerate(base) if np.asarray(r).dtype.kind == "f"]
    generator = np.random.default_rng(0)
    tangents = [generator.normal(size=np.shape(v))[()] for v, moves in zip(values, wrt) if moves]
    cts = [generator.normal(size=np.shape(base[k]))[()] for k in real]
    forward = transformed(trace.func, lambda f: jvp(f, wrt))
    reverse = transformed(trace.func, lambda f: vjp(f, wrt))
    second = transformed(reverse, lambda f: jvp(f, wrt + [False] * len(cts)))
    for derived in (forward, reverse, second):
        verify(derived)

    def moved(step):
        rest = iter(tangents)
        return [v + step * next(rest) if moves else v for v, moves in zip(values, wrt)]

    def value(step):
        found = evaluate(trace.func, *moved(step))
        return weighted([found[k] for k in real], cts)

    def bars(step):
        return weighted(evaluate(reverse, *moved(step), *cts)[len(base):], tangents)

    h = 1e-6
    slope = weighted(evaluate(forward, *values, *tangents)[len(base):], cts)
    assert pytest.approx(slope, rel=1e-9, abs=1e-12) == bars(0.0)
    assert pytest.approx((value(h) - value(-h)) / (2 * h), rel=1e-5, abs=1e-7) == slope
    curved = evaluate(second, *values, *cts, *tangents)[-sum(wrt):]
    assert pytest.approx((bars(h) - bars(-h)) / (2 * h), rel=1e-4, abs=1e-5) == weighted(curved, tangents)


def test_exceptions_inside():
    def below_zero(n, x):
        if n < 0:
            raise ValueError("below zero")
        return x if n == 0 else below_zero(n - 2, x)

    def missing(n, x):
        if n == 2:
            raise KeyError("two")
        return x if n == 0 else missing(n - 1, x)

    def out_of_range(x):
        def go(k):
            return x[k] + go(k + 1) if k < 10.0 * x[0] else 0.0

        return go(int(x[2]))

    check_values(below_zero, 3, 0.7)
    check_values(missing, 4, 0.7)
    check_values(out_of_range, X)


def test_other_dtypes():
    def halves(n, x):
        return x if n == 0 else halves(n - 1, x * np.float32(0.5)) + x

    def spiral(n, x):
        return x if n == 0 else spiral(n - 1, x * x * 0.5) + 1j

    def binomial(n, k):
        return 1 if k == 0 or k == n else binomial(n - 1, k - 1) + binomial(n - 1, k)

    assert ["float32"] == [r.dtype for r in check_values(halves, 5, np.float32(0.5)).func.results]
    check_values(spiral, 5, 0.5 + 0.25j)
    check_values(binomial, 7, 3)


def test_a_view_that_is_returned_is_not_written_to():
    def f(n, x):
        def go(a, k):
            return a[1:] if k == 0 else go(a, k - 1)

        y = x.copy()
        v = go(y, n)
        v[0] = 9.0
        return np.sum(y)

    assert failure(f, 3, X).code == "E123"


def test_another_function_in_every_call():
    def f(n, x):
        def apply(f, k, y):
            return f(y) if k == 0 else apply(lambda z: f(z) * 2.0, k - 1, y)

        return apply(np.sin, n, x)

    problem = failure(f, 3, 0.5)
    assert problem.code == "E130"
    assert "`f` is a ufunc in one call and a function in another" in str(problem)


def test_static_progress_is_followed():
    def f(x, flags):
        def go(k):
            return 0.0 if k == len(flags) else (x if flags[k] else 2.0 * x) + go(k + 1)

        return go(0)

    assert not isinstance(traced(f, 0.5, (True, False, True)).func, Module)
