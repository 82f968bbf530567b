"""Recursive functions on the command line: modules with several functions, in plain Python and alone, too."""

import numpy as np
import pytest
from commands import gradsmith, load, plain, write

MODEL = """
    import numpy as np

    def weave(n: int, x: float):
        if n < 2:
            return x
        return weave(n - 1, x) * np.cos(weave(n - 2, x))

    def left(n: int, x: float):
        return x if n <= 0 else right(n - 1, x * 1.5) + left(n - 2, x)

    def right(n, x):
        return x * x if n <= 0 else left(n - 1, x + 1.0) - right(n - 2, x)
"""


def weave(n, x):
    return x if n < 2 else weave(n - 1, x) * np.cos(weave(n - 2, x))


def slope(n, x, h=1e-6):
    return (weave(n, x + h) - weave(n, x - h)) / (2 * h)


@pytest.fixture(autouse=True)
def model():
    return write("model.py", MODEL)


@pytest.mark.parametrize("options", [(), ("--standalone",), ("--parallel",)])
def test_build(options):
    text = gradsmith("build", "model.py:weave", "--transform", "grad(argnums=1)", *options).stdout
    module = plain(text)
    for n in (0, 1, 2, 6):
        assert pytest.approx(slope(n, 0.7), rel=1e-8) == module["weave_grad"](n, 0.7)
    assert "def weave_vjp(depth, n, x, ct):" in text
    with pytest.raises(RecursionError):
        module["weave_grad"](5000, 0.7)


def test_a_built_module_is_compiled():
    gradsmith("build", "model.py:weave", "--transform", "grad(argnums=1)", "-o", "weave_grad.py")
    assert pytest.approx(slope(6, 0.7), rel=1e-8) == load("weave_grad.py").weave_grad(6, 0.7)


def test_funcs_that_call_each_other_are_one_function():
    text = gradsmith("build", "model.py:left", "--transform", "jit").stdout
    assert 2 == text.count("\ndef ")
    assert pytest.approx(_left(6, 0.7)) == plain(text)["left_jit"](6, 0.7)


def _left(n, x):
    return x if n <= 0 else _right(n - 1, x * 1.5) + _left(n - 2, x)


def _right(n, x):
    return x * x if n <= 0 else _left(n - 1, x + 1.0) - _right(n - 2, x)


def test_show_and_stablehlo():
    shown = gradsmith("show", "model.py:weave", "--transform", "grad(argnums=1)", "--at", "traced").stdout
    assert "call weave_vjp(" in shown
    refused = gradsmith("show", "model.py:weave", "--transform", "jit", "--at", "stablehlo", status=1)
    assert "`weave` calls itself as often as its values say, which StableHLO has no form for" in refused.output
    assert "weave(n - 1" in refused.output


def test_check():
    assert "comparisons agree" in gradsmith("check", "model.py:weave", "--argnums", "1").stdout
