"""SVD, eigh, QR, pinv, cond and the norms of singular values against NumPy: values, signs, shapes, dtypes, errors."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.evaluating import array, assert_conforms, spelled_call

from gradsmith.transpiler.errors import RuleError

SHAPES = ((1, 1), (3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 1, 2, 3), (3, 0), (0, 2))
every_dtype = pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def check(function, *args, **options):
    rtol = 2e-3 if any(a.dtype == np.float32 for a in args if isinstance(a, np.ndarray)) else 1e-9
    assert_conforms(function, *args, rtol=rtol, **options)


@every_dtype
@every_shape
def test_any_matrix(shape, dtype):
    a = array(shape).astype(dtype)
    check(np.linalg.svd, a, full_matrices=False)
    check(np.linalg.svd, a, compute_uv=False)
    check(np.linalg.svdvals, a)
    check(np.linalg.qr, a)
    check(np.linalg.qr, a, mode="r")
    if a.size or dtype != "int64":      # NumPy gives an empty matrix of integers back
        check(np.linalg.pinv, a)


@every_dtype
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 2, 2)], ids=str)
def test_square_matrix(shape, dtype):
    a = array(shape).astype(dtype)
    check(np.linalg.svd, a)
    check(np.linalg.qr, a, mode="complete")
    for triangle in ("L", "U", "l"):
        check(np.linalg.eigh, a, triangle)
        check(np.linalg.eigvalsh, a, UPLO=triangle)
    for order in (None, 2, -2, 1, "fro", np.inf):
        check(np.linalg.cond, a + 5 * np.eye(shape[-1], dtype=dtype), order)


@every_dtype
def test_norms_of_singular_values(dtype):
    a = array((2, 3, 4)).astype(dtype)
    for order in ("nuc", 2, -2):
        check(np.linalg.norm, a[0], order)
        check(np.linalg.norm, a, order, axis=(2, 0))
        check(np.linalg.norm, a, order, (0, 1), keepdims=True)
        check(np.linalg.matrix_norm, a, ord=order)


def test_cutoffs():
    a = np.diag([1.0, 1e-5])
    assert np.array_equal(spelled_call(np.linalg.pinv, a, rtol=1e-3), np.linalg.pinv(a, rtol=1e-3))
    check(np.linalg.pinv, a, 1e-3)
    check(np.linalg.pinv, np.zeros((2, 3)))
    check(np.linalg.cond, np.zeros((2, 2)))
    check(np.linalg.cond, np.diag([1.0, 0.0]))


@pytest.mark.parametrize("function, args, options, error", [
    (np.linalg.svd, (np.zeros(3),), {"full_matrices": False}, np.linalg.LinAlgError),
    (np.linalg.svd, (np.zeros(3),), {}, np.linalg.LinAlgError),
    (np.linalg.eigh, (np.zeros((2, 3)),), {}, np.linalg.LinAlgError),
    (np.linalg.eigh, (np.zeros((2, 2)),), {"UPLO": "X"}, ValueError),
    (np.linalg.svd, (np.zeros((3, 2)),), {}, NotImplementedError),
    (np.linalg.svd, (np.eye(2),), {"hermitian": True}, NotImplementedError),
    (np.linalg.svd, (np.eye(2) * 1j,), {}, NotImplementedError),
    (np.linalg.qr, (np.zeros((3, 2)),), {"mode": "complete"}, NotImplementedError),
    (np.linalg.qr, (np.zeros((3, 2)),), {"mode": "raw"}, NotImplementedError),
    (np.linalg.pinv, (np.eye(2),), {"hermitian": True}, NotImplementedError),
    (np.linalg.lstsq, (np.eye(2), np.zeros(2)), {}, NotImplementedError),
])
def test_refused(function, args, options, error):
    with pytest.raises(RuleError) as caught:
        spelled_call(function, *args, **options)
    assert caught.value.kind is error
