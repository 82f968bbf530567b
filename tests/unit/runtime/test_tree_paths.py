"""Paths of leaves, beside JAX's, outside and inside of transpiled functions."""

from collections import namedtuple

import jax
import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tree_util import DictKey, keystr

Pair = namedtuple("Pair", "a b")
TREE = {"b": (1.0, None, [2.0, 3.0]), "a": np.arange(3.0), "p": Pair(1.0, {"k": 2.0})}


@pytest.mark.parametrize("options", [{}, {"simple": True, "separator": "/"}])
def test_paths_are_jaxs(options):
    theirs = [jax.tree_util.keystr(path, **options) for path, _ in jax.tree.leaves_with_path(TREE)]
    assert theirs == [keystr(path, **options) for path, _ in gs.tree.leaves_with_path(TREE)]
    found, structure = gs.tree.flatten_with_path(TREE)
    assert TREE["b"] == gs.tree.unflatten(structure, [leaf for _, leaf in found])["b"]


def named(path, x, y):
    return x * y if "k" in keystr(path) else x + y


def test_a_map_by_paths():
    for wanted, found in zip(jax.tree.leaves(jax.tree_util.tree_map_with_path(lambda p, x, y: x * y if "k" in
                                             jax.tree_util.keystr(p) else x + y, TREE, TREE)),
                             gs.tree.leaves(gs.tree.map_with_path(named, TREE, TREE)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    inside = gs.jit(lambda t: gs.tree.map_with_path(named, t, t))(TREE)
    assert 4.0 == inside["p"].b["k"] and (2.0, None, [4.0, 6.0]) == inside["b"]
    with pytest.raises(ValueError, match=r"nothing at \['b'\]\[0\]"):
        gs.tree.map_with_path(named, TREE, {"a": 1.0})


def test_a_gradient_by_some_leaves():
    def energy(t):
        return sum(np.sum(x**2) for path, x in gs.tree.leaves_with_path(t) if path[0] == DictKey("a"))

    slope = gs.grad(energy)(TREE)
    np.testing.assert_array_equal(slope["a"], 2.0 * TREE["a"])
    assert 0.0 == slope["p"].a


def test_a_prefix_for_all_below():
    prefix = {"a": 1, "b": 2, "p": Pair(3, 4)}
    assert jax.tree.broadcast(prefix, TREE) == gs.tree.broadcast(prefix, TREE)
