"""Functions of NumPy and SciPy that are a few others: plain Python, which the frontend interprets in their place.

They are NumPy's in values, dtypes and exceptions, and run as they are (the tests compare them).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.spelling import LAZY_MODULES

# --- polynomials ------------------------------------------------------------------------------------------------------


def polyval(p: Any, x: Any) -> Any:
    """The value at x of the polynomial with coefficients p, the highest power first, by Horner's scheme."""
    p, x = np.asarray(p), np.asarray(x)
    y = np.zeros(x.shape, np.result_type(p.dtype, x.dtype))
    for c in p:
        y = y * x + c
    return y[()]


def polyder(p: Any, m: int = 1) -> Any:
    """The coefficients of the m-th derivative."""
    p = np.asarray(p)
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


def polyint(p: Any) -> Any:
    """The coefficients of the integral that is 0 at 0."""
    p = np.asarray(p)
    return np.concatenate([p / np.arange(len(p), 0, -1), np.zeros(1, p.dtype)])


# --- statistics -------------------------------------------------------------------------------------------------------


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    """Covariances of variables in rows (columns, if not `rowvar`) of observations."""
    x = _variables(m, rowvar)
    if y is not None:
        x = np.concatenate([x, _variables(y, rowvar)], axis=0)
    if ddof is None:
        ddof = 0 if bias else 1
    x = x - np.mean(x, axis=1, keepdims=True)
    found = x @ np.conj(x).T / (x.shape[1] - ddof)
    return found[0, 0] if found.shape == (1, 1) else found


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """Correlations of variables in rows (columns, if not `rowvar`) of observations, between -1 and 1."""
    c = cov(x, y, rowvar)
    if np.ndim(c) == 0:
        return c / c
    spread = np.sqrt(np.real(np.diag(c)))
    c = c / spread[:, None] / spread[None, :]
    return np.clip(c, -1.0, 1.0) if np.isrealobj(c) else c


def _variables(m: Any, rowvar: bool) -> Any:
    x = np.asarray(m)
    x = x.astype(np.result_type(x.dtype, np.float64))
    if x.ndim < 2:
        return np.reshape(x, (1, -1))
    return x if rowvar else x.T


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each int from 0 on occurs, or the sum of the weights where it does."""
    x = np.asarray(x)
    if np.any(x < 0):
        raise ValueError("'list' argument must have no negative elements")
    size = max(int(np.max(x, initial=-1)) + 1, minlength)
    found = np.zeros(size, np.int64 if weights is None else np.float64)
    np.add.at(found, x, 1 if weights is None else np.asarray(weights))
    return found


def nanargmax(a: Any, axis: int | None = None) -> Any:
    """The place of the largest element that is not NaN."""
    a = np.asarray(a)
    hidden = np.isnan(a)
    if np.any(np.all(hidden, axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return np.argmax(np.where(hidden, -np.inf, a), axis=axis)


def nanargmin(a: Any, axis: int | None = None) -> Any:
    """The place of the smallest element that is not NaN."""
    a = np.asarray(a)
    hidden = np.isnan(a)
    if np.any(np.all(hidden, axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return np.argmin(np.where(hidden, np.inf, a), axis=axis)


# --- elements ---------------------------------------------------------------------------------------------------------


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is one of the others."""
    element, others = np.asarray(element), np.ravel(np.asarray(test_elements))
    found = np.any(element[..., None] == others, axis=-1)
    return np.logical_not(found) if invert else found


def delete(arr: Any, obj: int, axis: int | None = None) -> Any:
    """Without what stands at one index."""
    arr = np.asarray(arr)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    rows = np.moveaxis(arr, axis, 0)
    size = rows.shape[0]
    if obj < -size or obj >= size:
        raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {size}")
    at = obj + size if obj < 0 else obj
    return np.moveaxis(np.concatenate([rows[:at], rows[at + 1:]], axis=0), 0, axis)


def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    """Angles without jumps: each differs from the one before by half a period at most."""
    p = np.asarray(p)
    p = p.astype(np.result_type(p.dtype, np.float64 if p.dtype.kind in "iub" else p.dtype))
    rows = np.moveaxis(p, axis, -1)
    if discont is None:
        discont = period / 2
    steps = np.diff(rows, axis=-1)
    short = np.mod(steps + period / 2, period) - period / 2
    short = np.where((short == -period / 2) & (steps > 0), period / 2, short)
    correction = np.where(np.abs(steps) < discont, 0.0, short - steps)
    start = np.zeros((*rows.shape[:-1], 1), p.dtype)
    return np.moveaxis(rows + np.concatenate([start, np.cumsum(correction, axis=-1)], axis=-1), -1, axis)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function (or number) where its condition holds; one more for where none does, else 0 there."""
    x = np.asarray(x)
    conditions = [np.asarray(c) for c in condlist] if isinstance(condlist, (list, tuple)) else [np.asarray(condlist)]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} "
                         "functions are expected")
    if len(funclist) == len(conditions) + 1:
        some = conditions[0]
        for c in conditions[1:]:
            some = some | c
        conditions = [*conditions, np.logical_not(some)]
    y = np.zeros_like(x)
    for c, f in zip(conditions, funclist):
        if callable(f):
            y[c] = f(x[c], *args, **kw)
        else:
            y[c] = f
    return y


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kw: Any) -> Any:
    """A function of the indices of each element."""
    return function(*np.indices(shape, dtype=dtype), **kw)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kw: Any) -> Any:
    """A function of each row along the axis; its results go where the rows were."""
    arr = np.asarray(arr)
    if arr.ndim == 1:
        return np.asarray(func1d(arr, *args, **kw))[...]
    rows = np.moveaxis(arr, axis, -1)
    found = np.array([func1d(row, *args, **kw) for row in np.reshape(rows, (-1, rows.shape[-1]))])
    whole = np.reshape(found, (*rows.shape[:-1], *found.shape[1:]))
    return whole if found.ndim == 1 else np.moveaxis(whole, -1, axis)


# --- SciPy ------------------------------------------------------------------------------------------------------------


def rel_entr(x: Any, y: Any) -> Any:
    """x log(x / y), 0 where x is."""
    inside = (x > 0) & (y > 0)
    a, b = np.where(inside, x, 1.0), np.where(inside, y, 1.0)
    return _where_inside(inside, a * np.log(a / b), np.where((x == 0) & (y >= 0), 0.0, np.inf), x, y)


def kl_div(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y, and y where x is 0."""
    inside = (x >= 0) & (y >= 0)
    return _where_inside(inside, rel_entr(x, y) - np.where(inside, x, 0.0) + np.where(inside, y, 0.0), np.inf, x, y)


def _where_inside(inside: Any, found: Any, outside: Any, x: Any, y: Any) -> Any:
    """NaN where an argument is, and the dtype that x and y have together."""
    kind = np.asarray(x + y).dtype
    found = np.where(inside, found, np.where(np.isnan(x) | np.isnan(y), np.nan, outside))
    return found.astype(np.float64 if kind.kind in "iub" else kind)[()]


def huber(delta: Any, r: Any) -> Any:
    """r**2 / 2 up to delta, and a straight line beyond."""
    size = np.abs(r)
    found = np.where(size <= delta, 0.5 * np.square(r), delta * (size - 0.5 * delta))
    return np.where(np.asarray(delta) < 0, np.inf, found)[()]


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with c as its first column and r as its first row, constant along diagonals."""
    c = np.ravel(np.asarray(c))
    r = np.conj(c) if r is None else np.ravel(np.asarray(r))
    values = np.concatenate([c[::-1], r[1:]])
    places = np.arange(len(c) - 1, -1, -1)[:, None] + np.arange(len(r))[None, :]
    return values[places]


def block_diag(*arrs: Any) -> Any:
    """The matrices along the diagonal, zeros elsewhere."""
    blocks = [np.atleast_2d(a) for a in arrs]
    rows, columns = sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)
    whole = np.zeros((rows, columns), np.result_type(*[b.dtype for b in blocks]))
    i = j = 0
    for b in blocks:
        whole[i:i + b.shape[0], j:j + b.shape[1]] = b
        i, j = i + b.shape[0], j + b.shape[1]
    return whole


COMPOSED: dict[Any, Callable[..., Any]] = {
    np.polyval: polyval, np.polyder: polyder, np.polyint: polyint, np.cov: cov, np.corrcoef: corrcoef,
    np.bincount: bincount, np.nanargmax: nanargmax, np.nanargmin: nanargmin, np.isin: isin, np.delete: delete,
    np.unwrap: unwrap, np.piecewise: piecewise, np.fromfunction: fromfunction,
    np.apply_along_axis: apply_along_axis,
    **{("scipy.special", f.__name__): f for f in (rel_entr, kl_div, huber)},
    **{("scipy.linalg", f.__name__): f for f in (toeplitz, block_diag)},
}


def composed_of(key: Any) -> Callable[..., Any] | None:
    """The function that is interpreted in the place of what the user's code names, or None."""
    try:
        found = COMPOSED.get(key)
    except TypeError:        # unhashable
        return None
    if found is None:
        for module in LAZY_MODULES:
            name = getattr(key, "__name__", "")
            if (module, name) in COMPOSED and getattr(sys.modules.get(module), name, None) is key:
                return COMPOSED[module, name]
    return found
