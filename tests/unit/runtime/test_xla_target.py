"""`jit(f, target="xla")`: what it computes, when, where, and what of NumPy's meaning it keeps."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from unit.runtime.on_device import XLA, close, shift, shift_xla

import gradsmith as gs
from gradsmith import DeviceArray, device_put, grad, jit
from gradsmith.transpiler.errors import TranspileError

pytest.importorskip("jax")
pytestmark = pytest.mark.xla


def loss(w, x, y):
    hidden = np.tanh(x @ w)
    return np.mean((hidden.sum(axis=1) - y) ** 2)


RNG = np.random.default_rng(0)
W, X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 4)), RNG.normal(size=5)
loss_xla = jit(loss, target="xla")


# ---------------------------------------------------------------------------------------------------------------
# values, and what transforms make of them


def test_value_and_derivatives_of_a_function_for_xla_run_there():
    results = {
        "value": (loss_xla(W, X, Y), loss(W, X, Y)),
        "grad": (grad(loss_xla)(W, X, Y), grad(loss)(W, X, Y)),
        "hessian": (gs.hessian(loss_xla)(W, X, Y), gs.hessian(loss)(W, X, Y)),
        "jvp": (gs.jvp(loss_xla, (W, X, Y), (W, X, Y))[1], gs.jvp(loss, (W, X, Y), (W, X, Y))[1]),
        "jit of grad": (jit(grad(loss), target="xla")(W, X, Y), grad(loss)(W, X, Y)),
    }
    for what, (got, expected) in results.items():
        assert isinstance(got, DeviceArray), what
        assert got.device == XLA, what
        close(expected, got)


def test_vjp_and_linearize_keep_what_they_need_on_the_device():
    value, pullback = gs.vjp(loss_xla, W, X, Y)
    close(loss(W, X, Y), value)
    for got, expected in zip(pullback(2.0), gs.vjp(loss, W, X, Y)[1](2.0), strict=True):
        assert isinstance(got, DeviceArray)
        close(expected, got)
    assert all(isinstance(r, DeviceArray) for r in pullback._residuals)
    value, push = gs.linearize(loss_xla, W, X, Y)
    close(gs.linearize(loss, W, X, Y)[1](W, X, Y), push(W, X, device_put(Y, "xla:0")))


def test_a_jit_inside_takes_the_target_of_the_outermost():
    inner = jit(lambda x: np.sin(x), target="xla")
    here = jit(lambda x: inner(x) * 2.0, target="cpu")(X)
    assert type(here) is np.ndarray
    assert jit(inner, target="cpu").target.is_xla is False
    assert jit(inner).target.is_xla


class Layer(NamedTuple):
    w: np.ndarray
    b: np.ndarray


def test_trees_go_in_and_come_out():
    @jit(target="xla")
    def step(params, batch, *, rate):
        return {"out": [Layer(params.w - rate * batch["x"], params.b)], "rate": rate, "name": "step"}

    found = step(Layer(np.ones(3), np.zeros(2)), {"x": np.arange(3.0)}, rate=0.5)
    assert list(found) == ["out", "rate", "name"]
    assert found["name"] == "step"
    close([1.0, 0.5, 0.0], found["out"][0].w)
    assert isinstance(found["out"][0], Layer)
    assert float(found["rate"]) == 0.5


def test_control_flow_and_ints_that_sizes_need():
    @jit(target="xla")
    def f(x, n):
        total = np.zeros(n)
        for k in range(n):
            total[k] = x[k] if x[k] > 0.0 else -2.0 * x[k]
        return total

    x = np.array([1.0, -1.0, 3.0])
    close([1.0, 2.0], f(x, 2))
    close([1.0, 2.0, 3.0], f(x, 3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool", "complex128"])
def test_dtypes_stay(dtype):
    x = np.array([0, 1, 2]).astype(dtype)
    got = jit(lambda x: x[::-1], target="xla")(x)
    assert got.dtype == dtype
    assert np.array_equal(np.asarray(got), x[::-1])


def test_python_numbers_stay_weak():
    half = jit(lambda: 0.5, target="xla")
    scaled = jit(lambda x, s: x * s, target="xla")
    product = jit(lambda a, b: a * b, target="xla")(0.5, 3.0)
    assert product.is_weak
    assert scaled(np.ones(2, np.float32), product).dtype == np.float32
    assert jit(lambda x, s: x * s)(np.ones(2, np.float32), product).dtype == np.float32
    assert half() == 0.5


# ---------------------------------------------------------------------------------------------------------------
# compilations


def test_each_shape_is_compiled_once_and_said_so(caplog):
    f = jit(lambda x: x * 3.0, target="xla")
    with caplog.at_level(logging.INFO, "gradsmith"):
        for size in (2, 3, 2, 3):
            f(np.ones(size))
    told = [r.getMessage() for r in caplog.records if "for xla:0" in r.getMessage()]
    assert len(told) == 2
    assert "x: f64[2]" in told[0] and told[0].endswith("first call")
    assert told[1].endswith("new shapes, types or static values")
    assert "stablehlo.multiply" in f.source(np.ones(2))
    assert set(f.stages(np.ones(2))) >= {"trace", "pipeline", "emit", "compile"}


MODE = "double"


def test_calls_that_only_look_like_the_ones_before():
    """The quick way in is for the same kinds of arguments, static values and captured values alone."""
    global MODE
    f = jit(lambda x, k=2: x * k if MODE == "double" else x - k, target="xla")
    x = np.arange(3.0)
    for _ in range(2):
        close(2.0 * x, f(x))
        close(5.0 * x, f(x, 5))
    close(3.0 * x, f(x, k=3))
    close((2.0 * x).astype(np.float32), f(x.astype(np.float32)))
    close(2.0 * x[:2], f(x[:2]))
    close(2.0 * x[::-1], f(x[::-1]))
    close(np.float64(6.0), f(3.0))
    close(2.5 * x, f(x, 2.5))
    MODE = "less"
    try:
        close(x - 2.0, f(x))
    finally:
        MODE = "double"
    with pytest.raises(TypeError):
        f(x, 1, 2)


def test_what_is_taken_for_granted_of_an_int_is_looked_at():
    def backwards(x, n):
        for i in range(n - 1, 0, -2):
            x[4:] = x[1::2]
            x[-1 - i] = 2.0 * i
        return x.sum()

    f = jit(backwards, target="xla")
    for n in (0, 7, 2, 6, 0):
        mine, theirs = np.arange(8.0), np.arange(8.0)
        close(backwards(theirs, n), f(mine, n))
        close(theirs, mine)
    assert "%n" not in gs.stablehlo(backwards)(np.arange(8.0), 0)      # nobody would look

    def counted(x, n):
        for i in range(n):
            x = x * 0.5 + i
        return x

    once = jit(counted, target="xla")
    for n in (0, 1, 5):
        close(np.float64(counted(0.5, n)), once(0.5, n))
    assert len(once._specialisations) == 1


def test_what_a_check_keeps_under_a_cast():
    def swaps(x, places):
        for i in range(places.shape[0]):
            x[i] = x[places[i]]

    x, places = np.arange(4.0), np.array([2, 3, 0])
    expected = x.copy()
    swaps(expected, places)
    jit(swaps, target="xla", cast="f32")(x, places)
    close(expected, x)


@pytest.mark.parametrize("damage", [None, b"", b"no executable"])
def test_executables_are_found_on_disk(tmp_path, monkeypatch, damage):
    from gradsmith import cache, transforms
    from gradsmith.xla import compiler
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path))

    def run():
        compiler._executables.clear()
        transforms._shared.cache_clear()
        before = cache.account.loaded
        close(np.cos(Y), jit(np_cos, target="xla")(Y))
        return cache.account.loaded - before

    assert run() == 0
    stored = list(tmp_path.rglob("*.xla"))
    assert len(stored) == 1
    if damage is not None:
        stored[0].write_bytes(damage)
    assert run() == (1 if damage is None else 0)


def np_cos(x):
    return np.cos(x)


# ---------------------------------------------------------------------------------------------------------------
# arguments that are written to


def test_an_array_of_numpys_is_written_to():
    a, b = np.arange(4.0), np.ones(4)
    expected = a.copy()
    total = shift(expected, b)
    backing = np.zeros(8)
    view = backing[::2]
    view[:] = a
    close(total, shift_xla(a, b))
    close(expected, a)
    shift_xla(view, b)
    close(expected, view)
    close(np.zeros(4), backing[1::2])


def test_an_array_of_the_device_is_written_to_without_a_copy():
    a = device_put(np.arange(4.0), "xla:0")
    before = a._buffer
    shift_xla(a, np.ones(4))
    assert before.is_deleted()
    close([0.0, 2.0, 3.0, 4.0], a)


def test_what_was_read_of_an_array_before_it_is_written_to_stays():
    a = device_put(np.arange(4.0), "xla:0")
    seen = np.asarray(a)
    kept = a._buffer
    shift_xla(a, np.ones(4))
    close([0.0, 1.0, 2.0, 3.0], seen)
    assert not kept.is_deleted()
    close([0.0, 2.0, 3.0, 4.0], a)


def test_the_same_array_twice_is_one_array():
    for make in (np.arange, lambda n: device_put(np.arange(n), "xla:0")):
        a, here = make(4.0), np.arange(4.0)
        shift(here, here)
        shift_xla(a, a)
        close(here, a)
    a = np.arange(8.0)
    with pytest.raises(ValueError, match="shares memory"):
        shift_xla(a[:4], a[2:6])


def test_arguments_are_taken_as_they_are_when_called():
    f = jit(lambda x: x + 1.0, target="xla")
    results = []
    for k in range(20):
        x = np.full(300_000, float(k))
        results.append(f(x))
        x[:] = -1.0
    assert [float(np.asarray(r).max()) for r in results] == [k + 1.0 for k in range(20)]
    assert [float(np.asarray(r).min()) for r in results] == [k + 1.0 for k in range(20)]


def test_a_function_that_may_raise_leaves_its_arguments_when_it_does():
    @jit(target="xla")
    def put(a, i):
        a[0] = 5.0
        a[i] = 1.0

    for a in (np.zeros(3), device_put(np.zeros(3), "xla:0")):
        put(a, 2)
        close([5.0, 0.0, 1.0], a)
        with pytest.raises(IndexError, match=r"a\[i\] = 1.0"):
            put(a, 3)
        close([5.0, 0.0, 1.0], a)


# ---------------------------------------------------------------------------------------------------------------
# errors


class Negative(ValueError):
    pass


def test_errors_are_raised_where_a_result_is_read():
    @jit(target="xla")
    def take(x, i):
        return x[i], x + 1.0

    one, more = take(np.arange(3.0), 3)
    with pytest.raises(IndexError, match="out of bounds"):
        float(one)
    with pytest.raises(IndexError):
        more.block_until_ready()
    with pytest.raises(IndexError):
        np.sin(more)
    with pytest.raises(IndexError):             # what is computed of it, too: at the call or when it is read
        float(jit(lambda x: x.sum(), target="xla")(more))
    close(3.0, take(np.arange(3.0), 2)[1][2])


def test_the_programs_own_exceptions():
    @jit(target="xla")
    def root(x):
        if x < 0.0:
            raise Negative(f"no root of {x}")
        return np.sqrt(x)

    assert root(4.0) == 2.0
    with pytest.raises(Negative, match=r"no root of \.\.\."):
        root(-1.0).block_until_ready()
    unchecked = jit(root, target="xla", checked=False)
    assert np.isnan(unchecked(-1.0))


@pytest.mark.parametrize("cast, dtype, room", [("f32", "float32", 1e-5), ("f16", "float16", 2e-2),
                                               ("bf16", "bfloat16", 1e-1)])
def test_floats_become_shorter_ones(cast, dtype, room):
    found = jit(grad(loss), target="xla", cast=cast)(device_put(W, "xla:0"), X, Y)
    assert found.dtype.name == dtype
    np.testing.assert_allclose(np.asarray(found, np.float64), grad(loss)(W, X, Y), rtol=room, atol=room)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_arguments_in_half_precision(dtype):
    import ml_dtypes  # comes with jax
    half = np.dtype(getattr(ml_dtypes, dtype, dtype))
    w, x, y = (a.astype(half) for a in (W, X, Y))
    slope = jit(grad(loss), target="xla")
    found = slope(w, x, y)
    assert half == found.dtype == slope(device_put(found, "xla:0"), x, y).dtype
    expected = grad(loss)(*(a.astype(np.float32) for a in (w, x, y)))
    np.testing.assert_array_equal(np.asarray(found), expected.astype(half))
    assert np.float32 == slope(w, X.astype(np.float32), y).dtype

    @jit(target="xla")
    def first(x):
        x[0] = 3
        return x[1:]

    assert half == first(w).dtype
    assert (w[0] == 3).all()
    on_device = device_put(w, "xla:0")
    first(on_device)
    assert half == on_device.dtype


def test_loops_over_elements_are_raised_and_those_of_derivatives_bounded():
    def product(a, b):
        c = np.zeros((a.shape[0], b.shape[1]))
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]
        return c

    there = jit(product, target="xla")
    close(X @ W, there(X, W))
    assert "while" not in there.source(X, W)

    def halved(x):
        while x > 1.0:
            x = x / 2.0
        return x * x

    close(grad(halved)(40.0), np.asarray(jit(grad(halved), target="xla", max_trips=10)(40.0)))


@pytest.mark.parametrize("options, text", [
    ({"target": "gpu"}, "no target 'gpu'"),
    ({"target": "xla:one"}, "no target 'xla:one'"),
    ({"target": "xla", "cast": "f8"}, "no type that floats can become"),
    ({"cast": "f32"}, "cast is for targets"),
])
def test_options_that_mean_nothing(options, text):
    with pytest.raises(ValueError, match=text):
        jit(np_cos, **options)


def test_a_device_that_is_not_there():
    with pytest.raises(ValueError, match="no device xla:7"):
        jit(np_cos, target="xla:7")(Y)
    with pytest.raises(ValueError, match="no device 'gpu'"):
        device_put(Y, "gpu")


def test_no_tpu_here():
    pytest.importorskip("libtpu")
    from gradsmith.xla.bindings import has_tpu
    if has_tpu():
        pytest.skip("there is one")
    there = jit(np_cos, target="tpu")
    with pytest.raises(RuntimeError, match="no TPU here") as found:
        there(np.ones(3, np.float32))
    assert "compile_for_tpu" in str(found.value)
    assert "stablehlo.cosine" in there.source(np.ones(3, np.float32))
    with pytest.raises(NotImplementedError, match="a TPU has no float64, and x is f64") as found:
        there(np.ones(3))
    assert 'cast="f32"' in str(found.value)
    assert "tensor<3xf32>" in jit(np_cos, target="tpu", cast="f32").source(np.ones(3))


def test_numbers_of_python_on_a_tpu():
    rate = 0.1

    def scaled(x, by):
        return x * (by * 2.0) + rate

    x = np.ones(3, np.float32)
    assert "tensor<3xf32>" in jit(scaled, target="tpu").source(x, 0.5)
    with pytest.raises(NotImplementedError, match="a TPU has no float64, and by is f64"):
        jit(scaled, target="tpu").source(x, np.float64(0.5))
    with pytest.raises(NotImplementedError, match="a TPU has no float64, and a value here is f64") as found:
        jit(lambda x: x * np.mean(np.arange(3)), target="tpu").source(x)
    assert "np.mean(np.arange(3))" in str(found.value)


def test_loops_over_elements_are_warned_of_for_a_tpu(caplog):
    pytest.importorskip("libtpu")

    def recurrence(x):
        s = np.float32(0.0)
        for i in range(len(x)):
            s = s * s + x[i]
        return s

    jit(recurrence, target="tpu").source(np.ones(3, np.float32))
    assert any("loop kept" in r.getMessage() and r.levelname == "WARNING" for r in caplog.records)


def test_compiling_for_a_tpu_that_is_not_here():
    pytest.importorskip("libtpu")
    script = ("import numpy as np\nfrom gradsmith import jit\n"
              "f = jit(lambda x: np.cos(x), target='tpu', source='lambda x: np.cos(x)')\n"
              "assert f.lower(np.ones(64, np.float32)).compile_for_tpu('v5e:2x2').memory['argument'] > 0")
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_jaxlib_says_what_to_install():
    script = ("import sys; sys.modules['jax'] = None\nimport numpy as np\nfrom gradsmith import jit\n"
              "def f(x): return x\n"
              "try: jit(f, target='xla', source='def f(x): return x')(np.ones(2))\n"
              "except ImportError as e: assert 'pip install gradsmith[xla]' in str(e), e\n"
              "else: raise SystemExit('no error')")
    subprocess.run([sys.executable, "-c", script], check=True)


def falling(x):
    return x if x < 1.0 else falling(x / 2.0)


def test_what_stablehlo_lacks_is_refused_at_its_line():
    with pytest.raises(TranspileError, match=r"falling\(x / 2.0\)") as found:
        jit(falling, target="xla")(8.0)
    assert found.value.problems[0].code == "E207"


# ---------------------------------------------------------------------------------------------------------------
# captured values


SCALE = np.array([1.0, 2.0])
FACTOR = 2.0


def test_captured_values_are_read_at_each_call():
    global SCALE, FACTOR
    f = jit(lambda x: x * SCALE * FACTOR, target="xla")
    close([2.0, 4.0], f(np.ones(2)))
    SCALE[0] = 5.0
    FACTOR = 3.0
    close([15.0, 6.0], f(np.ones(2)))
    SCALE = np.ones(3)
    close([3.0, 3.0, 3.0], f(np.ones(3)))
    SCALE, FACTOR = device_put(np.array([1.0, 4.0]), "xla:0"), 2.0
    close([2.0, 8.0], f(np.ones(2)))
    close([2.0, 8.0], jit(lambda x: x * SCALE * FACTOR)(np.ones(2)))


COUNTS = np.zeros(2)


def test_a_captured_array_is_written_to():
    @jit(target="xla")
    def count(x):
        COUNTS[0] += x
        return COUNTS[0]

    count(1.0)
    assert count(2.0) == 3.0
    close([3.0, 0.0], COUNTS)
