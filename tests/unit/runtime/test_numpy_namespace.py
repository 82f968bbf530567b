"""gradsmith.numpy: NumPy's names, Arrays out, and NumPy's meaning inside transpiled functions."""

import functools
import subprocess
import sys
import types

import numpy
import pytest

import gradsmith.numpy as np
from gradsmith import Array, grad, jit
from gradsmith.numpy import add, exp, linalg


def arrays_in(x):
    if isinstance(x, (tuple, list)):
        return [a for part in x for a in arrays_in(part)]
    return [x]


def test_every_public_name_is_there():
    for name in np.__all__:
        ours, theirs = getattr(np, name), getattr(numpy, name)
        if isinstance(theirs, (type, float, int, str)) or theirs is None:
            assert ours is theirs
    missing = {n for n in numpy.__all__ if not isinstance(getattr(numpy, n), types.ModuleType)} - set(np.__all__)
    assert set() == missing
    assert dir(np) == list(np.__all__)


@pytest.mark.parametrize("call", [
    lambda np: np.arange(3.0), lambda np: np.sum(numpy.ones(3)), lambda np: np.exp(1.0), lambda np: np.array([1, 2]),
    lambda np: np.linspace(0, 1, 5), lambda np: np.split(numpy.arange(6), 3), lambda np: np.meshgrid([1, 2], [3, 4]),
    lambda np: np.linalg.norm(numpy.ones(3)), lambda np: np.linalg.eigh(numpy.eye(2)), lambda np: np.fft.fft([1, 2]),
    lambda np: np.any([True, False]), lambda np: np.argmax([1, 3, 2]), lambda np: np.dot([1, 2], [3, 4]),
    lambda np: np.add.reduce([1, 2]), lambda np: np.multiply.outer([1, 2], [3, 4]), lambda np: np.add(1, 2),
    lambda np: np.divmod(7, 3), lambda np: np.unique([1, 1, 2], return_counts=True), lambda np: np.zeros((0, 2)),
    lambda np: np.asarray([1.0]), lambda np: np.where([True], 1.0, 2.0), lambda np: np.einsum("i,i", [1, 2], [3, 4]),
])
def test_results_are_arrays_with_numpys_values(call):
    ours, theirs = arrays_in(call(np)), arrays_in(call(numpy))
    for mine, expected in zip(ours, theirs, strict=True):
        assert type(mine) is Array
        assert mine.block_until_ready() is mine
        assert numpy.shape(expected) == mine.shape
        assert numpy.asarray(expected).dtype == mine.dtype
        numpy.testing.assert_array_equal(mine, expected)


def test_what_is_no_array_stays():
    assert np.allclose(1, 1) is True
    assert (2, 3) == np.shape(numpy.ones((2, 3)))
    assert np.result_type(numpy.float32, 1.0) == numpy.float32
    assert np.float32 is numpy.float32
    assert np.ndarray is numpy.ndarray
    assert np.pi is numpy.pi
    assert np.newaxis is None
    x = np.ones(3)
    assert np.copyto(x, 2.0) is None
    assert [2, 2, 2] == x.tolist()


def test_wrappers_keep_what_tells_about_functions():
    assert "sum" == np.sum.__name__
    assert numpy.sum.__doc__ == np.sum.__doc__
    assert np.sum is np.sum
    assert (2, 1) == (np.add.nin, np.add.nout)


def test_what_is_not_there():
    with pytest.raises(AttributeError, match=r"gradsmith\.random"):
        np.random  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        np.nope  # noqa: B018
    with pytest.raises(AttributeError, match="import numpy"):
        np.ma  # noqa: B018


def test_inside_transpiled_functions_names_mean_numpys():
    total = functools.partial(np.sum, axis=0)

    def f(x):
        return exp(x) * add.reduce(x) + linalg.norm(x) + np.linalg.norm(x) + total(x).block_until_ready() + np.float64(2) * np.pi

    x = numpy.array([0.5, 1.0, 2.0])
    expected = numpy.exp(x) * x.sum() + 2 * numpy.linalg.norm(x) + x.sum() + 2 * numpy.pi
    numpy.testing.assert_allclose(jit(f)(x), expected, rtol=1e-14)
    numpy.testing.assert_allclose(grad(lambda x: np.sum(np.sin(x)))(x), numpy.cos(x), rtol=1e-14)


def test_constants_made_inside_a_transpiled_function():
    numpy.testing.assert_array_equal(jit(lambda x: x + np.arange(3.0) + np.array([1, 2, 3]))(numpy.ones(3)), [2, 4, 6])


def test_errors_inside_show_the_users_line():
    with pytest.raises(AttributeError, match=r"no attribute 'summ'(.|\n)*test_numpy_namespace.py(.|\n)*np\.sum"):
        jit(lambda x: np.summ(x))(numpy.ones(3))
    with pytest.raises(NotImplementedError, match="something else in every run"):
        jit(lambda x: x + np.random.normal())(numpy.ones(3))


def test_importing_gradsmith_leaves_the_namespaces_for_later():
    code = ("import sys, gradsmith; late = {'gradsmith.numpy', 'gradsmith.random', 'gradsmith.lax', 'scipy.special'};"
            "print(sorted(late & set(sys.modules)));"
            "import gradsmith.numpy.linalg; from gradsmith import random, lax, tree, tree_util; print(tree.map)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.splitlines()[0]
