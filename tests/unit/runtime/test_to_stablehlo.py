"""`gradsmith.stablehlo`: arguments as values and as specs, what is known and what is a parameter, casts, refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler.errors import TranspileError


def emitted(fun, *args, **options):
    return gradsmith.stablehlo(fun, locations=False, **options).lower(*args)


def signature(text):
    return next(line for line in text.splitlines() if "@main" in line)


def run(made, *args):
    pytest.importorskip("jax")
    from gradsmith import xla
    return xla.run(made.text, *(args or made.arrays()), optimise=False)


def weighted(x, w):
    return np.sum(x * w)


# ---------------------------------------------------------------------------------------------------------------
# arguments


@pytest.mark.parametrize("x", [np.ones((2, 3), "float32"), "f32[2,3]", gradsmith.ShapeDtypeStruct((2, 3), "float32"),
                               gradsmith.f32[2, 3]])
def test_values_and_specs_give_the_same_text(x):
    expected = emitted(weighted, np.zeros((2, 3), "float32"), np.float64(2.0)).text
    assert expected == emitted(weighted, x, gradsmith.f64).text
    assert signature(expected).count("tensor<2x3xf32>") == 1


def test_arrays_of_other_libraries_are_specs():
    jax = pytest.importorskip("jax")
    assert "tensor<2x3xf32>" in signature(emitted(weighted, jax.ShapeDtypeStruct((2, 3), np.float32), 2.0).text)


@dataclasses.dataclass
class Model:
    w: object
    b: object


def test_parameters_and_results_have_their_paths():
    def step(model, batch, **rate):
        return {"w": model.w - rate["by"] * batch[0], "all": (model.b, batch[1])}

    made = gradsmith.stablehlo(step).lower(Model("f64[3]", 1.0), ["f64[3]", np.arange(2)], by=0.5)
    assert made.arguments == ("model.w", "model.b", "batch[0]", "batch[1]", "by")
    assert made.results == ("result['w']", "result['all'][0]", "result['all'][1]")
    assert '%model_w: tensor<3xf64> loc("model.w")' in made.text
    assert """tensor<3xf64> {jax.result_info = "result['w']"}""" in made.text
    with pytest.raises(ValueError, match="model.w was given as a shape and dtype"):
        made.arrays()


def test_an_int_that_a_size_needs_is_known():
    def powers(x, n, k):
        return x ** np.arange(n) * k

    made = emitted(powers, 2.0, 4, 3)
    assert made.arguments == ("x", "k")
    assert "%n" not in signature(made.text) and "tensor<4xf64>" in signature(made.text)
    with pytest.raises(TranspileError, match="n"):
        emitted(powers, 2.0, gradsmith.i64, 3)


def test_static_arguments():
    def either(x, how):
        return np.sin(x) if how == "sin" else np.cos(x)

    assert "sine" in emitted(either, "f64[3]", "sin").text
    assert "cosine" in emitted(gradsmith.jit(either, static_argnums=1), "f64[3]", "cos").text


# ---------------------------------------------------------------------------------------------------------------
# surroundings


SCALE = np.array([0.1, 0.2, 0.7])
FACTOR = 3.0


def scaled(x):
    return x * SCALE * FACTOR


@pytest.mark.xla
def test_the_surroundings_are_constants_or_parameters():
    x = np.arange(3.0)
    made = emitted(scaled, x)
    assert made.arguments == ("x",)
    np.testing.assert_array_equal(run(made)[0], scaled(x))
    made = emitted(scaled, x, captures="parameters")
    assert made.arguments == ("x", "SCALE", "FACTOR")
    np.testing.assert_array_equal(run(made)[0], scaled(x))
    np.testing.assert_array_equal(run(made, x, 2 * SCALE, np.float64(FACTOR))[0], 2 * scaled(x))


def test_other_surroundings_are_refused():
    with pytest.raises(ValueError, match="captures is"):
        gradsmith.stablehlo(scaled, captures="both")


@pytest.mark.xla
def test_constants_of_many_elements():
    values = {"float64": np.random.default_rng(0).normal(size=(9, 9)), "int32": np.arange(-40, 41).reshape(9, 9),
              "bool": np.arange(81).reshape(9, 9) % 3 == 0, "complex128": np.arange(81).reshape(9, 9) * (1 + 2j)}
    for dtype, value in values.items():
        table = value.astype(dtype)
        made = emitted(lambda i, table=table: table[i], 4)
        np.testing.assert_array_equal(run(made)[0], table[4])


@pytest.mark.xla
def test_what_is_written_to_an_argument_is_a_result():
    def update(a, v):
        a[1] = v
        return np.sum(a)

    made = emitted(update, np.zeros(3), 5.0)
    assert made.results == ("result", "a (written)") and made.written == (0,)
    total, after = run(made)
    assert total == 5.0
    np.testing.assert_array_equal(after, [0, 5, 0])


# ---------------------------------------------------------------------------------------------------------------
# dtypes


def loss(x, a):
    y = np.tanh(x * SCALE) * a + 0.1
    return np.sum(y * np.zeros(3) + np.exp(-y))


@pytest.mark.xla
@pytest.mark.parametrize("cast, element, precision", [("f32", "f32", 1e-6), ("f16", "f16", 2e-2), ("bf16", "bf16", 5e-2)])
def test_casts(cast, element, precision):
    grad = gradsmith.value_and_grad(loss)
    x = np.array([0.3, -0.2, 0.9])
    made = emitted(grad, x, 0.5, cast=cast)
    assert "f64" not in made.text and f"tensor<3x{element}>" in signature(made.text)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[cast]
    value, slope = run(made, x.astype(dtype), dtype(0.5))
    assert value.dtype == slope.dtype == dtype
    expected, expected_slope = grad(x, 0.5)
    np.testing.assert_allclose(np.asarray(value, "float64"), expected, rtol=precision)
    np.testing.assert_allclose(np.asarray(slope, "float64"), expected_slope, rtol=precision, atol=precision / 10)


def test_all_floats_are_halves_with_a_cast():
    half = gradsmith.ShapeDtypeStruct((3,), "float16")
    assert "tensor<3xf16>" in signature(emitted(loss, half, 0.5).text)
    assert "f32" in emitted(loss, half, 0.5).text and "f32" not in emitted(loss, half, 0.5, cast="f16").text
    assert "tensor<3xf16>" in signature(emitted(loss, half, 0.5, cast="f16").text)


def test_casts_that_are_refused():
    with pytest.raises(TranspileError, match='give "f32", "f16" or "bf16"'):
        gradsmith.stablehlo(loss, cast="i8")
    with pytest.raises(TranspileError, match="complex numbers have no parts of float16"):
        emitted(lambda z: z * 2, "c128[3]", cast="f16")
    with pytest.raises(TranspileError, match="read from the bits"):
        emitted(lambda x: np.signbit(x), "f64[3]", cast="bf16")


# ---------------------------------------------------------------------------------------------------------------
# refusals


def test_a_size_that_is_not_a_number():
    with pytest.raises(TranspileError) as refused:
        emitted(weighted, "f64[n,3]", 2.0)
    assert "needs every size as a number, and x is f64[n,3]" in str(refused.value)
    assert "give a number for `n` in the type of `x`" in str(refused.value)


def test_types_as_text():
    def f(p, k):
        return p["w"] * p["b"][0] + k

    as_text = emitted(f, "{w: f32[4], b: [bf16]}", "i32").text
    assert as_text == emitted(f, {"w": gradsmith.f32[4], "b": [gradsmith.ShapeDtypeStruct((), "bfloat16")]},
                              gradsmith.i32).text
    with pytest.raises(TranspileError, match="did you mean `f32`"):
        emitted(f, "f33[4]", 1)
    with pytest.raises(TranspileError, match="give a number for `n` in the type of `x`"):
        emitted(weighted, gradsmith.ShapeDtypeStruct(("n", 3)), 2.0)
    compiled = gradsmith.jit(weighted, target="xla")
    assert "tensor<2x3xf32>" in compiled.lower("f32[2,3]", "f32").source == compiled.source("f32[2,3]", gradsmith.f32)


@pytest.mark.xla
def test_what_is_known_of_indices_is_told():
    def written(x, k):
        y = np.zeros(9)
        y[[0, 3, 4, 8, 7][:4]] = x[:4]
        y[np.arange(2) * 3 + k] += x[[1, 4]]
        square = np.ones((4, 4))
        for i in range(4):
            square[i, 3 - i] = x[i]
        return y, square

    def told(name, flag):
        lines = [line for line in made.text.splitlines() if f'"stablehlo.{name}"' in line]
        return [f"{flag} = true" in line for line in lines]

    args = np.arange(5.0), 2
    made = emitted(written, *args)
    for expected, found in zip(written(*args), run(made)):
        np.testing.assert_array_equal(found, expected)
    assert told("scatter", "unique_indices")[0] and told("scatter", "unique_indices")[-1]
    assert told("scatter", "indices_are_sorted")[0] and any(told("gather", "indices_are_sorted"))
    made = emitted(lambda x, p: x[p], np.arange(5.0), np.array([3, 1]))
    assert told("gather", "indices_are_sorted") == [False]


def test_equal_calls_give_equal_text():
    texts = {gradsmith.stablehlo(gradsmith.hessian(lambda x: np.sum(np.sin(x) ** 3)))("f64[4]") for _ in range(3)}
    assert len(texts) == 1 and "loc(" in texts.pop()


@pytest.mark.xla
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_arrays_in_half_precision_beside_others(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from gradsmith import xla

    def loss(w, x):
        return np.mean(np.tanh(x @ w.astype(np.float32)) ** 2)

    w = np.array([0.11, -0.2, 0.3, 0.03]).astype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
    slope = gradsmith.grad(loss)
    made = gradsmith.stablehlo(slope).lower(w, x)
    assert made.text == gradsmith.stablehlo(slope)(f"{dtype}[4]", "f32[3,4]")
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    assert f"%w: tensor<4x{short}>" in made.text and f"tensor<4x{short}>) -> tensor<4xf32>" in made.text
    assert dtype == made.arrays()[0].dtype.name
    (found,) = xla.run(made.text, *made.arrays(), optimise=False)
    np.testing.assert_allclose(found, slope(w.astype(np.float32), x), rtol=1e-5)


def test_results_are_of_the_half_precision_of_all_arguments():
    def loss(w, x, n):
        w[0] = n
        return np.mean(np.tanh(x @ w) ** 2), np.sum(x > 0.5), 0.5

    types = ("bf16[4]", gradsmith.bf16[3, 4], "i64")
    assert emitted(loss, *types).text.split("->")[1].startswith(
        ' (tensor<bf16> {jax.result_info = "result[0]"}, tensor<i64> {jax.result_info = "result[1]"}, '
        'tensor<f64> {jax.result_info = "result[2]"}, tensor<4xbf16> {jax.result_info = "w (written)"})')
    assert "tensor<f32> {" in signature(emitted(loss, "bf16[4]", "f16[3,4]", "i64").text)
    assert "bf16" not in emitted(loss, *types, cast="f32").text
    with pytest.raises(TranspileError, match='half precision is for XLA: jit\\(f, target="xla"\\)'):
        gradsmith.jit(loss)(np.ones(4, np.float16), np.ones((3, 4)), 1)


def test_captured_numbers_are_constants_of_the_dtype_in_which_they_are_used():
    rate = 0.1
    assert "f64" not in emitted(lambda x: x * rate, "f32[3]").text
    assert "f64" in emitted(lambda x: x * rate, "f32[3]", captures="parameters").text
