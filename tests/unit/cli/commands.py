"""Running the command in this process, and the modules that it writes with and without Numba."""

import importlib.util
import itertools
import re
import sys
import textwrap
from pathlib import Path

from typer.testing import CliRunner

from gradsmith.cli.main import app

_made = itertools.count()


def gradsmith(*args, status=0):
    """Run the command; what it printed, as a result with `stdout` and `stderr`."""
    result = CliRunner().invoke(app, list(map(str, args)))
    assert status == result.exit_code, result.output + repr(result.exception)
    return result


def write(name, text):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    return path


def load(path):
    """Import a generated file, compiled by Numba."""
    spec = importlib.util.spec_from_file_location(f"generated_{next(_made)}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module        # where Numba looks for functions that call themselves
    spec.loader.exec_module(module)
    return module


def plain(text):
    """The names of a generated module, as plain Python: what NUMBA_DISABLE_JIT=1 runs."""
    namespace = {}
    exec(re.sub(r"^@njit.*\n", "", text, flags=re.MULTILINE), namespace)
    return namespace
