"""What is not known to be pure is not run while transpiling, least of all in a branch that no run takes."""

import builtins
import collections
import datetime
import fractions
import heapq
import io
import json
import linecache
import logging
import os
import pathlib
import re
import shutil
import statistics
import string
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from loose import check_values
from tracing import failure

from gradsmith.transpiler.frontend.purity import is_foreign, is_standard, refuse_effects

NAMES = {module.__name__.rpartition(".")[2]: module for module in (
    builtins, collections, datetime, fractions, heapq, io, json, logging, os, pathlib, re, shutil, statistics, string,
    subprocess, sys, tempfile, textwrap, time, warnings)}
LOGGER = logging.getLogger("quiet")


def in_branch(statement, **names):
    """A function that does it where x > 0."""
    text = f"def f(x):\n    if x > 0:\n        {statement}\n    return x * x\n"
    file = f"<{statement}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {**NAMES, "np": np, "sparse": scipy.sparse, "LOGGER": LOGGER, **names}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize("statement", [
    "os.remove(P)", "os.makedirs(P)", "os.rename(P, P)", "os.system('true')", "os.putenv('X', '1')", "os.getenv('X')",
    "os.path.exists(P)", "shutil.rmtree(P)", "subprocess.run(['true'])", "subprocess.Popen(['true'])", "open(P, 'w')",
    "io.FileIO(P, 'w')", "io.open(P, 'w')", "pathlib.Path(P).unlink()", "tempfile.mkdtemp()", "np.save(P, np.ones(3))",
    "np.savez(P, a=np.ones(3))", "np.savetxt(P, np.ones(3))", "np.load(P)", "np.loadtxt(P)", "np.fromfile(P)",
    "np.ones(3).tofile(P)", "np.ones(3).dump(P)", "np.ndarray.tofile(np.ones(3), P)", "np.memmap(P, mode='w+', shape=3)",
    "np.set_printoptions(precision=3)", "np.seterr(all='raise')", "sparse.save_npz(P, 1)", "warnings.warn('w')",
    "logging.warning('w')", "LOGGER.info('w')", "sys.stdout.write('w')", "sys.exit(1)", "exit(1)", "exec('1')",
    "eval('1')", "np.frompyfunc(print, 1, 1)(1.0)",
])
def test_an_effect_is_refused_and_not_done(statement, tmp_path, capsys):
    path = tmp_path / "precious"
    path.write_text("x")
    problem = failure(in_branch(statement, P=str(path)), -1.0)
    assert ("E126", 3) == (problem.code, problem.location.line)
    assert problem.location.file == f"<{statement}>"
    assert ["precious"] == os.listdir(tmp_path)
    assert "x" == path.read_text()
    assert "" == capsys.readouterr().out


@pytest.mark.parametrize("statement", ["time.time()", "datetime.datetime.now()", "np.random.normal()", "input()"])
def test_what_differs_from_run_to_run(statement):
    assert "E202" == failure(in_branch(statement), -1.0).code


@pytest.mark.parametrize("expression", [
    "heapq.nsmallest(1, [3.0, 2.0])[0]", "statistics.mean([1.0, 2.0])", "float(fractions.Fraction(1, 4))",
    "len(re.compile('a').sub('bb', 'aa'))", "float(re.match('[0-9.]+', '1.5m').group(0))", "len(json.dumps([1.5]))",
    "len(string.capwords('a b'))", "len(os.path.join('a', 'b'))", "collections.Counter('aab')['a']",
    "len(textwrap.dedent(' x'))", "np.polynomial.polynomial.polyval(2.0, [1.0, 2.0])", "np.poly1d([1.0, 2.0])(3.0)",
    "np.polynomial.legendre.leggauss(3)[1][0]", "np.lcm(4, 6)", "np.setxor1d([1, 2], [2, 3])[1]", "(3).bit_length()",
    "int.from_bytes(b'a', 'big')", "len(dict.fromkeys([1, 2]))", "len(str.upper('a'))", "float.fromhex('0x1p3')",
    "(0.5).as_integer_ratio()[1]", "datetime.date(2020, 1, 2).day", "len(np.ones(3).tobytes())", "ord('a')",
    "len(bin(3))", "np.iinfo(int).bits",
])
def test_what_computes_is_done_while_transpiling(expression):
    check_values(in_branch(f"x = x * {expression}"), 1.5)


def test_rules():
    refuse_effects(np.sum)
    refuse_effects("a".upper)
    assert not is_foreign(os.remove)
    assert not is_foreign(np.save)
    assert is_foreign(np.frompyfunc(print, 1, 1))
    assert is_standard(os.makedirs.__code__.co_filename)
    assert is_standard(json.dumps.__code__.co_filename)
    assert not is_standard(pytest.approx.__code__.co_filename)
    assert not is_standard(__file__)
