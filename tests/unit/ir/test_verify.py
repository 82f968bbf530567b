import re

import pytest
from unit.ir.test_evaluate import COLLATZ, FACTORIAL, RUNNING_SUM, SUM_OF_NEGATIVES

from gradsmith.transpiler.errors import Location
from gradsmith.transpiler.ir import registry
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.nodes import Block, Check, Const, Func, Let, Var
from gradsmith.transpiler.ir.parse import parse, parse_func
from gradsmith.transpiler.ir.types import BOOL, F64, I64, Type
from gradsmith.transpiler.ir.verify import InvalidIR, verify


@pytest.mark.parametrize("text", [SUM_OF_NEGATIVES, RUNNING_SUM, COLLATZ, FACTORIAL])
def test_good_funcs_pass(text):
    verify(parse(text))


def refused(ir, reason):
    with pytest.raises(InvalidIR, match=re.escape(reason)) as caught:
        verify(ir)
    return caught.value


def in_func(lines, params="x: f64[n], p: bool, k: i64"):
    return parse(f"func f({params}):\n" + "".join(f"  {line}\n" for line in lines.strip().split("\n")) + "  return\n")


@pytest.mark.parametrize("lines, reason", [
    ("a: f64[n] = test_negative(x)\na: f64[n] = test_negative(x)", "the name a is bound twice"),
    ("x: f64 = test_float(k)", "the name x is bound twice"),
    ("y: f64 = test_negative(x)", "infer says (f64[n]), the targets (f64)"),
    ("y: f64[n], z: f64[n] = test_negative(x)", "infer says (f64[n]), the targets (f64[n], f64[n])"),
    ("y: f64[n] = test_add(x, 1.0:f64)", "infer refuses: ValueError('types differ: f64[n], f64')"),
    ("y: f64[n] = test_negative()", "infer refuses"),
    ("y: f64[m] = test_zeros() {shape=(m,)}", "the parameter shape uses the size m, which is not bound"),
    ("y: f64[n] = test_negative(0.0:f64[m])", "the type of a constant uses the size m, which is not bound"),
    ("n: i64 = test_add(k, k)", "n is also the name of a size"),
    ("y: f64[n] = test_negative(1:f64[n])", "1:f64[n] is not representable"),
    ("y: i8 = test_negative(300:i8)", "300:i8 is not representable"),
    ("y: u8 = test_negative(-1:u8)", "-1:u8 is not representable"),
    ("y: f32 = test_negative(0.1:f32)", "0.1:f32 is not representable"),
    ("y: i64 = test_negative(True:i64)", "True:i64 is not representable"),
    ("y: c64 = test_negative(complex(0.1, 0.0):c64)", "is not representable"),
    ('check k ValueError "m"', "the condition of a check has type i64, which should be bool"),
    ('check p Nothing "m"', "Nothing is not a built-in exception"),
    ("if k:\n  yield\nelse:\n  yield", "the condition has type i64, which should be bool"),
    ("y: f64 = if p:\n  yield 1.0\nelse:\n  yield 1", "the else branch: expected y: f64, found i64"),
    ("y: f64 = if p:\n  yield\nelse:\n  yield 1.0", "the first branch: expected 1 values, found 0"),
    ("for i: f64 in 0 .. k step 1:\n  yield", "the index has type f64, which should be i64"),
    ("for i: i64 in 0 .. 2.0 step 1:\n  yield", "the end has type f64, which should be i64"),
    ("for i: i64 in 0 .. k step 0:\n  yield", "the step is 0"),
    ("for i: i64 in 0 .. k step 1 carry (a: f64 = 0):\n  yield a", "the initial values: expected a: f64, found i64"),
    ("for i: i64 in 0 .. k step 1 carry (a: f64 = 0.0):\n  yield i", "the next values: expected a: f64, found i64"),
    ("b: f64[n] = for i: i64 in 0 .. k step 1 carry (a: f64 = 0.0):\n  yield a",
     "the carries: expected b: f64[n], found f64"),
    ("for i: i64 in 0 .. k step 1 carry (a: f64 = 0.0):\n  yield a",
     "the carries: expected 0 values, found 1"),
    ("while:\n  cond:\n    yield\n  do:\n    yield", "the condition needs one result"),
    ("while:\n  cond:\n    yield k\n  do:\n    yield", "the condition has type i64, which should be bool"),
    ("a: i64, y: f64[a] = while carry (b: i64 = k, t: f64[b] = x):\n  cond:\n    yield p\n  do:\n    yield b, t",
     "the initial values: expected t: f64[k], found f64[n]"),
])
def test_mistakes_are_named(lines, reason):
    assert reason.split(":")[0] in refused(in_func(lines), reason).reason


@pytest.mark.parametrize("lines, name", [
    ("if p:\n  y: i64 = test_negative(k)\n  yield\nelse:\n  yield\nz: i64 = test_negative(y)", "y"),
    ("if p:\n  y: i64 = test_negative(k)\n  yield\nelse:\n  z: i64 = test_negative(y)\n  yield", "y"),
    ("for i: i64 in 0 .. k step 1:\n  yield\nz: i64 = test_negative(i)", "i"),
    ("b: i64 = for i: i64 in 0 .. k step 1 carry (a: i64 = k):\n  yield a\nz: i64 = test_negative(a)", "a"),
    ("while:\n  cond:\n    y: bool = test_less(k, k)\n    yield y\n  do:\n    check y ValueError \"\"\n    yield", "y"),
])
def test_uses_follow_definitions(lines, name):
    refused(in_func(lines), f"{name} is used where it is not defined")


def test_sizes_end_with_the_scalar_that_binds_them():
    lines = """\
for i: i64 in 0 .. k step 1:
  m: i64 = test_add(i, k)
  y: f64[m@0] = test_zeros() {shape=(m@0,)}
  yield
z: f64[m@0] = test_zeros() {shape=(m@0,)}"""
    verify(in_func(lines.rsplit("\n", 1)[0]))
    refused(in_func(lines), "the parameter shape uses the size m, which is not bound")


def test_a_size_has_one_bound():
    refused(in_func("y: f64[n@0] = test_zeros() {shape=(n@0,)}"),
            "takes the size n to be at least 0, elsewhere it is 2")


def test_a_scalar_may_be_the_size_whose_name_it_has():
    verify(in_func("n: i64 = test_size() {dim=n}"))
    refused(in_func("n: i64 = test_size() {dim=n + 1}"), "n is also the name of a size")


def test_an_identity_is_not_a_name():
    x, y = Var("x", F64), Var("y", F64)
    func = Func("f", (x,), Block((Let((y,), registry.get("test_negative"), (Var("x", F64),)),), (y,)))
    error = refused(func, "x is used where it is not defined (another value has that name)")
    assert "y: f64 = test_negative(x)" in str(error)


def test_parameters_bind_only_bare_sizes():
    refused(parse_func("func f(x: f64[n + 1]) -> ():\n  return\n"), "the type of x uses the size n")
    verify(parse_func("func f(x: f64[n + 1], n: i64) -> ():\n  return\n"))
    verify(parse_func("func f(x: f64[n + 1], y: f64[n]) -> ():\n  return\n"))


def test_results():
    refused(Func("f", (), Block((), (Const(1.0, F64),)), ("a", "b")), "2 names for 1 results")
    refused(Func("f", (), Block((), (Var("y", F64),))), "y is used where it is not defined")
    refused(Func("f", (), Block((), (Const(1.0, Type("float65")),))), "unknown dtype")


def test_the_place_is_told():
    check = Check(Const(1, I64), "ValueError", "m", Location("model.py", 12, 8, 12, 20))
    error = refused(Func("f", (), Block((check,), ())), "the condition of a check")
    assert "in f: the condition of a check has type i64, which should be bool at\ncheck 1:i64 ValueError \"m\"" in str(error)
    assert "(model.py:12:9)" in str(error)
    assert check is error.stmt
    assert BOOL == Const(True, BOOL).type and symbol("n") == symbol("n")


CALLEE = """
func g(x: f64[n], k: i64):
  m: i64 = test_add(k, k)
  y: f64[m@0] = test_zeros() {shape=(m@0,)}
  return x, m, y
"""


def calling(line):
    return parse(f"func f(a: f64[q], b: f64, c: i64):\n  {line}\n  return\n{CALLEE}")


def test_calls_fit_what_they_call():
    verify(calling("u: f64[q], v: i64, w: f64[v] = call g(a, c)"))
    verify(calling("u: f64[q], v: i64, w: f64[v] = call g(a, 3)"))
    verify(calling("u: f64[q], v: i64, w: f64[v] = call g(a, c)").main)


@pytest.mark.parametrize("line, reason", [
    ("call h(a)", "there is no func h"),
    ("u: f64[q], v: i64, w: f64[v] = call g(a)", "g takes 2 arguments, not 1"),
    ("u: f64[q], v: i64, w: f64[v] = call g(b, c)", "g wants x: f64[n], not f64"),
    ("u: f64[q], v: i64, w: f64[v] = call g(a, b)", "g wants k: i64, not f64"),
    ("u: f64[q] = call g(a, c)", "g has 3 results, not 1"),
    ("u: f64[q], v: i64, w: f64[q] = call g(a, c)", "g gives f64[v] for w: f64[q]"),
    ("u: f64[3], v: i64, w: f64[v] = call g(a, c)", "g gives f64[q] for u: f64[3]"),
])
def test_calls_that_do_not_fit(line, reason):
    refused(calling(line), reason)


def test_funcs_of_a_module_have_their_own_names():
    refused(parse("func f():\n  return\n\nfunc f():\n  return\n"), "two funcs have this name")
