"""Trees with the paths of their leaves, under JAX's names: `gradsmith.tree.map_with_path` and its kin.

A path is a tuple of keys: `DictKey` of a dict, `SequenceKey` of a tuple or list, `GetAttrKey` of a named tuple or a
registered dataclass, `FlattenedIndexKey` of other registered classes.  `keystr(path)` is how Python reaches the leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .transpiler.frontend.pytrees import REGISTRY

IsLeaf = Callable[[Any], bool] | None


class _Key:
    """Equal to those of its kind that say the same; written out, since transpiled code compares keys, too."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *vars(self).values()))

    def __str__(self) -> str:
        return self.reach(False)

    def reach(self, simple: bool) -> str:
        """How Python reaches the part, or the key alone."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class DictKey(_Key):
    """Of a dict."""

    key: Any

    def reach(self, simple: bool) -> str:
        return str(self.key) if simple else "[" + repr(self.key) + "]"


@dataclass(frozen=True, eq=False)
class SequenceKey(_Key):
    """Of a tuple or list."""

    idx: int

    def reach(self, simple: bool) -> str:
        return str(self.idx) if simple else "[" + repr(self.idx) + "]"


@dataclass(frozen=True, eq=False)
class GetAttrKey(_Key):
    """Of an object."""

    name: str

    def reach(self, simple: bool) -> str:
        return self.name if simple else "." + self.name


@dataclass(frozen=True, eq=False)
class FlattenedIndexKey(_Key):
    """Of an object whose parts have no names."""

    key: int

    def reach(self, simple: bool) -> str:
        return str(self.key) if simple else "[<flat index " + repr(self.key) + ">]"


def keystr(keys: Any, *, simple: bool = False, separator: str = "") -> str:
    """The path as text: `['w'][0].rate`; with `simple`, the keys alone: `w/0/rate` with separator="/"."""
    return separator.join([key.reach(simple) for key in keys])


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """(path, leaf) of each leaf, in order."""
    return _gathered(tree, (), is_leaf)


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[tuple[Any, ...], Any]], Any]:
    """(leaves with their paths, structure)."""
    from .tree import structure
    return _gathered(tree, (), is_leaf), structure(tree, is_leaf)


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of `f(path, leaf, *leaves_of_rest)`.  ValueError where `rest` has another structure."""
    from .tree import flatten, unflatten
    own, structure = flatten(tree, is_leaf)
    found = _gathered(tree, (), is_leaf)
    others = [parts_at(other, [path for path, _ in found]) for other in rest]
    return unflatten(structure, [f(found[k][0], own[k], *[other[k] for other in others]) for k in range(len(own))])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of `full_tree`, in which each leaf of `prefix_tree` stands for all that is below it."""
    from .tree import map
    return map(lambda leaf, below: map(lambda _: leaf, below), prefix_tree, full_tree, is_leaf=is_leaf)


def parts_at(tree: Any, paths: Any) -> list[Any]:
    """What is at the paths.  ValueError where the tree has other ones."""
    return [_part_at(tree, path) for path in paths]


def _part_at(tree: Any, path: Any) -> Any:
    for key in path:
        children = _children(tree, None)
        matches = [] if children is None else [child for own, child in children if own == key]
        if not matches:
            raise ValueError(f"trees of different structures: one of them has nothing at {keystr(path)}")
        tree = matches[0]
    return tree


def _gathered(tree: Any, path: tuple[Any, ...], is_leaf: Any) -> list[tuple[tuple[Any, ...], Any]]:
    children = _children(tree, is_leaf)
    if children is None:
        return [(path, tree)]
    return [found for key, child in children for found in _gathered(child, (*path, key), is_leaf)]


def _children(tree: Any, is_leaf: Any) -> Any:
    """[(key, child)] of a container; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [(DictKey(k), tree[k]) for k in sorted(tree)]
    if isinstance(tree, (tuple, list)):
        names = tree._fields if hasattr(tree, "_fields") else None
        return [(SequenceKey(k) if names is None else GetAttrKey(names[k]), tree[k]) for k in range(len(tree))]
    from .tree import _how
    how = _how(tree)
    if how is None:
        return None
    parts = tuple(how[0](tree)[0])
    names = _names(tree)
    return [(GetAttrKey(names[k]) if names else FlattenedIndexKey(k), parts[k]) for k in range(len(parts))]


def _names(tree: Any) -> Any:
    return REGISTRY[type(tree)].data


def _traced_names(it: Any, tree: Any) -> Any:
    from .transpiler.frontend.values import type_of
    return REGISTRY[type_of(tree)].data


_names.__gradsmith_native__ = _traced_names  # type: ignore[attr-defined]
