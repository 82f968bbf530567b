"""Classes that people register as nodes of trees: what takes their objects apart and puts them together.

At the boundary of compiled code an object of such a class is a `Node`; inside it is what `unflatten` makes of abstract
children, interpreted like any other code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Registered:
    """flatten(x) -> (children, aux), unflatten(aux, children) -> x, as JAX has them.  For dataclasses the names of
    their fields instead: those that are children, and those that are known while transpiling."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Iterable[Any]], Any]
    data: tuple[str, ...] | None = None
    meta: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """An argument of a registered class, its children trees of `Leaf`s."""

    cls: type
    aux: Any
    children: tuple[Any, ...]


REGISTRY: dict[type, Registered] = {}


def registered(cls: Any) -> Registered | None:
    """How objects of the class are taken apart, if it is registered."""
    return REGISTRY.get(cls) if isinstance(cls, type) else None


def taken_apart(x: Any, how: Registered) -> Node:
    children, aux = how.flatten(x)
    return Node(type(x), aux, tuple(children))


def fields_of(node: Node, how: Registered) -> dict[str, Any]:
    """Of a registered dataclass: its fields, in their order in the class."""
    assert how.data is not None
    values = {**dict(zip(how.data, node.children)), **dict(zip(how.meta, node.aux))}
    return {name: values[name] for name in node.cls.__dataclass_fields__ if name in values}  # type: ignore[attr-defined]


def aux_names(cls: type, names: Iterable[str]) -> frozenset[str]:
    """The attributes that objects of a registered class keep beside their children: found by taking apart an object
    whose attributes are marks."""
    how = REGISTRY.get(cls)
    if how is None:
        return frozenset()
    if how.data is not None:
        return frozenset(how.meta)
    marks = {name: object() for name in names}
    probe: Any = object.__new__(cls)
    for name, mark in marks.items():
        object.__setattr__(probe, name, mark)
    try:
        children = tuple(how.flatten(probe)[0])
    except (TypeError, ValueError, AttributeError, LookupError):        # it computes with what it finds
        return frozenset()
    return frozenset(name for name, mark in marks.items() if not any(child is mark for child in children))
