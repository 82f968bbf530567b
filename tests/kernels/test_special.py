"""Special functions against mpmath for accuracy and against SciPy at the edges; also without a compiler."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.special
from mpmath import mp, mpf
from numba import njit
from numba.core.errors import TypingError

from gradsmith.kernels import special

DTYPES = [np.float32, np.float64]
DIGITS = 40


def loop(function, arity=1):
    operands, names = ", ".join(f"{name}[i]" for name in "xy"[:arity]), ", ".join("xy"[:arity])
    namespace = {"function": function}
    exec(f"def call({names}, out):\n    for i in range(out.size):\n        out[i] = function({operands})\n", namespace)
    return njit(nogil=True, error_model="numpy")(namespace["call"])


def of_order(function, n):
    namespace = {"function": function}
    exec(f"def call(x):\n    return function({n}, x)\n", namespace)
    return njit(error_model="numpy")(namespace["call"])


LOOPS = {name: loop(getattr(special, name)) for name in ("erf", "erfc", "erfinv", "gammaln", "digamma", "logit", "entr", "sinc")}
LOOPS |= {name: loop(getattr(special, name), 2) for name in ("xlogy", "xlog1py", "logaddexp", "logaddexp2")}


def run(call, *operands):
    out = np.full_like(operands[0], -7)
    call(*operands, out)
    return out


def assert_accurate(reference, actual, *operands, ulps, absolute=0.0):
    """Within `ulps` of the exact value, or within `absolute` of it."""
    with mp.workdps(DIGITS):
        for *inputs, result in zip(*operands, actual):
            exact = reference(*[mpf(float(x)) for x in inputs])
            rounded = actual.dtype.type(float(exact))
            error = abs(mpf(float(result)) - exact)
            ulp = mpf(float(np.spacing(abs(rounded))))
            assert error <= max(ulps * ulp, absolute), (inputs, result, float(exact), float(error / ulp))


def points(rng, dtype, *ranges, count=300):
    """Numbers from all `ranges`: uniform from (low, high), or log-uniform from ("log", low, high)."""
    parts = [
        10.0 ** rng.uniform(*bounds[1:], count) if bounds[0] == "log" else rng.uniform(*bounds, count) for bounds in ranges
    ]
    return np.concatenate(parts).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_functions(dtype):
    rng = np.random.default_rng(1)
    end, tiny = (26.5, -300) if dtype == np.float64 else (9.1, -37)
    x = points(rng, dtype, (-1.1, 1.1), (-6, 6), ("log", tiny, 0))
    assert_accurate(mp.erf, run(LOOPS["erf"], x), x, ulps=1)
    x = points(rng, dtype, (-6, 6), (0.7, 1.1), (1, end))
    assert_accurate(mp.erfc, run(LOOPS["erfc"], x), x, ulps=2.4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfc_where_it_is_subnormal(dtype):
    x = np.linspace(26.5, 27.3, 50) if dtype == np.float64 else np.linspace(9.2, 10.1, 50).astype(dtype)
    assert_accurate(mp.erfc, run(LOOPS["erfc"], x), x, ulps=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse_error_function(dtype):
    rng = np.random.default_rng(2)
    x = points(rng, dtype, (-1, 1), ("log", -30, 0), count=150)
    x = np.concatenate([x, 1 - 10.0 ** rng.uniform(-15.6 if dtype == np.float64 else -7.1, -1, 100)]).astype(dtype)
    x = np.append(x[np.abs(x) < 1], np.nextafter(dtype(1), dtype(0)))
    assert_accurate(mp.erfinv, run(LOOPS["erfinv"], x), x, ulps=2.2 if dtype == np.float64 else 0.51)


def log_gamma(x):
    return mp.re(mp.loggamma(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, reference", [("gammaln", log_gamma), ("digamma", mp.digamma)])
def test_gamma_functions(dtype, name, reference):
    rng = np.random.default_rng(3)
    x = points(rng, dtype, (0, 12), (0.9, 2.6), ("log", 1, 30), ("log", -37, -1), count=150)
    assert_accurate(reference, run(LOOPS[name], x), x, ulps=4, absolute=1e-15 if dtype == np.float64 else 0)
    x = points(rng, dtype, (-6, 0), (-100, 0), count=150)
    # Beyond their zeros the terms of the reflection formula are some units large.
    assert_accurate(reference, run(LOOPS[name], x), x, ulps=6, absolute=6e-15 if dtype == np.float64 else 0)


@pytest.mark.parametrize("n, ulps", [(0, 4), (1, 4), (2, 4), (3, 6), (6, 10), (12, 16)])
def test_polygamma(n, ulps):
    rng = np.random.default_rng(4)
    x = points(rng, np.float64, (0, 12), ("log", 1, 8), ("log", -10, -1), count=60)
    call = loop(of_order(special.polygamma, n))
    reference = lambda x: mp.polygamma(n, x)
    assert_accurate(reference, run(call, x), x, ulps=ulps, absolute=1e-15)
    x = points(rng, np.float64, (-6, 0), count=60)
    assert_accurate(reference, run(call, x), x, ulps=3 * ulps, absolute=1e-14 * float(mp.factorial(n)))
    single = x.astype(np.float32)
    assert_accurate(reference, run(call, single), single, ulps=0.51)


def sinc_derivative(n):
    def of(x):
        if x == 0:
            return mpf(0) if n % 2 else (-1) ** (n // 2) * mp.pi**n / (n + 1)
        z = mp.pi * x
        total = sum(
            mp.binomial(n, k) * mp.sin(z + (n - k) * mp.pi / 2) * (-1) ** k * mp.factorial(k) / z ** (k + 1) for k in range(n + 1)
        )
        return total * mp.pi**n

    return of


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 12])
def test_derivatives_of_sinc(n):
    """Measured by the derivative's envelope: the error at a zero is that of its surroundings."""
    rng = np.random.default_rng(5)
    x = np.concatenate([points(rng, np.float64, (-1, 1), (-8, 8), ("log", -9, 0), count=60), [0.0, -0.0, 0.5, 1.0, -3.0, 1e6 + 0.25]])
    compiled = run(loop(of_order(special.sinc_derivative, n)), x)
    interpreted = special.sinc_derivative(n, x)
    limit = (6 if n < 6 else 50) * 2.0**-53
    with mp.workdps(DIGITS + 10 * n + 10):  # the terms cancel where x is small
        for result, plain, value in zip(compiled, interpreted, x):
            exact = sinc_derivative(n)(mpf(float(value)))
            envelope = np.pi**n * min(1 / (n + 1), 1 / abs(np.pi * value) if value else 1.0)
            assert abs(mpf(float(result)) - exact) <= limit * envelope, value
            assert abs(mpf(float(plain)) - exact) <= 2 * limit * envelope, value
    if n % 2 == 0:
        assert compiled[0] == run(loop(of_order(special.sinc_derivative, n)), -x)[0]


def test_sinc_is_exactly_zero_at_integers():
    x = np.array([1.0, -2.0, 3e5, 1e300])
    np.testing.assert_array_equal(run(LOOPS["sinc"], x), np.zeros(4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithmic_functions(dtype):
    rng = np.random.default_rng(6)
    p = points(rng, dtype, (0, 1), ("log", -30, 0), (0.48, 0.52), count=150)
    p = p[(p > 0) & (p < 1) & (p != 0.5)]
    assert_accurate(lambda p: mp.log(p / (1 - p)), run(LOOPS["logit"], p), p, ulps=2.5)
    assert_accurate(lambda p: -p * mp.log(p), run(LOOPS["entr"], p), p, ulps=2)
    x, y = points(rng, dtype, (-3, 3), count=300), points(rng, dtype, (0, 3), count=300)
    assert_accurate(lambda x, y: x * mp.log(y), run(LOOPS["xlogy"], x, y), x, y, ulps=2)
    assert_accurate(lambda x, y: x * mp.log1p(y), run(LOOPS["xlog1py"], x, y - 1), x, y - 1, ulps=2)
    x = points(rng, dtype, (-80, 80), count=300)
    y = x + points(rng, dtype, (-40, 40), count=300)
    epsilon = float(np.finfo(dtype).eps)  # where the result is small, the error is that of the larger operand
    assert_accurate(lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), run(LOOPS["logaddexp"], x, y), x, y, ulps=1, absolute=epsilon)
    expected = lambda x, y: mp.log(mpf(2) ** x + mpf(2) ** y) / mp.log(2)
    assert_accurate(expected, run(LOOPS["logaddexp2"], x, y), x, y, ulps=1, absolute=epsilon)


EDGES = [0.0, -0.0, 0.5, 1.0, -1.0, -2.0, -3.0, 2.0, 1.5, np.inf, -np.inf, np.nan, 1e30, -1e30]
REFERENCES = {
    "erf": scipy.special.erf, "erfc": scipy.special.erfc, "erfinv": scipy.special.erfinv, "entr": scipy.special.entr,
    "gammaln": scipy.special.gammaln, "digamma": scipy.special.digamma, "logit": scipy.special.logit, "sinc": np.sinc,
    "xlogy": scipy.special.xlogy, "xlog1py": scipy.special.xlog1py, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
}  # fmt: skip


def same(expected, actual, dtype):
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    zero = (expected == 0) & (actual == 0)
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REFERENCES)
def test_edges(name, dtype):
    x = np.array(EDGES, dtype)
    operands = (x,) if name in ("erf", "erfc", "erfinv", "gammaln", "digamma", "logit", "entr", "sinc") else np.meshgrid(x, x)
    operands = [np.ascontiguousarray(operand).ravel() for operand in operands]
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](*operands)
    if name == "sinc":  # NumPy has no exact zeros
        expected = np.where(np.isfinite(x) & (x != 0) & (x == np.rint(x)), np.float64(0), expected)
        operands, expected = [x[:9]], np.abs(expected[:9])
        same(expected.astype(dtype), np.abs(run(LOOPS[name], *operands)), dtype)
        return
    expected = expected.astype(dtype)
    actual = run(LOOPS[name], *operands)
    interpreted = np.array([getattr(special, name)(*values) for values in zip(*operands)])
    assert dtype == actual.dtype == interpreted.dtype
    if name in ("xlogy", "xlog1py", "erfinv"):  # SciPy gives the sign of these zeros no meaning
        expected, actual, interpreted = expected + 0, actual + 0, interpreted + 0
    same(expected, actual, dtype)
    same(expected, interpreted, dtype)


def test_polygamma_edges():
    x = np.array([0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 1e300])
    for n in (1, 2):
        expected = scipy.special.polygamma(n, x)
        np.testing.assert_array_equal(run(loop(of_order(special.polygamma, n)), x), expected)
        np.testing.assert_array_equal(special.polygamma(n, x), expected)


def test_orders_must_be_literal_and_small():
    with pytest.raises(TypingError, match="polygamma takes a literal order from 0 to 30, not int64"):
        njit(lambda n, x: special.polygamma(n, x))(2, 1.0)
    with pytest.raises(TypingError, match="sinc_derivative takes a literal order from 0 to 20"):
        of_order(special.sinc_derivative, 21)(1.0)
    with pytest.raises(ValueError, match="orders from 0 to 30, not -1"):
        special.polygamma(-1, 1.0)
    assert np.float32 == special.polygamma(2, np.float32(1)).dtype


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "gammaln", "digamma", "logit", "sinc", "logaddexp"])
def test_loops_vectorise(name):
    (text,) = [text for signature, text in LOOPS[name].inspect_llvm().items() if "float64" in str(signature)] or [""]
    if not text:
        arity = 2 if name == "logaddexp" else 1
        call = loop(getattr(special, name), arity)
        call(*[np.linspace(0.1, 0.9, 64)] * arity, np.empty(64))
        (text,) = call.inspect_llvm().values()
    assert "x double>" in text


def test_without_a_compiler(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        from numba import njit
        from gradsmith.kernels.special import digamma, erf, polygamma, sinc_derivative

        @njit(error_model="numpy")
        def value(x):
            return erf(x) + digamma(x) + polygamma(1, x) + sinc_derivative(1, x)

        print(round(value(1.0), 12))
    """))
    expected = scipy.special.erf(1) + scipy.special.digamma(1) + np.pi**2 / 6 - 1
    for options in ({}, {"NUMBA_DISABLE_JIT": "1"}):
        result = subprocess.run([sys.executable, program], env={**os.environ, **options}, capture_output=True, text=True, check=True)
        assert str(round(expected, 12)) == result.stdout.strip()
