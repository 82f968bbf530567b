"""`if` on run-time values: arms merged, early returns, short circuits, exceptions, and what is refused."""

import dataclasses

import numpy as np
import pytest
from loose import check_values
from tracing import failure

from gradsmith.transpiler.ir.nodes import Check, If
from gradsmith.transpiler.ir.walk import all_statements

V = np.array([1.0, 2.0, 3.0])


def count(trace, kind):
    return sum(isinstance(stmt, kind) for stmt in all_statements(trace.func.body))


@pytest.mark.parametrize("x", [1.0, -1.0, 0.0])
def test_a_variable_of_either_arm(x):
    def f(x):
        if x > 0:
            y = x * 2
        else:
            y = 3
        return y + 1

    check_values(f, x)


@pytest.mark.parametrize("x", [2.0, -1.0])
def test_early_return(x):
    def f(x):
        if x >= 0:
            return x * x
        return 0.0

    assert count(check_values(f, x), If) == 1


@pytest.mark.parametrize("x", [1.0, -0.5, -2.0])
def test_arrays_written_in_arms(x):
    def f(x, v):
        y = np.zeros(3)
        if x > 0 and v[0] < 5:
            y[0] = x
            z = 1.5
        elif x < -1:
            y[1] = v[1]
            z = 2
        else:
            z = v[2]
            y = y + 1.0
        y[2] = 7.0
        return y, z

    check_values(f, x, V)


@pytest.mark.parametrize("x", [2.0, -1.0, 0.5])
def test_a_variable_that_one_arm_sets(x):
    def f(x):
        if x > 0:
            t = 1.0
        if x > 1 or x < 0:
            return t
        return x

    trace = check_values(f, x)
    assert count(trace, Check) == 1


@pytest.mark.parametrize("x", [2.0, 0.5, -1.0])
def test_an_exception_in_an_arm(x):
    def f(x):
        if x < 0:
            raise ValueError("negative")
        assert x < 3, "too large"
        return np.sqrt(x) if x > 1 else -x

    check_values(f, x)


@pytest.mark.parametrize("x", [2.0, 0.5, -2.0])
@pytest.mark.parametrize("w", [1.0, -1.0])
def test_return_out_of_nested_arms(x, w):
    def f(x, v):
        s = 0.0
        if x > 0:
            s += 1
            if x > 1:
                if v[0] > 0:
                    return s * v
                s += 2
            s *= 3
        s += 5
        return v + s

    check_values(f, x, np.array([w, 2.0]))


@dataclasses.dataclass
class Box:
    a: float
    b: np.ndarray


@pytest.mark.parametrize("x", [0.5, -1.0, 1.0, 2.0])
def test_containers(x):
    def f(x, box):
        a, d = [1.0, x], {"p": x}
        own = Box(x, box.b * 2.0)
        if x > 0:
            a[0] = x
            own.a = 5.0
        if x > 1:
            d["p"] = d["p"] * 2
            pair = (x, list(a))
        else:
            pair = (1.0, [3.0, x])
        return a, d, pair, own.a, own.b, not x > 0, 0 < x < 2, x in (1.0, 2.0), any([x > 0, x < -3])

    check_values(f, x, Box(1.0, V))


@pytest.mark.parametrize("n", [1, 5])
def test_int_arguments_stay_run_time_values(n):
    def f(x, n):
        if n > 2:
            return x
        return x * n

    assert check_values(f, 1.0, n).static_args == ()


def test_short_circuit():
    def f(x, i):
        return i < 3 and x[i] > 1.0, i >= 3 or x[i] > 1.0

    for i in (0, 2, 3, 7):
        check_values(f, V, i)


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_functions_called_in_arms(x):
    def g(y, x):
        y[0] = x
        return y * 2 if x > 0 else y

    def f(x):
        total = 0.0

        def add(value):
            nonlocal total
            total += value

        y = np.zeros(2)
        if x > 0:
            add(x)
            z = g(y, x)
        else:
            z = g(y, -x)
        return total, y, z

    check_values(f, x)


def test_many_branches_stay_linear():
    body = "\n".join(f"    if x > {k}.5:\n        return x * {k}\n    if x < -{k}.5:\n        s += x" for k in range(25))
    text = f"def f(x):\n    s = 1.0\n{body}\n    return s\n"
    import linecache
    linecache.cache["<many>"] = (len(text), None, text.splitlines(keepends=True), "<many>")
    namespace = {}
    exec(compile(text, "<many>", "exec"), namespace)
    for x in (0.1, 3.7, -8.2):
        trace = check_values(namespace["f"], x)
    assert sum(1 for _ in all_statements(trace.func.body)) < 600


def test_an_array_that_may_be_two_arrays():
    def reads(x, v):
        a, b = v * 1.0, v * 2.0
        c = a if x > 0 else b
        return c + a

    def writes(x, v):
        a, b = v * 1.0, v * 2.0
        c = a if x > 0 else b
        c[0] = 5.0
        return a, b

    def reads_late(x, v):
        a, b = v * 1.0, v * 2.0
        c = a if x > 0 else b
        a[0] = 5.0
        return c

    def owned(x, v):
        c = v * 1.0 if x > 0 else v * 2.0
        c[0] = 5.0
        return c

    for x in (1.0, -1.0):
        check_values(reads, x, V)
        check_values(owned, x, V)
    assert failure(writes, 1.0, V).code == "E123"
    assert failure(reads_late, 1.0, V).code == "E123"


def test_arms_that_do_not_fit():
    def shapes(x, v):
        y = np.zeros(2) if x > 0 else np.zeros(3)
        return y

    def kinds(x, v):
        if x > 0:
            y = 1.0
        else:
            y = "text"
        return y

    def unread(x, v):
        if x > 0:
            y = 1.0
        else:
            y = "text"
        y = 2.0
        return y

    assert failure(shapes, 1.0, V).code == "E121"
    assert failure(kinds, 1.0, V).code == "E121"
    assert "`y` may be" in failure(kinds, 1.0, V).message
    check_values(unread, 1.0, V)


def test_an_exception_of_some_runs_is_not_caught_inside():
    def f(x):
        try:
            if x > 0:
                raise ValueError
        except ValueError:
            return 1.0
        return x

    assert failure(f, 1.0).code == "E110"
