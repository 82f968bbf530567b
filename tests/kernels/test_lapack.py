"""Direct LAPACK calls against NumPy and SciPy, over dtypes, layouts and sizes, compiled and interpreted."""

import os
import subprocess
import sys
import textwrap
from itertools import permutations

import numpy as np
import pytest
import scipy.linalg
from numba import njit
from numba.core.errors import TypingError

from gradsmith.kernels import lapack, stacks
from gradsmith.kernels.small_systems import COLUMNS, ROWS

DTYPES = [np.float32, np.float64]
SIZES = [0, 1, 2, 5, 12]


def compiled(function):
    count = function.__code__.co_argcount
    names = ", ".join("abcdefg"[:count])
    namespace = {"function": function}
    exec(f"def call({names}):\n    return function({names})", namespace)
    return njit(nogil=True, error_model="numpy")(namespace["call"])


NAMES = ["solve", "inv", "det", "slogdet", "cholesky", "lu_factor", "lu_solve", "solve_triangular", "adjugate", "adjugate_tangent"]
COMPILED = {name: compiled(getattr(lapack, name)) for name in NAMES}
STACKED = [name for name in vars(stacks) if name.startswith("stacked_")]
COMPILED |= {name: compiled(getattr(stacks, name)) for name in STACKED}
COMPILED["batched_gemm"] = compiled(stacks.batched_gemm)
BOTH = [pytest.param(COMPILED.__getitem__, id="compiled"), pytest.param(lambda name: getattr(lapack, name, None) or getattr(stacks, name), id="interpreted")]


def layouts(x):
    """`x` by rows, by columns, and with strides that LAPACK cannot take.

    Of float32 only the last, which Numba compiles as one.
    """
    return [array for array in every_layout(x) if x.dtype == np.float64 or not array.flags.forc]


def every_layout(x):
    yield x.copy()
    if x.ndim == 2:
        yield x.T.copy().T
        yield x[::-1, ::-1].copy()[::-1, ::-1]
    coarse = np.full([2 * size for size in x.shape], np.nan, x.dtype)
    every_other = coarse[tuple(slice(None, None, 2) for _ in x.shape)]
    every_other[...] = x
    yield every_other


def matrix(rng, n, dtype):
    return (rng.standard_normal((n, n)) + 3 * np.eye(n)).astype(dtype)


def close(expected, actual, factor=200):
    expected = np.asarray(expected)
    assert expected.shape == np.shape(actual)
    assert expected.dtype == np.asarray(actual).dtype
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=factor * scale * np.finfo(expected.dtype).eps)


def scalar(number, like):
    return np.asarray(number, like.dtype)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_square_matrices(call, dtype, n):
    rng = np.random.default_rng(n)
    for a in layouts(matrix(rng, n, dtype)):
        before = a.copy()
        close(np.linalg.inv(a), call("inv")(a))
        close(np.linalg.det(a), scalar(call("det")(a), a))
        for expected, actual in zip(np.linalg.slogdet(a), call("slogdet")(a)):
            close(expected, scalar(actual, a))
        lu, piv = call("lu_factor")(a)
        if n:
            expected_lu, expected_piv = scipy.linalg.lu_factor(a)
            close(expected_lu, lu)
            np.testing.assert_array_equal(piv, expected_piv)
        assert (n, n) == lu.shape and (n,) == piv.shape and np.int32 == piv.dtype and lu.flags.f_contiguous
        np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("columns", [None, 0, 1, 3])
def test_right_hand_sides(call, dtype, n, columns):
    rng = np.random.default_rng(n)
    a = matrix(rng, n, dtype)
    b = rng.standard_normal(n if columns is None else (n, columns)).astype(dtype)
    lu, piv = call("lu_factor")(a)
    for i, left in enumerate(layouts(a)):
        for j, right in enumerate(layouts(b)):
            if (i + j) % 3 and dtype == np.float32:
                continue
            before = right.copy()
            close(np.linalg.solve(a, b), call("solve")(left, right))
            x = call("lu_solve")(lu, piv, right, False)
            close(np.linalg.solve(a, b), x)
            assert x.flags.c_contiguous
            np.testing.assert_array_equal(right, before)
    for factors in layouts(lu):
        close(np.linalg.solve(a.T, b), call("lu_solve")(factors, piv, b, True))


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_triangular(call, dtype, columns):
    rng = np.random.default_rng(5)
    for n in SIZES:
        a = matrix(rng, n, dtype) + 2 * np.eye(n, dtype=dtype)
        b = rng.standard_normal(n if columns is None else (n, columns)).astype(dtype)
        for lower in (False, True):
            for trans in (False, True):
                for unit in (False, True):
                    triangle = np.tril(a) if lower else np.triu(a)
                    if unit:
                        triangle[np.arange(n), np.arange(n)] = 1
                    expected = np.linalg.solve(triangle.T if trans else triangle, b)
                    for left in layouts(a):
                        x = call("solve_triangular")(left, b, lower, trans, unit)
                        close(expected, x, factor=400)
                        assert x.flags.c_contiguous


def test_flags_by_keyword_and_left_out():
    @njit
    def solutions(a, b):
        return (
            lapack.solve_triangular(a, b), lapack.solve_triangular(a, b, True), lapack.solve_triangular(a, b, trans=True),
            lapack.solve_triangular(a, b, unit_diagonal=1, lower=a.shape[0] > 0),
        )  # fmt: skip

    a, b = matrix(np.random.default_rng(6), 4, np.float64), np.arange(4.0)
    options = ({}, {"lower": True}, {"trans": 1}, {"unit_diagonal": True, "lower": True})
    for x, option in zip(solutions(a, b), options):
        close(scipy.linalg.solve_triangular(a, b, **option), x)
    with pytest.raises(TypingError, match="solve_triangular"):
        njit(lambda a, b: lapack.solve_triangular(a, b, upper=True))(a, b)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(call, dtype, n):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n))
    a = (root @ root.T + np.eye(n)).astype(dtype)
    for spoiled in layouts(np.tril(a) + np.triu(np.full((n, n), np.nan, dtype), 1)):
        close(np.linalg.cholesky(a), call("cholesky")(spoiled))


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("name, arguments, message", [
    ("solve", (np.ones((2, 2)), np.ones(2)), "Singular matrix"),
    ("inv", (np.zeros((3, 3)),), "Singular matrix"),
    ("cholesky", (-np.eye(3),), "Matrix is not positive definite"),
    ("solve_triangular", (np.diag([1.0, 0.0]), np.ones(2), True, False, False), "Singular matrix"),
    *[(name, (np.ones((2, 3)),), "Last 2 dimensions of the array must be square")
      for name in ("inv", "det", "slogdet", "cholesky", "lu_factor", "adjugate")],
    ("solve", (np.ones((2, 3)), np.ones(2)), "Last 2 dimensions of the array must be square"),
])  # fmt: skip
def test_errors(call, name, arguments, message):
    with pytest.raises(np.linalg.LinAlgError, match=message):
        call(name)(*arguments)


def test_shapes_that_do_not_fit_and_wrong_types():
    with pytest.raises(ValueError, match="solve: the shapes of the operands do not fit together"):
        COMPILED["solve"](np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="lu_solve: the shapes"):
        COMPILED["lu_solve"](np.eye(2), np.zeros(3, np.int32), np.ones(2), False)
    with pytest.raises(TypingError, match="inv takes arrays of one dtype, float32 or float64"):
        COMPILED["inv"](np.eye(2, dtype=np.int64))
    with pytest.raises(TypingError, match="solve takes arrays of one dtype"):
        COMPILED["solve"](np.eye(2), np.ones(2, np.float32))
    with pytest.raises(TypingError, match="pivots as int32"):
        COMPILED["lu_solve"](np.eye(2), np.zeros(2), np.ones(2), False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants_of_singular_huge_and_tiny_matrices(dtype):
    det, slogdet = COMPILED["det"], COMPILED["slogdet"]
    singular = np.array([[1, 2], [2, 4]], dtype)
    assert 0.0 == det(singular)
    assert (0.0, -np.inf) == slogdet(singular)
    assert (0.0, -np.inf) == slogdet(-np.zeros((3, 3), dtype))
    assert (1.0, 0.0) == slogdet(np.empty((0, 0), dtype))
    assert 1.0 == det(np.empty((0, 0), dtype))
    big = dtype(2.0 ** (np.finfo(dtype).maxexp - 10))
    for order in permutations([big, big, 1 / big, 1 / big]):
        assert 1.0 == det(np.diag(np.array(order, dtype)))
    assert np.isposinf(det(np.diag([big, big])))
    assert np.isneginf(det(np.diag([big, -big])))
    assert 0.0 == det(np.diag([1 / big] * 3))
    assert np.isnan(det(np.full((2, 2), np.nan, dtype)))
    sign, size = slogdet(np.full((2, 2), np.nan, dtype))
    assert np.isnan(sign) and np.isnan(size)


def exact_adjugate(a):
    """By cofactors, in integers."""

    def det(m):
        if not m:
            return 1
        return sum((-1) ** j * m[0][j] * det([row[:j] + row[j + 1 :] for row in m[1:]]) for j in range(len(m)))

    n = len(a)
    rows = a.tolist()
    minor = lambda i, j: det([row[:j] + row[j + 1 :] for k, row in enumerate(rows) if k != i])
    return np.array([[(-1) ** (i + j) * minor(j, i) for j in range(n)] for i in range(n)], float).reshape(n, n)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6])
def test_adjugate_of_every_rank(call, dtype, n):
    rng = np.random.default_rng(n)
    for rank in range(n + 1):
        a = (rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, n))).astype(int)
        expected = exact_adjugate(a).astype(dtype)
        scale = max(1.0, np.linalg.norm(a, 2)) ** max(n - 1, 0) if n else 1.0
        for layout in layouts(a.astype(dtype)):
            actual = call("adjugate")(layout)
            assert dtype == actual.dtype and actual.flags.c_contiguous
            np.testing.assert_allclose(actual, expected, rtol=0, atol=50 * np.finfo(dtype).eps * scale)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_derivative_of_the_adjugate_at_every_rank(call, dtype, n):
    """The adjugate is a polynomial of degree n - 1 in t along a + t y: its slope from n exact values."""
    rng = np.random.default_rng(10 + n)
    for rank in range(n + 1):
        a = (rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, n))).astype(int)
        y = rng.integers(-2, 3, (n, n))
        nodes = np.arange(max(n, 2)) - n // 2
        along = np.array([exact_adjugate(a + t * y).ravel() for t in nodes])
        slope = np.linalg.solve(np.vander(nodes, increasing=True).astype(float), along)[1].reshape(n, n)
        scale = max(1.0, np.linalg.norm(a, 2)) ** max(n - 1, 0) * max(1.0, np.linalg.norm(y, 2)) if n else 1.0
        for layout in layouts(a.astype(dtype)):
            actual = call("adjugate_tangent")(layout, y.astype(dtype))
            assert dtype == actual.dtype and (n, n) == actual.shape
            np.testing.assert_allclose(actual, slope, rtol=0, atol=50 * np.finfo(dtype).eps * scale)


def test_adjugate_that_is_large_small_or_not_a_number():
    for size in (1e70, 1e-70):
        a = size * matrix(np.random.default_rng(7), 5, np.float64)
        product = (COMPILED["adjugate"](a) / size**4) @ (a / size)
        np.testing.assert_allclose(product / np.linalg.det(a / size), np.eye(5), atol=1e-12)
    mixed = np.diag([1e200, 1e200, 1e-200, 1e-200])
    np.testing.assert_allclose(np.diag(COMPILED["adjugate"](mixed)), [1e-200, 1e-200, 1e200, 1e200])
    a = np.eye(4)
    a[1, 2] = np.nan
    assert np.isnan(COMPILED["adjugate"](a)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, ROWS, ROWS + 1])
def test_systems_that_need_their_rows_in_another_order(dtype, n):
    """A diagonal of zeros, on both sides of the size from which LAPACK is called, in rows and in columns."""
    rng = np.random.default_rng(n)
    for _ in range(4):
        a = matrix(rng, n, dtype)[rng.permutation(n)]
        a[np.diag_indices(n)] *= n == 1
        while abs(np.linalg.det(a)) < 0.1:
            a[rng.integers(n), rng.integers(n)] += 1
        close(np.linalg.inv(a), COMPILED["inv"](a), factor=2000)
        close(np.linalg.det(a), scalar(COMPILED["det"](a), a))
        for expected, actual in zip(np.linalg.slogdet(a), COMPILED["slogdet"](a)):
            close(expected, scalar(actual, a))
        for columns in (1, COLUMNS, COLUMNS + 1):
            b = rng.standard_normal((n, columns)).astype(dtype)
            close(np.linalg.solve(a, b), COMPILED["solve"](a, b), factor=2000)


@pytest.mark.parametrize("n", [2, 3, ROWS, ROWS + 1])
def test_small_singular_systems(n):
    a = np.arange(1.0, n * n + 1).reshape(n, n) ** 2
    a[:, n - 1] = 0
    for name, arguments in (("solve", (a, np.ones(n))), ("inv", (a,))):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            COMPILED[name](*arguments)
    assert 0.0 == COMPILED["det"](a)
    assert (0.0, -np.inf) == COMPILED["slogdet"](a)


@pytest.mark.parametrize("n", [1, 2, ROWS])
def test_small_systems_of_numbers_that_are_none(n):
    """NaN is no pivot of zero."""
    a = np.zeros((n, n))
    a[n - 1, 0] = np.nan
    assert np.isnan(COMPILED["solve"](a + np.triu(np.ones((n, n)), 1), np.ones(n))).any()
    assert np.isnan(COMPILED["det"](a + np.triu(np.ones((n, n)), 1)))


def test_larger_systems():
    rng = np.random.default_rng(8)
    a, b = matrix(rng, 150, np.float64), rng.standard_normal((150, 70))
    np.testing.assert_allclose(COMPILED["solve"](a, b), np.linalg.solve(a, b), atol=1e-10)
    np.testing.assert_allclose(COMPILED["inv"](a), np.linalg.inv(a), atol=1e-10)
    np.testing.assert_allclose(COMPILED["slogdet"](a), np.linalg.slogdet(a), rtol=1e-12)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize("name", STACKED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks(call, name, dtype):
    single = getattr(lapack, name.removeprefix("stacked_"))
    rng = np.random.default_rng(9)
    for count, n in [(3, 4), (1, 2), (2, 1), (2, 0)]:
        a = np.array([matrix(rng, n, dtype) for _ in range(count)]).reshape(count, n, n)
        if name == "stacked_cholesky":
            a = a @ a.transpose(0, 2, 1)
        right = [rng.standard_normal((count, n, *more)).astype(dtype) for more in ((), (2,))]
        others = [(b,) for b in right] if "solve" in name else [(a[::-1].copy(),)] if "tangent" in name else [()]
        flags = (True, False, False) if "triangular" in name else ()
        coarse = np.full((count, 2 * n, n), np.nan, dtype)
        coarse[:, ::2] = a
        for arrays in others:
            results = [single(*places, *flags) for places in zip(a, *arrays)]
            for stack in (a, coarse[:, ::2], np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0)):
                actual = call(name)(stack, *arrays, *flags)
                if "slogdet" in name:
                    for position in (0, 1):
                        close(np.array([r[position] for r in results], dtype), actual[position])
                else:
                    close(np.array(results, dtype).reshape(np.shape(actual)), actual)


def test_stacks_that_do_not_fit_or_are_singular():
    with pytest.raises(ValueError, match="stacked_solve: the shapes of the operands do not fit together"):
        COMPILED["stacked_solve"](np.ones((2, 3, 3)), np.ones((3, 3)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        COMPILED["stacked_inv"](np.array([np.eye(2), np.zeros((2, 2))]))
    assert (0, 2, 2) == COMPILED["stacked_inv"](np.empty((0, 2, 2))).shape


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_products_of_stacks(dtype):
    rng = np.random.default_rng(10)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 2, 4), (3, 4, 5)))
    for call in (COMPILED["batched_gemm"], stacks.batched_gemm):
        out = np.empty((3, 2, 5), dtype)
        call(a.transpose(0, 2, 1).copy().transpose(0, 2, 1), b, out)
        np.testing.assert_allclose(out, a @ b, rtol=1e-5)
    with pytest.raises(ValueError, match="batched_gemm: the shapes"):
        COMPILED["batched_gemm"](a, b[:2], np.empty((3, 2, 5), dtype))


PROGRAM = """
    import numpy as np
    from numba import njit
    from gradsmith.kernels.lapack import solve, det, solve_triangular

    @njit(cache=True, nogil=True, error_model="numpy")
    def first(a, b):
        return solve(a, b)[0] + det(a) + solve_triangular(a, b, lower=True)[1]

    if __name__ == "__main__":
        a = np.array([[2.0, 0.0], [0.0, 4.0]])
        try:
            first(0 * a, np.ones(2))
        except np.linalg.LinAlgError as error:
            print(error)
        print(round(first(a, np.ones(2)), 9))
"""


def test_fresh_cached_and_without_a_compiler(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    for options in ({}, {}, {"NUMBA_DISABLE_JIT": "1"}):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **options}
        result = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
        assert "Singular matrix\n8.75\n" == result.stdout
