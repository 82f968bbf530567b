"""StableHLO of programs, run by XLA as it is, and comparing."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith

TRIPS = (0, 1, 2, 3, 7)


def run(text, *args):
    pytest.importorskip("jax")
    from gradsmith import xla
    return xla.run(text, *args, optimise=False)


def lowered(fun, *args, **options):
    return gradsmith.stablehlo(fun, **options).lower(*args)


def on_xla(fun, *args, **options):
    made = lowered(fun, *args, **options)
    return made.rebuilt(run(made.text, *made.arrays()))


def assert_equal_trees(expected, actual, rtol=1e-12):
    for want, got in zip(gradsmith.tree.leaves(expected), gradsmith.tree.leaves(actual), strict=True):
        assert np.shape(want) == np.shape(got)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-14)
