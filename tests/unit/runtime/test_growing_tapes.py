"""Derivatives of loops whose trips are not known before, compiled: tapes that grow, and those that find no end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import gradsmith as gs
from gradsmith.kernels import fits


def settled(x, rate):
    """Branches, an inner loop and an array, until it is small."""
    trips = 0
    while np.sum(x * x) > 0.01:
        if x[0] > 0.5:
            x = x * (1.0 - rate)
        else:
            for k in range(2):
                x = x - rate * np.sin(x) * x[k]
        trips += 1
    return np.sum(x) * trips


def endless(x):
    a = np.zeros(3)
    while x > -1.0:
        a = a + np.sin(x)
        x = x * x * 0.5
    return np.sum(a)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(fits, "_limits", lambda: iter([10**7]))


@pytest.mark.parametrize("rate", [0.5, 0.05, 0.01])
def test_derivatives(rate):
    x, h = np.array([0.9, 0.4, 0.3]), 1e-6
    gradient = gs.grad(settled)
    slope = [(settled(x + h * e, rate) - settled(x - h * e, rate)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(gradient(x, rate), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(gs.jacfwd(settled)(x, rate), gradient(x, rate), rtol=1e-9)
    assert 1 == sum(line.strip().startswith("while ") for line in gradient.source(x, rate).splitlines())


def test_a_loop_without_end_is_a_memory_error_and_leaves_nothing_behind(little_memory):
    gradient = gs.grad(endless)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(3):
        with pytest.raises(MemoryError, match="what the derivative keeps of each trip of the loop does not fit in "
                                              r"memory .*test_growing_tapes.py:\d+: while x > -1.0"):
            gradient(1.0)
    after = rtsys.get_allocation_stats()
    assert before.alloc - before.free == after.alloc - after.free
    assert before.mi_alloc - before.mi_free == after.mi_alloc - after.mi_free


def test_what_little_memory_is_left(little_memory):
    assert fits.fits_in_memory(5 * 10**6) and not fits.fits_in_memory(10**7)


def test_small_tapes_grow_unasked(monkeypatch):
    monkeypatch.setattr(fits, "_limits", lambda: pytest.fail("asking takes longer than the loop"))
    assert np.isfinite(gs.grad(settled)(np.array([0.9, 0.4, 0.3]), 0.01)).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of addresses are enforced by Linux alone")
def test_the_limit_of_the_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import resource
        from gradsmith.kernels import fits
        assert fits.fits_in_memory(10**8)
        resource.setrlimit(resource.RLIMIT_AS, (fits._mapped() + 10**8, -1))
        assert fits.fits_in_memory(10**7) and not fits.fits_in_memory(10**8)
    """))
    subprocess.run([sys.executable, str(program)], check=True, env=os.environ)
