"""Statements and expressions mean what Numba makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import typeof
from numba.core.runtime import _nrt_python, rtsys
from unit.runtime.codegen.two_ways import ours, require_same

from gradsmith.codegen.values import NotCovered

X = np.array([3.0, -1.5, 0.25, 2.0])
A = np.arange(12.0).reshape(3, 4)


def test_loops_sums_and_stores():
    require_same("""
def f(x):
    n = x.shape[0]
    y = empty(n)
    total = 0.0
    for i in range(n):
        e = exp(-x[i])
        y[i] = 1.0 / (1.0 + e)
        total = accumulate(total, y[i])
    for i in range(n - 1, -1, -2):
        y[i] *= 2.0
    return y, total, n
""", "f", (X,), (np.empty(0),), (np.arange(5.0),))


def test_loops_whose_trips_are_apart():
    """Vectors of cells a stride apart, with fewer of them at the borders, and a sum beside."""
    text = """
def f(r, n, m):
    total = 0.0
    for wave in range(1, m + 7):
        for row in abreast(maximum(wave - m + 1, 0), min(wave, n)):
            k = row + 1
            j = wave - row
            e = exp(-r[k - 1, j]) + exp(-r[k, j - 1]) + exp(-r[k - 1, j - 1])
            total = accumulate(total, e)
            r[k, j] += log(e)
    return total
"""
    rng = np.random.default_rng(0)
    for n, m in ((8, 30), (7, 30), (3, 2), (1, 9), (8, 1)):
        require_same(text, "f", (rng.normal(size=(9, 30)), n, m), exact=False)


def test_arrays_that_change_places():
    text = """
def f(x, n):
    a = x.copy()
    b = x.copy()
    c = x.copy()
    c[2] = 7.0
    for i in range(n):
        b[0] = a[1] + i
        a, b = b, a
        if i % 3 == 1:
            a, b, c = c, a, b
        a, b = b, b
        b = c.copy()
    return a[0], a[2], b[0], b[2], c[0], c[2]
"""
    for n in (0, 1, 2, 7):
        require_same(text, "f", (np.arange(5.0), n))


def test_variables_that_change_in_loops_and_branches():
    require_same("""
def f(x, n):
    a, b = 0.0, 1.0
    for i in range(n):
        a, b = b, a + b
    k = 0
    while k < 10 and x[k % x.shape[0]] > -2.0:
        k += 1
        if k == 7:
            break
        if k % 2 == 0:
            continue
        a += 1.0
    if n > 3:
        c = a
    else:
        c = b
    return a, b, k, c
""", "f", (X, 5), (X, 0), (np.array([-3.0]), 2))


def test_arrays_in_variables_that_change():
    require_same("""
def f(x, n):
    old = x.copy()
    for t in range(n):
        new = empty(x.shape[0])
        for i in range(x.shape[0]):
            new[i] = 0.5 * old[i] + t
        old = new
    if n > 2:
        r = old
    else:
        r = x.copy()
    return r, old
""", "f", (X, 3), (X, 0), (X, 1))


def test_functions_of_no_result():
    require_same("""
def f(x, n):
    for i in range(n):
        x[i] += 1.0
    if n == 0:
        return
    y = x.copy()
    x[0] = y[1]
""", "f", (X, 3), (X, 0))


def test_early_exits():
    require_same("""
def f(x, k):
    a = empty(3)
    a[0] = x[0]
    a[1] = 2.0
    a[2] = 1.0
    for i in range(x.shape[0]):
        b = zeros(2)
        b[0] = x[i]
        if k == i:
            raise IndexError("index k is out of range [model.py:3]")
        if x[i] < -1.0 and k < -5:
            raise ValueError
    while True:
        k += 1
        if not (k < 10):
            break
    return a, k
""", "f", (X, -1), (X, 0), (X, 3), (X, -7))


NUMBERS = """
def f(x, k, s, u, b):
    total = 0.0
    for i in range(x.shape[0]):
        a = x.copy()
        total += a[i]
        if total > 3.0:
            raise ValueError("at {} of {}", i, x.shape[0], total, "and", s, u, b, -k, a[k] * 2.0)
        elif k == 7:
            b2 = zeros(3)
            b2[0] = x[0]
            raise RuntimeError(b2[0] if x[0] > 0.0 else x[1])
    if k == 5:
        raise KeyError
    return total
"""


def test_exceptions_with_numbers():
    for s in (np.float32(0.1), np.int8(-3), True):
        require_same(NUMBERS, "f", (X, 1, s, np.uint64(2**63 + 1), False), (-np.abs(X), 7, s, np.uint64(0), True),
                     (-np.abs(X), 5, s, np.uint64(0), True), (-np.abs(X), 0, s, np.uint64(0), True))
    require_same("""
def f(a, k):
    c = empty((3, 3))
    gemm(a, a, c)
    if k > 0:
        raise ValueError("{}", k, c[0, 0])
    return c
""", "f", (np.eye(3), 1), (np.eye(3), 0), exact=False)


def test_exceptions_with_numbers_leave_nothing_behind():
    made = ours(NUMBERS, "f", [typeof(a) for a in (X, 1, 2.5, 3, True)])

    _nrt_python.memsys_enable_stats()

    def raised(count):
        for _ in range(count):
            with pytest.raises(ValueError):
                made(X, 1, 2.5, 3, True)
        return rtsys.get_allocation_stats()

    raised(3)
    before, after = raised(1), raised(200)
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


def test_indices_layouts_and_slices():
    """Indices that are computed are words from 0 up; a negative number that is written down counts from the end."""
    text = """
def f(a, i):
    b = a.T
    c = zeros((a.shape[1], a.shape[0]))
    for p in range(a.shape[0]):
        for q in range(a.shape[1]):
            c[q, p] = a[p, q] + b[q, p]
    d = a[1:, ::2]
    e = a[i]
    return c, a[-1, i], d[0, 0], e[1], c.copy(), np.ascontiguousarray(b), b.copy(), a.size, a.ndim + 1
"""
    for a in (A, np.asfortranarray(A), A[::-1, ::2], A.astype(np.float32)):
        require_same(text, "f", (a, 0), (a, 1))


def test_views_are_views_and_results_are_new():
    require_same("""
def f(a, x):
    v = a.T
    v[0, 1] = 7.0
    w = permuted(a, (1, 0))
    w[2, 0] = -1.0
    r = reshaped(a, (12,))
    r[5] = 100.0
    x[0] += 1.0
    return a, v, r, x.T
""", "f", (A, X))


def test_elements_of_all_kinds():
    text = """
def f(x):
    y = empty(x.shape[0], np.{dtype})
    for i in range(x.shape[0]):
        y[i] = x[x.shape[0] - 1 - i]
    return y, x[0], x[-1]
"""
    for dtype in (np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.int64, np.float32, np.complex64, np.complex128):
        require_same(text.format(dtype=dtype.__name__), "f", (np.array([0, 1, 2, 1]).astype(dtype),))


def test_new_arrays():
    require_same("""
def f(n, v):
    return (np.full((n, 2), 2.5), np.ones(n), np.full(n, -3, np.int32), np.ones((2, n), np.float32), zeros((n, 0)),
            zeros((n, 1, 2), np.int64), np.full(n, np.float32(v)), np.full(2, v))
""", "f", (3, 1.5), (1, 0.0))


def test_conditional_expressions_and_truth():
    require_same("""
def f(x, y, n, p):
    a = 0.0 if x == 0.0 else x * y
    b = x / y if y != 0.0 and x / y > 0.5 or n == 3 else exp(x)
    c = not (x < y and not p)
    d = n if p else n // 3
    return a, b, c, d, 1.0 if n else 2.0, -n, -x, +y, not n, max(n, 2), min(n, -n)
""", "f", (0.0, 2.0, 3, True), (np.nan, 0.0, -7, False), (1.0, np.inf, 0, True))


def test_complex_numbers():
    require_same("""
def f(z, w):
    y = empty(z.shape[0], np.complex128)
    for i in range(z.shape[0]):
        y[i] = z[i] * w + complex(1.0, -2.0) / z[i]
    return y, w.real, w.imag, w.conjugate(), abs(w)
""", "f", (np.array([1 + 2j, -3j]), 0.5 - 1j))


def test_kernels_that_return_arrays():
    require_same("""
def f(a, b, x):
    out = empty((a.shape[0], b.shape[1]))
    gemm(a, b, out)
    y = empty(a.shape[0])
    gemv(a, x, y)
    u, s, vt = empty((3, 3)), empty(3), empty((3, 3))
    svd(a, u, s, vt)
    sign, size = slogdet(a)
    return out, y, dot(x, x), sort(x, 0), solve(out, y), u, s, vt, sign, size
""", "f", (A[:, :3].copy() ** 0.5, A[:, 1:4].T.copy() + np.eye(3), X[:3].copy()))


def test_products_by_every_layout():
    text = """
def f(a, b, x):
    out = empty((a.shape[0], b.shape[1]))
    gemm(a, b, out)
    turned = empty((b.shape[1], a.shape[0]))
    gemm(a, b, turned.T)
    y = empty(a.shape[0])
    gemv(a, x, y)
    return out, turned, y
"""
    rng = np.random.default_rng(0)
    for n, k, m in ((3, 4, 5), (1, 1, 1), (2, 0, 3), (0, 2, 1), (4, 1, 1)):
        a, b, x = rng.normal(size=(n, k)), rng.normal(size=(k, m)), rng.normal(size=k)
        for first in (a, np.asfortranarray(a)):
            for second in (b, np.asfortranarray(b)):
                made = ours(text, "f", [*map(__import__("numba").typeof, (first, second, x))])
                out, turned, y = made(first, second, x)
                np.testing.assert_allclose(out, a @ b, atol=1e-12)
                np.testing.assert_allclose(turned.T, a @ b, atol=1e-12)
                np.testing.assert_allclose(y, a @ x, atol=1e-12)
                for wrong in ((first, second[:, :0], x), (first, np.ones((k + 1, m)), x)):
                    if wrong[1].flags.f_contiguous == second.flags.f_contiguous and wrong[1].shape[0] != k:
                        with pytest.raises(ValueError, match="gemm: the shapes"):
                            made(*wrong)


@pytest.mark.parametrize(("body", "what"), [
    ("return [x]", "List"),
    ("return x ** 2", "powers"),
    ("return (x, (x, x))", "nested tuple"),
    ("return x if x > 0 else 1", "two types"),
    ("y = 1\n    for i in range(3):\n        y = y + x\n    return y", "holds"),
])
def test_what_is_left_to_numba(body, what):
    from numba import types
    with pytest.raises(NotCovered, match=what):
        ours(f"def f(x):\n    {body}\n", "f", [types.float64])
