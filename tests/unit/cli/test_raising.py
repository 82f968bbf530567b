"""What built modules raise: the user's message with its values, and the lane of a batch."""

import os
import pickle
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from gradsmith import kernels
from gradsmith.cli.main import app

SOURCE = '''
class Refused(ValueError):
    def __init__(self, text, k):
        super().__init__(text)
        self.k = k


def picky(x, k):
    if k > 4:
        raise Refused(f"{{{k}}} of {len(x)}: {x[0]:.2f}", k)
    if x[0] < 0:
        raise KeyError("{negative}")
    return x[k] * 2.0
'''

USE = '''
import sys
if "--standalone" in sys.argv:
    sys.modules["gradsmith"] = None
import numpy as np
from made import picky_vmap
x, k = np.ones((5, 3)), np.zeros(5, np.int64)
for row, entry, places in ((x, 7, [1, 3]), (x, -7, [2]), (-x, 0, [0])):
    k[:] = 0
    k[places] = entry
    try:
        picky_vmap(row, k)
    except Exception as problem:
        print(type(problem).__mro__[1].__name__, problem.args)
'''

SAID = r'''ValueError ('{7} of 3: 1.00 [model.py:10: raise Refused(f"{{{k}}} of {len(x)}: {x[0]:.2f}", k)] (in lane 1)',)
IndexError ('index out of bounds for axis 0 with size m [model.py:13: return x[k] * 2.0] (in lane 2)',)
KeyError ('\'{negative}\' [model.py:12: raise KeyError("{negative}")] (in lane 0)',)
'''


@pytest.mark.parametrize("options, plain", [((), "1"), (("--standalone",), "1"), (("--standalone",), "0")], ids=str)
def test_messages_have_their_values_and_lanes(tmp_path, monkeypatch, options, plain):
    (tmp_path / "model.py").write_text(SOURCE)
    (tmp_path / "use.py").write_text(USE)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["build", "model.py:picky", "-t", "vmap", "--sig", "f64[n,m], i64[n]", "-o", "made.py",
                                    *options])
    assert done.exit_code == 0, done.output
    ran = subprocess.run([sys.executable, "use.py", *options], capture_output=True, text=True, timeout=200,
                         env={**os.environ, "NUMBA_DISABLE_JIT": plain})
    assert (SAID, "") == (ran.stdout, ran.stderr)


def test_filled_exceptions():
    problem = pickle.loads(pickle.dumps(kernels.FilledKeyError("{:.1f} {{}} (in lane {})", 0.25, 3)))
    assert isinstance(problem, KeyError) and problem.args == ("0.2 {} (in lane 3)",)
    assert kernels.FilledKeyError is type(problem)
    assert kernels.FilledIndexError("no {place}").args == ("no {place}",)
    with pytest.raises(AttributeError):
        kernels.FilledWithWater  # noqa: B018
