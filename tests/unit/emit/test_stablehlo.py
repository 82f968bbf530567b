"""StableHLO text: what it looks like, every dtype and constant, what is refused, and what the printer offers rules."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.hlo_printer import Printer
from gradsmith.transpiler.emit.hlo_text import Writer, identifier, without_unused
from gradsmith.transpiler.emit.hlo_types import ELEMENTS, dense, number, tensor
from gradsmith.transpiler.emit.stablehlo import emit_stablehlo, specialise
from gradsmith.transpiler.errors import Location, RuleError, TranspileError
from gradsmith.transpiler.ir import build
from gradsmith.transpiler.ir.build import build_func, const
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At, Span
from gradsmith.transpiler.ir.nodes import Block, Call, Func, Module, Var
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.types import F64, I64, Type
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()
n, m, k = map(symbol, "nmk")
NUMPY_DTYPES = [d for d in ELEMENTS if d != "bfloat16"]


def matrix(*shape, dtype="float64"):
    return Type(dtype, shape)


def sum_logistic_grad():
    func = build_func("sum_logistic", [("x", matrix(n))], lambda x: (ops.sum(1 / (1 + ops.exp(-x)), axes=(0,)),))
    return vjp(func, [True], cotangents=[const(1.0, F64)])


def layer():
    return build_func("layer", [("X", matrix(n, k, dtype="float32")), ("W", matrix(k, m, dtype="float32")),
                                ("b", matrix(m, dtype="float32"))], lambda X, W, b: (ops.tanh(
                                    ops.dot_general(X, W, contract=((1,), (0,)), batch=((), ()))
                                    + ops.broadcast(b, shape=(n, m), axes=(1,))),))


# ---------------------------------------------------------------------------------------------------------------
# the text


def test_a_func_reads_like_its_ir():
    func = parse_func(textwrap.dedent("""\
        func sum_logistic_grad(x: f64[n]) -> (f64, f64[n]):
          opposite: f64[n] = negative(x)
          e: f64[n] = exp(opposite)
          below: f64[n] = add(1.0:f64[n], e)
          r: f64[n] = divide(1.0:f64[n], below)
          total: f64 = sum(r) {axes=(0,)}
          square: f64[n] = multiply(r, r)
          d_x: f64[n] = multiply(square, e)
          return total, d_x
        """))
    assert emit_stablehlo(specialise(func, {"n": 4})) == textwrap.dedent("""\
        module @sum_logistic_grad {
          func.func public @main(%x: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) {
            %opposite = stablehlo.negate %x : tensor<4xf64>
            %e = stablehlo.exponential %opposite : tensor<4xf64>
            %c = stablehlo.constant dense<1.0> : tensor<4xf64>
            %below = stablehlo.add %c, %e : tensor<4xf64>
            %r = stablehlo.divide %c, %below : tensor<4xf64>
            %c_1 = stablehlo.constant dense<0.0> : tensor<f64>
            %total = stablehlo.reduce(%r init: %c_1) applies stablehlo.add across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
            %square = stablehlo.multiply %r, %r : tensor<4xf64>
            %d_x = stablehlo.multiply %square, %e : tensor<4xf64>
            return %total, %d_x : tensor<f64>, tensor<4xf64>
          }
        }
        """)


def test_products_ask_for_full_precision():
    func = parse_func(textwrap.dedent("""\
        func layer(X: f32[n,k], W: f32[k,m], b: f32[m]) -> (f32[n,m]):
          XW: f32[n,m] = dot_general(X, W) {contract=((1,), (0,)), batch=((), ())}
          rows: f32[n,m] = broadcast(b) {shape=(n, m), axes=(1,)}
          y: f32[n,m] = add(XW, rows)
          return y
        """))
    assert emit_stablehlo(specialise(func, {"n": 4, "m": 2, "k": 3}), name="forward") == textwrap.dedent("""\
        module @layer {
          func.func public @forward(%X: tensor<4x3xf32>, %W: tensor<3x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
            %XW = stablehlo.dot_general %X, %W, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
            %rows = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
            %y = stablehlo.add %XW, %rows : tensor<4x2xf32>
            return %y : tensor<4x2xf32>
          }
        }
        """)


def test_what_a_rule_makes_on_its_way_is_numbered():
    func = parse_func("func f(x: f64[3]) -> (i64[3]):\n  order: i64[3] = argsort(x) {axis=0, stable=True}\n  return order\n")
    assert emit_stablehlo(func) == textwrap.dedent("""\
        module @f {
          func.func public @main(%x: tensor<3xf64>) -> tensor<3xi64> {
            %0 = stablehlo.iota dim = 0 : tensor<3xi64>
            %1, %order = "stablehlo.sort"(%x, %0) <{dimension = 0 : i64, is_stable = true}> ({
            ^bb0(%arg: tensor<f64>, %arg_1: tensor<f64>, %arg_2: tensor<i64>, %arg_3: tensor<i64>):
              %2 = stablehlo.compare LT, %arg, %arg_1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
              %3 = stablehlo.compare EQ, %arg, %arg, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
              %4 = stablehlo.compare NE, %arg_1, %arg_1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
              %5 = stablehlo.and %3, %4 : tensor<i1>
              %6 = stablehlo.or %2, %5 : tensor<i1>
              stablehlo.return %6 : tensor<i1>
            }) : (tensor<3xf64>, tensor<3xi64>) -> (tensor<3xf64>, tensor<3xi64>)
            return %order : tensor<3xi64>
          }
        }
        """)


def test_equal_input_gives_equal_text():
    sizes = {"n": 4}
    assert emit_stablehlo(specialise(sum_logistic_grad(), sizes)) == emit_stablehlo(specialise(sum_logistic_grad(), sizes))


def test_names_that_mlir_does_not_take():
    assert identifier("θ_1") == "_u3b8_1"
    func = build_func("<lambda>", [("θ", F64), ("_u3b8", F64), ("c", F64)], lambda a, b, c: (a * b + c + 1.0,))
    text = emit_stablehlo(func)
    assert "@main(%_u3b8: tensor<f64>, %_u3b8_1: tensor<f64>, %c: tensor<f64>)" in text
    assert "%c_1 = stablehlo.constant dense<1.0>" in text
    assert text.startswith("module @_u3clambda_u3e {\n")


def test_statements_that_nothing_needs_are_left_out():
    func = build_func("f", [("x", F64)], lambda x: (ops.sin(x), ops.cos(x))[:1])
    assert "cosine" not in emit_stablehlo(func)


def test_checks_are_left_out():
    def body(x):
        build.check(x > 0.0, "ValueError", "x must be positive")
        return (ops.log(x),)

    text = emit_stablehlo(build_func("f", [("x", F64)], body))
    assert text.count("stablehlo.") == 1


def test_results_may_be_constants_params_and_repeated():
    func = build_func("f", [("x", F64)], lambda x: (const(2, matrix(2, dtype="int32")), x, x))
    assert "return %c, %x, %x : tensor<2xi32>, tensor<f64>, tensor<f64>" in emit_stablehlo(func)
    assert "-> () {\n    return\n" in emit_stablehlo(build_func("f", [], lambda: ()))


def test_locations_on_request():
    def body(x):
        with build.located(Location('a "b".py', 3, 4, 3, 9)):
            return (ops.sin(x),)

    func = build_func("f", [("x", F64)], body)
    assert ' : tensor<f64> loc("a \\"b\\".py":3:5)\n' in emit_stablehlo(func, locations=True)
    assert "loc" not in emit_stablehlo(func)


# ---------------------------------------------------------------------------------------------------------------
# types and constants


@pytest.mark.parametrize("dtype, text", ELEMENTS.items())
def test_types(dtype, text):
    assert tensor(Type(dtype, (2, 0, 3))) == f"tensor<2x0x3x{text}>"
    assert tensor(Type(dtype)) == f"tensor<{text}>"


def test_unknown_element_type():
    with pytest.raises(RuleError, match="StableHLO has no element type for str"):
        tensor(Type("str"))


@pytest.mark.parametrize("value, dtype, text", [
    (True, "bool", "true"), (0, "bool", "false"), (-7, "int8", "-7"), (2**64 - 1, "uint64", str(2**64 - 1)),
    (1, "float64", "1.0"), (0.1, "float64", "0x3FB999999999999A"), (0.375, "float64", "0.375"), (1e22, "float64", "1.0e+22"),
    (5e-324, "float64", "0x0000000000000001"), (-0.0, "float64", "-0.0"), (0.1, "float32", "0x3DCCCCCD"),
    (1 / 3, "float16", "0.333251953125"),
    (math.inf, "float64", "0x7FF0000000000000"), (-math.inf, "float32", "0xFF800000"), (1e300, "float32", "0x7F800000"),
    (math.inf, "float16", "0x7C00"), (math.nan, "float64", "0x7FF8000000000000"), (math.nan, "bfloat16", "0x7FC0"),
    (-math.inf, "bfloat16", "0xFF80"), (1.0, "bfloat16", "1.0"), (1 + 2**-8, "bfloat16", "1.0"),
    (1 + 3 * 2**-8, "bfloat16", "1.015625"), (1 - 2j, "complex128", "(1.0,-2.0)"),
    (complex(math.inf, 0.5), "complex64", "(0x7F800000,0.5)"),
])
def test_numbers(value, dtype, text):
    assert number(value, dtype) == text
    assert dense(value, dtype) == f"dense<{text}>"


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError, match="300 does not fit in uint8"):
        number(300, "uint8")


@pytest.mark.xla
def test_every_constant_arrives_with_its_bits():
    xla = pytest.importorskip("gradsmith.xla")
    pytest.importorskip("jax")
    draw = np.random.default_rng(0)
    rows, expected = [], []
    for dtype in NUMPY_DTYPES:
        if np.dtype(dtype).kind in "fc":
            part = np.dtype(dtype).type(0).real.dtype
            bits = draw.integers(0, 256, 40 * part.itemsize, dtype=np.uint8).view(part)
            info = np.finfo(part)
            values = [v for v in bits if not np.isnan(v)] + [info.max, info.tiny, info.smallest_subnormal, -0.0, math.inf]
            values = [complex(v, w) for v, w in zip(values, values[1:])] if dtype.startswith("c") else values
        elif dtype == "bool":
            values = [True, False]
        else:
            values = [np.iinfo(dtype).min, np.iinfo(dtype).max, 1]
        for value in np.array(values, dtype):
            rows.append(const(value.item(), Type(dtype, (2,))))
            expected.append(np.full(2, value))
    found = xla.run(emit_stablehlo(build_func("constants", [], lambda: rows)))
    for want, got in zip(expected, found, strict=True):
        assert want.dtype == got.dtype
        assert want.tobytes() == got.tobytes()


# ---------------------------------------------------------------------------------------------------------------
# sizes


def test_an_unknown_size_is_named():
    with pytest.raises(RuleError, match=r"every size as a number, and n in x: f64\[n\] is not one") as refused:
        emit_stablehlo(sum_logistic_grad())
    assert refused.value.help == "say what n of the argument `x` is: specialise(func, {'n': ...})"
    with pytest.raises(RuleError, match=r"m in W: f32\[3,m\]"):
        emit_stablehlo(specialise(layer(), {"n": 4, "k": 3}))


def test_specialise_replaces_sizes_everywhere():
    func = specialise(layer(), {"n": 4, "m": 2, "k": 3})
    assert [str(p.type) for p in func.params] == ["f32[4,3]", "f32[3,2]", "f32[2]"]
    assert [p.name for p in func.params] == ["X", "W", "b"]
    args = [np.ones(p.type.shape, "float32") for p in func.params]
    assert np.array_equal(evaluate(layer(), *args)[0], evaluate(func, *args)[0])


def test_specialise_with_nothing_to_do():
    func = layer()
    assert specialise(func, {}) is func


def test_specialise_an_unknown_name():
    with pytest.raises(ValueError, match="layer has no size named q; its sizes are k, m, n"):
        specialise(layer(), {"q": 3})


def test_a_size_that_is_an_argument():
    func = build_func("f", [("n", I64)], lambda n: (ops.iota(shape=(symbol("n", 0),), axis=0, dtype="int64"),))
    with pytest.raises(RuleError, match="every size as a number"):
        emit_stablehlo(func)
    assert "iota dim = 0 : tensor<5xi64>" in emit_stablehlo(specialise(func, {"n": 5}))


# ---------------------------------------------------------------------------------------------------------------
# refusals


def test_recursion_is_refused():
    x, y = Var("x", F64), Var("y", F64)
    func = Func("f", (x,), Block((Call((y,), "f", (x,)),), (y,)))
    with pytest.raises(RuleError, match="`f` calls itself as often as its values say"):
        emit_stablehlo(Module((func,)))


def test_refusals_show_the_line():
    x, y = Var("x", F64), Var("y", F64)
    call = Call((y,), "f", (x,), Location("model.py", 3, 4, 3, 9))
    with pytest.raises(TranspileError) as refused:
        emit_stablehlo(Module((Func("f", (x,), Block((call,), (y,))),)))
    assert refused.value.code == "E207"
    assert "model.py:3:5" in str(refused.value)


def test_emission_does_not_import_jax():
    script = "import sys, gradsmith.transpiler.emit.stablehlo; assert not any('jax' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


# ---------------------------------------------------------------------------------------------------------------
# the printer's methods, as rules call them


def run_rule(rule, *arrays):
    """The results of `rule(h, *values)` on XLA."""
    pytest.importorskip("jax")
    from gradsmith import xla

    h = Printer()
    types = [Type(np.asarray(a).dtype.name, np.shape(a)) for a in arrays]
    params = [h_value(t, f"x{k}") for k, t in enumerate(types)]
    found = rule(h, *params)
    results = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    writer = Writer([p.name for p in params])
    writer.block(without_unused(h.body, results), "  ")
    declared = ", ".join(f"%{p.name}: {tensor(p.type)}" for p in params)
    types = ", ".join(tensor(r.type) for r in results)
    lines = [f"func.func public @main({declared}) -> ({types}) {{", *writer.lines,
             f"  return {', '.join(map(writer.use, results))} : {types}", "}"]
    return xla.run("\n".join(lines), *arrays)


def h_value(type, name):
    from gradsmith.transpiler.emit.hlo_text import HloValue

    return HloValue(type, name)


@pytest.mark.xla
def test_while_loop():
    """Collatz steps, with a value from outside read in the loop."""
    def rule(h, start, one):
        three = h.constant(3, I64)

        def step(h, at, count):
            even = h.compare("EQ", h.op("and", at, one), h.constant(0, I64))
            odd_next = h.op("add", h.op("multiply", at, three), one)
            half = h.op("shift_right_arithmetic", at, one)
            return h.select(even, half, odd_next), h.op("add", count, one)

        return h.while_loop([start, h.constant(0, I64)], lambda h, at, count: h.compare("NE", at, one), step)

    at, count = run_rule(rule, np.int64(27), np.int64(1))
    assert (at, count) == (1, 111)


def test_while_loop_with_changing_types():
    h = Printer()
    with pytest.raises(RuleError, match="carries that keep their types"):
        h.while_loop([h.constant(0, I64)], lambda h, i: h.constant(True, Type("bool")), lambda h, i: [h.constant(0.0, F64)])


@pytest.mark.xla
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "bool"])
def test_sorting(dtype):
    x = np.array([[3, 1, 2, 1], [0, 5, 5, 2]]).astype(dtype)
    got, order = run_rule(lambda h, x: (h.sort(x, 1), h.argsort(x, 1)), x)
    assert np.array_equal(np.sort(x, 1), got)
    assert np.array_equal(np.argsort(x, 1, kind="stable"), order)


@pytest.mark.xla
def test_sorting_puts_nan_last():
    x = np.array([np.nan, 1.0, -np.inf, -np.nan, np.inf, -0.0, 0.0])
    got, order = run_rule(lambda h, x: (h.sort(x, 0), h.argsort(x, 0)), x)
    assert np.array_equal(np.sort(x, kind="stable"), got, equal_nan=True)
    assert np.array_equal(np.argsort(x, kind="stable"), order)


def test_sorting_complex_numbers_is_refused():
    h = Printer()
    with pytest.raises(RuleError, match="no order of complex numbers"):
        h.sort(h.constant(0, Type("complex128", (3,))), 0)


@pytest.mark.xla
def test_the_last_write_wins():
    """Also between two index arrays, beside a whole axis, and where most writes collide."""
    draw = np.random.default_rng(3)
    x, v = draw.normal(size=(4, 5, 3)), draw.normal(size=(40, 5))
    i, j = draw.integers(0, 4, 40), draw.integers(0, 3, 40)
    expected = x.copy()
    for a, b, row in zip(i, j, v):
        expected[a, :, b] = row
    (got,) = run_rule(lambda h, x, v, i, j: h.scatter(x, v, [i, j], (0, 2), "replace"), x, v, i, j)
    assert np.array_equal(expected, got)


@pytest.mark.xla
def test_scatter_adds_and_gather_reads_back():
    draw = np.random.default_rng(4)
    x, v, i = draw.normal(size=(3, 4)), draw.normal(size=(2, 3, 3)), draw.integers(0, 4, (2, 3))
    expected = x.copy()
    np.add.at(expected, (slice(None), i), np.moveaxis(v, -1, 0))
    added, read = run_rule(lambda h, x, v, i: (h.scatter(x, v, [i], (1,), "add"), h.gather(x, [i], (1,))), x, v, i)
    np.testing.assert_allclose(added, expected, rtol=1e-14)
    assert np.array_equal(np.moveaxis(x[:, i], 0, -1), read)


@pytest.mark.xla
def test_triangular_solve_and_cholesky():
    draw = np.random.default_rng(5)
    a = draw.normal(size=(2, 3, 3))
    s, b = a @ np.swapaxes(a, 1, 2) + 3 * np.eye(3), draw.normal(size=(2, 3, 2))

    def rule(h, s, b):
        low = h.cholesky(s)
        y = h.triangular_solve(low, b, True)
        return h.triangular_solve(low, y, True, True), h.triangular_solve(low, y, True, "TRANSPOSE", unit=True)

    solved, unit = run_rule(rule, s, b)
    np.testing.assert_allclose(s @ solved, b, rtol=1e-12)
    assert solved.shape == unit.shape


@pytest.mark.xla
def test_pad_slice_and_reverse():
    x = np.arange(6.0).reshape(2, 3)
    got = run_rule(lambda h, x: (h.pad(x, -1, (1, -1), (0, 2), (1, 0)), h.slice(x, [0, 0], [2, 3], [1, 2]),
                                 h.reverse(x, (0, 1)), h.slice(x, [0, 0], [2, 3], [1, 1])), x)
    padded = np.array([[-1, -1, -1, -1], [1, 2, -1, -1], [-1, -1, -1, -1], [4, 5, -1, -1]], "float64")
    for want, found in zip((padded, x[:, ::2], x[::-1, ::-1], x), got, strict=True):
        assert np.array_equal(want, found)


@pytest.mark.xla
def test_a_module_of_everything_at_once():
    """Writes, reads at run-time places and a gradient through them, against the evaluator."""
    def body(x, i):
        row = ops.load(x, i, index=(At(), Span(0, 4, 1)))
        y = ops.store(x, ops.sin(row), i, index=(At(), Span(3, 4, -1)))
        return (ops.sum(y * y, axes=(0, 1)),)

    func = vjp(build_func("f", [("x", matrix(3, 4)), ("i", I64)], body), [True, False])
    args = np.random.default_rng(6).normal(size=(3, 4)), np.int64(1), np.float64(2.0)
    pytest.importorskip("jax")
    from gradsmith import xla

    for want, got in zip(evaluate(func, *args), xla.run(emit_stablehlo(func), *args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# the runner


@pytest.mark.xla
def test_the_runner_refuses_with_the_compilers_words():
    pytest.importorskip("jax")
    from gradsmith import xla

    assert xla.parses(emit_stablehlo(specialise(layer(), {"n": 4, "m": 2, "k": 3}))) is None
    assert "custom op 'not' is unknown" in xla.parses("func.func @main() { not an operation }")
    with pytest.raises(xla.XlaError):
        xla.run("func.func public @main(%x: tensor<2xf64>) -> tensor<3xf64> { return %x : tensor<2xf64> }", np.ones(2))
    good = emit_stablehlo(specialise(sum_logistic_grad(), {"n": 4}))
    with pytest.raises(xla.XlaError):
        xla.run(good, np.ones(5))


@pytest.mark.xla
def test_executables_are_kept():
    pytest.importorskip("jax")
    from gradsmith.xla.bindings import device
    from gradsmith.xla.compiler import compiled

    text = emit_stablehlo(specialise(sum_logistic_grad(), {"n": 7}))
    place = device("xla", 0)
    assert compiled(text, (place,)) is compiled(text, (place,))


def test_a_missing_jaxlib_says_what_to_install():
    script = ("import sys; sys.modules['jax'] = None\nfrom gradsmith import xla\n"
              "try: xla.run('')\nexcept ImportError as e: assert 'pip install gradsmith[xla]' in str(e), e")
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.xla
def test_the_tpu_compiler_takes_it(tmp_path):
    pytest.importorskip("libtpu")
    pytest.importorskip("jax")
    module = tmp_path / "layer.mlir"
    module.write_text(emit_stablehlo(specialise(layer(), {"n": 128, "m": 128, "k": 256})))
    script = ("import sys\nfrom gradsmith import xla\n"
              "costs = xla.compile_for_tpu(open(sys.argv[1]).read())\nassert costs['flops'] > 1e6, costs")
    subprocess.run([sys.executable, "-c", script, str(module)], check=True)
