"""A few of the modules of `make tpu-check`, where the TPU compiler is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xla


def test_a_few_modules_compile_for_a_tpu():
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    script = Path(__file__).with_name("check.py")
    done = subprocess.run([sys.executable, str(script), "--only", "example ", "--jobs", "1"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 modules compile for TPU v5e:2x2" in done.stdout
