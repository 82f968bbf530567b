"""gradsmith.tree, from Python and inside transpiled functions."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from gradsmith import grad, jit, tree, tree_util, vmap


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


OUTER, INNER = tree.structure([0, 0]), tree.structure({"x": 0, "y": 0})


def test_structures_inside_a_transpiled_function():
    def doubled(p):
        leaves, structure = tree.flatten(p)
        same = structure == tree.structure(tree.map(lambda v: v + 1, p))
        return tree.unflatten(structure, [2 * leaf for leaf in leaves]), structure.num_leaves, same

    found, count, same = jit(doubled)(params())
    assert 4 == count
    assert same
    np.testing.assert_array_equal(found["layers"][0].first, 2 * np.ones(3))
    assert found["layers"][1].second is None
    turned = jit(lambda t: tree.transpose(OUTER, INNER, t))([{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}])
    assert {"x": [1.0, 3.0], "y": [2.0, 4.0]} == turned
    assert {"x": 1.0, "y": 2.0} == tree.unflatten(jit(tree.structure)({"x": 0.0, "y": 0.0}), [1.0, 2.0])
    with pytest.raises(ValueError, match="fewer leaves"):
        jit(lambda x: tree.unflatten(INNER, [x]))(1.0)


class Scaled:
    """A class with something beside its children."""

    def __init__(self, w, b, scale):
        self.w, self.b, self.scale = w, b, scale

    def __call__(self, x):
        return self.scale * (self.w @ x) + self.b


tree_util.register_pytree_node(Scaled, lambda s: ((s.w, s.b), s.scale), lambda scale, parts: Scaled(*parts, scale))


@tree_util.register_pytree_node_class
class Line:
    def __init__(self, slope, start):
        self.slope, self.start = slope, start

    def tree_flatten(self):
        return (self.slope, self.start), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@dataclass
class Power:
    base: object
    exponent: int
    name: str = "power"


tree_util.register_dataclass(Power, ["base"], ["exponent", "name"])


def model():
    return Scaled(np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones(2), 3.0)


def test_registered_classes_are_trees():
    assert [1.0, 2.0] == tree.leaves({"a": Line(1.0, 2.0)})
    moved = tree.map(lambda a, b: a + b, Line(1.0, 2.0), Line(3.0, 4.0))
    assert (4.0, 6.0) == (moved.slope, moved.start)
    with pytest.raises(ValueError):
        tree.map(lambda a, b: a, Scaled(1.0, 2.0, 3.0), Scaled(1.0, 2.0, 4.0))
    assert Power(4.0, 3) == tree.map(lambda v: 2 * v, Power(2.0, 3))
    with pytest.raises(ValueError, match="Duplicate"):
        tree_util.register_pytree_node_class(Line)
    with pytest.raises(TypeError, match="dataclass"):
        tree_util.register_dataclass(Pair)
    with pytest.raises(ValueError, match="must include"):
        tree_util.register_dataclass(dataclass(type("Other", (), {"__annotations__": {"x": int}})), [], [])


def test_registered_classes_as_arguments():
    def step(m, x):
        slopes = grad(lambda m: np.sum(m(x) ** 2))(m)
        return tree.map(lambda p, d: p - 0.1 * d, m, slopes)

    x = np.array([0.5, -1.0])
    found, at = jit(step)(model(), x), model()
    slope = 2 * at(x)
    np.testing.assert_allclose(found.w, at.w - 0.1 * 3.0 * np.outer(slope, x))
    np.testing.assert_allclose(found.b, at.b - 0.1 * slope)
    assert 3.0 == found.scale
    gradient = grad(lambda m, x: np.sum(m(x) ** 2))(model(), x)
    assert isinstance(gradient, Scaled)
    np.testing.assert_allclose(gradient.b, slope)
    lines = vmap(lambda line, x: line.start + line.slope * x, in_axes=(0, None))(Line(np.arange(3.0), np.ones(3)), 2.0)
    np.testing.assert_allclose(lines, [1.0, 3.0, 5.0])


def test_meta_fields_are_known_while_transpiling():
    f = jit(lambda p: [p.base ** k for k in range(p.exponent)] if p.name == "power" else [])
    assert [1.0, 2.0, 4.0] == f(Power(2.0, 3))
    assert [1.0, 2.0] == f(Power(2.0, 2))
    assert [] == f(Power(2.0, 3, "none"))
    assert Power(12.0, 3) == grad(lambda p: p.base ** p.exponent)(Power(2.0, 3))
