"""Linear equations without a matrix: y with matvec(y) = b, for trees of numbers and arrays.

    cg          matvec symmetric and positive definite (Hestenes and Stiefel 1952)
    bicgstab    any (van der Vorst 1992)
    gmres       any, with restarts (Saad and Schultz 1986)

`tol`: of the norm of matvec(y) - b, relative to that of b.  They are NumPy code, which works in transpiled functions
as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree
from .tree_vectors import ravel, unravel


def cg(matvec: Callable[[Any], Any], b: Any, tol: float = 1e-12, max_steps: int | None = None) -> Any:
    """Conjugate gradients; at most `max_steps` products (ten for each unknown)."""
    y = tree.map(lambda part: part * 0.0, b)
    r, p = b, b
    rho = _dot(r, r)
    least = tol * tol * rho
    steps = 10 * _count(b) if max_steps is None else max_steps
    step = 0
    while rho > least and step < steps:
        q = matvec(p)
        alpha = rho / _dot(p, q)
        y = _plus(y, alpha, p)
        r = _plus(r, -alpha, q)
        after = _dot(r, r)
        p = _plus(r, after / rho, p)
        rho = after
        step += 1
    return y


def bicgstab(matvec: Callable[[Any], Any], b: Any, tol: float = 1e-12, max_steps: int | None = None) -> Any:
    """Stabilised biconjugate gradients; at most `max_steps` steps of two products (ten for each unknown)."""
    y = tree.map(lambda part: part * 0.0, b)
    r, shadow, p = b, b, b
    rho = _dot(shadow, r)
    size = _dot(b, b)
    least = tol * tol * size
    steps = 10 * _count(b) if max_steps is None else max_steps
    step = 0
    while size > least and step < steps:
        v = matvec(p)
        alpha = rho / _dot(shadow, v)
        s = _plus(r, -alpha, v)
        y = _plus(y, alpha, p)
        t = matvec(s)
        tt = _dot(t, t)
        omega = _dot(t, s) / tt if tt > 0.0 else 0.0
        y = _plus(y, omega, s)
        r = _plus(s, -omega, t)
        size = _dot(r, r)
        after = _dot(shadow, r)
        if size > least:
            beta = (after / rho) * (alpha / omega)
            p = _plus(r, beta, _plus(p, -omega, v))
        rho = after
        step += 1
    return y


def gmres(matvec: Callable[[Any], Any], b: Any, tol: float = 1e-12, restart: int = 20, max_restarts: int = 100) -> Any:
    """The generalised minimal residual method: at most `restart` products, then again from what was found."""
    right = ravel(b)
    count = len(right)
    width = min(restart, count)
    least = tol * np.sqrt(np.sum(right * right))
    y = right * 0.0
    r = right
    for _ in range(max_restarts):
        beta = np.sqrt(np.sum(r * r))
        if beta <= least:
            break
        basis = np.zeros((width + 1, count), right.dtype)
        upper = np.zeros((width, width), right.dtype)
        cosines, sines = np.zeros(width, right.dtype), np.zeros(width, right.dtype)
        heights = np.zeros(width + 1, right.dtype)
        basis[0] = r / beta
        heights[0] = beta
        used = 0
        for j in range(width):
            w = ravel(matvec(unravel(basis[j], b)))
            column = np.zeros(width + 1, right.dtype)
            for i in range(j + 1):
                column[i] = np.sum(basis[i] * w)
                w = w - column[i] * basis[i]
            column[j + 1] = np.sqrt(np.sum(w * w))
            if column[j + 1] > 0.0:
                basis[j + 1] = w / column[j + 1]
            for i in range(j):
                above = cosines[i] * column[i] + sines[i] * column[i + 1]
                column[i + 1] = cosines[i] * column[i + 1] - sines[i] * column[i]
                column[i] = above
            length = np.sqrt(column[j] * column[j] + column[j + 1] * column[j + 1])
            cosines[j], sines[j] = column[j] / length, column[j + 1] / length
            column[j] = length
            heights[j + 1] = -sines[j] * heights[j]
            heights[j] = cosines[j] * heights[j]
            for i in range(j + 1):
                upper[i, j] = column[i]
            used = j + 1
            if abs(heights[j + 1]) <= least:
                break
        weights = np.zeros(width, right.dtype)
        for back in range(used):
            i = used - 1 - back
            total = heights[i]
            for j in range(i + 1, used):
                total = total - upper[i, j] * weights[j]
            weights[i] = total / upper[i, i]
        for j in range(used):
            y = y + weights[j] * basis[j]
        r = right - ravel(matvec(unravel(y, b)))
    return unravel(y, b)


def _dot(a: Any, b: Any) -> Any:
    return np.sum(ravel(a) * ravel(b))


def _plus(a: Any, factor: Any, b: Any) -> Any:
    """a + factor b."""
    return tree.map(lambda x, y: x + factor * y, a, b)


def _count(b: Any) -> int:
    return int(sum(np.size(leaf) for leaf in tree.leaves(b)))
