"""Functions that pick, search, convolve and interpolate against NumPy: dtypes, ranks, modes, sizes 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.evaluating import array, assert_conforms, spelled_call
from conformance.slopes import gradient, numerical_gradient

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func, int_const
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At, New, Span
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ops.spelling import find_spelling

DTYPES = ("bool", "int8", "int64", "float32", "float64")
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def check(function, *args, **options):
    rtol = 1e-4 if any(a.dtype == np.float32 for a in args if isinstance(a, np.ndarray)) else 1e-10
    assert_conforms(function, *args, rtol=rtol, **options)


def positions(shape, low, high, dtype="int64", seed=0):
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)[()]


# --- basic indices ------------------------------------------------------------------------------------------------

INDICES = (
    ((4,), (At(),), (2,), np.s_[2]), ((4,), (Span(1, 2),), (), np.s_[1:3]), ((5,), (Span(4, 3, -2),), (), np.s_[::-2]),
    ((3, 4), (At(), Span(0, 4)), (1,), np.s_[1]), ((3, 4), (New(), Span(None, 2), At()), (1, 3), np.s_[None, 1:3, 3]),
    ((2, 3, 4), (Span(0, 2), New(), At(), Span(3, 2, -3)), (2,), np.s_[:, None, 2, ::-3]),
    ((0, 3), (Span(0, 0), At()), (1,), np.s_[:, 1]), ((3,), (Span(0, 0),), (), np.s_[0:0]),
)


@every_dtype
@pytest.mark.parametrize("case", INDICES, ids=lambda c: str(c[3]))
def test_load_and_store(case, dtype):
    shape, index, scalars, where = case
    x = array(shape, dtype)
    at = [int_const(s) for s in scalars]

    def body(x):
        part = ops.load(x, *at, index=index)
        return part, ops.store(x, 1, *at, index=index)

    part, changed = evaluate(build_func("f", [("x", Type(dtype, shape))], body), x)
    expected = x.copy()
    expected[where] = 1
    np.testing.assert_array_equal(x[where], part)
    np.testing.assert_array_equal(expected, changed)


def test_an_index_outside_is_refused_where_it_is_known():
    with pytest.raises(RuleError, match="not inside an axis of 3"):
        build_func("f", [("x", Type("float64", (3,)))], lambda x: (ops.load(x, index=(Span(2, 2),)),))
    func = build_func("f", [("x", Type("float64", (3,))), ("i", Type("int64"))],
                      lambda x, i: (ops.load(x, i, index=(At(),)),))
    for i in (-1, 3):
        with pytest.raises(IndexError):
            evaluate(func, np.ones(3), np.int64(i))


# --- picking ------------------------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("index_dtype", ["int64", "int32", "uint8"])
def test_take(dtype, index_dtype):
    low = 0 if index_dtype == "uint8" else -1
    for shape, axis in (((5,), None), ((3, 4), None), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((1, 1), 0)):
        size = int(np.prod(shape)) if axis is None else shape[axis]
        for wanted in ((), (3,), (2, 2), (0,)):
            check(np.take, array(shape, dtype), positions(wanted, low * size, size, index_dtype), axis=axis)
            for mode in ("wrap", "clip"):
                check(np.take, array(shape, dtype), positions(wanted, 6 * low, 9, index_dtype), axis=axis, mode=mode)
    check(np.ndarray.take, array((5,), dtype), [1, -1])
    check(np.take, array((5,), dtype), 2)
    check(np.take, np.asarray(array((), dtype)), 0)
    check(np.take, array((0,), dtype), np.zeros(0, np.int64))


def test_indices_out_of_range():
    for function, *args in ((np.take, np.ones(3), np.array([3])), (np.take, np.ones(3), np.array([-4])),
                            (np.take_along_axis, np.ones((2, 3)), np.array([[5]])),
                            (np.take, np.ones(3), 3), (np.take, np.ones(3), [0, -9])):
        with pytest.raises((IndexError, RuleError), match="out of bounds for axis"):
            spelled_call(function, *args)
    with pytest.raises(RuleError, match="must be integers"):
        spelled_call(np.take, np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="invalid entry in choice array"):
        spelled_call(np.choose, np.array([2]), np.ones((2, 1)))


@every_dtype
def test_take_along_axis(dtype):
    for shape, wanted, axis in (((3, 4), (3, 2), 1), ((3, 4), (5, 4), 0), ((3, 4), (5, 1), 0), ((3, 1, 4), (3, 2, 4), -1),
                                ((3, 4), (7,), None), ((4,), (0,), 0)):
        size = int(np.prod(shape)) if axis is None else shape[axis]
        check(np.take_along_axis, array(shape, dtype), positions(wanted, -size, size), axis=axis)
    x = array((3, 4), "float64")
    check(np.take_along_axis, x, np.argsort(x, axis=1), axis=1)


@every_dtype
def test_choose(dtype):
    check(np.choose, positions((3, 4), 0, 2), array((2, 3, 4), dtype))
    check(np.choose, positions((4,), 0, 2), array((2, 3, 4), dtype))
    check(np.choose, positions((3, 4), 0, 2), [array((4,), dtype), array((3, 1), dtype)])
    for mode in ("wrap", "clip"):
        check(np.choose, positions((4,), -9, 9), array((5, 4), dtype), mode=mode)
        check(np.choose, positions((4,), -9, 9), [array((4,), dtype)] * 3, mode=mode)


@every_dtype
def test_select(dtype):
    x, y = array((3, 4), dtype), array((4,), dtype, 1)
    check(np.select, [x > 1, x > 0], [x, y], 0)
    check(np.select, [x > 1], [y], default=x)
    check(np.select, [x], [y])


def selected_by_values(x, m, row):
    return (np.nonzero(x > 1), np.nonzero(x), x.nonzero(), np.flatnonzero(x > 1), np.argwhere(x > 1), np.where(m),
            np.extract(x > 1, x), np.compress(row, x, axis=0), np.compress(row, x), x.compress(row, axis=0),
            np.compress(row, x, axis=1), np.nonzero(x > 100), x[m], x[row], x[:, m[0]], x[m[:, 0], 1], x[row][:, m[0]])


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_results_sized_by_values(dtype):
    args = array((3, 4), dtype), array((3, 4), "float64") > 0, np.array([True, False, True])
    want, found = selected_by_values(*args), gradsmith.jit(selected_by_values)(*args)
    for expected, actual in zip(want, found, strict=True):
        for e, a in zip(*((x if isinstance(x, tuple) else (x,)) for x in (expected, actual)), strict=True):
            assert e.dtype == a.dtype
            np.testing.assert_array_equal(a, e)


def test_repeated_places():
    x, i = array((4,)), np.array([2, 0, 2])

    def body(x, v, i):
        return ops.scatter_add(x, v, i, axes=(0,)), ops.scatter(x, v, i, axes=(0,))

    types = [("x", Type("float64", (4,))), ("v", Type("float64", (3,))), ("i", Type("int64", (3,)))]
    added, written = evaluate(build_func("f", types, body), x, np.array([1.0, 2.0, 3.0]), i)
    np.testing.assert_allclose(x + [2.0, 0.0, 4.0, 0.0], added)
    np.testing.assert_array_equal([2.0, x[1], 3.0, x[3]], written)


# --- searching ----------------------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(dtype, side):
    a, v = np.sort(array((6,), dtype)), array((2, 4), dtype, 1)
    for wanted in (v, v[0, 0], v.astype("float64"), 1):
        check(np.searchsorted, a, wanted, side)
    check(np.searchsorted, a[:0], v, side=side)
    shuffled = a[[3, 0, 5, 1, 4, 2]]
    check(np.searchsorted, shuffled, v, side, np.argsort(shuffled, kind="stable"))
    check(np.ndarray.searchsorted, a, v)


def test_searchsorted_puts_nan_last():
    a = np.array([-np.inf, 1.0, np.inf, np.nan, np.nan])
    for side in ("left", "right"):
        check(np.searchsorted, a, np.array([np.nan, np.inf, -np.inf, 2.0]), side)


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    bins = np.array([-1.0, 0.5, 0.75, 2.0])
    for x in (array((3, 4)), bins, np.float64(0.5)):
        check(np.digitize, x, bins, right)
        check(np.digitize, x, bins[::-1].copy(), right)


# --- signals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, "complex128"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_and_correlate(dtype, mode):
    for n, m in ((5, 3), (3, 5), (4, 4), (5, 4), (4, 5), (1, 1), (6, 1), (1, 6), (7, 2), (2, 7)):
        check(np.convolve, array((n,), dtype), array((m,), dtype, 1), mode)
        check(np.correlate, array((n,), dtype), array((m,), dtype, 1), mode)
    check(np.convolve, array((5,), dtype), [1, 2], mode)


def test_convolve_refuses():
    for bad in ((np.ones((2, 2)), np.ones(2)), (np.ones(0), np.ones(2))):
        check(np.convolve, *bad)
    with pytest.raises(RuleError, match="mode"):
        spelled_call(np.convolve, np.ones(3), np.ones(2), "circular")


@pytest.mark.parametrize("points", [1, 2, 6])
def test_interp(points):
    xp, fp = np.sort(array((points,))), array((points,), seed=1)
    x = np.concatenate([array((5,), seed=2), xp, [np.inf, -np.inf, np.nan]])
    check(np.interp, x, xp, fp)
    check(np.interp, x[0], xp, fp)
    check(np.interp, 0.5, xp, fp)
    check(np.interp, x, xp, fp, left=-1.0, right=7)
    check(np.interp, x, xp, fp + 1j * fp[::-1])
    check(np.interp, x[:-3], xp, fp, period=5.0, names=False)
    check(np.interp, np.array([[1, 2], [3, 4]]), np.array([0, 1, 1, 5]), np.arange(4))
    check(np.interp, x, xp, fp[:-1])


# --- derivatives --------------------------------------------------------------------------------------------------


def spelled(key, *rest, **options):
    return lambda *xs: find_spelling(key)(*xs, *rest, **options)


def test_gradients():
    for function, reference, *xs in (
            (spelled(np.take, [2, 0, 2]), lambda x: np.take(x, [2, 0, 2]), array((4,))),
            (spelled(np.convolve), np.convolve, array((5,)), array((3,), seed=1)),
            (spelled(np.convolve, "same"), lambda a, v: np.convolve(a, v, "same"), array((3,)), array((4,), seed=1)),
            (spelled(np.correlate), np.correlate, array((5,)), array((3,), seed=1)),
            (spelled(np.interp), np.interp, np.array([-0.3, 0.6, 1.7]), np.array([-1.0, 0.0, 1.1, 2.0]), array((4,)))):
        for k, (got, want) in enumerate(zip(gradient(function, *xs), numerical_gradient(reference, *xs))):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=f"argument {k}")


def test_a_place_outside_of_the_points_is_no_source_of_nan():
    found = gradient(spelled(np.interp), np.array([5.0, -5.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal([0.0, 0.0, 0.0, 1.0], found[0])
    np.testing.assert_array_equal([2.0, 0.0, 2.0], found[2])
