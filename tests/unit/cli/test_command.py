"""The command as a process of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest
from commands import write


def run(*args, **environment):
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


@pytest.mark.cli
def test_build_then_import():
    write("model.py", """
        import numpy as np

        def loss(x):
            return np.sum(np.exp(x))
    """)
    done = run("-m", "gradsmith.cli", "build", "model.py:loss", "--transform", "grad", "--sig", "float64[:]", "-o",
               "loss_grad.py")
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    write("use.py", """
        import numpy as np
        from loss_grad import loss_grad
        print(*loss_grad(np.array([0.0, 1.0])))
    """)
    printed = run("use.py").stdout
    np.testing.assert_allclose(np.array(printed.split(), float), [1.0, np.e], rtol=1e-14)
    stepped = run("use.py", NUMBA_DISABLE_JIT="1").stdout
    np.testing.assert_allclose(np.array(stepped.split(), float), [1.0, np.e], rtol=1e-14)


@pytest.mark.cli
def test_failure_is_status_1_without_a_traceback():
    write("model.py", "def loss(x):\n    return missing(x)\n")
    done = run("-m", "gradsmith.cli", "build", "model.py:loss", "--sig", "f64")
    assert 1 == done.returncode
    assert "" == done.stdout
    assert done.stderr.startswith("error[E114]: ")
    assert "Traceback" not in done.stderr
    shown = run("-m", "gradsmith.cli", "--traceback", "build", "model.py:loss", "--sig", "f64")
    assert "Traceback" in shown.stderr


@pytest.mark.cli
def test_help_loads_no_machinery():
    done = run("-c", "import sys, gradsmith.cli.main; print(*[m for m in sys.modules if m.startswith('rich') or m in "
               "('gradsmith.cli.generate', 'gradsmith.cli.project')])")
    assert "\n" == done.stdout
