import numpy as np
import pytest

from gradsmith.transpiler.ir.evaluate import EvaluationError, evaluate
from gradsmith.transpiler.ir.parse import parse
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify

SUM_OF_NEGATIVES = """\
func f(x: f64[n,m]) -> (f64[m]):
  a: f64[n,m] = test_negative(x)
  b: f64[n,m] = test_add(a, 1.0:f64[n,m])
  s: f64[m] = test_sum(b) {axes=(0,)}
  return s
"""

RUNNING_SUM = """\
func cumsum(x: f64[n], reverse: bool) -> (f64[n], f64):
  hi: i64 = test_size() {dim=n}
  y0: f64[n] = test_zeros() {shape=(n,)}
  y: f64[n], total: f64 = for i: i64 in 0 .. hi step 1 carry (acc: f64[n] = y0, t: f64 = 0.0:f64):
    e: f64 = test_load(x, i) {index=[at]}
    t_1: f64 = test_add(t, e)
    acc_1: f64[n] = test_store(acc, i, t_1) {index=[at]}
    yield acc_1, t_1
  z: f64[n] = if reverse:
    r: f64[n] = test_reverse(y)
    yield r
  else:
    yield y
  return z, total
"""

COLLATZ = """\
func steps(start: i64) -> (i64):
  n: i64, count: i64 = while carry (v: i64 = start, c: i64 = 0:i64):
    cond:
      more: bool = test_less(1:i64, v)
      yield more
    do:
      half: i64, rest: i64 = test_split(v)
      even: bool = test_less(rest, half)
      odd: bool = test_less(half, rest)
      next: i64 = if odd:
        three: i64 = test_multiply(v, 3:i64)
        plus: i64 = test_add(three, 1:i64)
        yield plus
      else:
        yield half
      c_1: i64 = test_add(c, 1:i64)
      yield next, c_1
  return count
"""

FACTORIAL = """\
func main(x: f64[n], k: i64) -> (f64[n]) where n >= 0:
  ok: bool = test_less(k, 20:i64)
  check ok ValueError "k is too large"
  f: i64 = call factorial(k)
  g: f64 = test_float(f)
  lo: i64 = test_size() {dim=n - 1}
  y: f64[n] = for i: i64 in lo .. -1 step -1 carry (acc: f64[n] = x):
    e: f64 = test_load(acc, i) {index=[at]}
    p: f64 = test_multiply(e, g)
    acc_1: f64[n] = test_store(acc, i, p) {index=[at]}
    yield acc_1
  return y

func factorial(k: i64) -> (i64):
  small: bool = test_less(k, 2:i64)
  r: i64 = if small:
    yield 1:i64
  else:
    less: i64 = test_add(k, -1:i64)
    rest: i64 = call factorial(less)
    p: i64 = test_multiply(k, rest)
    yield p
  return r
"""


def run(text, *args):
    ir = parse(text)
    verify(ir)
    assert text == show(ir)
    return evaluate(ir, *args)


def equal(expected, actual):
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.shape == actual.shape
    assert expected.dtype == actual.dtype
    np.testing.assert_array_equal(expected, actual)


def test_straight_line_code():
    x = np.arange(6.0).reshape(3, 2)
    (s,) = run(SUM_OF_NEGATIVES, x)
    equal((1 - x).sum(axis=0), s)


@pytest.mark.parametrize("reverse", [False, True])
def test_for_with_load_and_store(reverse):
    x = np.array([3.0, -1.0, 4.0, 1.5])
    y, total = run(RUNNING_SUM, x, reverse)
    equal(np.cumsum(x)[:: -1 if reverse else 1], y)
    equal(np.sum(x), total)
    assert isinstance(total, np.float64)


@pytest.mark.parametrize("start, steps", [(1, 0), (6, 8), (27, 111)])
def test_while_and_if(start, steps):
    equal(np.int64(steps), run(COLLATZ, start)[0])


def test_calls_recursion_checks_and_backward_loops():
    x = np.array([1.0, 2.0, 0.5])
    equal(24 * x, run(FACTORIAL, x, 4)[0])
    equal(np.zeros(0), run(FACTORIAL, np.zeros(0), 4)[0])
    with pytest.raises(ValueError, match="k is too large"):
        run(FACTORIAL, x, 20)


def test_spans_and_new_axes():
    (y,) = run("""\
func f(x: f64[n,5], i: i64) -> (f64[1,n - 2,2]):
  y: f64[1,n - 2,2] = test_load(x, i) {index=[new, span(?; n - 2; 1), span(4; 2; -2)]}
  return y
""", np.arange(20.0).reshape(4, 5), 1)
    equal(np.arange(20.0).reshape(4, 5)[None, 1:3, 4:1:-2], y)


def test_a_size_may_be_the_value_of_a_scalar():
    (y, z) = run("""\
func f(k: i64) -> (f64[k], f64[2*k]) where k >= 0, m >= 0:
  m: i64 = test_add(k, k)
  y: f64[k] = test_zeros() {shape=(k,)}
  z0: f64[m] = test_zeros() {shape=(m,)}
  z: f64[2*k] = test_zeros() {shape=(2*k,)}
  return y, z
""", 3)
    assert (3,) == y.shape and (6,) == z.shape


def test_sizes_found_while_running():
    count, found = run("""\
func f(x: f64[n]) -> (i64, f64[k]) where k >= 0:
  k: i64, y: f64[k] = test_positive(x) {size="k"}
  z: f64[k] = test_add(y, 1.0:f64[k])
  return k, z
""", np.array([-1.0, 2.0, 3.0]))
    equal(np.int64(2), count)
    equal([3.0, 4.0], found)


def test_a_carried_array_may_grow():
    text = """\
func f(limit: i64) -> (i64, f64[size]) where cap >= 0, cap_1 >= 0, size >= 0:
  t0: f64[3] = test_zeros() {shape=(3,)}
  size: i64, tape: f64[size] = while carry (cap: i64 = 3:i64, t: f64[cap] = t0):
    cond:
      more: bool = test_less(cap, limit)
      yield more
    do:
      cap_1: i64 = test_add(cap, cap)
      t_1: f64[cap_1] = test_zeros() {shape=(cap_1,)}
      yield cap_1, t_1
  return size, tape
"""
    size, tape = run(text, 20)
    equal(np.int64(24), size)
    equal(np.zeros(24), tape)


def test_constants():
    a, b, c, d = run("""\
func f(x: f32[n]) -> (f32[n], bool, c64, i8[2]):
  return inf:f32[n], True:bool, complex(1.0, -2.0):c64, -3:i8[2]
""", np.zeros(2, "float32"))
    equal(np.full(2, np.inf, "float32"), a)
    equal(np.True_, b)
    equal(np.complex64(1 - 2j), c)
    equal(np.full(2, -3, "int8"), d)


def test_inputs_are_neither_written_nor_shared():
    x = np.array([5.0, 6.0])
    (y,) = run("func f(x: f64[n]) -> (f64[n]):\n  y: f64[n] = test_reverse(x)\n  return y\n", x)
    y[0] = 0.0
    equal([5.0, 6.0], x)
    (y,) = run("func f(x: f64[n]) -> (f64[n]):\n  return x\n", x)
    y[0] = 0.0
    equal([5.0, 6.0], x)
    with pytest.raises(ValueError, match="read-only") as caught:
        run("func f(x: f64[n]) -> (f64[n]):\n  y: f64[n] = test_writes(x)\n  return y\n", x)
    assert any("y: f64[n] = test_writes(x)" in note for note in caught.value.__notes__)
    equal([5.0, 6.0], x)
    assert x.flags.writeable


@pytest.mark.parametrize("op, reason", [
    ("test_wrong_shape", r"float64 of shape \(1,\), which should be float64 of shape \(2,\)"),
    ("test_wrong_dtype", r"float32 of shape \(2,\), which should be float64"),
    ("test_wrong_kind", "is a str"),
])
def test_a_reference_that_disagrees_with_infer_is_found(op, reason):
    with pytest.raises(EvaluationError, match=reason) as caught:
        run(f"func f(x: f64[n]) -> (f64[n]):\n  y: f64[n] = {op}(x)\n  return y\n", np.zeros(2))
    assert f"y: f64[n] = {op}(x)" in str(caught.value)


AGREE = "func f(x: f64[n], y: f64[n + 1,3]) -> ():\n  return\n"


@pytest.mark.parametrize("x, y, kind, message", [
    (np.zeros(2), np.zeros((2, 3)), ValueError, r"axis of 2 elements, which should be n \+ 1 = 3"),
    (np.zeros(2), np.zeros((3, 4)), ValueError, "axis of 4 elements, which should be 3"),
    (np.zeros(1), np.zeros((2, 3)), ValueError, "at least 2"),
    (np.zeros((2, 2)), np.zeros((3, 3)), ValueError, "2 axes, which should be 1"),
    (np.zeros(2, "float32"), np.zeros((3, 3)), TypeError, "dtype float32"),
])
def test_arguments_must_suit_the_parameters(x, y, kind, message):
    with pytest.raises(kind, match=message):
        run(AGREE, x, y)


def test_sizes_and_scalars_of_one_name_agree():
    text = "func f(x: f64[n], n: i64) -> (i64):\n  return n\n"
    equal(np.int64(2), run(text, np.zeros(2), 2)[0])
    with pytest.raises(ValueError, match="the argument n is 3"):
        run(text, np.zeros(2), 3)


def test_number_of_arguments():
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        run(AGREE, np.zeros(2))


def test_numpy_warnings_are_silent(recwarn):
    run("func f(x: f64) -> (f64):\n  y: f64 = test_multiply(x, x)\n  return y\n", 1e300)
    assert not list(recwarn)
