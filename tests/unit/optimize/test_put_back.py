"""Places that are cleared and then added to are stored to."""

from __future__ import annotations

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.optimize.put_back import put_back

ops.load_table()


def joined(text):
    func = parse_func(text)
    result = put_back(func)
    verify(result)
    a, w = np.arange(1.0, 7.0), 10.0
    for want, got in zip(evaluate(func, a, w), evaluate(result, a, w), strict=True):
        np.testing.assert_array_equal(want, got)
    assert put_back(result) is result
    return show(result)


def test_the_example_of_the_module():
    """What is taken and put back is not touched; what is added elsewhere in between, the same place even, is added."""
    for other in (2, 3):
        text = joined(f"""
func f(a: f64[n], w: f64) -> (f64[n]):
  v: f64 = load(a, 2:i64) {{index=[at]}}
  b: f64[n] = store(a, 0.0:f64, 2:i64) {{index=[at]}}
  c: f64[n] = add_at(b, w, {other}:i64) {{index=[at]}}
  d: f64[n] = add_at(c, v, 2:i64) {{index=[at]}}
  return d
""")
        assert "store" not in text and text.count("add_at") == 1
        assert f"add_at(a, w, {other}:i64)" in text


def test_nothing_happens_at_all():
    text = joined("""
func f(a: f64[n], w: f64) -> (f64[n]):
  v: f64[2] = load(a) {index=[span(1; 2; 1)]}
  b: f64[n] = store(a, 0.0:f64[2]) {index=[span(1; 2; 1)]}
  c: f64[n] = add_at(b, v) {index=[span(1; 2; 1)]}
  d: f64[n] = add_at(c, w, 0:i64) {index=[at]}
  return d
""")
    assert "store" not in text and text.count("add_at") == 1


def test_another_value_is_stored():
    """The store follows the value, and what was added elsewhere comes behind it."""
    text = joined("""
func f(a: f64[n], w: f64) -> (f64[n]):
  v: f64 = load(a, 2:i64) {index=[at]}
  b: f64[n] = store(a, 0.0:f64, 2:i64) {index=[at]}
  c: f64[n] = add_at(b, w, 1:i64) {index=[at]}
  u: f64 = multiply(v, w)
  d: f64[n] = add_at(c, u, 2:i64) {index=[at]}
  return d
""")
    assert text.index("store(a, u") < text.index("add_at(")


def test_what_somebody_sees_cleared_is_cleared():
    for reader in ("e: f64[n] = add(b, b)", "e: f64[n] = add(c, c)"):
        text = f"""
func f(a: f64[n], w: f64) -> (f64[n], f64[n]):
  v: f64 = load(a, 2:i64) {{index=[at]}}
  b: f64[n] = store(a, 0.0:f64, 2:i64) {{index=[at]}}
  c: f64[n] = add_at(b, w, 3:i64) {{index=[at]}}
  {reader}
  d: f64[n] = add_at(c, v, 2:i64) {{index=[at]}}
  return d, e
"""
        func = parse_func(text)
        assert put_back(func) is func


def test_other_places_and_other_values_than_zero_stay():
    for value, place in (("0.0", 1), ("1.0", 2)):
        func = parse_func(f"""
func f(a: f64[n], w: f64) -> (f64[n]):
  b: f64[n] = store(a, {value}:f64, 2:i64) {{index=[at]}}
  d: f64[n] = add_at(b, w, {place}:i64) {{index=[at]}}
  return d
""")
        assert put_back(func) is func
