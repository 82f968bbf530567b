"""Complex division and hyperbolic functions against NumPy, at zeros, infinities and far out."""

import numpy as np
import pytest

import gradsmith

PARTS = [0.0, -0.0, 1.0, -2.5, 1e-12, 1e12]
FAR_OUT = [1000.0 + 1.0j, -1000.0 - 2.0j, 300.0 + 0.5j, 2.0 - 1000.0j, 20.0 + 3.0j, 100.0 + 0.0j, 1000.0 + 0.0j]


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_division(dtype):
    with np.errstate(all="ignore"):
        numbers = np.array([complex(a, b) for a in PARTS for b in PARTS]).astype(dtype)
        x, y = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
        want = (x / y, 1 / y, y ** -1, x / 2)
    found = gradsmith.jit(lambda x, y: (x / y, 1 / y, y ** -1, x / 2))(x, y)
    for w, f in zip(want, found, strict=True):
        assert w.dtype == f.dtype
        np.testing.assert_allclose(f, w, rtol=1e-5 if dtype is np.complex64 else 1e-14)


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "tanh", "tan"])
def test_far_out(name):
    function, z = getattr(np, name), np.array(FAR_OUT)
    with np.errstate(all="ignore"):
        want = function(z)
    found = gradsmith.jit(lambda z: function(z))(z)
    np.testing.assert_allclose(found.real, want.real, rtol=1e-13)
    np.testing.assert_allclose(found.imag, want.imag, rtol=1e-13)


def test_a_saturated_slope():
    slope = gradsmith.grad(lambda x: np.real(np.tanh(x * (1 + 0.001j))) + 3.0 * x)
    assert slope(1000.0) == 3.0
