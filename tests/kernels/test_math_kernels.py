"""The elementary functions of `gradsmith.kernels`: accuracy, edges, vectorisation, and the ways they can be called.

GRADSMITH_KERNEL_POINTS=100000 checks that many points per function and dtype; the default takes seconds.
"""

import importlib.util
import itertools
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numba
import numpy as np
import pytest
from mpmath import mp
from numba import njit

from gradsmith import kernels

POINTS = int(os.environ.get("GRADSMITH_KERNEL_POINTS", "2000"))
ROOT = Path(__file__).parents[2]
DTYPES = (np.float64, np.float32)
BINARY = {"arctan2", "power", "hypot"}

REFERENCES = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "expit": lambda x: 1 / (1 + mp.exp(-x)),
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "log1p": mp.log1p,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "power": mp.power,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "hypot": mp.hypot,
}
each_function = pytest.mark.parametrize("name", REFERENCES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)


def loop(name, **options):
    """Compiled code that applies the function to every element."""
    function = getattr(kernels, name)
    if name in BINARY:

        @njit(error_model="numpy", **options)
        def run(x, y, out):
            for i in range(x.shape[0]):
                out[i] = function(x[i], y[i])
    else:

        @njit(error_model="numpy", **options)
        def run(x, out):
            for i in range(x.shape[0]):
                out[i] = function(x[i])

    return run


def apply(name, *arguments):
    out = np.empty_like(arguments[0])
    loop(name)(*arguments, out)
    return out


# Accuracy


class Sampler:
    """Seeded points of a dtype, `count` in all."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        self.info = np.finfo(dtype)
        self.largest = float(np.log(self.info.max))  # exp overflows beyond
        self.generator = np.random.default_rng(1)

    def between(self, low, high):
        return self.generator.uniform(low, high, self.count)

    def magnitudes(self, low=None, high=None):
        """Positive numbers spread over the exponents."""
        low = self.info.smallest_subnormal if low is None else low
        high = self.info.max if high is None else high
        return np.exp(self.generator.uniform(np.log(float(low)), np.log(float(high)), self.count))

    def signed(self, high=None):
        return self.magnitudes(high=high) * self.generator.choice([-1, 1], self.count)

    def near_multiples(self, period):
        return np.rint(self.between(-1e6, 1e6)) * period

    def pick(self, *samples):
        """An equal share of each sample."""
        rows = np.arange(self.count) % len(samples)
        with np.errstate(over="ignore", under="ignore"):
            return np.choose(rows, samples).astype(self.dtype)


def points(name, dtype, count):
    s = Sampler(dtype, count)
    if name in ("exp", "expm1", "sinh", "cosh", "expit"):
        return [s.pick(s.between(-1, 1), s.between(-20, 20), s.between(-1.05 * s.largest, s.largest), s.signed(1))]
    if name == "exp2":
        return [s.pick(s.between(-1, 1), s.between(-1.5 * s.largest, s.largest / np.log(2)), s.signed(1))]
    if name in ("log", "log2", "log10"):
        return [s.pick(s.between(0.5, 2), 1 + s.signed(0.5), s.magnitudes())]
    if name == "log1p":
        return [s.pick(s.between(-1, 1), s.between(-0.99, 5), s.signed(0.999), s.magnitudes())]
    if name in ("sin", "cos", "tan"):
        multiples = s.near_multiples(np.pi / 2)
        return [s.pick(s.between(-4, 4), s.between(-1e3, 1e3), s.between(-4e6, 4e6), multiples, s.signed())]
    if name in ("arcsin", "arccos", "arctanh"):
        return [s.pick(s.between(-1, 1), s.between(0.4, 0.6), 1 - s.magnitudes(s.info.eps, 0.5), s.signed(0.999))]
    if name == "arccosh":
        return [s.pick(1 + s.magnitudes(s.info.eps, 1), s.between(1, 4), s.magnitudes(low=1))]
    if name in ("arctan", "arcsinh", "tanh", "cbrt"):
        return [s.pick(s.between(-1, 1), s.between(-4, 4), s.signed())]
    if name in ("arctan2", "hypot"):
        y = s.signed(1e30)
        return [s.pick(s.between(-3, 3), y, y), s.pick(s.between(-3, 3), s.signed(), y * s.between(0.2, 5))]
    if name == "power":
        near_one = (1 + s.signed(0.1)).astype(dtype).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            large = s.between(-1, 1) * s.largest / np.abs(np.log(near_one))
        large = np.where(np.isfinite(large), large, 3.0)
        integers = np.rint(s.between(-8, 8))
        return [
            s.pick(s.between(0, 3), s.magnitudes(), near_one, s.between(-10, 10)),
            s.pick(s.between(-30, 30), s.between(-1, 1), large, integers),
        ]
    raise ValueError(name)


def errors_in_ulp(name, arguments, got):
    """How far `got` is from the true values, in units of the last place of these."""
    dtype = got.dtype
    reference = REFERENCES[name]
    with mp.workprec(140):
        true = [reference(*map(mp.mpf, map(float, values))) for values in zip(*arguments)]
        nearest = np.array([float(value) for value in true])
        rest = np.array([float(value - float(value)) if mpmath.isfinite(value) else 0.0 for value in true])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = nearest.astype(dtype)
        error = np.abs((got.astype(np.float64) - nearest) - rest) / np.spacing(np.abs(rounded)).astype(np.float64)
    return np.where(np.isfinite(rounded), error, np.where(got == rounded, 0.0, np.inf))


@each_dtype
@each_function
def test_error_is_at_most_two_ulp(name, dtype):
    arguments = points(name, dtype, POINTS)
    error = errors_in_ulp(name, arguments, apply(name, *arguments))
    worst = np.argmax(error)
    assert error[worst] <= 2, [float(values[worst]) for values in arguments]


# Edges


def edges(dtype):
    """Where formats, ranges and special values begin and end, with neighbours and signs."""
    info = np.finfo(dtype)
    special = [0, info.smallest_subnormal, info.tiny / 3, info.tiny, info.eps / 4, info.eps, info.max, np.inf, np.nan]
    plain = [1 / 3, 0.34, 0.5, 0.55, 0.6931, np.pi / 4, 1, 1.5, np.pi / 2, 2, 3, np.pi, 4, 7, 30, 1e5]
    large = [2.0**23, 2.0**24, 2.0**52, 2.0**53, 3e6, 1e7, 1e22, 1e30, info.max / 2, np.sqrt(float(info.max))]
    overflows = [
        88.72284,
        89.41599,
        103.2789,
        103.9721,
        128,
        149,
        150,
        709.782712893384,
        710.4758600739439,
        745.1332191019412,
    ]
    overflows += [1023, 1024, 1074, 1075]
    values = np.array(special + plain + large + overflows, dtype)
    with np.errstate(over="ignore"):
        values = np.concatenate([values, np.nextafter(values, dtype(np.inf)), np.nextafter(values, dtype(0))])
    return np.concatenate([values, -values])


def in_numpy(name, *arguments):
    """NumPy's answer, of float32 by way of float64 but for powers, whose overflow would hide."""
    wide = [values.astype(np.float64) for values in arguments]
    with np.errstate(all="ignore"):
        if name == "expit":
            e = np.exp(-np.abs(wide[0]))
            answer = np.where(wide[0] < 0, e, 1) / (1 + e)
        else:
            answer = getattr(np, name)(*wide)
        return answer.astype(arguments[0].dtype)


@each_dtype
@each_function
def test_edges_are_as_in_numpy(name, dtype):
    values = edges(dtype)
    arguments = [values]
    if name in BINARY:
        arguments = [np.array(column, dtype) for column in zip(*itertools.product(values, values))]
    got, expected = apply(name, *arguments), in_numpy(name, *arguments)
    assert np.isnan(expected).tolist() == np.isnan(got).tolist()
    is_number = ~np.isnan(expected)
    assert np.signbit(expected)[is_number].tolist() == np.signbit(got)[is_number].tolist()
    is_finite = np.isfinite(expected)
    assert expected[is_number & ~is_finite].tolist() == got[is_number & ~is_finite].tolist()
    got, expected = got[is_finite], expected[is_finite]
    with np.errstate(over="ignore"):
        assert np.all(np.abs(got - expected) <= 3 * np.spacing(np.abs(expected)))


@each_dtype
def test_results_stay_in_range(dtype):
    quadrants = (np.arange(-20_000, 20_000) * (np.pi / 2)).astype(dtype)
    assert np.max(np.abs(apply("sin", quadrants))) <= 1
    assert np.max(np.abs(apply("cos", quadrants))) <= 1
    wide = np.linspace(-50, 50, 20_001).astype(dtype)
    assert np.max(np.abs(apply("tanh", wide))) == 1
    assert np.max(apply("expit", wide)) == 1
    assert np.min(apply("expm1", wide)) == -1


@each_dtype
def test_exact_powers(dtype):
    k = np.arange(-140, 128).astype(dtype)
    powers = np.ldexp(np.ones_like(k), k.astype(int))
    assert powers.tolist() == apply("exp2", k).tolist()
    assert k.tolist() == apply("log2", powers).tolist()
    assert powers.tolist() == apply("power", np.full_like(k, 2), k).tolist()
    assert [9.0, 27.0, -27.0, 1 / 16] == apply(
        "power", np.array([-3, 3, -3, 4], dtype), np.array([2, 3, 3, -2], dtype)
    ).tolist()
    cubes = np.arange(-50, 51).astype(dtype)
    assert cubes.tolist() == apply("cbrt", cubes**3).tolist()
    assert [5.0, 13.0] == apply("hypot", np.array([3, 5], dtype), np.array([-4, 12], dtype)).tolist()


# Machine code


@each_dtype
@each_function
def test_loop_is_vectorised(name, dtype):
    run = loop(name)
    arguments = [np.ones(1, dtype)] * (3 if name in BINARY else 2)
    run(*arguments)
    (assembly,) = run.inspect_asm().values()
    (llvm,) = run.inspect_llvm().values()
    assert re.search(r"f(add|mul) <\d+ x (double|float)>", llvm)
    assert f"@{name}(" not in llvm or name in ("sin", "cos", "tan")  # those have the C library for huge arguments
    if platform.machine() in ("x86_64", "AMD64"):
        packed = "pd" if dtype is np.float64 else "p[sd]"
        assert re.search(rf"\bv?(mul|add|fn?m\w+){packed}\s", assembly)


def test_sin_and_cos_share_their_reduction():
    sin, cos = kernels.sin, kernels.cos

    @njit(error_model="numpy")
    def both(x, out):
        for i in range(x.shape[0]):
            out[i] = sin(x[i]) + 2.0 * cos(x[i])

    x = np.linspace(-10, 10, 101)
    out = np.empty_like(x)
    both(x, out)
    np.testing.assert_allclose(out, np.sin(x) + 2 * np.cos(x), atol=1e-15)
    (llvm,) = both.inspect_llvm().values()
    two_over_pi = "0x3FE45F306DC9C883"
    vector_products = re.findall(rf"fmul <\d+ x double> .*{two_over_pi}", llvm)
    alone = loop("sin")
    alone(x, out)
    (llvm_alone,) = alone.inspect_llvm().values()
    assert len(re.findall(rf"fmul <\d+ x double> .*{two_over_pi}", llvm_alone)) == len(vector_products) > 0


# Ways of calling


def test_large_arguments_anywhere_in_a_vector():
    x = np.linspace(-3, 3, 1003)
    for i, value in enumerate((1e22, -1e300, np.inf, np.nan, 5e6)):
        x[i * 97 :: 131] = value
    with np.errstate(invalid="ignore"):
        for name in ("sin", "cos", "tan"):
            np.testing.assert_allclose(apply(name, x), getattr(np, name)(x), rtol=1e-15)


def test_large_float32_arguments_anywhere_in_a_vector():
    x = np.linspace(-3, 3, 1003, dtype=np.float32)
    for i, value in enumerate((1e22, -3e38, np.inf, np.nan, 1.1e5)):
        x[i * 97 :: 131] = value
    with np.errstate(invalid="ignore"):
        for name in ("sin", "cos"):
            np.testing.assert_allclose(apply(name, x), getattr(np, name)(x.astype(np.float64)), rtol=2e-7)


@each_function
def test_plain_python(name):
    values = (1.5, 2.5) if name in BINARY else (1.5,) if name == "arccosh" else (0.5,)
    for dtype in DTYPES:
        scalars = [dtype(value) for value in values]
        result = getattr(kernels, name)(*scalars)
        assert type(result) is dtype
        np.testing.assert_allclose(result, in_numpy(name, *map(np.array, scalars)), rtol=1e-6)


def test_plain_python_does_not_warn(recwarn):
    kernels.exp(1e6)
    kernels.log(0.0)
    assert [] == recwarn.list


def test_the_type_of_the_argument_decides():
    exp, power = kernels.exp, kernels.power

    @njit
    def run(single, double, integer, boolean):
        return exp(single), exp(double), exp(integer), exp(boolean), power(single, single), power(single, double)

    single, double, integer, boolean, _, mixed = run(np.float32(2), 2.0, 2, True)
    f4, f8 = numba.float32, numba.float64
    assert [f4, f8, f8, f8, f4, f8] == list(run.nopython_signatures[0].return_type)
    assert np.exp(2.0) == double == integer
    assert np.exp(1.0) == boolean
    assert 4.0 == mixed
    assert np.float32(np.exp(2.0)) == np.float32(single)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh", "arctan", "expm1", "power"])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64], ids=["complex128", "complex64"])
def test_complex(name, dtype):
    x = np.full(3, 0.3 + 0.2j, dtype)
    arguments = [x, x] if name in BINARY else [x]
    got = apply(name, *arguments)
    assert dtype == got.dtype
    np.testing.assert_allclose(got, getattr(np, name)(*arguments), rtol=1e-5 if dtype is np.complex64 else 1e-14)


def test_what_is_no_number_is_a_typing_error():
    sin = kernels.sin

    @njit
    def run():
        return sin("x")

    with pytest.raises(numba.TypingError):
        run()


@pytest.mark.parametrize("flags", [True, {"reassoc", "contract", "nsz", "arcp"}], ids=["all", "for reductions"])
def test_the_callers_fast_math_does_not_reach_inside(flags):
    for name in ("exp", "log1p", "sin", "arcsinh", "power"):
        arguments = points(name, np.float64, 500)
        exact, fast = np.empty_like(arguments[0]), np.empty_like(arguments[0])
        loop(name)(*arguments, exact)
        loop(name, fastmath=flags)(*arguments, fast)
        usual = np.isfinite(exact)
        np.testing.assert_array_equal(fast[usual], exact[usual])


def test_in_parallel_and_in_universal_functions():
    sin = kernels.sin
    x = np.linspace(-10, 10, 1001)

    @njit(parallel=True)
    def parallel(x, out):
        for i in numba.prange(x.shape[0]):
            out[i] = sin(x[i])

    out = np.empty_like(x)
    parallel(x, out)
    np.testing.assert_array_equal(apply("sin", x), out)
    np.testing.assert_array_equal(out, numba.vectorize(["f8(f8)"])(lambda v: sin(v))(x))


def run_python(text, **environment):
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_survives_numbas_cache(tmp_path):
    (tmp_path / "cached_caller.py").write_text(
        "from numba import njit\n"
        "from gradsmith.kernels import cos, exp, sin\n"
        "@njit(cache=True)\n"
        "def run(x, out):\n"
        "    for i in range(x.shape[0]):\n"
        "        out[i] = sin(x[i]) + cos(x[i]) * exp(x[i] * 1e-300)\n"
    )
    text = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import numpy as np, cached_caller\n"
        "x = np.array([0.5, -1.0, 1e22, 3.0] * 5); out = np.empty_like(x); cached_caller.run(x, out)\n"
        "print(np.abs(out - np.sin(x) - np.cos(x)).max() < 1e-15, sum(cached_caller.run.stats.cache_hits.values()))\n"
    )
    outputs = [run_python(text, NUMBA_CACHE_DIR=str(tmp_path / "cache")) for _ in range(2)]
    assert ["True 0\n", "True 1\n"] == outputs


def test_without_a_fused_multiply_add():
    selection = "two_ulp and (float64 and not arctan2 and not cos or float32 and sin and not arc)"
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", selection],
        env={**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "GRADSMITH_KERNEL_POINTS": "200"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert outcome.returncode == 0, outcome.stdout


def test_without_compiling():
    text = "from numba import njit; from gradsmith.kernels import exp, tanh; print(njit(lambda x: tanh(exp(x)))(0.0))"
    assert np.tanh(1.0) == float(run_python(text, NUMBA_DISABLE_JIT="1"))


def test_the_polynomials_are_what_the_tool_writes(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("fit_polynomials", ROOT / "tools" / "fit_polynomials.py")
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, tool)
    spec.loader.exec_module(tool)
    committed = tool.OUTPUT.read_text()
    monkeypatch.setattr(tool, "OUTPUT", tmp_path / "polynomials.py")
    with mp.workdps(60):
        tool.main()
    assert committed == tool.OUTPUT.read_text()
