"""Trees: values in nested tuples, lists, dicts, named tuples and dataclass-like nodes that optree knows.

The functions are optree's, with JAX's names and meaning: `None` is a tree without leaves, dicts are taken in the
order of their sorted keys.  `map`, `leaves`, `reduce` and `all` work inside transpiled functions too.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

import optree

__all__ = ["all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten"]

IsLeaf = Callable[[Any], bool] | None
_ABSENT = object()


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of `f(leaf, *leaves_of_rest)`.  ValueError where `rest` has another structure."""
    return optree.tree_map(f, tree, *rest, is_leaf=is_leaf)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order."""
    return optree.tree_leaves(tree, is_leaf=is_leaf)


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """(leaves, structure)."""
    found, structure_ = optree.tree_flatten(tree, is_leaf=is_leaf)
    return found, structure_


def unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with those leaves."""
    return optree.tree_unflatten(treedef, leaves)


def structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """What a tree is without its leaves."""
    return optree.tree_structure(tree, is_leaf=is_leaf)


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
# the same in Python that the frontend interprets: its containers hold values known at run time only


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
    return f(tree, *rest)


def _leaves(tree: Any, is_leaf: Any = None) -> Any:
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for k in sorted(tree) for leaf in _leaves(tree[k], is_leaf)]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in _leaves(part, is_leaf)]
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


_mark(map, _map)
_mark(leaves, _leaves)
_mark(reduce, _reduce)
_mark(all, _all)


def _refuse(function: Any) -> None:
    function.__gradsmith_refusal__ = (
        f"tree.{function.__name__} inside a transpiled function is not supported",
        "use tree.map, tree.leaves or tree.reduce there, or take the tree apart outside")


for _function in (flatten, unflatten, structure, transpose):
    _refuse(_function)
