"""`gradsmith build` without arguments: what the project lists, and only what changed."""

from pathlib import Path

import pytest
from commands import gradsmith, write


@pytest.fixture(autouse=True)
def project(own_folder):
    write("pyproject.toml", """
        [project]
        name = "example"

        [tool.gradsmith]
        build = [
            { function = "model.py:f", transform = "grad", sig = "f64[n]", output = "generated/f_grad.py" },
            { function = "model:g", transform = "value_and_grad", sig = "f64", output = "g.py", standalone = true },
        ]
    """)
    write("constants.py", "POWER = 3\n")
    write("model.py", """
        import numpy as np
        from constants import POWER

        def f(x):
            return np.sum(x ** POWER)

        def g(x):
            return x * x
    """)


def test_all_are_built_and_then_none():
    assert "2 built, 0 unchanged\n" == gradsmith("build").stderr
    assert "def f_grad(x):" in Path("generated/f_grad.py").read_text()
    assert "def g_value_and_grad(x):" in Path("g.py").read_text()
    assert "0 built, 2 unchanged\n" == gradsmith("build").stderr


def test_a_changed_neighbour_counts():
    gradsmith("build")
    write("constants.py", "POWER = 4\n")
    assert "1 built, 1 unchanged\n" == gradsmith("build").stderr
    assert "4" in Path("generated/f_grad.py").read_text()


def test_a_changed_output_is_put_right():
    gradsmith("build")
    before = Path("g.py").read_text()
    Path("g.py").write_text("broken")
    assert "1 built, 1 unchanged\n" == gradsmith("build").stderr
    assert before == Path("g.py").read_text()


def test_a_changed_entry_counts():
    gradsmith("build")
    table = Path("pyproject.toml")
    table.write_text(table.read_text().replace("standalone = true", "name = \"h\""))
    assert "1 built, 1 unchanged\n" == gradsmith("build").stderr
    assert "def h(x):" in Path("g.py").read_text()


def test_from_a_folder_below(monkeypatch):
    Path("below/further").mkdir(parents=True)
    monkeypatch.chdir("below/further")
    gradsmith("build")
    assert Path("../../g.py").is_file()


def test_force_builds_and_writes_all():
    gradsmith("build")
    before = Path("g.py").stat().st_ino
    assert "2 built, 0 unchanged\n" == gradsmith("build", "--force").stderr
    assert before != Path("g.py").stat().st_ino


def test_check_writes_nothing():
    assert "0 up to date, 2 out of date or failed" in gradsmith("build", "--check", status=1).stderr
    assert not Path("g.py").exists()
    gradsmith("build")
    gradsmith("build", "--check")


def test_without_a_cache_everything_is_built(monkeypatch, own_folder):
    write("occupied", "a file")
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(own_folder / "occupied"))
    result = gradsmith("build")
    assert "2 built" in result.stderr
    assert "not remembered" in result.stderr
    assert "0 built, 2 unchanged" in gradsmith("build").stderr


def test_a_failure_does_not_stop_the_others():
    write("model.py", """
        def g(x):
            return x * x
    """)
    result = gradsmith("build", status=1)
    assert "error[E504]: model.py has no function `f`" in result.stderr
    assert result.stderr.startswith("pyproject.toml:6: generated/f_grad.py cannot be built\n")
    assert "1 built, 0 unchanged, 1 failed" in result.stderr
    assert Path("g.py").is_file()


def test_advice_speaks_of_the_table():
    table = Path("pyproject.toml")
    table.write_text(table.read_text().replace('sig = "f64[n]", ', ""))
    assert 'give them in order: sig = "f64[n], f64"' in gradsmith("build", status=1).stderr
