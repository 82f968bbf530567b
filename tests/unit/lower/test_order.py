"""An array is written to after what reads it as it was, and in a loop of its own: nothing is copied."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse_func

ops.load_table()


def lowered(text, *args):
    """The generated text of a func whose first argument may be written to; its values are those of the func."""
    func = parse_func(text)
    result = pipeline.run(func)
    for want, got in zip(evaluate(func, *args), evaluate(result, *args), strict=True):
        np.testing.assert_array_equal(want, got)
    return emit(result, name="f", decorator=False)


CLEARED = """
func f(x: f64[n], y: f64[n]) -> (f64[n], f64[n]):
  a: f64[n] = add(x, y)
  b: f64[n] = multiply(x, y)
  c: f64[n] = store(a, 0.0:f64[n - 2]) {index=[span(1; n - 2; 1)]}
  v: f64[n - 2] = load(a) {index=[span(1; n - 2; 1)]}
  d: f64[n] = add_at(b, v) {index=[span(0; n - 2; 1)]}
  w: f64[n - 2] = multiply(v, 2.0:f64[n - 2])
  e: f64[n] = add_at(d, w) {index=[span(2; n - 2; 1)]}
  return c, e
"""


def test_a_write_follows_the_readers():
    text = lowered(CLEARED, np.arange(6.0), np.ones(6))
    assert "copy" not in text
    assert text.index("= 0.0") > text.rindex("+=")


def test_a_reader_of_both_needs_a_copy():
    text = lowered(CLEARED.replace("multiply(v, 2.0:f64[n - 2])", "load(c) {index=[span(1; n - 2; 1)]}")
                   .replace("return c, e", "g: f64[n] = add_at(e, v) {index=[span(1; n - 2; 1)]}\n  return c, g"),
                   np.arange(6.0), np.ones(6))
    assert "copy" in text


@pytest.mark.parametrize("message", ["n is small"])
def test_no_write_moves_over_a_check(message):
    """The array that the caller would see is as it is where the check fails."""
    text = lowered(CLEARED.replace("  d:", f"""  s: f64 = sum(y) {{axes=(0,)}}
  p: bool = greater(s, 0.0)
  check p ValueError "{message}"
  d:"""), np.arange(6.0), np.ones(6))
    assert text.index("= 0.0\n") < text.index("raise")
