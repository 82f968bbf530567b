"""Reductions, statistics and scans against NumPy: dtypes, ranks 0 to 4, sizes 0 and 1, and all their options."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
from conformance.evaluating import array, assert_conforms, spelled_call
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.transpiler.errors import RuleError

DTYPES = ("bool", "int8", "int32", "int64", "uint8", "float32", "float64")
SHAPES = ((), (1,), (0,), (5,), (2, 3), (1, 3), (0, 3), (2, 1, 3), (2, 3, 4), (2, 1, 2, 3))
FOLDS = (np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean)


def axes_for(rank):
    """None, each axis from both ends, and a pair."""
    return [None, *range(-rank, rank), *([(0, -1)] if rank > 1 else []), *([(0, 2, 1)] if rank == 3 else []), ()]


@pytest.mark.parametrize("function", FOLDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_axis_and_keepdims(function, dtype):
    for shape in SHAPES:
        for axis, keepdims in itertools.product(axes_for(len(shape)), (False, True)):
            assert_conforms(function, array(shape, dtype), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.mean, np.var, np.nansum, np.nanmean, np.cumsum, np.cumprod],
                         ids=lambda f: f.__name__)
def test_dtype(function):
    for given_dtype, wanted in itertools.product(DTYPES, ("float32", "float64", "int32", np.int64, float, "complex64")):
        if function in (np.mean, np.var, np.nanmean) and np.dtype(wanted).kind == "i":
            continue
        assert_conforms(function, array((2, 3), given_dtype), axis=1, dtype=wanted, rtol=1e-5)
    if function in (np.sum, np.prod, np.cumsum, np.cumprod):
        assert_conforms(function, array((2, 3), "int32"), axis=0, dtype=bool)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min, np.nansum, np.nanmax, np.nanmin],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_initial_and_where(function, dtype):
    for shape in ((), (4,), (0,), (2, 3), (0, 3), (2, 1, 3)):
        x = array(shape, dtype)
        for axis, keepdims in itertools.product((None, *range(len(shape))), (False, True)):
            assert_conforms(function, x, axis=axis, keepdims=keepdims, initial=1)
            assert_conforms(function, x, axis=axis, keepdims=keepdims, where=array(shape, "bool", 1))
            assert_conforms(function, x, axis=axis, keepdims=keepdims, initial=1, where=array(shape, "bool", 1))
            if shape:
                assert_conforms(function, x, axis=axis, initial=2, where=array(shape[-1:], "bool", 2))


@pytest.mark.parametrize("function", [np.any, np.all, np.mean, np.var, np.std], ids=lambda f: f.__name__)
def test_where(function):
    for shape in ((4,), (2, 3), (2, 1, 3)):
        for axis in (None, 0, -1):
            assert_conforms(function, array(shape), axis=axis, where=array(shape, "bool", 3))
            assert_conforms(function, array(shape), axis=axis, where=array(shape[-1:], "bool", 3))


@pytest.mark.parametrize("function", [np.argmax, np.argmin], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions(function, dtype):
    for shape in SHAPES:
        for axis, keepdims in itertools.product((None, *range(-len(shape), len(shape))), (False, True)):
            assert_conforms(function, array(shape, dtype), axis=axis, keepdims=keepdims)
    assert_conforms(function, np.array([1.0, np.nan, 3.0, np.nan]))
    assert_conforms(function, np.array([2, 5, 5, 2]))


@pytest.mark.parametrize("function", [np.var, np.std, np.nanvar, np.nanstd], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
def test_spread(function, dtype):
    if function in (np.nanvar, np.nanstd) and dtype == "complex128":
        return
    for shape in ((), (1,), (5,), (2, 3), (0, 3), (2, 3, 4)):
        for axis, keepdims in itertools.product((None, *range(len(shape))), (False, True)):
            assert_conforms(function, array(shape, dtype), axis=axis, keepdims=keepdims, rtol=1e-5)
            assert_conforms(function, array(shape, dtype), axis=axis, ddof=1, keepdims=keepdims, rtol=1e-5)
    x = array((2, 3))
    assert_conforms(function, x, axis=1, correction=1)
    assert_conforms(function, x, axis=1, ddof=0.5)
    assert_conforms(function, x, axis=1, mean=np.mean(x, axis=1, keepdims=True))


@pytest.mark.parametrize("function", [np.nansum, np.nanprod, np.nanmean, np.nanmax, np.nanmin, np.nanvar, np.nanstd],
                         ids=lambda f: f.__name__)
def test_skipping_nan(function):
    x = array((3, 4))
    x[0, 1] = x[1, 1] = x[2, 1] = x[2, 3] = np.nan
    for axis, keepdims in itertools.product((None, 0, 1, -1), (False, True)):
        assert_conforms(function, x, axis=axis, keepdims=keepdims)
        assert_conforms(function, array((3, 4), "int32"), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("function", [np.nancumsum, np.nancumprod], ids=lambda f: f.__name__)
def test_running_without_nan(function):
    assert_conforms(function, np.array([1.0, np.nan, 3.0]))


def test_average():
    x = array((2, 3))
    for axis in (None, 0, 1, -1):
        assert_conforms(np.average, x, axis=axis)
        assert_conforms(np.average, x, axis=axis, weights=np.abs(array((2, 3), seed=1)), rtol=1e-13)
        assert_conforms(np.average, x, axis=axis, weights=np.abs(array((2, 3), seed=1)), returned=True, rtol=1e-13)
        assert_conforms(np.average, x, axis=axis, returned=True)
        assert_conforms(np.average, array((2, 3), "int32"), axis=axis, weights=array((2, 3), "uint8", 1) + 1, keepdims=True)
    assert_conforms(np.average, x, axis=1, weights=np.abs(array((3,), seed=1)))
    assert_conforms(np.average, x, axis=0, weights=[1, 3])
    assert_conforms(np.average, array((2, 3, 4)), axis=(0, 1), weights=np.abs(array((2, 3), seed=1)))
    assert_conforms(np.average, array((2, 3, 4)), axis=(1, 0), weights=np.abs(array((3, 2), seed=1)))
    assert_conforms(np.average, x, axis=1, weights=np.array([1.0, -1.0, 0.0]))
    assert_conforms(np.average, x, weights=np.array([1.0, -1.0, 0.0]))
    assert_conforms(np.average, array((3,), "float32"), weights=array((3,), "float32", 1) + 5)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bool"])
def test_median(dtype):
    for shape in ((), (1,), (5,), (6,), (2, 3), (4, 3), (2, 3, 4), (0,), (0, 3)):
        for axis, keepdims in itertools.product((None, *range(-len(shape), len(shape)), *([(0, 1)] if len(shape) > 1 else [])),
                                                (False, True)):
            assert_conforms(np.median, array(shape, dtype), axis=axis, keepdims=keepdims)
    assert_conforms(np.median, np.array([1.0, np.nan, 2.0]))
    assert_conforms(np.median, np.array([[1.0, np.inf, 2.0], [np.inf, np.inf, 0.0]]), axis=1)


@pytest.mark.parametrize("function", [np.quantile, np.percentile], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_quantiles(function, dtype):
    scale = 100 if function is np.percentile else 1
    for shape in ((), (1,), (5,), (2, 3), (2, 3, 4)):
        for axis, keepdims in itertools.product((None, *range(-len(shape), len(shape))), (False, True)):
            for q in (0, 0.25, 0.5, 0.3, 1, [0.1, 0.9]):
                q = [v * scale for v in q] if isinstance(q, list) else q * scale
                assert_conforms(function, array(shape, dtype), q, axis=axis, keepdims=keepdims, rtol=1e-5)
    for method in ("lower", "higher"):
        assert_conforms(function, array((5,), dtype), 0.3 * scale, method=method)
    assert_conforms(function, np.array([1.0, np.nan, 2.0]), 0.5 * scale)
    assert_conforms(function, array((3,)), 2.0 * scale)


def test_nanmedian():
    x = array((3, 4))
    x[0, 1] = x[1, 1] = x[2, 1] = x[2, 3] = np.nan
    for axis, keepdims in itertools.product((None, 0, 1, -1), (False, True)):
        assert_conforms(np.nanmedian, x, axis=axis, keepdims=keepdims)
        assert_conforms(np.nanmedian, array((3, 4), "int32"), axis=axis, keepdims=keepdims)
    assert_conforms(np.nanmedian, np.array([np.nan, 2.0]))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
def test_ptp_and_count(dtype):
    for axis, keepdims in itertools.product((None, 0, -1), (False, True)):
        assert_conforms(np.ptp, array((2, 3), dtype), axis=axis, keepdims=keepdims)
        assert spelled_call(np.count_nonzero, array((2, 3), dtype), axis=axis, keepdims=keepdims).tolist() == (
            np.count_nonzero(array((2, 3), dtype), axis=axis, keepdims=keepdims) + np.int64(0)).tolist()


METHODS = ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin", "cumsum", "cumprod", "argsort")


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    for dtype in ("int32", "float64"):
        assert_conforms(getattr(np.ndarray, name), array((2, 3), dtype), 1)
        if name != "argsort":
            assert_conforms(getattr(np.ndarray, name), array((2, 3), dtype))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or",
                                  "logical_xor", "logaddexp"])
def test_ufunc_reduce(name):
    key = (getattr(np, name), "reduce")
    for dtype in ("bool", "int32", "float32", "float64")[name == "logaddexp":]:      # of bools it is a float16
        for shape in ((4,), (2, 3), (0, 3), (2, 3, 2), ()):
            for axis in (0, *([-1, (0, 1)] if len(shape) > 1 else []), None):
                if len(shape) == 0 and axis == 0 and name == "logaddexp":
                    continue
                assert_conforms(key, array(shape, dtype), axis, rtol=1e-5)
                assert_conforms(key, array(shape, dtype), axis, keepdims=True, rtol=1e-5)
        assert_conforms(key, array((4,), dtype))
    assert_conforms(key, array((2, 3)), 1, initial=1)
    assert_conforms(key, array((2, 3)), 1, initial=1, where=array((2, 3), "bool", 1))
    assert_conforms(key, np.array([1.0, np.nan, 2.0]))


def test_add_reduce_dtype():
    assert_conforms((np.add, "reduce"), array((2, 3), "int32"), dtype="float32")
    assert_conforms((np.logaddexp, "reduce"), array((2, 3), "float64"), dtype="float32", rtol=1e-5)
    assert_conforms((np.logaddexp, "reduce"), np.array([-np.inf, -np.inf]))
    assert_conforms((np.logaddexp, "reduce"), np.array([-np.inf, 1000.0, 1000.0]))
    assert_conforms((np.logaddexp, "reduce"), np.array([np.inf, 1.0]))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"])
def test_ufunc_accumulate(name):
    key = (getattr(np, name), "accumulate")
    for dtype in ("bool", "int32", "float32", "float64"):
        for shape in ((4,), (1,), (0,), (2, 3), (2, 1, 3)):
            for axis in range(-len(shape), len(shape)):
                assert_conforms(key, array(shape, dtype), axis)
        assert_conforms(key, array((2, 3), dtype))
    assert_conforms(key, np.array([1.0, np.nan, 2.0]))


@pytest.mark.parametrize("function", [np.cumsum, np.cumprod], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_running(function, dtype):
    for shape in SHAPES:
        for axis in (None, *range(-len(shape), len(shape))):
            assert_conforms(function, array(shape, dtype), axis=axis)


@pytest.mark.parametrize("function", [np.cumulative_sum, np.cumulative_prod], ids=lambda f: f.__name__)
def test_cumulative(function):
    for include in (False, True):
        assert_conforms(function, array((4,), "int32"), include_initial=include)
        for axis in (None, 0, -1):
            assert_conforms(function, array((2, 3)), axis=axis, include_initial=include)


def test_logsumexp():
    key = ("scipy.special", "logsumexp")

    def check(*args, **options):
        expected = scipy.special.logsumexp(*args, **options)
        got = spelled_call(key, *args, **options)
        for e, g in zip(expected, got) if options.get("return_sign") else [(expected, got)]:
            np.testing.assert_allclose(g, e, rtol=1e-12)
            assert np.shape(e) == np.shape(g)

    for axis, keepdims in itertools.product((None, 0, 1, (0, 1)), (False, True)):
        check(array((2, 3)), axis=axis, keepdims=keepdims)
        check(array((2, 3)), axis=axis, keepdims=keepdims, b=np.abs(array((3,), seed=1)))
        check(array((2, 3)), axis=axis, keepdims=keepdims, b=array((2, 3), seed=1), return_sign=True)
    check(array((2, 3)), b=array((2, 3), seed=5), axis=1)
    check(np.array([-np.inf, -np.inf]))
    check(np.array([1000.0, 1000.0]), b=np.array([1.0, 0.0]))
    check(np.array([2, 3]))


@pytest.mark.parametrize("function", [np.sort, np.argsort], ids=lambda f: f.__name__)
def test_sorting(function):
    for dtype in ("bool", "int32", "float64"):
        for shape in ((1,), (5,), (0,), (2, 3), (2, 3, 4)):
            for axis in (None, *range(-len(shape), len(shape))):
                assert_conforms(function, array(shape, dtype), axis=axis, kind="stable")
    assert_conforms(function, np.array([1.0, np.nan, -np.inf, 0.0, -0.0]), kind="stable")
    assert_conforms(function, array((4,)), kind="bogosort")
    assert_conforms(np.sort, np.float64(1.0))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float64"])
def test_diff(dtype):
    for shape in ((5,), (1,), (0,), (2, 3), (3, 2, 4)):
        for axis, n in itertools.product(range(-len(shape), len(shape)), (0, 1, 2, 3)):
            assert_conforms(np.diff, array(shape, dtype), n=n, axis=axis)
    assert_conforms(np.diff, array((4,), dtype), prepend=1, append=array((2,), dtype))
    assert_conforms(np.diff, array((2, 3), dtype), axis=0, prepend=0)
    assert_conforms(np.diff, array((2, 3)), n=-1)
    if dtype != "bool":
        assert_conforms(np.ediff1d, array((2, 3), dtype))
        assert_conforms(np.ediff1d, array((3,), dtype), to_begin=array((1,), dtype), to_end=array((2,), dtype))


def test_gradient():
    for shape in ((5,), (2,), (3, 4), (3, 4, 3)):
        for axis in (None, *range(len(shape))):
            assert_conforms(np.gradient, array(shape), axis=axis)
            assert_conforms(np.gradient, array(shape), 0.5, axis=axis)
            if min(shape) > 2:
                assert_conforms(np.gradient, array(shape), axis=axis, edge_order=2, rtol=1e-12)
    x = np.cumsum(np.abs(array((5,))) + 0.1)
    for order in (1, 2):
        assert_conforms(np.gradient, array((5,)), x, edge_order=order, rtol=1e-12)
    assert_conforms(np.gradient, array((3, 5)), 0.5, x, rtol=1e-12)
    assert_conforms(np.gradient, array((3, 5)), x, axis=1, rtol=1e-12)
    assert_conforms(np.gradient, array((5,), "int32"))
    assert_conforms(np.gradient, array((5,), "float32"), 2.0)
    assert_conforms(np.gradient, array((1,)))


def test_trapezoid():
    for axis in (0, 1, -1):
        assert_conforms(np.trapezoid, array((3, 4)), axis=axis)
        assert_conforms(np.trapezoid, array((3, 4)), dx=0.5, axis=axis)
        assert_conforms(np.trapezoid, array((3, 4)), array((3, 4), seed=1), axis=axis)
    assert_conforms(np.trapezoid, array((3, 4)), array((4,), seed=1))
    assert_conforms(np.trapezoid, array((4,), "int32"), array((4,), seed=1))
    assert_conforms(np.trapezoid, array((4,), "float32"))


def test_refusals():
    for call in (lambda: spelled_call(np.sum, array((2, 3)), axis=2), lambda: spelled_call(np.sum, array((2, 3)), axis=(0, 0)),
                 lambda: spelled_call(np.max, array((0,))), lambda: spelled_call(np.argmax, array((2, 0)), axis=1),
                 lambda: spelled_call(np.sum, array((2,)), out=1)):
        with pytest.raises(RuleError):
            call()
    with pytest.raises(RuleError, match="zero-size array to reduction operation maximum which has no identity"):
        spelled_call(np.max, array((0, 3)), axis=0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_reductions(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    axes = data.draw(st.none() | st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True, max_size=len(shape)).map(tuple))
    function = data.draw(st.sampled_from([np.sum, np.prod, np.any, np.all, np.mean, np.max, np.min]))
    dtype = data.draw(st.sampled_from(DTYPES))
    assert_conforms(function, array(shape, dtype), axis=axes, keepdims=data.draw(st.booleans()))
