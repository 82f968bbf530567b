"""Calls of recursive funcs under jvp, vjp and vmap, in IR."""

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.library import collecting, transformed
from gradsmith.transpiler.ir.parse import parse_module
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.activity import dependences
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

ops.load_table()

# power(n, x, s) = (x**n, s + n): by squaring, with an active and a passive result.
POWER = """\
func main(n: i64, x: f64) -> (f64):
  y: f64, s: f64 = call power(n, x, 0.5:f64)
  z: f64 = multiply(y, x)
  return z
func power(n: i64, x: f64, s: f64) -> (f64, f64):
  small: bool = less(n, 1)
  y: f64, total: f64 = if small:
    yield 1.0:f64, s
  else:
    half: i64 = floor_divide(n, 2)
    r: f64, s_1: f64 = call power(half, x, s)
    square: f64 = multiply(r, r)
    twice: i64 = multiply(half, 2)
    odd: bool = less(twice, n)
    p: f64 = if odd:
      q: f64 = multiply(square, x)
      yield q
    else:
      yield square
    yield p, s_1
  return y, total
"""


def derived(program, *changes):
    for change in changes:
        program = transformed(program, change)
        verify(program)
    return program


@pytest.mark.parametrize("n", [0, 1, 2, 5, 12])
def test_forward_and_reverse_mode(n):
    module = parse_module(POWER)
    x = 1.3
    forward = derived(module, lambda f: jvp(f, [False, True]))
    assert [pytest.approx(x ** (n + 1)), pytest.approx((n + 1) * x ** n)] == list(evaluate(forward, n, x, 1.0))
    reverse = derived(module, lambda f: vjp(f, [False, True]))
    assert [pytest.approx(x ** (n + 1)), pytest.approx((n + 1) * x ** n)] == list(evaluate(reverse, n, x, 1.0))


@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_second_order_in_every_order(n):
    module = parse_module(POWER)
    x, expected = 1.3, (n + 1) * n * 1.3 ** (n - 1)
    for first in (jvp, vjp):
        for second in (jvp, vjp):
            one = derived(module, lambda f: first(f, [False, True]))
            slope_only = derived(one, lambda f: second(f, [False, True, False]))
            tail = (0.0, 1.0) if second is vjp else (1.0,)
            assert pytest.approx(expected) == evaluate(slope_only, n, x, 1.0, *tail)[-1]


def test_derived_funcs_are_made_once_and_named():
    twice = derived(parse_module(POWER), lambda f: vjp(f, [False, True]), lambda f: jvp(f, [False, True, False]))
    assert ["main_vjp_jvp", "power_jvp", "power_vjp_jvp"] == [func.name for func in twice.funcs]
    assert show(twice) == show(parse_module(show(twice)))
    again = derived(parse_module(POWER), lambda f: vjp(f, [False, True]), lambda f: jvp(f, [False, True, False]))
    assert show(twice) == show(again)


def test_results_depend_on_what_they_are_made_of():
    module = parse_module(POWER)
    with collecting(module):
        assert (frozenset({1}), frozenset({2})) == dependences(module.main.body.stmts[0])


def test_lanes_recur_to_depths_of_their_own():
    batched = derived(parse_module(POWER), lambda f: vmap(f, [True, True], 3))
    n, x = np.array([0, 4, 7]), np.array([1.5, -0.5, 2.0])
    np.testing.assert_allclose(evaluate(batched, n, x)[0], x ** (n + 1), rtol=1e-14)
    unbatched = derived(parse_module(POWER), lambda f: vmap(f, [False, False], 3))
    assert "for" not in show(unbatched.main)
