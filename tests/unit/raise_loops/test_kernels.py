"""NumPy code written as loops over elements: what is raised, what is not, and that both give the same."""

from __future__ import annotations

import pytest
from unit.raise_loops.comparing import arguments, assert_same, func_of, raised
from unit.raise_loops.kernels import KEPT, RAISED, SLOW_BACKWARDS, WITHOUT_GRADIENT

from gradsmith.transpiler.ir.nodes import For
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.raise_loops.findings import Outcome, works_on_elements


def names(functions):
    return [f.__name__ for f in functions]


@pytest.mark.parametrize("function", RAISED, ids=names(RAISED))
def test_no_loop_over_elements_is_left(function):
    func = func_of(function, RAISED[function])
    after, findings = raised(func)
    assert [] == [f for f in findings if f.is_slow]
    assert not any(isinstance(s, For) and works_on_elements(s.body) for s in all_statements(after.body))
    assert_same(func, after, arguments(func))


DIFFERENTIABLE = [f for f in RAISED if f not in WITHOUT_GRADIENT]


@pytest.mark.parametrize("function", DIFFERENTIABLE, ids=names(DIFFERENTIABLE))
def test_nor_in_its_derivative(function):
    func = func_of(function, RAISED[function], "vjp")
    after, findings = raised(func)
    if function not in SLOW_BACKWARDS:
        assert [] == [f for f in findings if f.is_slow]
    assert_same(func, after, arguments(func), rtol=1e-11)


@pytest.mark.parametrize("transform", ["jit", "vjp"])
@pytest.mark.parametrize("function", KEPT, ids=names(KEPT))
def test_a_loop_whose_order_matters_is_kept(function, transform):
    func = func_of(function, KEPT[function], transform)
    after, findings = raised(func)
    assert any(f.outcome in (Outcome.KEPT, Outcome.WHOLE) and f.reason for f in findings)
    assert_same(func, after, arguments(func))
