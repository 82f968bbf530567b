"""Functions with typed parameters are compiled when their module is imported."""

import importlib.util
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import gradsmith as gs

HEADER = """
import gradsmith as gs, numpy as np
from typing import Annotated
"""


@pytest.fixture
def module(tmp_path, caplog):
    """Import a module with this text; gives it and what was compiled meanwhile."""
    count = iter(range(100))

    def make(text, header=HEADER):
        path = tmp_path / f"typed_{next(count)}.py"
        path.write_text(header + text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        made = importlib.util.module_from_spec(spec)
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="gradsmith"):
            spec.loader.exec_module(made)
        return made, [r.getMessage() for r in caplog.records]

    return make


def compiled_types(messages):
    """The Numba types in the one record."""
    (message,) = messages
    return message[len("compiled f("):message.index(") in ")]


@pytest.mark.parametrize(("annotation", "expected"), [
    ('"f64[n]"', "array(float64, 1d, C)"),
    ('"float64[:]"', "array(float64, 1d, A)"),
    ('"float64[::1]"', "array(float64, 1d, C)"),
    ('gs.f64["n"]', "array(float64, 1d, C)"),
    ("gs.f32[3]", "array(float32, 1d, C)"),
    ('gs.f64["n,m"]', "array(float64, 2d, C)"),
    ("gs.f64[:, ::1]", "array(float64, 2d, C)"),
    ("float", "float64"), ("gs.f64", "float64"), ("int", "int64"), ("complex", "complex128"),
    ("np.float32", "float32"), ('"f32"', "float32"),
    ("np.ndarray[tuple[int, int], np.dtype[np.float32]]", "array(float32, 2d, C)"),
    ('Annotated[np.ndarray, "f64[n, 2]"]', "array(float64, 2d, C)"),
    ("tuple[float, float]", "float64, float64"),
    ('"(f64[n], f64)"', "array(float64, 1d, C), float64"),
])
def test_every_spelling(module, annotation, expected):
    body = "x[0] * x[1]" if "tuple[float" in annotation or "(f64" in annotation else "x * 2"
    _, messages = module(f"@gs.jit\ndef f(x: {annotation}):\n    return {body}\n")
    assert expected == compiled_types(messages)


def test_jaxtyping(module):
    pytest.importorskip("jaxtyping")
    _, messages = module('@gs.jit\ndef f(x: Float64[np.ndarray, "n m"], y: Float32[np.ndarray, "m"]):\n'
                         "    return x @ y\n", HEADER + "from jaxtyping import Float32, Float64\n")
    assert "array(float64, 2d, C), array(float32, 1d, C)" == compiled_types(messages)


def test_annotations_as_text(module):
    _, messages = module('@gs.jit\ndef f(x: gs.f64["n"], y: float):\n    return x * y\n',
                         "from __future__ import annotations\n" + HEADER)
    assert "array(float64, 1d, C), float64" == compiled_types(messages)


def test_without_rank_it_waits(module):
    made, messages = module("from numpy.typing import NDArray\n\n"
                            "@gs.jit\ndef f(x: NDArray[np.float64], y):\n    return x * y\n\n"
                            "@gs.jit\ndef g(x: float, y):\n    return x * y\n")
    assert [] == messages
    assert 6.0 == made.g(2.0, 3.0)


def test_calls(module):
    made, _ = module('@gs.jit\ndef f(x: gs.f64["n"], w: gs.f64["n"]):\n    return np.sum(x * w)\n')
    assert 1 == len(made.f._specialisations)
    assert 6.0 == made.f(np.ones(3), 2 * np.ones(3))
    assert 1 == len(made.f._specialisations), "what was compiled at import serves"
    assert 2.0 == made.f(np.ones(1), 2 * np.ones(1))
    assert np.float32(6.0) == made.f(np.ones(3, np.float32), 2 * np.ones(3, np.float32))
    assert 6.0 == made.f(np.ones((2, 3))[:, 0], 3 * np.ones(2))
    assert 6 == made.f(np.ones(3, int), 2 * np.ones(3, int))
    assert 4 + 1 == len(made.f._specialisations)
    with pytest.raises(ValueError, match="broadcast"):
        made.f(np.ones(3), np.ones(2))
    assert 12.0 == gs.grad(lambda x: made.f(x, x))(np.array([6.0]))[0]


def test_lengths_that_are_told(module):
    made, _ = module('@gs.jit\ndef f(x: gs.f64[3]):\n    return sum(x[k] for k in range(len(x)))\n')
    assert [3.0, 4.0, 3.0] == [made.f(np.ones(n)) for n in (3, 4, 3)]


def test_gradients_at_import(module):
    made, messages = module('def loss(x: gs.f64["n"], s: float):\n    return s * np.sum(x * x)\n\n'
                            "d_loss = gs.jit(gs.grad(loss))\n")
    assert 1 == len(messages) and messages[0].startswith("compiled loss_grad(array(float64, 1d, C), float64)")
    np.testing.assert_allclose([4.0, 4.0], made.d_loss(np.ones(2), 2.0))
    assert 1 == len(made.d_loss._specialisations)


def test_a_global_that_comes_later(module):
    made, messages = module('@gs.jit\ndef f(x: gs.f64["n"]):\n    return later(x) * scale\n\n'
                            "def later(x):\n    return x + 1\n\nscale = 3.0\n")
    assert 1 == len(messages) and "waits for its first call" in messages[0]
    np.testing.assert_array_equal([6.0, 6.0], made.f(np.ones(2)))


def test_a_function_that_calls_itself_waits_until_it_has_a_name(module):
    made, messages = module("""
@gs.jit
def power(n: int, x: float):
    return 1.0 if n == 0 else x * other(n - 1, x)

def other(n, x):
    return 1.0 if n == 0 else x * power(n - 1, x)
""")
    assert [m for m in messages if "waits for its first call: other is not defined yet" in m] == messages
    assert 8.0 == made.power(3, 2.0)
    assert 12.0 == gs.grad(made.power, argnums=1)(3, 2.0)


def test_problems_come_at_import(module):
    with pytest.raises(Exception, match=r"np\.nonsense|nonsense"):
        module('@gs.jit\ndef f(x: gs.f64["n"]):\n    return np.nonsense(x)\n')
    with pytest.raises(Exception, match=r"E5\d\d"):
        module('@gs.jit\ndef f(x: "f64[n,"):\n    return x\n')


def test_methods_wait(module):
    made, messages = module("class A:\n    @gs.jit\n    def f(self, x: float):\n        return x * 2\n")
    assert [] == messages and 4.0 == made.A().f(2.0)


def test_from_the_cache_in_the_second_process(tmp_path):
    path = tmp_path / "typed.py"
    path.write_text(HEADER + '@gs.jit\ndef f(x: gs.f64["n"]):\n    return np.sum(x)\n\nprint(gs.explain_cache())\n')
    env = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (subprocess.run([sys.executable, str(path)], env=env, text=True, capture_output=True,
                                    check=True).stdout for _ in range(2))
    assert "loaded: 0, compiled: 1" in first and "loaded: 1, compiled: 0" in second
