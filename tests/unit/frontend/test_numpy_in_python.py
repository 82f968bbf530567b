"""Functions of NumPy and SciPy that are interpreted as plain Python: they, their plain text and NumPy's own agree."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import gradsmith
from gradsmith.transpiler.frontend import numpy_in_python

A = np.array([[2.0, 0.3, 0.1], [-0.4, 1.5, 0.2], [0.6, -0.7, 3.1]])
N = np.where(A < 0, np.nan, A)
I = np.array([3, 1, 1, 5])  # noqa: E741
FUNCTIONS = {
    "polyval": lambda np, _: (np.polyval(A[0], A), np.polyval([1, 2], I), np.polyval(A[0], 2), np.polyval(I, I)),
    "polyder": lambda np, _: (np.polyder(A[0]), np.polyder(A[1], 2), np.polyder(I)),
    "polyint": lambda np, _: (np.polyint(A[0]),),
    "cov": lambda np, _: (np.cov(A), np.cov(A[0]), np.cov(A[0], A[1]), np.cov(A, rowvar=False), np.cov(I, bias=True)),
    "corrcoef": lambda np, _: (np.corrcoef(A), np.corrcoef(A[0], A[1]), np.corrcoef(A[0])),
    "bincount": lambda np, _: (np.bincount(I), np.bincount(I, minlength=9), np.bincount(I, weights=A.ravel()[:4])),
    "nanargmax": lambda np, _: (np.nanargmax(N), np.nanargmax(N, axis=1), np.nanargmin(N), np.nanargmin(N, axis=0)),
    "isin": lambda np, _: (np.isin(I, [1, 7]), np.isin(A, A[0]), np.isin(A, 1.5, invert=True)),
    "delete": lambda np, _: (np.delete(A, 1, axis=0), np.delete(A, -1, axis=1), np.delete(A, 4)),
    "unwrap": lambda np, _: (np.unwrap(A[0] * 5), np.unwrap(A * 4, axis=0), np.unwrap(I), np.unwrap(A * 9, period=1.5)),
    "piecewise": lambda np, _: (np.piecewise(A, [A < 0, A >= 1], [lambda v: -v ** 3, lambda v: v * 2, 7.0]),
                                np.piecewise(A, [A < 0], [0.5])),
    "fromfunction": lambda np, _: (np.fromfunction(lambda i, j: i + A[0, 0] * j, (2, 3)),),
    "apply_along_axis": lambda np, _: (np.apply_along_axis(lambda r: r.sum() ** 2, 0, A),
                                       np.apply_along_axis(lambda r: r[::-1], 0, A)),
    "rel_entr": lambda _, s: (s.special.rel_entr(N, 1.5), s.special.kl_div(A, A.T), s.special.kl_div(A, 0.0),
                              s.special.rel_entr(A.astype("float32"), 2.0), s.special.huber(1.0, A)),
    "toeplitz": lambda _, s: (s.linalg.toeplitz(A[0]), s.linalg.toeplitz(A[0], I), s.linalg.block_diag(A, I, A[:, :2])),
}
PLAIN = {getattr(key, "__name__", key[-1] if isinstance(key, tuple) else ""): function
         for key, function in numpy_in_python.COMPOSED.items()}


class Plain:
    """NumPy or SciPy with the plain functions in it."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        found = PLAIN.get(name, getattr(self.module, name))
        return Plain(found) if type(found) is type(np) else found


def agree(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        assert np.asarray(a).dtype == np.asarray(e).dtype
        np.testing.assert_allclose(a, e, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_plain_text_is_numpys_function(name):
    with np.errstate(all="ignore"):
        agree(FUNCTIONS[name](Plain(np), Plain(scipy)), FUNCTIONS[name](np, scipy))


def some_of_all(a, i):
    s = scipy.special
    pieces = np.piecewise(a, [a < 0, a >= 1], [lambda v: -v ** 3, lambda v: v * 2, 0.25])
    return (np.polyval(a[0], a[1]).sum() + np.polyder(a[2])[0] + np.polyint(a[1]) @ np.arange(4.0)
            + np.sum(np.cov(a) ** 2) + np.corrcoef(a[0], a[1])[0, 1]
            + np.sum(np.bincount(i, weights=a.ravel()[:4]) ** 2) + a.ravel()[np.nanargmax(a)] + np.sum(a[0, np.isin(i, [1])[1:]])
            + np.sum(np.delete(a, 1, axis=0) ** 2) + np.sum(np.unwrap(a * 5) ** 2) + np.sum(pieces)
            + np.sum(np.fromfunction(lambda j, k: j - k, (3, 3)) * a) + np.sum(np.apply_along_axis(np.prod, 1, a))
            + np.sum(s.kl_div(np.abs(a), 1.5)) + np.sum(s.huber(1.0, a)) + np.sum(scipy.linalg.toeplitz(a[0], a[1]) ** 2)
            + np.sum(scipy.linalg.block_diag(a, a[0]) ** 3))


def test_transpiled_and_differentiated():
    assert gradsmith.jit(some_of_all)(A, I) == pytest.approx(some_of_all(A, I), rel=1e-12)
    gradsmith.check(lambda a: some_of_all(a, I), A)


def test_exceptions():
    with pytest.raises(ValueError, match="All-NaN slice"):
        gradsmith.jit(lambda x: np.nanargmax(x))(np.full(3, np.nan))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
        gradsmith.jit(lambda x: np.delete(x, 9))(A[0])
