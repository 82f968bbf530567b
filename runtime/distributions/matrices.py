"""Random vectors and matrices of given structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import as_array
from .checks import checked_float, checked_key, checked_shape, common_shape, fit
from .continuous import standard_normal


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None,
                        method: str = "cholesky") -> Any:
    """Normal vectors of that mean and covariance.

    mean: (..., n).  cov: (..., n, n).  shape: that of the result without n.  method: "cholesky", "eigh" or "svd", the
    way to a square root of `cov`; the last two take semidefinite ones.  ValueError for shapes that do not fit.
    """
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    words, kind = checked_key("multivariate_normal", key), checked_float("multivariate_normal", dtype)
    centre, spread = np.asarray(mean).astype(kind), np.asarray(cov).astype(kind)
    if centre.ndim < 1:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    if spread.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {spread.ndim}")
    n = centre.shape[-1]
    if spread.shape[-1] != n or spread.shape[-2] != n:
        raise ValueError(f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == "
                         f"{spread.shape}.")
    dims = common_shape(shape, centre[..., 0], spread[..., 0, 0])
    fit("multivariate_normal", dims, centre[..., 0], spread[..., 0, 0])
    z = standard_normal(words, (*dims, n), kind)
    return as_array(centre + (_root(spread, method) @ z[..., None])[..., 0])


def _root(cov: Any, method: str) -> Any:
    """A with A @ A.T = cov."""
    if method == "cholesky":
        return np.linalg.cholesky(cov)
    if method == "eigh":
        w, v = np.linalg.eigh(cov)
        return v * np.sqrt(w[..., None, :])
    u, s, _ = np.linalg.svd(cov)
    return u * np.sqrt(s[..., None, :])


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: Any = None) -> Any:
    """Matrices of shape (n, m), by default square, with orthonormal columns (rows if n < m), uniformly distributed."""
    kind, columns = checked_float("orthogonal", dtype), n if m is None else m
    z = standard_normal(checked_key("orthogonal", key), (*checked_shape(shape), max(n, columns), min(n, columns)), kind)
    q, r = np.linalg.qr(z)
    q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return as_array(np.swapaxes(q, -1, -2) if n < columns else q)
