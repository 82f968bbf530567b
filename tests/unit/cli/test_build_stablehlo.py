"""`gradsmith build --target stablehlo`: modules that XLA runs, the same everywhere, and what is refused."""

from __future__ import annotations

import os

import numpy as np
import pytest
from commands import gradsmith, write

MODEL = """
    import numpy as np

    RATE = 0.5

    def loss(w, x):
        return np.mean(np.tanh(x @ w) ** 2) * RATE

    def tree(params, x):
        return np.sum((x @ params["w"] + params["b"]) ** 2)

    def pick(x, i):
        return x[i] ** 2

    def size(x, n):
        return np.sum(np.zeros(n) + x)

    def wide(x):
        return np.sum(x) * np.float64(2.0)
"""


@pytest.fixture(autouse=True)
def model():
    return write("model.py", MODEL)


def built(name, *options):
    return gradsmith("build", f"model.py:{name}", "--target", "stablehlo", *options).stdout


def run(text, *arrays):
    pytest.importorskip("jax")
    from gradsmith import xla
    return xla.run(text, *arrays)


@pytest.mark.xla
def test_a_gradient_is_written_and_runs():
    gradsmith("build", "model.py:loss", "--target", "stablehlo", "--sig", "f32[4,3], f32[5,4]", "-o", "deep/f.mlir")
    with open("deep/f.mlir") as file:
        text = file.read()
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(4, 3)).astype("float32"), rng.normal(size=(5, 4)).astype("float32")
    t = np.tanh(x @ w)
    (found,) = run(text, w, x)
    np.testing.assert_allclose(found, x.T @ (t * (1 - t * t)) / t.size, rtol=1e-5)
    assert 'loc("model.py":' in text and os.getcwd() not in text
    gradsmith("build", "model.py:loss", "--target", "stablehlo", "--sig", "f32[4,3], f32[5,4]", "-o", "deep/f.mlir",
              "--check")


@pytest.mark.xla
def test_trees_and_chains_of_transforms():
    text = built("tree", "--sig", "{w: f64[2,2], b: f64[2]}, f64[3,2]")
    assert "jax.result_info = \"result['b']\"" in text
    d_w, d_b = run(text, np.eye(2), np.zeros(2), np.ones((3, 2)))
    np.testing.assert_allclose(d_b, [6.0, 6.0])
    np.testing.assert_allclose(d_w, np.full((2, 2), 6.0))
    (jvp,) = run(built("pick", "--transform", "vmap(grad, in_axes=(0, None))", "--sig", "f64[2,3], i64"),
                 np.arange(6.0).reshape(2, 3), np.int64(2))
    np.testing.assert_allclose(jvp, [[0, 0, 4.0], [0, 0, 10.0]])


@pytest.mark.xla
def test_the_error_flag():
    text = built("pick", "--checked", "--sig", "f64[3], i64")
    assert [run(text, np.ones(3), np.int64(i))[1] for i in (2, 3)] == [0, 1]


def test_a_fixed_argument_is_no_parameter():
    assert "%n" not in built("size", "--sig", "f64[3]", "--static", "n=3")


def test_what_a_table_lists():
    write("pyproject.toml", """
        [tool.gradsmith]
        build = [{ function = "model.py:loss", sig = "f32[4,3], f32[5,4]", target = "stablehlo", output = "f.mlir" }]
    """)
    gradsmith("build")
    with open("f.mlir") as file:
        assert file.read() == built("loss", "--sig", "f32[4,3], f32[5,4]")


def test_half_precision_in_the_signature():
    text = built("loss", "--transform", "vjp", "--sig", "bf16[4,3], bf16[5,4]")
    assert "%w: tensor<4x3xbf16>" in text and "%ct: tensor<bf16>" in text and "module @loss_vjp" in text
    assert "-> (tensor<bf16> " in text
    assert "bf16" not in built("loss", "--sig", "bf16[4,3], f16[5,4]", "--cast", "f32")


@pytest.mark.parametrize("options, message", [
    (("--target", "stablehlo", "--sig", "f64[3], i64"), 'fix it, and leave it out of the signature: --static'),
    (("--target", "stablehlo", "--sig", "f64[3], i64", "--parallel"), "--parallel is for Python"),
    (("--target", "stable", "--sig", "f64[3], i64"), "there is no such target"),
    (("--checked", "--sig", "f64[3], i64"), "--checked is for StableHLO"),
    (("--target", "stablehlo", "--cast", "f8", "--sig", "f64[3], i64"), "--cast f8: floats cannot become that"),
])
def test_what_is_refused(options, message):
    assert message in gradsmith("build", "model.py:size", *options, status=1).stderr


def test_a_size_that_is_not_given():
    said = gradsmith("build", "model.py:tree", "--target", "stablehlo", "--sig", "{w: f64[n,2], b: f64[2]}, f64[3,:]",
                     status=1).stderr
    assert "`params` is {w: f64[n,2], b: f64[2]}" in said
    assert 'give `params` sizes in the signature: --sig "{w: f64[128,2], b: f64[2]}, f64[3,128]"' in said


@pytest.mark.parametrize("name, sig, message", [
    ("loss", "f64[4,3], f64[5,4]", "a TPU has no float64, and `w` is f64[4,3]"),
    ("wide", "f32[4]", "a TPU has no float64, and a value here is f64"),
])
def test_float64_for_a_tpu(name, sig, message):
    said = gradsmith("build", f"model.py:{name}", "--target", "tpu", "--transform", "jit", "--sig", sig, status=1).stderr
    assert message in said and "--cast f32" in said


@pytest.mark.xla
def test_a_module_for_a_tpu_is_compiled_for_one():
    pytest.importorskip("libtpu")
    import subprocess
    import sys
    done = subprocess.run([sys.executable, "-m", "gradsmith.cli", "build", "model.py:loss", "--target", "tpu", "--sig",
                           "f32[8,4], f32[16,8]", "-o", "f.mlir"], capture_output=True, text=True, check=True)
    assert "compiled for TPU v5e:2x2: " in done.stderr and "flops" in done.stderr
    assert os.path.exists("f.mlir")


def test_an_element_loop_is_a_warning_on_a_tpu(monkeypatch, capsys):
    from gradsmith.cli.generate import HloOptions, request_for
    from gradsmith.cli.hlo import stablehlo_text

    def slow(x):
        s = np.float32(0.0)
        for i in range(x.shape[0]):
            s = s * s + x[i]
        return s

    for machine, warned in (("tpu", 1), ("stablehlo", 0)):
        stablehlo_text(request_for(slow, "slow", (), "f32[9]", hlo=HloOptions(machine=machine)))
        assert warned == capsys.readouterr().err.count("loop kept: each trip needs what the trips before have made of")
