"""Trees: values in nested tuples, lists, dicts, named tuples and objects of registered classes.

The functions are optree's, with JAX's names and meaning: `None` is a tree without leaves, dicts are taken in the
order of their sorted keys.  All work inside transpiled functions too.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from .transpiler.frontend.pytrees import REGISTRY, Registered
from .tree_paths import broadcast, flatten_with_path, leaves_with_path, map_with_path

__all__ = ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path",
           "reduce", "structure", "transpose", "unflatten"]

IsLeaf = Callable[[Any], bool] | None
C = TypeVar("C", bound=type)
_ABSENT = object()
SPACE = "gradsmith"         # optree's name for what is registered here


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of `f(leaf, *leaves_of_rest)`.  ValueError where `rest` has another structure."""
    return optree.tree_map(f, tree, *rest, is_leaf=is_leaf, namespace=SPACE)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order."""
    return optree.tree_leaves(tree, is_leaf=is_leaf, namespace=SPACE)


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """(leaves, structure)."""
    found, structure_ = optree.tree_flatten(tree, is_leaf=is_leaf, namespace=SPACE)
    return found, structure_


def unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with those leaves."""
    return treedef.unflatten(leaves)


def structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """What a tree is without its leaves."""
    return optree.tree_structure(tree, is_leaf=is_leaf, namespace=SPACE)


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _ABSENT, is_leaf: IsLeaf = None) -> Any:
    """`functools.reduce` over the leaves."""
    found = leaves(tree, is_leaf)
    return functools.reduce(function, found) if initializer is _ABSENT else functools.reduce(function, found,
                                                                                            initializer)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out."""
    return optree.tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose)


# ---------------------------------------------------------------------------------------------------------------
# classes whose objects are trees


def register_pytree_node(nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
                         unflatten_func: Callable[[Any, Iterable[Any]], Any],
                         flatten_with_keys_func: Any = None) -> None:
    """Objects of `nodetype` are trees from now on, here and as arguments of compiled functions.

    flatten_func(x): (children, aux).  unflatten_func(aux, children): the object.  aux is known while transpiling.
    flatten_with_keys_func: not needed.  ValueError for a class that is registered already.
    """
    if nodetype in REGISTRY:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")
    optree.register_pytree_node(nodetype, flatten_func, unflatten_func, namespace=SPACE)  # type: ignore[arg-type]
    REGISTRY[nodetype] = Registered(flatten_func, unflatten_func)


def register_pytree_node_class(cls: C) -> C:
    """A decorator for classes with `tree_flatten(self)` and the class method `tree_unflatten(aux, children)`."""
    of_class: Any = cls
    register_pytree_node(cls, of_class.tree_flatten, of_class.tree_unflatten)
    return cls


def register_dataclass(nodetype: C, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> C:
    """Objects of a dataclass are trees of their `data_fields`; `meta_fields` are known while transpiling.

    Without names, fields declared `field(metadata={"static": True})` are meta fields, and the others data.  TypeError
    for a class that is no dataclass; ValueError where the names are not all of its fields.
    """
    if not dataclasses.is_dataclass(nodetype):
        raise TypeError(f"register_dataclass: {nodetype} is not a dataclass; give it the decorator first")
    fields = [f for f in dataclasses.fields(nodetype) if f.init]
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: data_fields and meta_fields are given together, or neither")
    if data_fields is None or meta_fields is None:
        data = tuple(f.name for f in fields if not f.metadata.get("static", False))
        meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    else:
        data, meta = tuple(data_fields), tuple(meta_fields)
    if sorted([*data, *meta, *drop_fields]) != sorted(f.name for f in fields):
        raise ValueError(f"data_fields and meta_fields must include all dataclass fields with ``init=True``: "
                         f"{sorted(f.name for f in fields)}")

    def taken_apart(x: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(x, name) for name in data]), tuple([getattr(x, name) for name in meta])

    def put_together(aux: Any, children: Any) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, aux)))

    register_pytree_node(nodetype, taken_apart, put_together)
    REGISTRY[nodetype] = Registered(taken_apart, put_together, data, meta)
    return nodetype


# ---------------------------------------------------------------------------------------------------------------
# the same in Python that the frontend interprets: its containers hold values known at run time only


def _how(tree: Any) -> Any:
    """(flatten, unflatten) of an object of a registered class, else None."""
    found = REGISTRY.get(type(tree))
    return None if found is None else (found.flatten, found.unflatten)


def _traced_how(it: Any, tree: Any) -> Any:
    from .transpiler.frontend.values import type_of
    found = REGISTRY.get(type_of(tree))
    return None if found is None else (found.flatten, found.unflatten)


_how.__gradsmith_native__ = _traced_how  # type: ignore[attr-defined]


class Structure:
    """What a tree is without its leaves, as transpiled code has it: (kind, what, children)."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.node == other.node

    def __ne__(self, other: object) -> bool:
        return not (isinstance(other, Structure) and self.node == other.node)

    def __hash__(self) -> int:
        return hash(self.node)

    @property
    def num_leaves(self) -> int:
        return _count(self.node)

    def unflatten(self, leaves: Any) -> Any:
        """The tree with those leaves."""
        found = list(leaves)
        tree, used = _put_together(self.node, found, 0)
        if used != len(found):
            raise ValueError("more leaves than the structure has places")
        return tree


def _count(node: Any) -> int:
    if node[0] == "leaf":
        return 1
    total = 0
    for child in node[2]:
        total += _count(child)
    return total


def _taken_apart(tree: Any, is_leaf: Any, found: Any) -> Any:
    """The structure; leaves are appended to `found`."""
    if is_leaf is not None and is_leaf(tree):
        found.append(tree)
        return ("leaf", None, ())
    if tree is None:
        return ("none", None, ())
    if isinstance(tree, dict):
        keys = sorted(tree)
        return ("dict", tuple(keys), tuple([_taken_apart(tree[k], is_leaf, found) for k in keys]))
    if isinstance(tree, (tuple, list)):
        kind = "list" if isinstance(tree, list) else "named" if hasattr(tree, "_fields") else "tuple"
        parts = [_taken_apart(part, is_leaf, found) for part in tree]
        return (kind, type(tree) if kind == "named" else None, tuple(parts))
    how = _how(tree)
    if how is not None:
        children, aux = how[0](tree)
        parts = [_taken_apart(part, is_leaf, found) for part in children]
        return ("object", (how[1], aux), tuple(parts))
    found.append(tree)
    return ("leaf", None, ())


def _put_together(node: Any, found: Any, at: int) -> Any:
    """(the tree, the place of the next leaf)."""
    kind = node[0]
    if kind == "leaf":
        if at >= len(found):
            raise ValueError("fewer leaves than the structure has places")
        return found[at], at + 1
    if kind == "none":
        return None, at
    parts = []
    for child in node[2]:
        part, at = _put_together(child, found, at)
        parts.append(part)
    if kind == "dict":
        made = {}
        for k in range(len(parts)):
            made[node[1][k]] = parts[k]
        return made, at
    if kind == "list":
        return parts, at
    if kind == "named":
        return node[1](*parts), at
    if kind == "tuple":
        return tuple(parts), at
    return node[1][0](node[1][1], tuple(parts)), at


def _flatten(tree: Any, is_leaf: Any = None) -> Any:
    found: list[Any] = []
    node = _taken_apart(tree, is_leaf, found)
    return found, Structure(node)


def _structure(tree: Any, is_leaf: Any = None) -> Any:
    return _flatten(tree, is_leaf)[1]


def _own_structure(treedef: Any) -> Any:
    """optree's as ours."""
    return treedef if isinstance(treedef, Structure) else _flatten(optree.tree_unflatten(
        treedef, [0] * treedef.num_leaves))[1]


def _traced_structure(it: Any, treedef: Any) -> Any:
    return _own_structure(treedef) if isinstance(treedef, optree.PyTreeSpec) else treedef


_own_structure.__gradsmith_native__ = _traced_structure  # type: ignore[attr-defined]


def _unflatten(treedef: Any, leaves: Any) -> Any:
    return _own_structure(treedef).unflatten(leaves)


def _transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    outer, inner = _own_structure(outer_treedef), _own_structure(inner_treedef)
    found = _leaves(pytree_to_transpose)
    count, width = outer.num_leaves, inner.num_leaves
    if len(found) != count * width:
        raise ValueError("the tree is not one of the outer structure with trees of the inner one as leaves")
    parts = [outer.unflatten([found[i * width + j] for i in range(count)]) for j in range(width)]
    return inner.unflatten(parts)


def _map(f: Any, tree: Any, *rest: Any, is_leaf: Any = None) -> Any:
    if is_leaf is not None and is_leaf(tree):
        return f(tree, *rest)
    if tree is None:
        return None
    if isinstance(tree, dict):
        for other in rest:
            if not isinstance(other, dict) or sorted(other) != sorted(tree):
                raise ValueError("trees of different structures")
        return {k: _map(f, tree[k], *[other[k] for other in rest], is_leaf=is_leaf) for k in tree}
    if isinstance(tree, (tuple, list)):
        for other in rest:
            if not isinstance(other, (tuple, list)) or len(other) != len(tree):
                raise ValueError("trees of different structures")
        parts = [_map(f, tree[k], *[other[k] for other in rest], is_leaf=is_leaf) for k in range(len(tree))]
        if isinstance(tree, list):
            return parts
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    how = _how(tree)
    if how is not None:
        return _map_node(f, tree, rest, is_leaf, how)
    return f(tree, *rest)


def _map_node(f: Any, tree: Any, rest: Any, is_leaf: Any, how: Any) -> Any:
    children, aux = how[0](tree)
    columns = []
    for other in rest:
        if type(other) is not type(tree):
            raise ValueError("trees of different structures")
        column, other_aux = how[0](other)
        if len(tuple(column)) != len(tuple(children)) or other_aux != aux:
            raise ValueError("trees of different structures")
        columns.append(tuple(column))
    own = tuple(children)
    parts = [_map(f, own[k], *[column[k] for column in columns], is_leaf=is_leaf) for k in range(len(own))]
    return how[1](aux, tuple(parts))


def _leaves(tree: Any, is_leaf: Any = None) -> Any:
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for k in sorted(tree) for leaf in _leaves(tree[k], is_leaf)]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in _leaves(part, is_leaf)]
    how = _how(tree)
    if how is not None:
        return [leaf for part in how[0](tree)[0] for leaf in _leaves(part, is_leaf)]
    return [tree]


def _reduce(function: Any, tree: Any, initializer: Any = _ABSENT, is_leaf: Any = None) -> Any:
    found = _leaves(tree, is_leaf)
    if initializer is _ABSENT:
        if not found:
            raise TypeError("reduce() of empty iterable with no initial value")
        total, found = found[0], found[1:]
    else:
        total = initializer
    for leaf in found:
        total = function(total, leaf)
    return total


def _all(tree: Any, *, is_leaf: Any = None) -> Any:
    return builtins.all(_leaves(tree, is_leaf))


def _mark(public: Callable[..., Any], traced: Callable[..., Any]) -> None:
    public.__gradsmith_traced__ = traced  # type: ignore[attr-defined]


for _public, _traced in ((map, _map), (leaves, _leaves), (reduce, _reduce), (all, _all), (flatten, _flatten),
                         (unflatten, _unflatten), (structure, _structure), (transpose, _transpose)):
    _mark(_public, _traced)
