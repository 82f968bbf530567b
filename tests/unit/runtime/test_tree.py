"""gradsmith.tree, from Python and inside transpiled functions."""

from typing import NamedTuple

import numpy as np
import pytest

from gradsmith import grad, jit, tree, tree_util


class Pair(NamedTuple):
    first: object
    second: object


TREE = {"b": [1.0, (2.0, None)], "a": Pair(3.0, {})}


def test_map_keeps_containers():
    assert {"b": [2.0, (4.0, None)], "a": Pair(6.0, {})} == tree.map(lambda v: 2 * v, TREE)
    assert {"b": [2.0, (4.0, None)], "a": Pair(6.0, {})} == tree.map(lambda a, b: a + b, TREE, TREE)


def test_leaves_come_in_the_order_of_sorted_keys():
    assert [3.0, 1.0, 2.0] == tree.leaves(TREE)
    assert [TREE["a"], TREE["b"]] == tree.leaves(TREE, is_leaf=lambda v: isinstance(v, (Pair, list)))


def test_flatten_and_back():
    leaves, structure = tree.flatten(TREE)
    assert structure == tree.structure(TREE)
    assert tree.unflatten(structure, leaves) == TREE
    assert structure != tree.structure({"a": 1})


def test_reduce_and_all():
    assert 6.0 == tree.reduce(lambda a, b: a + b, TREE)
    assert 16.0 == tree.reduce(lambda a, b: a + b, TREE, 10.0)
    assert tree.all({"a": True, "b": [1]})
    assert not tree.all({"a": True, "b": [0]})
    with pytest.raises(TypeError):
        tree.reduce(lambda a, b: a + b, {})


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure({"x": 0, "y": 0})
    assert {"x": [1, 3], "y": [2, 4]} == tree.transpose(outer, inner, [{"x": 1, "y": 2}, {"x": 3, "y": 4}])


def test_different_structures_are_refused():
    with pytest.raises(ValueError):
        tree.map(lambda a, b: a, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError):
        jit(lambda a, b: tree.map(lambda u, v: u, a, b))({"a": 1.0}, {"b": 1.0})


def test_older_names():
    assert tree_util.tree_map is tree.map
    assert tree_util.tree_leaves(TREE) == tree.leaves(TREE)


def params():
    return {"w": np.arange(6.0).reshape(2, 3), "layers": [Pair(np.ones(3), np.float64(2.0)), Pair(np.zeros(2), None)]}


def test_map_inside_a_transpiled_function():
    f = jit(lambda p: tree.map(lambda a, b: a - 0.1 * b, p, p))
    found = f(params())
    assert ["w", "layers"] == list(found)
    assert found["layers"][1].second is None
    np.testing.assert_allclose(found["w"], 0.9 * params()["w"])
    np.testing.assert_allclose(found["layers"][0].second, 1.8)


def test_leaves_reduce_and_all_inside_a_transpiled_function():
    def total(p):
        return tree.reduce(lambda a, b: a + b, tree.map(np.sum, p)) + len(tree.leaves(p)) + tree.all([1, True])

    assert 20.0 + 4 + 1 == jit(total)(params())


def test_gradients_of_trees():
    def loss(p):
        return tree.reduce(lambda a, b: a + b, tree.map(lambda v: np.sum(v ** 2), p), 0.0)

    found = grad(loss)(params())
    np.testing.assert_allclose(found["w"], 2 * params()["w"])
    np.testing.assert_allclose(found["layers"][0].first, 2 * np.ones(3))


def test_structures_are_for_outside():
    with pytest.raises(NotImplementedError, match="tree.flatten inside a transpiled function"):
        jit(lambda p: tree.flatten(p)[0])(params())
