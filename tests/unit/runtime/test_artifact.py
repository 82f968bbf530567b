"""Modules as others take them: portable artifacts, and IREE's compiler."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs

pytest.importorskip("jax")
from gradsmith import xla

pytestmark = pytest.mark.xla


def mixed(x, n):
    """A loop, a table, and functions that are no operations of StableHLO's."""
    y = np.zeros(3)
    for i in range(n):
        y[i % 3] += np.sinh(x[i % 3]) * i
    return y, np.arcsinh(x)


X = np.array([0.5, -1.0, 2.0])


def text():
    return gs.stablehlo(gs.jit(mixed))(X, 5)


def test_a_round_trip_through_a_portable_artifact():
    artifact = xla.to_portable_artifact(text())
    assert isinstance(artifact, bytes)
    for got, expected in zip(xla.run(xla.from_portable_artifact(artifact), X, np.int64(5)), mixed(X, 5), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_what_is_no_artifact():
    with pytest.raises(xla.XlaError, match="this is no portable artifact"):
        xla.from_portable_artifact(b"no artifact")
    with pytest.raises(xla.XlaError, match=r"StableHLO 99\.0\.0 cannot hold the module"):
        xla.to_portable_artifact(text(), "99.0.0")


def test_the_compiler_of_iree_takes_modules():
    compiler = pytest.importorskip("iree.compiler")
    gradient = gs.stablehlo(gs.grad(lambda w, x: np.mean(np.tanh(x @ w) ** 2)), cast="f32", locations=False)
    for module in (gradient("f32[4,3]", "f32[5,4]"), gs.stablehlo(gs.jit(mixed), cast="f32", locations=False)(X, 5)):
        made = compiler.compile_str(module, input_type="stablehlo", target_backends=["llvm-cpu"])
        assert len(made) > 1000
