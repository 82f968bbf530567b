"""What tests of functions and arrays of a device share: the device, a function that writes to its argument, comparing."""

from __future__ import annotations

import numpy as np

from gradsmith import jit
from gradsmith.device import Device

XLA = Device("xla:0")


def close(expected, got):
    expected, got = np.asarray(expected), np.asarray(got)
    assert expected.shape == got.shape
    assert expected.dtype == got.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def shift(a, b):
    a[1:] += b[:-1]
    return a.sum()


shift_xla = jit(shift, target="xla")
