"""What calls from Python say when an argument cannot be differentiated, or the call is not one that Python would take."""

import functools
import re

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.transpiler.error_codes import ERROR_CODES
from gradsmith.transpiler.errors import TranspileError


def square(x, power=2):
    return x**power


def product(p):
    return p["n"] * p["w"][1]


class Model:
    def loss(self, x):
        return x * x


def factorial(n):
    return n * factorial(n - 1) if n > 1 else 1.0


def problem_of(call):
    with pytest.raises(TranspileError) as caught:
        call()
    return caught.value.problems[0], caught.value


@pytest.mark.parametrize("transform", [gs.grad, gs.value_and_grad, gs.jacrev, gs.jacfwd])
def test_a_call_without_its_argument_fails_as_in_python(transform):
    problem, raised = problem_of(lambda: transform(square)())
    assert ("E118", "square() missing 1 required positional argument: 'x'") == (problem.code, problem.message)
    assert isinstance(raised, TypeError)
    problem, _ = problem_of(lambda: transform(square)(1.0, y=2.0))
    assert ("E118", "square() got an unexpected keyword argument 'y'") == (problem.code, problem.message)


def test_argnums_out_of_range():
    problem, _ = problem_of(lambda: gs.grad(square, argnums=1)(1.0))
    assert ("E402", None) == (problem.code, problem.location)


@pytest.mark.parametrize("value, leaf, advice", [
    ({"n": 1, "w": (1.0, 2.0)}, "p['n']", "pass a float"),
    ({"n": 1.0, "w": [2.0, np.arange(3)]}, "p['w'][1]", ".astype(float)"),
    ({"n": 1.0, "w": [2.0, "a"]}, "p['w'][1]", "closure"),
])
def test_the_leaf_is_named(value, leaf, advice):
    problem, _ = problem_of(lambda: gs.grad(product)(value))
    assert "E401" == problem.code
    assert f"grad with respect to {leaf}, which is" in problem.message
    assert advice in problem.help


@pytest.mark.parametrize("value", ["a", True, np.array([True]), object()])
def test_what_is_no_number_is_left_out(value):
    problem, _ = problem_of(lambda: gs.grad(square)(value))
    assert "leave x out of argnums" in problem.help
    assert "astype" not in problem.help


def test_a_method_by_keyword():
    assert 6.0 == gs.grad(Model().loss)(x=3.0)


def rising(n, x):
    return rising(n + 1, x) if n > 0 else rising(n - 1, x)


def wrapped(n, x):
    return 0.0 if n == 0 else wrapped(n - 1, (x, x))


def test_recursion_says_how_to_end_it():
    assert 120.0 == gs.jit(factorial)(5.0) == gs.jit(factorial, static_argnums=0)(5)
    problem, raised = problem_of(lambda: gs.jit(rising)(5, 1.0))
    assert "E125" == problem.code
    assert isinstance(raised, RecursionError)
    assert "return without a recursive call" in problem.help
    problem, _ = problem_of(lambda: gs.jit(wrapped)(5, 1.0))
    assert "E130" == problem.code
    assert "the arguments of `wrapped` do not settle" in problem.message
    assert "the first call is at " in problem.label


def test_no_advice_names_what_does_not_exist():
    for entry in ERROR_CODES.values():
        named = re.findall(r"\bgradsmith\.([a-z_]+)", entry.explanation) + re.findall(r"\bcustom_\w+", entry.explanation)
        assert all(hasattr(gs, name) for name in named), entry.code
    problem, _ = problem_of(lambda: gs.grad(lambda x: functools.cmp_to_key(x))(1.0))
    assert "custom_" not in (problem.help or "")
