"""An exception that only some runs raise is not caught by the function, nor followed by effects of a `finally`."""

import linecache
import math

import numpy as np
import pytest
from loose import check_values
from tracing import failure

from gradsmith.transpiler.ir.registry import OPERATIONS

K = np.array([[2.0, 0.5], [0.5, 3.0]])
LINALG = np.linalg.LinAlgError


def try_to(body, end):
    """A function of a matrix that tries this and has this for a handler or a `finally`."""
    text = f"def f(K):\n    x = K[0, 0].item()\n    try:\n        {body}\n    {end}\n    return y\n"
    file = f"<{body} {end}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"np": np, "math": math, "LINALG": LINALG, "inverse": inverse, "countdown": countdown}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def inverse(K):
    return np.linalg.inv(K)


def countdown(x):
    return 0.0 if x <= 0 else 1.0 + countdown(x - 1.0)


@pytest.mark.parametrize("body, kinds", [
    ("y = np.linalg.cholesky(K)", "LINALG"), ("y = np.linalg.cholesky(K)", "ValueError"),
    ("y = np.linalg.inv(K)", "(KeyError, (LINALG,))"), ("y = np.linalg.solve(K, K[0])", "Exception"),
    ("y = np.linalg.eigvalsh(K)", "LINALG"), ("y = np.linalg.svd(K)[1]", "LINALG"),
    ("y = np.linalg.pinv(K)", "LINALG"), ("y = 1.0 / x", "ZeroDivisionError"),
    ("y = 1.0 / x", "ArithmeticError"), ("y = math.log(x)", "ValueError"), ("y = K[0][int(x)]", "IndexError"),
    ("y = K[0][int(x)]", "LookupError"), ("y = countdown(x)", "RecursionError"),
    ("y = K if x < 0.0 else np.linalg.inv(K)", "LINALG"), ("y = np.linalg.inv(K); raise KeyError", "LINALG"),
    ("y = np.linalg.inv(K); raise KeyError", "(KeyError, LINALG)"), ("y = x; assert x > 0.0", "AssertionError"),
])
def test_what_some_runs_raise_is_not_caught(body, kinds):
    problem = failure(try_to(body, f"except {kinds}: y = 0.0"), K)
    assert ("E110", "an exception that is raised in some runs only is caught inside the function", 4) == (
        problem.code, problem.message, problem.location.line)


def test_what_a_called_function_raises_is_shown_there():
    problem = failure(try_to("y = inverse(K)", "except LINALG: y = K"), K)
    assert "E110" == problem.code
    assert problem.location.file == __file__


def test_a_bare_except():
    assert "E110" == failure(try_to("y = np.linalg.inv(K)", "except: y = K"), K).code


@pytest.mark.parametrize("body, kinds", [
    ("y = np.linalg.inv(K)", "KeyError"), ("y = np.linalg.inv(K)", "(ZeroDivisionError, IndexError)"),
    ("y = np.linalg.det(K)", "LINALG"), ("y = np.linalg.slogdet(K)[1]", "LINALG"), ("y = np.linalg.qr(K)[1]", "LINALG"),
    ("y = np.sin(K)", "Exception"), ("y = x / 2.0", "ZeroDivisionError"), ("y = K[0][1]", "IndexError"),
    ("y = 1.0 / x", "ValueError"), ("y = K[0][5]", "IndexError"), ("y = K @ np.ones(7)", "ValueError"),
    ("y = np.linalg.inv(np.zeros((2, 2)))", "LINALG"), ("y = np.linalg.inv(K); raise KeyError", "KeyError"),
])
def test_other_handlers_stay(body, kinds):
    check_values(try_to(body, f"except {kinds}: y = 5.0"), K)


def test_an_exception_class_of_the_users_own_is_told_by_it():
    class Mine(ValueError):
        pass

    class Other(ValueError):
        pass

    def f(x):
        try:
            if x > 0:
                raise Mine("mine")
        except Other:
            return 1.0
        return x

    check_values(f, -1.0)


def test_a_loop_is_tried_in_every_trip():
    def f(K):
        total = 0.0
        for k in range(K.shape[0]):
            try:
                total = total + np.sum(np.linalg.inv(K * k))
            except LINALG:
                total = -1.0
        return total

    assert "E110" == failure(f, K).code


@pytest.mark.parametrize("end", [
    "finally: print('done')", "finally: K[0, 0] = 5.0", "finally: return 1.0",
])
def test_a_finally_with_effects_after_what_some_runs_raise(end):
    problem = failure(try_to("y = np.sum(np.linalg.inv(K)) + 1.0 / x", end), K)
    assert ("E110", 4) == (problem.code, problem.location.line)
    assert "`finally`" in problem.message


@pytest.mark.parametrize("body, end", [
    ("y = np.linalg.inv(K)", "finally: x = 2.0"), ("y = np.sin(K)", "finally: return np.cos(K)"),
    ("y = 1.0 / x", "finally: z = K.copy(); z[0] = x"), ("y = np.sin(K)", "finally: y = np.linalg.inv(K)"),
])
def test_a_finally_of_other_kinds(body, end):
    check_values(try_to(body, end), K)


def test_which_operations_raise():
    raising = {name for name, op in OPERATIONS.items() if getattr(op, "raises", None) is not None}
    assert {"inv", "solve", "cholesky", "eigh", "svd"} <= raising
    assert not raising & {"det", "qr", "matmul", "sin"}
    assert all(OPERATIONS[name].raises is LINALG for name in raising)
