import math
import sys
import textwrap

import numpy as np
import pytest

from gradsmith.transpiler.errors import Location
from gradsmith.transpiler.ir import registry
from gradsmith.transpiler.ir.dims import floordiv, maximum, minimum, symbol
from gradsmith.transpiler.ir.index import At, New, Span
from gradsmith.transpiler.ir.nodes import Block, Check, Const, For, Func, If, Let, Module, Var, While
from gradsmith.transpiler.ir.parse import ParseError, parse, parse_func, parse_module
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.types import BOOL, F64, I64, Type

show_module = sys.modules[show.__module__]


class Anything:
    """An operation that is only printed."""

    is_pure = True

    def __init__(self, name):
        self.name = name


@pytest.fixture(autouse=True)
def operations(monkeypatch):
    for name in ("test_add", "test_sum", "call", "check"):
        monkeypatch.setitem(registry.OPERATIONS, name, Anything(name))


EVERYTHING = """\
func f(x: f64[n,3], m: i64, p: bool) -> (loss: f64, "grads[0]": f64[n,3]) where k >= 0, m >= 0:
  a: f64[n,3] = test_add(x, 1.5:f64[n,3])
  k: i64 = test_sum(m)
  b: f32[2*n - 1,k,max(k, m)] = test_sum() {shape=(2*n - 1, k), axes=(0,), empty=(), name="a \\"b\\"\\n", none=None}
  check p IndexError "index # out of range: {}"
  () = test_sum(a)
  s: f64, t: f64 = if p:
    u: f64 = test_sum(a) {axes=(0, 1)}
    if p:
      yield
    else:
      check False:bool ValueError ""
      check False:bool ValueError "{} of {:.3f}" with (m, 1.5:f64)
      check False:bool print "{}\\n" with (a)
      yield
    yield u, 1e-300:f64
  else:
    yield -inf:f64, nan:f64
  y: f64[n,3], w: f64 = for i: i64 in 0 .. m step -1 carry (acc: f64[n,3] = a, v: f64 = s) parallel:
    acc_1: f64[n,3] = test_add(acc, x)
    for j: i64 in i .. m step 2:
      yield
    v_1: f64 = while carry (q: f64 = v):
      cond:
        c: bool = test_add(q, 0.0:f64)
        yield c
      do:
        q_1: f64 = call helper(q, t)
        yield q_1
    yield acc_1, v_1
  while:
    cond:
      yield False:bool
    do:
      call helper(w)
      yield
  z: c128 = test_add(complex(-0.0, inf):c128, complex(1.0, nan):c128)
  r: f64[n,3] = test_add(y) {index=[at, span(0; n; 1), new, span(?; n - 1; -2)], to=type f32[n,k], of=type bool}
  return w, r
"""


def test_everything_round_trips():
    assert EVERYTHING == show(parse_func(EVERYTHING))


def test_what_is_read_is_what_was_meant():
    func = parse_func(EVERYTHING)
    n, k = symbol("n"), symbol("k", 0)
    a, size, b, check, no_targets, branch, loop, endless, z, r = func.body.stmts
    assert ("loss", "grads[0]") == func.result_names
    assert (Type("float64", (n, 3)), I64, BOOL) == tuple(p.type for p in func.params)
    assert func.params[0] is a.args[0]
    assert (1.5, Type("float64", (n, 3))) == (a.args[1].value, a.args[1].type)
    assert registry.get("test_add") is a.op
    assert {"shape": (2 * n - 1, k), "axes": (0,), "empty": (), "name": 'a "b"\n', "none": None} == b.params
    assert ("IndexError", "index # out of range: {}") == (check.kind, check.message)
    assert () == no_targets.targets
    assert isinstance(branch, If) and isinstance(loop, For) and isinstance(endless, While)
    assert loop.parallel and loop.step.value == -1 and loop.step.type == I64
    assert loop.carries[0] is loop.body.stmts[0].args[0]
    assert -math.inf == branch.orelse.results[0].value and math.isnan(branch.orelse.results[1].value)
    real = z.args[0].value
    assert math.copysign(1, real.real) == -1 and real.imag == math.inf
    assert (At(), Span(0, n, 1), New(), Span(None, n - 1, -2)) == r.params["index"]
    assert Type("float32", (n, k)) == r.params["to"] and BOOL == r.params["of"]
    assert loop.targets[1] is func.results[0]


def module_text():
    return "func f(x: f64) -> (f64):\n  y: f64 = call f(x)\n  return y\n\nfunc \"<lambda>\"() -> ():\n  return\n"


def test_modules_round_trip():
    text = module_text()
    module = parse(text)
    assert isinstance(module, Module)
    assert ["f", "<lambda>"] == [f.name for f in module]
    assert text == show(module)
    assert text == show(parse_module(text))


@pytest.mark.parametrize("value", [0, -7, 2**40, 0.1, -0.0, 1e308, math.inf, -math.inf, math.nan, True, False, None,
    "plain", "two\nlines\t\"q\" \\ \u2028 é #", (), (1,), ((1, 2), (True, None)), 2 + 3j, complex(math.nan, -0.0),
    (At(),), (New(), At()), Type("float64"), Type("int8", (3,)), ("a", 1.5, ())], ids=repr)
def test_parameters(value):
    func = Func("f", (), Block((Let((), registry.get("test_sum"), (), {"value": value, "last": 1}),), ()))
    again = parse_func(show(func))
    assert repr({"value": value, "last": 1}) == repr(again.body.stmts[0].params)
    assert show(func) == show(again)


n, k, one = symbol("n"), symbol("k", 0), symbol("one", 1)


@pytest.mark.parametrize("dim", [n, n - 1, 1 - n, -n, 2 * n * k - 3 * k + 7, floordiv(n + 1, 2), -floordiv(n, 3) * k,
    floordiv(n, k + 1), maximum(n, k), minimum(n - 5, maximum(k - 1, 0)), floordiv(maximum(n - k, 0), -2) + n * n,
    one * floordiv(n + k, one), n % 3, (n * k) % (k + 2)], ids=str)
def test_dimensions(dim):
    let = Let((Var("y", Type("float64", (dim, 2))),), registry.get("test_sum"), (), {"dim": dim, "dims": (dim, (dim,))})
    func = Func("f", (), Block((let,), let.targets))
    again = parse_func(show(func))
    assert show(func) == show(again)
    assert let.params == again.body.stmts[0].params
    assert let.target.type == again.body.stmts[0].target.type


def test_a_size_with_two_bounds_is_told_apart():
    params = Var("x", Type("float64", (n, n))), Var("y", Type("float64", (symbol("n", 0) + 1,)))
    func = Func("f", params, Block((), params))
    text = show(func)
    assert "y: f64[n@0 + 1]" in text
    again = parse_func(text)
    assert [p.type for p in params] == [p.type for p in again.params]
    assert text == show(again)


@pytest.mark.parametrize("name", ["check", "call", "inf", "nan", "func", "where", "carry", "step", "cond", "do",
    "parallel", "complex", "max", "at", "type", "float", "f64", "é"])
def test_words_of_the_text_are_names_too(name):
    text = f"""\
func f({name}: i64, p: bool, x: f64[{name}]) -> (i64, i64) where {name} >= 0:
  {name}_1: i64 = test_add({name}, {name}) {{{name}={name}, also=({name}, {name})}}
  check p ValueError "m"
  if p:
    yield
  else:
    yield
  t: i64 = for i: i64 in {name} .. {name} step {name} carry (u: i64 = {name}):
    yield {name}
  return {name}, t
"""
    assert text == show(parse_func(text))
    bound = f"func f() -> (f64):\n  {name}: f64 = test_sum()\n  if {name}:\n    yield\n  else:\n    yield\n  return {name}\n"
    assert bound == show(parse_func(bound))


def test_operations_named_like_statements():
    text = "func f(c: bool) -> (bool):\n  a: bool = call(c)\n  b: bool = check(a)\n  return b\n"
    assert text == show(parse_func(text))


def test_short_forms_are_read():
    func = parse_func("""
# a comment
func f(x: f64[ n , 3 ]):   # results are left out

    y: f64 = test_add(1, 1.0, True,)
    return y, 2
""")
    assert [I64, F64, BOOL] == [a.type for a in func.body.stmts[0].args]
    assert Type("float64", (n, 3)) == func.params[0].type
    assert "func f(x: f64[n,3]) -> (f64, i64):" in show(func)


def test_the_example_of_the_module_is_true(monkeypatch):
    for name in ("negative", "sum", "less"):
        monkeypatch.setitem(registry.OPERATIONS, name, Anything(name))
    example = textwrap.dedent(show_module.__doc__.split("\n\n")[1]) + "\n"
    assert example == show(parse(example))


def test_locations_are_comments():
    loc = Location("/somewhere/model.py", 12, 4, 12, 9)
    y = Var("y", F64)
    func = Func("f", (), Block((Let((y,), registry.get("test_sum"), (), {}, loc), Check(Const(True, BOOL), "E", "m")),
                               (y,)))
    text = show(func, locations=True)
    assert "  y: f64 = test_sum()  # model.py:12\n" in text
    assert show(func) == show(parse_func(text))


def test_numpy_numbers_print_as_numbers():
    func = Func("f", (), Block((), (Const(np.float64(1.5), F64),)))
    assert "return 1.5:f64" in show(func)


@pytest.mark.parametrize("text, line, column, message", [
    ("func f(x: f64) -> (f64):\n  return y\n", 2, 10, "`y` is not defined here"),
    ("func f(x: f65) -> (f64):\n  return x\n", 1, 11, "`f65` is not a dtype"),
    ("func f(x: f64) -> (f64):\n  y: f64 = nothing(x)\n  return x\n", 2, 12, "no operation `nothing`"),
    ("func f(x: f64) -> (i64):\n  return x\n", 1, 16, "the results have types (f64)"),
    ("func f(x: f64) -> (f64):\n  y: f64 = test_add(x\n  return x\n", 2, 22, "expected `,`"),
    ("func f(x: f64) -> (f64):\n  y: f64 = test_add(x)\n", 2, 23, "expected `return`"),
    ("func f(x: f64) -> (f64):\nreturn x\n", 2, 1, "indented deeper"),
    ("func f(x: f64) -> (f64):\n  y: f64 = test_add(x)\n    return x\n", 3, 5, "wrong indentation"),
    ("func f(x: f64) -> (f64):\n  return x x\n", 2, 12, "unexpected `x`"),
    ("func f(x: f64) -> (f64):\n  return $\n", 2, 10, "unexpected '$'"),
    ("func f() -> ():\n  () = test_sum() {a=<object>}\n  return\n", 2, 22, "no text form"),
    ("func f() -> ():\n  () = test_sum() {a=1.5 + n}\n  return\n", 2, 26, "dimensions only"),
    ("func f(x: f64[1.5]) -> ():\n  return\n", 1, 15, "expected a dimension"),
    ("", 1, None, "expected `func`"),
])
def test_errors_say_where(text, line, column, message):
    with pytest.raises(ParseError, match=r"line \d+, column \d+") as caught:
        parse(text)
    assert message in str(caught.value)
    assert line == caught.value.line or text == ""
    assert column in (None, caught.value.column)
