"""What is generated is what was reviewed; it is the same whenever and wherever it is made; and it is right.

`pytest tests/golden --update-golden` rewrites the files in expected/.  Read the diff then.
"""

import json
import os
import subprocess
import sys

import pytest
from golden.golden import HERE, Golden, all_goldens, generate

GOLDENS = all_goldens()
EXPECTED = HERE / "expected"


@pytest.fixture(scope="session")
def made_elsewhere() -> dict[str, tuple[str, str | None]]:
    """The texts from another process, under another hash seed, with what is wrong with their results."""
    env = {**os.environ, "PYTHONHASHSEED": "12345", "NUMBA_DISABLE_JIT": "1"}
    out = subprocess.run([sys.executable, str(HERE / "golden.py")], env=env, text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


@pytest.mark.parametrize("golden", GOLDENS, ids=[golden.file for golden in GOLDENS])
def test_golden(golden: Golden, made_elsewhere, update_golden):
    path = EXPECTED / golden.file
    text = generate(golden.request)
    if update_golden:
        path.write_text(text)
    assert path.is_file(), "no golden file: run pytest with --update-golden, and review what it wrote"
    assert path.read_text() == text
    assert text == generate(golden.request), "made twice"
    elsewhere, problem = made_elsewhere[golden.file]
    assert text == elsewhere, "made in another process, under another hash seed"
    assert problem is None


def test_no_file_is_left_over():
    assert {golden.file for golden in GOLDENS} == {path.name for path in EXPECTED.glob("*.py")}
