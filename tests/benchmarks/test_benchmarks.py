"""The benchmarks run; what they measure is not tested here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"


def run(tmp_path, *words):
    environment = os.environ | {"GRADSMITH_CACHE_DIR": str(tmp_path / "cache"), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, str(RUN), "--quick", *words], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.jax
def test_a_quick_run(tmp_path):
    """Gradients are compared with JAX's on the way; one compilation serves all lengths whatever the machine does."""
    text = run(tmp_path, "overhead", "lengths", "--json", str(tmp_path / "rows.json"))
    assert "gradient of two scalars" in text and "\x1b[" not in text
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {"call", "compilations"} == {row["group"] for row in rows}
    assert [row["ok"] for row in rows if row["group"] == "compilations"] == [True]
    assert all(row["ours"] > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.jax
def test_modules_beside_those_of_jax(tmp_path):
    run(tmp_path, "xla", "--json", str(tmp_path / "rows.json"))
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {"gradient of mlp", "call with 10 elements on the device"} <= {row["measure"] for row in rows}
    assert all(row["ours"] > 0 for row in rows if row["group"] == "XLA on the CPU")


@pytest.mark.slow
@pytest.mark.jax
def test_first_calls_in_new_processes(tmp_path):
    text = run(tmp_path, "warm", "--json", "-")
    rows = json.loads(text)["rows"]
    assert {row["group"] for row in rows} == {"first call, warm cache"}


@pytest.mark.slow
def test_growth_of_lines(tmp_path):
    """What the machine's load cannot change: the generated text does not grow with the trips of a loop."""
    run(tmp_path, "growth", "--json", str(tmp_path / "rows.json"))
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    lines = [row for row in rows if "generated lines" in row["measure"]]
    assert len(lines) == 2 and all(row["ok"] for row in lines)


def test_unknown_measures_are_named(tmp_path):
    done = subprocess.run([sys.executable, str(RUN), "wrong"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no measure wrong" in done.stderr
