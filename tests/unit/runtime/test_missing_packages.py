"""What is said where an optional package is not installed."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module, package, extra", [("torch", "torch", "torch"), ("jax", "jax", "xla")])
def test_the_line_that_installs_it(module, package, extra):
    program = f"""
import sys
sys.modules[{package!r}] = None            # as if it were not there
try:
    import gradsmith.{module}
except ImportError as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"pip install gradsmith[{extra}]" in done.stdout
    assert "E605" in done.stdout


def test_neither_is_imported_without_need():
    program = "import sys, gradsmith; gradsmith.jit(abs)(-1.0); print({'jax', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "set()" == done.stdout.strip(), done.stderr


def test_a_portable_artifact_without_jaxlib():
    program = """
import sys
sys.modules["jax"] = sys.modules["jaxlib"] = None
import gradsmith
try:
    gradsmith.xla.to_portable_artifact("module {}")
except ImportError as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install gradsmith[xla]" in done.stdout, done.stderr
