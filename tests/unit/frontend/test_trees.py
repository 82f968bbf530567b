"""Containers taken apart and put together; functions traced into funcs of their own."""

import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.frontend.captures import Captures
from gradsmith.transpiler.frontend.guards import Assumptions, ShapeGuard, Unify
from gradsmith.transpiler.frontend.interpreter import Interpreter
from gradsmith.transpiler.frontend.trees import (
    LeafNode,
    StaticNode,
    flatten,
    leaf_count,
    leaf_values,
    rebuild,
    unflatten,
)
from gradsmith.transpiler.frontend.values import ArrayRef, Instance
from gradsmith.transpiler.ir.build import Names, building
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Var
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ops.spelling import Weak


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass(frozen=True)
class Box:
    item: object
    label: str = "box"


def test_every_container_comes_back():
    a, s, w = ArrayRef(Var("a", Type("float64", (3,)))), Var("s", F64), Weak(Var("w", F64))
    tree = {"p": Pair(a, [s, 1]), "q": (w, None, "text"), "r": Instance(Box, {"item": a, "label": "x"}), "e": []}
    leaves, structure = flatten(tree)
    assert leaves == [a, s, w, a]
    assert leaf_count(structure) == 4
    again = unflatten(structure, leaves)
    assert isinstance(again["p"], Pair)
    assert again["p"].left is a
    assert again["q"] == (w, None, "text")
    assert again["r"].fields == {"item": a, "label": "x"}
    built = rebuild(structure, [np.ones(3), np.float64(2.0), np.float64(3.0), np.zeros(3)])
    assert built["p"].right == [2.0, 1]
    assert type(built["q"][0]) is float
    assert built["r"].label == "x"
    assert isinstance(built["r"], Box)
    assert built["e"] == []


def test_static_tuples_are_one_node():
    leaves, structure = flatten((1, (2.0, "a")))
    assert leaves == []
    assert structure == StaticNode((1, (2.0, "a")))


def test_sizes_become_ints():
    with building(Names(["n"])):
        leaves, structure = flatten([symbol("n")])
        assert structure.children == (LeafNode("weak", int),)
        assert leaf_values(leaves)[0].type == Type("int64")
        assert flatten([symbol("n")], sizes_are_static=True)[0] == []


def test_ordered_dicts_keep_their_class():
    leaves, structure = flatten(OrderedDict(a=Var("s", F64)))
    assert rebuild(structure, [1.5]) == OrderedDict(a=1.5)


def interpreter(**sizes):
    names, assumptions = Names(list(sizes)), Assumptions(sizes)
    return Interpreter(names, assumptions, Captures(names, assumptions, {}))


def test_subtrace_lists_what_it_reads_from_outside():
    ops.load_table()
    it = interpreter(n=3)
    with building(it.names):
        x, w = Var("x", Type("float64", (symbol("n"),))), Var("w", Type("float64", (symbol("n"),)))
        it.params = [x, w]
        func, out, outer = it.subtrace(lambda a, scale: np.sum(a * np.zeros(len(a))) * scale, (ArrayRef(x), 2.0), {})
        assert outer == ()
        inner_w = ArrayRef(w)
        it.captures._known.clear()

        def closes_over(a):
            return a * inner_w_value(), len(a)

        def inner_w_value():
            return 1.0

        func, out, outer = it.subtrace(closes_over, (ArrayRef(x),), {})
        verify(func)
        result, count = rebuild(out, evaluate(func, np.ones(3)))
        np.testing.assert_array_equal(result, np.ones(3))
        assert count == 3
        assert inner_w.owner == "local"


def test_assumptions_are_decided_by_examples_and_remembered():
    known = Assumptions({"n": 5, "m": 5})
    n, m = symbol("n"), symbol("m")
    assert known.is_negative(n - 2) is False
    assert not known.guards
    assert known.is_negative(n - 4) is False
    assert list(known.guards) == [ShapeGuard(n - 4, "<", False)]
    with pytest.raises(Unify) as found:
        known.are_equal(n, m)
    assert found.value.sizes in ({"n": m}, {"m": n})
    assert known.are_equal(n + 1, m) is False
    assert known.are_equal(n, n)
    with pytest.raises(Unify) as found:
        known.are_equal(n - 1, 4)
    assert found.value.sizes == {"n": 5}


def test_shape_guards_hold_or_not():
    guard = ShapeGuard(symbol("n") - 4, "<", False)
    assert guard.holds({"n": 4})
    assert not guard.holds({"n": 3})
    assert str(guard) == "n - 4 >= 0"
