"""NumPy's indices, read and written, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracing import check, failure, same, traced

from gradsmith.transpiler.ir.evaluate import evaluate

A = np.arange(24.0).reshape(2, 3, 4) + 1
V = np.arange(5.0) + 1

BASIC = [
    (0,), (-1,), (1, -2), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis, -1), (None, 1), (slice(None), None, 0),
    (slice(1, None),), (slice(None, -1), slice(-2, None)), (slice(None, None, -1),), (slice(None, None, 2), slice(5, 0, -2)),
    (slice(-10, 10), slice(3, 1)), (Ellipsis, None), (Ellipsis, slice(None, None, -3)), (1, 2, 3), (slice(0, 0),),
    (slice(2, None, -1), slice(None, 0, -1)), (),
]
ADVANCED = [
    (np.array([0, 1, 1]),), ([1, 0],), (slice(None), np.array([2, 0])), (np.array([0, 1]), np.array([1, 2])),
    (np.array([0, 1]), slice(None), np.array([3, -1])), (0, slice(None), np.array([1, 2])),
    (slice(None), 0, np.array([1, 2])), (np.array([[0, 1], [1, 0]]), 1), (Ellipsis, np.array([-1, -4, 0])),
    (np.array([True, False]),), (slice(None), np.array([True, False, True])), (None, np.array([1, 0]), Ellipsis),
    (np.array([[0], [1]]), np.array([0, 2]), slice(1, 3)), (np.zeros(2, bool),), (slice(None), None, [0, 1]),
    (np.array([[True, False, True], [False, True, False]]),), (0, np.array([True, True, False]), slice(None, None, -1)),
    (Ellipsis, [0, 1], [1, 2]), (np.array([], dtype=int),), ([],),
]


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_reading(key, fixed):
    def f(x):
        return x[key] * 1.0

    def g(x):
        return (x * 1.0)[key]

    check(f, A, fixed=fixed)
    check(g, A, fixed=fixed)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_writing(key, fixed):
    def f(x):
        y = x * 1.0
        y[key] = 7.0
        y[key] += y[key] * 2.0
        return y

    check(f, A, fixed=fixed)


@pytest.mark.parametrize("key", [(np.array([1, 0]),), (slice(None), np.array([2, 0])), (slice(1, None), 0), (Ellipsis, 1),
                                 (np.array([0, 1]), slice(None), np.array([3, -1])), (0, slice(None), np.array([1, 2]))], ids=str)
def test_writing_arrays(key):
    def f(x):
        y = x * 1.0
        y[key] = y[key] * np.arange(float(y[key].shape[-1]))
        return y

    check(f, A)


bounds = st.one_of(st.none(), st.integers(-7, 7))
entries = st.one_of(st.integers(-2, 1), st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -2, 3])),
                    st.none(), st.lists(st.integers(-2, 1), min_size=1, max_size=1), st.just(Ellipsis))


@settings(max_examples=60, deadline=None)
@given(st.lists(entries, max_size=4), st.booleans())
def test_any_index(parts, fixed):
    key = tuple(parts)

    def f(x):
        return x[key]

    try:
        A[key]
    except IndexError:
        assert isinstance(failure(f, A, fixed=fixed), IndexError)
    else:
        check(f, A, fixed=fixed)


def test_run_time_indices_wrap():
    def f(x, i, idx):
        return x[i], x[idx], x[idx[0]], x[i:i + 2] if False else x[-1]

    check(f, V, np.int64(-2), np.array([0, -1, 3]))


def test_index_arguments_stay_run_time():
    def f(x, i):
        return x[i] * 2.0

    found = check(f, V, 3)
    assert found.static_args == ()
    assert [s.kind for s in found.func.body.stmts if hasattr(s, "kind")] == ["IndexError"]


@pytest.mark.parametrize("key, text", [
    (7, "index 7 is out of bounds for axis 0 with size 5"), (-6, "index -6 is out of bounds for axis 0 with size 5"),
    ((0, 0), "too many indices for array: array is 1-dimensional, but 2 were indexed"),
    ([0, 9], "index 9 is out of bounds for axis 0 with size 5"),
    (1.5, "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
          "indices"),
    (np.array([True, False]), "boolean index did not match indexed array along axis 0; size of axis is 5 but size of "
                              "corresponding boolean axis is 2"),
    ((Ellipsis, Ellipsis), "an index can only have a single ellipsis ('...')"),
])
def test_index_errors_are_numpys(key, text):
    def f(x):
        return x[key]

    with pytest.raises(IndexError) as expected:
        V[key]
    assert str(expected.value) == text
    for fixed in (True, False):
        caught = failure(f, V, fixed=fixed)
        assert isinstance(caught, IndexError)
        assert caught.message == text
        assert "x[key]" in str(caught)


def test_guards_of_an_index():
    def f(x):
        return x[3]

    found = check(f, V)
    assert [str(g) for g in found.shape_guards] == ["3 - a0_n0 < 0"] or found.shape_guards[0].holds({"a0_n0": 4})
    assert not all(g.holds({"a0_n0": 3}) for g in found.shape_guards)


def test_views_see_writes():
    def f(x):
        a = x * 1.0
        row, column, flat, turned = a[0], a[:, 1], a.reshape(-1), a.T
        same = a
        row[1] = 10.0
        turned[2, 1] = 20.0
        flat[3:5] += 1.0
        same *= 2.0
        a[1][0] = -1.0
        return a, row, column, flat, turned, same

    check(f, A[0])
    check(f, A[0], fixed=True)


def test_copies_do_not():
    def f(x):
        a = x.copy()
        b, c, d = a[[0, 1]], a + 0, a.flatten()
        a[:] = 0.0
        return a, b, c, d

    check(f, A[0])


def test_writing_into_fresh_arrays():
    def f(a):
        b = np.zeros((4, 4))
        b[:2, :2] = a
        b[2:, 2:] = 3.0 * a
        c = np.empty(3)
        c[0], c[1:] = a[0, 0], [1.0, 2.0]
        np.copyto(c[1:], a[0] * 2)
        d = np.arange(4)
        d[1] = 9
        np.add.at(c, np.array([0, 0, 2]), 1.0)
        return b, c, d

    check(f, np.array([[1.0, 2.0], [3.0, 4.0]]), fixed=True)
    check(f, np.array([[1.0, 2.0], [3.0, 4.0]]))


def test_in_place_operators_keep_the_dtype():
    def f(x):
        y = x * 1
        y += np.float64(2.0)
        y **= 2
        return y

    check(f, V.astype(np.float32))

    def g(x):
        y = np.zeros(3, dtype=int)
        y += x
        return y

    caught = failure(g, V[:3])
    assert isinstance(caught, TypeError)
    assert caught.code == "E308"


def test_masks_in_writes():
    def f(x):
        y = x * x
        y[y > 4.0] = 4.0
        y[x < 2] *= -1.0
        return y

    check(f, V)


def test_masks_in_reductions():
    def f(x):
        return np.sum(x[x > 2]), x[x < 3].mean(), x[x > 2].size

    check(f, V)


def test_selected_elements_side_by_side():
    check(lambda x: x[x > 2], V)


def test_a_write_to_an_argument_is_an_effect():
    def f(x):
        x[0] = 1.0
        return x

    found = traced(f, V)
    assert (0,) == found.written
    assert [found.func.params[0]] == list(found.func.effects)
    result, effect = evaluate(found.func, V)
    same(np.array([1.0, *V[1:]]), effect)
    same(effect, result)


def test_slices_by_sizes_and_arguments():
    def f(x, n):
        m = x.shape[0]
        return x[:n], x[m - 2:], x[m // 2], x[:-n], x[n - m:]

    check(f, V, 2)
    assert traced(f, V, 2).static_args == ()


def test_reshapes_that_may_copy_are_refused_when_written():
    def f(x):
        y = x.T * 2.0
        flat = y.reshape(-1)
        flat[0] = 1.0
        return y

    assert failure(f, A).code == "E123"

    def g(x):
        y = x.T * 2.0
        flat = y.reshape(-1)
        return y, flat * 2, y.ravel().copy()

    check(g, A)

    def h(x):
        y = x * 2.0
        y.flat[:] += 1.0
        y.ravel()[0] *= 2.0
        y.T.reshape(-1)[0]
        z = y.copy().reshape(-1)
        z[0] = 5.0
        return y, z

    check(h, A)
