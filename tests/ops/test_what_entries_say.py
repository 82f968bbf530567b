"""What entries of the table say of themselves beside their rules, and loop raising and others take at its word."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.registry import OPERATIONS
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ops.base import Product

ops.load_table()
NUMBERS = np.array([3.0, -2.0, 0.0, 7.5, -2.0, 7.5, 1.0])
INTS = NUMBERS.astype(np.int64)


def those(what):
    return pytest.mark.parametrize("name", sorted(n for n, op in OPERATIONS.items() if what(op)))


def element(value):
    return np.asarray(value)[()]


@those(lambda op: op.folding is not None)
@pytest.mark.parametrize("x", [NUMBERS, INTS, INTS > 1, INTS < 9], ids=["float64", "int64", "bool", "all"])
def test_a_folding_is_one_element_after_the_other(name, x):
    op, folding = OPERATIONS[name], OPERATIONS[name].folding
    if x.dtype.kind not in folding.kinds:
        pytest.skip(f"not a folding of {x.dtype}")
    reduction, scan, joins = (OPERATIONS[n] for n in (folding.reduction, folding.scan, folding.joins))
    terms = x if folding.commutes else -x                           # the one that does not is a difference
    totals = [x[0]]
    for element_ in x[1:]:
        totals.append(op.reference(totals[-1], element_))
    start = element(x[0])
    np.testing.assert_array_equal(joins.reference(start, reduction.reference(terms[1:], axes=(0,))), totals[-1])
    np.testing.assert_array_equal(
        scan.reference(np.concatenate([x[:1], terms[1:]]), axis=0, reverse=False), totals)
    if folding.commutes:
        np.testing.assert_array_equal(op.reference(x[3], x[1]), op.reference(x[1], x[3]))
    if folding.writes is not None:
        written = OPERATIONS[folding.writes].reference(x.copy(), terms[1], index=())
        np.testing.assert_array_equal(written, op.reference(x, np.full_like(x, x[1])))


@those(lambda op: op.folding is not None)
def test_a_folding_of_nothing(name):
    folding = OPERATIONS[name].folding
    x = np.float64(2.5) if "f" in folding.kinds else np.bool_(True)
    nothing = np.zeros(0, x.dtype)
    if folding.of_nothing:
        of_nothing = OPERATIONS[folding.reduction].reference(nothing, axes=(0,))
        assert x == OPERATIONS[folding.joins].reference(x, of_nothing)
    else:
        with pytest.raises(ValueError):
            OPERATIONS[folding.reduction].reference(nothing, axes=(0,))


@those(lambda op: op.prefers is not None)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_search_finds_what_the_comparison_would(name, swapped):
    compare, search = OPERATIONS[name].reference, OPERATIONS[name].prefers[swapped]
    at, best = 0, [NUMBERS[0]]
    for k, x in enumerate(NUMBERS[1:], 1):
        if compare(*((best[-1], x) if swapped else (x, best[-1]))):
            at = k
        best.append(NUMBERS[at])
    last = OPERATIONS[name].relates.endswith("=")               # of equal ones
    found = OPERATIONS[search.reduction].reference(NUMBERS[::-1] if last else NUMBERS, axes=(0,))
    assert at == (len(NUMBERS) - 1 - found if last else found)
    np.testing.assert_array_equal(best, OPERATIONS[search.scan].reference(NUMBERS, axis=0, reverse=False))


@those(lambda op: op.relates is not None)
def test_a_comparison_is_what_its_sign_says(name):
    sign = OPERATIONS[name].relates
    meant = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
             "!=": operator.ne}[sign]
    a, b = np.meshgrid(INTS, INTS)
    np.testing.assert_array_equal(meant(a, b), OPERATIONS[name].reference(a, b))


@those(lambda op: op.connects is not None)
def test_a_connective_is_what_it_says(name):
    op = OPERATIONS[name]
    for a in (False, True):
        for b in (False, True):
            if op.connects == "not":
                assert (not a) == op.reference(a)
            else:
                assert {"and": a and b, "or": a or b}[op.connects] == op.reference(a, b)


@those(lambda op: op.chooses)
def test_a_choice(name):
    mask = NUMBERS > 0
    np.testing.assert_array_equal(np.where(mask, NUMBERS, 1.0), OPERATIONS[name].reference(
        mask, NUMBERS, np.ones_like(NUMBERS)))


@those(lambda op: op.multiplies is not None)
def test_a_product(name):
    op = OPERATIONS[name]
    np.testing.assert_array_equal(NUMBERS * 1.5, op.reference(NUMBERS, np.full_like(NUMBERS, 1.5)))
    with np.errstate(invalid="ignore"):
        zero_times_infinity = op.reference(np.zeros(1), np.full(1, np.inf))[0]
    assert (op.multiplies is Product.ZEROS_WIN) == (zero_times_infinity == 0)


@those(lambda op: op.sums_apart)
def test_sums_apart(name):
    op = OPERATIONS[name]
    total = OPERATIONS["sum"].reference
    other = NUMBERS[::-1] * 2
    assert total(op.reference(NUMBERS, other), axes=(0,)) == op.reference(total(NUMBERS, axes=(0,)), total(other, axes=(0,)))


@those(lambda op: op.is_sum)
def test_a_sum_adds_along_its_axes(name):
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(x.sum(axis=0), OPERATIONS[name].reference(x, axes=(0,)))


def lying(op, sample):
    types = [Type(str(a.dtype), a.shape) for a in map(np.asarray, sample.args)]
    return op.lies_along(types, **sample.params)


def test_some_operations_say_where_axes_lie():
    assert {"broadcast", "transpose"} <= {n for n, op in OPERATIONS.items() for s in op.samples() if lying(op, s)}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_elements_lie_where_their_axes_do(name):
    op = OPERATIONS[name]
    for sample in op.samples():
        along = lying(op, sample)
        if along is not None:
            (x,) = map(np.asarray, sample.args)
            result = np.asarray(op.reference(*sample.args, **sample.params))
            for place in np.ndindex(result.shape):
                assert x[tuple(place[a] for a in along)] == result[place]
