"""`x[mask]` with a mask known only at run time: elementwise functions and reductions of it, its elements side by side,
and writes through it."""

import numpy as np
import pytest

import gradsmith

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(4, 5)), RNG.normal(size=(4, 5))
ROWS = np.array([True, False, True, True])


def reductions(a, m):
    return (np.max(a[m]), a[m].min(), a[m].mean(), np.prod(a[m]), a[m].std(), a[m].var(ddof=1), a[m].size, len(a[m]),
            a[m].shape[0], (a[m] > 0).any(), np.sum(a[m] ** 2), np.sum(np.exp(-a[m]) + 1), np.linalg.norm(a[m]),
            a[m] @ a[m], np.ptp(a[m]), np.average(a[m]), np.sum(np.abs(a[m] - np.mean(a[m]))), np.count_nonzero(a[m]),
            np.sum(a[m], dtype=np.float32), (2 / a[m]).sum(), np.where(a[m] > 0, a[m], -1).sum())


def rows(a, m, w):
    return (a[m].sum(), a[m].sum(axis=0), a[m].max(axis=0), np.sum(a[m] * w, axis=(0, 1)), a[m].sum(axis=1).sum(),
            (a[m] - a[m].mean(axis=0)).std(), a[m].var(axis=0, keepdims=True), a[m].size, a[m].shape[1],
            a[m, 1].sum(), a[m, 1:3].mean(axis=0))


def writes(a, m):
    b = a.copy()
    b[m] *= 2.0
    b[a > 0] += b[a > 0] ** 2
    b[m] = a[m] + 1
    b[m] += a[0]
    return b


def squared_error(p, y):
    return np.mean((p[y > 0] - y[y > 0]) ** 2) + np.sum(np.log(p[p > 0]))


def same(expected, actual):
    for e, a in zip(expected, actual, strict=True):
        assert (np.asarray(e).shape, np.asarray(e).dtype) == (np.asarray(a).shape, np.asarray(a).dtype)
        np.testing.assert_allclose(a, e, rtol=1e-6 if np.asarray(e).dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("function, args", [(reductions, (A, A > -0.5)), (rows, (A, ROWS, B[0]))])
def test_reductions_of_selections(function, args):
    same(function(*args), gradsmith.jit(function)(*args))


def test_writes_through_masks():
    same([writes(A, ROWS)], [gradsmith.jit(writes)(A, ROWS)])


def test_gradient_of_selections_is_not_poisoned_by_what_the_mask_hides():
    expected = np.where(B > 0, 2 * (A - B) / (B > 0).sum(), 0) + np.divide(1, A, where=A > 0, out=np.zeros_like(A))
    np.testing.assert_allclose(gradsmith.grad(squared_error)(A, B), expected)


def test_nothing_selected():
    def largest(a, m):
        return a[m].max()

    def total(a, m):
        return np.sum(1 / a[m])

    nothing = np.zeros(A.shape, bool)
    with pytest.raises(ValueError, match="no identity"):
        gradsmith.jit(largest)(A, nothing)
    assert gradsmith.jit(total)(0 * A, nothing) == 0.0
    assert (gradsmith.grad(total)(0 * A, nothing) == 0).all()


def test_selections_by_different_masks_meet_where_they_are_equally_long():
    def mixed(a, m):
        return (a[m] + a[~m]).sum()

    half = np.arange(A.size).reshape(A.shape) % 2 == 0
    assert mixed(A, half) == pytest.approx(gradsmith.jit(mixed)(A, half))
    with pytest.raises(ValueError, match="shapes do not fit"):
        gradsmith.jit(mixed)(A, A > -np.inf)


def writes_at_other_axes(a, cube, m, v, i):
    b, c = a.copy(), cube.copy()
    b[:, m] = v
    b[i, m] += a[0, m] * v[0]
    b[1:, m] *= a[0, 0]
    b[::-1, m] = a[:, :1] * v
    b[..., m] -= a[i, m].sum()
    c[0, :, m] = a[:4, 0] + v[:, None]            # ints and a mask apart: the selected elements first
    c[:, :, m] = cube[:, :, :1]
    c[:, a > 0] += 1.0
    c[i, a > 0] = c[0, a > 0] * a[a > 0]
    c[:, m[:4], 1] = 3.0
    return b, c


def test_masks_after_ints_and_slices():
    m, v, cube = np.array([True, False, True, True, False]), np.array([1.0, -2.0, 3.0]), RNG.normal(size=(2, 4, 5))
    want = writes_at_other_axes(A, cube, m, v, 1)
    same(want, gradsmith.jit(writes_at_other_axes)(A, cube, m, v, 1))
    batched = gradsmith.vmap(writes_at_other_axes, in_axes=(0, None, 0, None, 0))(
        np.stack((A, B)), cube, np.stack((m, m[::-1])), v, np.array([1, 0]))
    same(want, [b[0] for b in batched])
    same(writes_at_other_axes(B, cube, m[::-1], v, 0), [b[1] for b in batched])
    gradsmith.check(lambda a, v: np.sum(np.sin(writes_at_other_axes(a, cube, m, v, 1)[1])), A, v)


@pytest.mark.parametrize("function", [lambda a, x, m: a[m] * x[m], lambda a, x, m: a[:, m] + 1,
                                      lambda a, x, m: a.copy().__setitem__(m, x[m]) or 0])
def test_selections_line_up_as_in_numpy_or_not_at_all(function):
    def total(a, x, m):
        return np.sum(function(a, x, m))

    compiled = gradsmith.jit(total)
    assert total(A[:3, :3], B[0, :3], np.ones(3, bool)) == pytest.approx(
        compiled(A[:3, :3], B[0, :3], np.ones(3, bool)))


def test_the_wrong_axis_is_named():
    def zeroed(a, m):
        a[0, m] = 0.0

    with pytest.raises(IndexError, match="axis 1; size of axis is 5"):
        gradsmith.jit(zeroed)(A.copy(), ROWS)


def side_by_side(a, m):
    x = a[m]
    y = np.array(x)
    y[0] = x[-1] * 2
    total = np.sum(np.sort(x) * x) + np.sum(np.diff(x)) * y[0] + max(x) + np.concatenate([x, a[~m]])[2] * y.sum()
    for i in range(len(x)):
        total = total * 0.5 + x[i] * len(x)
    for row in a:
        chosen = row[row > 0]
        total += np.prod(chosen) + np.sum(chosen * chosen[::-1])
    return total


def updates(a, m, v):
    b, c = a.copy(), a.copy()
    b[m] += v * a[m]
    b[~m] = a[~m] - 1
    c[:, ROWS[[0, 1, 2, 3, 0]]] *= a[:, :4]
    c[0][m[0]] = v[0]
    k, l = np.nonzero(b > 0)
    return np.sum(b ** 2) + np.sum(c ** 3) + np.sum(b[k, l] * c[k, l])


@pytest.mark.parametrize("function, args", [(side_by_side, (A, A > -0.5)), (updates, (A, A > 0, A[A > 0]))])
def test_elements_side_by_side(function, args):
    assert function(*args) == pytest.approx(gradsmith.jit(function)(*args), rel=1e-12)
    gradsmith.check(lambda a: function(a, *args[1:]), A)


def test_a_batch_of_elements_side_by_side():
    found = gradsmith.vmap(lambda x: np.sort(x[x > 0])[0] * len(x[x > 0]))(A)
    np.testing.assert_allclose(found, [np.sort(x[x > 0])[0] * len(x[x > 0]) for x in A])


def test_writing_into_a_selection_that_has_no_array_of_its_own():
    def doubled(a):
        x = a[a > 0]
        y = x
        x *= 2
        return np.sum(y)

    with pytest.raises(NotImplementedError, match=r"E124[\s\S]*np.array\(x\[mask\]\)"):
        gradsmith.jit(doubled)(A)


def test_sizes_that_sums_give():
    def ones(x):
        return np.cumsum(np.ones((x > 0).sum())) * x[0], np.sum(np.ones(np.count_nonzero(x)) * x[1])

    x = np.array([1.0, -2.0, 3.0])
    same(ones(x), gradsmith.jit(ones)(x))
