"""Scalar kernels against NumPy's ufuncs on every pair of awkward operands, compiled and interpreted."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from gradsmith.kernels import scalar

FLOATS = [np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64]
SMALL = [np.int8, np.int64, np.uint8, np.uint64]  # enough where the rule does not look at the width

UNARY = {
    "sign": (np.sign, FLOATS + SMALL), "absolute": (np.abs, FLOATS + SMALL), "signbit": (np.signbit, FLOATS),
    "nan_to_num": (np.nan_to_num, FLOATS + [np.int64]), "rint": (np.rint, FLOATS), "trunc": (np.trunc, FLOATS),
    "fix": (np.fix, FLOATS), "floor": (np.floor, FLOATS), "ceil": (np.ceil, FLOATS + [np.int32]),
}  # fmt: skip
BINARY = {
    "maximum": (np.maximum, FLOATS + SMALL + [np.bool_]), "minimum": (np.minimum, FLOATS + SMALL + [np.bool_]),
    "fmax": (np.fmax, FLOATS + [np.int64, np.bool_]), "fmin": (np.fmin, FLOATS + [np.int64, np.bool_]),
    "heaviside": (np.heaviside, FLOATS), "copysign": (np.copysign, FLOATS), "nextafter": (np.nextafter, FLOATS),
    "floor_divide": (np.floor_divide, FLOATS + INTEGERS), "remainder": (np.remainder, FLOATS + INTEGERS),
    "fmod": (np.fmod, FLOATS + INTEGERS), "left_shift": (np.left_shift, INTEGERS), "right_shift": (np.right_shift, INTEGERS),
}  # fmt: skip
ZERO_SIGN_IS_FREE = {"maximum", "minimum", "fmax", "fmin"}  # NumPy itself depends on the vector unit


def awkward(dtype):
    if dtype is np.bool_:
        return np.array([False, True])
    if np.issubdtype(dtype, np.floating):
        info = np.finfo(dtype)
        sizes = [0.0, info.smallest_subnormal, info.tiny, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.3, 1e8, info.max, np.inf, np.nan]
        return np.array([s * x for x in sizes for s in (1, -1)], dtype)
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, -9, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 63, 64, info.max - 1, info.max]
    return np.array([n for n in numbers if info.min <= n <= info.max], dtype)


def same(expected, actual, name=""):
    assert expected.dtype == actual.dtype
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype.kind == "f" and name not in ZERO_SIGN_IS_FREE:
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(expected[number]))


def loop(function, arity):
    """`out[i] = function(x[i], ...)`, compiled."""
    operands = ", ".join(f"{name}[i]" for name in "xy"[:arity])
    names = ", ".join("xy"[:arity])
    namespace = {"function": function}
    exec(f"def call({names}, out):\n    for i in range(x.size):\n        out[i] = function({operands})\n", namespace)
    return njit(nogil=True, error_model="numpy")(namespace["call"])


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    ufunc, dtypes = UNARY[name]
    kernel = getattr(scalar, name)
    compiled = loop(kernel, 1)
    for dtype in dtypes:
        x = awkward(dtype)
        with np.errstate(all="ignore"):
            expected = ufunc(x)
        out = np.empty_like(expected)
        compiled(x, out)
        same(expected, out)
        same(expected, np.array([kernel(value) for value in x]))


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name):
    ufunc, dtypes = BINARY[name]
    kernel = getattr(scalar, name)
    compiled = loop(kernel, 2)
    for dtype in dtypes:
        x, y = (array.ravel() for array in np.meshgrid(awkward(dtype), awkward(dtype)))
        with np.errstate(all="ignore"):
            expected = ufunc(x, y)
        out = np.empty_like(expected)
        compiled(x, y, out)
        same(expected, out, name)
        same(expected, np.array([kernel(*pair) for pair in zip(x, y)]), name)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("dtype", FLOATS + [np.int32])
def test_random_divisions(name, dtype):
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(2000) * 10.0 ** rng.integers(-3, 5, 2000) for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    out = np.empty_like(expected)
    loop(getattr(scalar, name), 2)(x, y, out)
    same(expected, out)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_powers_of_integers_wrap_around(dtype):
    x, n = (array.ravel() for array in np.meshgrid(awkward(dtype), np.arange(70, dtype=np.int8).astype(dtype)))
    expected = np.power(x, n)
    out = np.empty_like(expected)
    loop(scalar.int_power, 2)(x, n, out)
    same(expected, out)
    same(expected, np.array([scalar.int_power(*pair) for pair in zip(x, n)]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_floats(dtype):
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-3, 3, 40), [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]]).astype(dtype)
    x, n = (array.ravel() for array in np.meshgrid(x, np.arange(-20, 21)))
    with np.errstate(all="ignore"):
        expected = np.power(x, n.astype(dtype))
    out = np.empty_like(expected)
    loop(scalar.int_power, 2)(x, n, out)
    interpreted = np.array([scalar.int_power(*pair) for pair in zip(x, n)])
    for actual in (out, interpreted):
        assert dtype == actual.dtype
        np.testing.assert_allclose(actual, expected, rtol=12 * np.finfo(dtype).eps)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(expected[number]))


def test_literal_and_extreme_powers():
    @njit
    def powers(x):
        return scalar.int_power(x, 0), scalar.int_power(x, 1), scalar.int_power(x, 5), scalar.int_power(x, -2)

    assert (1.0, 3.0, 243.0, 1 / 9) == powers(3.0)

    power = njit(lambda x, n: scalar.int_power(x, n))
    lowest = np.iinfo(np.int64).min
    assert 1.0 == power(-1.0, lowest)
    assert 0.0 == power(2.0, lowest)
    assert 1 == power(1, 2**62)
    for call in (power, scalar.int_power):
        with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
            call(2, -1)


def test_operands_of_unequal_or_wrong_type():
    call = njit(lambda x, y: scalar.maximum(x, y))
    with pytest.raises(TypingError, match="maximum takes operands of one type"):
        call(1, 2.0)
    with pytest.raises(TypingError, match="floor_divide takes operands of one type"):
        njit(lambda x, y: scalar.floor_divide(x, y))(True, False)
    with pytest.raises(TypingError, match="int_power takes a float or integer and an integer"):
        njit(lambda x, y: scalar.int_power(x, y))(2.0, 2.0)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "sign", "heaviside", "copysign", "nextafter", "rint", "floor"])
def test_loops_vectorise(name):
    arity = 1 if name in UNARY else 2
    compiled = loop(getattr(scalar, name), arity)
    x = np.linspace(-3, 3, 99)
    compiled(*[x] * arity, np.empty(99))
    (text,) = compiled.inspect_llvm().values()
    assert "x double>" in text


def test_without_a_compiler(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        from numba import njit
        from gradsmith.kernels.scalar import floor_divide, int_power, maximum

        @njit(error_model="numpy")
        def value(x):
            return maximum(floor_divide(x, 2.0), int_power(x, 2))

        print(value(3.0), value(float("nan")))
    """))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
    assert "9.0 nan" == result.stdout.strip()
