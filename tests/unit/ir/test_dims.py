"""Dimensions against plain integers, under every assignment of sizes."""

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from gradsmith.transpiler.ir.dims import (
    DimExpr,
    bounds,
    floordiv,
    is_dim,
    maximum,
    minimum,
    product,
    slice_length,
    substitute,
    symbol,
    symbols_of,
)

LOWS = {"n": 2, "m": 2, "k": 0, "j": 0}
SYMBOLS = {name: symbol(name, low) for name, low in LOWS.items()}
n, m, k, j = SYMBOLS.values()

# An expression as a tree, so that it can be computed both on dimensions and on integers.
LEAVES = st.one_of(st.integers(-4, 4), st.sampled_from(sorted(SYMBOLS)))
TREES = st.recursive(LEAVES, lambda tree: st.one_of(
    st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), tree, tree),
    st.tuples(st.sampled_from(["//", "%"]), tree, st.sampled_from([1, 2, 3, -2])),
    st.tuples(st.sampled_from(["//", "%"]), tree, st.sampled_from(["n", "m"])),
), max_leaves=8)
SIZES = st.fixed_dictionaries({name: st.integers(low, low + 9) for name, low in LOWS.items()})

ON_DIMS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": floordiv,
           "%": lambda a, b: a - floordiv(a, b) * b, "max": maximum, "min": minimum}
ON_INTS = {**ON_DIMS, "//": lambda a, b: a // b, "%": lambda a, b: a % b, "max": max, "min": min}


def compute(tree, operations, names):
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return names[tree]
    operation, left, right = tree
    return operations[operation](compute(left, operations, names), compute(right, operations, names))


def dimension(tree):
    return compute(tree, ON_DIMS, SYMBOLS)


@given(TREES, SIZES)
@settings(max_examples=400, derandomize=True, deadline=None)
def test_substitution_computes_the_integer(tree, sizes):
    expected = compute(tree, ON_INTS, sizes)
    dim = dimension(tree)
    assert is_dim(dim)
    assert expected == substitute(dim, sizes)
    assert expected == substitute(dim, lambda s: sizes[s.name])


@given(TREES, SIZES)
@settings(max_examples=300, derandomize=True, deadline=None)
def test_text_is_python(tree, sizes):
    dim = dimension(tree)
    assert substitute(dim, sizes) == eval(str(dim), {"max": max, "min": min}, dict(sizes))


@given(TREES, SIZES)
@settings(max_examples=400, derandomize=True, deadline=None)
def test_bounds_hold(tree, sizes):
    low, high = bounds(dimension(tree))
    value = compute(tree, ON_INTS, sizes)
    assert low is None or low <= value
    assert high is None or value <= high


@given(TREES, TREES, TREES)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_sums_and_products_have_one_form(a, b, c):
    a, b, c = map(dimension, (a, b, c))
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert 0 == a - a
    assert a == -(-a)
    assert hash(a + b) == hash(b + a)
    assert str(a + b) == str(b + a)


@given(TREES, SIZES)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_partial_substitution(tree, sizes):
    dim = dimension(tree)
    some = {name: sizes[name] for name in ("n", "k")}
    partly = substitute(dim, some)
    assert not {"n", "k"} & symbols_of(partly).keys()
    assert substitute(dim, sizes) == substitute(partly, sizes)
    assert dim == substitute(dim, {})


@given(TREES, TREES, SIZES)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_substitution_by_dimensions(tree, other, sizes):
    replacement = dimension(other)
    value = substitute(replacement, sizes)
    assume(value >= 2)  # as n promises
    assert substitute(substitute(dimension(tree), {"n": replacement}), sizes) == substitute(
        dimension(tree), {**sizes, "n": value})


@given(st.integers(0, 8), st.integers(0, 8), st.sampled_from([-3, -2, -1, 1, 2, 3]))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_slice_length(start, stop, step):
    expected = len(range(start, stop, step))
    assert expected == slice_length(start, stop, step)
    assert expected == substitute(slice_length(k, j, step), {"k": start, "j": stop})


@pytest.mark.parametrize("dim, text", [
    (n, "n"), (n - 1, "n - 1"), (1 - n, "-n + 1"), (2 * n * m + 3, "2*m*n + 3"), (n - n + 4, "4"),
    (floordiv(n + 1, 2), "((n + 1) // 2)"), (maximum(k - 1, 0), "max(k - 1, 0)"), (-n * k, "-k*n"),
])
def test_text(dim, text):
    assert text == str(dim)


def test_what_is_known_is_decided():
    assert n == maximum(n, 1)
    assert n == maximum(1, n)
    assert 1 == minimum(n, 1)
    assert n + 1 == maximum(n, n + 1)
    assert n == floordiv(n * m, m)
    assert n + 2 == floordiv(3 * n + 6, 3)
    assert 1 == floordiv(n + m, m + n)
    assert isinstance(maximum(n, 3), DimExpr)
    assert n == slice_length(0, n, 1)
    assert n - 2 == slice_length(1, n - 1, 1)
    assert n == slice_length(n - 1, -1, -1)


def test_bounds():
    assert (2, None) == bounds(n)
    assert (0, None) == bounds(k)
    assert (None, -1) == bounds(1 - n)
    assert (5, 5) == bounds(5)
    assert (4, None) == bounds(n * m)
    assert (None, None) == bounds(n - m)


def test_symbols_and_products():
    assert {"n", "m", "k"} == symbols_of(floordiv(n * m, k + 1) + 3).keys()
    assert 6 * n * n == product((2, n, 3, n))
    assert 1 == product(())
    assert not is_dim(True) and not is_dim(1.0) and is_dim(3)


def test_foreign_operands_are_refused():
    for operate, other in itertools.product([lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a * b], [1.5, "n"]):
        with pytest.raises(TypeError):
            operate(n, other)
