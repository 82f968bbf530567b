"""The examples run, at their smallest size, and say what they should."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(tmp_path, *words):
    """An example's output, in a pipe, with a cache of its own."""
    environment = os.environ | {"GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_main_job(tmp_path):
    text = run(tmp_path, str(EXAMPLES / "run.py"), "--steps", "200", "--out", str(tmp_path))
    assert "def loss_value_and_grad(w, b, x, y" in text
    assert "\x1b[" not in text  # no colours in a pipe
    assert float(re.search(r"accuracy (\S+)% in training", text)[1]) > 90
    assert float(re.search(r"largest error (\S+)", text)[1]) < 1e-8
    assert "agrees" in text
    written = (tmp_path / "loss_value_and_grad.py").read_text()
    assert "# model.py:" in written
    for place in (str(tmp_path), str(EXAMPLES), str(Path.home())):
        assert place not in written, "a generated file names no folders of the machine"


@pytest.mark.slow
def test_the_main_job_is_deterministic(tmp_path):
    texts = []
    for folder in ("a", "b", "b"):     # the third finds the second's machine code
        run(tmp_path, str(EXAMPLES / "run.py"), "--steps", "1", "--out", str(tmp_path / folder), "--quiet")
        texts.append((tmp_path / folder / "loss_value_and_grad.py").read_bytes())
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.slow
def test_quickstart(tmp_path):
    text = run(tmp_path, str(EXAMPLES / "quickstart.py"))
    assert text.startswith("[-2.  -1.   4.6]\n")
    assert "def energy_grad(x, k):" in text


@pytest.mark.slow
def test_spring(tmp_path):
    """Newton's method converges quadratically only with the right gradient and the right Hessian."""
    text = run(tmp_path, str(EXAMPLES / "spring.py"), "--steps", "200")
    sizes = [float(size) for size in re.findall(r"gradient (\S+)", text)]
    assert sizes[-1] < 1e-8
    assert float(re.search(r"largest error (\S+)", text)[1]) < 1e-3


def test_iris_is_whole():
    """Sums of the columns, as they follow from the means that Fisher gives (table II)."""
    with open(EXAMPLES / "data" / "iris.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    columns = ("sepal_length", "sepal_width", "petal_length", "petal_width")
    means = {"setosa": (5.006, 3.428, 1.462, 0.246), "versicolor": (5.936, 2.770, 4.260, 1.326),
             "virginica": (6.588, 2.974, 5.552, 2.026)}
    for species, expected in means.items():
        own = [row for row in rows if row["species"] == species]
        assert len(own) == 50
        for column, mean in zip(columns, expected):
            assert abs(sum(float(row[column]) for row in own) / 50 - mean) < 1e-9
