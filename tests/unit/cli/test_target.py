"""Targets are imported once, with their neighbours, and leave nothing behind."""

import sys

import pytest
from commands import gradsmith, write

from gradsmith.cli.target import opened
from gradsmith.transpiler.errors import TranspileError


def test_a_file_sees_its_neighbours_and_is_forgotten():
    write("apart/neighbour.py", "FACTOR = 3.0\n")
    write("apart/model.py", """
        from neighbour import FACTOR

        def f(x):
            return FACTOR * x
    """)
    path = list(sys.path)
    with opened("apart/model.py:f") as target:
        assert 6.0 == target.function(2.0)
        assert "model.py:f" == target.shown
        assert {"model.py", "neighbour.py"} == {file.name for file in target.files}
    assert not {"model", "neighbour", "target_model"} & set(sys.modules)
    assert path == sys.path


def test_a_file_is_run_once_even_if_a_neighbour_imports_it():
    write("model.py", """
        with open("count.txt", "a") as log:
            log.write("run\\n")
        import neighbour

        def f(x):
            return x
    """)
    write("neighbour.py", "import model\n")
    with opened("model.py:f"):
        pass
    assert "run\n" == open("count.txt").read()


def test_a_file_in_a_package_may_import_relatively():
    write("package/__init__.py", "")
    write("package/part.py", "FACTOR = 2.0\n")
    write("package/model.py", """
        from .part import FACTOR

        class Scaled:
            @staticmethod
            def f(x):
                return FACTOR * x
    """)
    for text in ("package/model.py:Scaled.f", "package.model:Scaled.f"):
        with opened(text) as target:
            assert 4.0 == target.function(2.0)
            assert "f" == target.name


def test_dataclasses_in_a_file():
    write("model.py", """
        from __future__ import annotations
        from dataclasses import dataclass

        @dataclass
        class Point:
            x: float

        def f(x):
            return Point(x).x ** 2
    """)
    assert "2.0" in gradsmith("build", "model.py:f", "--sig", "f64").stdout


def test_a_file_called_as_a_module_of_the_standard_library():
    write("random.py", "def f(x):\n    return x * x\n")
    with opened("random.py:f") as target:
        assert 9.0 == target.function(3.0)
    import random
    assert hasattr(random, "uniform")


def test_what_a_file_prints_does_not_mix_with_the_output():
    write("model.py", """
        print("hello from the model")

        def f(x):
            return x * x
    """)
    result = gradsmith("build", "model.py:f", "--sig", "f64")
    assert "hello" not in result.stdout
    assert "hello" in result.stderr


def test_a_compiled_function_is_a_target():
    write("model.py", """
        import gradsmith

        @gradsmith.jit
        def f(x):
            return x * x
    """)
    assert "def f_grad(x):" in gradsmith("build", "model.py:f", "--sig", "f64").stdout


@pytest.mark.parametrize("text", ["model.py", "model.py:", ":f", "model.py:f()", "a-b:f", "model.py:f.1"])
def test_texts_that_are_no_targets(text):
    with pytest.raises(TranspileError) as caught, opened(text):
        pass
    assert "E504" == caught.value.code


def test_the_line_shown_is_the_users():
    write("model.py", """
        import numpy as np

        TABLE = np.broadcast_shapes((2,), (3,))
    """)
    with pytest.raises(TranspileError) as caught, opened("model.py:f"):
        pass
    assert "E505" == caught.value.code
    assert "TABLE" in caught.value.location.source_line
