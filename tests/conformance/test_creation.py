"""Creation of arrays against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conformance.evaluating import array, assert_conforms, spelled_call

from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func, size_value
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ops.spelling import find_spelling

DTYPES = ("bool", "int8", "int32", "uint8", "float32", "float64", "complex128", int, float, bool, np.float32, None)


@pytest.mark.parametrize("function", [np.zeros, np.ones, np.full], ids=lambda f: f.__name__)
def test_filled(function):
    for shape, dtype in itertools.product(((), (3,), 3, (0, 2), (2, 3), [2, 3]), DTYPES):
        if function is np.full:
            assert_conforms(function, shape, 1, dtype=dtype)
            assert_conforms(function, shape, np.float32(1.5), dtype=dtype)
        else:
            assert_conforms(function, shape, dtype=dtype)
    assert_conforms(np.full, (2, 3), array((3,)))
    assert_conforms(np.full, (2, 3), [1, 2, 3])
    assert spelled_call(np.empty, (2, 3), dtype="int32").shape == (2, 3)


@pytest.mark.parametrize("function", [np.zeros_like, np.ones_like, np.full_like], ids=lambda f: f.__name__)
def test_like(function):
    more = (2,) if function is np.full_like else ()
    for shape, given_dtype, dtype in itertools.product(((), (3,), (2, 3)), ("bool", "int32", "float32"), (None, "float64", int)):
        assert_conforms(function, array(shape, given_dtype), *more, dtype=dtype)
    assert_conforms(function, array((2, 3)), *more, shape=(4,))
    assert_conforms(function, 1.5, *more)
    assert spelled_call(np.empty_like, array((2, 3), "float32")).dtype == np.float32


def test_from_values():
    for function in (np.array, np.asarray, np.ascontiguousarray):
        assert_conforms(function, array((2, 3), "float32"))
        assert_conforms(function, [1, 2.5, True])
        assert_conforms(function, [[1, 2], [3, 4]])
        assert_conforms(function, 3)
        assert_conforms(function, [array((3,)), array((3,), "int32", 1)])
        assert_conforms(function, [np.float32(1), np.float32(2)])
        assert_conforms(function, array((2, 3)), dtype="float32")
        assert_conforms(function, [[1, 2], [3]])
        assert_conforms(function, [])
    assert_conforms(np.array, array((2,)), ndmin=3)


ARANGE = ((5,), (2, 7), (2, 7, 2), (7, 2, -2), (0,), (5, 2), (1.0, 2.0, 0.1), (0.5,), (0, 1, 0.3), (-3, 3), (5, -5, -3), (2.5, -1, -0.7),
          (1, 2, 0))


@pytest.mark.parametrize("dtype", [None, "float32", "float64", "int32", int, float, "uint8"])
def test_arange(dtype):
    for bounds in ARANGE:
        if dtype == "uint8" and any(b < 0 for b in bounds):
            continue
        assert_conforms(np.arange, *bounds, dtype=dtype, rtol=0)


def with_size(key, *args, n, **options):
    """The spelling with the size of an array in place of each argument "n"."""
    size = symbol("n", 0)

    def put(a):
        return size if isinstance(a, str) and a == "n" else size - 1 if isinstance(a, str) and a == "n - 1" else a

    func = build_func("f", [("x", Type("float64", (size,)))], lambda x: (find_spelling(key)(*map(put, args), **options),))
    verify(func)
    return evaluate(func, np.zeros(n))[0]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_creation_of_named_sizes(n):
    for key, args in ((np.arange, ("n",)), (np.arange, (1, "n")), (np.arange, (0, "n", 2)), (np.arange, ("n", 0, -1)),
                      (np.arange, ("n - 1", -1, -2)), (np.linspace, (0.0, 1.0, "n")), (np.eye, ("n",)), (np.eye, ("n", 3, 1)),
                      (np.tri, ("n",)), (np.identity, ("n",)), (np.zeros, (("n", 2),)), (np.ones, ("n",)), (np.full, ("n", 2.5)),
                      (np.logspace, (0, 1, "n")), (np.geomspace, (1, 8, "n")), (np.indices, (("n", 2),))):
        values = [n if a == "n" else n - 1 if a == "n - 1" else tuple(n if v == "n" else v for v in a) if isinstance(a, tuple) else a
                  for a in args]
        nested = [tuple(symbol("n", 0) if v == "n" else v for v in a) if isinstance(a, tuple) else a for a in args]
        got = with_size(key, *nested, n=n)
        expected = key(*values)
        assert expected.dtype == got.dtype, (key, args)
        np.testing.assert_allclose(got, expected, rtol=1e-14, err_msg=f"{key} {args}")
    got = with_size(np.arange, "n", n=n, dtype="float32")
    np.testing.assert_array_equal(got, np.arange(n, dtype="float32"))


def test_linspace():
    for num, endpoint in itertools.product((0, 1, 2, 5, 50), (True, False)):
        assert_conforms(np.linspace, 0, 1, num, endpoint=endpoint)
        assert_conforms(np.linspace, -1.5, 2, num, endpoint=endpoint, dtype="float32")
        assert_conforms(np.linspace, 0, 10, num, endpoint=endpoint, dtype=int)
        assert_conforms(np.linspace, array((3,)), array((2, 3), seed=1), num, endpoint=endpoint, axis=-1)
        assert_conforms(np.linspace, array((3,)), 4, num, endpoint=endpoint, axis=1)
        assert_conforms(np.linspace, np.float32(0), np.float32(1), num, endpoint=endpoint)
        if num > 1:
            assert_conforms(np.linspace, 0, 1, num, endpoint=endpoint, retstep=True)
        assert_conforms(np.logspace, 0, 2, num, endpoint=endpoint, rtol=1e-13)
        assert_conforms(np.logspace, 0, 2, num, endpoint=endpoint, base=2, rtol=1e-13)
        assert_conforms(np.logspace, array((3,)), 2, num, endpoint=endpoint, rtol=1e-13)
        assert_conforms(np.geomspace, 1, 1000, num, endpoint=endpoint, rtol=1e-13)
        assert_conforms(np.geomspace, -1000.0, -1, num, endpoint=endpoint, rtol=1e-13)
        assert_conforms(np.geomspace, np.array([1.0, 2.0]), 16.0, num, endpoint=endpoint, rtol=1e-13)
    assert_conforms(np.linspace, 0, 1)
    assert_conforms(np.linspace, 0, 1, -1)
    assert_conforms(np.geomspace, 0.0, 1.0)


def test_matrices():
    for n, m, k, dtype in itertools.product((0, 1, 3), (None, 0, 2, 4), (-1, 0, 2), (float, "int32", bool)):
        assert_conforms(np.eye, n, m, k, dtype=dtype)
        assert_conforms(np.tri, n, m, k, dtype=dtype)
    assert_conforms(np.identity, 3)
    assert_conforms(np.identity, 3, dtype="float32")


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bool"])
def test_vander(dtype):
    for n, increasing in itertools.product((None, 0, 1, 2, 4), (False, True)):
        assert_conforms(np.vander, array((3,), dtype), n, increasing=increasing, names=n is not None)


def test_indices():
    for shape, dtype, sparse in itertools.product(((), (3,), (2, 3), (2, 0, 3)), (int, "float32"), (False, True)):
        assert_conforms(np.indices, shape, dtype, sparse)


def test_refusals():
    with pytest.raises(RuleError, match="dtype object is not supported"):
        spelled_call(np.zeros, (2,), dtype=object)
    with pytest.raises(RuleError, match="np.arange needs bounds known while transpiling"):
        spelled_call(np.arange, np.int64(3))
    with pytest.raises(RuleError, match="order"):
        spelled_call(np.reshape, array((2, 3)), (3, 2), order="Q")


def test_sizes_are_values():
    """A size may be filled in wherever a number may."""
    n = symbol("n", 0)
    func = build_func("f", [("x", Type("float64", (n,)))], lambda x: (find_spelling(np.full)((2,), n), size_value(n)))
    assert [3, 3] == evaluate(func, np.zeros(3))[0].tolist()
