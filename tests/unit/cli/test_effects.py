"""Built modules of functions that write to their arguments."""

import importlib.util
import inspect
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from gradsmith.cli.main import app
from gradsmith.kernels import sharing
from gradsmith.transpiler.emit.standalone import FUNCTIONS

SOURCE = '''
import numpy as np


def relax(x, y):
    x[0] = 10.0
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + y[i]


def advance(state, dt):
    state["x"] += dt * state["v"]
    return state["x"].sum()
'''


@pytest.fixture
def built(tmp_path, monkeypatch):
    def build(name, signature, *options, transform="jit"):
        (tmp_path / "model.py").write_text(SOURCE)
        monkeypatch.chdir(tmp_path)
        out = tmp_path / "made.py"
        done = CliRunner().invoke(app, ["build", f"model.py:{name}", "-t", transform, "--sig", signature, "-o", str(out),
                                        *options])
        assert done.exit_code == 0, done.output
        spec = importlib.util.spec_from_file_location("made", out)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        suffix = re.sub(r"\W", " ", transform).split()[::-1]
        return getattr(module, "_".join([name, *suffix]))

    return build


@pytest.mark.parametrize("options", [(), ("--standalone",), ("--parallel",)], ids=str)
def test_a_function_that_returns_nothing(built, options):
    relax = built("relax", "f64[n], f64[n]", *options)
    x, y = np.zeros(4), np.ones(4)
    assert relax(x, y) is None
    np.testing.assert_array_equal([10.0, 6.0, 4.0, 3.0], x)
    wide = np.zeros((4, 2))
    relax(wide[:, 1], y)
    np.testing.assert_array_equal(x, wide[:, 1])
    for args in ((x, x), (x[1:], x[:-1]), (np.lib.stride_tricks.as_strided(x, (4,), (0,)), y)):
        with pytest.raises(ValueError, match="share no memory"):
            relax(*args)


def test_containers(built):
    advance = built("advance", "{x: f64[n], v: f64[n]}, f64")
    state = {"x": np.zeros(2), "v": np.array([1.0, 2.0])}
    assert advance(state, 0.5) == 1.5
    np.testing.assert_array_equal([0.5, 1.0], state["x"])


def test_standalone_text_is_that_of_the_kernels():
    for name, text in FUNCTIONS.items():
        kernel = inspect.getsource(getattr(sharing, name).py_func)
        plain = re.sub(r": Any|(?<=\)) -> bool", "", kernel)
        assert text == plain.rstrip("\n")


def test_functional_and_its_derivative(built):
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])
    relax = built("relax", "f64[n], f64[n]", transform="functional")
    nothing, written = relax(x, y)
    assert nothing is None
    np.testing.assert_array_equal([10.0, 6.0, 5.0], written["x"])
    np.testing.assert_array_equal([1.0, 2.0, 3.0], x)
    pull = built("relax", "f64[n], f64[n]", transform="vjp(functional)")
    (_, written), (d_x, d_y) = pull(x, y, (None, {"x": np.ones(3)}))
    np.testing.assert_array_equal([10.0, 6.0, 5.0], written["x"])
    np.testing.assert_array_equal([0.0, 0.0, 0.0], d_x)
    np.testing.assert_array_equal([0.0, 1.5, 1.0], d_y)
