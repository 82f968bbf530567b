"""Direct BLAS calls against NumPy, over dtypes, layouts and sizes, compiled and interpreted, fresh and from the cache."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from gradsmith.kernels import blas

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
SIZES = [0, 1, 2, 5]


def compiled(function):
    """`function(*args)` called from compiled code that was not cached."""
    names = ", ".join(("a", "b", "c")[: function.__code__.co_argcount])
    namespace = {"function": function}
    exec(f"def call({names}):\n    return function({names})", namespace)
    return njit(nogil=True, error_model="numpy")(namespace["call"])


FUNCTIONS = ["gemm", "gemm_add", "gemv", "gemv_add", "ger_add", "dot", "nrm2"]
COMPILED = {name: compiled(getattr(blas, name)) for name in FUNCTIONS}


def values(rng, shape, dtype):
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else real.astype(dtype)


def matrices(x):
    """The matrix `x` in layouts that BLAS takes by flag and in layouts that must be copied."""
    m, n = x.shape
    yield x.copy()
    yield x.T.copy().T
    wide = np.full((m, n + 3), np.nan, x.dtype)
    wide[:, 1 : n + 1] = x
    yield wide[:, 1 : n + 1]
    tall = np.full((n + 2, m), np.nan, x.dtype)
    tall[:n] = x.T
    yield tall[:n].T
    coarse = np.full((2 * m, 3 * n), np.nan, x.dtype)
    coarse[::2, ::3] = x
    yield coarse[::2, ::3]
    yield x[::-1].copy()[::-1]
    yield x[:, ::-1].copy()[:, ::-1]
    yield x.T[::-1].copy()[::-1].T


def vectors(x):
    yield x.copy()
    yield x[::-1].copy()[::-1]
    coarse = np.full(3 * len(x), np.nan, x.dtype)
    coarse[::3] = x
    yield coarse[::3]
    coarse = np.full(2 * len(x), np.nan, x.dtype)
    coarse[::-2] = x
    yield coarse[::-2]


def layouts(x):
    """All layouts for float64; of the other dtypes only those that Numba compiles as one, to save its time."""
    every = matrices(x) if x.ndim == 2 else vectors(x)
    return [array for array in every if x.dtype == np.float64 or not array.flags.forc]


def close(expected, actual):
    assert np.shape(expected) == np.shape(actual)
    dtype = np.asarray(expected).dtype
    assert dtype == np.asarray(actual).dtype
    np.testing.assert_allclose(actual, expected, rtol=0, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_products_in_every_layout(dtype):
    rng = np.random.default_rng(1)
    for m, k, n in [(3, 4, 5), (1, 4, 3), (3, 1, 5), (4, 3, 1), (1, 1, 1), (1, 5, 1), (2, 0, 3), (0, 2, 3), (2, 3, 0), (0, 0, 0)]:
        a, b, c = (values(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        for i, left in enumerate(layouts(a)):
            for j, right in enumerate(layouts(b)):
                for k_, out in enumerate(layouts(c)):
                    if (i + 3 * j + 5 * k_) % 4:  # a quarter of all combinations, each layout beside each other one
                        continue
                    COMPILED["gemm_add"](left, right, out)
                    close(c + a @ b, out)
                    out[...] = np.nan
                    COMPILED["gemm"](left, right, out)
                    close(a @ b, out)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_times_vector_in_every_layout(dtype):
    rng = np.random.default_rng(2)
    for m, k in [(3, 4), (1, 4), (4, 1), (1, 1), (0, 3), (3, 0), (0, 0)]:
        a, x, y = values(rng, (m, k), dtype), values(rng, k, dtype), values(rng, m, dtype)
        for matrix in layouts(a):
            for vector in layouts(x):
                for out in layouts(y):
                    COMPILED["gemv_add"](matrix, vector, out)
                    close(y + a @ x, out)
                    out[...] = np.nan
                    COMPILED["gemv"](matrix, vector, out)
                    close(a @ x, out)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outer_product_in_every_layout(dtype):
    rng = np.random.default_rng(3)
    for m, n in [(3, 4), (1, 4), (4, 1), (1, 1), (0, 3), (3, 0)]:
        x, y, c = values(rng, m, dtype), values(rng, n, dtype), values(rng, (m, n), dtype)
        for left in layouts(x):
            for right in layouts(y):
                for out in layouts(c):
                    COMPILED["ger_add"](left, right, out)
                    close(c + np.outer(x, y), out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES + [33])
def test_dot_and_norm(dtype, size):
    rng = np.random.default_rng(4)
    x, y = values(rng, size, dtype), values(rng, size, dtype)
    for left in layouts(x):
        close(np.linalg.norm(x), np.asarray(COMPILED["nrm2"](left), np.abs(x).dtype))
        for right in layouts(y):
            result = COMPILED["dot"](left, right)
            close(np.dot(x, y), np.asarray(result, dtype))


def test_broadcast_operands():
    """A stride of zero is no increment for BLAS."""
    three, ones = np.broadcast_to(3.0, 4), np.ones(4)
    assert 12.0 == COMPILED["dot"](three, ones)
    assert 6.0 == COMPILED["nrm2"](three)
    out = np.full((4, 4), np.nan)
    COMPILED["gemm"](np.broadcast_to(ones, (4, 4)), np.broadcast_to(three, (4, 4)), out)
    close(np.full((4, 4), 12.0), out)
    out = np.full(4, np.nan)
    COMPILED["gemv"](np.eye(4), three, out)
    close(np.full(4, 3.0), out)


def test_unaligned_strides():
    """A field of a record: a stride that is no multiple of the element's size."""
    record = np.zeros((3, 4), dtype=[("tag", np.int8), ("value", np.float64)])
    record["value"] = np.arange(12).reshape(3, 4)
    field = record["value"]
    assert field.strides == (36, 9)
    aligned = np.ascontiguousarray(field)
    out = np.empty((3, 3))
    # Numba types arrays with odd strides as unaligned; the kernel reads them like any other.
    COMPILED["gemm"](field, aligned.T, out)
    close(aligned @ aligned.T, out)


@pytest.mark.parametrize("dtype", DTYPES)
def test_norm_neither_overflows_nor_underflows(dtype):
    real = np.finfo(dtype)
    big, small = np.array([3, 4], dtype) * (real.max / 8), np.array([3, 4], dtype) * real.tiny
    for norm in (COMPILED["nrm2"], blas.nrm2):
        np.testing.assert_allclose(norm(big), 5 * (real.max / 8), rtol=4 * real.eps)
        np.testing.assert_allclose(norm(small), 5 * real.tiny, rtol=4 * real.eps)
        assert np.isnan(norm(np.array([1, np.nan], dtype)))
        assert np.isposinf(norm(np.array([1, -np.inf], dtype)))
        assert 0 == norm(np.zeros(3, dtype))


def test_nan_and_inf_in_operands_arrive():
    a = np.array([[np.nan, 0.0], [np.inf, 1.0]])
    out = np.empty((2, 2))
    COMPILED["gemm"](a, np.eye(2), out)
    np.testing.assert_array_equal(out, [[np.nan, np.nan], [np.inf, np.nan]])
    out = np.empty(2)
    COMPILED["gemv"](a, np.array([0.0, 1.0]), out)
    np.testing.assert_array_equal(out, [np.nan, np.nan])


def test_large_product():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((130, 70)), rng.standard_normal((70, 90))
    out = np.empty((130, 90))
    COMPILED["gemm"](a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name, shapes", [
    ("gemm", ((2, 3), (2, 3), (2, 3))),
    ("gemm", ((2, 3), (3, 4), (2, 3))),
    ("gemm_add", ((2, 3), (3, 4), (3, 4))),
    ("gemv", ((2, 3), (2,), (2,))),
    ("gemv_add", ((2, 3), (3,), (3,))),
    ("ger_add", ((2,), (3,), (3, 2))),
    ("dot", ((2,), (3,))),
])  # fmt: skip
def test_shapes_that_do_not_fit(name, shapes):
    with pytest.raises(ValueError, match=f"{name}: the shapes of the operands do not fit together"):
        COMPILED[name](*[np.ones(shape) for shape in shapes])


@pytest.mark.parametrize("name, arrays, message", [
    ("gemm", (np.ones((2, 2)), np.ones((2, 2), np.float32), np.ones((2, 2))), "one float or complex dtype"),
    ("gemm", (np.ones((2, 2), int), np.ones((2, 2), int), np.ones((2, 2), int)), "one float or complex dtype"),
    ("gemv", (np.ones(2), np.ones((2, 2)), np.ones(2)), r"\(2, 1, 1\) dimensions"),
    ("gemv", (np.eye(2), np.ones(2), np.broadcast_to(1.0, 2)), "read-only"),
    ("dot", (1.0, np.ones(2)), "takes arrays"),
])  # fmt: skip
def test_operands_of_the_wrong_type(name, arrays, message):
    with pytest.raises(TypingError, match=message):
        COMPILED[name](*arrays)


@pytest.mark.parametrize("dtype", DTYPES)
def test_interpreted(dtype):
    rng = np.random.default_rng(6)
    a, b, c = values(rng, (3, 4), dtype), values(rng, (4, 5), dtype), values(rng, (3, 5), dtype)
    for name, operands, out in [
        ("gemm", (a, b), c), ("gemm_add", (a, b), c), ("gemv", (a, b[:, 0]), a[:, 0]), ("gemv_add", (a, b[:, 0]), a[:, 0]),
        ("ger_add", (a[:, 1], b[2]), c),
    ]:  # fmt: skip
        expected, actual = out.copy(), out.copy()
        COMPILED[name](*operands, expected)
        getattr(blas, name)(*operands, actual)
        close(expected, actual)
    close(np.asarray(COMPILED["dot"](a[0], a[1]), dtype), np.asarray(blas.dot(a[0], a[1])))


PROGRAM = """
    import numpy as np
    from numba import njit
    from gradsmith.kernels.blas import gemm, dot

    @njit(cache=True, nogil=True, error_model="numpy")
    def product(a, b):
        out = np.empty((a.shape[0], b.shape[1]))
        gemm(a, b, out)
        return out[0, 0] + dot(a[0], b[0])

    if __name__ == "__main__":
        result = product(np.full((2, 2), 2.0), np.full((2, 2), 3.0))
        print(result, *product.stats.cache_hits.values())
"""


def run(path, **environment):
    return subprocess.run(
        [sys.executable, path], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    ).stdout.split()


def test_a_second_process_takes_the_code_from_the_disk(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert ["24.0"] == run(program, **place)
    assert ["24.0", "1"] == run(program, **place)


def test_without_a_compiler(tmp_path):
    program = tmp_path / "program.py"
    text = PROGRAM.replace("*product.stats.cache_hits.values()", "'scipy.linalg' in sys.modules")
    program.write_text("import sys\n" + textwrap.dedent(text))
    assert ["24.0", "False"] == run(program, NUMBA_DISABLE_JIT="1")
