"""Corners of NumPy's own behaviour that programs met."""

import itertools
import operator

import numpy as np
import pytest

import gradsmith


def check(function, *args):
    expected, actual = function(*args), gradsmith.jit(function)(*args)
    for e, a in zip(expected, actual, strict=True):
        e, a = np.asarray(e), np.asarray(a)
        assert (e.shape, e.dtype) == (a.shape, a.dtype)
        np.testing.assert_array_equal(a, e)


def test_python_numbers_count_in_np_array():
    def lists(v, k):
        return np.array([v[0], 1.0, 2]), np.array([[v[0], 0], [1, 2]]), np.array([k[0], 1]), np.array([v, v])

    check(lists, np.ones(2, np.float32), np.ones(2, np.int32))


def test_python_numbers_do_not_count_in_choose():
    def chosen(i, v):
        return [np.choose(i, [v, 0.0, 1.0])]

    check(chosen, np.array([0, 1, 2]), np.ones(3, np.float32))


def test_builtin_sum_adds_in_the_dtype_of_the_array():
    def sums(a, b):
        return sum(a), sum(b)

    check(sums, np.array([3, 200], np.uint8), np.array([True, True]))


def test_bools():
    def methods(b):
        return [b.conj()]

    def plus(b):
        return +b

    check(methods, np.array([True, False]))
    with pytest.raises(TypeError):
        gradsmith.jit(plus)(np.array([True]))


def test_signs_of_zeros_in_known_arrays():
    def signs(v):
        return [v / np.array([0.0, -0.0])]

    check(signs, np.ones(2))


def test_shapes_of_run_time_size_on_known_arrays():
    def shaped(a):
        o = a[5:]
        return np.arange(o.size).reshape(o.shape), np.arange(a.size).reshape(a.shape) * a

    check(shaped, np.ones((3, 4)))


def test_index_arrays_that_do_not_broadcast():
    def picked(a, i, j):
        return a[i, j]

    with pytest.raises(IndexError, match="shape mismatch"):
        gradsmith.jit(picked)(np.ones((4, 4)), np.array([0, 1, 2]), np.array([0, 1]))


def test_concatenators_are_refused_with_advice():
    def joined(a):
        return np.r_[a, 1.0]

    with pytest.raises(NotImplementedError, match="np.concatenate"):
        gradsmith.jit(joined)(np.ones(2))


def test_itertools_and_operators_that_call_back():
    def called(v):
        return (*itertools.accumulate(v), *itertools.accumulate([1, 2], operator.mul, initial=v[1]),
                *itertools.starmap(operator.mul, [(v[0], 2)]), operator.methodcaller("sum", axis=0)(v))

    check(called, np.array([1.0, 2.0, 4.0]))


def test_known_numbers_are_batched_results():
    def several(x):
        return x, x.ndim, 2.5

    found = gradsmith.vmap(several)(np.ones((3, 2)))
    assert [(3, 2), (3,), (3,)] == [np.shape(r) for r in found]


def test_many_arguments_with_sizes_to_unify():
    def layers(params, x):
        for p in params:
            x = x + np.maximum(x @ p["w"] + p["b"], 0)
        return x.sum()

    rng = np.random.default_rng(0)
    params = [{"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)} for _ in range(12)]
    x = rng.normal(size=(5, 3))
    lowered = gradsmith.jit(lambda p, q, x: layers(p, x) + layers(q, x))
    np.testing.assert_allclose(lowered(params, params[::-1], x), layers(params, x) + layers(params[::-1], x))


def test_places_of_extrema_in_arrays_of_two_axes():
    def places(a, k):
        i, j = np.unravel_index(a.argmax(), a.shape)
        return a[i, j], a[np.unravel_index(np.argmin(a), a.shape)], *np.unravel_index(k, a.shape)

    a = np.arange(12.0).reshape(3, 4) % 7
    check(places, a, np.array([0, 11]))
    with pytest.raises(ValueError, match="out of bounds"):
        gradsmith.jit(places)(a, np.array([0, 12]))


def test_ranges_are_sequences():
    def filled(a):
        b = a.copy()
        b[0] = range(4)
        return b, np.maximum(b, range(4))

    check(filled, np.ones((2, 4)))
