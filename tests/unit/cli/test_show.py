"""`gradsmith show`: every stage can be seen."""

import pytest
from commands import gradsmith, write

from gradsmith.transpiler import pipeline
from gradsmith.transpiler.ir.parse import parse


@pytest.fixture(autouse=True)
def model():
    write("model.py", """
        import numpy as np

        def f(x):
            return np.sum(np.sin(x) * x)
    """)


def test_the_source_is_what_build_writes():
    shown = gradsmith("show", "model.py:f", "--sig", "f64[n]").stdout
    assert gradsmith("build", "model.py:f", "--sig", "f64[n]").stdout == shown


@pytest.mark.parametrize("stage", ["traced", *pipeline.NAMES])
def test_ir_reads_back(stage):
    text = gradsmith("show", "model.py:f", "--sig", "f64[n]", "--at", stage).stdout
    assert text.startswith("func f_grad(x: f64[n]) -> (d_x: f64[n]) where n >= 0:\n")
    assert "f_grad" == parse(text).name


def test_locations():
    text = gradsmith("show", "model.py:f", "--sig", "f64[n]", "--at", "traced", "--locations").stdout
    assert "# model.py:4" in text


def test_stablehlo():
    text = gradsmith("show", "model.py:f", "--sig", "f64[5]", "--at", "stablehlo").stdout
    assert text.startswith("module @f_grad {")
    assert "stablehlo.cosine" in text
    assert "tensor<5xf64>" in text


def test_recursion_at_every_stage():
    write("model.py", """
        import numpy as np

        def f(n: "i64", x: "f64"):
            return x if n <= 0 else x * f(n - 1, np.sin(x))
    """)
    for stage in ("traced", *(stage.name for stage in pipeline.STAGES)):
        assert 2 == gradsmith("show", "model.py:f", "-t", "jit", "--at", stage).stdout.count("func f")
    refused = gradsmith("show", "model.py:f", "-t", "jit", "--at", "stablehlo", status=1).stderr
    assert "E207" in refused and "StableHLO" in refused


def test_colours_when_they_are_forced(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in gradsmith("show", "model.py:f", "--sig", "f64[n]").stdout
    assert "\x1b[" in gradsmith("show", "model.py:g", "--sig", "f64[n]", status=1).stderr


def test_loops_raised_and_kept():
    write("loops.py", """
        def f(x):
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i] * x[i]
            for i in range(x.shape[0]):
                s = s * s + x[i]
            return s
    """)
    done = gradsmith("show", "loops.py:f", "--sig", "f64[9]", "-t", "jit", "--at", "raise")
    assert "sum(" in done.stdout
    assert 1 == done.stdout.count(" = for ")
    assert ["loops.py:3:5: loop raised",
            "loops.py:5:5: loop kept: each trip needs what the trips before have made of `s`"] == (
                done.stderr.strip().splitlines())
