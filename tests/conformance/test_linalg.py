"""Linear algebra against NumPy: single matrices and stacks, dtypes, empty and one by one; its derivatives at the hard
points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from conformance.evaluating import array, assert_conforms, spelled_call
from conformance.slopes import gradient, hessian, numerical_gradient

from gradsmith.transpiler import ops
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ops.spelling import find_spelling

SHAPES = ((1, 1), (2, 2), (3, 3), (2, 4, 4), (2, 1, 3, 3), (0, 0), (0, 3, 3))
every_dtype = pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
SINGULAR = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])


def check(function, *args, **options):
    rtol = 2e-3 if any(a.dtype == np.float32 for a in args if isinstance(a, np.ndarray)) else 1e-9
    assert_conforms(function, *args, rtol=rtol, **options)


def regular(shape, dtype="float64"):
    return (array(shape) + 8 * np.eye(shape[-1])).astype(dtype)


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_matrix(shape, dtype):
    a = regular(shape, dtype)
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet):
        check(function, a)
    for power in (0, 1, 2, 3, 5, -1, -2):
        check(np.linalg.matrix_power, a, power)


@every_dtype
def test_cholesky(dtype):
    for shape in ((1, 1), (3, 3), (2, 4, 4)):
        half = array(shape)
        a = np.rint(4 * (half @ half.swapaxes(-1, -2) + 4 * np.eye(shape[-1]))).astype(dtype)
        check(np.linalg.cholesky, a)
        check(np.linalg.cholesky, a + np.triu(np.ones(shape[-1], dtype), 1))
        check(np.linalg.cholesky, a + np.tril(np.ones(shape[-1], dtype), -1), upper=True)


@every_dtype
def test_solve(dtype):
    for left, right in (((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 4)),
                        ((2, 3, 3), (2, 3, 4)), ((2, 1, 3, 3), (5, 3, 4)), ((0, 0), (0,)), ((3, 3), (3, 0)),
                        ((3, 3), (4,)), ((3, 3), (4, 3))):
        check(np.linalg.solve, regular(left, dtype), array(right, dtype, 1))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("right", [(3,), (3, 2)], ids=str)
def test_scipy_solvers(right, lower):
    a, b = regular((3, 3)), array(right, seed=1)
    for trans in (0, 1, "N", "T", "C"):
        for unit_diagonal in (False, True):
            check(scipy.linalg.solve_triangular, a, b, trans, lower=lower, unit_diagonal=unit_diagonal)
    check(scipy.linalg.cholesky, a @ a.T, lower=lower)
    check(scipy.linalg.cho_solve, scipy.linalg.cho_factor(a @ a.T, lower), b)
    check(scipy.linalg.solve, a, b, transposed=lower)


def test_scipy_shares_with_numpy():
    a = regular((3, 3))
    for function in (scipy.linalg.inv, scipy.linalg.det, scipy.linalg.norm):
        check(function, a)
    with pytest.raises(RuleError, match="assume_a"):
        spelled_call(scipy.linalg.solve, a, a, assume_a="pos")


def test_multi_dot():
    for shapes in (((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 5)), ((9, 3), (3, 30), (30, 5), (5, 2)), ((3,), (3, 4), (4,)),
                   ((2, 3), (3, 4), (4,)), ((3,), (3, 4), (4, 2)), ((3,), (3,)), ((2, 3), (4, 5), (5, 2)), ((2, 3),)):
        check(np.linalg.multi_dot, [array(s, seed=k) for k, s in enumerate(shapes)])


def test_what_numpy_refuses():
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky):
        for bad in (np.ones((2, 3)), np.ones(3)):
            with pytest.raises(RuleError) as problem:
                spelled_call(function, bad)
            assert problem.value.kind is np.linalg.LinAlgError
    with pytest.raises(np.linalg.LinAlgError):
        spelled_call(np.linalg.inv, np.ones((2, 2)))


@pytest.mark.parametrize("name", ["eig", "eigvals", "lstsq", "matrix_rank", "tensorsolve"])
def test_decompositions_are_refused(name):
    with pytest.raises(RuleError, match=f"np.linalg.{name} is not supported yet") as problem:
        spelled_call(getattr(np.linalg, name), np.eye(2))
    assert problem.value.help


# --- norms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("order", [None, 2, 1, 0, np.inf, -np.inf, 3, 2.5, -1, -2, 0.5, 4])
def test_vector_norms(order, dtype):
    check(np.linalg.norm, array((5,), dtype), order)
    check(np.linalg.norm, array((3, 4), dtype), order, axis=0)
    check(np.linalg.norm, array((3, 4), dtype), order, axis=-1, keepdims=True)
    check(np.linalg.vector_norm, array((2, 3, 4), dtype), axis=(0, 2), ord=2 if order is None else order)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("order", [None, "fro", 1, -1, np.inf, -np.inf, 3, "f2"])
def test_matrix_norms(order, dtype):
    check(np.linalg.norm, array((3, 4), dtype), order)
    check(np.linalg.norm, array((3, 4, 2), dtype), order, axis=(0, 2))
    check(np.linalg.norm, array((3, 4, 2), dtype), order, axis=(2, 0), keepdims=True)
    if order != 3 and order != "f2":
        check(np.linalg.matrix_norm, array((3, 4, 2), dtype), ord="fro" if order is None else order)


def test_norms_of_anything():
    check(np.linalg.norm, array((2, 3, 4)))
    check(np.linalg.norm, array((2, 3, 4)), keepdims=True)
    check(np.linalg.norm, array((0,)))
    check(np.linalg.norm, array((0,)), np.inf)
    check(np.linalg.norm, array((2, 3, 4)), 2)
    check(np.linalg.norm, array((2, 3)), axis=(0, 0))
    for order in (2, -2, "nuc"):
        check(np.linalg.norm, array((2, 3)), order)


@pytest.mark.parametrize("order", [None, 1, 2, 3, 2.5, 4, np.inf])
def test_the_slope_of_a_norm_at_the_origin_is_zero(order):
    norm = find_spelling(np.linalg.norm)
    for v in (np.zeros(3), np.zeros(1)):
        np.testing.assert_array_equal(np.zeros(len(v)), gradient(lambda v: norm(v, order), v)[0])
    np.testing.assert_array_equal(np.zeros(3), gradient(lambda v: ops.int_power(norm(v, order), n=2), np.zeros(3))[0])
    found = gradient(lambda v: norm(v, order), np.array([3.0, 0.0, -4.0]))[0]
    assert np.isfinite(found).all()
    assert found[1] == 0.0


# --- derivatives --------------------------------------------------------------------------------------------------


def test_gradients():
    a, b = regular((3, 3)), array((3, 2), seed=1)
    positive = a @ a.T
    for function, *xs in ((np.linalg.solve, a, b), (np.linalg.solve, a, b[:, 0]), (np.linalg.inv, a),
                          (np.linalg.det, a), (np.linalg.solve, regular((2, 3, 3)), b[:, 0]),
                          (np.linalg.cholesky, positive), (np.linalg.norm, a)):
        found = gradient(find_spelling(function), *xs)
        for k, (got, want) in enumerate(zip(found, numerical_gradient(function, *xs), strict=True)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max(), err_msg=f"{function} {k}")
    slogdet = find_spelling(np.linalg.slogdet)
    np.testing.assert_allclose(np.linalg.inv(a).T, gradient(lambda a: slogdet(a)[1], a)[0])
    np.testing.assert_array_equal(np.zeros((3, 3)), gradient(lambda a: slogdet(a)[0], a)[0])


def test_cholesky_has_slopes_in_the_lower_triangle_only():
    a = regular((3, 3))
    found = gradient(find_spelling(np.linalg.cholesky), a @ a.T)[0]
    np.testing.assert_array_equal(np.tril(found), found)


@pytest.mark.parametrize("a, cofactors", [
    (np.zeros((2, 2)), np.zeros((2, 2))), (np.ones((2, 2)), [[1, -1], [-1, 1]]),
    (SINGULAR, [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]]), (np.diag([0.0, 2.0, 3.0]), np.diag([6.0, 0.0, 0.0])),
    (np.ones((4, 4)), np.zeros((4, 4))), (np.array([[5.0]]), [[1.0]]),
])
def test_determinants_of_singular_matrices(a, cofactors):
    det = find_spelling(np.linalg.det)
    np.testing.assert_allclose(cofactors, gradient(det, a)[0], atol=1e-12)
    n = len(a)
    expected = np.zeros((n, n, n, n))
    for i, j, k, m in np.ndindex(n, n, n, n):                     # the second derivative: determinants of what is left
        if i != k and j != m:
            rows, columns = (sorted(set(range(n)) - {p, q}) for p, q in ((i, k), (j, m)))
            sign = (-1) ** (i + j + k + m) * (1 if (k > i) == (m > j) else -1)
            expected[i, j, k, m] = sign * np.linalg.det(a[np.ix_(rows, columns)])
    np.testing.assert_allclose(expected.reshape(n * n, n * n), hessian(det, a), atol=1e-12)
