"""Shape, joining, splitting, padding and diagonals against NumPy: dtypes, ranks 0 to 4, sizes 0 and 1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conformance.evaluating import array, assert_conforms, spelled_call, type_of
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ops.spelling import find_spelling

SHAPES = ((), (1,), (0,), (5,), (2, 3), (1, 3), (0, 3), (2, 1, 3), (2, 3, 4), (2, 1, 2, 3))
DTYPES = ("bool", "int32", "uint8", "float32", "float64")


def check(function, *args, **options):
    assert_conforms(function, *args, rtol=0, **options)


# ---------------------------------------------------------------------------------------------------------------
# reshape


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reshape(order, dtype):
    for before, after in (((6,), (2, 3)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((2, 3, 4), (6, 4)), ((2, 3, 4), (2, -1)),
                          ((2, 3, 4), (-1,)), ((24,), (2, 3, -1)), ((2, 3), (1, 2, 1, 3, 1)), ((2, 1, 3), (3, 2)),
                          ((), (1, 1)), ((1, 1), ()), ((0, 3), (0,)), ((0, 3), (3, -1)), ((4, 6), (2, 2, 3, 2)),
                          ((3, 4, 5), (4, 15)), ((2, 3), (4, -1)), ((2, 3), (5,)), ((2, 3), (-1, -1)), ((0, 3), (0, -1))):
        check(np.reshape, array(before, dtype), after, order=order)
        check(np.ndarray.reshape, array(before, dtype), after, order=order)
        if after:
            check(np.ndarray.reshape, array(before, dtype), *after, order=order)
    for shape in SHAPES:
        for function in (np.ravel, np.ndarray.ravel, np.ndarray.flatten):
            check(function, array(shape, dtype))
            check(function, array(shape, dtype), order=order)


def result_shape(key, dims, *args, **options):
    """The shape of the result for an argument of symbolic shape."""
    found = []

    def body(x):
        found.append(find_spelling(key)(x, *args, **options).shape)
        return (x,)

    build_func("f", [("x", Type("float64", dims))], body)
    return found[0]


def test_named_sizes_are_worked_out():
    n, m = symbol("n"), symbol("m")
    assert (n * m,) == result_shape(np.reshape, (n, m), -1)
    assert (m, n) == result_shape(np.reshape, (n, m), (m, -1))
    assert (m, n) == result_shape(np.ndarray.T, (n, m))
    assert (n * m,) == result_shape(np.ravel, (n, m))
    assert (n, m * 3) == result_shape(np.tile, (n, m), 3)
    assert (n * 2, m) == result_shape(np.repeat, (n, m), 2, axis=0)
    assert (n + 3, m + 3) == result_shape(np.pad, (n, m), (1, 2))
    assert (n - 1,) == result_shape(np.diff, (n,))
    assert (m,) == result_shape(np.sum, (n, m), axis=0)
    assert (n + 1, n + 1) == result_shape(np.diag, (n,), 1)
    assert (n, m) == result_shape(np.roll, (n, m), 1, axis=0)


def test_sizes():
    n = symbol("n")

    def body(x):
        assert (n, 3) == find_spelling(np.shape)(x)
        assert 2 == find_spelling(np.ndim)(x)
        assert n * 3 == find_spelling(np.size)(x)
        assert n == find_spelling(np.size)(x, 0)
        return (x,)

    build_func("f", [("x", Type("float64", (n, 3)))], body)


@pytest.mark.parametrize("function", [np.squeeze, np.ndarray.squeeze])
def test_squeeze(function):
    for shape in ((), (1,), (2, 1, 3), (1, 1), (1, 2, 1)):
        check(function, array(shape))
        for axis in (*range(-len(shape), len(shape)), (0,), (0, -1)):
            check(function, array(shape), axis=axis)


def test_expand_dims():
    for shape in ((), (3,), (2, 3)):
        for axis in (0, -1, len(shape), len(shape) + 1, (0, 1), (0, -1), (1, 0), (0, 0), -5):
            check(np.expand_dims, array(shape), axis)


@pytest.mark.parametrize("function", [np.atleast_1d, np.atleast_2d, np.atleast_3d])
def test_at_least(function):
    for shape in SHAPES:
        check(function, array(shape))
    check(function, array((3,)), array((2, 3)), array(()))
    check(function, 1.5)
    check(function, [1, 2])


# ---------------------------------------------------------------------------------------------------------------
# order


def test_transposes():
    for shape in SHAPES:
        x = array(shape)
        for function in (np.transpose, np.ndarray.transpose, np.ndarray.T):
            check(function, x)
        for axes in itertools.islice(itertools.permutations(range(len(shape))), 8):
            if axes:
                check(np.transpose, x, axes)
                check(np.ndarray.transpose, x, axes)
                check(np.ndarray.transpose, x, *axes)
                check(np.transpose, x, tuple(a - len(shape) for a in axes))
        if len(shape) > 1:
            check(np.ndarray.mT, x)
            check(np.matrix_transpose, x)
        for first, second in itertools.product(range(-len(shape), len(shape)), repeat=2):
            check(np.swapaxes, x, first, second)
            check(np.ndarray.swapaxes, x, first, second)
            check(np.moveaxis, x, first, second)
            check(np.rollaxis, x, first, second)
    check(np.transpose, array((2, 3)), (0, 0))
    check(np.transpose, array((2, 3)), (0,))
    check(np.moveaxis, array((2, 3, 4)), (0, 1), (-1, 0))
    check(np.moveaxis, array((2, 3, 4)), (0, 2), (2, 1))
    check(np.moveaxis, array((2, 3, 4)), (0, 0), (2, 1))
    check(np.rollaxis, array((2, 3, 4)), 2, 3)
    check(np.rollaxis, array((2, 3, 4)), 0, 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_flips(dtype):
    for shape in SHAPES:
        x = array(shape, dtype)
        for axis in (None, *range(-len(shape), len(shape)), *([(0, 1)] if len(shape) > 1 else [])):
            check(np.flip, x, axis)
        check(np.flipud, x)
        check(np.fliplr, x)
        if len(shape) > 1:
            for k in range(-2, 6):
                check(np.rot90, x, k)
                check(np.rot90, x, k, axes=(1, 0))
        for shift in (0, 1, -1, 2, 7, -9):
            check(np.roll, x, shift)
            for axis in range(-len(shape), len(shape)):
                check(np.roll, x, shift, axis)
    check(np.roll, array((3, 4), dtype), (1, -2), (0, 1))
    check(np.roll, array((3, 4), dtype), (1, 2), 0)
    check(np.roll, array((3, 4), dtype), 1, (0, 1))
    check(np.rot90, array((2, 3, 4), dtype), 1, axes=(0, 2))


def test_roll_by_what_is_known_at_run_time():
    x = array((3, 4))

    def rolled(x, k):
        return np.roll(x, k), np.roll(x, k, axis=-1), np.roll(x, (k, 1), axis=(0, 1))

    def slope(x, k):
        return gradsmith.grad(lambda x: np.sum(np.roll(x, k, axis=0) * x**2))(x)

    compiled = gradsmith.jit(lambda x, k: (*rolled(x, k), slope(x, k)))
    shifts = np.array([-9, -1, 0, 2, 7])
    lanes = gradsmith.vmap(compiled, in_axes=(None, 0))(x, shifts)
    for n, k in enumerate(shifts.tolist()):
        expected = (*rolled(x, k), np.roll(x**2, -k, axis=0) + 2 * x * np.roll(x, k, axis=0))
        for wanted, alone, lane in zip(expected, compiled(x, k), lanes, strict=True):
            np.testing.assert_allclose(alone, wanted, rtol=1e-14)
            np.testing.assert_allclose(lane[n], wanted, rtol=1e-14)


# ---------------------------------------------------------------------------------------------------------------
# broadcasting, repetition


def test_broadcast():
    for before, after in (((), (2, 3)), ((3,), (2, 3)), ((1, 3), (2, 3)), ((2, 1), (2, 3)), ((2, 3), (2, 3)), ((2,), (2, 3)),
                          ((2, 3), (3,)), ((1,), (0,)), ((1, 1), (4, 2, 3)), ((3,), 3), ((3,), (1,))):
        check(np.broadcast_to, array(before), after)
    check(np.broadcast_arrays, array((3,)), array((2, 1)), array(()))
    check(np.broadcast_arrays, array((3,)), array((2,)))


@pytest.mark.parametrize("function", [np.repeat, np.ndarray.repeat])
def test_repeat(function):
    for shape in ((), (1,), (3,), (0,), (2, 3), (2, 1, 3)):
        for count in (0, 1, 3):
            check(function, array(shape), count)
            for axis in range(-len(shape), len(shape)):
                check(function, array(shape), count, axis)
    check(function, array((3,)), [1, 0, 2])
    check(function, array((2, 3)), [1, 2], axis=0)
    check(function, array((2, 3)), [1, 2, 3], axis=0)
    check(function, array((2, 3)), -1)


def test_tile():
    for shape in ((), (1,), (3,), (0,), (2, 3), (2, 1, 3)):
        for reps in (1, 2, 0, (2,), (2, 3), (1, 2, 2), ()):
            check(np.tile, array(shape), reps)


def test_resize():
    for shape, new in itertools.product(((3,), (2, 3), (0,)), ((2,), (7,), (2, 4), (0,), 5)):
        assert_conforms(np.resize, array(shape), new, names=False)


def test_copies():
    for dtype, wanted in itertools.product(DTYPES, ("int32", np.float64, bool, "complex64", "float32")):
        check(np.ndarray.astype, np.abs(array((2, 3), dtype)) if dtype != "bool" else array((2, 3), dtype), wanted)
        check(np.ndarray.astype, array((2, 3), dtype) if np.dtype(wanted).kind != "u" else array((2, 3), "bool"), wanted,
              casting="safe")
    check(np.ndarray.copy, array((2, 3)))
    check(np.copy, array((2, 3)))


# ---------------------------------------------------------------------------------------------------------------
# joining and splitting


@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("int32", "float32"), ("bool", "uint8"), ("float32", "int64")])
def test_joining(dtypes):
    first, second = dtypes
    for a, b in (((2,), (3,)), ((2, 3), (2, 3)), ((2, 3), (4, 3)), ((2, 3), (2, 1)), ((0, 3), (2, 3)), ((), ()), ((1,), (1,)),
                 ((2, 3, 4), (2, 3, 4)), ((3,), (2, 3)), ((2, 3), (2,)), ((3,), (3,))):
        x, y = array(a, first), array(b, second, 1)
        for axis in (0, -1, 1, None):
            check(np.concatenate, (x, y), axis=axis)
            check(np.concatenate, [x, y, x], axis=axis)
            if axis is not None:
                check(np.stack, (x, y), axis=axis)
            check(np.append, x, y, axis=axis)
        for function in (np.hstack, np.vstack, np.dstack, np.column_stack):
            check(function, (x, y))
            check(function, [x, y, x])
    check(np.concatenate, (array((2,), first), array((3,), second)), dtype="float64")
    check(np.stack, (array((2,), first), array((2,), second)), dtype="complex128")
    check(np.concatenate, (array((2,), "float64"), array((3,), second)), dtype="int32")
    check(np.concatenate, (array((2, 3), first), [[1, 2, 3]]))
    check(np.hstack, [array((2,), first), [1, 2], 3.5])


def test_rows_of_an_array():
    x = array((2, 3))
    for function in (np.concatenate, np.vstack, np.hstack, np.stack):
        assert_conforms(function, x, names=False)
    with pytest.raises(RuleError, match="a sequence of arrays is needed"):
        spelled_call(np.vstack, x, named=True)


@pytest.mark.skipif(not hasattr(np, "unstack"), reason="np.unstack came with NumPy 2.1")
def test_unstack():
    for axis in (0, 1, -1):
        assert_conforms(np.unstack, array((2, 3, 4)), axis=axis, names=False)


def test_block():
    a, b = array((2, 2)), array((2, 3), seed=1)
    check(np.block, [[a, b], [b, a]])
    check(np.block, [array((3,)), array((2,)), 1.0])
    check(np.block, [[a], [a]])
    check(np.block, a)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing):
    for sparse in (False, True):
        check(np.meshgrid, array((3,)), array((2,), "int32"), indexing=indexing, sparse=sparse)
        check(np.meshgrid, array((3,)), array((2,)), array((4,)), indexing=indexing, sparse=sparse)
        check(np.meshgrid, array((3,)), indexing=indexing, sparse=sparse)
        check(np.meshgrid, array((3,)), array(()), indexing=indexing, sparse=sparse)


def test_splitting():
    for shape in ((6,), (4, 6), (2, 4, 6), (0,), (1,)):
        x = array(shape)
        for axis in range(-len(shape), len(shape)):
            for sections in (1, 2, 3, 4, (2,), (1, 3), (-2,), (3, 2), (1, 10), [], 0):
                check(np.split, x, sections, axis)
                check(np.array_split, x, sections, axis)
        for function in (np.hsplit, np.vsplit, np.dsplit):
            check(function, x, 2)
            check(function, x, (1,))


# ---------------------------------------------------------------------------------------------------------------
# padding


WIDTHS = (0, 1, 3, 7, (1, 2), (0, 3), ((2, 1),))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum",
                                  "mean", "median"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_pad(mode, dtype):
    rtol = 1e-12 if mode in ("linear_ramp", "mean") else 0
    for shape in ((1,), (4,), (2, 3), (1, 3), (2, 3, 2)):
        for width in WIDTHS:
            far = np.max(width) > 2 - (mode == "reflect") and mode in ("reflect", "symmetric", "wrap")
            assert_conforms(np.pad, array(shape, dtype), width, mode, rtol=rtol, names=not far)
        assert_conforms(np.pad, array((3, 2), dtype), ((1, 2), (0, 1)), mode, rtol=rtol)
        assert_conforms(np.pad, array((2, 3), dtype), {0: 1, -1: (0, 2)}, mode, rtol=rtol)
    assert_conforms(np.pad, array((0,), dtype), 1, mode)
    assert_conforms(np.pad, array((2, 3), dtype), ((1, 2), (0, 1), (1, 1)), mode)
    assert_conforms(np.pad, array((2, 3), dtype), -1, mode)


def test_pad_options():
    x = array((2, 3))
    check(np.pad, x, 1, constant_values=5)
    check(np.pad, x, ((1, 2), (3, 0)), constant_values=((1, 2), (3, 4)))
    check(np.pad, x, ((1, 2), (3, 0)), "constant", constant_values=(1, 2))
    check(np.pad, array((2, 3), "int32"), 1, constant_values=2.5)
    check(np.pad, array((3,)), 2, "linear_ramp", end_values=(1, -1), )
    check(np.pad, array((5,)), 2, "mean", stat_length=2)
    check(np.pad, array((5,)), 2, "maximum", stat_length=(2, 3))
    for mode in ("reflect", "symmetric"):
        assert_conforms(np.pad, array((4,)), 2, mode, reflect_type="odd", rtol=1e-14)
        assert_conforms(np.pad, array((3,)), (7, 5), mode, reflect_type="odd", rtol=1e-13, names=False)
    check(np.pad, x, 1, "nowhere")
    check(np.pad, x, 1, "edge", constant_values=1)


# ---------------------------------------------------------------------------------------------------------------
# diagonals


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals(dtype):
    for k in (-4, -1, 0, 1, 2, 4):
        for shape in ((3,), (1,), (0,), (2, 3), (3, 2), (3, 3), (1, 3), ()):
            check(np.diag, array(shape, dtype), k)
            check(np.tril, array(shape, dtype), k)
            check(np.triu, array(shape, dtype), k)
        check(np.diagflat, array((2, 2), dtype), k)
        for shape in ((2, 3), (3, 3), (2, 3, 4), (0, 3)):
            check(np.diagonal, array(shape, dtype), k)
            check(np.ndarray.diagonal, array(shape, dtype), k)
            check(np.trace, array(shape, dtype), k)
            check(np.ndarray.trace, array(shape, dtype), k)
    check(np.diagonal, array((2, 3, 4), dtype), 1, axis1=2, axis2=0)
    check(np.diagonal, array((2, 3, 4), dtype), 1, 1, 1)
    check(np.diagonal, array((3,), dtype))
    check(np.trace, array((3, 3), dtype), dtype="float32")
    check(np.tril, array((2, 3, 3), dtype))


# ---------------------------------------------------------------------------------------------------------------
# at random


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_reshapes(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), max_size=4)))
    total = int(np.prod(shape))
    rest, after = total, []
    while rest > 1 and len(after) < 4:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        after.append(data.draw(st.sampled_from(divisors)))
        rest //= after[-1]
    after.append(rest)
    check(np.reshape, array(shape), tuple(after), order=data.draw(st.sampled_from("CF")))


def test_type_of_names_sizes():
    assert (symbol("n2"), 1, 0, symbol("n3")) == type_of(np.zeros((2, 1, 0, 3)), True).shape


@pytest.mark.parametrize("order", ["A", "K"])
def test_an_order_that_depends_on_memory_is_refused(order):
    with pytest.raises(RuleError, match="depends on how the array lies in memory"):
        spelled_call(np.ravel, array((2, 3)), order=order)
    assert_conforms(np.ravel, array((3,)), order=order)
